/* SPDX-License-Identifier: Apache-2.0 */
/* See device.h. */
#include "device/device.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "device/cpu.h"
#include "os/os.h"

static size_t memory_bytes(const struct device *device)
{
	return device->block_bytes * ((size_t)device->block_count + 1);
}

static int open_layout(struct device *device, struct kvs_error *err)
{
	static const char *const           id = "layer.0.block";
	const struct layout_field_spec     field = { .id = id,
						     .stride = device->block_bytes,
						     .payload_bytes = device->block_bytes };
	const struct layout_group_spec     group = { .packing = 1, .fields = &field, .field_count = 1 };
	const struct layout_buffer         buffer = { .bytes = memory_bytes(device) };
	const struct layout_consumer_spec  consumer = { .fields = &id, .field_count = 1 };
	const struct layout_spec           spec = { .parent_count = device->block_count,
						    .groups = &group, .group_count = 1,
						    .buffers = &buffer, .buffer_count = 1,
						    .consumers = &consumer, .consumer_count = 1 };

	return layout_open(&spec, NULL, &device->layout, err);
}

static int open_engine(struct device *device, const struct arena_part *host, uint32_t ticket_max,
		       struct kvs_error *err)
{
	void *const                 buffer = device->base;
	const struct copier_options options = { .layout = &device->layout,
						.buffers = &buffer,
						.host = host,
						.ticket_max = ticket_max,
						.row_max = device->block_count };

	device->pairs = calloc(device->block_count, sizeof(*device->pairs));
	if (!device->pairs)
		return err_set(err, -ENOMEM, "no memory for %u pairs", device->block_count);
	return cpu_open(&options, CPU_AT_SUBMIT, &device->copier, err);
}

static int check_size(const struct device *device, struct kvs_error *err)
{
	const uint64_t have = os_memory_available_bytes();
	size_t         bytes;

	if (device->block_count == 0 || device->block_count > COPIER_ROWS_MAX) {
		return err_set(err, KVS_E_INVALID, "device_blocks: %u, must be 1 to %u",
			       device->block_count, COPIER_ROWS_MAX);
	}
	/* The null block is one more. */
	if (!__builtin_mul_overflow(device->block_bytes, (size_t)device->block_count + 1, &bytes) &&
	    bytes <= have)
		return 0;
	return err_set(err, -ENOMEM,
		       "device_blocks: %u blocks of %zu bytes are more than the %" PRIu64
		       " bytes of memory that are available",
		       device->block_count, device->block_bytes, have);
}

int device_open(struct device *device, uint32_t block_count, const struct arena_part *host,
		uint32_t ticket_max, struct kvs_error *err)
{
	void *base;
	int   rc;

	*device = (struct device){ .block_bytes = host->block_bytes, .block_count = block_count };
	rc = check_size(device, err);
	if (rc < 0)
		return rc;
	rc = os_pages_map(memory_bytes(device), &base);
	if (rc < 0) {
		return err_set(err, rc, "device_blocks: %u blocks of %zu bytes cannot be mapped: %s",
			       block_count, device->block_bytes, kvs_strerror(rc));
	}
	device->base = base;
	rc = open_layout(device, err);
	if (rc == 0)
		rc = open_engine(device, host, ticket_max, err);
	if (rc < 0)
		device_close(device);
	return rc;
}

void device_close(struct device *device)
{
	copier_close(device->copier);
	layout_close(&device->layout);
	free(device->pairs);
	if (device->base)
		os_pages_unmap(device->base, memory_bytes(device));
	*device = (struct device){ 0 };
}

void *device_block(const struct device *device, uint32_t block)
{
	KVS_ASSERT_CMP(block, <, device->block_count);
	return device->base + device->block_bytes * ((size_t)block + 1);
}

static void count(struct device *device)
{
	struct copier_stats load, save;

	copier_stats(device->copier, COPIER_LOAD, &load);
	copier_stats(device->copier, COPIER_SAVE, &save);
	device->h2d_bytes = load.pair_bytes;
	device->h2d_ns = load.busy_ns;
	device->d2h_bytes = save.pair_bytes;
	device->d2h_ns = save.busy_ns;
}

void device_submit(struct device *device, uint32_t ticket_number, const struct tier_ticket *ticket)
{
	const struct copier_batch batch = { .ticket = ticket_number,
					    .pairs = device->pairs,
					    .pair_count = ticket->pair_count };
	uint32_t                  i;

	/* No two pairs of a ticket share a Device block. */
	KVS_ASSERT_CMP(ticket->pair_count, <=, device->block_count);
	for (i = 0; i < ticket->pair_count; i++) {
		device->pairs[i] = (struct copier_pair){
			.device_block = ticket->pairs[i].device_block + 1,
			.host_block = ticket->pairs[i].host_block + 1,
		};
	}
	KVS_ASSERT(copier_submit(device->copier,
				 ticket->kind == TIER_LOAD ? COPIER_LOAD : COPIER_SAVE,
				 &batch) == 0);
	count(device);
}

bool device_poll(struct device *device, uint32_t *ret_ticket_number)
{
	struct copier_done done;

	if (!copier_poll(device->copier, &done))
		return false;
	*ret_ticket_number = (uint32_t)done.ticket;
	return true;
}
