/* SPDX-License-Identifier: Apache-2.0 */
/* What a run does at each of its edges: ask, load, conclude.  prefetch_plan.c is the plan between. */
#include "base/bits.h"
#include "ctrl/prefetch_parts.h"

/* --- the result ------------------------------------------------------------------------------- */

static bool is_not_kept(const struct prefetch_run *run, uint32_t key, uint32_t adapter)
{
	(void)adapter;
	return bits_test(run->have, key) && !bits_test(run->keep, key);
}

static void count_result(struct prefetch_run *run)
{
	uint32_t i;

	for (i = 0; i < run->ask->key_count; i++) {
		if (!bits_test(run->have, i))
			continue;
		if (bits_test(run->loaded, i))
			run->result.from_store++;
		else
			run->result.from_host++;
	}
}

/* `cut` is why less came than was aimed at. */
static void conclude(struct prefetch_run *run, struct prefetch_tools *tools, enum prefetch_end cut)
{
	const bool nobody_asks = cut == END_CANCELLED || cut == END_STOPPED;
	uint32_t   boundary = 0, count, i;

	if (!nobody_asks)
		boundary = run_match(run, tools, NULL, run->ask->chunk_count);
	if (nobody_asks || boundary < run->boundary)
		run->end = cut;
	if (!run->found_known)
		run->found_boundary = boundary;
	run->found_known = true;
	flat_keep(&run->ask->flat, boundary, run->ask->chunk_count, run->keep);
	count = run_gather(run, tools, is_not_kept, 0);
	for (i = 0; i < count; i++)
		bits_clear(run->have, tools->index[i]);
	if (count > 0)
		tools->hands->unlock(tools->arg, run->ask, tools->keys, count);
	run->result = (struct prefetch_result){ .boundary = boundary, .end = run->end };
	count_result(run);
	tools->stats->finished++;
	tools->stats->ends[run->end]++;
}

/* --- actions ---------------------------------------------------------------------------------- */

static bool is_missing(const struct prefetch_run *run, uint32_t key, uint32_t adapter)
{
	(void)adapter;
	return !bits_test(run->have, key);
}

/* What has come to the Host while the request waited is locked and not loaded again. */
static void look_again(struct prefetch_run *run, struct prefetch_tools *tools)
{
	const uint32_t count = run_gather(run, tools, is_missing, 0);
	uint32_t       there = 0, i;

	if (count == 0)
		return;
	tools->hands->look(tools->arg, tools->keys, count, tools->words);
	for (i = 0; i < count; i++) {
		if (!bits_test(tools->words, i))
			continue;
		tools->keys[there] = tools->keys[i];
		tools->index[there++] = tools->index[i];
	}
	if (there == 0)
		return;
	tools->hands->lock(tools->arg, run->ask, tools->keys, there, tools->rc);
	for (i = 0; i < there; i++) {
		if (tools->rc[i] == 0)
			bits_set(run->have, tools->index[i]);
	}
}

static void ask(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t adapter,
		uint32_t count)
{
	struct run_tasks *const tasks = &run->tasks[adapter];

	if (tools->hands->lookup(tools->arg, adapter, tools->keys, count, &tasks->lookup_id) < 0) {
		tasks->lookup_id = 0;
		tools->stats->refused_tasks++;
		return;
	}
	tools->stats->keys_asked += count;
	run->lookups++;
}

void run_act_ask(struct prefetch_run *run, struct prefetch_tools *tools, enum prefetch_end why)
{
	uint32_t count, i;

	(void)why;
	look_again(run, tools);
	if (tools->info_count == 0 ||
	    run_match(run, tools, NULL, run->ask->chunk_count) == run->ask->chunk_count)
		return;
	count = run_gather(run, tools, is_missing, 0);
	for (i = 0; i < count; i++)
		bits_set(run->asked, tools->index[i]);
	for (i = 0; i < tools->info_count; i++)
		ask(run, tools, tools->infos[i].number, count);
}

static void load(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t adapter)
{
	struct run_tasks *const tasks = &run->tasks[adapter];
	const uint32_t          count = run_gather(run, tools, run_pick_loading, adapter);
	uint32_t                i;

	if (count == 0)
		return;
	for (i = 0; i < count; i++)
		tools->spans[i] = run->spans[tools->index[i]];
	if (tools->hands->load(tools->arg, adapter, tools->keys, tools->spans, count,
			       &tasks->load_id) == 0) {
		run->loads++;
		return;
	}
	tasks->load_id = 0;
	tools->stats->refused_tasks++;
	tools->stats->keys_failed += count;
	run_discard(run, tools, run_pick_loading, adapter);
	run_unlock_store(run, tools, run_pick_found, adapter);
}

void run_act_load(struct prefetch_run *run, struct prefetch_tools *tools, enum prefetch_end why)
{
	uint32_t n;

	(void)why;
	run_plan(run, tools);
	for (n = 0; n < KVS_ADAPTERS_MAX; n++)
		load(run, tools, n);
}

void run_act_end(struct prefetch_run *run, struct prefetch_tools *tools, enum prefetch_end why)
{
	conclude(run, tools, why);
}

/* Nothing is staged; what was found is of no use any more. */
void run_act_end_early(struct prefetch_run *run, struct prefetch_tools *tools,
			  enum prefetch_end why)
{
	uint32_t n;

	run->bytes = 0;
	for (n = 0; n < KVS_ADAPTERS_MAX; n++)
		run_unlock_store(run, tools, run_pick_found, n);
	conclude(run, tools, why);
}
