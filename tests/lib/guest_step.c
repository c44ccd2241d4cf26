/* SPDX-License-Identifier: Apache-2.0 */
/* See guest_step.h; where chunks end, guest.h says. */
#include "guest_step.h"

static bool has_state(const struct yard *yard)
{
	uint32_t g;

	for (g = 0; g < yard->spec.group_count; g++) {
		if (yard->spec.groups[g].kind == GROUP_STATE)
			return true;
	}
	return false;
}

/* How many tokens from `first` on; 0: wait for a larger budget. */
static uint32_t chunk_size(const struct yard *yard, const struct guest *guest, uint32_t first,
			   uint32_t promotion, uint32_t budget)
{
	const uint32_t page = yard->spec.page_tokens;
	const uint32_t left = guest->prefill - first;
	const uint32_t to_boundary = page - first % page;
	uint32_t       size = left < budget ? left : budget;

	if (guest->unaligned || (!has_state(yard) && promotion == 0))
		return size;
	if (promotion > first && size > promotion - first)
		size = promotion - first;
	if (size == left)
		return size;
	if (first % page != 0)
		return to_boundary <= size ? to_boundary : 0;
	return size - size % page;
}

void guest_demands(const struct yard *yard, struct guest_step *step)
{
	uint32_t g;

	for (g = 0; g < yard->spec.group_count; g++) {
		const struct group_spec *const group = &yard->spec.groups[g];
		const uint32_t                 size = step->end - step->begin;

		step->demands[g] = demand_dense(size, step->tail + step->reserve);
		if (group->kind == GROUP_STATE) {
			step->demands[g] =
				step->sparse ? demand_sparse(step->end, step->tail,
							     step->first_state / group->block_tokens)
					     : demand_dense(size, 0);
		}
	}
}

bool guest_chunk(const struct yard *yard, const struct guest *guest, uint32_t begin,
		 uint32_t promotion, uint32_t budget, struct guest_step *ret_step)
{
	const uint32_t    size = chunk_size(yard, guest, begin, promotion, budget);
	const uint32_t    rest = (begin + size) % yard->spec.page_tokens;
	struct guest_step step = { .begin = begin, .end = begin + size, .sparse = true };

	if (size == 0)
		return false;
	if (step.end == guest->prefill && has_state(yard) && !guest->unaligned && rest > 0 && size > rest) {
		step.tail = rest;
		step.end -= rest;
	}
	step.reserve = step.end + step.tail == guest->prefill;
	step.first_state = step.end - 1;
	guest_demands(yard, &step);
	*ret_step = step;
	return true;
}
