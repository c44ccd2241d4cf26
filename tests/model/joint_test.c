/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matching against brute force over all boundaries.
 *
 * The model knows no lookback, no column and no run: it asks of each token that a later query attends to
 * whether the block that holds it is there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/prng.h"
#include "match/joint.h"
#include "prompt.h"
#include "prop.h"

#define PAGES 12u

struct world {
	struct prompt prompt;
	bool          held[STRATUM_COUNT][PAGES][COLUMNS_MAX];
	uint64_t      hints[PAGES + 1]; /* at most a word a page */
	bool          hinted;
	uint32_t      held_in;
	uint32_t      held_pages;
	uint32_t      ignored;
};

static const struct groups *groups_of(const struct world *world)
{
	return &world->prompt.pages.groups;
}

/* --- the model -------------------------------------------------------------------------------- */

static bool holds(const struct world *world, const struct group *group, uint32_t position)
{
	const uint32_t page = position * group->spec.block_tokens / groups_of(world)->page_tokens;
	const uint32_t column = group->first_column + position % group->page_blocks;

	if (page < world->held_pages)
		return true;
	if (world->hinted && bits_test(world->hints, page * groups_of(world)->columns + column))
		return true;
	return ((world->held_in & HELD_DEVICE) && world->held[STRATUM_DEVICE][page][column]) ||
	       ((world->held_in & HELD_HOST) && world->held[STRATUM_HOST][page][column]);
}

/* Does the query of token `next` attend to a token before it? */
static bool attends(const struct group *group, uint32_t next, uint32_t token)
{
	switch (group->spec.kind) {
	case GROUP_FULL:
		return true;
	case GROUP_WINDOW:
		return token + group->spec.window_tokens > next;
	case GROUP_STATE:
		return token + 1 == next;
	}
	KVS_PANIC("no such kind");
}

static bool supports(const struct world *world, const struct group *group, uint32_t tokens)
{
	uint32_t token;

	for (token = 0; token < tokens; token++) {
		if (attends(group, tokens, token) &&
		    !holds(world, group, token / group->spec.block_tokens))
			return false;
	}
	return true;
}

static bool all_support(const struct world *world, uint32_t tokens, bool closed_only)
{
	const struct groups *const groups = groups_of(world);
	uint32_t                   g;

	for (g = 0; g < groups->count; g++) {
		const struct group *const group = &groups->group[g];

		if ((group->spec.kind == GROUP_FULL || !closed_only) &&
		    !(world->ignored & 1u << group->spec.kind) &&
		    !supports(world, group, tokens))
			return false;
	}
	return true;
}

static uint32_t greatest(const struct world *world, uint32_t bound, bool closed_only)
{
	while (bound > world->held_pages &&
	       !all_support(world, bound * groups_of(world)->page_tokens, closed_only))
		bound--;
	return bound;
}

static bool any_closed(const struct world *world)
{
	uint32_t g;

	for (g = 0; g < groups_of(world)->count; g++) {
		if (groups_of(world)->group[g].spec.kind == GROUP_FULL)
			return !(world->ignored & 1u << GROUP_FULL);
	}
	return false;
}

/* --- comparisons ------------------------------------------------------------------------------ */

static void compare_joint(const struct world *world, const struct view *view)
{
	uint32_t bound;

	for (bound = world->held_pages; bound <= PAGES; bound++) {
		const struct joint joint = match_joint(view, bound);

		KVS_ASSERT_CMP(joint.pages, ==, greatest(world, bound, false));
		KVS_ASSERT_CMP(joint.closed_pages, ==,
			       any_closed(world) ? greatest(world, bound, true) : 0);
	}
}

static void compare_legal(const struct world *world, const struct view *view)
{
	const uint32_t tokens_max = PAGES * groups_of(world)->page_tokens;
	uint32_t       tokens;

	for (tokens = 0; tokens <= tokens_max; tokens++)
		KVS_ASSERT_CMP(match_legal(view, tokens), ==, all_support(world, tokens, false));
}

/* A restore uses what the first query behind it attends to; what no later one does expires. */
static void compare_needed(const struct world *world, const struct group *group)
{
	const uint32_t q = group->spec.block_tokens;
	const uint32_t tokens_max = PAGES * groups_of(world)->page_tokens;
	uint32_t       tokens, token, first, end;

	for (tokens = 0; tokens <= tokens_max; tokens++) {
		for (token = 0; token < tokens && !attends(group, tokens, token); token++)
			continue;
		match_needed(group, tokens, &first, &end);
		if (token < tokens) {
			KVS_ASSERT_CMP(first, ==, token / q);
			KVS_ASSERT_CMP(end, ==, (tokens - 1) / q + 1);
		} else {
			KVS_ASSERT_CMP(first, ==, group->spec.kind == GROUP_FULL ? 0 : tokens / q);
			KVS_ASSERT_CMP(end, ==, first);
		}
		KVS_ASSERT_CMP(group_expired_blocks(group, tokens), ==, first);
	}
}

static void compare_run(const struct world *world, const struct view *view,
			const struct group *group, uint32_t begin, uint32_t end)
{
	uint32_t i = begin;

	while (i < end && holds(world, group, i))
		i++;
	KVS_ASSERT_CMP(match_run(view, group, begin, end), ==, i);
}

static void compare_window(const struct world *world, const struct view *view,
			   const struct group *group, uint32_t begin, uint32_t end)
{
	uint32_t boundary, i;

	for (boundary = end; boundary > begin; boundary--) {
		i = boundary;
		while (i > begin && boundary - i < group->lookback && holds(world, group, i - 1))
			i--;
		if (i == begin || boundary - i == group->lookback)
			break;
	}
	KVS_ASSERT_CMP(match_window(view, group, begin, end), ==, boundary);
}

static void compare(struct world *world, uint32_t draw)
{
	struct view view = prompt_view(&world->prompt, world->held_in, world->held_pages);
	uint32_t    g, i;

	view.ignored = world->ignored;
	view.hints = world->hinted ? world->hints : NULL;
	compare_joint(world, &view);
	compare_legal(world, &view);
	for (g = 0; g < groups_of(world)->count; g++) {
		const struct group *const group = &groups_of(world)->group[g];
		const uint32_t            positions = PAGES * group->page_blocks;
		const uint32_t            begin = draw % (positions + 1);
		const uint32_t            end = begin + draw / 7 % (positions - begin + 1);

		compare_needed(world, group);
		if (!group_is_closed(group))
			compare_window(world, &view, group, begin, end);
		compare_run(world, &view, group, begin, end);
		for (i = 0; i < positions; i++)
			KVS_ASSERT_CMP(view_holds(&view, group, i), ==, holds(world, group, i));
	}
}

/* --- operations ------------------------------------------------------------------------------- */

static void set_held(struct world *world, uint32_t stratum, uint32_t page, uint32_t column, bool held)
{
	struct prompt *const prompt = &world->prompt;

	if (world->held[stratum][page][column] == held)
		return;
	world->held[stratum][page][column] = held;
	if (held) {
		pages_add(&prompt->pages, &prompt->space, &prompt->hashes[page], column, stratum,
			  prompt->next_block++);
	} else {
		pages_drop(&prompt->pages,
			   pages_cell(&prompt->pages,
				      pages_find(&prompt->pages, &prompt->space,
						 &prompt->hashes[page]),
				      column),
			   stratum);
	}
}

/* All blocks of a page, so that long runs are common. */
static void set_page(struct world *world, uint32_t stratum, uint32_t page, bool held)
{
	uint32_t column;

	for (column = 0; column < groups_of(world)->columns; column++)
		set_held(world, stratum, page, column, held);
}

/* A divisor of page_tokens of which a page has at most `room` blocks. */
static uint32_t draw_block_tokens(struct prng *prng, uint32_t page_tokens, uint32_t room)
{
	uint32_t q;

	do {
		q = 1 + (uint32_t)prng_below(prng, page_tokens);
	} while (page_tokens % q != 0 || page_tokens / q > room);
	return q;
}

/* Other groups, and nothing cached. */
static void reshape(struct world *world, uint32_t seed)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	struct group_spec        specs[ARRAY_COUNT(names)];
	struct prng              prng;
	uint32_t                 page_tokens, count, columns = 0, g;

	prng_seed(&prng, seed);
	page_tokens = 1 + (uint32_t)prng_below(&prng, prng_chance(&prng, 1, 4) ? 61 : 12);
	count = 1 + (uint32_t)prng_below(&prng, ARRAY_COUNT(names));
	for (g = 0; g < count; g++) {
		specs[g] = (struct group_spec){ .name = names[g],
						.kind = (enum group_kind)prng_below(&prng, 3),
						.packing = 1 };
		specs[g].block_tokens = draw_block_tokens(&prng, page_tokens,
							  COLUMNS_MAX - columns - (count - 1 - g));
		columns += page_tokens / specs[g].block_tokens;
		if (specs[g].kind == GROUP_WINDOW)
			specs[g].window_tokens = 1 + (uint32_t)prng_below(&prng, 5 * page_tokens);
	}
	if (world->prompt.page_count > 0)
		prompt_close(&world->prompt);
	memset(world->held, 0, sizeof(world->held));
	memset(world->hints, 0, sizeof(world->hints));
	prompt_open(&world->prompt, specs, count, page_tokens, PAGES);
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	reshape(world, 1);
	world->held_in = HELD_DEVICE;
	return world;
}

enum { RESHAPE, ADD, DROP, ADD_PAGE, DROP_PAGE, HINT, HINT_PAGE, HAVE, ASK };

static const struct prop_kind kinds[] = { { "RESHAPE", 1 },  { "ADD", 6 },  { "DROP", 6 },
					  { "ADD_PAGE", 16 }, { "DROP_PAGE", 1 }, { "HINT", 4 },
					  { "HINT_PAGE", 4 }, { "HAVE", 2 },     { "ASK", 2 } };

/* arg[0] draws stratum and page, arg[1] the column and what is compared. */
static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	const uint32_t      columns = groups_of(world)->columns;
	const uint32_t      stratum = op->arg[0] % STRATUM_COUNT;
	const uint32_t      page = op->arg[0] / STRATUM_COUNT % PAGES;
	const uint32_t      column = op->arg[1] % columns;
	uint32_t            i;

	switch (op->kind) {
	case RESHAPE:
		reshape(world, op->arg[0]);
		break;
	case ADD:
	case DROP:
		set_held(world, stratum, page, column, op->kind == ADD);
		break;
	case ADD_PAGE:
	case DROP_PAGE:
		set_page(world, stratum, page, op->kind == ADD_PAGE);
		break;
	case HINT:
	case HINT_PAGE:
		for (i = 0; i < columns; i++) {
			if (op->kind == HINT_PAGE || i == column)
				bits_set(world->hints, page * columns + i);
		}
		world->hinted = op->arg[1] % 4 != 0;
		break;
	case HAVE:
		world->held_pages = op->arg[0] % 4;
		break;
	default: /* ASK: of Device, Host, both or none; mostly of all kinds */
		world->held_in = op->arg[0] % 4;
		world->ignored = op->arg[0] / 4 % 3 ? 0 : op->arg[0] / 12 % 8;
		break;
	}
	compare(world, op->arg[1] / 3);
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	prompt_close(&world->prompt);
	free(world);
}

PROP_MAIN("joint", matching_finds_what_brute_force_finds, 200, 150, world_close)
