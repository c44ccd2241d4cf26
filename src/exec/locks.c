/* SPDX-License-Identifier: Apache-2.0 */
/* See locks.h.  update() alone decides whether a record owes, and whether it is needed at all. */
#include "exec/locks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

int locks_open(struct locks *locks, uint32_t lock_max)
{
	*locks = (struct locks){ 0 };
	list_init(&locks->owing);
	if (lock_max == 0)
		return 0;
	locks->records = calloc(lock_max, sizeof(*locks->records));
	locks->links = calloc(lock_max, sizeof(*locks->links));
	if (!locks->records || !locks->links || slots_open(&locks->slots, lock_max) < 0 ||
	    map_open(&locks->index, lock_max, &locks->records->key, sizeof(*locks->records),
		     sizeof(locks->records->key)) < 0) {
		locks_close(locks);
		return -ENOMEM;
	}
	list_links_init(locks->links, lock_max);
	return 0;
}

void locks_close(struct locks *locks)
{
	map_close(&locks->index);
	slots_close(&locks->slots);
	free(locks->links);
	free(locks->records);
	*locks = (struct locks){ 0 };
}

static uint32_t find(const struct locks *locks, const struct kvs_key *key)
{
	if (!locks->records)
		return SLOT_NONE;
	return map_find(&locks->index, map_hash(&locks->index, key), key);
}

static bool owes(const struct lock_record *record)
{
	return record->kept > (record->asked + record->held > 0);
}

/* After every change of a record. */
static void update(struct locks *locks, uint32_t slot)
{
	const struct lock_record *const record = &locks->records[slot];
	const bool                      linked = list_is_linked(locks->links, slot);

	if (owes(record) && !linked)
		list_push_tail(&locks->owing, locks->links, slot);
	else if (!owes(record) && linked)
		list_remove(&locks->owing, locks->links, slot);
	if (record->asked + record->held + record->kept == 0) {
		map_remove(&locks->index, map_hash(&locks->index, &record->key), slot);
		slots_release(&locks->slots, slot);
	}
}

static bool ask_one(struct locks *locks, const struct kvs_key *key)
{
	uint32_t slot = find(locks, key);

	if (slot == SLOT_NONE) {
		slot = locks->records ? slots_acquire(&locks->slots) : SLOT_NONE;
		if (slot == SLOT_NONE)
			return false;
		locks->records[slot] = (struct lock_record){ .key = *key };
		map_insert(&locks->index, map_hash(&locks->index, key), slot);
	}
	locks->records[slot].asked++;
	locks->asked++;
	update(locks, slot);
	return true;
}

static void settle_one(struct locks *locks, const struct kvs_key *key, bool granted, bool kept)
{
	const uint32_t      slot = find(locks, key);
	struct lock_record *record;

	KVS_ASSERT(slot != SLOT_NONE);
	record = &locks->records[slot];
	KVS_ASSERT_CMP(record->asked, >, 0);
	record->asked--;
	locks->asked--;
	record->held += granted;
	locks->held += granted;
	record->kept += kept;
	update(locks, slot);
}

/* Rows before `end` get nothing. */
static void give_up(struct locks *locks, const struct op *op, uint32_t end)
{
	uint32_t row;

	for (row = 0; row < end; row++) {
		if (bits_test(op->owned.words, row))
			settle_one(locks, &op->keys[row], false, false);
	}
}

bool locks_ask(struct locks *locks, const struct op *op)
{
	uint32_t row;

	for (row = 0; row < op->key_count; row++) {
		if (bits_test(op->owned.words, row) && !ask_one(locks, &op->keys[row])) {
			give_up(locks, op, row);
			return false;
		}
	}
	return true;
}

void locks_settle(struct locks *locks, const struct op *op, const struct op_mask *granted,
		  const struct op_mask *kept)
{
	uint32_t row;

	for (row = 0; row < op->key_count; row++) {
		if (bits_test(op->owned.words, row)) {
			settle_one(locks, &op->keys[row], bits_test(granted->words, row),
				   bits_test(kept->words, row));
		}
	}
}

void locks_give(struct locks *locks, const struct kvs_key *key)
{
	const uint32_t slot = find(locks, key);

	if (slot == SLOT_NONE || locks->records[slot].held == 0)
		return;
	locks->records[slot].held--;
	locks->held--;
	update(locks, slot);
}

void locks_give_all(struct locks *locks)
{
	uint32_t slot;

	/* Closing comes by once a batch of unlocks: only the first may walk the table. */
	if (locks->held == 0)
		return;
	for (slot = slots_next(&locks->slots, 0); slot != SLOT_NONE;
	     slot = slots_next(&locks->slots, slot + 1)) {
		locks->held -= locks->records[slot].held;
		locks->records[slot].held = 0;
		update(locks, slot);
	}
}

/* One unlock of each record: one that still owes goes to the end, and is not met again. */
uint32_t locks_tell(struct locks *locks, struct kvs_key *ret_keys, uint32_t key_max)
{
	const uint32_t owing = locks->owing.count;
	uint32_t       count;

	for (count = 0; count < owing && count < key_max; count++) {
		const uint32_t slot = list_pop_head(&locks->owing, locks->links);

		ret_keys[count] = locks->records[slot].key;
		locks->records[slot].kept--;
		update(locks, slot);
	}
	return count;
}

void locks_audit(const struct locks *locks)
{
	uint64_t held = 0, asked = 0;
	uint32_t slot;

	if (!locks->records)
		return;
	slots_audit(&locks->slots);
	map_audit(&locks->index);
	list_audit(&locks->owing, locks->links, locks->slots.count);
	for (slot = slots_next(&locks->slots, 0); slot != SLOT_NONE;
	     slot = slots_next(&locks->slots, slot + 1)) {
		const struct lock_record *const record = &locks->records[slot];

		KVS_ASSERT_CMP(record->asked + record->held + record->kept, >, 0);
		KVS_ASSERT_CMP(owes(record), ==, list_is_linked(locks->links, slot));
		held += record->held;
		asked += record->asked;
	}
	KVS_ASSERT_CMP(locks->index.count, ==, locks->slots.busy_count);
	KVS_ASSERT_CMP(held, ==, locks->held);
	KVS_ASSERT_CMP(asked, ==, locks->asked);
}
