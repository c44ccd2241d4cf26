/* SPDX-License-Identifier: Apache-2.0 */
/* See dock.h.  The image is moved byte by byte, field by field: plainly right. */
#include "dock.h"

#include <stdlib.h>
#include <string.h>

#include "base/prng.h"

static const struct layout_field_spec fields[DOCK_GROUPS][2] = {
	{ { "layer.0.k", 0, 0, 192, 128 }, { "layer.0.v", 1, 64, 128, 128 } },
	{ { "layer.1.conv", 0, 2048, 256, 200 }, { "layer.1.state", 1, 2049, 101, 100 } },
	{ { "layer.2.latent", 0, 4096, 256, 256 } },
};

static const char *const ids[] = { "layer.0.k", "layer.0.v", "layer.1.conv", "layer.1.state",
				   "layer.2.latent" };

struct layout_spec dock_spec(void)
{
	static const struct layout_group_spec groups[] = { { 0, 2, fields[0], 2 },
							   { 1, 1, fields[1], 2 },
							   { 2, 2, fields[2], 1 } };
	static const struct layout_buffer     buffers[] = { { 1, DOCK_BUFFER_BYTES },
							    { 2, DOCK_BUFFER_BYTES } };
	static const struct layout_consumer_spec consumer = { ids, ARRAY_COUNT(ids) };

	return (struct layout_spec){ DOCK_PARENTS, groups, DOCK_GROUPS, buffers, 2, &consumer, 1 };
}

struct copier_options dock_options(struct dock *dock, void **buffers)
{
	buffers[0] = dock->memory.device[0];
	buffers[1] = dock->memory.device[1];
	return (struct copier_options){ .layout = &dock->layout,
					.buffers = buffers,
					.host = &dock->host,
					.ticket_max = DOCK_TICKETS,
					.row_max = DOCK_ROWS };
}

struct dock *dock_open(enum cpu_mode mode)
{
	struct dock *const       dock = aligned_alloc(64, sizeof(*dock));
	const struct layout_spec spec = dock_spec();
	struct copier_options    options;
	void                    *buffers[2];
	struct prng              prng;
	size_t                   i;

	KVS_ASSERT(dock);
	prng_seed(&prng, 5);
	for (i = 0; i < sizeof(dock->memory); i++)
		((uint8_t *)&dock->memory)[i] = (uint8_t)prng_u64(&prng);
	dock->image = dock->memory;
	dock->mode = mode;
	dock->host = (struct arena_part){ .base = dock->memory.host, .block_bytes = 512, .stride = 512,
					  .block_count = DOCK_PARENTS,
					  .blocks_per_slice = DOCK_PARENTS };
	KVS_ASSERT(layout_open(&spec, NULL, &dock->layout, NULL) == 0);
	options = dock_options(dock, buffers);
	KVS_ASSERT(cpu_open(&options, mode, &dock->copier, NULL) == 0);
	return dock;
}

void dock_close(struct dock *dock)
{
	copier_close(dock->copier);
	layout_close(&dock->layout);
	free(dock);
}

/* --- the image -------------------------------------------------------------------------------- */

/* B_g by hand, and S is 512: the Host's side without hostmap.c. */
static uint8_t *host_at(struct dock *dock, uint32_t group, uint32_t block, uint32_t field)
{
	static const uint32_t packing[] = { 2, 1, 2 }, bytes[] = { 256, 300, 256 };
	const uint32_t        parent = (block - 1) / packing[group], slot = (block - 1) % packing[group];

	return dock->image.host + parent * 512 + slot * bytes[group] +
	       (field ? fields[group][0].payload_bytes : 0);
}

static uint8_t *device_at(struct dock *dock, uint32_t group, uint32_t block, uint32_t field)
{
	const struct layout_field_spec *const spec = &fields[group][field];

	return dock->image.device[spec->buffer] + spec->offset + spec->stride * block;
}

static uint32_t field_count(uint32_t group)
{
	return group == 2 ? 1 : 2;
}

void dock_expect_pair(struct dock *dock, enum copier_stream stream, struct copier_pair pair)
{
	uint32_t f;

	for (f = 0; f < field_count(pair.group); f++) {
		uint8_t *const device = device_at(dock, pair.group, pair.device_block, f);
		uint8_t *const host = host_at(dock, pair.group, pair.host_block, f);

		memcpy(stream == COPIER_LOAD ? device : host, stream == COPIER_LOAD ? host : device,
		       fields[pair.group][f].payload_bytes);
	}
}

void dock_expect_zero(struct dock *dock, struct copier_block block)
{
	uint32_t f;

	for (f = 0; f < field_count(block.group); f++) {
		memset(device_at(dock, block.group, block.block, f), 0,
		       fields[block.group][f].payload_bytes);
	}
}

void dock_expect_clone(struct dock *dock, struct copier_clone clone)
{
	uint32_t f;

	for (f = 0; f < field_count(clone.group); f++) {
		memcpy(device_at(dock, clone.group, clone.target, f),
		       device_at(dock, clone.group, clone.source, f),
		       fields[clone.group][f].payload_bytes);
	}
}

bool dock_is_as_expected(const struct dock *dock)
{
	return memcmp(&dock->memory, &dock->image, sizeof(dock->memory)) == 0;
}

/* --- the engine ------------------------------------------------------------------------------- */

void dock_submit(struct dock *dock, enum copier_stream stream, uint64_t ticket,
		 const struct copier_pair *pairs, uint32_t count)
{
	const struct copier_batch batch = { .ticket = ticket, .pairs = pairs, .pair_count = count };
	uint32_t                  i;

	KVS_ASSERT(copier_submit(dock->copier, stream, &batch) == 0);
	for (i = 0; i < count; i++)
		dock_expect_pair(dock, stream, pairs[i]);
}

void dock_settle(struct dock *dock)
{
	int stream;

	for (stream = 0; stream < COPIER_STREAMS; stream++) {
		while (dock->mode == CPU_STEPPED && cpu_step(dock->copier, (enum copier_stream)stream))
			;
		KVS_ASSERT(copier_wait(dock->copier, (enum copier_stream)stream, UINT64_MAX));
	}
	copier_audit(dock->copier);
}

void dock_polls(struct dock *dock, enum copier_stream stream, uint64_t ticket)
{
	struct copier_done done;

	KVS_ASSERT(copier_poll(dock->copier, &done));
	KVS_ASSERT_CMP(done.stream, ==, stream);
	KVS_ASSERT_CMP(done.ticket, ==, ticket);
	copier_audit(dock->copier);
}
