/* SPDX-License-Identifier: Apache-2.0 */
/* A run from its seed: everything is short of something, faults for a while, then rest. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evict/evict.h"
#include "sim.h"
#include "store/store.h"

static uint32_t draw(struct sim *sim, uint32_t least, uint32_t most)
{
	return least - 1 + (uint32_t)world_draw(&sim->world, most - least + 1);
}

static const char *draw_policy(struct sim *sim)
{
	uint32_t count = 0;

	while (evict_giving_names[count])
		count++;
	return evict_giving_names[draw(sim, 0, count - 1)];
}

static void draw_options(struct sim *sim)
{
	const uint32_t page_max = draw(sim, 2, PAGES_MAX);
	const uint32_t host_blocks = draw(sim, 2, 16);
	const uint32_t keys_max = draw(sim, 1, page_max);

	sim->options = (struct mono_sched_options){
		.coord = { .device_blocks = page_max + draw(sim, 0, 6),
			   .host_blocks = host_blocks,
			   .device_policy = draw_policy(sim),
			   .host_policy = draw_policy(sim) },
		.transfer = { .op_credits = draw(sim, 1, 8),
			      .host_credits = draw(sim, 1, host_blocks),
			      .keys_max = keys_max,
			      .put_keys_max = draw(sim, 1, keys_max),
			      .backup_queue = draw(sim, 1, 12),
			      .deadline_ns = draw(sim, 0, 3) ? draw(sim, 1, 200) : UINT64_MAX,
			      .hold_ns = draw(sim, 0, 60) },
		.with_store = true,
		.space = sim->oracle.space,
		.page_tokens = PAGE_TOKENS,
		.request_max = draw(sim, 1, REQUESTS_MAX),
		.page_max = page_max,
		.replay_tokens = draw(sim, 1, PAGE_TOKENS),
		.extension_min = draw(sim, 1, 2),
	};
	sim->workers_each = draw(sim, 1, WORKERS_MAX);
	sim->round_every = draw(sim, 1, 5);
	sim->submit_every = draw(sim, 2, 40);
	sim->work_ticks = draw(sim, 1, 12);
}

static void must(struct sim *sim, int rc, const struct kvs_error *error)
{
	if (rc < 0)
		FAIL("open", "%s", error->message);
}

static void open_system(struct sim *sim)
{
	const uint32_t           cooldown = draw(sim, 1, 40);
	const struct exec_limits limits = { .outstanding_max = draw(sim, 1, 10),
					    .queue_max = draw(sim, 1, 4),
					    .bytes_max = { [EXEC_GET] = BLOCK_BYTES * draw(sim, 0, 4),
							   [EXEC_PUT] = BLOCK_BYTES *
									draw(sim, 0, 4) },
					    .cooldown_min_ns = cooldown,
					    .cooldown_max_ns = cooldown * draw(sim, 1, 8) };
	const uint32_t           host_blocks = sim->options.coord.host_blocks;
	char                     spec[32];
	struct kvs_error         error;

	must(sim,
	     arena_open(arena_part_bytes(BLOCK_BYTES, host_blocks), ARENA_LAZY, &sim->arena,
			     &error),
	     &error);
	must(sim, arena_carve(sim->arena, BLOCK_BYTES, host_blocks, &sim->host, &error), &error);
	sim->device = calloc(sim->options.coord.device_blocks, BLOCK_BYTES);
	KVS_ASSERT(sim->device != NULL);
	snprintf(spec, sizeof(spec), "mem:%u", BLOCK_BYTES * draw(sim, 16, 120));
	must(sim, store_open(spec, BLOCK_BYTES, draw_policy(sim), &sim->store.inner, &error),
	     &error);
	sim->store.store.ops = &faulty_store_ops;
	sim->store.sim = sim;
	must(sim, exec_core_open(&sim->exec, &limits, &error), &error);
	must(sim, mono_sched_open(&sim->options, &sim->host, &sim->sched, &error), &error);
	locker_open(sim);
}

void sim_open(struct sim *sim, uint64_t seed, uint64_t steps, bool loud, struct covers *covers)
{
	uint32_t i;

	memset(sim, 0, sizeof(*sim));
	sim->covers = covers;
	world_open(&sim->world, seed, sim);
	sim->world.steps_asked = steps;
	sim->world.loud = loud;
	oracle_init(&sim->oracle);
	draw_options(sim);
	faults_draw(sim);
	open_system(sim);
	for (i = 0; i < EXEC_CLASS_COUNT * sim->workers_each; i++)
		sim->workers[i].class = (enum exec_class)(i % EXEC_CLASS_COUNT);
	world_after(&sim->world, 1, engine_submit, 0);
	world_after(&sim->world, 1, engine_round, 0);
}

void sim_close(struct sim *sim)
{
	mono_sched_close(sim->sched);
	exec_core_close(&sim->exec);
	locker_close(sim);
	(void)sim->store.inner->ops->close(sim->store.inner);
	free(sim->device);
	arena_close(sim->arena);
	world_close(&sim->world);
}

/* Zero where a sanitizer's heap stands in. */
static size_t heap_bytes(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void come_to_rest(struct sim *sim)
{
	const uint64_t limit = sim->world.step + SIM_REST_STEPS;

	sim->faults.stopped = true;
	NOTE("faults stop");
	/* Half of the histories end with a quarantine that stands. */
	if (prng_chance(&sim->world.prng, 1, 2))
		actors_speak(sim);
	while (!sim_at_rest(sim)) {
		if (sim->world.step == limit) {
			FAIL("locks-home", "not at rest %u steps after the last fault",
			     SIM_REST_STEPS);
		}
		world_step(&sim->world);
		check_step(sim);
	}
	check_rest(sim);
}

uint64_t sim_run(uint64_t seed, uint64_t steps, bool loud, struct covers *covers)
{
	static struct sim sim;
	size_t            heap;

	sim_open(&sim, seed, steps, loud, covers);
	heap = heap_bytes();
	while (sim.world.step < steps) {
		world_step(&sim.world);
		check_step(&sim);
	}
	come_to_rest(&sim);
	if (heap_bytes() != heap) {
		world_fail(&sim.world, "flat", "the heap has %zu bytes in use; it had %zu",
			   heap_bytes(), heap);
	}
	sim_close(&sim);
	return sim.world.hash;
}
