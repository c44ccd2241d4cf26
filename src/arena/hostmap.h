/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The geometry of Host blocks: numbers only, no Device buffer and no pointer.
 *
 * Host memory is parents of equal bytes S.  A parent holds packing (K) blocks of one group, one
 * behind the other from its front; a block of group g is B_g bytes, its fields without padding, and
 * S is the greatest K * B_g.  Blocks of a group are numbered from 1, through all parents:
 *
 *   parent = (block - 1) / K,  slot = (block - 1) % K,  offset = parent * S + slot * B_g
 *
 * so that (offset, B_g) is all that storage needs to know of a block.  The offset counts parents
 * that touch; where they are blocks of an arena part, hostmap_span() says where the bytes are.  A part
 * of blocks of part_bytes (a multiple of ARENA_ALIGN) has room for a trailer behind every block, not
 * only behind the last of a parent: what a store needs that takes one span a key.
 */
#ifndef ARENA_HOSTMAP_H
#define ARENA_HOSTMAP_H

#include "arena/arena.h"
#include "base/err.h"

#define HOSTMAP_GROUPS_MAX 16u
/* A group's block numbers must fit into an engine's 32-bit block tables. */
#define HOSTMAP_BLOCK_MAX INT32_MAX

struct hostmap_group {
	uint32_t packing;     /* K */
	uint64_t block_bytes; /* B_g */
};

struct hostmap {
	uint32_t             parent_count;
	uint32_t             group_count;
	uint64_t             parent_bytes; /* S */
	uint64_t             part_bytes;   /* of a parent with a trailer's room behind each block */
	struct hostmap_group group[HOSTMAP_GROUPS_MAX];
};

/* Errors: KVS_E_INVALID, the sentence names group, value and rule. */
int hostmap_make(const struct hostmap_group *groups, uint32_t group_count, uint32_t parent_count,
		 struct hostmap *ret_hostmap, struct kvs_error *err);

/* The highest number of a group's blocks. */
static inline uint32_t hostmap_last(const struct hostmap *hostmap, uint32_t group)
{
	return hostmap->parent_count * hostmap->group[group].packing;
}

/**
 * Where a block begins, for numbers that come from outside.
 *
 * Errors  KVS_E_INVALID  no such group, the null block 0, or a number past the last.
 */
int hostmap_find(const struct hostmap *hostmap, uint32_t group, uint32_t block,
		 uint64_t *ret_offset, struct kvs_error *err);

/* A block's parent, from 0, and how many bytes behind its front; asserts that they exist. */
void hostmap_place(const struct hostmap *hostmap, uint32_t group, uint32_t block,
		   uint32_t *ret_parent, uint64_t *ret_inside);

/*
 * A block's bytes in a part of which each block is a parent.  Where those have part_bytes the
 * neighbours lie a trailer's room apart; in smaller ones they touch, and only the last block of a parent
 * has room past its payload: the parent's own trailer.  Asserts that the block exists and that the
 * parent has room for it.
 */
struct kvs_span hostmap_span(const struct hostmap *hostmap, const struct arena_part *part,
			     uint32_t group, uint32_t block);

#endif
