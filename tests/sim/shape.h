/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a run: owners, groups, and where each byte of a block lies.
 *
 * Host     Each rank has memory of its own, parent behind parent, with the blocks that it holds
 *          (arena/hostmap.h, by the numbers of owner_local()).
 * Device   The groups that every rank holds share a rank's bytes, as on an accelerator: a parent that
 *          changes its group keeps what the last one left there.  A page-cyclic group has memory of its
 *          own, one for each payload replica, that all ranks of the replica see: rows of one block are
 *          written by whoever holds its Host block, and read by all, as attention over all pages does.
 *
 * A rank's part of a group has rows of its own: the engine knows each part as a group (shape_part()), so
 * that another rank's payload is wrong.
 */
#ifndef SIM_SHAPE_H
#define SIM_SHAPE_H

#include "agree/owner.h"
#include "arena/hostmap.h"
#include "engine/groups.h"
#include "oracle.h"

#define RANKS_MAX   4u
#define GROUPS      3u
#define LAYERS      2u
#define PARENT_BYTES 256u
#define DEVICE_PARENTS 80u
#define HOST_PARENTS   24u
#define PACKING_MAX 4u

struct shape {
	uint32_t           ranks;
	uint32_t           group_count;
	struct group_spec  specs[GROUPS];
	struct owner_group owners[GROUPS];
	uint32_t           layers[GROUPS];
	struct groups      groups;
	uint32_t           device_parents;
	uint32_t           host_parents;
	uint32_t           first_part[GROUPS]; /* of the engine's groups */
	uint32_t           part_count;
};

/* Of one block. */
static inline uint32_t shape_field_bytes(const struct shape *shape, uint32_t group)
{
	return shape->specs[group].kind == GROUP_STATE ? 8
						       : 8 * shape->specs[group].block_tokens;
}

static inline uint32_t shape_block_bytes(const struct shape *shape, uint32_t group)
{
	return shape_field_bytes(shape, group) * shape->layers[group];
}

static inline uint32_t shape_replicas(const struct shape *shape, uint32_t group)
{
	return shape->ranks / shape->owners[group].cycle;
}

/* The engine's group that a replica's part of a group is. */
static inline uint32_t shape_part(const struct shape *shape, uint32_t group, uint32_t replica)
{
	return shape->first_part[group] + replica;
}

/* Groups, cycles and sizes are set: the rest.  Errors as those of groups_make(). */
int shape_make(struct shape *shape, struct kvs_error *err);
void shape_hostmap(const struct shape *shape, uint32_t host_parents, struct hostmap *ret_hostmap);

/*
 * What lies in a block of a prefix: rows of its tokens, or a checkpoint.  NULL when it is right as far as
 * the prefix reaches, or a sentence, good until the next call.
 */
struct content {
	uint32_t      version;
	struct prefix prefix;
	uint32_t      group;
	uint32_t      offset;
	uint32_t      replica;
};
/* The row of one token of the prefix's page, or its checkpoint, at its place in a block. */
void        shape_fill_token(const struct shape *shape, const struct content *content, uint32_t token,
			     void *bytes);
void        shape_fill(const struct shape *shape, const struct content *content, void *bytes);
const char *shape_check(const struct shape *shape, const struct content *content, const void *bytes);

/* Words that name the op that left them. */
void shape_scribble(uint64_t op_id, void *bytes, size_t byte_count);

#endif
