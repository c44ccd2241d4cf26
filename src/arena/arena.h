/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory: one pinned region that every Host block lives in.
 *
 * Concept  A memfd mapping, made once, kept out of forked children, on huge pages and locked as far
 *          as they can be had; what was had is reported, never assumed.  It is cut into slices of
 *          at most 1 GiB, because the kernel refuses larger fixed I/O buffers, and no block crosses
 *          a slice.  Parts are carved from the front: pools of blocks for door A, raw bytes for door
 *          B's objects, each their own.
 * Path     GET fills a block, PUT reads it, H2D and D2H copy from and to it; all by pointer, no
 *          copy of payload.
 * Limits   Sizes are fixed at open; nothing allocates after the parts are carved.
 * Threads  open, carve and close: one.  Addresses may be used from any thread.
 */
#ifndef ARENA_ARENA_H
#define ARENA_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ARENA_SLICE_BYTES ((size_t)1 << 30)

/* Payload offsets and strides are multiples of this, so that O_DIRECT works on every block. */
#define ARENA_ALIGN 4096u

/* Room behind each block for the checksum and identity of stores that take one span a key. */
#define ARENA_TRAILER_BYTES 4096u

#define ARENA_PARTS_MAX 8

enum arena_pages { ARENA_PAGES_BASE, ARENA_PAGES_TRANSPARENT_HUGE, ARENA_PAGES_HUGETLB };

struct arena_report {
	size_t           bytes;        /* mapped */
	uint32_t         slice_count;
	enum arena_pages pages;        /* what the kernel granted or was advised */
	bool             locked;       /* mlock succeeded: never swapped */
	bool             no_fork;      /* MADV_DONTFORK succeeded */
	bool             registrable;  /* RLIMIT_MEMLOCK or privilege allows registering every slice */
	char             note[160];    /* one sentence on what could not be had and why; "" when all was */
};

struct arena;

/*
 * Blocks of one size inside the arena.  Each slice is a row of blocks_per_slice places, one stride
 * apart; the part takes block_count places in a run, beginning `first` places behind base.
 */
struct arena_part {
	uint8_t *base;             /* the slice that the part begins in, which an earlier part may share */
	size_t   block_bytes;      /* payload */
	size_t   stride;           /* payload and trailer, a multiple of ARENA_ALIGN */
	uint32_t block_count;
	uint32_t blocks_per_slice;
	uint32_t first;            /* places at base that are not the part's; may be all of that slice */
};

/*
 * Bytes of an arena that surely hold block_count blocks of block_bytes, wherever the part begins:
 * add up the parts before opening.  0 for what arena_carve() refuses as invalid.
 */
size_t arena_part_bytes(size_t block_bytes, uint32_t block_count);

enum arena_flag {
	/* No hugetlb, no lock, pages at first touch: for tools that map much and touch little. */
	ARENA_LAZY = 1 << 0
};

/**
 * Map a region of at least `bytes`; flags are enum arena_flag, 0 for a data path.
 *
 * Errors  KVS_E_INVALID  bytes is 0;
 *         -ENOMEM        more than this process may have: locking it would get it killed;
 *         -errno         memory or descriptors could not be had.
 *         Lacking huge pages or locking is no error: see the report.
 */
int arena_open(size_t bytes, unsigned flags, struct arena **ret_arena, struct kvs_error *err);

/**
 * Unmap, unless the arena was retained: then the mapping stays until the process ends, because late
 * I/O of a store may still land in it, and only the struct goes.
 */
void arena_close(struct arena *arena);

/* A store was attached: from now on the mapping outlives arena_close(). */
void arena_retain(struct arena *arena);

/**
 * Cut a part off the free front of the arena.
 *
 * Errors  KVS_E_INVALID  block_bytes is 0, no multiple of 4 KiB, or larger than a slice holds;
 *                        block_count is 0;
 *         KVS_E_FULL     not enough room left or too many parts; the sentence has needed and free
 *                        bytes.
 */
int arena_carve(struct arena *arena, size_t block_bytes, uint32_t block_count,
		struct arena_part *ret_part, struct kvs_error *err);

/*
 * A part without blocks, for objects of any size: exactly `bytes`, as one piece, or cut into more where
 * slices meet, in order.  A piece that a slice begins with is as long as the slice, the last one excepted.
 *
 * Shape   At most arena_piece_count(bytes) pieces; of each, ptr is on a page, bytes and room are equal.
 * Errors  KVS_E_INVALID  bytes is 0 or no multiple of 4 KiB;
 *         KVS_E_FULL     as arena_carve().
 */
int arena_carve_bytes(struct arena *arena, size_t bytes, struct kvs_span *ret_pieces, uint32_t *ret_count,
		      struct kvs_error *err);

/* Room for the pieces of so many bytes, wherever the part begins. */
static inline uint32_t arena_piece_count(size_t bytes)
{
	return (uint32_t)(bytes / ARENA_SLICE_BYTES) + 2;
}

const struct arena_report *arena_report(const struct arena *arena);

/* Slice i as an address and a length, for registration with an I/O interface; i < slice_count. */
struct kvs_span arena_slice(const struct arena *arena, uint32_t i);

/* The memfd, for a process that maps the same region; -1 never. */
int arena_fd(const struct arena *arena);

/* Block i of a part: payload at ptr, room for the trailer behind it. */
struct kvs_span arena_block(const struct arena_part *part, uint32_t i);

/* O(parts): parts lie inside the arena, in order, and no two overlap. */
void arena_audit(const struct arena *arena);

#endif
