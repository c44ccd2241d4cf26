/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a Host stratum: what nobody ever came back for goes before what was used, each by
 * recency.  A block's first use is a promotion for as long as it stays.
 */
#include "evict/policy.h"

enum { QUEUE_UNUSED, QUEUE_USED };

static void insert(struct evict *evict, uint32_t slot, uint64_t hash)
{
	(void)hash;
	evict_push(evict, slot, QUEUE_UNUSED);
}

static void touch(struct evict *evict, uint32_t slot)
{
	evict_note_use(evict, slot);
	evict_move(evict, slot, QUEUE_USED);
}

/* Whoever is worth another round goes with those that were used, or it would be the first again. */
static void renew(struct evict *evict, uint32_t slot)
{
	evict_move(evict, slot, QUEUE_USED);
}

static uint32_t victim(struct evict *evict, uint32_t part, evict_may *may, void *ctx)
{
	const uint32_t slot = evict_first(evict, part, QUEUE_UNUSED, may, ctx);

	return slot == SLOT_NONE ? evict_first(evict, part, QUEUE_USED, may, ctx) : slot;
}

const struct evict_policy evict_host_order = {
	.insert = insert, .touch = touch, .victim = victim, .renew = renew
};
