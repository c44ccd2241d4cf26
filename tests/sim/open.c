/* SPDX-License-Identifier: Apache-2.0 */
/* A run from its seed: everything is short of something, faults for a while, then rest. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evict/evict.h"
#include "sim.h"
#include "store/store.h"

uint32_t sim_draw(struct sim *sim, uint32_t least, uint32_t most)
{
	return least - 1 + (uint32_t)world_draw(&sim->world, (uint64_t)most - least + 1);
}

/* --- groups ----------------------------------------------------------------------------------- */

static const char *const group_names[GROUPS] = { "one", "two", "three" };

static void draw_group(struct sim *sim, uint32_t g)
{
	struct group_spec *const spec = &sim->shape.specs[g];
	const uint32_t           kind = sim_draw(sim, 0, 5);
	uint32_t                 cycle = 1;

	/* The first has all its history, as a rule. */
	spec->kind = kind == 0	? GROUP_STATE
		     : kind < 3 ? GROUP_WINDOW
				: GROUP_FULL;
	if (g > 0 && kind >= 4)
		spec->kind = kind == 4 ? GROUP_STATE : GROUP_WINDOW;
	spec->name = group_names[g];
	spec->block_tokens = 1u << sim_draw(sim, 0, 2);
	spec->window_tokens = spec->kind == GROUP_WINDOW ? sim_draw(sim, 1, 9) : 0;
	spec->packing = 1u << sim_draw(sim, 0, 2);
	sim->shape.layers[g] = sim_draw(sim, 1, LAYERS);
	if (spec->kind != GROUP_STATE && sim_draw(sim, 0, 1)) {
		while (2 * cycle <= spec->packing && sim->shape.ranks % (2 * cycle) == 0)
			cycle *= 2;
		if (cycle == 4 && sim_draw(sim, 0, 1))
			cycle = 2;
	}
	sim->shape.owners[g] = (struct owner_group){ .cycle = cycle,
						     .head_partitioned = cycle == 1 };
}

/* What one request takes of the Device at most, and a little more. */
static uint32_t draw_parents(struct sim *sim, uint32_t tokens)
{
	uint32_t parents = sim_draw(sim, 0, 8), g;

	for (g = 0; g < sim->shape.group_count; g++) {
		const struct group_spec *const spec = &sim->shape.specs[g];
		const uint32_t blocks = (tokens + spec->block_tokens - 1) / spec->block_tokens + 1;

		parents += (blocks + spec->packing - 1) / spec->packing;
	}
	return parents < DEVICE_PARENTS ? parents : DEVICE_PARENTS;
}

static void draw_shape(struct sim *sim)
{
	static const uint8_t some[] = { 1, 1, 2, 2, 2, 2, 3, 4, 4 };
	struct shape *const  shape = &sim->shape;
	struct kvs_error     error;
	uint32_t             g;

	shape->ranks = some[sim_draw(sim, 0, sizeof(some) - 1)];
	shape->group_count = sim_draw(sim, 1, GROUPS);
	for (g = 0; g < shape->group_count; g++)
		draw_group(sim, g);
	shape->device_parents = draw_parents(sim, sim_draw(sim, 8, 28));
	shape->host_parents = sim_draw(sim, 2, sim_draw(sim, 0, 2) ? 12 : HOST_PARENTS);
	if (shape_make(shape, &error) < 0)
		FAIL("open", "%s", error.message);
	for (g = 0; g < shape->group_count; g++) {
		NOTE("group %u: kind %d, q %u, window %u, packing %u, cycle %u", g,
		     (int)shape->specs[g].kind, shape->specs[g].block_tokens,
		     shape->specs[g].window_tokens, shape->specs[g].packing,
		     shape->owners[g].cycle);
	}
	NOTE("%u ranks, %u parents of device, %u of host", shape->ranks, shape->device_parents,
	     shape->host_parents);
}

/* --- options ---------------------------------------------------------------------------------- */

static void draw_limits(struct sim *sim, struct transfer_limits *limits)
{
	const uint32_t keys_max = sim_draw(sim, 2, KEYS_MAX);

	*limits = (struct transfer_limits){
		.op_credits = sim_draw(sim, 1, 12),
		.host_credits = sim_draw(sim, 2, 64),
		.keys_max = keys_max,
		.put_keys_max = sim_draw(sim, 1, keys_max < 8 ? keys_max : 8),
		.backup_max = sim_draw(sim, 1, 24),
		.negative_max = sim_draw(sim, 0, 8),
		.history_max = sim_draw(sim, 0, 16),
		.tail_hint_max = sim_draw(sim, 1, 24),
		.tails_max = sim_draw(sim, 1, 4),
		.extension_min = sim_draw(sim, 1, 5),
		.lookahead_tokens = sim_draw(sim, 0, 3) ? PATH_TOKENS : sim_draw(sim, 4, 20),
		.deadline_ns = sim_draw(sim, 0, 3) ? sim_draw(sim, 5, 400) : UINT64_MAX,
		.hold_ns = sim_draw(sim, 0, 3) ? sim_draw(sim, 1, 120) : UINT64_MAX,
	};
	if (sim_draw(sim, 0, 2) == 0) {
		limits->marks.jobs_high = sim_draw(sim, 1, 4);
		limits->marks.jobs_low = sim_draw(sim, 0, limits->marks.jobs_high - 1);
	}
	if (sim_draw(sim, 0, 2) == 0) {
		limits->marks.age_high_ns = sim_draw(sim, 10, 200);
		limits->marks.age_low_ns = sim_draw(sim, 1, (uint32_t)limits->marks.age_high_ns - 1);
	}
}

static bool has_state(const struct sim *sim)
{
	uint32_t g;

	for (g = 0; g < sim->shape.group_count; g++) {
		if (sim->shape.specs[g].kind == GROUP_STATE)
			return true;
	}
	return false;
}

static enum sched_role draw_role(struct sim *sim)
{
	const uint32_t role = sim_draw(sim, 0, 7);

	return role == 0 ? SCHED_PREFILL : role == 1 ? SCHED_DECODE : SCHED_FUSED;
}

static void draw_options(struct sim *sim)
{
	sim->options = (struct sched_options){
		.role = draw_role(sim),
		.groups = sim->shape.specs,
		.group_count = sim->shape.group_count,
		.page_tokens = PAGE_TOKENS,
		.device_parents = sim->shape.device_parents,
		.host_parents = sim->shape.host_parents,
		.prefix_cache = true,
		.request_max = sim_draw(sim, 1, REQUESTS_MAX),
		.request_tokens_max = PATH_TOKENS,
		.replay_tokens = sim_draw(sim, 0, 4),
		.batch_max = sim_draw(sim, 1, BATCH_MAX),
		.chunk_tokens = sim_draw(sim, PAGE_TOKENS + 2, PATH_TOKENS),
		.decode_tokens = has_state(sim) || sim_draw(sim, 0, 3) ? 1 : 2,
		.overlap_depth = sim_draw(sim, 0, 1),
		.mixed = sim_draw(sim, 0, 1),
		.save_ticket_max = sim_draw(sim, 1, 6),
		.save_row_max = sim_draw(sim, 8, 48),
		.load_ticket_max = sim_draw(sim, 2, 6),
		.candidate_max = sim_draw(sim, 1, 64),
		.snapshot_max = sim_draw(sim, 0, 3),
		.snapshot_block_max = 32,
		.with_store = sim_draw(sim, 0, 15) > 0 && !getenv("NOSTORE"),
	};
	draw_limits(sim, &sim->options.transfer);
	NOTE("role %d, batch %u, chunk %u, decode %u, overlap %u, images %u, store %d, mixed %d",
	     (int)sim->options.role, sim->options.batch_max, sim->options.chunk_tokens,
	     sim->options.decode_tokens, sim->options.overlap_depth, sim->options.snapshot_max,
	     sim->options.with_store, sim->options.mixed);
	sim->workers_each = sim_draw(sim, 1, WORKERS_MAX);
	sim->round_every = sim_draw(sim, 1, 5);
	sim->submit_every = sim_draw(sim, 2, 40);
	sim->work_ticks = sim_draw(sim, 1, 12);
	sim->forward_ticks = sim_draw(sim, 1, 8);
	sim->spread = sim_draw(sim, 1, 6);
	sim->upkeep_every = sim_draw(sim, 50, 600);
}

static void draw_executors(struct sim *sim)
{
	const uint32_t cooldown = sim_draw(sim, 1, 40);
	uint32_t       rank;

	sim->limits = (struct exec_limits){
		.outstanding_max = sim_draw(sim, 0, 3) ? 16 : sim_draw(sim, 1, 10),
		.queue_max = sim_draw(sim, 0, 3) ? 8 : sim_draw(sim, 1, 4),
		.bytes_max = { [EXEC_GET] = 64u * sim_draw(sim, 0, 4),
			       [EXEC_PUT] = 64u * sim_draw(sim, 0, 4) },
		.cooldown_min_ns = cooldown,
		.cooldown_max_ns = (uint64_t)cooldown * sim_draw(sim, 1, 8),
	};
	for (rank = 0; rank < sim->shape.ranks; rank++) {
		/* Clocks have nothing to do with each other; one rank may be slower than all. */
		sim->ranks[rank].skew = sim_draw(sim, 0, 1) ? 0 : sim_draw(sim, 0, 1000000);
		sim->ranks[rank].slowness = sim_draw(sim, 0, 5) ? 1 : sim_draw(sim, 2, 8);
	}
}

/* --- open and close --------------------------------------------------------------------------- */

static const char *draw_policy(struct sim *sim)
{
	uint32_t count = 0;

	while (evict_giving_names[count])
		count++;
	return evict_giving_names[sim_draw(sim, 0, count - 1)];
}

static void open_store(struct sim *sim)
{
	char             spec[32];
	struct kvs_error error;

	snprintf(spec, sizeof(spec), "mem:%u", 4096 * sim_draw(sim, 32, 1500));
	if (store_open(spec, 4096, draw_policy(sim), &sim->store.inner, &error) < 0)
		FAIL("open", "%s", error.message);
	sim->store.store.ops = &faulty_store_ops;
	sim->store.sim = sim;
}

void sim_open(struct sim *sim, uint64_t seed, uint64_t steps, bool loud, struct covers *covers)
{
	uint32_t rank, i;

	memset(sim, 0, sizeof(*sim));
	sim->covers = covers;
	world_open(&sim->world, seed, sim);
	sim->world.steps_asked = steps;
	sim->world.loud = loud;
	draw_shape(sim);
	draw_options(sim);
	draw_executors(sim);
	faults_draw(sim);
	open_store(sim);
	replica_open(sim);
	locker_open(sim);
	stock_fill(sim);
	heap_mark(sim);
	for (rank = 0; rank < sim->shape.ranks; rank++) {
		for (i = 0; i < EXEC_CLASS_COUNT * WORKERS_MAX; i++)
			sim->ranks[rank].workers[i].class = (enum exec_class)(i % EXEC_CLASS_COUNT);
	}
	world_after(&sim->world, 1, clients_submit, 0);
	world_after(&sim->world, 1, round_run, 0);
	world_after(&sim->world, sim->upkeep_every, upkeep_act, 0);
}

void sim_close(struct sim *sim)
{
	replica_close(sim);
	locker_close(sim);
	(void)sim->store.inner->ops->close(sim->store.inner);
	world_close(&sim->world);
}

/* --- a run ------------------------------------------------------------------------------------ */

/* Zero where a sanitizer's heap stands in. */
static size_t heap_bytes(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

void heap_mark(struct sim *sim)
{
	sim->heap = heap_bytes();
}

void heap_check(struct sim *sim)
{
	const size_t heap = heap_bytes();

	if (heap != sim->heap)
		FAIL("flat", "the heap has %zu bytes in use; it had %zu", heap, sim->heap);
}

static void step(struct sim *sim)
{
	world_step(&sim->world);
	check_step(sim);
}

_Noreturn static void fail_rest(struct sim *sim)
{
	const struct sched_load load = sched_load(sim->ranks[0].sched);

	FAIL("locks-home",
	     "not at rest %u steps after the last fault: %u submitted, %u prefetching, %u prefilling, "
	     "%u done, %u decoding, %u retracted, %u candidates, %u saves, %u loads, %u tickets, "
	     "%u ready, %u backups, %u works",
	     SIM_REST_STEPS, load.submitted, load.prefetching, load.prefilling, load.prefill_done,
	     load.decoding, load.retracted, load.candidates, load.saving, load.loading,
	     load.transfer.tickets, load.transfer.ready, load.transfer.backups, sim->work_count);
}

static void come_to_rest(struct sim *sim)
{
	const uint64_t limit = sim->world.step + SIM_REST_STEPS;
	uint32_t       rank;

	sim->faults.stopped = true;
	sim->no_forward_until = sim->no_storage_until = 0;
	for (rank = 0; rank < sim->shape.ranks; rank++)
		sim->ranks[rank].refusing_until = sim->ranks[rank].stalled_until = 0;
	NOTE("faults stop");
	/* Where somebody keeps silent, most histories end with a quarantine that stands. */
	if (prng_chance(&sim->world.prng, 1, 4))
		workers_speak(sim);
	while (!sim_at_rest(sim)) {
		if (sim->world.step == limit)
			fail_rest(sim);
		step(sim);
	}
	heap_check(sim);
	check_rest(sim);
}

uint64_t sim_run(uint64_t seed, uint64_t steps, bool loud, struct covers *covers)
{
	static struct sim sim;

	sim_open(&sim, seed, steps, loud, covers);
	while (sim.world.step < steps)
		step(&sim);
	come_to_rest(&sim);
	sim_close(&sim);
	return sim.world.hash;
}
