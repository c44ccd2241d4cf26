/* SPDX-License-Identifier: Apache-2.0 */
/* See hostmap.h. */
#include "arena/hostmap.h"

#include <inttypes.h>

static int check_group(const struct hostmap_group *group, uint32_t id, uint32_t parent_count,
		       struct kvs_error *err)
{
	if (group->packing == 0)
		return err_set(err, KVS_E_INVALID, "group %u: packing: 0, must be at least 1", id);
	if (group->block_bytes == 0) {
		return err_set(err, KVS_E_INVALID, "group %u: block_bytes: 0, must be at least 1",
			       id);
	}
	if (group->packing > HOSTMAP_BLOCK_MAX / parent_count) {
		return err_set(err, KVS_E_INVALID,
			       "group %u: packing: %u, in %u parents block numbers would pass %d", id,
			       group->packing, parent_count, HOSTMAP_BLOCK_MAX);
	}
	return 0;
}

static uint64_t align(uint64_t bytes)
{
	return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* From the front of a block to that of its neighbour, with room for a trailer between. */
static uint64_t roomy_stride(const struct hostmap_group *group)
{
	return align(group->block_bytes + ARENA_TRAILER_BYTES);
}

/* False on overflow.  The last block has the parent's own trailer behind it. */
static bool roomy_bytes(const struct hostmap_group *group, uint32_t parent_count, uint64_t *ret_bytes)
{
	const uint64_t most = INT64_MAX / parent_count;

	if (group->block_bytes > most - 2 * ARENA_TRAILER_BYTES ||
	    __builtin_mul_overflow(group->packing, roomy_stride(group), ret_bytes))
		return false;
	*ret_bytes = align(*ret_bytes - roomy_stride(group) + group->block_bytes);
	return *ret_bytes <= most;
}

int hostmap_make(const struct hostmap_group *groups, uint32_t group_count, uint32_t parent_count,
		 struct hostmap *ret_hostmap, struct kvs_error *err)
{
	struct hostmap hostmap = { .parent_count = parent_count, .group_count = group_count };
	uint64_t       bytes, roomy;
	uint32_t       g;

	if (group_count == 0 || group_count > HOSTMAP_GROUPS_MAX) {
		return err_set(err, KVS_E_INVALID, "group_count: %u, must be 1 to %u", group_count,
			       HOSTMAP_GROUPS_MAX);
	}
	if (parent_count == 0 || parent_count > HOSTMAP_BLOCK_MAX) {
		return err_set(err, KVS_E_INVALID, "parent_count: %u, must be 1 to %d",
			       parent_count, HOSTMAP_BLOCK_MAX);
	}
	for (g = 0; g < group_count; g++) {
		const int rc = check_group(&groups[g], g, parent_count, err);

		if (rc < 0)
			return rc;
		if (!roomy_bytes(&groups[g], parent_count, &roomy)) {
			return err_set(err, KVS_E_INVALID,
				       "group %u: block_bytes: %" PRIu64
				       ", %u in each of %u parents overflow 63 bits",
				       g, groups[g].block_bytes, groups[g].packing, parent_count);
		}
		hostmap.group[g] = groups[g];
		bytes = groups[g].packing * groups[g].block_bytes;
		if (bytes > hostmap.parent_bytes)
			hostmap.parent_bytes = bytes;
		if (roomy > hostmap.part_bytes)
			hostmap.part_bytes = roomy;
	}
	*ret_hostmap = hostmap;
	return 0;
}

void hostmap_place(const struct hostmap *hostmap, uint32_t group, uint32_t block,
		   uint32_t *ret_parent, uint64_t *ret_inside)
{
	KVS_ASSERT_CMP(group, <, hostmap->group_count);
	KVS_ASSERT_CMP(block, >, 0);
	KVS_ASSERT_CMP(block, <=, hostmap_last(hostmap, group));
	*ret_parent = (block - 1) / hostmap->group[group].packing;
	*ret_inside = (block - 1) % hostmap->group[group].packing *
		      hostmap->group[group].block_bytes;
}

struct kvs_span hostmap_span(const struct hostmap *hostmap, const struct arena_part *part,
			     uint32_t group, uint32_t block)
{
	const struct hostmap_group *const of = &hostmap->group[group];
	const uint64_t stride = part->block_bytes >= hostmap->part_bytes ? roomy_stride(of)
									 : of->block_bytes;
	uint32_t parent, slot;
	uint64_t inside;

	KVS_ASSERT_CMP(hostmap->parent_bytes, <=, part->block_bytes);
	hostmap_place(hostmap, group, block, &parent, &inside);
	slot = (block - 1) % of->packing;
	inside = slot * stride;
	return (struct kvs_span){ .ptr = (uint8_t *)arena_block(part, parent).ptr + inside,
				  .bytes = of->block_bytes,
				  .room = slot + 1 == of->packing ? part->stride - inside : stride };
}

int hostmap_find(const struct hostmap *hostmap, uint32_t group, uint32_t block,
		 uint64_t *ret_offset, struct kvs_error *err)
{
	uint64_t inside;
	uint32_t parent;

	if (group >= hostmap->group_count) {
		return err_set(err, KVS_E_INVALID, "group: %u, must be below %u", group,
			       hostmap->group_count);
	}
	if (block == 0 || block > hostmap_last(hostmap, group)) {
		return err_set(err, KVS_E_INVALID, "group %u: block: %u, must be 1 to %u", group,
			       block, hostmap_last(hostmap, group));
	}
	hostmap_place(hostmap, group, block, &parent, &inside);
	*ret_offset = parent * hostmap->parent_bytes + inside;
	return 0;
}
