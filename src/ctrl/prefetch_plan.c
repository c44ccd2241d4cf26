/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run loads, and from where.
 *
 * The policy chooses; what it answers is checked.  The boundary is the greatest that Host and what
 * was chosen support.  Where the Host has no room for a key, the boundary ends before its chunk:
 * then a window may want keys that were not wanted before, and what lies beyond gives its room back
 * first.
 */
#include "ctrl/prefetch_parts.h"

#include <string.h>

#include "base/bits.h"

/* Reserved in one call: a refusal costs as many calls as there are keys in it. */
#define RESERVE_KEYS 64u

uint32_t run_match(const struct prefetch_run *run, struct prefetch_tools *tools,
		   const uint64_t *more, uint32_t chunk_limit)
{
	const size_t words = bits_words(run->ask->key_count);
	size_t       i;

	for (i = 0; i < words; i++)
		tools->words[i] = run->have[i] | (more ? more[i] : 0);
	return flat_match(&run->ask->flat, tools->words, chunk_limit);
}

/* --- choosing --------------------------------------------------------------------------------- */

static bool was_asked(const struct prefetch_run *run, uint32_t key, uint32_t adapter)
{
	(void)adapter;
	return bits_test(run->asked, key);
}

/* Where any adapter has what is missing. */
static void know_found(struct prefetch_run *run, struct prefetch_tools *tools)
{
	uint32_t i;

	memset(run->usable, 0, bits_words(run->ask->key_count) * sizeof(*run->usable));
	for (i = 0; i < run->ask->key_count; i++) {
		if (run->found[i])
			bits_set(run->usable, i);
	}
	run->found_boundary = run_match(run, tools, run->usable, run->ask->chunk_count);
	run->found_known = true;
}

static uint64_t staying(const struct prefetch_tools *tools)
{
	uint64_t words = 0;
	uint32_t i;

	for (i = 0; i < tools->info_count; i++)
		words |= UINT64_C(1) << tools->infos[i].number;
	return words;
}

/* A row's answer, as far as it can be followed. */
static uint8_t checked(struct prefetch_tools *tools, uint32_t row)
{
	const uint8_t from = tools->from[row];

	if (from == KVS_NO_ADAPTER)
		return from;
	if (from < KVS_ADAPTERS_MAX && (tools->found[row] >> from & 1))
		return from;
	tools->stats->misplanned++;
	return KVS_NO_ADAPTER;
}

static void choose(struct prefetch_run *run, struct prefetch_tools *tools)
{
	const uint32_t count = run_gather(run, tools, was_asked, 0);
	const uint64_t there = staying(tools);
	uint32_t       i;

	memset(run->from, KVS_NO_ADAPTER, run->ask->key_count * sizeof(*run->from));
	memset(run->usable, 0, bits_words(run->ask->key_count) * sizeof(*run->usable));
	if (count == 0 || there == 0)
		return;
	memset(tools->from, KVS_NO_ADAPTER, count * sizeof(*tools->from));
	for (i = 0; i < count; i++)
		tools->found[i] = run->found[tools->index[i]] & there;
	tools->policy->plan(tools->infos, tools->info_count, tools->keys, tools->found, count,
			    tools->from);
	for (i = 0; i < count; i++) {
		run->from[tools->index[i]] = checked(tools, i);
		if (run->from[tools->index[i]] != KVS_NO_ADAPTER)
			bits_set(run->usable, tools->index[i]);
	}
}

/* --- staging ---------------------------------------------------------------------------------- */

static bool beyond(const struct prefetch_run *run, uint32_t key, uint32_t adapter)
{
	(void)adapter;
	return bits_test(run->staged, key) && !bits_test(run->keep, key);
}

/* The Host's answer for one key; false: it took no object for it. */
static bool accept(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t key, int rc,
		   const struct kvs_span *span)
{
	if (rc == 0) {
		bits_set(run->staged, key);
		run->spans[key] = *span;
		run->bytes += run->ask->bytes[key];
		return true;
	}
	if (rc != KVS_E_EXISTS)
		return false;
	/* It has come since the request was made: what is there need not be loaded. */
	tools->hands->lock(tools->arg, run->ask, &run->ask->keys[key], 1, &rc);
	if (rc == 0)
		bits_set(run->have, key);
	return rc == 0;
}

static bool reserve_one(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t key)
{
	const struct prefetch_ask *const ask = run->ask;
	struct kvs_span                  span;
	int                              rc;

	tools->hands->reserve(tools->arg, ask, !ask->retain && !tools->policy->retain,
			      &ask->keys[key], &ask->bytes[key], 1, &span, &rc);
	return accept(run, tools, key, rc, &span);
}

/*
 * Together, which is cheap; where the Host has no room for all of them, one after another, so that
 * what comes first gets it.  The first key it takes no object for, or key_count.
 */
static uint32_t reserve_some(struct prefetch_run *run, struct prefetch_tools *tools,
			     const uint32_t *index, uint32_t count)
{
	const struct prefetch_ask *const ask = run->ask;
	uint64_t                         bytes[RESERVE_KEYS] = { 0 };
	struct kvs_span                  spans[RESERVE_KEYS];
	int                              rc[RESERVE_KEYS];
	uint32_t                         i;

	for (i = 0; i < count; i++) {
		tools->keys[i] = ask->keys[index[i]];
		bytes[i] = ask->bytes[index[i]];
	}
	tools->hands->reserve(tools->arg, ask, !ask->retain && !tools->policy->retain, tools->keys,
			      bytes, count, spans, rc);
	for (i = 0; i < count; i++)
		rc[i] = accept(run, tools, index[i], rc[i], &spans[i]) ? 0 : KVS_E_FULL;
	for (i = 0; i < count; i++) {
		if (rc[i] != 0 && !reserve_one(run, tools, index[i]))
			return index[i];
	}
	return ask->key_count;
}

/*
 * What the boundary uses and is not there yet, in order.  The first key that is refused, or
 * key_count.
 */
static uint32_t reserve_rest(struct prefetch_run *run, struct prefetch_tools *tools)
{
	const struct prefetch_ask *const ask = run->ask;
	uint32_t                         index[RESERVE_KEYS];
	uint32_t                         count = 0, refused = ask->key_count, i;

	for (i = 0; i < ask->key_count && refused == ask->key_count; i++) {
		if (!bits_test(run->keep, i) || bits_test(run->have, i) || bits_test(run->staged, i))
			continue;
		index[count++] = i;
		if (count < RESERVE_KEYS)
			continue;
		refused = reserve_some(run, tools, index, count);
		count = 0;
	}
	if (count > 0 && refused == ask->key_count)
		refused = reserve_some(run, tools, index, count);
	return refused;
}

static void aim(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t chunk_limit)
{
	run->boundary = run_match(run, tools, run->usable, chunk_limit);
	flat_keep(&run->ask->flat, run->boundary, run->ask->chunk_count, run->keep);
}

/* Reservations of keys behind one, given back; false when there is none. */
static bool make_room(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t key)
{
	const struct prefetch_ask *const ask = run->ask;
	const size_t first = bits_next_set(run->staged, key, ask->key_count);
	uint32_t     i;

	if (first == ask->key_count)
		return false;
	for (i = 0; i < key; i++)
		bits_set(run->keep, i);
	for (; i < ask->key_count; i++)
		bits_clear(run->keep, i);
	run_discard(run, tools, beyond, 0);
	return true;
}

/*
 * Where a key is refused and nothing behind it has room either, no boundary behind its chunk can be
 * had: of the chunks up to it, a nearer boundary uses all that a farther one does.
 */
static void stage(struct prefetch_run *run, struct prefetch_tools *tools)
{
	uint32_t limit = run->ask->chunk_count, refused;
	bool     made_room = false;

	for (;;) {
		aim(run, tools, limit);
		run_discard(run, tools, beyond, 0);
		refused = reserve_rest(run, tools);
		if (refused == run->ask->key_count)
			return;
		/*
		 * A window's keys come late: what was staged before them may lie behind.  Once a
		 * limit: then all is in order, and a key that is refused still is so for another
		 * reason, as when its reader has no lock left or is gone.
		 */
		if (!made_room && make_room(run, tools, refused)) {
			made_room = true;
			continue;
		}
		made_room = false;
		limit = refused / flat_keys(&run->ask->flat);
		KVS_ASSERT_CMP(limit, <, run->boundary);
		run->end = END_HOST_FULL;
	}
}

/* --- the plan --------------------------------------------------------------------------------- */

static bool is_unplanned(const struct prefetch_run *run, uint32_t key, uint32_t adapter)
{
	return run_pick_found(run, key, adapter) && !run_pick_loading(run, key, adapter);
}

void run_plan(struct prefetch_run *run, struct prefetch_tools *tools)
{
	uint32_t n;

	know_found(run, tools);
	choose(run, tools);
	run->bytes = 0;
	aim(run, tools, run->ask->chunk_count);
	run->end = run->boundary < run->ask->chunk_count ? END_MISSING : END_WHOLE;
	stage(run, tools);
	for (n = 0; n < KVS_ADAPTERS_MAX; n++)
		run_unlock_store(run, tools, is_unplanned, n);
}
