/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes that come late: a thread that scribbles into spans some time after their call returned.
 *
 * Limits  FAULT_LATE_MAX pending; one more is forgotten.
 * Close   lands what is pending, then ends the thread: afterwards no span is touched.
 */
#ifndef STORE_FAULT_LATE_H
#define STORE_FAULT_LATE_H

#include <kvstrata/base.h>

#include "os/os.h"

#define FAULT_LATE_MAX 64u

/* What a late write leaves in a span. */
#define FAULT_LATE_BYTE 0x5c

struct fault_late {
	pthread_t       thread;
	struct os_mutex mutex; /* guards all below */
	struct os_cond  changed;
	bool            closing;
	uint32_t        count;
	struct {
		struct kvs_span span;
		uint64_t        at_ns;
	} pending[FAULT_LATE_MAX];
};

int  fault_late_open(struct fault_late *late); /* 0 or -errno: no thread */
void fault_late_close(struct fault_late *late);

void fault_late_write(struct fault_late *late, const struct kvs_span *span, uint64_t at_ns);

/* Land what is pending now; how much still is. */
void     fault_late_land(struct fault_late *late);
uint32_t fault_late_count(struct fault_late *late);

#endif
