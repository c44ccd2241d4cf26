/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance, and what may be looked at. */
#include <string.h>

#include "sched/parts.h"

/* --- maintenance ------------------------------------------------------------------------------ */

void sched_set_intent(struct sched *sched, bool intent)
{
	storage_begin(sched);
	storage_set_intent(sched, intent);
}

const char *sched_in_the_way(const struct sched *sched)
{
	if (sched->slots.busy_count > sched->lists[REQUEST_FINISHED].count)
		return "live requests";
	if (mover_saving(&sched->mover) + mover_loading(&sched->mover) > 0)
		return "copies between Device and Host";
	if (sched->snapshots.slots.busy_count > 0)
		return "images of retracted requests";
	return storage_in_the_way(sched);
}

int sched_clear(struct sched *sched, const struct kvs_namespace *space, struct kvs_error *err)
{
	const char *const why = sched_in_the_way(sched);

	if (why)
		return err_set(err, KVS_E_BUSY, "clear: %s are in the way", why);
	if (!mover_clear(&sched->mover))
		return err_set(err, KVS_E_BUSY, "clear: a block is held");
	storage_clear(sched);
	sched->space = *space;
	return 0;
}

int sched_clear_device(struct sched *sched, struct kvs_error *err)
{
	if (!cache_clear_device(sched->cache))
		return err_set(err, KVS_E_BUSY, "clear: a block of Device is held");
	if (sched->options.host_parents > 0)
		candidates_clear(&sched->candidates);
	return 0;
}

/* --- looking ---------------------------------------------------------------------------------- */

struct sched_load sched_load(const struct sched *sched)
{
	const struct list *const lists = sched->lists;
	struct sched_load        load = {
		.bootstrapping = lists[REQUEST_BOOTSTRAPPING].count,
		.submitted = lists[REQUEST_SUBMITTED].count,
		.prefetching = lists[REQUEST_PREFETCHING].count,
		.prefilling = lists[REQUEST_PREFILLING].count,
		.prefill_done = lists[REQUEST_PREFILL_DONE].count,
		.decoding = lists[REQUEST_DECODING].count,
		.retracted = lists[REQUEST_RETRACTED].count,
		.saving = mover_saving(&sched->mover),
		.loading = mover_loading(&sched->mover),
	};

	load.waiting = load.submitted + load.retracted;
	if (sched->options.host_parents > 0)
		load.candidates = candidates_count(&sched->candidates);
	load.transfer = storage_load(sched);
	return load;
}

const struct cache *sched_cache(const struct sched *sched)
{
	return sched->cache;
}

const struct mover *sched_mover(const struct sched *sched)
{
	return &sched->mover;
}

const struct transfer *sched_transfer(const struct sched *sched)
{
	return sched->transfer;
}

const struct explain_counts *sched_explain_counts(const struct sched *sched)
{
	return &sched->counts;
}

int sched_explain(const struct sched *sched, const char *id, struct explanation *ret_explanation)
{
	const struct request *const request = request_find(sched, id);
	uint32_t                    i;

	if (request && request->admitted) {
		*ret_explanation = request->explanation;
		return 0;
	}
	for (i = 0; !request && i < sched->ended_count; i++) {
		if (!sched->ended[i].admitted || strcmp(sched->ended[i].id, id) != 0)
			continue;
		*ret_explanation = sched->ended[i].explanation;
		return 0;
	}
	return KVS_E_STALE;
}

uint64_t sched_wake_ns(const struct sched *sched)
{
	return storage_wake_ns(sched);
}

uint32_t sched_available(const struct sched *sched)
{
	return cache_available(sched->cache);
}
