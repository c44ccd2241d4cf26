/* SPDX-License-Identifier: Apache-2.0 */
/* See copier.h: what is common to all engines, binding and the checks of a batch. */
#include "device/copier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"

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

static int check_options(const struct copier_options *options, struct kvs_error *err)
{
	if (options->ticket_max == 0)
		return err_set(err, KVS_E_INVALID, "ticket_max: 0, must be at least 1");
	if (options->row_max == 0)
		return err_set(err, KVS_E_INVALID, "row_max: 0, must be at least 1");
	return 0;
}

static int bind_host(struct copier *copier, const struct arena_part *host, struct kvs_error *err)
{
	const int rc = layout_hostmap(copier->layout, host->block_count, &copier->hostmap, err);

	if (rc == 0 && host->block_bytes < copier->hostmap.parent_bytes) {
		return err_set(err, KVS_E_INVALID,
			       "host: blocks of %zu bytes, a parent has %" PRIu64, host->block_bytes,
			       copier->hostmap.parent_bytes);
	}
	return rc;
}

int copier_bind(struct copier *copier, const struct copier_ops *ops,
		const struct copier_options *options, struct kvs_error *err)
{
	const struct layout *const layout = options->layout;
	uint64_t                   bits = 0;
	uint32_t                   g;
	int                        rc = check_options(options, err);

	copier->ops = ops;
	copier->layout = layout;
	copier->host = options->host;
	copier->row_max = options->row_max;
	if (rc == 0)
		rc = bind_host(copier, options->host, err);
	if (rc < 0)
		return rc;
	for (g = 0; g < layout->group_count; g++) {
		copier->first_bit[g] = bits;
		bits += (uint64_t)layout_last(layout, g) + 1;
		copier->way[g] = layout->group[g].piece_count == 1 ? COPIER_DIRECT : COPIER_GATHER;
	}
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
	uint32_t g;
	uint64_t bits = 0;

	for (g = 0; g < copier->layout->group_count; g++)
		bits += (uint64_t)layout_last(copier->layout, g) + 1;
	/* Marks last as long as a check. */
	KVS_ASSERT_CMP(bits_count(copier->written, bits), ==, 0);
	copier->ops->audit(copier);
}
