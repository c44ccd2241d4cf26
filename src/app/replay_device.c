/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_device.h. */
#include "app/replay_device.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/cpu.h"
#include "os/os.h"

/* Blanks come without a ticket of the mover; its tickets count from 1. */
#define NO_TICKET 0u

static uint64_t stride_of(const struct replay_shape *shape, uint32_t g)
{
	return shape->parent_bytes / shape->specs[g].packing;
}

/* Of virtual block 0: the last place of the null parent. */
static uint64_t offset_of(const struct replay_shape *shape, uint32_t g)
{
	return shape->parent_bytes - stride_of(shape, g);
}

/* --- opening ---------------------------------------------------------------------------------- */

static int open_memory(struct replay_device *device, const struct replay_shape *shape,
		       uint32_t parents, struct kvs_error *err)
{
	const uint64_t have = os_memory_available_bytes();
	void          *base;
	int            rc;

	/* The null parent is one more. */
	if (__builtin_mul_overflow(shape->parent_bytes, (size_t)parents + 1, &device->bytes) ||
	    device->bytes > have) {
		return err_set(err, -ENOMEM,
			       "device_blocks: %u blocks of %" PRIu64
			       " bytes are more than the %" PRIu64 " bytes of memory that are available",
			       parents, shape->parent_bytes, have);
	}
	rc = os_pages_map(device->bytes, &base);
	if (rc < 0) {
		return err_set(err, rc,
			       "device_blocks: %u blocks of %" PRIu64 " bytes cannot be mapped: %s",
			       parents, shape->parent_bytes, kvs_strerror(rc));
	}
	device->base = base;
	return 0;
}

static int open_layout(struct replay_device *device, const struct replay_shape *shape,
		       uint32_t parents, struct kvs_error *err)
{
	struct layout_field_spec    fields[GROUPS_MAX];
	struct layout_group_spec    groups[GROUPS_MAX];
	const char                 *ids[GROUPS_MAX];
	const struct layout_buffer  buffer = { .bytes = device->bytes };
	struct layout_consumer_spec consumer = { .fields = ids, .field_count = shape->count };
	const struct layout_spec    spec = { .parent_count = parents,
					     .groups = groups, .group_count = shape->count,
					     .buffers = &buffer, .buffer_count = 1,
					     .consumers = &consumer, .consumer_count = 1 };
	uint32_t                    g;

	for (g = 0; g < shape->count; g++) {
		snprintf(device->ids[g], sizeof(device->ids[g]), "layer.%u.block", g);
		ids[g] = device->ids[g];
		fields[g] = (struct layout_field_spec){ .id = ids[g],
							.offset = offset_of(shape, g),
							.stride = stride_of(shape, g),
							.payload_bytes = shape->block_bytes[g] };
		groups[g] = (struct layout_group_spec){ .id = g,
							.packing = shape->specs[g].packing,
							.fields = &fields[g], .field_count = 1 };
	}
	return layout_open(&spec, NULL, &device->layout, err);
}

static int open_planes(struct replay_device *device, const struct replay_shape *shape,
		       struct kvs_error *err)
{
	size_t   count = 0;
	uint32_t g, layer;

	for (g = 0; g < shape->count; g++)
		count += shape->layers[g];
	device->planes = calloc(count, sizeof(*device->planes));
	if (!device->planes)
		return err_set(err, -ENOMEM, "no memory for %zu layers", count);
	count = 0;
	for (g = 0; g < shape->count; g++) {
		const uint64_t layer_bytes = shape->block_bytes[g] / shape->layers[g];

		for (layer = 0; layer < shape->layers[g]; layer++) {
			device->planes[count++] = (struct engine_plane){
				.first = device->base + offset_of(shape, g) + layer * layer_bytes,
				.stride = stride_of(shape, g),
			};
		}
	}
	return 0;
}

/* A batch holds no Device block twice, so no list is longer than there are blocks. */
static int open_copier(struct replay_device *device, const struct arena_part *host,
		       uint32_t ticket_max, struct kvs_error *err)
{
	void *const           buffer = device->base;
	struct copier_options options = { .layout = &device->layout, .buffers = &buffer,
					  .host = host, .ticket_max = ticket_max };
	uint64_t              rows = 0;
	uint32_t              g;

	for (g = 0; g < device->layout.group_count; g++)
		rows += layout_last(&device->layout, g);
	if (rows > COPIER_ROWS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "device_blocks: %" PRIu64 " blocks of all groups, must be at most %u",
			       rows, COPIER_ROWS_MAX);
	}
	device->row_max = (uint32_t)rows;
	options.row_max = device->row_max;
	device->zeros = calloc(rows, sizeof(*device->zeros));
	device->pairs = calloc(rows, sizeof(*device->pairs));
	device->clones = calloc(rows, sizeof(*device->clones));
	if (!device->zeros || !device->pairs || !device->clones)
		return err_set(err, -ENOMEM, "no memory for %" PRIu64 " rows of copies", rows);
	return cpu_open(&options, CPU_AT_SUBMIT, &device->copier, err);
}

int replay_device_open(struct replay_device *device, const struct replay_shape *shape,
		       uint32_t parents, const struct arena_part *host, uint32_t ticket_max,
		       struct kvs_error *err)
{
	int rc;

	*device = (struct replay_device){ 0 };
	rc = open_memory(device, shape, parents, err);
	if (rc == 0)
		rc = open_layout(device, shape, parents, err);
	if (rc == 0)
		rc = open_planes(device, shape, err);
	if (rc == 0)
		rc = open_copier(device, host, ticket_max, err);
	if (rc < 0)
		replay_device_close(device);
	return rc;
}

void replay_device_close(struct replay_device *device)
{
	copier_close(device->copier);
	layout_close(&device->layout);
	free(device->planes);
	free(device->zeros);
	free(device->pairs);
	free(device->clones);
	if (device->base)
		os_pages_unmap(device->base, device->bytes);
	*device = (struct replay_device){ 0 };
}

void replay_device_engine(const struct replay_device *device, const struct replay_shape *shape,
			  struct group_engine *ret_engine)
{
	struct engine_group        groups[GROUPS_MAX];
	const struct engine_plane *planes = device->planes;
	uint32_t                   g;

	for (g = 0; g < shape->count; g++) {
		groups[g] = (struct engine_group){ .kind = shape->specs[g].kind,
						   .block_tokens = shape->specs[g].block_tokens,
						   .window_tokens = shape->specs[g].window_tokens,
						   .layers = shape->layers[g], .planes = planes };
		planes += shape->layers[g];
	}
	group_engine_init(ret_engine, groups, shape->count);
}

/* --- running ---------------------------------------------------------------------------------- */

static void submit(struct replay_device *device, enum copier_stream stream,
		   const struct copier_batch *batch)
{
	/*
	 * What was submitted before has passed its fence: only reports that nobody took can fill a
	 * table.
	 */
	KVS_ASSERT(copier_submit(device->copier, stream, batch) == 0);
}

static bool blank(struct replay_device *device, const struct batch *forward)
{
	struct copier_batch batch = { .ticket = NO_TICKET, .zeros = device->zeros };
	uint32_t            g, i;

	for (g = 0; g < device->layout.group_count; g++) {
		for (i = 0; i < forward->fresh_count[g]; i++) {
			KVS_ASSERT_CMP(batch.zero_count, <, device->row_max);
			device->zeros[batch.zero_count++] =
				(struct copier_block){ g, forward->fresh[g][i] };
		}
	}
	if (batch.zero_count > 0)
		submit(device, COPIER_LOAD, &batch);
	return batch.zero_count > 0;
}

static void add_row(struct replay_device *device, const struct mover_row *row,
		    struct copier_batch *batch)
{
	KVS_ASSERT_CMP(batch->pair_count + batch->clone_count, <, device->row_max);
	switch (row->path) {
	case COPY_DEVICE_TO_HOST:
		device->pairs[batch->pair_count++] =
			(struct copier_pair){ row->group, row->source, row->target };
		return;
	case COPY_HOST_TO_DEVICE:
		device->pairs[batch->pair_count++] =
			(struct copier_pair){ row->group, row->target, row->source };
		return;
	case COPY_DEVICE_TO_DEVICE:
		device->clones[batch->clone_count++] =
			(struct copier_clone){ row->group, row->source, row->target };
		return;
	}
	KVS_PANIC("no such path");
}

static void copy(struct replay_device *device, const struct mover *mover, uint64_t id)
{
	const struct mover_ticket *const ticket = mover_find(mover, id);
	struct copier_batch              batch = { .ticket = id, .pairs = device->pairs,
						   .clones = device->clones };
	uint32_t                         i;

	KVS_ASSERT(ticket);
	MOVER_ROWS(mover, ticket, i)
		add_row(device, &mover->rows[i], &batch);
	submit(device, ticket_is_load(ticket->kind) ? COPIER_LOAD : COPIER_SAVE, &batch);
}

bool replay_device_run(struct replay_device *device, const struct mover *mover,
		       const struct sched_plan *plan)
{
	const bool blanked = blank(device, &plan->forward);
	uint32_t   i;

	for (i = 0; i < plan->copy_count; i++)
		copy(device, mover, plan->copies[i]);
	return blanked || plan->copy_count > 0;
}

uint32_t replay_device_done(struct replay_device *device, uint64_t *ret_tickets, uint32_t max)
{
	struct copier_done done;
	uint32_t           count = 0;

	while (copier_poll(device->copier, &done)) {
		if (done.ticket == NO_TICKET)
			continue;
		KVS_ASSERT_CMP(count, <, max);
		ret_tickets[count++] = done.ticket;
	}
	return count;
}
