/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For memory that is a buffer only: what came in leaves when its owner removes it, and a full owner
 * refuses.  Presence and counts are kept as by the others.
 */
#include "evict/policy.h"

static uint32_t victim(struct evict *evict, uint32_t part, evict_may *may, void *ctx)
{
	(void)evict;
	(void)part;
	(void)may;
	(void)ctx;
	return SLOT_NONE;
}

const struct evict_policy evict_none = { .insert = evict_line_insert, .victim = victim };
