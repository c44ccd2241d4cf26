/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU device: Device blocks in ordinary memory and a copy engine between them and the Host
 * arena.
 *
 * submit() queues the copies of one tier ticket, poll() reports tickets whose copies are complete,
 * in order of submission: the fence behind which their bytes may be read.
 *
 * Threads  One.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "arena/arena.h"
#include "base/ring.h"
#include "tier/tier.h"

struct device {
	uint8_t                 *base;
	size_t                   block_bytes;
	uint32_t                 block_count;
	const struct arena_part *host;
	struct ring              fenced;    /* ticket numbers */
	uint64_t                 h2d_bytes;
	uint64_t                 d2h_bytes;
	uint64_t                 h2d_ns;
	uint64_t                 d2h_ns;
};

/* Blocks are as large as the Host part's.  ticket_max bounds the tickets in flight. */
int  device_open(struct device *device, uint32_t block_count, const struct arena_part *host,
		 uint32_t ticket_max, struct kvs_error *err);
void device_close(struct device *device);

void *device_block(const struct device *device, uint32_t block);

void device_submit(struct device *device, uint32_t ticket_number, const struct tier_ticket *ticket);

/* False when no ticket is fenced. */
bool device_poll(struct device *device, uint32_t *ret_ticket_number);

#endif
