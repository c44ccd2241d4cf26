/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU engine, a batch at a time, against an image of all memory and two queues.
 *
 * Streams may run ahead of each other in any way; what the memory holds is what the batches that were
 * stepped have done, and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/prng.h"
#include "dock.h"
#include "prop.h"

#define BATCH_ROWS 3u

struct queued {
	uint64_t            ticket;
	struct copier_block zeros[BATCH_ROWS];
	struct copier_pair  pairs[BATCH_ROWS];
	struct copier_clone clones[BATCH_ROWS];
	uint32_t            zero_count, pair_count, clone_count;
	bool                done;
};

struct world {
	struct dock  *dock;
	uint64_t      next_ticket;
	uint64_t      refused[COPIER_STREAMS];
	struct queued queues[COPIER_STREAMS][DOCK_TICKETS]; /* the oldest first */
	uint32_t      counts[COPIER_STREAMS];
};

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	world->dock = dock_open(CPU_STEPPED);
	return world;
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	dock_close(world->dock);
	free(world);
}

static uint32_t rows_of(const struct queued *queued)
{
	return queued->zero_count + queued->pair_count + queued->clone_count;
}

/* Targets are neighbours from a random block on, so that none comes twice. */
static struct queued random_batch(uint32_t seed, enum copier_stream stream)
{
	const bool    load = stream == COPIER_LOAD;
	struct queued queued = { 0 };
	struct prng   prng;
	uint32_t      group, target, last, i;

	prng_seed(&prng, seed);
	group = (uint32_t)prng_below(&prng, DOCK_GROUPS);
	last = group == 1 ? 4 : 8;
	target = (uint32_t)prng_below(&prng, last);
	queued.zero_count = load ? (uint32_t)prng_below(&prng, 2) : 0;
	queued.clone_count = load ? (uint32_t)prng_below(&prng, 2) : 0;
	queued.pair_count = (uint32_t)prng_below(&prng, group == 1 ? 2 : BATCH_ROWS + 1);
	for (i = 0; i < queued.zero_count; i++)
		queued.zeros[i] = (struct copier_block){ group, 1 + target++ % last };
	for (i = 0; i < queued.pair_count; i++) {
		queued.pairs[i] = (struct copier_pair){ group, 1 + target++ % last,
							1 + (uint32_t)prng_below(&prng, last) };
	}
	for (i = 0; i < queued.clone_count; i++) {
		queued.clones[i] = (struct copier_clone){ group, 1 + (target + 1) % last,
							  1 + target % last };
		target++;
	}
	return queued;
}

static void submit(struct world *world, enum copier_stream stream, uint32_t seed)
{
	struct queued *const queue = world->queues[stream];
	struct queued        queued = random_batch(seed, stream);
	struct copier_batch  batch = { world->next_ticket++, queued.zeros,  queued.zero_count,
				       queued.pairs,         queued.pair_count, queued.clones,
				       queued.clone_count };
	uint32_t             rows = rows_of(&queued), i;
	int                  rc;

	queued.ticket = batch.ticket;
	for (i = 0; i < world->counts[stream]; i++)
		rows += queue[i].done ? 0 : rows_of(&queue[i]);
	rc = copier_submit(world->dock->copier, stream, &batch);
	if (world->counts[stream] == DOCK_TICKETS || rows > DOCK_ROWS) {
		KVS_ASSERT(rc == KVS_E_FULL);
		world->refused[stream]++;
		return;
	}
	KVS_ASSERT(rc == 0);
	queue[world->counts[stream]++] = queued;
}

static void step(struct world *world, enum copier_stream stream)
{
	struct queued *const queue = world->queues[stream];
	uint32_t             at = 0, i;

	while (at < world->counts[stream] && queue[at].done)
		at++;
	KVS_ASSERT_CMP(cpu_step(world->dock->copier, stream), ==, at < world->counts[stream]);
	if (at == world->counts[stream])
		return;
	for (i = 0; i < queue[at].zero_count; i++)
		dock_expect_zero(world->dock, queue[at].zeros[i]);
	for (i = 0; i < queue[at].pair_count; i++)
		dock_expect_pair(world->dock, stream, queue[at].pairs[i]);
	for (i = 0; i < queue[at].clone_count; i++)
		dock_expect_clone(world->dock, queue[at].clones[i]);
	queue[at].done = true;
}

static bool is_done(const struct world *world, enum copier_stream stream)
{
	return world->counts[stream] > 0 && world->queues[stream][0].done;
}

static void poll(struct world *world)
{
	const enum copier_stream stream = is_done(world, COPIER_SAVE) ? COPIER_SAVE : COPIER_LOAD;
	struct queued *const     queue = world->queues[stream];
	struct copier_done       done;
	uint32_t                 i;

	KVS_ASSERT_CMP(copier_poll(world->dock->copier, &done), ==, is_done(world, stream));
	if (!is_done(world, stream))
		return;
	KVS_ASSERT_CMP(done.stream, ==, stream);
	KVS_ASSERT_CMP(done.ticket, ==, queue[0].ticket);
	world->counts[stream]--;
	for (i = 0; i < world->counts[stream]; i++)
		queue[i] = queue[i + 1];
}

static void compare(struct world *world)
{
	int stream;

	KVS_ASSERT(dock_is_as_expected(world->dock));
	copier_audit(world->dock->copier);
	for (stream = 0; stream < COPIER_STREAMS; stream++) {
		struct copier_stats stats;
		bool                idle = true;
		uint32_t            i;

		for (i = 0; i < world->counts[stream]; i++)
			idle &= world->queues[stream][i].done;
		KVS_ASSERT_CMP(copier_wait(world->dock->copier, (enum copier_stream)stream, 0), ==,
			       idle);
		copier_stats(world->dock->copier, (enum copier_stream)stream, &stats);
		KVS_ASSERT_CMP(stats.refused, ==, world->refused[stream]);
	}
}

enum { LOAD, SAVE, STEP_LOAD, STEP_SAVE, POLL };

static const struct prop_kind kinds[] = { { "LOAD", 30 },
					  { "SAVE", 20 },
					  { "STEP_LOAD", 25 },
					  { "STEP_SAVE", 15 },
					  { "POLL", 45 } };

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	if (op->kind == LOAD)
		submit(world, COPIER_LOAD, op->arg[0]);
	else if (op->kind == SAVE)
		submit(world, COPIER_SAVE, op->arg[0]);
	else if (op->kind == STEP_LOAD)
		step(world, COPIER_LOAD);
	else if (op->kind == STEP_SAVE)
		step(world, COPIER_SAVE);
	else
		poll(world);
	compare(world);
}

PROP_MAIN("copier", memory_is_what_stepped_batches_made, 40, 400, world_close)
