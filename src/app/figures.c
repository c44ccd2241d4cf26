/* SPDX-License-Identifier: Apache-2.0 */
/* See figures.h. */
#include "app/figures.h"

#include "os/os.h"

const char *const origin_names[MONO_ORIGIN_COUNT] = { "device", "host", "store", "recomputed" };

static void add(struct figure *figures, uint32_t *count, const char *name, uint64_t value)
{
	KVS_ASSERT_CMP(*count, <, FIGURES_REASONS_MAX);
	figures[(*count)++] = (struct figure){ name, value };
}

static double gb_s(uint64_t bytes, uint64_t ns)
{
	/* Bytes a nanosecond are 10^9 bytes a second. */
	return ns ? (double)bytes / (double)ns : 0;
}

static void gather_reasons(const struct replay *replay, struct figures *figures)
{
	const struct mono_transfer *const transfer = mono_sched_transfer(replay->sched);
	int                               i;

	add(figures->fallbacks, &figures->fallback_count, "too_long", replay->totals.too_long);
	for (i = 0; transfer && i < MONO_TRANSFER_OUTCOME_COUNT; i++) {
		if (i != MONO_TRANSFER_READY) {
			add(figures->fallbacks, &figures->fallback_count,
			    mono_transfer_outcome_name((enum mono_transfer_outcome)i),
			    transfer->outcomes[i]);
		}
	}
	add(figures->drops, &figures->drop_count, "host_full", mono_sched_unsaved(replay->sched));
	for (i = 0; transfer && i < MONO_TRANSFER_DROP_COUNT; i++) {
		add(figures->drops, &figures->drop_count,
		    mono_transfer_drop_name((enum mono_transfer_drop)i), transfer->drops[i]);
	}
}

static void gather_store(const struct replay *replay, struct figures *figures)
{
	const struct exec_stats *const exec = &figures->exec;

	exec_stats(replay->exec, &figures->exec);
	replay->store->ops->describe(replay->store, &figures->store);
	figures->put_gb_s = gb_s(exec->moved.put_bytes, exec->busy_ns[EXEC_PUT]);
	figures->get_gb_s = gb_s(exec->moved.get_bytes, exec->busy_ns[EXEC_GET]);
}

static void gather_refusals(struct figures *figures)
{
	const struct kvs_store_info *const store = &figures->store;

	add(figures->refusals, &figures->refusal_count, "budget", store->refused_budget);
	add(figures->refusals, &figures->refusal_count, "admission", store->refused_admission);
	add(figures->refusals, &figures->refusal_count, "full", store->refused_full);
}

void figures_gather(const struct replay *replay, struct figures *ret_figures)
{
	struct figures figures = {
		.seconds = (double)replay->totals.elapsed_ns / 1e9,
		.h2d_gb_s = gb_s(replay->device.h2d_bytes, replay->device.h2d_ns),
		.d2h_gb_s = gb_s(replay->device.d2h_bytes, replay->device.d2h_ns),
		.peak_rss_bytes = os_peak_rss_bytes(),
	};

	gather_reasons(replay, &figures);
	if (replay->exec)
		gather_store(replay, &figures);
	gather_refusals(&figures);
	*ret_figures = figures;
}
