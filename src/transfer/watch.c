/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wait that others end: each read under way watches the name of the last block that it asked for.
 * When somebody publishes that, it is *stirred*, and the next tick looks whether the prompt has now
 * all that the read was to bring.
 */
#include "transfer/parts.h"

void watch_begin(struct transfer *transfer, struct ticket *ticket, const struct kvs_key *name)
{
	const uint64_t hash = map_hash(&transfer->watch_map, name);
	uint32_t       watch = map_find(&transfer->watch_map, hash, name);

	if (watch == SLOT_NONE) {
		watch = slots_acquire(&transfer->watch_slots);
		KVS_ASSERT_CMP(watch, !=, SLOT_NONE);
		transfer->watches[watch].name = *name;
		list_init(&transfer->watches[watch].tickets);
		map_insert(&transfer->watch_map, hash, watch);
	}
	ticket->watch = watch;
	list_push_tail(&transfer->watches[watch].tickets, transfer->watching,
		       ticket_slot(transfer, ticket));
}

void watch_end(struct transfer *transfer, struct ticket *ticket)
{
	const uint32_t slot = ticket_slot(transfer, ticket);
	struct watch  *watch;

	if (ticket->watch == SLOT_NONE)
		return;
	watch = &transfer->watches[ticket->watch];
	list_remove(&watch->tickets, transfer->watching, slot);
	if (watch->tickets.count == 0) {
		map_remove(&transfer->watch_map, map_hash(&transfer->watch_map, &watch->name),
			   ticket->watch);
		slots_release(&transfer->watch_slots, ticket->watch);
	}
	ticket->watch = SLOT_NONE;
	if (list_is_linked(transfer->stirring, slot))
		list_remove(&transfer->stirred, transfer->stirring, slot);
}

void watch_stir(struct transfer *transfer, const struct kvs_key *name)
{
	uint32_t watch, slot;

	if (transfer->watch_map.count == 0)
		return;
	watch = map_find(&transfer->watch_map, map_hash(&transfer->watch_map, name), name);
	if (watch == SLOT_NONE)
		return;
	slot = transfer->watches[watch].tickets.head;
	for (; slot != SLOT_NONE; slot = transfer->watching[slot].next) {
		if (!list_is_linked(transfer->stirring, slot))
			list_push_tail(&transfer->stirred, transfer->stirring, slot);
	}
}

void transfer_published(struct transfer *transfer, const struct cell_name *name)
{
	struct kvs_key key;

	if (transfer->watch_map.count == 0)
		return;
	key = row_key(transfer, name->space, name->hash, name->group, name->offset);
	watch_stir(transfer, &key);
}

void watch_apply(struct transfer *transfer)
{
	uint32_t slot;

	while ((slot = list_pop_head(&transfer->stirred, transfer->stirring)) != SLOT_NONE) {
		struct ticket *const     ticket = &transfer->tickets[slot];
		const struct cache_probe probe = transfer_probe(transfer, &ticket->ask,
								ticket->tails, ticket->tail_count);

		if (probe.host_tokens < ticket->wanted_tokens)
			continue;
		ticket->shortfall.group = SHORTFALL_NONE;
		ticket->shortfall.tokens = (uint32_t)probe.host_tokens;
		transfer->counts.counters[TRANSFER_LOCAL]++;
		transfer_wake_up(transfer, ticket, READ_LOCAL);
		ticket_step(transfer, ticket, TICKET_ON_DETACH, NULL);
	}
}

void watch_audit(const struct transfer *transfer)
{
	const uint32_t tickets = transfer->limits.op_credits;
	uint32_t       watching = 0, watched = 0;
	uint32_t       i;

	slots_audit(&transfer->watch_slots);
	map_audit(&transfer->watch_map);
	KVS_ASSERT_CMP(transfer->watch_map.count, ==, transfer->watch_slots.busy_count);
	SLOTS_EACH(&transfer->watch_slots, i) {
		list_audit(&transfer->watches[i].tickets, transfer->watching, tickets);
		watched += transfer->watches[i].tickets.count;
	}
	list_audit(&transfer->stirred, transfer->stirring, tickets);
	for (i = 0; i < tickets; i++) {
		const uint32_t watch = transfer->tickets[i].watch;

		watching += watch != SLOT_NONE;
		KVS_ASSERT(watch == SLOT_NONE || slots_busy(&transfer->watch_slots, watch));
		KVS_ASSERT(watch != SLOT_NONE || !list_is_linked(transfer->stirring, i));
	}
	KVS_ASSERT_CMP(watching, ==, watched);
}
