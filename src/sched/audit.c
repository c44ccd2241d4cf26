/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, lists, places and what they hold agree. */
#include "sched/parts.h"

static void audit_request(const struct sched *sched, uint32_t slot)
{
	const struct request *const request = &sched->requests[slot];

	KVS_ASSERT(request->state != REQUEST_FREE);
	KVS_ASSERT(list_is_linked(sched->links, slot));
	KVS_ASSERT(request_find(sched, request->id) == request);
	KVS_ASSERT_CMP(request->token_count, <=, sched->options.request_tokens_max);
	KVS_ASSERT_CMP(request->hashed, <=, request->token_count / sched->options.page_tokens);
	KVS_ASSERT_CMP(request->computed, <=, request->token_count);
	if (!request_prepares(request->state))
		KVS_ASSERT_CMP(request->admission.lease.id, ==, 0);
	if (request->state != REQUEST_RETRACTED)
		KVS_ASSERT(request->snapshot == SLOT_NONE);
	if (list_is_linked(sched->unprepared_links, slot)) {
		KVS_ASSERT(!request->admission.storage_prepared);
		KVS_ASSERT(request_prepares(request->state));
	}
	KVS_ASSERT_CMP(request->pending, <=, sched->options.overlap_depth + 1);
}

void sched_audit(const struct sched *sched)
{
	uint32_t linked = 0;
	uint32_t slot;
	int      state;

	cache_audit(sched->cache);
	mover_audit(&sched->mover);
	if (sched->options.snapshot_max > 0)
		snapshots_audit(&sched->snapshots);
	slots_audit(&sched->slots);
	map_audit(&sched->ids);
	for (state = 0; state < REQUEST_STATE_COUNT; state++) {
		list_audit(&sched->lists[state], sched->links, sched->options.request_max);
		linked += sched->lists[state].count;
		for (slot = sched->lists[state].head; slot != SLOT_NONE;
		     slot = sched->links[slot].next)
			KVS_ASSERT_CMP(sched->requests[slot].state, ==, state);
	}
	list_audit(&sched->unprepared, sched->unprepared_links, sched->options.request_max);
	KVS_ASSERT_CMP(linked, ==, sched->slots.busy_count);
	SLOTS_EACH(&sched->slots, slot)
		audit_request(sched, slot);
	place_audit(sched);
	storage_audit(sched);
}
