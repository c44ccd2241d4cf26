/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scheduler over real rows: conversations that share their beginnings come, go on, are aborted and
 * retracted, while copies and the store are late.  The rig checks every row that a forward sees; here it is
 * checked that everybody comes to an end, and that every block comes back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "prop.h"
#include "sched_rig.h"

#define FAMILIES 3u
#define KEPT 6u
#define PROMPT_MAX 28u
#define NEW_MAX 9u

static const struct group_spec full[] = { { "full", GROUP_FULL, 2, 0, 1 } };
static const struct group_spec full_window[] = { { "full", GROUP_FULL, 2, 0, 2 },
						 { "window", GROUP_WINDOW, 4, 5, 1 } };
static const struct group_spec full_state[] = { { "full", GROUP_FULL, 4, 0, 1 },
						{ "state", GROUP_STATE, 2, 0, 2 } };
static const struct group_spec three[] = { { "full", GROUP_FULL, 2, 0, 2 },
					   { "window", GROUP_WINDOW, 2, 4, 2 },
					   { "state", GROUP_STATE, 4, 0, 1 } };

static const struct {
	const struct group_spec *groups;
	uint32_t                 count;
} models[] = { { full, 1 }, { full_window, 2 }, { full_state, 2 }, { three, 3 } };

struct talk {
	int32_t  tokens[SRIG_TOKENS];
	uint32_t count;
};

struct world {
	struct srig rig;
	bool        open;
	struct talk kept[KEPT]; /* what was said in requests that ended */
	uint32_t    kept_next;
	uint32_t    next_id;
	uint32_t    max_new[SRIG_REQUESTS];
};

/* --- worlds ----------------------------------------------------------------------------------- */

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	return world;
}

static void open_rig(struct world *world, uint32_t pick)
{
	struct prng          prng;
	struct sched_options options;
	uint32_t             model;

	prng_seed(&prng, pick);
	options = prng_below(&prng, 2) ? srig_store_options() : srig_options();
	model = (uint32_t)prng_below(&prng, ARRAY_COUNT(models));
	options.groups = models[model].groups;
	options.group_count = models[model].count;
	options.page_tokens = prng_below(&prng, 2) ? 4 : 8;
	options.device_parents = 24 + (uint32_t)prng_below(&prng, 30);
	options.request_max = SRIG_REQUESTS;
	options.request_tokens_max = 64;
	options.batch_max = 1 + (uint32_t)prng_below(&prng, 5);
	options.chunk_tokens = 8 + (uint32_t)prng_below(&prng, 24);
	options.replay_tokens = (uint32_t)prng_below(&prng, 4);
	options.overlap_depth = (uint32_t)prng_below(&prng, 2);
	options.mixed = prng_below(&prng, 2);
	options.prefix_cache = prng_below(&prng, 8) > 0;
	options.save_ticket_max = 1 + (uint32_t)prng_below(&prng, 4);
	options.load_ticket_max = 2 + (uint32_t)prng_below(&prng, 3);
	options.candidate_max = 16;
	if (prng_below(&prng, 3) == 0 && !options.with_store)
		options.host_parents = 16;
	if (options.host_parents > 0 && prng_below(&prng, 3) > 0) {
		options.snapshot_max = 2;
		options.snapshot_block_max = 16;
	}
	/* How many drafts are accepted is known behind the forward only. */
	if (options.overlap_depth == 0 && prng_below(&prng, 3) == 0)
		options.decode_tokens = 3;
	if (prng_below(&prng, 3) == 0)
		options.role = prng_below(&prng, 3) ? SCHED_DECODE : SCHED_PREFILL;
	srig_open(&world->rig, &options);
	world->rig.accept = options.decode_tokens > 1 ? 2 : 1;
	world->open = true;
}

/* --- requests --------------------------------------------------------------------------------- */

static struct srig_request *pick_request(struct world *world, uint32_t pick)
{
	uint32_t i;

	for (i = 0; i < SRIG_REQUESTS; i++) {
		struct srig_request *const request = &world->rig.requests[(pick + i) % SRIG_REQUESTS];

		if (request->id[0] != '\0')
			return request;
	}
	return NULL;
}

static uint32_t number_of(const struct world *world, const struct srig_request *request)
{
	return (uint32_t)(request - world->rig.requests);
}

static void submit(struct world *world, uint32_t pick, uint32_t size)
{
	const uint32_t limit = sched_request_limit(world->rig.sched);
	const uint32_t most = limit < 64 ? limit : 64;
	uint32_t       count = 1 + size % PROMPT_MAX;
	uint32_t       max_new = 1 + (size >> 8) % NEW_MAX;
	int32_t        tokens[SRIG_TOKENS];
	char           id[32];
	uint32_t       i;

	if (!srig_request(&world->rig, ""))
		return;
	if (sched_load(world->rig.sched).submitted > 8)
		return;
	max_new += world->rig.options.decode_tokens;
	if (count + max_new > most)
		return;
	for (i = 0; i < count; i++)
		tokens[i] = (int32_t)(1000 * (pick % FAMILIES) + i / (1 + pick / FAMILIES % 2));
	/* A conversation goes on, or begins to differ. */
	if (pick & 64) {
		const struct talk *const talk = &world->kept[(pick >> 8) % KEPT];

		memcpy(tokens, talk->tokens, (talk->count < count ? talk->count : count) * sizeof(*tokens));
	}
	if (pick & 128)
		tokens[count - 1] = 7;
	snprintf(id, sizeof(id), "%u-%u", pick % 7, world->next_id++);
	srig_submit(&world->rig, id, tokens, count, max_new);
	world->max_new[number_of(world, srig_request(&world->rig, id))] = max_new;
}

static void keep(struct world *world, const struct srig_request *request)
{
	struct talk *const talk = &world->kept[world->kept_next++ % KEPT];

	memcpy(talk->tokens, request->tokens, sizeof(talk->tokens));
	talk->count = request->told;
}

static void extend(struct world *world, struct srig_request *request)
{
	const uint32_t max_new = world->max_new[number_of(world, request)];

	if (request->given_count == 0)
		return;
	srig_extend(&world->rig, request->id);
	if (request->told + world->rig.accept <= request->prompt + max_new)
		return;
	keep(world, request);
	srig_finish(&world->rig, request->id);
	request->given_count = 0;
}

/* What the peer of a rank does next for a request, if anything. */
static void play_peer(struct world *world, struct srig_request *request)
{
	struct srig *const       rig = &world->rig;
	const struct sched_event over = { .kind = SCHED_HANDED_OVER, .id = request->id };

	if (rig->options.role == SCHED_FUSED)
		return;
	srig_event(rig, SCHED_BOOTSTRAPPED, request->id);
	if (request->awaited)
		srig_prefilled(rig, request->id);
	if (rig->options.role == SCHED_PREFILL &&
	    sched_feed(rig->sched, &over, 1, NULL, NULL) == 0) {
		keep(world, request);
		request->given_count = 0;
	}
}

static void extend_all(struct world *world)
{
	uint32_t i;

	for (i = 0; i < SRIG_REQUESTS; i++) {
		if (world->rig.requests[i].id[0] != '\0')
			extend(world, &world->rig.requests[i]);
	}
}

static void play_peers(struct world *world)
{
	uint32_t i;

	for (i = 0; i < SRIG_REQUESTS; i++) {
		if (world->rig.requests[i].id[0] != '\0')
			play_peer(world, &world->rig.requests[i]);
	}
}

/* --- steps ------------------------------------------------------------------------------------ */

enum { SUBMIT, ROUND, TURN, EXTEND, ABORT, FINISH, HOLD, COPIES, STORE, FREEZE, LATE, CLEAR, PEER, PEERS };

static const struct prop_kind kinds[] = {
	[SUBMIT] = { "submit", 12 }, [ROUND] = { "round", 20 },  [TURN] = { "turn", 24 },
	[EXTEND] = { "extend", 8 },  [ABORT] = { "abort", 2 },   [FINISH] = { "finish", 2 },
	[HOLD] = { "hold", 2 },      [COPIES] = { "copies", 3 }, [STORE] = { "store", 3 },
	[FREEZE] = { "freeze", 1 },  [LATE] = { "late", 1 },     [CLEAR] = { "clear", 2 },
	[PEER] = { "peer", 12 },     [PEERS] = { "peers", 6 }
};

static void finish(struct world *world, struct srig_request *request)
{
	const struct sched_event event = { .kind = SCHED_FINISH, .id = request->id };

	/* Where it fits, be the answer under way or not. */
	if (sched_feed(world->rig.sched, &event, 1, NULL, NULL) == 0) {
		keep(world, request);
		request->given_count = 0;
	}
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const  world = arg;
	struct srig *const   rig = &world->rig;
	struct srig_request *request;

	if (!world->open)
		open_rig(world, op->arg[0]);
	request = pick_request(world, op->arg[0]);
	switch (op->kind) {
	case SUBMIT:
		submit(world, op->arg[0], op->arg[1]);
		break;
	case ROUND:
		srig_next(rig);
		break;
	case TURN:
		srig_next(rig);
		extend_all(world);
		break;
	case EXTEND:
		if (request)
			extend(world, request);
		break;
	case ABORT:
		if (request) {
			srig_abort(rig, request->id);
			request->given_count = 0;
			request->awaited = false;
		}
		break;
	case FINISH:
		if (request)
			finish(world, request);
		break;
	case HOLD:
		rig->held = op->arg[0] % 2;
		rig->store_held = op->arg[1] % 2;
		break;
	case COPIES:
		srig_let_copies(rig);
		break;
	case STORE:
		srig_let_store(rig);
		break;
	case FREEZE:
		rig->tick.permits = (struct agree_permits){ op->arg[0] % 4 > 0, op->arg[1] % 4 > 0 };
		break;
	case LATE:
		rig->tick.now_ns += op->arg[0] % 1500;
		break;
	case PEER:
		if (request)
			play_peer(world, request);
		break;
	case PEERS:
		play_peers(world);
		break;
	case CLEAR:
		if (op->arg[0] % 2)
			sched_clear(rig->sched, &rig->options.space, NULL);
		else
			sched_clear_device(rig->sched, NULL);
		break;
	}
}

static _Noreturn void blame(const struct world *world)
{
	const struct sched_load           load = sched_load(world->rig.sched);
	const struct sched_options *const options = &world->rig.options;

	KVS_PANIC("no end: %u submitted, %u prefetching, %u prefilling, %u done, %u decoding, %u retracted; "
		  "%u saving, %u loading; %u available of %u, limit %u; %u groups, P %u, C %u, D %u, overlap %u, "
		  "mixed %u, Host %u, images %u, batch %u",
		  load.submitted, load.prefetching, load.prefilling, load.prefill_done, load.decoding,
		  load.retracted, load.saving, load.loading, sched_available(world->rig.sched),
		  options->device_parents, sched_request_limit(world->rig.sched), options->group_count,
		  options->page_tokens, options->chunk_tokens, options->decode_tokens, options->overlap_depth,
		  options->mixed, options->host_parents, options->snapshot_max, options->batch_max);
}

/* Once nothing is late any more, everybody comes to an end. */
static void world_close(void *arg)
{
	struct world *const world = arg;
	struct srig *const  rig = &world->rig;
	uint32_t            rounds = 0;

	if (world->open) {
		rig->held = rig->store_held = false;
		rig->tick.permits = (struct agree_permits){ true, true };
		srig_let_copies(rig);
		srig_let_store(rig);
		while (pick_request(world, 0)) {
			if (rounds++ == 2000)
				blame(world);
			srig_next(rig);
			extend_all(world);
			play_peers(world);
		}
		srig_close(rig);
	}
	free(world);
}

PROP_MAIN("sched", every_row_is_right_and_everybody_comes_to_an_end, 60, 300, world_close)
