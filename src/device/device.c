/* SPDX-License-Identifier: Apache-2.0 */
/* See device.h.  The CPU engine copies at submission, on the caller's thread: its fence is immediate. */
#include "device/device.h"

#include <errno.h>
#include <string.h>

#include "os/os.h"

int device_open(struct device *device, uint32_t block_count, const struct arena_part *host,
		uint32_t ticket_max, struct kvs_error *err)
{
	void *base;
	int   rc;

	*device = (struct device){ .block_bytes = host->block_bytes,
				   .block_count = block_count,
				   .host = host };
	rc = os_pages_map(device->block_bytes * block_count, &base);
	if (rc < 0) {
		return err_set(err, rc, "device_blocks: %u blocks of %zu bytes cannot be mapped: %s",
			       block_count, device->block_bytes, kvs_strerror(rc));
	}
	device->base = base;
	rc = ring_open(&device->fenced, ticket_max, sizeof(uint32_t));
	if (rc < 0) {
		device_close(device);
		return err_set(err, rc, "no memory for %u copy fences", ticket_max);
	}
	return 0;
}

void device_close(struct device *device)
{
	if (device->base)
		os_pages_unmap(device->base, device->block_bytes * device->block_count);
	ring_close(&device->fenced);
	*device = (struct device){ 0 };
}

void *device_block(const struct device *device, uint32_t block)
{
	KVS_ASSERT_CMP(block, <, device->block_count);
	return device->base + device->block_bytes * block;
}

static void copy(const struct device *device, enum tier_kind kind, struct tier_pair pair)
{
	void *const on_device = device_block(device, pair.device_block);
	void *const on_host = arena_block(device->host, pair.host_block).ptr;

	if (kind == TIER_LOAD)
		memcpy(on_device, on_host, device->block_bytes);
	else
		memcpy(on_host, on_device, device->block_bytes);
}

void device_submit(struct device *device, uint32_t ticket_number, const struct tier_ticket *ticket)
{
	const uint64_t start_ns = os_now_ns();
	const uint64_t bytes = device->block_bytes * ticket->pair_count;
	uint32_t       i;

	for (i = 0; i < ticket->pair_count; i++)
		copy(device, ticket->kind, ticket->pairs[i]);
	if (ticket->kind == TIER_LOAD) {
		device->h2d_bytes += bytes;
		device->h2d_ns += os_now_ns() - start_ns;
	} else {
		device->d2h_bytes += bytes;
		device->d2h_ns += os_now_ns() - start_ns;
	}
	KVS_ASSERT(ring_push(&device->fenced, &ticket_number));
}

bool device_poll(struct device *device, uint32_t *ret_ticket_number)
{
	return ring_pop(&device->fenced, ret_ticket_number);
}
