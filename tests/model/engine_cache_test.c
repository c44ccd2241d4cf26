/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row right: many requests over small pools and real memory, in any order.
 *
 * Prompts are conversations that go on, or branch; requests are admitted in chunks, decode, finish,
 * are aborted, retracted and come back; copies run late and are acknowledged later.  Each forward checks
 * all rows that it sees against the reference engine, and at the end every block is back.  What a list of
 * operations did is counted in memory that all lists share: a feature that never happened shows nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/prng.h"
#include "guest.h"
#include "prop.h"

#define GUESTS 6u
#define STORIES 6u
#define TOKENS_NEW 24u

enum kind { OP_NEW, OP_GO, OP_FINISH, OP_ABORT, OP_RETRACT, OP_DRAIN, OP_LOAD, OP_SAVE, OP_DONE, OP_CLEAR };

static const struct prop_kind kinds[] = {
	[OP_NEW] = { "new", 8 },       [OP_GO] = { "go", 60 },        [OP_FINISH] = { "finish", 5 },
	[OP_ABORT] = { "abort", 1 },   [OP_RETRACT] = { "retract", 4 }, [OP_DRAIN] = { "drain", 8 },
	[OP_LOAD] = { "load", 3 },     [OP_SAVE] = { "save", 6 },     [OP_DONE] = { "done", 12 },
	[OP_CLEAR] = { "clear", 1 },
};

/* A conversation that was: prompts begin with one, or with a part of one. */
struct story {
	int32_t  tokens[GUEST_TOKENS];
	uint32_t token_count;
};

struct world {
	struct yard *yard;
	struct guest guests[GUESTS];
	struct story stories[STORIES];
	uint32_t     story;
	uint64_t     next_id;
};

static struct yard_counts *counts;
static const struct yard_spec *spec_of_run;

/* --- the world -------------------------------------------------------------------------------- */

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	world->yard = yard_open(spec_of_run, counts);
	world->next_id = 1;
	return world;
}

static void abort_all(struct world *world)
{
	uint32_t i;

	for (i = 0; i < GUESTS; i++) {
		if (world->guests[i].phase != GUEST_NONE)
			guest_abort(world->yard, &world->guests[i]);
	}
}

static void world_close(void *ptr)
{
	struct world *const world = ptr;

	abort_all(world);
	yard_close(world->yard);
	free(world);
}

/* --- operations ------------------------------------------------------------------------------- */

static void remember(struct world *world, const struct guest *guest)
{
	struct story *const story = &world->stories[world->story++ % STORIES];

	story->token_count = guest->token_count;
	memcpy(story->tokens, guest->tokens, sizeof(story->tokens));
}

/* What a prompt begins with: a conversation that ended, or one that is going on. */
static struct story beginning(const struct world *world, uint32_t draw)
{
	const struct guest *const guest = &world->guests[draw / STORIES % GUESTS];
	struct story              story = world->stories[draw % STORIES];

	if (guest->phase == GUEST_NONE || draw / STORIES / GUESTS % 2 == 0)
		return story;
	story.token_count = guest->token_count;
	memcpy(story.tokens, guest->tokens, sizeof(story.tokens));
	return story;
}

/* A conversation goes on where it stood, or branches somewhere, or is a new one. */
static void do_new(struct world *world, struct guest *guest, const struct prop_op *op)
{
	const struct story        story = beginning(world, op->arg[1]);
	struct guest *const       other = &world->guests[(op->arg[0] + 1) % GUESTS];
	struct prng               prng;
	int32_t                   tokens[GUEST_TOKENS];
	uint32_t                  count = story.token_count;
	uint32_t                  i, more;

	if (guest->phase != GUEST_NONE)
		return;
	prng_seed(&prng, op->arg[0]);
	if (count > 0 && prng_chance(&prng, 1, 3))
		count = (uint32_t)prng_below(&prng, count + 1);
	if (count > GUEST_TOKENS / 2)
		count = GUEST_TOKENS / 2;
	memcpy(tokens, story.tokens, sizeof(tokens));
	more = 1 + (uint32_t)prng_below(&prng, TOKENS_NEW);
	for (i = 0; i < more; i++)
		tokens[count++] = (int32_t)prng_below(&prng, 2);
	guest_open(world->yard, guest, world->next_id++, tokens, count);
	guest->unaligned = prng_chance(&prng, 1, 6);
	/* Twins: the second hits what the first has under way. */
	if (other->phase == GUEST_NONE && prng_chance(&prng, 1, 2))
		guest_open(world->yard, other, world->next_id++, tokens, count);
}

static void do_finish(struct world *world, struct guest *guest)
{
	if (guest->phase != GUEST_DECODE || guest->end > 0)
		return;
	remember(world, guest);
	guest_finish(world->yard, guest);
}

static void do_retract(struct world *world, struct guest *guest)
{
	if (guest->phase == GUEST_DECODE && guest->end == 0 && guest_loading(world->yard, guest) == 0)
		guest_retract(world->yard, guest);
}

/* Somebody is in the way: the request with the most tokens goes. */
static void make_room(struct world *world)
{
	struct guest *most = NULL;
	uint32_t      i;

	for (i = 0; i < GUESTS; i++) {
		struct guest *const guest = &world->guests[i];

		if (guest->phase == GUEST_DECODE && guest->end == 0 &&
		    (!most || guest->token_count > most->token_count))
			most = guest;
	}
	if (most)
		do_retract(world, most);
}

static void do_go(struct world *world, struct guest *guest, const struct prop_op *op)
{
	if (guest->phase == GUEST_NONE)
		return;
	if (guest->end > 0) {
		guest_forward(world->yard, guest);
		return;
	}
	if (guest->token_count + 2 >= GUEST_TOKENS) {
		do_finish(world, guest);
		return;
	}
	if (guest_admit(world->yard, guest, 1 + op->arg[1] % 40) == KVS_E_FULL && op->arg[1] % 3 == 0)
		make_room(world);
	if (guest->end > 0 && op->arg[1] % 3 == 0)
		guest_forward(world->yard, guest);
}

/* A copy of a block with a name is under way, or a request has pages with names. */
static bool names_are_held(const struct world *world)
{
	const struct mover *const mover = &world->yard->mover;
	uint32_t                  i;

	SLOTS_EACH(&mover->slots, i) {
		if (mover->tickets[i].kind == TICKET_SAVE || mover->tickets[i].kind == TICKET_LOAD)
			return true;
	}
	for (i = 0; i < GUESTS; i++) {
		if (world->guests[i].published > 0)
			return true;
	}
	return false;
}

/* With nobody there all goes; with a name that is held, nothing. */
static void do_clear(struct world *world, const struct prop_op *op)
{
	if (op->arg[1] % 8 == 0) {
		abort_all(world);
		yard_settle(world->yard);
		KVS_ASSERT(yard_clear(world->yard));
		counts->clears++;
	} else if (names_are_held(world)) {
		KVS_ASSERT(!yard_clear(world->yard));
	}
}

static void world_step(void *ptr, const struct prop_op *op)
{
	struct world *const world = ptr;
	struct yard *const  yard = world->yard;
	struct guest *const guest = &world->guests[op->arg[0] % GUESTS];

	switch ((enum kind)op->kind) {
	case OP_NEW:
		do_new(world, guest, op);
		break;
	case OP_GO:
		do_go(world, guest, op);
		break;
	case OP_FINISH:
		do_finish(world, guest);
		break;
	case OP_ABORT:
		if (guest->phase != GUEST_NONE)
			guest_abort(yard, guest);
		break;
	case OP_RETRACT:
		do_retract(world, guest);
		break;
	case OP_DRAIN:
		yard_drain(yard);
		break;
	case OP_LOAD:
		yard_step(yard, COPIER_LOAD);
		break;
	case OP_SAVE:
		yard_step(yard, COPIER_SAVE);
		break;
	case OP_DONE:
		yard_acknowledge(yard, op->arg[1]);
		break;
	case OP_CLEAR:
		do_clear(world, op);
		break;
	}
	yard_audit(yard);
}

/* --- the tests -------------------------------------------------------------------------------- */

static void run(const char *name, const struct yard_spec *spec, uint32_t list_count)
{
	const struct prop prop = { .name = name, .kinds = kinds, .kind_count = ARRAY_COUNT(kinds),
				   .list_count = list_count, .op_count = 2000, .open = world_open,
				   .step = world_step, .close = world_close };

	spec_of_run = spec;
	assert_true(prop_run(&prop));
}

/* With a Host that is always full, and with one that holds what Device loses. */
static void run_both(const char *name, const struct yard_spec *spec, uint32_t small, uint32_t large)
{
	struct yard_spec sized = *spec;

	memset(counts, 0, sizeof(*counts));
	sized.host_parents = small;
	run(name, &sized, 20);
	sized.host_parents = large;
	run(name, &sized, 20);
}

#define HAPPENED(what) \
	do { \
		printf("# %8llu %s\n", (unsigned long long)counts->what, #what); \
		assert_true(counts->what > 0); \
	} while (0)

/* After what has not happened no row has been seen to be right. */
static void assert_all_happened(void)
{
	HAPPENED(rows_checked);
	HAPPENED(chunks);
	HAPPENED(decodes);
	HAPPENED(device_hits);
	HAPPENED(host_hits);
	HAPPENED(loads);
	HAPPENED(saves);
	HAPPENED(tails);
	HAPPENED(tail_hits);
	HAPPENED(tail_loads);
	HAPPENED(copies);
	HAPPENED(promotions);
	HAPPENED(device_evictions);
	HAPPENED(host_evictions);
	HAPPENED(retractions);
	HAPPENED(restored);
	HAPPENED(recomputed);
	HAPPENED(finishes);
	HAPPENED(aborts);
	HAPPENED(aborts_loading);
	HAPPENED(refused);
	HAPPENED(waited);
	HAPPENED(late_acks);
	HAPPENED(clears);
}

static void full_window_and_state_groups_serve_right_rows(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 8, 0, 1 },
						    { "window", GROUP_WINDOW, 2, 6, 3 },
						    { "state", GROUP_STATE, 4, 0, 2 } };
	static const uint32_t          layers[] = { 2, 2, 3 };
	static const struct yard_spec  spec = { groups, layers, 3, 8, 26, 0, GUEST_PAGES, false };

	(void)state;
	run_both("engine_cache", &spec, 16, 40);
	assert_all_happened();
	HAPPENED(checkpoints_checked);
	HAPPENED(body_tails);
}

/* A block of one row among them; and forwards that wait for nothing but the mover's fences. */
static void two_full_and_two_window_groups_serve_right_rows(void **state)
{
	static const struct group_spec groups[] = { { "whole", GROUP_FULL, 8, 0, 1 },
						    { "half", GROUP_FULL, 4, 0, 3 },
						    { "rows", GROUP_WINDOW, 1, 3, 6 },
						    { "wide", GROUP_WINDOW, 8, 13, 2 } };
	static const uint32_t          layers[] = { 2, 1, 2, 1 };
	static const struct yard_spec  spec = { groups, layers, 4, 8, 36, 0, GUEST_PAGES, true };

	(void)state;
	run_both("engine_cache_two", &spec, 20, 50);
	assert_all_happened();
	HAPPENED(foreign_fences);
}

/* --- any geometry ------------------------------------------------------------------------------ */

static struct group_spec draw_group(struct prng *prng, uint32_t g, uint32_t page, uint32_t layers)
{
	static const char *const names[] = { "first", "second", "third", "fourth" };
	const enum group_kind    kind = g == 0 ? GROUP_FULL : (enum group_kind)prng_below(prng, 3);
	struct group_spec        group = { .name = names[g], .kind = kind, .packing = 1 };
	uint32_t                 bytes;

	do
		group.block_tokens = 1 + (uint32_t)prng_below(prng, page);
	while (page % group.block_tokens != 0);
	if (kind == GROUP_WINDOW)
		group.window_tokens = 1 + (uint32_t)prng_below(prng, 3 * page);
	bytes = 8 * layers * (kind == GROUP_STATE ? 1 : group.block_tokens);
	do
		group.packing = 1 + (uint32_t)prng_below(prng, 8);
	while (YARD_PARENT_BYTES % group.packing != 0 || group.packing * bytes > YARD_PARENT_BYTES);
	return group;
}

/* One group of full history, which a request's names are held by, and up to three of any kind. */
static void groups_of_any_geometry_serve_right_rows(void **state)
{
	static const uint32_t pages[] = { 1, 2, 4, 6, 8, 12 };
	struct group_spec     groups[YARD_GROUPS];
	uint32_t              layers[YARD_GROUPS];
	struct yard_spec      spec = { .groups = groups, .layers = layers };
	struct prng           prng;
	uint32_t              round, g;

	(void)state;
	memset(counts, 0, sizeof(*counts));
	prng_seed(&prng, 11);
	for (round = 0; round < 16; round++) {
		spec.page_tokens = pages[prng_below(&prng, ARRAY_COUNT(pages))];
		spec.group_count = 1 + (uint32_t)prng_below(&prng, YARD_GROUPS);
		for (g = 0; g < spec.group_count; g++) {
			layers[g] = 1 + (uint32_t)prng_below(&prng, 2);
			groups[g] = draw_group(&prng, g, spec.page_tokens, layers[g]);
		}
		spec.device_parents = 32 + (uint32_t)prng_below(&prng, YARD_PARENTS - 31);
		spec.host_parents = (uint32_t)prng_below(&prng, YARD_PARENTS + 1);
		spec.prompt_pages = GUEST_PAGES;
		spec.unzeroed = prng_chance(&prng, 1, 2);
		run("engine_cache_any", &spec, 2);
	}
	HAPPENED(rows_checked);
	HAPPENED(checkpoints_checked);
	HAPPENED(loads);
	HAPPENED(copies);
	HAPPENED(promotions);
	HAPPENED(device_evictions);
	HAPPENED(restored);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_window_and_state_groups_serve_right_rows),
		cmocka_unit_test(two_full_and_two_window_groups_serve_right_rows),
		cmocka_unit_test(groups_of_any_geometry_serve_right_rows),
	};

	/* Lists run in children, which count into the same memory. */
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
