/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of tails against a list of hints, oldest first, that is searched from end to end; and
 * the candidates of a prompt against every boundary inside its pages, one token after the other.
 * Two texts that part in the second page, so that hints of one stand behind pages of the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "match/tail.h"
#include "prop.h"

#define PAGE 12u
#define FULL_PAGES 3u
#define TOKENS (PAGE * FULL_PAGES + 5)
#define TEXTS 2u
#define PARTING 15u
#define HINTS_MAX 24u

struct text {
	int32_t            tokens[TOKENS];
	struct prompt      prompt;
	struct prefix_hash hashes[FULL_PAGES];
};

struct hint {
	uint8_t            space;
	uint32_t           pages;
	struct prefix_hash prior;
	struct tail_hint   tail;
};

struct world {
	struct tails tails;
	struct text  texts[TEXTS];
	struct hint  hints[HINTS_MAX]; /* oldest first */
	uint32_t     count;
	uint32_t     hint_max;
	uint64_t     full;
	uint64_t     crowded;
};

static struct kvs_namespace space_of(uint8_t space)
{
	return (struct kvs_namespace){ { space } };
}

static const struct prefix_hash *prior_of(const struct text *text, uint32_t pages)
{
	return pages ? &text->hashes[pages - 1] : NULL;
}

/* --- the list --------------------------------------------------------------------------------- */

static bool same_page(const struct hint *a, const struct hint *b)
{
	return a->space == b->space && memcmp(&a->prior, &b->prior, sizeof(a->prior)) == 0;
}

static bool same_hint(const struct hint *a, const struct hint *b)
{
	return same_page(a, b) && a->tail.token_count == b->tail.token_count &&
	       memcmp(&a->tail.hash, &b->tail.hash, sizeof(a->tail.hash)) == 0;
}

static void delete_at(struct world *world, uint32_t at)
{
	world->count--;
	memmove(&world->hints[at], &world->hints[at + 1],
		(world->count - at) * sizeof(world->hints[0]));
}

static void model_record(struct world *world, const struct hint *hint)
{
	uint32_t behind = 0, oldest = 0, known = UINT32_MAX;
	uint32_t i;

	for (i = world->count; i-- > 0;) {
		if (same_hint(&world->hints[i], hint))
			known = i;
		if (!same_page(&world->hints[i], hint))
			continue;
		behind++;
		oldest = i;
	}
	if (known != UINT32_MAX) {
		delete_at(world, known);
	} else if (behind == TAILS_PER_PAGE) {
		world->crowded++;
		delete_at(world, oldest);
	} else if (world->count == world->hint_max) {
		world->full++;
		delete_at(world, 0);
	}
	world->hints[world->count++] = *hint;
}

static bool model_knows(const struct world *world, const struct hint *hint)
{
	uint32_t i;

	for (i = 0; i < world->count; i++) {
		if (same_hint(&world->hints[i], hint))
			return true;
	}
	return false;
}

/* --- comparison ------------------------------------------------------------------------------- */

static void compare_page(const struct world *world, uint8_t space, const struct prefix_hash *prior)
{
	const struct kvs_namespace name = space_of(space);
	struct hint                page = { .space = space };
	struct tail_hint           behind[TAILS_PER_PAGE];
	const uint32_t             count = tails_behind(&world->tails, &name, prior, behind);
	uint32_t                   seen = 0;
	uint32_t                   i;

	if (prior)
		page.prior = *prior;
	for (i = world->count; i-- > 0;) {
		if (!same_page(&world->hints[i], &page))
			continue;
		KVS_ASSERT_CMP(seen, <, count);
		KVS_ASSERT_CMP(behind[seen].token_count, ==, world->hints[i].tail.token_count);
		KVS_ASSERT(memcmp(&behind[seen].hash, &world->hints[i].tail.hash,
				  sizeof(behind[seen].hash)) == 0);
		seen++;
	}
	KVS_ASSERT_CMP(seen, ==, count);
}

static void compare(const struct world *world)
{
	uint32_t t, pages;
	uint8_t  space;

	tails_audit(&world->tails);
	KVS_ASSERT_CMP(world->tails.slots.busy_count, ==, world->count);
	KVS_ASSERT_CMP(world->tails.dropped_full, ==, world->full);
	KVS_ASSERT_CMP(world->tails.dropped_crowded, ==, world->crowded);
	for (space = 0; space < 2; space++) {
		for (t = 0; t < TEXTS; t++) {
			for (pages = 0; pages <= FULL_PAGES; pages++)
				compare_page(world, space, prior_of(&world->texts[t], pages));
		}
	}
}

/* --- operations ------------------------------------------------------------------------------- */

/* The tail of a text that ends at `tokens`, which must lie inside a page. */
static struct hint hint_of(const struct text *text, uint8_t space, uint32_t tokens)
{
	const uint32_t            pages = tokens / PAGE;
	const struct prefix_hash *prior = prior_of(text, pages);
	struct hint               hint = { .space = space, .pages = pages };

	if (prior)
		hint.prior = *prior;
	hint.tail.token_count = tokens % PAGE;
	prefix_hash_tail(&text->prompt, pages, hint.tail.token_count, prior, &hint.tail.hash);
	return hint;
}

/* One in eight is of tokens that neither text has. */
static void record(struct world *world, uint32_t a, uint32_t b)
{
	const struct text *const   text = &world->texts[a % TEXTS];
	const uint8_t              space = a / TEXTS % 8 == 0;
	const uint32_t             tokens = b % TOKENS;
	const struct kvs_namespace name = space_of(space);
	struct hint                hint;

	if (tokens % PAGE == 0)
		return;
	hint = hint_of(text, space, tokens);
	if (a / TEXTS / 8 % 8 == 0)
		hint.tail.hash.byte[0] ^= 1;
	tails_record(&world->tails, &name, prior_of(text, hint.pages), hint.tail.token_count,
		     &hint.tail.hash);
	model_record(world, &hint);
}

static void find(const struct world *world, uint32_t a, uint32_t b)
{
	const struct text *const   text = &world->texts[a % TEXTS];
	const struct kvs_namespace name = space_of(a / TEXTS % 8 == 0);
	struct tail_search         search = { .space = &name,
					      .prompt = &text->prompt,
					      .hashes = text->hashes,
					      .bound = b % TOKENS,
					      .reach = b / TOKENS % 4 ? UINT32_MAX
								      : b / 256 % TOKENS,
					      .above = b / 65536 % TOKENS,
					      .page_max = a / 16 % 6 };
	const uint32_t             tail_max = a / 256 % 12;
	const uint32_t             end = search.reach < search.bound ? search.reach : search.bound;
	struct tail                found[12];
	const uint32_t             count = tails_find(&world->tails, &search, found, tail_max);
	uint32_t                   seen = 0;
	uint32_t                   tokens;

	for (tokens = end; tokens > search.above && seen < tail_max; tokens--) {
		const bool  walked = end / PAGE - tokens / PAGE < search.page_max;
		struct hint hint;

		if (tokens % PAGE == 0)
			continue;
		hint = hint_of(text, name.byte[0], tokens);
		if (tokens != search.bound && !(walked && model_knows(world, &hint)))
			continue;
		KVS_ASSERT_CMP(seen, <, count);
		KVS_ASSERT_CMP(found[seen].tokens, ==, tokens);
		KVS_ASSERT(memcmp(&found[seen].hash, &hint.tail.hash, sizeof(hint.tail.hash)) == 0);
		seen++;
	}
	KVS_ASSERT_CMP(seen, ==, count);
}

static void clear(struct world *world)
{
	tails_clear(&world->tails);
	world->count = 0;
}

static void reopen(struct world *world, uint32_t hint_max)
{
	tails_close(&world->tails);
	KVS_ASSERT(tails_open(&world->tails, hint_max, PAGE, NULL) == 0);
	world->hint_max = hint_max;
	world->count = 0;
	world->full = 0;
	world->crowded = 0;
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));
	uint32_t            t, i;

	KVS_ASSERT(world);
	for (t = 0; t < TEXTS; t++) {
		struct text *const text = &world->texts[t];

		for (i = 0; i < TOKENS; i++)
			text->tokens[i] = (int32_t)(i >= PARTING ? 100 * t + i : i);
		text->prompt = (struct prompt){ text->tokens, TOKENS, PAGE, NULL };
		prefix_hash_chain(&text->prompt, 0, FULL_PAGES, NULL, text->hashes);
	}
	reopen(world, HINTS_MAX);
	return world;
}

enum { REOPEN, CLEAR, RECORD, FIND };

static const struct prop_kind kinds[] = {
	{ "REOPEN", 1 }, { "CLEAR", 1 }, { "RECORD", 120 }, { "FIND", 60 }
};

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	if (op->kind == REOPEN)
		reopen(world, 1 + op->arg[0] % HINTS_MAX);
	else if (op->kind == CLEAR)
		clear(world);
	else if (op->kind == RECORD)
		record(world, op->arg[0], op->arg[1]);
	else
		find(world, op->arg[0], op->arg[1]);
	compare(world);
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	tails_close(&world->tails);
	free(world);
}

PROP_MAIN("tail", the_table_remembers_the_newest_and_finds_every_boundary, 60, 400, world_close)
