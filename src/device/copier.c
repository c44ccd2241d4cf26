/* SPDX-License-Identifier: Apache-2.0 */
/* See copier.h: what is common to all engines, binding and the checks of a batch. */
#include "device/copier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "os/os.h"

/* --- binding ---------------------------------------------------------------------------------- */

static void bind_pieces(struct copier *copier, void *const *buffers)
{
	const struct layout *const layout = copier->layout;
	uint32_t                   i;

	for (i = 0; i < layout->piece_count; i++) {
		const struct layout_piece *const piece = &layout->pieces[i];

		copier->pieces[i] = (struct copier_piece){
			.device = (uint8_t *)buffers[piece->buffer] + piece->offset,
			.stride = piece->stride,
			.bytes = piece->bytes,
			.host_offset = piece->host_offset,
		};
	}
}

static int check_count(const char *name, uint32_t count, uint32_t max, struct kvs_error *err)
{
	if (count >= 1 && count <= max)
		return 0;
	return err_set(err, KVS_E_INVALID, "%s: %u, must be 1 to %u", name, count, max);
}

static int check_host(const struct layout *layout, const struct arena_part *host,
		      struct kvs_error *err)
{
	struct hostmap hostmap;
	const int      rc = layout_hostmap(layout, host->block_count, &hostmap, err);

	if (rc < 0)
		err_prefix(err, "host");
	if (rc == 0 && host->block_bytes < hostmap.parent_bytes) {
		return err_set(err, KVS_E_INVALID,
			       "host: blocks of %zu bytes, a parent has %" PRIu64, host->block_bytes,
			       hostmap.parent_bytes);
	}
	return rc;
}

/* Of all groups, null blocks among them: at most 16 times 2^31. */
static uint64_t device_blocks(const struct layout *layout)
{
	uint64_t blocks = 0;
	uint32_t g;

	for (g = 0; g < layout->group_count; g++)
		blocks += (uint64_t)layout_last(layout, g) + 1;
	return blocks;
}

static int check_memory(const struct copier_options *options, uint64_t engine_bytes,
			struct kvs_error *err)
{
	const uint64_t blocks = device_blocks(options->layout);
	const uint64_t have = os_memory_available_bytes();
	const uint64_t need = engine_bytes + bits_words(blocks) * sizeof(uint64_t);

	if (need <= have)
		return 0;
	return err_set(err, -ENOMEM,
		       "ticket_max, row_max: %u and %u, their tables and those of %" PRIu64
		       " Device blocks take %" PRIu64 " bytes; %" PRIu64 " are available",
		       options->ticket_max, options->row_max, blocks, need, have);
}

int copier_check(const struct copier_options *options, uint64_t engine_bytes,
		 struct kvs_error *err)
{
	int rc = check_count("ticket_max", options->ticket_max, COPIER_TICKETS_MAX, err);

	if (rc == 0)
		rc = check_count("row_max", options->row_max, COPIER_ROWS_MAX, err);
	if (rc == 0)
		rc = check_host(options->layout, options->host, err);
	if (rc == 0)
		rc = check_memory(options, engine_bytes, err);
	return rc;
}

int copier_bind(struct copier *copier, const struct copier_ops *ops,
		const struct copier_options *options, struct kvs_error *err)
{
	const struct layout *const layout = options->layout;
	const uint64_t             blocks = device_blocks(layout);
	uint64_t                   bits = 0;
	uint32_t                   g;

	copier->ops = ops;
	copier->layout = layout;
	copier->host = options->host;
	copier->row_max = options->row_max;
	KVS_ASSERT(layout_hostmap(layout, options->host->block_count, &copier->hostmap, NULL) == 0);
	for (g = 0; g < layout->group_count; g++) {
		copier->first_bit[g] = bits;
		bits += (uint64_t)layout_last(layout, g) + 1;
		copier->way[g] = layout->group[g].piece_count == 1 ? COPIER_DIRECT : COPIER_GATHER;
	}
	KVS_ASSERT_CMP(bits, ==, blocks);
	copier->pieces = calloc(layout->piece_count, sizeof(*copier->pieces));
	copier->written = calloc(bits_words(bits), sizeof(*copier->written));
	if (!copier->pieces || !copier->written) {
		return err_set(err, -ENOMEM, "no memory for the tables of %" PRIu64 " Device blocks",
			       bits);
	}
	bind_pieces(copier, options->buffers);
	return 0;
}

void copier_unbind(struct copier *copier)
{
	free(copier->pieces);
	free(copier->written);
}

/* --- a batch ---------------------------------------------------------------------------------- */

static uint64_t bit_of(const struct copier *copier, uint32_t group, uint32_t block)
{
	KVS_ASSERT_CMP(group, <, copier->layout->group_count);
	KVS_ASSERT_CMP(block, >, 0);
	KVS_ASSERT_CMP(block, <=, layout_last(copier->layout, group));
	return copier->first_bit[group] + block;
}

/* A zero that ran over a loaded block would destroy it, and two sources make one block neither. */
static void mark_written(struct copier *copier, uint32_t group, uint32_t block)
{
	const uint64_t bit = bit_of(copier, group, block);

	KVS_ASSERT(!bits_test(copier->written, bit));
	bits_set(copier->written, bit);
}

static void check_load(struct copier *copier, const struct copier_batch *batch)
{
	uint32_t i;

	for (i = 0; i < batch->zero_count; i++)
		mark_written(copier, batch->zeros[i].group, batch->zeros[i].block);
	for (i = 0; i < batch->pair_count; i++)
		mark_written(copier, batch->pairs[i].group, batch->pairs[i].device_block);
	for (i = 0; i < batch->clone_count; i++) {
		mark_written(copier, batch->clones[i].group, batch->clones[i].target);
		(void)bit_of(copier, batch->clones[i].group, batch->clones[i].source);
		KVS_ASSERT_CMP(batch->clones[i].source, !=, batch->clones[i].target);
	}
}

static void forget_load(struct copier *copier, const struct copier_batch *batch)
{
	uint32_t i;

	for (i = 0; i < batch->zero_count; i++) {
		bits_clear(copier->written,
			   bit_of(copier, batch->zeros[i].group, batch->zeros[i].block));
	}
	for (i = 0; i < batch->pair_count; i++) {
		bits_clear(copier->written,
			   bit_of(copier, batch->pairs[i].group, batch->pairs[i].device_block));
	}
	for (i = 0; i < batch->clone_count; i++) {
		bits_clear(copier->written,
			   bit_of(copier, batch->clones[i].group, batch->clones[i].target));
	}
}

static void check_batch(struct copier *copier, enum copier_stream stream,
			const struct copier_batch *batch)
{
	const uint64_t rows = (uint64_t)batch->zero_count + batch->pair_count + batch->clone_count;
	uint32_t       i;

	/* More would be refused for ever. */
	KVS_ASSERT_CMP(rows, <=, copier->row_max);
	for (i = 0; i < batch->pair_count; i++) {
		(void)bit_of(copier, batch->pairs[i].group, batch->pairs[i].device_block);
		(void)copier_host(copier, batch->pairs[i].group, batch->pairs[i].host_block);
	}
	if (stream == COPIER_SAVE) {
		KVS_ASSERT_CMP(batch->zero_count, ==, 0);
		KVS_ASSERT_CMP(batch->clone_count, ==, 0);
		return;
	}
	check_load(copier, batch);
	forget_load(copier, batch);
}

int copier_submit(struct copier *copier, enum copier_stream stream,
		  const struct copier_batch *batch)
{
	check_batch(copier, stream, batch);
	if (copier->ops->submit(copier, stream, batch))
		return 0;
	copier->refused[stream]++;
	return KVS_E_FULL;
}

bool copier_poll(struct copier *copier, struct copier_done *ret_done)
{
	static const enum copier_stream order[] = { COPIER_SAVE, COPIER_LOAD };
	uint64_t                        ticket;
	size_t                          i;

	for (i = 0; i < ARRAY_COUNT(order); i++) {
		if (copier->ops->poll(copier, order[i], &ticket)) {
			*ret_done = (struct copier_done){ order[i], ticket };
			return true;
		}
	}
	return false;
}

bool copier_wait(struct copier *copier, enum copier_stream stream, uint64_t timeout_ns)
{
	return copier->ops->wait(copier, stream, timeout_ns);
}

void copier_stats(struct copier *copier, enum copier_stream stream, struct copier_stats *ret_stats)
{
	copier->ops->stats(copier, stream, ret_stats);
	ret_stats->refused = copier->refused[stream];
}

void copier_close(struct copier *copier)
{
	if (copier)
		copier->ops->close(copier);
}

void copier_audit(struct copier *copier)
{
	/* Marks last as long as a check. */
	KVS_ASSERT_CMP(bits_count(copier->written, device_blocks(copier->layout)), ==, 0);
	copier->ops->audit(copier);
}
