/* SPDX-License-Identifier: Apache-2.0 */
#include "host/life.h"

#include "base/err.h"

static struct record *record_at(const struct shard *shard, uint32_t slot)
{
	return &shard->records[slot];
}

/* --- counts ----------------------------------------------------------------------------------- */

/* Add what a record is in a state to the counts of its shard (1), or take it away (-1). */
static inline void tally(struct shard *shard, const struct record *record, enum record_state state,
			 int sign)
{
	const uint32_t one = (uint32_t)sign;
	const uint64_t pages = (uint64_t)((int64_t)pages_of(record->bytes) * sign);

	switch (state) {
	case RECORD_STAGED:
		shard->staged += one;
		shard->staged_pages += pages;
		break;
	case RECORD_RESIDENT:
		shard->objects += one;
		shard->temporary += record->flags & RECORD_TEMPORARY ? one : 0;
		if (!is_busy(record)) {
			shard->idle += one;
			shard->idle_pages += pages;
		}
		break;
	case RECORD_DOOMED:
		shard->doomed += one;
		break;
	case RECORD_FREE:
		break;
	}
}

static inline void turn(struct shard *shard, struct record *record, enum record_state from,
			enum record_state to)
{
	KVS_ASSERT_CMP(record->state, ==, from);
	tally(shard, record, from, -1);
	record->state = (uint8_t)to;
	tally(shard, record, to, 1);
}

/* --- records ---------------------------------------------------------------------------------- */

static uint32_t take_record(struct shard *shard)
{
	uint32_t slot = shard->free;

	if (slot != SLOT_NONE) {
		shard->free = record_at(shard, slot)->next;
		return slot;
	}
	if (shard->known == shard->capacity)
		return SLOT_NONE;
	slot = shard->known++;
	record_at(shard, slot)->state = RECORD_FREE;
	return slot;
}

/* The last used first: it is still in the cache. */
static void free_record(struct visit *visit, uint32_t slot, enum record_state from)
{
	struct shard *const  shard = visit->shard;
	struct record *const record = record_at(shard, slot);

	if (record->place != SPACE_NONE)
		visit_free(visit, record->place, pages_of(record->bytes));
	if (visit->host->isolate) {
		tenants_refund(&visit->host->tenants, record->tenant,
			       (uint64_t)pages_of(record->bytes) << SPACE_PAGE_BITS);
	}
	turn(shard, record, from, RECORD_FREE);
	record->next = shard->free;
	shard->free = slot;
}

/* --- the records of a key --------------------------------------------------------------------- */

static void chain_add(struct shard *shard, uint32_t slot, uint32_t first)
{
	struct record *const record = record_at(shard, slot);

	if (first == SLOT_NONE) {
		record->next = SLOT_NONE;
		map_insert(&shard->map, record->hash, slot);
	} else {
		record->next = record_at(shard, first)->next;
		record_at(shard, first)->next = slot;
	}
}

static void chain_remove_first(struct shard *shard, uint32_t slot)
{
	const struct record *const record = record_at(shard, slot);

	map_remove(&shard->map, record->hash, slot);
	if (record->next != SLOT_NONE)
		map_insert(&shard->map, record->hash, record->next);
}

static void chain_remove(struct shard *shard, uint32_t slot, uint32_t first)
{
	uint32_t before = first;

	if (slot == first) {
		chain_remove_first(shard, slot);
		return;
	}
	while (record_at(shard, before)->next != slot) {
		before = record_at(shard, before)->next;
		KVS_ASSERT(before != SLOT_NONE);
	}
	record_at(shard, before)->next = record_at(shard, slot)->next;
}

static void chain_lead(struct shard *shard, uint32_t slot, uint32_t first)
{
	struct record *const record = record_at(shard, slot);

	if (slot == first)
		return;
	chain_remove(shard, slot, first);
	map_remove(&shard->map, record->hash, first);
	record->next = first;
	map_insert(&shard->map, record->hash, slot);
}

uint32_t life_staged(const struct shard *shard, uint32_t first, uint32_t client, uint64_t tag)
{
	uint32_t slot;

	for (slot = first; slot != SLOT_NONE; slot = record_at(shard, slot)->next) {
		const struct record *const record = record_at(shard, slot);

		if (record->state == RECORD_STAGED && record->client == client &&
		    record->tag == tag)
			break;
	}
	return slot;
}

bool life_is_staged(const struct shard *shard, uint32_t first)
{
	/* Whoever comes first, behind it are staged ones alone. */
	return record_at(shard, first)->state == RECORD_STAGED ||
	       record_at(shard, first)->next != SLOT_NONE;
}

/* --- staged ----------------------------------------------------------------------------------- */

static struct list *staged_list(struct shard *shard, const struct record *record)
{
	return record->expiry_ns == HOST_FOREVER ? &shard->loads : &shard->writes;
}

/*
 * As list_push_tail() and list_remove(), with the links in the records, which are at hand anyway.
 */
static void list_write(struct shard *shard, uint32_t slot)
{
	struct record *const record = record_at(shard, slot);
	struct list *const   list = staged_list(shard, record);

	record->write = (struct link){ .prev = list->tail, .next = SLOT_NONE };
	if (list->tail == SLOT_NONE)
		list->head = slot;
	else
		record_at(shard, list->tail)->write.next = slot;
	list->tail = slot;
	list->count++;
}

static void unlist_write(struct shard *shard, uint32_t slot)
{
	const struct record *const record = record_at(shard, slot);
	struct list *const         list = staged_list(shard, record);
	const struct link          link = record->write;

	KVS_ASSERT_CMP(list->count, >, 0);
	if (link.prev == SLOT_NONE)
		list->head = link.next;
	else
		record_at(shard, link.prev)->write.next = link.next;
	if (link.next == SLOT_NONE)
		list->tail = link.prev;
	else
		record_at(shard, link.next)->write.prev = link.prev;
	list->count--;
}

/* Field by field: a compiler zeroes a struct that it is given whole. */
static void set_record(struct record *record, const struct kvs_key *key,
		       const struct life_start *start)
{
	record->key = *key;
	record->tag = start->tag;
	record->hash = start->hash;
	record->expiry_ns = start->expiry_ns;
	record->client = start->client;
	record->place = SPACE_NONE;
	record->bytes = (uint32_t)start->bytes;
	record->locks = 0;
	record->pins = 0;
	record->claim = SLOT_NONE;
	record->tenant = (uint16_t)start->tenant;
	record->flags = start->flags;
}

uint32_t life_begin(struct visit *visit, const struct kvs_key *key, uint32_t first,
		    const struct life_start *start)
{
	struct shard *const  shard = visit->shard;
	const uint32_t       slot = take_record(shard);
	struct record *const record = record_at(shard, slot);

	if (slot == SLOT_NONE)
		return SLOT_NONE;
	KVS_ASSERT_CMP(record->state, ==, RECORD_FREE);
	set_record(record, key, start);
	turn(shard, record, RECORD_FREE, RECORD_STAGED);
	chain_add(shard, slot, first);
	list_write(shard, slot);
	return slot;
}

void life_place(struct visit *visit, uint32_t slot, uint32_t place)
{
	KVS_ASSERT_CMP(record_at(visit->shard, slot)->place, ==, SPACE_NONE);
	record_at(visit->shard, slot)->place = place;
}

void life_drop(struct visit *visit, uint32_t slot)
{
	struct shard *const        shard = visit->shard;
	const struct record *const record = record_at(shard, slot);

	unlist_write(shard, slot);
	chain_remove(shard, slot, life_find(shard, record->hash, &record->key));
	free_record(visit, slot, RECORD_STAGED);
}

void life_publish(struct visit *visit, uint32_t slot, uint32_t first)
{
	struct shard *const  shard = visit->shard;
	struct record *const record = record_at(shard, slot);

	KVS_ASSERT_CMP(record_at(shard, first)->state, ==, RECORD_STAGED);
	unlist_write(shard, slot);
	chain_lead(shard, slot, first);
	turn(shard, record, RECORD_STAGED, RECORD_RESIDENT);
	evict_insert_part(shard->order, record->tenant, slot, record->hash);
}

/* --- resident --------------------------------------------------------------------------------- */

static void leave_order(struct shard *shard, uint32_t slot)
{
	if (evict_present(shard->order, slot))
		evict_remove(shard->order, slot);
	record_at(shard, slot)->flags &= (uint8_t)~RECORD_PARKED;
}

void life_park(struct shard *shard, uint32_t slot)
{
	KVS_ASSERT(is_busy(record_at(shard, slot)));
	if (evict_present(shard->order, slot))
		evict_remove(shard->order, slot);
	record_at(shard, slot)->flags |= RECORD_PARKED;
}

void life_remove(struct visit *visit, uint32_t slot)
{
	struct shard *const  shard = visit->shard;
	struct record *const record = record_at(shard, slot);

	KVS_ASSERT(!is_busy(record));
	leave_order(shard, slot);
	visit_note(visit, HOST_REMOVED, &record->key);
	chain_remove_first(shard, slot);
	free_record(visit, slot, RECORD_RESIDENT);
}

void life_remove_keep(struct visit *visit, uint32_t slot)
{
	record_at(visit->shard, slot)->place = SPACE_NONE;
	life_remove(visit, slot);
}

void life_doom(struct visit *visit, uint32_t slot)
{
	struct shard *const  shard = visit->shard;
	struct record *const record = record_at(shard, slot);

	KVS_ASSERT(is_busy(record));
	leave_order(shard, slot);
	visit_note(visit, HOST_REMOVED, &record->key);
	turn(shard, record, RECORD_RESIDENT, RECORD_DOOMED);
}

void life_hold(struct visit *visit, uint32_t slot)
{
	struct record *const record = record_at(visit->shard, slot);

	KVS_ASSERT_CMP(record->state, ==, RECORD_RESIDENT);
	if (is_busy(record))
		return;
	visit->shard->idle--;
	visit->shard->idle_pages -= pages_of(record->bytes);
}

/* Idle again: it may be evicted, and is at once when it was there for its readers only. */
static void rest(struct visit *visit, uint32_t slot)
{
	struct shard *const  shard = visit->shard;
	struct record *const record = record_at(shard, slot);

	shard->idle++;
	shard->idle_pages += pages_of(record->bytes);
	if (record->flags & RECORD_SPENT) {
		life_remove(visit, slot);
	} else if (record->flags & RECORD_PARKED) {
		record->flags &= (uint8_t)~RECORD_PARKED;
		evict_insert_part(shard->order, record->tenant, slot, record->hash);
		evict_renew(shard->order, slot);
	}
}

void life_settle(struct visit *visit, uint32_t slot)
{
	struct shard *const  shard = visit->shard;
	struct record *const record = record_at(shard, slot);

	if (is_busy(record))
		return;
	if (record->state == RECORD_RESIDENT) {
		rest(visit, slot);
	} else {
		KVS_ASSERT_CMP(record->state, ==, RECORD_DOOMED);
		chain_remove_first(shard, slot);
		free_record(visit, slot, RECORD_DOOMED);
	}
}
