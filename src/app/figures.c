/* SPDX-License-Identifier: Apache-2.0 */
/* See figures.h. */
#include "app/figures.h"

#include "os/os.h"

static void add(struct reasons *reasons, const char *name, uint64_t value)
{
	KVS_ASSERT_CMP(reasons->count, <, FIGURES_REASONS_MAX);
	reasons->figure[reasons->count++] = (struct figure){ name, value };
}

static double gb_s(uint64_t bytes, uint64_t ns)
{
	/* Bytes a nanosecond are 10^9 bytes a second. */
	return ns ? (double)bytes / (double)ns : 0;
}

/* Storage's reasons stand by their own names. */
static void gather_misses(const struct replay_totals *totals, struct reasons *misses)
{
	int i;

	add(misses, "too_long", totals->too_long);
	add(misses, "failed", totals->failed);
	for (i = 0; i < MISS_REASON_COUNT; i++) {
		if (i != MISS_NONE && i != MISS_STORAGE)
			add(misses, miss_reason_name((enum miss_reason)i), totals->reasons[i]);
	}
	for (i = 0; i < READ_OUTCOME_COUNT; i++)
		add(misses, read_outcome_name((enum read_outcome)i), totals->reads[i]);
}

static void gather_fallbacks(const struct replay *replay, struct reasons *fallbacks)
{
	const struct transfer *const transfer = sched_transfer(replay->sched);
	struct transfer_counts       counts;
	int                          i;

	add(fallbacks, "too_long", replay->totals.too_long);
	if (!transfer)
		return;
	counts = transfer_counts(transfer);
	for (i = 0; i < READ_OUTCOME_COUNT; i++) {
		if (i != READ_ASKED && i != READ_READY)
			add(fallbacks, read_outcome_name((enum read_outcome)i), counts.outcomes[i]);
	}
}

/* A cell that Device evicted, or its queue forgot, before Host had a place for it. */
static uint64_t unsaved(const struct mover *mover)
{
	const uint64_t overflowed = mover->candidates ? mover->candidates->overflowed : 0;

	return overflowed + mover->counts.gone + mover->counts.unsaved;
}

static void gather_drops(const struct replay *replay, struct reasons *drops)
{
	const struct transfer *const transfer = sched_transfer(replay->sched);
	struct transfer_counts       counts;
	int                          i;

	add(drops, "host_full", unsaved(sched_mover(replay->sched)));
	if (!transfer)
		return;
	counts = transfer_counts(transfer);
	for (i = 0; i < BACKUP_DROP_COUNT; i++)
		add(drops, backup_drop_name((enum backup_drop)i), counts.drops[i]);
}

static void gather_events(const struct replay *replay, struct reasons *events)
{
	const struct transfer *const transfer = sched_transfer(replay->sched);
	struct transfer_counts       counts;
	int                          i;

	if (!transfer)
		return;
	counts = transfer_counts(transfer);
	for (i = 0; i < TRANSFER_COUNTER_COUNT; i++)
		add(events, transfer_counter_name((enum transfer_counter)i), counts.counters[i]);
}

static void gather_store(const struct replay *replay, struct figures *figures)
{
	const struct exec_stats *const exec = &figures->exec;

	exec_stats(replay->exec, &figures->exec);
	replay->store->ops->describe(replay->store, &figures->store);
	figures->put_gb_s = gb_s(exec->moved.put_bytes, exec->busy_ns[EXEC_PUT]);
	figures->get_gb_s = gb_s(exec->moved.get_bytes, exec->busy_ns[EXEC_GET]);
}

static void gather_refusals(const struct kvs_store_info *store, struct reasons *refusals)
{
	add(refusals, "budget", store->refused_budget);
	add(refusals, "admission", store->refused_admission);
	add(refusals, "full", store->refused_full);
}

static void gather_copies(const struct replay *replay, struct figures *figures)
{
	struct copier_stats load, save;

	copier_stats(replay->device.copier, COPIER_LOAD, &load);
	copier_stats(replay->device.copier, COPIER_SAVE, &save);
	figures->h2d_bytes = load.pair_bytes;
	figures->d2h_bytes = save.pair_bytes;
	figures->h2d_gb_s = gb_s(load.pair_bytes, load.busy_ns);
	figures->d2h_gb_s = gb_s(save.pair_bytes, save.busy_ns);
}

void figures_gather(const struct replay *replay, struct figures *ret_figures)
{
	*ret_figures = (struct figures){
		.seconds = (double)replay->totals.elapsed_ns / 1e9,
		.peak_rss_bytes = os_peak_rss_bytes(),
	};
	gather_copies(replay, ret_figures);
	gather_misses(&replay->totals, &ret_figures->misses);
	gather_fallbacks(replay, &ret_figures->fallbacks);
	gather_drops(replay, &ret_figures->drops);
	gather_events(replay, &ret_figures->events);
	if (replay->exec)
		gather_store(replay, ret_figures);
	gather_refusals(&ret_figures->store, &ret_figures->refusals);
}
