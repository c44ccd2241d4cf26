/* SPDX-License-Identifier: Apache-2.0 */
/* See prefetch_run.h.  The life of a run; prefetch_plan.c chooses what it loads. */
#include "ctrl/prefetch_run.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "ctrl/prefetch_parts.h"

static void rest(struct prefetch_run *run, struct prefetch_tools *tools, enum prefetch_end why)
{
	(void)tools;
	(void)why;
	prefetch_run_audit(run);
}

/* --- the table -------------------------------------------------------------------------------- */

/*
 * A request has one result, and it comes with the edge into DRAIN: from there no edge publishes.
 * What a load still brings is discarded when it has retired, and only then is the run OVER.
 */
struct run_edge {
	enum run_state from;
	enum run_event on;
	enum run_state to;
	run_act       *act;
};

static const struct run_edge edges[] = {
	/* from       on           to          act */
	{ RUN_QUEUED, RUN_START,   RUN_LOOKUP, run_act_ask       },
	{ RUN_QUEUED, RUN_GIVE_UP, RUN_DRAIN,  run_act_end_early },
	{ RUN_LOOKUP, RUN_FOUND,   RUN_LOAD,   run_act_load      },
	{ RUN_LOOKUP, RUN_GIVE_UP, RUN_DRAIN,  run_act_end_early },
	{ RUN_LOAD,   RUN_LOADED,  RUN_DRAIN,  run_act_end       },
	{ RUN_LOAD,   RUN_GIVE_UP, RUN_DRAIN,  run_act_end       },
	{ RUN_DRAIN,  RUN_QUIET,   RUN_OVER,   rest              },
};

static const char *const state_names[RUN_STATE_COUNT] = { "QUEUED", "LOOKUP", "LOAD", "DRAIN",
							  "OVER" };
static const char *const event_names[RUN_EVENT_COUNT] = { "START", "FOUND", "LOADED", "GIVE_UP",
							  "QUIET" };

void prefetch_run_edges_print(char *buffer, size_t buffer_bytes)
{
	size_t used = 0, i;

	buffer[0] = '\0';
	for (i = 0; i < ARRAY_COUNT(edges) && used < buffer_bytes; i++) {
		used += (size_t)snprintf(buffer + used, buffer_bytes - used, "%s -> %s on %s\n",
					 state_names[edges[i].from], state_names[edges[i].to],
					 event_names[edges[i].on]);
	}
}

static void step(struct prefetch_run *run, struct prefetch_tools *tools, enum run_event on,
		 enum prefetch_end why)
{
	size_t i;

	for (i = 0; i < ARRAY_COUNT(edges); i++) {
		if (edges[i].from != run->state || edges[i].on != on)
			continue;
		run->state = edges[i].to;
		edges[i].act(run, tools, why);
		return;
	}
	KVS_PANIC("prefetch %llu: no edge from %s on %s", (unsigned long long)run->ask->request_id,
		  state_names[run->state], event_names[on]);
}

/* As far as it goes without another fact. */
static void go_on(struct prefetch_run *run, struct prefetch_tools *tools)
{
	if (run->state == RUN_LOOKUP && run->lookups == 0)
		step(run, tools, RUN_FOUND, END_WHOLE);
	if (run->state == RUN_LOAD && run->loads == 0)
		step(run, tools, RUN_LOADED, END_FAILED);
	if (run->state == RUN_DRAIN && run->lookups + run->loads + run->doubts == 0)
		step(run, tools, RUN_QUIET, END_WHOLE);
}

/* --- what comes from outside ------------------------------------------------------------------ */

void prefetch_run_begin(struct prefetch_run *run, const struct prefetch_ask *ask_of)
{
	const size_t words = bits_words(ask_of->key_count);

	KVS_ASSERT_CMP(run->state, ==, RUN_OVER);
	run->state = RUN_QUEUED;
	run->ask = ask_of;
	memset(run->tasks, 0, sizeof(run->tasks));
	run->lookups = run->loads = run->doubts = 0;
	run->found_known = false;
	run->boundary = ask_of->chunk_count;
	run->end = END_WHOLE;
	run->bytes = ask_of->need_bytes;
	memcpy(run->have, ask_of->held, words * sizeof(*run->have));
	memset(run->loaded, 0, words * sizeof(*run->loaded));
	memset(run->asked, 0, words * sizeof(*run->asked));
	memset(run->staged, 0, words * sizeof(*run->staged));
	memset(run->found, 0, ask_of->key_count * sizeof(*run->found));
}

void prefetch_run_start(struct prefetch_run *run, struct prefetch_tools *tools)
{
	step(run, tools, RUN_START, END_WHOLE);
	go_on(run, tools);
}

void prefetch_run_give_up(struct prefetch_run *run, struct prefetch_tools *tools,
			  enum prefetch_end why)
{
	step(run, tools, RUN_GIVE_UP, why);
	go_on(run, tools);
}

void prefetch_run_looked_up(struct prefetch_run *run, struct prefetch_tools *tools,
			    uint32_t adapter, const uint64_t *words)
{
	uint32_t row = 0, i;

	KVS_ASSERT(run->tasks[adapter].lookup_id != 0);
	run->tasks[adapter].lookup_id = 0;
	run->lookups--;
	for (i = 0; i < run->ask->key_count; i++) {
		if (!bits_test(run->asked, i) || !bits_test(words, row++))
			continue;
		run->found[i] |= UINT64_C(1) << adapter;
		run->tasks[adapter].lock_count++;
		tools->stats->keys_found++;
	}
	if (run->state == RUN_DRAIN)
		run_unlock_store(run, tools, run_pick_found, adapter);
	go_on(run, tools);
}

/* Published, or discarded where that fails: the reader may be gone, or have no lock left. */
static void publish(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t count)
{
	uint32_t failed = 0, i;

	tools->hands->publish(tools->arg, run->ask, tools->keys, count, tools->rc);
	for (i = 0; i < count; i++) {
		run_unstage(run, tools->index[i]);
		if (tools->rc[i] == 0) {
			bits_set(run->have, tools->index[i]);
			bits_set(run->loaded, tools->index[i]);
			tools->stats->keys_loaded++;
			tools->stats->loaded_bytes += run->ask->bytes[tools->index[i]];
			continue;
		}
		tools->keys[failed++] = tools->keys[i];
	}
	tools->stats->keys_failed += failed;
	if (failed > 0)
		tools->hands->discard(tools->arg, run->ask, tools->keys, failed);
}

/* Rows of a load that came, to the front; how many.  They are given up where the result stands. */
static uint32_t gather_ok(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t adapter,
			  const uint64_t *words, uint32_t *ret_count)
{
	const uint32_t count = run_gather(run, tools, run_pick_loading, adapter);
	uint32_t       ok = 0, i;

	for (i = 0; i < count; i++) {
		if (!bits_test(words, i))
			continue;
		tools->keys[ok] = tools->keys[i];
		tools->index[ok++] = tools->index[i];
	}
	*ret_count = count;
	return ok;
}

static void take_late(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t count)
{
	uint32_t i;

	tools->stats->late_keys += count;
	for (i = 0; i < count; i++)
		run_unstage(run, tools->index[i]);
	tools->hands->discard(tools->arg, run->ask, tools->keys, count);
}

static bool is_over(const struct prefetch_run *run, uint32_t key, uint32_t adapter)
{
	return run_pick_found(run, key, adapter) && !run_pick_loading(run, key, adapter);
}

void prefetch_run_loaded(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t adapter,
			 const uint64_t *words, bool retired)
{
	struct run_tasks *const tasks = &run->tasks[adapter];
	const bool              late = run->state == RUN_DRAIN;
	uint32_t                count, ok;

	KVS_ASSERT(tasks->load_id != 0 && !tasks->doubt);
	run->loads--;
	ok = gather_ok(run, tools, adapter, words, &count);
	if (ok > 0 && late)
		take_late(run, tools, ok);
	else if (ok > 0)
		publish(run, tools, ok);
	if (!late)
		tools->stats->keys_failed += count - ok;
	if (retired) {
		tasks->load_id = 0;
		run_discard(run, tools, run_pick_loading, adapter);
	} else {
		tasks->doubt = true;
		run->doubts++;
	}
	/* What is still staged may still be written: its lock stays with it. */
	run_unlock_store(run, tools, is_over, adapter);
	go_on(run, tools);
}

void prefetch_run_retired(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t adapter)
{
	struct run_tasks *const tasks = &run->tasks[adapter];

	KVS_ASSERT(tasks->load_id != 0 && tasks->doubt);
	tasks->load_id = 0;
	tasks->doubt = false;
	run->doubts--;
	run_discard(run, tools, run_pick_loading, adapter);
	run_unlock_store(run, tools, run_pick_found, adapter);
	go_on(run, tools);
}

void prefetch_run_leave(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t adapter)
{
	if (run->state == RUN_LOOKUP)
		run_unlock_store(run, tools, run_pick_found, adapter);
}

/* --- looking ---------------------------------------------------------------------------------- */

bool prefetch_run_uses(const struct prefetch_run *run, uint32_t adapter)
{
	const struct run_tasks *const tasks = &run->tasks[adapter];

	return tasks->lookup_id != 0 || tasks->load_id != 0 || tasks->lock_count != 0;
}

static uint32_t locked_at(const struct prefetch_run *run, uint32_t adapter)
{
	uint32_t count = 0, i;

	for (i = 0; i < run->ask->key_count; i++)
		count += run_pick_found(run, i, adapter);
	return count;
}

void prefetch_run_audit(const struct prefetch_run *run)
{
	uint32_t lookups = 0, loads = 0, doubts = 0, staged = 0, locked = 0, n, i;
	uint64_t bytes = 0;

	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		lookups += run->tasks[n].lookup_id != 0;
		loads += run->tasks[n].load_id != 0 && !run->tasks[n].doubt;
		doubts += run->tasks[n].doubt;
		KVS_ASSERT_CMP(locked_at(run, n), ==, run->tasks[n].lock_count);
		locked += run->tasks[n].lock_count;
	}
	KVS_ASSERT_CMP(lookups, ==, run->lookups);
	KVS_ASSERT_CMP(loads, ==, run->loads);
	KVS_ASSERT_CMP(doubts, ==, run->doubts);
	for (i = 0; i < run->ask->key_count; i++) {
		staged += bits_test(run->staged, i);
		bytes += bits_test(run->staged, i) ? run->ask->bytes[i] : 0;
		KVS_ASSERT(!bits_test(run->staged, i) || run_pick_found(run, i, run->from[i]));
	}
	if (run->state == RUN_LOAD || prefetch_run_has_result(run))
		KVS_ASSERT_CMP(bytes, ==, run->bytes);
	else
		KVS_ASSERT_CMP(staged, ==, 0);
	if (run->state == RUN_QUEUED || run->state == RUN_OVER)
		KVS_ASSERT_CMP(locked + lookups + loads + doubts + staged, ==, 0);
}
