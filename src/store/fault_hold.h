/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are held: for a time, or until somebody lets them go. */
#ifndef STORE_FAULT_HOLD_H
#define STORE_FAULT_HOLD_H

#include "os/os.h"

#define FAULT_HOLD_LOST UINT64_MAX

struct fault_hold {
	struct os_mutex mutex; /* guards all below */
	struct os_cond  changed;
	bool            closing;
	uint32_t        held;
	uint64_t        release; /* grows with each */
};

void fault_hold_open(struct fault_hold *hold);

/* Every held call fails and has left when this returns: it may be called while some are held. */
void fault_hold_end(struct fault_hold *hold);
void fault_hold_close(struct fault_hold *hold);

/* 0 when the time is over, or for FAULT_HOLD_LOST after the next release; -EIO after the end. */
int fault_hold_call(struct fault_hold *hold, uint64_t wait_ns);

void     fault_hold_release(struct fault_hold *hold);
uint32_t fault_hold_count(struct fault_hold *hold); /* held now */

#endif
