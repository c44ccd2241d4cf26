/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query planning against all subsets of a prompt's boundaries.  What a boundary needs is said in
 * tokens, as attention sees them.  A set of boundaries is possible when what they miss together
 * fits into the budget and no block of it is absent from every store; the plan must be the possible
 * set that has the longest boundary, of those the one that has the next longest, and so on.  Each
 * operation is an instance of its own, made from its arguments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/prng.h"
#include "match/joint.h"
#include "plan/query.h"
#include "prop.h"

#define PAGES 4u
#define TAILS 4u
#define ROWS (PAGES + TAILS) /* of cells: pages, then tails */
#define BOUNDARIES (PAGES + TAILS)

/* A set of cells: one word a row. */
struct cells {
	uint64_t row[ROWS];
};

struct candidate {
	uint32_t     tokens;
	uint32_t     tail;
	struct cells missing;
};

struct instance {
	struct prng          prng;
	struct groups        groups;
	struct pages         pages;
	struct kvs_namespace space;
	struct prefix_hash   hashes[PAGES];
	struct tail          tails[TAILS];
	uint32_t             entries[PAGES + 1];
	struct view          view;
	struct query_limits  limits;
	struct query_ask     ask;
	struct cells         held;
	struct cells         absent; /* from every store */
	uint64_t             page_absent[PAGES + 2]; /* COLUMNS_MAX bits a page, and a word to read past */
	uint64_t             tail_absent[TAILS];
	struct candidate      boundaries[BOUNDARIES]; /* beyond the local hit, longest first */
	uint32_t             boundary_count;
};

static uint32_t below(struct instance *in, uint32_t bound)
{
	return (uint32_t)prng_below(&in->prng, bound);
}

/* --- an instance ------------------------------------------------------------------------------ */

static void make_groups(struct instance *in)
{
	static const uint32_t divisors[] = { 1, 2, 3, 4, 6, 12 };
	static const char    *names[] = { "a", "b", "c" };
	struct group_spec     specs[3];
	const uint32_t        count = 1 + below(in, 3);
	uint32_t              i;

	for (i = 0; i < count; i++) {
		const enum group_kind kind = (enum group_kind)below(in, 3);

		specs[i] = (struct group_spec){ names[i], kind, divisors[below(in, 6)],
						kind == GROUP_WINDOW ? 1 + below(in, 30) : 0, 1 };
	}
	KVS_ASSERT(groups_make(specs, count, 12, &in->groups, NULL) == 0);
}

static void hold(struct instance *in, const struct prefix_hash *hash, uint32_t row, uint32_t chance)
{
	uint32_t column, stratum;

	for (column = 0; column < in->groups.columns; column++) {
		for (stratum = 0; stratum < STRATUM_COUNT; stratum++) {
			if (!prng_chance(&in->prng, chance, 100))
				continue;
			pages_add(&in->pages, &in->space, hash, column,
				  (enum stratum_id)stratum, 1);
			in->held.row[row] |= UINT64_C(1) << column;
		}
	}
}

/* Distinct boundaries inside pages, longest first. */
static void make_tails(struct instance *in)
{
	uint32_t tokens;

	for (tokens = PAGES * 12 - 1; tokens > 0 && in->ask.tail_count < TAILS; tokens--) {
		struct tail *const tail = &in->tails[in->ask.tail_count];

		if (tokens % 12 == 0 || below(in, 8) > 0)
			continue;
		*tail = (struct tail){ tokens, { { 2, (uint8_t)tokens } } };
		in->ask.tail_count++;
	}
}

static void make_contents(struct instance *in)
{
	const uint32_t chance = below(in, 4) * 30;
	uint32_t       i;

	for (i = 0; i < PAGES; i++) {
		in->hashes[i] = (struct prefix_hash){ { 1, (uint8_t)i } };
		hold(in, &in->hashes[i], i, below(in, 2) ? 90 : chance);
	}
	for (i = 0; i < in->ask.tail_count; i++)
		hold(in, &in->tails[i].hash, PAGES + i, chance);
	pages_find_all(&in->pages, &in->space, in->hashes, PAGES, in->entries);
	in->entries[PAGES] = SLOT_NONE;
	in->view = (struct view){ .pages = &in->pages,
				  .entries = in->entries,
				  .page_count = PAGES,
				  .held_in = HELD_DEVICE | HELD_HOST };
}

/* Seldom much, for one block of history ends all that is longer. */
static void make_absent(struct instance *in)
{
	uint32_t row, column;

	if (below(in, 2))
		return;
	in->ask.page_absent = in->page_absent;
	in->ask.tail_absent = below(in, 8) ? in->tail_absent : NULL;
	for (row = 0; row < ROWS; row++) {
		for (column = 0; column < in->groups.columns; column++) {
			if (below(in, 40) || (row >= PAGES && !in->ask.tail_absent))
				continue;
			in->absent.row[row] |= UINT64_C(1) << column;
			if (row < PAGES)
				bits_set(in->page_absent, row * in->groups.columns + column);
		}
		if (row >= PAGES)
			in->tail_absent[row - PAGES] = in->absent.row[row];
	}
}

/* --- what a boundary misses, token by token --------------------------------------------------- */

/* Does the query of the token behind a boundary, or any later one, attend to a token before it? */
static bool attends(const struct group *group, uint32_t boundary, uint32_t token)
{
	switch (group->spec.kind) {
	case GROUP_FULL:
		return true;
	case GROUP_WINDOW:
		return token + group->spec.window_tokens > boundary;
	case GROUP_STATE:
		return token == boundary - 1;
	}
	return false;
}

static struct cells missing_of(const struct instance *in, uint32_t boundary, uint32_t tail)
{
	struct cells missing = { { 0 } };
	uint32_t     g, token, i;

	for (g = 0; g < in->groups.count; g++) {
		const struct group *const group = &in->groups.group[g];

		for (token = 0; token < boundary; token++) {
			const uint32_t page = token / 12;
			const uint32_t row = page == boundary / 12 ? PAGES + tail : page;

			if (attends(group, boundary, token)) {
				missing.row[row] |= UINT64_C(1)
						    << (group->first_column +
							token % 12 / group->spec.block_tokens);
			}
		}
	}
	for (i = 0; i < ROWS; i++)
		missing.row[i] &= ~in->held.row[i];
	return missing;
}

static uint32_t size_of(const struct cells *cells)
{
	uint32_t size = 0;
	uint32_t i;

	for (i = 0; i < ROWS; i++)
		size += (uint32_t)__builtin_popcountll(cells->row[i]);
	return size;
}

static uint32_t tail_at(const struct instance *in, uint32_t tokens)
{
	uint32_t i;

	for (i = 0; i < in->ask.tail_count; i++) {
		if (in->tails[i].tokens == tokens)
			return i;
	}
	return TAIL_NONE;
}

/*
 * Every boundary up to the bound that is complete already is a local hit; now and then one knows
 * less.
 */
static void make_local(struct instance *in)
{
	uint32_t tokens;

	for (tokens = 1; tokens <= in->ask.bound_tokens; tokens++) {
		const uint32_t tail = tail_at(in, tokens);
		struct cells   missing;

		if (tail == TAIL_NONE && tokens % 12 != 0)
			continue;
		missing = missing_of(in, tokens, tail);
		if (size_of(&missing) == 0 && below(in, 8) > 0)
			in->ask.local_tokens = tokens;
	}
}

/* Those that count: in reach, worth it, and longer than any that is complete. */
static void make_boundaries(struct instance *in)
{
	const uint32_t local = in->ask.local_tokens;
	uint32_t       tokens;

	for (tokens = in->ask.bound_tokens; tokens > local; tokens--) {
		const uint32_t   tail = tail_at(in, tokens);
		struct candidate *boundary = &in->boundaries[in->boundary_count];

		if ((tail == TAIL_NONE && tokens % 12 != 0) ||
		    tokens - local > in->limits.lookahead_tokens ||
		    tokens - local < in->limits.extension_min)
			continue;
		*boundary = (struct candidate){ tokens, tail, missing_of(in, tokens, tail) };
		if (size_of(&boundary->missing) == 0)
			break;
		in->boundary_count++;
	}
}

static void make_instance(struct instance *in, uint64_t seed)
{
	*in = (struct instance){ .space = { "space" } };
	prng_seed(&in->prng, seed);
	make_groups(in);
	KVS_ASSERT(pages_open(&in->pages, &in->groups, ROWS) == 0);
	make_tails(in);
	make_contents(in);
	in->limits = (struct query_limits){ .page_max = PAGES,
					    .tail_max = TAILS,
					    .key_max = below(in, 4) ? 200 : 1 + below(in, 30),
					    .extension_min = below(in, 4) ? 0 : below(in, 20),
					    .lookahead_tokens = below(in, 4) ? 99 : below(in, 50) };
	in->ask.view = &in->view;
	in->ask.space = &in->space;
	in->ask.hashes = in->hashes;
	in->ask.tails = in->tails;
	in->ask.bound_tokens = below(in, 4) ? PAGES * 12 - 1 : below(in, PAGES * 12 + 1);
	in->ask.credits = below(in, 2) ? below(in, 30) : 200;
	make_absent(in);
	make_local(in);
	make_boundaries(in);
}

/* --- all subsets ------------------------------------------------------------------------------ */

static struct cells missing_together(const struct instance *in, uint32_t set)
{
	struct cells together = { { 0 } };
	uint32_t     i, row;

	for (i = 0; i < in->boundary_count; i++) {
		for (row = 0; row < ROWS && (set >> i & 1); row++)
			together.row[row] |= in->boundaries[i].missing.row[row];
	}
	return together;
}

/*
 * Bit i of a set is boundary i, so that the longest weighs most when the bits are read from bit 0
 * on.
 */
static bool is_better(uint32_t set, uint32_t other)
{
	const uint32_t difference = set ^ other;

	return difference && (set & (difference & -difference));
}

static bool is_possible(const struct instance *in, const struct candidate *boundary)
{
	uint32_t row;

	for (row = 0; row < ROWS; row++) {
		if (boundary->missing.row[row] & in->absent.row[row])
			return false;
	}
	return true;
}

static uint32_t impossible_set(const struct instance *in)
{
	uint32_t set = 0;
	uint32_t i;

	for (i = 0; i < in->boundary_count; i++)
		set |= (uint32_t)!is_possible(in, &in->boundaries[i]) << i;
	return set;
}

static uint32_t best_set(const struct instance *in)
{
	const uint32_t key_max = in->limits.key_max;
	const uint32_t budget = in->ask.credits < key_max ? in->ask.credits : key_max;
	const uint32_t impossible = impossible_set(in);
	uint32_t       best = 0;
	uint32_t       set;

	for (set = 1; set < UINT32_C(1) << in->boundary_count; set++) {
		const struct cells together = missing_together(in, set);

		if (set & impossible)
			continue;
		if (size_of(&together) <= budget && is_better(set, best))
			best = set;
	}
	return best;
}

/* --- comparison ------------------------------------------------------------------------------- */

static struct cells cells_of(const struct query *query, uint32_t key_end)
{
	struct cells cells = { { 0 } };
	uint32_t     i;

	for (i = 0; i < key_end; i++) {
		const struct query_key *const key = &query->keys[i];
		const uint32_t row = key->tail == TAIL_NONE ? key->page : PAGES + key->tail;

		cells.row[row] |= UINT64_C(1) << key->column;
	}
	return cells;
}

/* With its keys for hints, the matcher itself must find the boundary legal; without them, not. */
static void check_legal(const struct instance *in, const struct candidate *boundary,
			const struct cells *asked)
{
	uint64_t    hints[PAGES + 2]; /* COLUMNS_MAX bits a page, and a word to read past */
	uint32_t    entries[PAGES + 1];
	struct view view = in->view;
	uint32_t    row, column;

	memset(hints, 0, sizeof(hints));
	memcpy(entries, in->entries, sizeof(entries));
	view.entries = entries;
	view.page_count = PAGES + 1;
	if (boundary->tail != TAIL_NONE) {
		entries[boundary->tokens / 12] =
			pages_find(&in->pages, &in->space, &in->tails[boundary->tail].hash);
	}
	KVS_ASSERT(!match_legal(&view, boundary->tokens));
	for (row = 0; row < ROWS; row++) {
		const uint32_t page = row < PAGES ? row : boundary->tokens / 12;

		if (row == boundary->tokens / 12 || (row >= PAGES && row - PAGES != boundary->tail))
			continue;
		for (column = 0; column < in->groups.columns; column++) {
			if (asked->row[row] >> column & 1)
				bits_set(hints, page * in->groups.columns + column);
		}
	}
	view.hints = hints;
	KVS_ASSERT(match_legal(&view, boundary->tokens));
}

/* The longest boundary in reach, complete or not; 0 when there is none behind the local hit. */
static uint32_t longest_of(const struct instance *in)
{
	uint32_t tokens = in->ask.bound_tokens;

	while (tokens > in->ask.local_tokens) {
		if (tokens - in->ask.local_tokens <= in->limits.lookahead_tokens &&
		    (tokens % 12 == 0 || tail_at(in, tokens) != TAIL_NONE))
			return tokens;
		tokens--;
	}
	return 0;
}

static enum query_bypass reason_of(const struct instance *in, uint32_t best)
{
	const uint32_t local = in->ask.local_tokens, bound = in->ask.bound_tokens;
	const uint32_t longest = longest_of(in);

	if (best != 0)
		return QUERY_ASKED;
	if (bound <= local)
		return QUERY_COVERED;
	if (bound - local < in->limits.extension_min)
		return QUERY_SHORT;
	if (longest == 0)
		return QUERY_NO_BOUNDARY;
	if (longest - local < in->limits.extension_min)
		return QUERY_SHORT;
	if (in->boundary_count == 0)
		return QUERY_COVERED;
	return impossible_set(in) == (UINT32_C(1) << in->boundary_count) - 1 ? QUERY_ABSENT
									      : QUERY_CREDITS;
}

/* The first block, by group and position, that keeps the longest impossible boundary away. */
static void check_barrier(const struct instance *in, const struct query *query)
{
	const uint32_t                impossible = impossible_set(in);
	const uint32_t                i = impossible ? (uint32_t)__builtin_ctz(impossible) : 0;
	const struct candidate *const boundary = &in->boundaries[i];
	const struct query_key *const key = &query->barrier;
	uint32_t                      row, g;

	KVS_ASSERT_CMP(query->has_barrier, ==, impossible != 0);
	if (!impossible)
		return;
	row = key->tail == TAIL_NONE ? key->page : PAGES + key->tail;
	KVS_ASSERT((boundary->missing.row[row] & in->absent.row[row]) >> key->column & 1);
	g = query_key_group(query, key);
	for (row = 0; row < ROWS; row++) {
		const uint64_t both = boundary->missing.row[row] & in->absent.row[row];
		const struct query_key first = { row < PAGES ? row : boundary->tokens / 12,
						 row < PAGES ? TAIL_NONE : row - PAGES,
						 both ? (uint32_t)__builtin_ctzll(both) : 0 };

		if (!both)
			continue;
		KVS_ASSERT_CMP(query_key_group(query, &first), >=, g);
		if (query_key_group(query, &first) == g) {
			KVS_ASSERT_CMP(query_key_position(query, &first), >=,
				       query_key_position(query, key));
		}
	}
}

static void compare(const struct instance *in, const struct query *query)
{
	const uint32_t     best = best_set(in);
	const struct cells together = missing_together(in, best);
	const struct cells asked = cells_of(query, query->key_count);
	uint32_t           seen = 0;
	uint32_t           i;

	query_audit(query, &in->ask);
	KVS_ASSERT_CMP(query->key_count, ==, size_of(&together));
	KVS_ASSERT(memcmp(&asked, &together, sizeof(asked)) == 0);
	KVS_ASSERT_CMP(query->bypass, ==, reason_of(in, best));
	check_barrier(in, query);
	for (i = 0; i < in->boundary_count; i++) {
		const struct candidate *const boundary = &in->boundaries[i];
		struct cells                 so_far;

		if (!(best >> i & 1))
			continue;
		KVS_ASSERT_CMP(seen, <, query->boundary_count);
		KVS_ASSERT_CMP(query->boundaries[seen].at.tokens, ==, boundary->tokens);
		KVS_ASSERT_CMP(query->boundaries[seen].at.tail, ==, boundary->tail);
		so_far = cells_of(query, query->boundaries[seen].key_end);
		check_legal(in, boundary, &so_far);
		seen++;
	}
	KVS_ASSERT_CMP(seen, ==, query->boundary_count);
}

static void *world_open(void)
{
	return calloc(1, sizeof(struct instance));
}

static const struct prop_kind kinds[] = { { "PLAN", 1 } };

static void world_step(void *world, const struct prop_op *op)
{
	struct instance *const in = world;
	struct query           query;

	make_instance(in, (uint64_t)op->arg[0] << 32 | op->arg[1]);
	KVS_ASSERT(query_open(&query, &in->groups, &in->limits, NULL) == 0);
	query_plan(&query, &in->ask);
	compare(in, &query);
	/* Nothing of one plan is left for the next. */
	query_plan(&query, &in->ask);
	compare(in, &query);
	query_close(&query);
	pages_close(&in->pages);
}

PROP_MAIN("query", the_plan_is_the_best_of_all_subsets, 40, 250, free)
