/* SPDX-License-Identifier: Apache-2.0 */
/* See owner.h. */
#include "agree/owner.h"

static int check_group(const struct group *group, const struct owner_group *own, uint32_t count,
		       struct kvs_error *err)
{
	const char *const name = group->spec.name;

	if (own->cycle == 0 || count % own->cycle != 0) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "cycle: %u, must divide the %u owners",
			       group->id, name, own->cycle, count);
	}
	if (group->spec.packing % own->cycle != 0) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "cycle: %u, must divide the %u blocks of a parent",
			       group->id, name, own->cycle, group->spec.packing);
	}
	if (own->cycle > 1 && own->head_partitioned) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "head_partitioned: blocks dealt out over %u owners must be the "
					   "same bytes on each",
			       group->id, name, own->cycle);
	}
	return 0;
}

int owner_make(const struct groups *groups, const struct owner_group *owner_groups, uint32_t rank,
	       uint32_t count, struct owner *ret_owner, struct kvs_error *err)
{
	struct owner owner = owner_alone();
	uint32_t     g;

	if (count == 0 || count > OWNERS_MAX) {
		return err_set(err, KVS_E_INVALID, "count: %u owners, must be 1 to %u", count,
			       OWNERS_MAX);
	}
	if (rank >= count)
		return err_set(err, KVS_E_INVALID, "rank: %u, must be below %u", rank, count);
	for (g = 0; g < groups->count; g++) {
		const int rc = check_group(&groups->group[g], &owner_groups[g], count, err);

		if (rc < 0)
			return rc;
		owner.cycle[g] = owner_groups[g].cycle;
	}
	owner.rank = rank;
	owner.count = count;
	*ret_owner = owner;
	return 0;
}

struct owner owner_alone(void)
{
	struct owner owner = { .count = 1 };
	uint32_t     g;

	for (g = 0; g < GROUPS_MAX; g++)
		owner.cycle[g] = 1;
	return owner;
}
