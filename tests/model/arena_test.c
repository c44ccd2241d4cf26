/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carving against an array of owners, one a page: no page has two, no block crosses a slice, and
 * each block lies at the first place that the rule allows, found by walking instead of by formula.
 * Raw bytes lie where the last part ended, cut where slices meet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "arena/arena.h"
#include "base/prng.h"
#include "prop.h"

/* Three slices and a piece, mapped lazily: nothing is touched. */
#define BYTES (3 * ARENA_SLICE_BYTES + ((size_t)70 << 20))

struct world {
	struct arena *arena;
	uint8_t      *owned; /* 1 a page that some block has */
	size_t        end;   /* of the last block */
	uint32_t      part_count;
};

static void reopen(struct world *world, size_t bytes)
{
	const struct arena_report *report;

	arena_close(world->arena);
	KVS_ASSERT(arena_open(bytes, ARENA_LAZY, &world->arena, NULL) == 0);
	report = arena_report(world->arena);
	KVS_ASSERT_CMP(report->bytes, >=, bytes);
	free(world->owned);
	world->owned = calloc(report->bytes / ARENA_ALIGN, 1);
	KVS_ASSERT(world->owned);
	world->end = 0;
	world->part_count = 0;
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	reopen(world, BYTES);
	return world;
}

static size_t offset_of(const struct world *world, const void *ptr)
{
	return (size_t)((const uint8_t *)ptr - (uint8_t *)arena_slice(world->arena, 0).ptr);
}

/* The first offset at or after `from` where a block may lie: a whole number of strides into its slice. */
static size_t next_place(size_t from, size_t stride)
{
	const size_t slice = from / ARENA_SLICE_BYTES * ARENA_SLICE_BYTES;
	const size_t inside = (from - slice + stride - 1) / stride * stride;

	return inside + stride <= ARENA_SLICE_BYTES ? slice + inside : slice + ARENA_SLICE_BYTES;
}

/* End of block_count blocks behind `from`, by walking. */
static size_t walk_end(size_t from, size_t stride, uint32_t block_count)
{
	uint32_t i;

	for (i = 0; i < block_count; i++)
		from = next_place(from, stride) + stride;
	return from;
}

static void own(struct world *world, size_t offset, size_t bytes)
{
	size_t page;

	KVS_ASSERT_CMP(offset % ARENA_ALIGN, ==, 0);
	KVS_ASSERT_CMP(offset + bytes, <=, arena_report(world->arena)->bytes);
	KVS_ASSERT_CMP(offset / ARENA_SLICE_BYTES, ==, (offset + bytes - 1) / ARENA_SLICE_BYTES);
	for (page = offset / ARENA_ALIGN; page < (offset + bytes) / ARENA_ALIGN; page++) {
		KVS_ASSERT_CMP(world->owned[page], ==, 0);
		world->owned[page] = 1;
	}
}

static void own_part(struct world *world, const struct arena_part *part, size_t block_bytes,
		     uint32_t block_count)
{
	uint32_t i;

	KVS_ASSERT_CMP(part->block_bytes, ==, block_bytes);
	KVS_ASSERT_CMP(part->block_count, ==, block_count);
	for (i = 0; i < block_count; i++) {
		const struct kvs_span span = arena_block(part, i);

		KVS_ASSERT_CMP(span.bytes, ==, block_bytes);
		KVS_ASSERT_CMP(span.room, >=, block_bytes + ARENA_TRAILER_BYTES);
		KVS_ASSERT_CMP(offset_of(world, span.ptr), ==,
			       next_place(world->end, part->stride));
		own(world, offset_of(world, span.ptr), span.room);
		world->end = offset_of(world, span.ptr) + span.room;
	}
}

static int carve(struct world *world, size_t block_bytes, uint32_t block_count)
{
	const size_t end = walk_end(world->end, block_bytes + ARENA_TRAILER_BYTES, block_count);
	const size_t      bytes = arena_report(world->arena)->bytes;
	const bool        fits = end <= bytes && world->part_count < ARENA_PARTS_MAX;
	struct arena_part part;
	const int         rc = arena_carve(world->arena, block_bytes, block_count, &part, NULL);

	KVS_ASSERT_CMP(rc, ==, fits ? 0 : KVS_E_FULL);
	if (fits) {
		own_part(world, &part, block_bytes, block_count);
		world->part_count++;
	}
	arena_audit(world->arena);
	return rc;
}

/* Raw bytes are exactly those behind what is used, whatever slices they lie in. */
static void carve_bytes(struct world *world, size_t bytes)
{
	const size_t    left = arena_report(world->arena)->bytes - world->end;
	const bool      fits = bytes <= left && world->part_count < ARENA_PARTS_MAX;
	struct kvs_span pieces[8];
	uint32_t        count = 0, i;
	const int       rc = arena_carve_bytes(world->arena, bytes, pieces, &count, NULL);

	KVS_ASSERT_CMP(rc, ==, fits ? 0 : KVS_E_FULL);
	KVS_ASSERT_CMP(count, <=, arena_piece_count(bytes));
	world->part_count += fits;
	for (i = 0; i < count; i++) {
		KVS_ASSERT_CMP(offset_of(world, pieces[i].ptr), ==, world->end);
		KVS_ASSERT_CMP(pieces[i].bytes, ==, pieces[i].room);
		own(world, world->end, pieces[i].room);
		world->end += pieces[i].room;
		bytes -= pieces[i].room;
	}
	KVS_ASSERT(!fits || bytes == 0);
	arena_audit(world->arena);
}

/*
 * Sizes over all magnitudes; together at most about a slice and a half, so that several parts fit.
 */
static void draw_part(struct prng *prng, size_t *ret_block_bytes, uint32_t *ret_block_count)
{
	const size_t widest = ARENA_SLICE_BYTES / ARENA_ALIGN - 1;
	const size_t pages = 1 + (prng_below(prng, widest) >> prng_below(prng, 18));
	const size_t most = (ARENA_SLICE_BYTES + ARENA_SLICE_BYTES / 2) / (pages * ARENA_ALIGN);

	*ret_block_bytes = pages * ARENA_ALIGN;
	*ret_block_count = 1 + (uint32_t)prng_below(prng, most < 2000 ? most : 2000);
}

/* What arena_part_bytes() adds up to is enough, in whatever order. */
static void fit(struct world *world, struct prng *prng)
{
	const uint32_t part_count = 1 + (uint32_t)prng_below(prng, ARENA_PARTS_MAX);
	size_t         block_bytes[ARENA_PARTS_MAX];
	uint32_t       block_count[ARENA_PARTS_MAX];
	size_t         bytes = 0;
	uint32_t       i;

	for (i = 0; i < part_count; i++) {
		draw_part(prng, &block_bytes[i], &block_count[i]);
		bytes += arena_part_bytes(block_bytes[i], block_count[i]);
	}
	reopen(world, bytes);
	for (i = 0; i < part_count; i++)
		KVS_ASSERT(carve(world, block_bytes[i], block_count[i]) == 0);
}

enum { REOPEN, CARVE, CARVE_BYTES, FIT };

static const struct prop_kind kinds[] = {
	{ "REOPEN", 1 }, { "CARVE", 8 }, { "CARVE_BYTES", 5 }, { "FIT", 2 }
};

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	struct prng         prng;
	size_t              block_bytes;
	uint32_t            block_count;

	prng_seed(&prng, op->arg[0]);
	if (op->kind == REOPEN) {
		reopen(world, BYTES);
	} else if (op->kind == FIT) {
		fit(world, &prng);
	} else {
		draw_part(&prng, &block_bytes, &block_count);
		if (op->kind == CARVE_BYTES)
			carve_bytes(world, block_bytes * block_count);
		else
			carve(world, block_bytes, block_count);
	}
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	arena_close(world->arena);
	free(world->owned);
	free(world);
}

PROP_MAIN("arena", blocks_have_one_owner_and_one_slice, 20, 60, world_close)
