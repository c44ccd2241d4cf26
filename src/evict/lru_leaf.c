/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least recently used, aware of prefixes: when a request is done, its chain is used once more from
 * the end, so that what goes first is always the end of a chain.  A suffix without its prefix would
 * be dead weight: no look-up reaches it.
 */
#include "evict/policy.h"

static void settle(struct evict *evict, const uint32_t *slots, uint32_t count)
{
	uint32_t i;

	for (i = count; i > 0; i--) {
		if (evict_present(evict, slots[i - 1]))
			evict_move(evict, slots[i - 1], 0);
	}
}

const struct evict_policy evict_lru_leaf = { .insert = evict_line_insert,
					     .touch = evict_line_touch,
					     .settle = settle,
					     .victim = evict_line_victim };
