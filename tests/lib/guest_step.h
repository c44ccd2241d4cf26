/* SPDX-License-Identifier: Apache-2.0 */
/* What a request's next admission asks for: how many tokens, and which blocks of each group. */
#ifndef LIB_GUEST_STEP_H
#define LIB_GUEST_STEP_H

#include "guest.h"

struct guest_step {
	uint32_t      begin;
	uint32_t      end;
	uint32_t      tail;        /* to reserve */
	uint32_t      reserve;     /* for decode */
	bool          sparse;      /* STATE: no slots before the one of first_state */
	uint32_t      first_state; /* token whose checkpoint is the first that needs a slot */
	struct demand demands[YARD_GROUPS];
};

/* The demands of a step whose other fields are set. */
void guest_demands(const struct yard *yard, struct guest_step *step);

/* A chunk of the prompt from `begin` on; false: wait for a larger budget. */
bool guest_chunk(const struct yard *yard, const struct guest *guest, uint32_t begin,
		 uint32_t promotion, uint32_t budget, struct guest_step *ret_step);

#endif
