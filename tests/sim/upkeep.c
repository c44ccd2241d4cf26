/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Those who run the replica: they freeze it for a while, clear it, give it other weights, restart it.
 *
 * A clear is asked for again and again: while anything is under way it must be refused and change
 * nothing, and nothing but what is said to be in the way may refuse it.
 */
#include "sim.h"

static void set_intent(struct sim *sim, bool intent)
{
	uint32_t rank;

	for (rank = 0; rank < sim->shape.ranks; rank++)
		sched_set_intent(sim->ranks[rank].sched, intent);
}

/* --- clears ----------------------------------------------------------------------------------- */

/* All ranks hold alike what is in the way. */
static bool is_clear(struct sim *sim)
{
	const bool clear = sched_in_the_way(sim->ranks[0].sched) == NULL;
	uint32_t   rank;

	for (rank = 1; rank < sim->shape.ranks; rank++) {
		if ((sched_in_the_way(sim->ranks[rank].sched) == NULL) != clear)
			FAIL("same-plan", "something is in the way on rank %u alone", rank);
	}
	return clear;
}

static int clear_all(struct sim *sim, uint32_t version)
{
	const struct kvs_namespace *const space = &oracle_get()->space[version];
	struct kvs_error                  error;
	int                               rc = 0, other;
	uint32_t                          rank;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		const struct sched_load before = sched_load(sim->ranks[rank].sched);
		const uint64_t clock = cache_clock(sched_cache(sim->ranks[rank].sched));

		other = sched_clear(sim->ranks[rank].sched, space, &error);
		if (rank > 0 && other != rc)
			FAIL("same-plan", "rank %u answers %d to a clear; rank 0 %d", rank, other, rc);
		rc = other;
		if (rc < 0 && (!is_same_load(&before, sim->ranks[rank].sched) ||
			       clock != cache_clock(sched_cache(sim->ranks[rank].sched))))
			FAIL("one-done", "a refused clear left a trace");
	}
	return rc;
}

static void try_clear(struct sim *sim)
{
	const bool     clear = is_clear(sim);
	const uint32_t version = sim->errand == ERRAND_WEIGHTS ? (sim->version + 1) % VERSIONS
							       : sim->version;
	const int      rc = clear_all(sim, version);

	if ((rc == 0) != clear || (rc < 0 && rc != KVS_E_BUSY)) {
		FAIL("one-done", "a clear ends with %d, and something %s in the way", rc,
		     clear ? "was not" : "was");
	}
	sim->covers->refused_clears += rc < 0;
	if (rc < 0)
		return;
	NOTE("cleared, for weights %u", version);
	sim->covers->clears += sim->errand == ERRAND_CLEAR;
	sim->covers->new_weights += sim->errand == ERRAND_WEIGHTS;
	sim->version = version;
	sim->errand = ERRAND_NONE;
	set_intent(sim, false);
}

static void clear_device(struct sim *sim)
{
	struct kvs_error error;
	uint32_t         rank;
	int              rc = 0, other;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		other = sched_clear_device(sim->ranks[rank].sched, &error);
		if (rank > 0 && other != rc)
			FAIL("same-plan", "rank %u answers %d to a clear; rank 0 %d", rank, other, rc);
		rc = other;
	}
	sim->covers->device_clears += rc == 0;
	NOTE("clear of the device: %d", rc);
}

/* --- errands ---------------------------------------------------------------------------------- */

static void drop(struct sim *sim)
{
	if (sim->incarnation == RESTARTS_MAX)
		return;
	sim->covers->dropped_restarts++;
	replica_restart(sim);
}

void upkeep_round(struct sim *sim)
{
	/* Bytes in doubt stop all storage work: somebody may not want to wait for a notice. */
	if (ledger_doubts(sim) > 0 && fault_hits(sim, FAULT_DROP) && sim_draw(sim, 0, 3) == 0) {
		drop(sim);
		return;
	}
	if (sim->errand == ERRAND_NONE)
		return;
	if (sim->errand == ERRAND_DRAIN) {
		if (is_clear(sim)) {
			sim->covers->drained_restarts++;
			replica_restart(sim);
		}
	} else if (is_clear(sim) || prng_chance(&sim->world.prng, 1, 4)) {
		try_clear(sim);
	}
	/* What stands in the way may stand for ever. */
	if (sim->errand != ERRAND_NONE &&
	    (sim->world.now > sim->errand_until || sim->faults.stopped)) {
		NOTE("the errand is given up");
		sim->errand = ERRAND_NONE;
		set_intent(sim, false);
	}
}

static void begin_errand(struct sim *sim, enum sim_errand errand)
{
	if (sim->errand != ERRAND_NONE || (errand == ERRAND_DRAIN && sim->incarnation == RESTARTS_MAX))
		return;
	NOTE("errand %d", (int)errand);
	sim->errand = errand;
	sim->errand_until = sim->world.now + 300;
	set_intent(sim, true);
	if (sim_draw(sim, 0, 1))
		clients_abort_all(sim);
}

void upkeep_act(void *context, uint64_t unused)
{
	struct sim *const sim = context;

	(void)unused;
	if (sim->faults.stopped)
		return;
	if (fault_hits(sim, FAULT_FREEZE))
		sim->no_forward_until = sim->world.now + world_draw(&sim->world, 100);
	if (fault_hits(sim, FAULT_FREEZE))
		sim->no_storage_until = sim->world.now + world_draw(&sim->world, 100);
	if (fault_hits(sim, FAULT_CLEAR))
		begin_errand(sim, ERRAND_CLEAR);
	if (fault_hits(sim, FAULT_WEIGHTS))
		begin_errand(sim, ERRAND_WEIGHTS);
	if (fault_hits(sim, FAULT_DRAIN))
		begin_errand(sim, ERRAND_DRAIN);
	if (fault_hits(sim, FAULT_CLEAR))
		clear_device(sim);
	if (fault_hits(sim, FAULT_DROP))
		drop(sim);
	world_after(&sim->world, sim_delay(sim, sim->upkeep_every), upkeep_act, 0);
}
