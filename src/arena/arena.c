/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carving: each slice is a row of equal places, and a part is a run of places that may go on in the
 * next row.
 *
 * A part begins at its first whole place behind what earlier parts use, so that one formula finds
 * every block.  That wastes less than a stride where parts of different sizes meet, and less than
 * one at the end of each slice.  A part of raw bytes wastes none.
 */
#include "arena/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arena/region.h"
#include "base/units.h"
#include "os/os.h"

/* What was carved: bytes from the front of the arena. */
struct cut {
	size_t begin;
	size_t end;
};

struct arena {
	struct region region;
	size_t        used;     /* bytes from the front that parts take */
	bool          lazy;
	bool          retained;
	uint32_t      part_count;
	struct cut    parts[ARENA_PARTS_MAX];
};

static size_t stride_of(size_t block_bytes)
{
	return block_bytes + ARENA_TRAILER_BYTES;
}

static bool block_bytes_valid(size_t block_bytes)
{
	return block_bytes > 0 && block_bytes % ARENA_ALIGN == 0 &&
	       block_bytes <= ARENA_SLICE_BYTES - ARENA_TRAILER_BYTES;
}

size_t arena_part_bytes(size_t block_bytes, uint32_t block_count)
{
	const size_t stride = stride_of(block_bytes);
	size_t       per_slice, slice_rest;

	if (!block_bytes_valid(block_bytes) || block_count == 0)
		return 0;
	per_slice = ARENA_SLICE_BYTES / stride;
	slice_rest = ARENA_SLICE_BYTES - per_slice * stride;
	/* Up to the first whole place, the places, and the rest of every slice that the part may leave. */
	return stride - ARENA_ALIGN + block_count * stride +
	       ((block_count - 1) / per_slice + 1) * slice_rest;
}

int arena_open(size_t bytes, unsigned flags, struct arena **ret_arena, struct kvs_error *err)
{
	/* Locking more than there is would get the process killed; lazily mapped bytes need not exist. */
	const uint64_t memory_bytes = flags & ARENA_LAZY ? PTRDIFF_MAX : os_memory_bytes();
	struct arena  *arena;
	char           asked[UNITS_TEXT_BYTES], had[UNITS_TEXT_BYTES];
	int            rc;

	if (bytes == 0)
		return err_set(err, KVS_E_INVALID, "arena: 0 bytes hold no block");
	if (bytes > memory_bytes) {
		return err_set(err, -ENOMEM,
			       "arena: %s is more than all memory of this machine or container, %s",
			       units_format_size(bytes, asked),
			       units_format_size(memory_bytes, had));
	}
	arena = calloc(1, sizeof(*arena));
	if (!arena)
		return err_set(err, -ENOMEM, "arena: no memory for its own record");
	arena->lazy = flags & ARENA_LAZY;
	rc = region_init(&arena->region, bytes, flags);
	if (rc) {
		free(arena);
		return err_set(err, rc, "arena: %s cannot be mapped: %s",
			       units_format_size(bytes, asked), kvs_strerror(rc));
	}
	*ret_arena = arena;
	return 0;
}

void arena_close(struct arena *arena)
{
	if (!arena)
		return;
	region_fini(&arena->region, arena->retained);
	free(arena);
}

void arena_retain(struct arena *arena)
{
	arena->retained = true;
}

/* The part as it would lie behind what is used. */
static struct arena_part part_at(const struct arena *arena, size_t block_bytes,
				 uint32_t block_count)
{
	const size_t stride = stride_of(block_bytes);
	const size_t slice = arena->used / ARENA_SLICE_BYTES;
	const size_t places = ARENA_SLICE_BYTES / stride;
	const size_t taken = (arena->used % ARENA_SLICE_BYTES + stride - 1) / stride;

	return (struct arena_part){ .base = arena->region.base + slice * ARENA_SLICE_BYTES,
				    .block_bytes = block_bytes,
				    .stride = stride,
				    .block_count = block_count,
				    .blocks_per_slice = (uint32_t)places,
				    .first = (uint32_t)(taken < places ? taken : places) };
}

/* Distance of block i from the part's base. */
static size_t block_offset(const struct arena_part *part, uint32_t i)
{
	const uint64_t place = (uint64_t)part->first + i;
	const uint64_t slice = place / part->blocks_per_slice;

	return slice * ARENA_SLICE_BYTES + place % part->blocks_per_slice * part->stride;
}

/* Bytes from the front of the arena to the end of the part, which need not fit into it. */
static size_t part_end(const struct arena *arena, const struct arena_part *part)
{
	const size_t begin = (size_t)(part->base - arena->region.base);

	return begin + block_offset(part, part->block_count - 1) + part->stride;
}

static int check_part(size_t block_bytes, uint32_t block_count, struct kvs_error *err)
{
	if (!block_bytes_valid(block_bytes)) {
		return err_set(err, KVS_E_INVALID,
			       "block_bytes: %zu is not a multiple of %u up to %zu", block_bytes,
			       ARENA_ALIGN, ARENA_SLICE_BYTES - ARENA_TRAILER_BYTES);
	}
	if (block_count == 0)
		return err_set(err, KVS_E_INVALID, "block_count: 0 is less than 1");
	return 0;
}

/*
 * Bring the payload in before it is served from.  Trailers stay untouched until a store uses them:
 * beside small blocks they would double the memory.  A kernel that cannot populate (before 5.14)
 * brings pages in at their first touch.
 */
static int populate(const struct arena *arena, const struct arena_part *part)
{
	uint32_t i;
	int      rc = 0;

	for (i = 0; !arena->lazy && i < part->block_count && rc == 0; i++)
		rc = os_pages_populate(arena_block(part, i).ptr, part->block_bytes);
	return rc == -EINVAL ? 0 : rc;
}

static int populate_bytes(const struct arena *arena, size_t bytes)
{
	const int rc = arena->lazy ? 0 : os_pages_populate(arena->region.base + arena->used, bytes);

	return rc == -EINVAL ? 0 : rc;
}

static int check_room(const struct arena *arena, struct kvs_error *err)
{
	if (arena->part_count < ARENA_PARTS_MAX)
		return 0;
	return err_set(err, KVS_E_FULL, "arena: it has %d parts, the most it can be cut into",
		       ARENA_PARTS_MAX);
}

static void take(struct arena *arena, size_t begin, size_t end)
{
	arena->parts[arena->part_count++] = (struct cut){ begin, end };
	arena->used = end;
}

int arena_carve(struct arena *arena, size_t block_bytes, uint32_t block_count,
		struct arena_part *ret_part, struct kvs_error *err)
{
	int               rc = check_part(block_bytes, block_count, err);
	struct arena_part part;
	size_t            end;

	if (rc == 0)
		rc = check_room(arena, err);
	if (rc < 0)
		return rc;
	part = part_at(arena, block_bytes, block_count);
	end = part_end(arena, &part);
	if (end > arena->region.report.bytes) {
		return err_set(err, KVS_E_FULL,
			       "block_count: %u of %zu bytes need %zu bytes, %zu are free",
			       block_count, block_bytes, end - arena->used,
			       arena->region.report.bytes - arena->used);
	}
	if (populate(arena, &part) < 0) {
		return err_set(err, -ENOMEM, "block_count: no memory for %u of %zu bytes",
			       block_count, block_bytes);
	}
	take(arena, (size_t)(part.base - arena->region.base) + block_offset(&part, 0), end);
	*ret_part = part;
	return 0;
}

/* --- raw bytes -------------------------------------------------------------------------------- */

static uint32_t cut_pieces(const struct arena *arena, size_t bytes, struct kvs_span *ret_pieces)
{
	const size_t end = arena->used + bytes;
	size_t       begin = arena->used;
	uint32_t     count = 0;

	while (begin < end) {
		const size_t slice_left = ARENA_SLICE_BYTES - begin % ARENA_SLICE_BYTES;
		const size_t length = slice_left < end - begin ? slice_left : end - begin;

		ret_pieces[count++] = (struct kvs_span){ .ptr = arena->region.base + begin,
							 .bytes = length,
							 .room = length };
		begin += length;
	}
	KVS_ASSERT_CMP(count, <=, arena_piece_count(bytes));
	return count;
}

int arena_carve_bytes(struct arena *arena, size_t bytes, struct kvs_span *ret_pieces, uint32_t *ret_count,
		      struct kvs_error *err)
{
	const size_t left = arena->region.report.bytes - arena->used;
	int          rc;

	if (bytes == 0 || bytes % ARENA_ALIGN != 0)
		return err_set(err, KVS_E_INVALID, "bytes: %zu is not a multiple of %u", bytes, ARENA_ALIGN);
	rc = check_room(arena, err);
	if (rc < 0)
		return rc;
	if (bytes > left)
		return err_set(err, KVS_E_FULL, "bytes: %zu are more than %zu that are free", bytes, left);
	if (populate_bytes(arena, bytes) < 0)
		return err_set(err, -ENOMEM, "bytes: no memory for %zu", bytes);
	*ret_count = cut_pieces(arena, bytes, ret_pieces);
	take(arena, arena->used, arena->used + bytes);
	return 0;
}

const struct arena_report *arena_report(const struct arena *arena)
{
	return &arena->region.report;
}

struct kvs_span arena_slice(const struct arena *arena, uint32_t i)
{
	const size_t begin = i * ARENA_SLICE_BYTES;
	const size_t left = arena->region.report.bytes - begin;
	const size_t bytes = left < ARENA_SLICE_BYTES ? left : ARENA_SLICE_BYTES;

	KVS_ASSERT_CMP(i, <, arena->region.report.slice_count);
	return (struct kvs_span){ .ptr = arena->region.base + begin,
				  .bytes = bytes,
				  .room = bytes };
}

int arena_fd(const struct arena *arena)
{
	return arena->region.fd;
}

struct kvs_span arena_block(const struct arena_part *part, uint32_t i)
{
	KVS_ASSERT_CMP(i, <, part->block_count);
	return (struct kvs_span){ .ptr = part->base + block_offset(part, i),
				  .bytes = part->block_bytes,
				  .room = part->stride };
}

void arena_audit(const struct arena *arena)
{
	size_t   end = 0;
	uint32_t i;

	KVS_ASSERT_CMP(arena->part_count, <=, ARENA_PARTS_MAX);
	for (i = 0; i < arena->part_count; i++) {
		KVS_ASSERT_CMP(arena->parts[i].begin, >=, end);
		KVS_ASSERT_CMP(arena->parts[i].end, >, arena->parts[i].begin);
		KVS_ASSERT_CMP(arena->parts[i].begin % ARENA_ALIGN, ==, 0);
		end = arena->parts[i].end;
	}
	KVS_ASSERT_CMP(arena->used, ==, end);
	KVS_ASSERT_CMP(arena->used, <=, arena->region.report.bytes);
}
