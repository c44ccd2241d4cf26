/* SPDX-License-Identifier: Apache-2.0 */
/* See fault_dice.h.  Relaxed throughout: the counts order nothing, they only number calls and rows. */
#include "store/fault_dice.h"

#include "base/prng.h"

static uint64_t draw(const struct fault_dice *dice, uint32_t rule, uint64_t number)
{
	return mix64(mix64(dice->plan.seed ^ ((uint64_t)rule << 56)) ^ number);
}

static bool falls(struct fault_dice *dice, uint32_t number, uint64_t *ret_draw)
{
	const struct fault_rule *rule = &dice->plan.rules[number];
	const uint64_t seen = atomic_fetch_add_explicit(&dice->seen[number], 1, memory_order_relaxed);
	const uint64_t drawn = draw(dice, number, seen);

	if (seen < rule->after)
		return false;
	if (rule->every ? (seen - rule->after + 1) % rule->every != 0
			: (double)(drawn >> 11) * 0x1p-53 >= rule->chance)
		return false;
	if (atomic_fetch_add_explicit(&dice->fallen[number], 1, memory_order_relaxed) >=
	    rule->count_max) {
		atomic_fetch_sub_explicit(&dice->fallen[number], 1, memory_order_relaxed);
		return false;
	}
	*ret_draw = mix64(drawn);
	return true;
}

static uint32_t next(struct fault_dice *dice, enum fault_op op, bool on_calls, uint32_t from,
		     uint64_t *ret_draw)
{
	uint32_t i;

	for (i = from; i < dice->plan.rule_count; i++) {
		const struct fault_rule *rule = &dice->plan.rules[i];

		if (rule->op == op && fault_falls_on_calls(rule->kind) == on_calls &&
		    falls(dice, i, ret_draw))
			return i;
	}
	return FAULT_NONE;
}

uint32_t fault_dice_call(struct fault_dice *dice, enum fault_op op, uint32_t from,
			 uint64_t *ret_draw)
{
	return next(dice, op, true, from, ret_draw);
}

uint32_t fault_dice_row(struct fault_dice *dice, enum fault_op op, uint64_t *ret_draw)
{
	return next(dice, op, false, 0, ret_draw);
}
