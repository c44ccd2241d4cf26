/* SPDX-License-Identifier: Apache-2.0 */
/* Least recently used: one queue, and a use goes to its tail. */
#include "evict/policy.h"

const struct evict_policy evict_lru = {
	.insert = evict_line_insert, .touch = evict_line_touch, .victim = evict_line_victim
};
