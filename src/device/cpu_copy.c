/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See cpu_copy.h.  A block that is one piece is one memcpy, and so are neighbours that touch on both sides.
 *
 * A load into many small pieces writes around the caches: memcpy fetches each line of the Device
 * before it overwrites it, and pieces of 1 KiB came to half the rate of whole blocks; without the fetch
 * they are faster than those (`kvstrata bench copy`).  A save's targets touch, and memcpy does well.
 */
#include "device/cpu_copy.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LINE_BYTES 64u

static const struct cpu_row *row_at(const struct cpu_rows *rows, uint32_t i)
{
	return &rows->at[(rows->first + i) % rows->capacity];
}

static uint8_t *piece_at(const struct copier_piece *piece, uint32_t block)
{
	return piece->device + piece->stride * block;
}

/* --- one block in pieces ---------------------------------------------------------------------- */

#ifdef __SSE2__
static void copy_around(uint8_t *target, const uint8_t *source, uint64_t bytes)
{
	uint64_t at;

	if ((uintptr_t)target % LINE_BYTES != 0 || bytes % LINE_BYTES != 0) {
		memcpy(target, source, bytes);
		return;
	}
	for (at = 0; at < bytes; at += LINE_BYTES) {
		const __m128i *const from = (const __m128i *)(const void *)(source + at);
		__m128i *const       to = (__m128i *)(void *)(target + at);
		const __m128i        a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
		const __m128i        c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);

		_mm_stream_si128(to, a);
		_mm_stream_si128(to + 1, b);
		_mm_stream_si128(to + 2, c);
		_mm_stream_si128(to + 3, d);
	}
}

/* Stores around the caches are not ordered by a lock alone. */
static void order_stores(void)
{
	_mm_sfence();
}
#else
static void copy_around(uint8_t *target, const uint8_t *source, uint64_t bytes)
{
	memcpy(target, source, bytes);
}

static void order_stores(void)
{
}
#endif

static void scatter(const struct copier *copier, uint32_t group, uint32_t block,
		    const uint8_t *host)
{
	const struct copier_piece *const pieces = copier_pieces(copier, group);
	uint32_t                         i;

	for (i = 0; i < copier->layout->group[group].piece_count; i++)
		copy_around(piece_at(&pieces[i], block), host + pieces[i].host_offset, pieces[i].bytes);
}

static void gather(const struct copier *copier, uint32_t group, uint32_t block, uint8_t *host)
{
	const struct copier_piece *const pieces = copier_pieces(copier, group);
	uint32_t                         i;

	for (i = 0; i < copier->layout->group[group].piece_count; i++)
		memcpy(host + pieces[i].host_offset, piece_at(&pieces[i], block), pieces[i].bytes);
}

/* --- rows ------------------------------------------------------------------------------------- */

static bool touches(const struct copier *copier, const struct cpu_row *row,
		    const struct cpu_row *next, const uint8_t *host_end)
{
	return next->kind == CPU_PAIR && next->group == row->group &&
	       next->device_block == row->device_block + 1 &&
	       copier_host(copier, next->group, next->other) == host_end;
}

/* From row i on, the rows that one memcpy can move; their bytes. */
static uint32_t run_from(const struct copier *copier, const struct cpu_rows *rows, uint32_t i,
			 uint8_t *host, uint64_t *ret_bytes)
{
	const struct cpu_row      *row = row_at(rows, i);
	const struct copier_piece *piece = copier_pieces(copier, row->group);
	uint32_t                   length = 1;

	/* With a gap behind each block's payload, no two touch. */
	while (piece->bytes == piece->stride && i + length < rows->count &&
	       touches(copier, row, row_at(rows, i + length), host + length * piece->bytes)) {
		row = row_at(rows, i + length);
		length++;
	}
	*ret_bytes = length * piece->bytes;
	return length;
}

static uint32_t copy_run(const struct copier *copier, enum copier_stream stream,
			 const struct cpu_rows *rows, uint32_t i)
{
	const struct cpu_row *const row = row_at(rows, i);
	uint8_t *const device = piece_at(copier_pieces(copier, row->group), row->device_block);
	uint8_t *const host = copier_host(copier, row->group, row->other);
	uint64_t       bytes;
	const uint32_t length = run_from(copier, rows, i, host, &bytes);

	if (stream == COPIER_LOAD)
		memcpy(device, host, bytes);
	else
		memcpy(host, device, bytes);
	return length;
}

static uint32_t copy_pairs(const struct copier *copier, enum copier_stream stream,
			   const struct cpu_rows *rows, uint32_t i, struct copier_stats *stats)
{
	const struct cpu_row *const row = row_at(rows, i);
	uint8_t                    *host;
	uint32_t                    length = 1;

	if (copier->way[row->group] == COPIER_DIRECT) {
		length = copy_run(copier, stream, rows, i);
	} else {
		host = copier_host(copier, row->group, row->other);
		if (stream == COPIER_LOAD)
			scatter(copier, row->group, row->device_block, host);
		else
			gather(copier, row->group, row->device_block, host);
	}
	stats->copies++;
	stats->pairs += length;
	stats->pair_bytes += length * copier->layout->group[row->group].block_bytes;
	return length;
}

static void zero(const struct copier *copier, const struct cpu_row *row, struct copier_stats *stats)
{
	const struct copier_piece *const pieces = copier_pieces(copier, row->group);
	uint32_t                         i;

	for (i = 0; i < copier->layout->group[row->group].piece_count; i++)
		memset(piece_at(&pieces[i], row->device_block), 0, pieces[i].bytes);
	stats->zero_bytes += copier->layout->group[row->group].block_bytes;
}

static void clone(const struct copier *copier, const struct cpu_row *row, struct copier_stats *stats)
{
	const struct copier_piece *const pieces = copier_pieces(copier, row->group);
	uint32_t                         i;

	/* The source may have been loaded just now, by stores that are still on their way. */
	order_stores();
	for (i = 0; i < copier->layout->group[row->group].piece_count; i++) {
		memcpy(piece_at(&pieces[i], row->device_block), piece_at(&pieces[i], row->other),
		       pieces[i].bytes);
	}
	stats->clone_bytes += copier->layout->group[row->group].block_bytes;
}

void cpu_copy(const struct copier *copier, enum copier_stream stream, const struct cpu_rows *rows,
	      struct copier_stats *stats)
{
	uint32_t i = 0;

	while (i < rows->count) {
		const struct cpu_row *const row = row_at(rows, i);
		uint32_t                    length = 1;

		switch (row->kind) {
		case CPU_ZERO:
			zero(copier, row, stats);
			break;
		case CPU_PAIR:
			length = copy_pairs(copier, stream, rows, i, stats);
			break;
		case CPU_CLONE:
			clone(copier, row, stats);
			break;
		}
		i += length;
	}
	order_stores();
}
