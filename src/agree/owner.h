/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners: the ranks that hold one cache together, and which rows each of them holds.
 *
 * All owners run the same scheduler on the same ticks, so block numbers mean the same everywhere.
 * A group has a *cycle* S.  Where it is 1 every owner holds every block, each with its own part of
 * the heads.  The blocks of a *page-cyclic* group, S > 1, are dealt out in turn: block b is held by
 * the owners whose rank is (b - 1) modulo S, and by no other.  A parent that packs K blocks of such
 * a group takes the room of K / S of them on each owner, so S divides K, and credits, which count
 * blocks, do not change.
 *
 * A key names the payload and not its place: its *replica* is rank / S, so that whichever owner a
 * new block falls to finds the object that another one wrote.  Where S is 1 each rank has objects
 * of its own.
 */
#ifndef AGREE_OWNER_H
#define AGREE_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "match/groups.h"
#include "op/op.h"

#define OWNERS_MAX 64u

struct owner_group {
	uint32_t cycle;            /* S; 1: every owner holds every block */
	bool     head_partitioned; /* some field's heads are dealt out over the ranks */
};

struct owner {
	uint32_t rank;
	uint32_t count; /* owners; each op needs a fact of all of them */
	uint32_t cycle[GROUPS_MAX];
};

/**
 * Errors  KVS_E_INVALID: the sentence names the group and the field.  rank below count, count 1 to
 *         OWNERS_MAX; S at least 1, a divisor of count and of the group's packing; a page-cyclic
 *         group is not head_partitioned, for another owner's part would mean other bytes.
 */
int owner_make(const struct groups *groups, const struct owner_group *owner_groups, uint32_t rank,
	       uint32_t count, struct owner *ret_owner, struct kvs_error *err);

/* An owner that is alone: it holds everything. */
struct owner owner_alone(void);

/* Does this owner hold the block?  Blocks are numbered from 1. */
static inline bool owner_holds(const struct owner *owner, uint32_t group, uint32_t block)
{
	return (block - 1) % owner->cycle[group] == owner->rank % owner->cycle[group];
}

/* The number of a held block among the blocks that this owner holds, from 1. */
static inline uint32_t owner_local(const struct owner *owner, uint32_t group, uint32_t block)
{
	return (block - 1) / owner->cycle[group] + 1;
}

/* Which payload a key of this group names. */
static inline uint16_t owner_replica(const struct owner *owner, uint32_t group)
{
	return (uint16_t)(owner->rank / owner->cycle[group]);
}

#endif
