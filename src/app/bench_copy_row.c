/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of `kvstrata bench copy`: Device and Host memory, an engine between them, and memcpy.
 *
 * Both move the same blocks between the same places, each block once a pass, in the same shuffled
 * order, in turns.  memcpy is called once a field, on the bench's own thread; "whole" is memcpy of as
 * many bytes as a block has, in one piece: what no layout in pieces need reach.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench.h"
#include "app/bench_copy.h"
#include "base/prng.h"
#include "device/cpu.h"
#include "os/os.h"

/* What an engine gets at once: about the prefix of one request. */
#define BATCH_BYTES (UINT64_C(16) << 20)

/* Beside a block: its pair, its row in either stream, and a ticket where a batch is one block. */
#define BESIDE_BLOCK UINT64_C(96)

struct bench {
	struct arena            *arena;
	struct arena_part        host;
	uint8_t                 *device; /* the null block first */
	size_t                   device_bytes;
	struct layout            layout;
	struct copier           *copier;
	struct copier_pair      *pairs;  /* a permutation of the blocks */
	uint64_t                 bytes;  /* of a block */
	uint32_t                 blocks;
	uint32_t                 batch;  /* blocks */
};

/* --- bytes ------------------------------------------------------------------------------------ */

static void fill_block(uint8_t *block, uint64_t bytes, uint64_t seed)
{
	struct prng prng;
	uint64_t    at;

	prng_seed(&prng, seed);
	for (at = 0; at < bytes; at += sizeof(uint64_t)) {
		const uint64_t word = prng_u64(&prng);

		memcpy(block + at, &word, sizeof(word));
	}
}

static bool is_filled(const uint8_t *block, uint64_t bytes, uint64_t seed)
{
	struct prng prng;
	uint64_t    at;

	prng_seed(&prng, seed);
	for (at = 0; at < bytes; at += sizeof(uint64_t)) {
		const uint64_t word = prng_u64(&prng);

		if (memcmp(block + at, &word, sizeof(word)) != 0)
			return false;
	}
	return true;
}

/* --- one pass --------------------------------------------------------------------------------- */

static double gb_s(const struct bench *bench, uint64_t begin_ns)
{
	return (double)(bench->blocks * bench->bytes) / (double)(os_now_ns() - begin_ns);
}

static double pass_engine(struct bench *bench, enum copier_stream stream)
{
	const uint64_t     begin_ns = os_now_ns();
	uint32_t           first;
	double             rate;
	struct copier_done done;

	for (first = 0; first < bench->blocks; first += bench->batch) {
		const uint32_t            left = bench->blocks - first;
		const struct copier_batch batch = { .ticket = first,
						    .pairs = bench->pairs + first,
						    .pair_count = left < bench->batch ? left : bench->batch };

		/* Its tables hold all blocks. */
		KVS_ASSERT(copier_submit(bench->copier, stream, &batch) == 0);
	}
	KVS_ASSERT(copier_wait(bench->copier, stream, UINT64_MAX));
	rate = gb_s(bench, begin_ns);
	while (copier_poll(bench->copier, &done))
		;
	return rate;
}

static double pass_memcpy(struct bench *bench, enum copier_stream stream)
{
	const uint64_t begin_ns = os_now_ns();
	uint32_t       i, f;

	for (i = 0; i < bench->blocks; i++) {
		uint8_t *const host = arena_block(&bench->host, bench->pairs[i].host_block - 1).ptr;

		for (f = 0; f < bench->layout.field_count; f++) {
			const struct layout_field *const field = &bench->layout.fields[f];
			uint8_t *const on_device = bench->device + field->offset +
						   field->stride * bench->pairs[i].device_block;
			uint8_t *const on_host = host + field->host_offset;

			if (stream == COPIER_LOAD)
				memcpy(on_device, on_host, field->payload_bytes);
			else
				memcpy(on_host, on_device, field->payload_bytes);
		}
	}
	return gb_s(bench, begin_ns);
}

static double pass_whole(struct bench *bench, enum copier_stream stream)
{
	const uint64_t begin_ns = os_now_ns();
	uint32_t       i;

	for (i = 0; i < bench->blocks; i++) {
		uint8_t *const host = arena_block(&bench->host, bench->pairs[i].host_block - 1).ptr;
		uint8_t *const device = bench->device + bench->bytes * bench->pairs[i].device_block;

		if (stream == COPIER_LOAD)
			memcpy(device, host, bench->bytes);
		else
			memcpy(host, device, bench->bytes);
	}
	return gb_s(bench, begin_ns);
}

static void measure(struct bench *bench, double *ret_figures)
{
	ret_figures[H2D_WHOLE] = pass_whole(bench, COPIER_LOAD);
	ret_figures[D2H_WHOLE] = pass_whole(bench, COPIER_SAVE);
	ret_figures[H2D_MEMCPY] = pass_memcpy(bench, COPIER_LOAD);
	ret_figures[H2D] = pass_engine(bench, COPIER_LOAD);
	ret_figures[D2H_MEMCPY] = pass_memcpy(bench, COPIER_SAVE);
	ret_figures[D2H] = pass_engine(bench, COPIER_SAVE);
	ret_figures[H2D_RATIO] = ret_figures[H2D] / ret_figures[H2D_MEMCPY];
	ret_figures[D2H_RATIO] = ret_figures[D2H] / ret_figures[D2H_MEMCPY];
}

/* Down, wiped and up again: the engine moved what it says it moved. */
static int verify(struct bench *bench, struct kvs_error *err)
{
	uint32_t i;

	for (i = 0; i < bench->blocks; i++)
		fill_block(arena_block(&bench->host, i).ptr, bench->bytes, i);
	(void)pass_engine(bench, COPIER_LOAD);
	for (i = 0; i < bench->blocks; i++)
		memset(arena_block(&bench->host, i).ptr, 0, bench->bytes);
	(void)pass_engine(bench, COPIER_SAVE);
	for (i = 0; i < bench->blocks; i++) {
		if (!is_filled(arena_block(&bench->host, i).ptr, bench->bytes, i))
			return err_set(err, -EIO, "block %u did not come back as it was", i);
	}
	return 0;
}

/* --- a row ------------------------------------------------------------------------------------ */

static int open_layout(struct bench *bench, bool gather, struct kvs_error *err)
{
	static char                       ids[BENCH_COPY_FIELDS][32];
	static const char                *id_list[BENCH_COPY_FIELDS];
	static struct layout_field_spec   fields[BENCH_COPY_FIELDS];
	const uint32_t                    count = gather ? BENCH_COPY_FIELDS : 1;
	const uint64_t                    stride = bench->bytes / count;
	const struct layout_group_spec    group = { .packing = 1, .fields = fields,
						    .field_count = count };
	const struct layout_buffer        buffer = { .bytes = bench->device_bytes };
	const struct layout_consumer_spec consumer = { id_list, count };
	const struct layout_spec          spec = { .parent_count = bench->blocks,
						   .groups = &group, .group_count = 1,
						   .buffers = &buffer, .buffer_count = 1,
						   .consumers = &consumer, .consumer_count = 1 };
	uint32_t                          i;

	for (i = 0; i < count; i++) {
		snprintf(ids[i], sizeof(ids[i]), "layer.%u.%s", i / 2, i % 2 ? "v" : "k");
		id_list[i] = ids[i];
		fields[i] = (struct layout_field_spec){ .id = ids[i],
							.offset = i * stride * (bench->blocks + 1),
							.stride = stride,
							.payload_bytes = stride };
	}
	return layout_open(&spec, NULL, &bench->layout, err);
}

static uint64_t device_bytes(uint64_t bytes, uint32_t blocks)
{
	return bytes * ((uint64_t)blocks + 1);
}

uint64_t bench_copy_memory_bytes(const struct bench_copy_row *row)
{
	return arena_part_bytes(row->bytes, row->blocks) + device_bytes(row->bytes, row->blocks) +
	       row->blocks * BESIDE_BLOCK;
}

static int open_memory(struct bench *bench, struct kvs_error *err)
{
	void *device;
	int   rc = arena_open(arena_part_bytes(bench->bytes, bench->blocks), 0, &bench->arena, err);

	if (rc == 0)
		rc = arena_carve(bench->arena, bench->bytes, bench->blocks, &bench->host, err);
	if (rc < 0)
		return rc;
	bench->device_bytes = device_bytes(bench->bytes, bench->blocks);
	rc = os_pages_map(bench->device_bytes, &device);
	if (rc < 0)
		return err_set(err, rc, "memory of the Device: %s", kvs_strerror(rc));
	bench->device = device;
	(void)os_pages_advise_huge(device, bench->device_bytes);
	memset(device, 0, bench->device_bytes);
	return 0;
}

/* Device blocks in their order, each with a Host block of its own. */
static int open_pairs(struct bench *bench, struct kvs_error *err)
{
	struct prng prng;
	uint32_t    i;

	bench->pairs = calloc(bench->blocks, sizeof(*bench->pairs));
	if (!bench->pairs)
		return err_set(err, -ENOMEM, "no memory for %u pairs", bench->blocks);
	prng_seed(&prng, 1);
	for (i = 0; i < bench->blocks; i++) {
		const uint32_t j = (uint32_t)prng_below(&prng, i + 1);

		bench->pairs[i] = (struct copier_pair){ .device_block = i + 1,
							.host_block = bench->pairs[j].host_block };
		bench->pairs[j].host_block = i + 1;
	}
	return 0;
}

static int open_row(struct bench *bench, const struct bench_copy_row *row, struct kvs_error *err)
{
	struct copier_options options = { .layout = &bench->layout, .host = &bench->host };
	void                 *buffer;
	int                   rc;

	bench->batch = row->bytes < BATCH_BYTES ? (uint32_t)(BATCH_BYTES / row->bytes) : 1;
	rc = open_memory(bench, err);
	if (rc == 0)
		rc = open_layout(bench, row->gather, err);
	if (rc == 0)
		rc = open_pairs(bench, err);
	if (rc < 0)
		return rc;
	buffer = bench->device;
	options.buffers = &buffer;
	options.ticket_max = (bench->blocks + bench->batch - 1) / bench->batch;
	options.row_max = bench->blocks;
	return cpu_open(&options, CPU_THREADS, &bench->copier, err);
}

static void close_row(struct bench *bench)
{
	copier_close(bench->copier);
	layout_close(&bench->layout);
	free(bench->pairs);
	if (bench->device)
		os_pages_unmap(bench->device, bench->device_bytes);
	if (bench->arena)
		arena_close(bench->arena);
}

int bench_copy_measure(const struct bench_copy *set, struct bench_copy_row *row,
		       struct kvs_error *err)
{
	static double all[BENCH_COPY_FIGURES][BENCH_RUNS_MAX];
	struct bench  bench = { .bytes = row->bytes, .blocks = row->blocks };
	double        figures[BENCH_COPY_FIGURES];
	uint64_t      run;
	int           f, rc = open_row(&bench, row, err);

	if (rc == 0)
		rc = verify(&bench, err);
	for (run = 0; rc == 0 && run < set->runs; run++) {
		measure(&bench, figures);
		for (f = 0; f < BENCH_COPY_FIGURES; f++)
			all[f][run] = figures[f];
	}
	close_row(&bench);
	for (f = 0; rc == 0 && f < BENCH_COPY_FIGURES; f++)
		row->figures[f] = bench_median(all[f], (uint32_t)set->runs);
	return rc;
}
