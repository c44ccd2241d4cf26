/* SPDX-License-Identifier: Apache-2.0 */
/* See groups.h: what a caller says of a model's groups is checked here, once. */
#include "match/groups.h"

#include <string.h>

static int check_name(const struct group_spec *specs, uint32_t id, struct kvs_error *err)
{
	const char *const name = specs[id].name;
	uint32_t          other;

	if (!name || !*name)
		return err_set(err, KVS_E_INVALID, "group %u: name: is empty; give one", id);
	for (other = 0; other < id; other++) {
		if (strcmp(specs[other].name, name) == 0) {
			return err_set(err, KVS_E_INVALID,
				       GROUP_LABEL "name: is that of group %u; each has its own", id,
				       name, other);
		}
	}
	return 0;
}

static int check_window(const struct group_spec *spec, uint32_t id, struct kvs_error *err)
{
	switch (spec->kind) {
	case GROUP_WINDOW:
		if (spec->window_tokens > 0)
			return 0;
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "window_tokens: 0 is too small; use at least 1", id,
			       spec->name);
	case GROUP_FULL:
	case GROUP_STATE:
		if (spec->window_tokens == 0)
			return 0;
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "window_tokens: %u, but the kind has no window; use 0", id,
			       spec->name, spec->window_tokens);
	}
	return err_set(err, KVS_E_INVALID, GROUP_LABEL "kind: %u is unknown; use full, window or state",
		       id, spec->name, (unsigned int)spec->kind);
}

static int check_spec(const struct group_spec *specs, uint32_t id, uint32_t page_tokens,
		      struct kvs_error *err)
{
	const struct group_spec *const spec = &specs[id];
	int                            rc = check_name(specs, id, err);

	if (rc < 0)
		return rc;
	if (spec->block_tokens == 0 || page_tokens % spec->block_tokens != 0) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "block_tokens: %u does not divide page_tokens, %u", id,
			       spec->name, spec->block_tokens, page_tokens);
	}
	if (spec->packing == 0) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "packing: 0 is too small; use at least 1", id, spec->name);
	}
	return check_window(spec, id, err);
}

static uint32_t window_of(const struct group_spec *spec)
{
	return spec->kind == GROUP_STATE ? 2 : spec->window_tokens;
}

/* ceil((window - 1) / q), whatever the window is. */
static uint32_t lookback_of(uint32_t window_tokens, uint32_t block_tokens)
{
	if (window_tokens <= 1)
		return 0;
	return (window_tokens - 2) / block_tokens + 1;
}

/* The columns of a group behind those of the groups before it; false when they are too many. */
static bool append_group(struct groups *groups, const struct group_spec *spec)
{
	const uint32_t page_blocks = groups->page_tokens / spec->block_tokens;
	const uint32_t window_tokens = window_of(spec);

	if (page_blocks > COLUMNS_MAX - groups->columns)
		return false;
	memset(&groups->column_group[groups->columns], (int)groups->count, page_blocks);
	groups->group[groups->count] =
		(struct group){ .spec = *spec, .id = groups->count,
				.window_tokens = window_tokens,
				.lookback = lookback_of(window_tokens, spec->block_tokens),
				.page_blocks = page_blocks, .first_column = groups->columns };
	groups->count++;
	groups->columns += page_blocks;
	if (spec->packing > groups->packing_max)
		groups->packing_max = spec->packing;
	return true;
}

int groups_make(const struct group_spec *specs, uint32_t count, uint32_t page_tokens,
		struct groups *ret_groups, struct kvs_error *err)
{
	struct groups groups = { .page_tokens = page_tokens };
	uint32_t      id;
	int           rc;

	if (page_tokens == 0 || page_tokens > TOKENS_MAX) {
		return err_set(err, KVS_E_INVALID, "page_tokens: %u is out of range; use 1 to %d",
			       page_tokens, TOKENS_MAX);
	}
	if (count == 0 || count > GROUPS_MAX) {
		return err_set(err, KVS_E_INVALID, "groups: %u is out of range; use 1 to %u", count,
			       GROUPS_MAX);
	}
	for (id = 0; id < count; id++) {
		rc = check_spec(specs, id, page_tokens, err);
		if (rc < 0)
			return rc;
		if (!append_group(&groups, &specs[id])) {
			return err_set(err, KVS_E_INVALID,
				       GROUP_LABEL "block_tokens: %u makes more than %u blocks of a "
						   "page over all groups",
				       id, specs[id].name, specs[id].block_tokens, COLUMNS_MAX);
		}
	}
	*ret_groups = groups;
	return 0;
}

uint32_t group_expired_blocks(const struct group *group, uint64_t computed)
{
	KVS_ASSERT_CMP(computed, <=, TOKENS_MAX);
	if (group_is_closed(group) || computed < group->window_tokens)
		return 0;
	return (uint32_t)((computed - group->window_tokens + 1) / group->spec.block_tokens);
}
