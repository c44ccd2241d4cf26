/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever is let in comes to its end: on Devices that hold little more than one request, whatever shares
 * prefixes, is retracted, aborted or under way, every request that fits its limit is finished after a
 * bounded number of rounds, and all blocks come back.  The rig's engine checks every row.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "prop.h"
#include "sched_rig.h"

#define REQUESTS 4u
#define TOKENS_EACH 90u
/* Rounds in which nothing at all happens, though somebody is there. */
#define QUIET_MAX 8u
#define SAVE_ROUNDS_MAX 200u
/* Far more than all requests have tokens: those that go round in a circle do not come to an end. */
#define ROUNDS_MAX 4000u

enum kind { SHAPE, SUBMIT, ROUND, ABORT, COPIES, RESERVE, FREEZE };

static const struct prop_kind kinds[] = {
	{ "shape", 1 }, { "submit", 6 }, { "round", 30 }, { "abort", 1 },
	{ "copies", 6 }, { "reserve", 2 }, { "freeze", 1 },
};

struct world {
	struct srig       rig;
	bool              open;
	struct group_spec groups[4];
	/* Of the rig's requests. */
	uint32_t          wanted[SRIG_REQUESTS];  /* tokens at the end */
	bool              landing[SRIG_REQUESTS]; /* a peer computes the prompt */
	uint32_t          serial;
};

static void *world_open(void)
{
	return calloc(1, sizeof(struct world));
}

/* --- shapes ----------------------------------------------------------------------------------- */

static uint32_t pick(uint64_t *state, uint32_t count)
{
	*state = mix64(*state + 1);
	return (uint32_t)(*state >> 20) % count;
}

static uint32_t pick_divisor(uint64_t *state, uint32_t number)
{
	const uint32_t half = number % 2 == 0 ? 2 : 1;

	return pick(state, 2) == 0 ? number : number / half;
}

static void add_group(struct world *world, struct sched_options *options, uint64_t *state,
		      enum group_kind kind)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	const uint32_t           g = options->group_count++;

	world->groups[g] = (struct group_spec){
		.name = names[g], .kind = kind, .block_tokens = pick_divisor(state, options->page_tokens),
		.window_tokens = kind == GROUP_WINDOW ? 1 + pick(state, 9) : 0, .packing = 1 + pick(state, 4)
	};
}

static void add_groups(struct world *world, struct sched_options *options, uint64_t *state)
{
	const uint32_t which = 1 + pick(state, 7);

	options->group_count = 0;
	options->groups = world->groups;
	if (which & 1)
		add_group(world, options, state, GROUP_FULL);
	if (which & 2)
		add_group(world, options, state, GROUP_WINDOW);
	if (which & 4)
		add_group(world, options, state, GROUP_STATE);
}

static struct sched_options shape(struct world *world, uint64_t state)
{
	static const uint32_t pages[] = { 1, 2, 3, 4, 6, 8 };
	static const enum sched_role roles[] = { SCHED_FUSED, SCHED_FUSED, SCHED_DECODE, SCHED_PREFILL };
	struct sched_options  options = srig_options();

	options.role = roles[pick(&state, ARRAY_COUNT(roles))];
	options.page_tokens = pages[pick(&state, ARRAY_COUNT(pages))];
	add_groups(world, &options, &state);
	options.device_parents = 4 + pick(&state, 24);
	options.host_parents = pick(&state, 2) * (1 + pick(&state, 24));
	options.prefix_cache = pick(&state, 4) > 0;
	options.replay_tokens = pick(&state, 3) * 2;
	options.batch_max = 1 + pick(&state, 4);
	options.decode_tokens = 1 + pick(&state, 4);
	/* Small chunks and packed blocks lie most awkwardly. */
	options.chunk_tokens = options.page_tokens + options.decode_tokens +
			       pick(&state, pick(&state, 2) == 0 ? 3 : 20);
	options.overlap_depth = pick(&state, 2);
	options.mixed = pick(&state, 2);
	options.snapshot_max = options.host_parents > 0 ? pick(&state, 3) : 0;
	options.snapshot_block_max = options.snapshot_max > 0 ? 64 : 0;
	options.save_ticket_max = options.load_ticket_max = 2 + pick(&state, 4);
	options.candidate_max = 1 + pick(&state, 64);
	return options;
}

static void open_shape(struct world *world, uint64_t seed)
{
	const struct sched_options options = shape(world, seed);

	srig_open(&world->rig, &options);
	world->open = true;
	world->rig.held = mix64(seed) & 1;
	world->rig.accept = 1 + (uint32_t)(mix64(seed) >> 8) % options.decode_tokens;
}

/* --- requests --------------------------------------------------------------------------------- */

static uint32_t living(const struct world *world)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < SRIG_REQUESTS; i++)
		count += world->rig.requests[i].id[0] != '\0';
	return count;
}

/* As many tokens as the limit allows, often; with a prefix of one of two families. */
static void submit(struct world *world, uint32_t first, uint32_t second)
{
	const uint32_t step = world->rig.options.decode_tokens;
	uint32_t       limit = sched_request_limit(world->rig.sched);
	uint32_t       total, count, split, i;
	int32_t        tokens[TOKENS_EACH];
	char           id[16];

	limit = limit < TOKENS_EACH ? limit : TOKENS_EACH;
	if (limit < step + 1 || living(world) == REQUESTS)
		return;
	total = first & 1 ? limit : step + 1 + (first >> 1) % (limit - step);
	count = 1 + second % (total - step);
	split = (second >> 10) % (count + 1);
	for (i = 0; i < count; i++) {
		tokens[i] = i < split ? (int32_t)(1000 * (second >> 31) + i)
				      : (int32_t)(10000 * (1 + world->serial) + i);
	}
	/* Whoever comes later may go first. */
	(void)snprintf(id, sizeof(id), "%c%u", 'a' + (char)((first >> 8) % 26), world->serial++);
	srig_submit(&world->rig, id, tokens, count, total - count);
	i = (uint32_t)(srig_request(&world->rig, id) - world->rig.requests);
	world->wanted[i] = total;
	world->landing[i] = false;
	if (world->rig.options.role != SCHED_FUSED)
		KVS_ASSERT(srig_event(&world->rig, SCHED_BOOTSTRAPPED, id) == 0);
}

static const struct sched_plan *next_plan(struct world *world)
{
	const struct sched_plan *const plan = srig_next(&world->rig);
	uint32_t                       i;

	for (i = 0; i < plan->forward.row_count; i++) {
		if (plan->forward.rows[i].kind == BATCH_REMOTE) {
			const char *const id = plan->forward.rows[i].id;

			world->landing[srig_request(&world->rig, id) - world->rig.requests] = true;
		}
	}
	return plan;
}

static void end(struct world *world, uint32_t i)
{
	const char *const id = world->rig.requests[i].id;

	if (world->rig.options.role == SCHED_PREFILL)
		KVS_ASSERT(srig_event(&world->rig, SCHED_HANDED_OVER, id) == 0);
	else if (world->rig.requests[i].told >= world->wanted[i])
		srig_finish(&world->rig, id);
}

/* All tokens that were sampled are told; who has what it wanted is finished. */
static void tell(struct world *world, bool all)
{
	uint32_t i;

	for (i = 0; i < SRIG_REQUESTS; i++) {
		struct srig_request *const request = &world->rig.requests[i];

		if (world->landing[i] && request->id[0] != '\0') {
			srig_prefilled(&world->rig, request->id);
			world->landing[i] = false;
			end(world, i);
			continue;
		}
		if (request->id[0] == '\0' || request->told == request->count)
			continue;
		do
			srig_extend(&world->rig, request->id);
		while (all && request->told < request->count);
		end(world, i);
	}
}

static void abort_one(struct world *world, uint32_t which)
{
	struct srig_request *const request = &world->rig.requests[which % SRIG_REQUESTS];

	if (request->id[0] != '\0')
		srig_abort(&world->rig, request->id);
}

/* More than Device has, perhaps; refused where it does not decode. */
static void reserve(struct world *world, uint32_t which, uint32_t tokens)
{
	const struct sched_event event = { .kind = SCHED_RESERVE,
					   .id = world->rig.requests[which % SRIG_REQUESTS].id,
					   .reserve = tokens };
	uint32_t                 applied;

	if (event.id[0] != '\0')
		(void)sched_feed(world->rig.sched, &event, 1, &applied, NULL);
}

static void world_step(void *ctx, const struct prop_op *op)
{
	struct world *const world = ctx;

	if (!world->open)
		open_shape(world, (uint64_t)op->arg[0] << 32 | op->arg[1]);
	switch ((enum kind)op->kind) {
	case SHAPE:
		break;
	case SUBMIT:
		submit(world, op->arg[0], op->arg[1]);
		break;
	case ROUND:
		next_plan(world);
		tell(world, world->rig.options.overlap_depth == 0 || op->arg[0] & 1);
		break;
	case ABORT:
		abort_one(world, op->arg[0]);
		break;
	case COPIES:
		srig_let_copies(&world->rig);
		break;
	case RESERVE:
		reserve(world, op->arg[0], op->arg[1] % 30);
		break;
	case FREEZE:
		world->rig.tick.permits.forward = false;
		KVS_ASSERT_CMP(next_plan(world)->forward.row_count, ==, 0);
		world->rig.tick.permits.forward = true;
		break;
	}
}

/* --- the end ---------------------------------------------------------------------------------- */

static bool is_quiet(const struct sched_plan *plan)
{
	return plan->forward.row_count + plan->copy_count + plan->ended_count == 0;
}

/* A small Host takes what waits for it a few blocks a round. */
static void let_saves_end(struct world *world)
{
	uint32_t rounds = 0;

	while (sched_load(world->rig.sched).saving + sched_load(world->rig.sched).candidates > 0) {
		srig_let_copies(&world->rig);
		srig_next(&world->rig);
		KVS_ASSERT_CMP(++rounds, <, SAVE_ROUNDS_MAX);
	}
}

static void world_close(void *ctx)
{
	struct world *const world = ctx;
	uint32_t            quiet = 0;
	uint32_t            rounds = 0;

	while (world->open && living(world) > 0) {
		srig_let_copies(&world->rig);
		quiet = is_quiet(next_plan(world)) ? quiet + 1 : 0;
		KVS_ASSERT_CMP(quiet, <, QUIET_MAX);
		KVS_ASSERT_CMP(++rounds, <, ROUNDS_MAX);
		tell(world, true);
	}
	if (world->open) {
		let_saves_end(world);
		srig_close(&world->rig);
	}
	free(world);
}

PROP_MAIN("sched_room", whoever_is_let_in_comes_to_its_end, 150, 120, world_close)
