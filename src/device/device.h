/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU device of a replay: Device blocks in ordinary memory, one group of one field, and tier
 * tickets as batches of the CPU copy engine.
 *
 * submit() copies on the caller's thread, so that a replay depends on its seed alone; poll() reports
 * tickets whose copies are complete, the fence behind which their bytes may be read.  Tickets count
 * blocks from 0 and copier.h counts them from 1: the null block lies in front and is never touched.
 *
 * Threads  One.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "device/copier.h"
#include "tier/tier.h"

/* Where it lies must not change while it is open: the engine keeps the layout. */
struct device {
	uint8_t            *base; /* the null block's */
	size_t              block_bytes;
	uint32_t            block_count;
	struct layout       layout;
	struct copier      *copier;
	struct copier_pair *pairs; /* of the ticket being submitted; block_count */
	uint64_t            h2d_bytes;
	uint64_t            d2h_bytes;
	uint64_t            h2d_ns;
	uint64_t            d2h_ns;
};

/**
 * Blocks are as large as the Host part's.  ticket_max bounds the tickets in flight, a kind.
 *
 * Errors  KVS_E_INVALID  block_count is not 1 to COPIER_ROWS_MAX, or what copier_check() refuses;
 *         -ENOMEM        more memory than is to be had; nothing was made.
 */
int  device_open(struct device *device, uint32_t block_count, const struct arena_part *host,
		 uint32_t ticket_max, struct kvs_error *err);
void device_close(struct device *device);

void *device_block(const struct device *device, uint32_t block);

void device_submit(struct device *device, uint32_t ticket_number, const struct tier_ticket *ticket);

/* False when no ticket is fenced. */
bool device_poll(struct device *device, uint32_t *ret_ticket_number);

#endif
