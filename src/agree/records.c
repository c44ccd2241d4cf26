/* SPDX-License-Identifier: Apache-2.0 */
/* See records.h. */
#include "agree/records.h"

#include <errno.h>
#include <stdlib.h>

int records_open(struct records *records, uint32_t max)
{
	const uint32_t room = max > 0 ? max : 1;

	*records = (struct records){ 0 };
	records->record = calloc(room, sizeof(*records->record));
	records->touched = calloc(room, sizeof(*records->touched));
	if (!records->record || !records->touched || slots_open(&records->slots, room) < 0)
		return -ENOMEM;
	return map_open(&records->ids, room, &records->record->id, sizeof(*records->record),
			sizeof(records->record->id));
}

void records_close(struct records *records)
{
	map_close(&records->ids);
	slots_close(&records->slots);
	free(records->touched);
	free(records->record);
	*records = (struct records){ 0 };
}

size_t records_bytes(const struct records *records)
{
	return records->slots.count * (sizeof(*records->record) + sizeof(*records->touched)) +
	       slots_bytes(&records->slots) + map_bytes(&records->ids);
}

struct record *records_add(struct records *records, uint64_t id)
{
	const uint32_t slot = slots_acquire(&records->slots);

	KVS_ASSERT_CMP(id, >, records->last_id);
	KVS_ASSERT_CMP(slot, !=, SLOT_NONE);
	records->record[slot] = (struct record){ .id = id };
	map_insert(&records->ids, map_hash(&records->ids, &id), slot);
	records->last_id = id;
	return &records->record[slot];
}

void records_end(struct records *records, struct record *record)
{
	const uint32_t slot = (uint32_t)(record - records->record);

	map_remove(&records->ids, map_hash(&records->ids, &record->id), slot);
	slots_release(&records->slots, slot);
}

struct record *records_find(struct records *records, uint64_t id)
{
	const uint32_t slot = map_find(&records->ids, map_hash(&records->ids, &id), &id);

	return slot == SLOT_NONE ? NULL : &records->record[slot];
}

/* --- the round -------------------------------------------------------------------------------- */

void records_touch(struct records *records, struct record *record)
{
	if (record->touched)
		return;
	record->touched = true;
	records->touched[records->touched_count++] = (uint32_t)(record - records->record);
}

static uint64_t id_at(const struct records *records, uint32_t i)
{
	return records->record[records->touched[i]].id;
}

static void swap(struct records *records, uint32_t a, uint32_t b)
{
	const uint32_t slot = records->touched[a];

	records->touched[a] = records->touched[b];
	records->touched[b] = slot;
}

static void sift(struct records *records, uint32_t parent, uint32_t count)
{
	uint32_t child;

	for (; (child = 2 * parent + 1) < count; parent = child) {
		if (child + 1 < count && id_at(records, child) < id_at(records, child + 1))
			child++;
		if (id_at(records, parent) >= id_at(records, child))
			return;
		swap(records, parent, child);
	}
}

/* A heap: qsort() may allocate. */
void records_sort(struct records *records)
{
	uint32_t i;

	for (i = records->touched_count / 2; i-- > 0;)
		sift(records, i, records->touched_count);
	for (i = records->touched_count; i-- > 1;) {
		swap(records, 0, i);
		sift(records, 0, i);
	}
}

void records_forget(struct records *records)
{
	uint32_t i;

	for (i = 0; i < records->touched_count; i++) {
		struct record *const record = &records->record[records->touched[i]];

		record->now = (struct record_round){ 0 };
		record->touched = false;
	}
	records->touched_count = 0;
}

/* --- audit ------------------------------------------------------------------------------------ */

void records_audit(const struct records *records, uint64_t owners)
{
	uint32_t slot;

	slots_audit(&records->slots);
	map_audit(&records->ids);
	KVS_ASSERT_CMP(records->ids.count, ==, records->slots.busy_count);
	KVS_ASSERT_CMP(records->touched_count, ==, 0);
	SLOTS_EACH(&records->slots, slot) {
		const struct record *const record = &records->record[slot];

		KVS_ASSERT_CMP(record->id, <=, records->last_id);
		KVS_ASSERT(!record->touched);
		KVS_ASSERT_CMP(record->now.reported | record->now.doubted | record->now.taken_back,
			       ==, 0);
		KVS_ASSERT_CMP(record->reported & ~owners, ==, 0);
		KVS_ASSERT_CMP(record->doubted & ~record->reported, ==, 0);
		/* What all have reported is over, unless it is in doubt. */
		KVS_ASSERT(record->reported != owners || record->doubted != 0);
	}
}
