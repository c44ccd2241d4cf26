/* SPDX-License-Identifier: Apache-2.0 */
/* First in, first out: one queue, and nothing ever moves. */
#include "evict/policy.h"

const struct evict_policy evict_fifo = { .insert = evict_line_insert, .victim = evict_line_victim };
