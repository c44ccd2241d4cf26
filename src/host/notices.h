/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call has to tell the listeners: taken down under a shard's mutex, told when no lock is
 * held.
 *
 * Limits   NOTICES_MAX at a time; who visits a shard knows how many its visit makes at most.
 * Threads  One call's own.
 */
#ifndef HOST_NOTICES_H
#define HOST_NOTICES_H

#include <stdint.h>

#include "host/host.h"

/* As many rows as are served at a time, each at its most (visit.h), and what expires meanwhile. */
#define NOTICES_MAX 1728u

struct notices {
	uint32_t       count;
	uint32_t       numbered; /* of them have their sequence */
	uint8_t        event[NOTICES_MAX];
	uint64_t       sequence[NOTICES_MAX];
	struct kvs_key key[NOTICES_MAX];
};

static inline void notices_init(struct notices *notices)
{
	notices->count = 0;
	notices->numbered = 0;
}

/* Tell all listeners and begin again.  Holds no lock. */
void notices_tell(struct notices *notices, const struct host_listener *listeners,
		  uint32_t listener_count);

#endif
