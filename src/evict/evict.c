/* SPDX-License-Identifier: Apache-2.0 */
/* What the policies share: parts, queues, presence, counts. */
#include "evict/evict.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "evict/policy.h"

static size_t head_bytes(uint32_t part_count)
{
	return sizeof(struct evict) + part_count * sizeof(struct evict_part);
}

static void init_queues(struct evict *evict)
{
	uint32_t part;
	uint8_t  q;

	for (part = 0; part < evict->part_count; part++) {
		for (q = 0; q < EVICT_QUEUES; q++)
			list_init(&evict->parts[part].queues[q]);
	}
}

static int make_arrays(struct evict *evict)
{
	evict->links = malloc(evict->capacity * sizeof(*evict->links));
	evict->notes = malloc(evict->capacity * sizeof(*evict->notes));
	if (!evict->links || !evict->notes)
		return -ENOMEM;
	if (evict->part_count == 1)
		return 0;
	evict->parts_of = malloc(evict->capacity * sizeof(*evict->parts_of));
	return evict->parts_of ? 0 : -ENOMEM;
}

/* NULL: no memory. */
static struct evict *make(const struct evict_policy *policy, uint32_t capacity, uint32_t part_count)
{
	struct evict *const evict = calloc(1, head_bytes(part_count));

	if (!evict)
		return NULL;
	evict->policy = policy;
	evict->capacity = capacity;
	evict->part_count = part_count;
	init_queues(evict);
	if (make_arrays(evict) == 0 && (!policy->prepare || policy->prepare(evict) == 0))
		return evict;
	evict_close(evict);
	return NULL;
}

int evict_open_parts(const char *name, uint32_t capacity, uint32_t part_count,
		     struct evict **ret_evict, struct kvs_error *err)
{
	const struct evict_policy *policy = evict_policy_of(name);
	struct evict              *evict;

	if (!policy)
		return evict_known(name, err);
	if (capacity == 0 || capacity > EVICT_CAPACITY_MAX) {
		return err_set(err, KVS_E_INVALID, "capacity: %u blocks; use 1 to %u", capacity,
			       EVICT_CAPACITY_MAX);
	}
	if (part_count == 0 || part_count > EVICT_PARTS_MAX) {
		return err_set(err, KVS_E_INVALID, "parts: %u; use 1 to %u", part_count,
			       EVICT_PARTS_MAX);
	}
	evict = make(policy, capacity, part_count);
	if (!evict) {
		return err_set(err, -ENOMEM, "capacity: no memory for the order of %u blocks",
			       capacity);
	}
	*ret_evict = evict;
	return 0;
}

int evict_open(const char *name, uint32_t capacity, struct evict **ret_evict, struct kvs_error *err)
{
	return evict_open_parts(name, capacity, 1, ret_evict, err);
}

void evict_close(struct evict *evict)
{
	if (!evict)
		return;
	names_close(&evict->names);
	ghost_close(&evict->ghost);
	free(evict->hashes);
	free(evict->parts_of);
	free(evict->notes);
	free(evict->links);
	free(evict);
}

void evict_push(struct evict *evict, uint32_t slot, uint8_t queue)
{
	struct evict_part *const part = &evict->parts[evict_part_of(evict, slot)];

	list_push_tail(&part->queues[queue], evict->links, slot);
	evict->notes[slot].queue = queue;
}

void evict_unlink(struct evict *evict, uint32_t slot)
{
	struct evict_part *const part = &evict->parts[evict_part_of(evict, slot)];

	list_remove(&part->queues[evict->notes[slot].queue], evict->links, slot);
}

void evict_move(struct evict *evict, uint32_t slot, uint8_t queue)
{
	evict_unlink(evict, slot);
	evict_push(evict, slot, queue);
}

uint32_t evict_first(struct evict *evict, uint32_t part, uint8_t queue, evict_may *may, void *ctx)
{
	uint32_t slot;

	for (slot = evict->parts[part].queues[queue].head; slot != SLOT_NONE;
	     slot = evict->links[slot].next) {
		if (may && !may(ctx, slot))
			continue;
		evict_unlink(evict, slot);
		break;
	}
	return slot;
}

void evict_line_insert(struct evict *evict, uint32_t slot, uint64_t hash)
{
	(void)hash;
	evict_push(evict, slot, 0);
}

void evict_note_use(struct evict *evict, uint32_t slot)
{
	if (evict->notes[slot].uses < EVICT_USES_MAX)
		evict->notes[slot].uses++;
}

void evict_line_touch(struct evict *evict, uint32_t slot)
{
	evict_note_use(evict, slot);
	evict_move(evict, slot, 0);
}

uint32_t evict_line_victim(struct evict *evict, uint32_t part, evict_may *may, void *ctx)
{
	return evict_first(evict, part, 0, may, ctx);
}

/* Owners take the lowest free slot, so slots come into use in order and this loop runs once for each. */
static void make_known(struct evict *evict, uint32_t slot)
{
	for (; evict->known <= slot; evict->known++) {
		evict->links[evict->known] = (struct link){ .prev = evict->known,
							    .next = evict->known };
	}
}

void evict_insert_part(struct evict *evict, uint32_t part, uint32_t slot, uint64_t hash)
{
	KVS_ASSERT_CMP(part, <, evict->part_count);
	KVS_ASSERT_CMP(slot, <, evict->capacity);
	KVS_ASSERT(!evict_present(evict, slot));
	make_known(evict, slot);
	evict->notes[slot] = (struct evict_note){ 0 };
	if (evict->parts_of)
		evict->parts_of[slot] = (uint16_t)part;
	evict->policy->insert(evict, slot, hash);
	evict->count++;
}

void evict_insert(struct evict *evict, uint32_t slot, uint64_t hash)
{
	evict_insert_part(evict, 0, slot, hash);
}

void evict_touch(struct evict *evict, uint32_t slot)
{
	KVS_ASSERT(evict_present(evict, slot));
	if (evict->policy->touch)
		evict->policy->touch(evict, slot);
}

void evict_remove(struct evict *evict, uint32_t slot)
{
	KVS_ASSERT(evict_present(evict, slot));
	evict_unlink(evict, slot);
	evict->count--;
}

uint32_t evict_heat(const struct evict *evict, uint32_t slot)
{
	KVS_ASSERT(evict_present(evict, slot));
	return evict->notes[slot].uses;
}

void evict_renew(struct evict *evict, uint32_t slot)
{
	KVS_ASSERT(evict_present(evict, slot));
	evict->notes[slot].uses = 0;
	if (evict->policy->renew)
		evict->policy->renew(evict, slot);
	else
		evict_move(evict, slot, evict->notes[slot].queue);
}

void evict_expel(struct evict *evict, uint32_t slot)
{
	if (evict->policy->expel)
		evict->policy->expel(evict, slot);
	evict_remove(evict, slot);
}

void evict_settle(struct evict *evict, const uint32_t *slots, uint32_t count)
{
	if (evict->policy->settle)
		evict->policy->settle(evict, slots, count);
}

uint32_t evict_victim_part(struct evict *evict, uint32_t part, evict_may *may, void *ctx)
{
	uint32_t slot;

	KVS_ASSERT_CMP(part, <, evict->part_count);
	slot = evict->policy->victim(evict, part, may, ctx);
	if (slot != SLOT_NONE) {
		KVS_ASSERT(!evict_present(evict, slot));
		KVS_ASSERT_CMP(evict_part_of(evict, slot), ==, part);
		evict->count--;
	}
	return slot;
}

uint32_t evict_victim(struct evict *evict, evict_may *may, void *ctx)
{
	return evict_victim_part(evict, 0, may, ctx);
}

/* The heads of its queues, as no policy passes over the first for long. */
uint32_t evict_ahead(const struct evict *evict, uint32_t part, uint32_t *ret_slots, uint32_t count)
{
	uint32_t known = 0, slot;
	uint8_t  q;

	KVS_ASSERT_CMP(part, <, evict->part_count);
	for (q = 0; q < EVICT_QUEUES; q++) {
		for (slot = evict->parts[part].queues[q].head; slot != SLOT_NONE && known < count;
		     slot = evict->links[slot].next)
			ret_slots[known++] = slot;
	}
	return known;
}

bool evict_present(const struct evict *evict, uint32_t slot)
{
	return slot < evict->known && list_is_linked(evict->links, slot);
}

uint32_t evict_count(const struct evict *evict)
{
	return evict->count;
}

uint32_t evict_part_count(const struct evict *evict, uint32_t part)
{
	uint32_t count = 0;
	uint8_t  q;

	KVS_ASSERT_CMP(part, <, evict->part_count);
	for (q = 0; q < EVICT_QUEUES; q++)
		count += evict->parts[part].queues[q].count;
	return count;
}

size_t evict_bytes(const struct evict *evict)
{
	const size_t slot_bytes = sizeof(*evict->links) + sizeof(*evict->notes) +
				  (evict->parts_of ? sizeof(*evict->parts_of) : 0) +
				  (evict->hashes ? sizeof(*evict->hashes) : 0);

	return head_bytes(evict->part_count) + evict->capacity * slot_bytes +
	       ghost_bytes(&evict->ghost) + names_bytes(&evict->names);
}

/* How many slots the part has. */
static uint32_t audit_part(const struct evict *evict, uint32_t part)
{
	uint32_t slot;
	uint8_t  q;

	for (q = 0; q < EVICT_QUEUES; q++) {
		const struct list *const queue = &evict->parts[part].queues[q];

		list_audit(queue, evict->links, evict->known);
		for (slot = queue->head; slot != SLOT_NONE; slot = evict->links[slot].next) {
			KVS_ASSERT_CMP(evict_part_of(evict, slot), ==, part);
			KVS_ASSERT_CMP(evict->notes[slot].queue, ==, q);
		}
	}
	return evict_part_count(evict, part);
}

void evict_audit(const struct evict *evict)
{
	uint32_t in_parts = 0, linked = 0;
	uint32_t part, slot;

	for (part = 0; part < evict->part_count; part++)
		in_parts += audit_part(evict, part);
	for (slot = 0; slot < evict->known; slot++)
		linked += list_is_linked(evict->links, slot);
	KVS_ASSERT_CMP(in_parts, ==, evict->count);
	KVS_ASSERT_CMP(linked, ==, evict->count);
	ghost_audit(&evict->ghost);
	if (evict->policy->audit)
		evict->policy->audit(evict);
}
