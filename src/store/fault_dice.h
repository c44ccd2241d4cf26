/* SPDX-License-Identifier: Apache-2.0 */
/* When faults fall: a plan and its counts.  Any thread, no lock. */
#ifndef STORE_FAULT_DICE_H
#define STORE_FAULT_DICE_H

#include <stdatomic.h>

#include "store/fault_plan.h"

struct fault_dice {
	struct fault_plan plan;
	_Atomic uint64_t  seen[FAULT_RULES_MAX];
	_Atomic uint64_t  fallen[FAULT_RULES_MAX];
};

/* Nothing falls: no rule. */
#define FAULT_NONE UINT32_MAX

/*
 * The next rule from `from` on that falls on a call, or on a row, of op, and a number for all else
 * about it.  Every rule that is passed has seen it.
 */
uint32_t fault_dice_call(struct fault_dice *dice, enum fault_op op, uint32_t from,
			 uint64_t *ret_draw);
uint32_t fault_dice_row(struct fault_dice *dice, enum fault_op op, uint64_t *ret_draw);

static inline uint64_t fault_wait_ns(const struct fault_rule *rule, uint64_t draw)
{
	return rule->wait_min_ns + draw % (rule->wait_max_ns - rule->wait_min_ns + 1);
}

#endif
