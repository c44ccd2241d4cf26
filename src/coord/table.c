/* SPDX-License-Identifier: Apache-2.0 */
/* See table.h. */
#include "coord/table.h"

void table_init(struct table *table, uint32_t *slots, uint32_t slot_max)
{
	*table = (struct table){ .slots = slots, .slot_max = slot_max };
}

static bool is_sparse(const struct demand *demand)
{
	return demand->first_slot != DEMAND_DENSE;
}

/* Token number `end` of a request, counted with room reserved, must have a slot. */
static int check_end(const struct table *table, const struct group *group, uint64_t end,
		     struct kvs_error *err)
{
	if (end > TOKENS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "tokens: the demand ends at %llu, must be at most %d",
			       group->id, group->spec.name, (unsigned long long)end, TOKENS_MAX);
	}
	if (group_blocks(group, end) > table->slot_max) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "tokens: the demand needs %u slots, the table has %u",
			       group->id, group->spec.name, group_blocks(group, end), table->slot_max);
	}
	return 0;
}

uint64_t table_end(const struct table *table, const struct group *group)
{
	return group_tokens_at(group, table->count) - table->available;
}

static int plan_dense(const struct table *table, const struct group *group,
		      const struct demand *demand, struct growth *ret_growth, struct kvs_error *err)
{
	const uint64_t tokens = (uint64_t)demand->tokens + demand->reserve;
	uint32_t       blocks = 0;
	int            rc;

	rc = check_end(table, group, table_end(table, group) + tokens, err);
	if (rc < 0)
		return rc;
	if (tokens > table->available)
		blocks = group_blocks(group, tokens - table->available);
	*ret_growth = (struct growth){
		.begin = table->count,
		.blocks = blocks,
		.available = (uint32_t)(table->available + group_tokens_at(group, blocks) -
					demand->tokens),
	};
	return 0;
}

/* The last slot may be written on when it is a tail's private copy. */
static uint32_t lowest_slot(const struct table *table)
{
	return table->count - (table->available > 0 ? 1 : 0);
}

static int check_sparse(const struct table *table, const struct group *group,
			const struct demand *demand, struct kvs_error *err)
{
	const uint64_t end = (uint64_t)demand->tokens + demand->reserve;
	int            rc;

	if (demand->tokens == 0) {
		return err_set(err, KVS_E_INVALID, GROUP_LABEL "tokens: 0, a sparse demand needs an end",
			       group->id, group->spec.name);
	}
	rc = check_end(table, group, end, err);
	if (rc < 0)
		return rc;
	if (table->available >= group->spec.block_tokens) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "available: %u tokens, a sparse demand needs less than "
					   "a block of %u in reserve",
			       group->id, group->spec.name, table->available, group->spec.block_tokens);
	}
	if (demand->first_slot < lowest_slot(table) || demand->first_slot >= group_blocks(group, end)) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "first_slot: %u, must be %u to %u", group->id, group->spec.name,
			       demand->first_slot, lowest_slot(table), group_blocks(group, end) - 1);
	}
	if (demand->tokens < table_end(table, group)) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "tokens: the demand ends at %u, the table is at %llu",
			       group->id, group->spec.name, demand->tokens,
			       (unsigned long long)table_end(table, group));
	}
	return 0;
}

static int plan_sparse(const struct table *table, const struct group *group,
		       const struct demand *demand, struct growth *ret_growth, struct kvs_error *err)
{
	const int rc = check_sparse(table, group, demand, err);
	uint32_t  slots;

	if (rc < 0)
		return rc;
	slots = group_blocks(group, (uint64_t)demand->tokens + demand->reserve);
	ret_growth->begin = demand->first_slot < table->count ? table->count : demand->first_slot;
	ret_growth->blocks = slots - ret_growth->begin;
	ret_growth->available = (uint32_t)(group_tokens_at(group, slots) - demand->tokens);
	return 0;
}

int table_plan(const struct table *table, const struct group *group, const struct demand *demand,
	       struct growth *ret_growth, struct kvs_error *err)
{
	if (is_sparse(demand))
		return plan_sparse(table, group, demand, ret_growth, err);
	return plan_dense(table, group, demand, ret_growth, err);
}

/* Holes at the very beginning were never held: the frontier starts behind them. */
void table_push_holes(struct table *table, uint32_t count)
{
	KVS_ASSERT_CMP(count, <=, table->slot_max - table->count);
	if (table->reclaimed == table->count)
		table->reclaimed += count;
	while (count-- > 0)
		table->slots[table->count++] = BLOCK_NULL;
}

void table_push(struct table *table, uint32_t block)
{
	KVS_ASSERT_CMP(table->count, <, table->slot_max);
	table->slots[table->count++] = block;
}

int table_consume(struct table *table, const struct group *group, uint32_t tokens,
		  struct kvs_error *err)
{
	if (tokens > table->available) {
		return err_set(err, KVS_E_INVALID, GROUP_LABEL "tokens: %u to use, %u are reserved",
			       group->id, group->spec.name, tokens, table->available);
	}
	table->available -= tokens;
	return 0;
}

uint32_t table_expired(const struct table *table, const struct group *group, uint64_t computed)
{
	/* Where the next token may go, no query has been. */
	const uint32_t used = table->count - group_blocks(group, table->available);
	uint32_t       expired;

	if (computed > TOKENS_MAX)
		return table->reclaimed;
	expired = group_expired_blocks(group, computed);
	if (expired < table->reclaimed)
		return table->reclaimed;
	return expired < used ? expired : used;
}

void table_audit(const struct table *table, const struct group *group)
{
	uint32_t i;

	KVS_ASSERT_CMP(table->count, <=, table->slot_max);
	KVS_ASSERT_CMP(table->reclaimed, <=, table->count);
	KVS_ASSERT_CMP(table->available, <=, group_tokens_at(group, table->count));
	for (i = 0; i < table->reclaimed; i++)
		KVS_ASSERT_CMP(table->slots[i], ==, BLOCK_NULL);
}
