/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places of the batch: a number for as long as a request computes, and the tables that go with it.
 * The one that was free longest is taken next.
 */
#include "sched/parts.h"

static struct table *tables_at(const struct sched *sched, uint32_t place)
{
	return &sched->tables[(size_t)(place - 1) * groups_of(sched)->count];
}

bool place_lend(struct sched *sched, struct request *request)
{
	uint32_t place, g;

	KVS_ASSERT_CMP(request->place, ==, 0);
	if (sched->places.count == 0)
		return false;
	place = *(const uint32_t *)ring_at(&sched->places, 0);
	request->tables = tables_at(sched, place);
	for (g = 0; g < groups_of(sched)->count; g++) {
		table_init(&request->tables[g],
			   &sched->table_slots[g][(size_t)(place - 1) * sched->slot_max[g]],
			   sched->slot_max[g]);
	}
	return true;
}

void place_take(struct sched *sched, struct request *request)
{
	KVS_ASSERT(ring_pop(&sched->places, &request->place));
	KVS_ASSERT(request->tables == tables_at(sched, request->place));
}

void place_give_back(struct sched *sched, struct request *request)
{
	if (request->place == 0)
		return;
	cache_free(sched->cache, request->tables);
	KVS_ASSERT(ring_push(&sched->places, &request->place));
	request->place = 0;
	request->tables = NULL;
	request->epoch = 0;
	request->remote = false;
	request->computed = 0;
	request->published = 0;
	request->promotion = 0;
	request->tail = 0;
	request->reserve = 0;
	request->pending = 0;
	request->fence = 0;
}

void place_audit(const struct sched *sched)
{
	uint32_t taken = 0;
	uint32_t slot, g;

	SLOTS_EACH(&sched->slots, slot) {
		const struct request *const request = &sched->requests[slot];

		KVS_ASSERT_CMP(request->place > 0, ==, request_computes(request->state));
		if (request->place == 0)
			continue;
		taken++;
		KVS_ASSERT(request->tables == tables_at(sched, request->place));
		for (g = 0; g < groups_of(sched)->count; g++)
			table_audit(&request->tables[g], &groups_of(sched)->group[g]);
	}
	KVS_ASSERT_CMP(taken + sched->places.count, ==, sched->options.batch_max);
}
