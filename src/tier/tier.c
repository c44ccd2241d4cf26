/* SPDX-License-Identifier: Apache-2.0 */
/* See tier.h. */
#include "tier/tier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int tier_open(struct tier *tier, struct coord *coord, uint32_t ticket_max, uint32_t page_max,
	      struct kvs_error *err)
{
	uint32_t i;
	bool     whole;

	*tier = (struct tier){ .coord = coord, .page_max = page_max };
	tier->tickets = calloc(ticket_max, sizeof(*tier->tickets));
	whole = tier->tickets && slots_open(&tier->slots, ticket_max) == 0;
	for (i = 0; whole && i < ticket_max; i++) {
		tier->tickets[i].pairs = calloc(page_max, sizeof(*tier->tickets[i].pairs));
		tier->tickets[i].keys = calloc(page_max, sizeof(*tier->tickets[i].keys));
		whole = tier->tickets[i].pairs && tier->tickets[i].keys;
	}
	if (whole)
		return 0;
	tier_close(tier);
	return err_set(err, -ENOMEM, "no memory for %u copy tickets of %u pages", ticket_max,
		       page_max);
}

void tier_close(struct tier *tier)
{
	uint32_t i;

	for (i = 0; i < tier->slots.count; i++) {
		free(tier->tickets[i].pairs);
		free(tier->tickets[i].keys);
	}
	free(tier->tickets);
	slots_close(&tier->slots);
	*tier = (struct tier){ 0 };
}

uint32_t tier_load(struct tier *tier, uint32_t request, const uint32_t *device_blocks,
		   const uint32_t *host_blocks, uint32_t count)
{
	const uint32_t slot = slots_acquire(&tier->slots);
	uint32_t       i;

	KVS_ASSERT_CMP(count, <=, tier->page_max);
	if (slot == SLOT_NONE)
		return slot;
	tier->tickets[slot].kind = TIER_LOAD;
	tier->tickets[slot].request = request;
	tier->tickets[slot].pair_count = count;
	for (i = 0; i < count; i++) {
		tier->tickets[slot].pairs[i] = (struct tier_pair){ device_blocks[i], host_blocks[i],
								   i };
	}
	return slot;
}

uint32_t tier_save(struct tier *tier, const struct kvs_key *keys, const uint32_t *device_blocks,
		    uint32_t count)
{
	struct stratum *const     host = &tier->coord->host;
	const uint32_t            slot = slots_acquire(&tier->slots);
	struct tier_ticket *const ticket = slot == SLOT_NONE ? NULL : &tier->tickets[slot];
	uint32_t                  i;

	KVS_ASSERT_CMP(count, <=, tier->page_max);
	if (ticket) {
		*ticket = (struct tier_ticket){ .kind = TIER_SAVE,
						.key_count = count,
						.pairs = ticket->pairs,
						.keys = ticket->keys };
		memcpy(ticket->keys, keys, count * sizeof(*keys));
	}
	for (i = 0; i < count; i++) {
		uint32_t block;

		if (stratum_find(host, &keys[i]) != SLOT_NONE)
			continue;
		block = ticket ? stratum_acquire(host) : SLOT_NONE;
		if (block == SLOT_NONE) {
			tier->unsaved++;
			continue;
		}
#ifndef KVS_MUTANT_DROP_SOURCE /* Planted bug: a D2H copy does not hold what it reads. */
		stratum_pin(&tier->coord->device, device_blocks[i]);
#endif
		ticket->pairs[ticket->pair_count++] = (struct tier_pair){ device_blocks[i], block,
									  i };
	}
	if (!ticket || ticket->pair_count > 0)
		return slot;
	slots_release(&tier->slots, slot);
	return SLOT_NONE;
}

const struct tier_ticket *tier_done(struct tier *tier, uint32_t ticket)
{
	const struct tier_ticket *const t = &tier->tickets[ticket];
	struct stratum *const           host = &tier->coord->host;
	uint32_t                        i;

	KVS_ASSERT(slots_busy(&tier->slots, ticket));
	for (i = 0; i < t->pair_count; i++) {
		const struct tier_pair pair = t->pairs[i];

		if (t->kind == TIER_SAVE) {
			stratum_unpin(&tier->coord->device, pair.device_block);
			stratum_unpin(host,
				      stratum_publish(host, &t->keys[pair.page], pair.host_block));
		} else {
			stratum_unpin(host, pair.host_block);
		}
	}
	return t;
}

void tier_end(struct tier *tier, uint32_t ticket)
{
	slots_release(&tier->slots, ticket);
}

static void audit_pair(const struct tier *tier, const struct tier_ticket *ticket,
		       const struct tier_pair *pair)
{
	const struct stratum *const host = &tier->coord->host;

	KVS_ASSERT_CMP(stratum_refs(host, pair->host_block), >, 0);
	KVS_ASSERT_CMP(stratum_refs(&tier->coord->device, pair->device_block), >, 0);
	if (ticket->kind == TIER_SAVE) {
		KVS_ASSERT_CMP(pair->page, <, ticket->key_count);
		KVS_ASSERT(!stratum_published(host, pair->host_block));
	}
}

void tier_audit(const struct tier *tier)
{
	uint32_t slot, i;

	slots_audit(&tier->slots);
	SLOTS_EACH(&tier->slots, slot) {
		const struct tier_ticket *const ticket = &tier->tickets[slot];

		KVS_ASSERT_CMP(ticket->pair_count, <=, tier->page_max);
		for (i = 0; i < ticket->pair_count; i++)
			audit_pair(tier, ticket, &ticket->pairs[i]);
	}
}
