/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: everything is checked and planned first, on numbers; then it is done, and nothing of it can
 * fail.  The order in which it is done is part of the contract:
 *
 *   touch and pin the hit, claim it   so that no eviction below can take it
 *   evict what is idle now
 *   publish, then reclaim             what slides out in this round still gets its name
 *   evict what was just let go
 *   take blocks                       for loads and copies, then for the demand
 */
#include "coord/parts.h"

struct admit_plan {
	struct claim  claims[GROUPS_MAX];
	struct growth growths[GROUPS_MAX];
};

/* --- checks ----------------------------------------------------------------------------------- */

static int check_probe(const struct cache *cache, const struct cache_admission *admission,
		       struct kvs_error *err)
{
	const struct cache_probe *const probe = admission->probe;
	uint32_t                        g;

	if (probe->version != cache->version)
		return err_set(err, KVS_E_STALE, "probe: the cache changed since; probe again");
	for (g = 0; g < cache->pages.groups.count; g++) {
		if (admission->tables[g].count > 0) {
			return err_set(err, KVS_E_INVALID,
				       GROUP_LABEL "tables: %u slots; a hit needs an empty table", g,
				       cache->pages.groups.group[g].spec.name,
				       admission->tables[g].count);
		}
	}
	return 0;
}

/* The table as the claim will leave it: what a demand grows. */
static int plan_group(const struct cache *cache, const struct cache_admission *admission,
		      uint32_t g, struct admit_plan *plan, struct kvs_error *err)
{
	const struct group *const group = &cache->pages.groups.group[g];
	struct table              table = admission->tables[g];

	plan->claims[g] = (struct claim){ .slots = table.count, .first = table.count };
	if (admission->probe) {
		plan->claims[g] = claim_count(cache, admission->probe, g);
		table.count = plan->claims[g].slots;
		table.available = plan->claims[g].available;
		if (table.count > table.slot_max) {
			return err_set(err, KVS_E_INVALID,
				       GROUP_LABEL "slot_max: %u, the hit needs %u", g,
				       group->spec.name, table.slot_max, table.count);
		}
	}
	return table_plan(&table, group, &admission->demands[g], &plan->growths[g], err);
}

static int check_and_count(const struct cache *cache, const struct cache_admission *admission,
			   struct admit_plan *plan, struct kvs_error *err)
{
	const uint64_t end = admission->probe ? admission->probe->host_tokens
					      : tables_end(cache, admission->tables);
	uint32_t       slot_counts[GROUPS_MAX];
	uint32_t       g;
	int            rc = 0;

	if (admission->epoch > 0)
		rc = epoch_check(cache, admission->epoch, err);
	if (rc == 0 && admission->probe)
		rc = check_probe(cache, admission, err);
	for (g = 0; rc == 0 && g < cache->pages.groups.count; g++) {
		rc = plan_group(cache, admission, g, plan, err);
		slot_counts[g] = plan->claims[g].slots;
	}
	return rc == 0 ? completed_check(cache, slot_counts, end, &admission->completed, err) : rc;
}

/* --- the plan --------------------------------------------------------------------------------- */

static void protect_hit(struct cache *cache, const struct cache_admission *admission, uint32_t g,
			const struct claim *claim)
{
	uint32_t position;

	for (position = claim->first; position < claim->end; position++) {
		const struct claim_source source =
			claim_source(cache, admission->probe, g, position);

		if (source.stratum == STRATUM_DEVICE)
			shadow_protect(&cache->shadow, g, source.block);
	}
}

/* What this admission itself will let go: one reference of the table's. */
static void offer_expiring(struct cache *cache, const struct cache_admission *admission, uint32_t g)
{
	const struct table *const table = &admission->tables[g];
	const uint32_t            end = table_expired(table, &cache->pages.groups.group[g],
						      admission->completed.computed);
	uint32_t                  i;

	for (i = table->reclaimed; i < end; i++) {
		if (table->slots[i] != BLOCK_NULL)
			shadow_offer(&cache->shadow, g, table->slots[i], 1);
	}
}

static void offer_candidates(struct cache *cache, const struct cache_admission *admission,
			     const struct admit_plan *plan, const struct cache_block *released,
			     uint32_t released_count)
{
	struct shadow *const shadow = &cache->shadow;
	uint32_t             g, i;

	for (i = 0; i < released_count; i++)
		shadow_release(shadow, released[i].group, released[i].block);
	for (g = 0; g < cache->pages.groups.count; g++) {
		if (admission->probe)
			protect_hit(cache, admission, g, &plan->claims[g]);
		else if (admission->completed.computed != COMPUTED_NONE)
			offer_expiring(cache, admission, g);
	}
	for (i = 0; i < released_count; i++)
		shadow_offer(shadow, released[i].group, released[i].block, 0);
}

static bool plan_evictions(struct cache *cache, const struct cache_admission *admission,
			   const struct admit_plan *plan, const struct cache_block *released,
			   uint32_t released_count)
{
	struct shadow *const shadow = &cache->shadow;
	uint32_t             g;

	shadow_begin(shadow);
	for (g = 0; g < cache->pages.groups.count; g++)
		shadow_need(shadow, g, claim_blocks(&plan->claims[g]) + plan->growths[g].blocks);
	/* Most admissions fit as it is, and then nobody is looked at. */
	if (shadow_fits(shadow))
		return true;
	offer_candidates(cache, admission, plan, released, released_count);
	return shadow_plan(shadow);
}

/* --- the hit ---------------------------------------------------------------------------------- */

static void claim_position(struct cache *cache, const struct cache_admission *admission,
			   uint32_t g, uint32_t position, uint64_t epoch)
{
	const struct claim_source source = claim_source(cache, admission->probe, g, position);
	struct shelf *const       shelf = &cache->shelves[source.stratum];

	/* Pinned first: a block that is not idle moves without a place in a list. */
	shelf_pin(shelf, g, source.block);
	shelf_touch(shelf, g, source.block, epoch, CELL_NONE, true);
	if (source.stratum == STRATUM_DEVICE && !source.copied)
		admission->tables[g].slots[position] = source.block;
}

/* Tables get their length, holes where a block is still to come. */
static void claim_hit(struct cache *cache, const struct cache_admission *admission,
		      const struct admit_plan *plan, uint64_t epoch)
{
	uint32_t g, position;

	for (g = 0; g < cache->pages.groups.count; g++) {
		const struct claim *const claim = &plan->claims[g];
		struct table *const       table = &admission->tables[g];

		table_push_holes(table, claim->first);
		for (position = claim->first; position < claim->slots; position++)
			table_push(table, BLOCK_NULL);
		table->available = claim->available;
		for (position = claim->first; position < claim->end; position++)
			claim_position(cache, admission, g, position, epoch);
	}
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* What the admission reports while it is being built. */
struct lists {
	uint32_t load_count;
	uint32_t copy_count;
	uint32_t fresh_count;
	uint32_t first_copy; /* copies stand behind all loads */
};

static void report_move(struct cache *cache, const struct cache_admission *admission,
			struct lists *lists, uint32_t g, uint32_t position)
{
	const struct group *const group = &cache->pages.groups.group[g];
	const struct claim_source source = claim_source(cache, admission->probe, g, position);
	const uint32_t            target = admission->tables[g].slots[position];
	const bool                load = source.stratum == STRATUM_HOST;
	struct cache_move *const  move = &cache->moves[load ? lists->load_count++
							    : lists->first_copy +
								      lists->copy_count++];

	*move = (struct cache_move){ .group = g, .position = position, .source = source.block,
				     .target = target, .from_host = load };
	move->tokens = group_tokens_in(group, position, admission->probe->host_tokens);
	shelf_pin(device_of(cache), g, target);
	cache->moving++;
}

/* The blocks of the hit that the table does not share. */
static void fill_claim(struct cache *cache, const struct cache_admission *admission, uint32_t g,
		       const struct claim *claim, struct lists *lists)
{
	uint32_t *const slots = admission->tables[g].slots;
	const uint32_t *next = cache->taken;
	uint32_t        position;

	KVS_ASSERT(pool_acquire(device_of(cache)->pool, g, claim_blocks(claim), cache->taken));
	for (position = claim->first; position < claim->slots; position++) {
		if (slots[position] != BLOCK_NULL)
			continue;
		slots[position] = *next++;
		if (position < claim->end)
			report_move(cache, admission, lists, g, position);
		else
			cache->fresh[lists->fresh_count++] = slots[position];
	}
	KVS_ASSERT_CMP(next - cache->taken, ==, claim_blocks(claim));
}

static void grow(struct cache *cache, struct table *table, uint32_t g, const struct growth *growth,
		 struct lists *lists)
{
	uint32_t *const blocks = &cache->fresh[lists->fresh_count];
	uint32_t        i;

	KVS_ASSERT(pool_acquire(device_of(cache)->pool, g, growth->blocks, blocks));
	table_push_holes(table, growth->begin - table->count);
	for (i = 0; i < growth->blocks; i++)
		table_push(table, blocks[i]);
	table->available = growth->available;
	lists->fresh_count += growth->blocks;
}

static void take_blocks(struct cache *cache, const struct cache_admission *admission,
			const struct admit_plan *plan, struct cache_admitted *ret_admitted)
{
	struct lists lists = { 0 };
	uint32_t     g;

	for (g = 0; g < cache->pages.groups.count; g++)
		lists.first_copy += plan->claims[g].loads;
	for (g = 0; g < cache->pages.groups.count; g++) {
		const uint32_t before = lists.fresh_count;

		if (admission->probe)
			fill_claim(cache, admission, g, &plan->claims[g], &lists);
		grow(cache, &admission->tables[g], g, &plan->growths[g], &lists);
		ret_admitted->fresh_count[g] = lists.fresh_count - before;
	}
	ret_admitted->moves = cache->moves;
	ret_admitted->load_count = lists.load_count;
	ret_admitted->copy_count = lists.copy_count;
	ret_admitted->fresh = cache->fresh;
}

/* --- evictions -------------------------------------------------------------------------------- */

static bool evict_if_idle(struct cache *cache, const struct shadow_block *victim)
{
	if (!order_is_idle(&device_of(cache)->order, victim->place))
		return false;
	cell_evict(cache, STRATUM_DEVICE, victim->place);
	return true;
}

/* What the first pass could not take yet stays in the list. */
static void evict_idle(struct cache *cache)
{
	struct shadow *const shadow = &cache->shadow;
	uint32_t             kept = 0;
	uint32_t             i;

	for (i = 0; i < shadow->victim_count; i++) {
		if (!evict_if_idle(cache, &shadow->victims[i]))
			shadow->victims[kept++] = shadow->victims[i];
	}
	shadow->victim_count = kept;
}

/* A victim that never had a name, or lost it to another block, is free already. */
static void evict_let_go(struct cache *cache)
{
	struct shadow *const shadow = &cache->shadow;
	uint32_t             i;

	for (i = 0; i < shadow->victim_count; i++) {
		const struct shadow_block *const victim = &shadow->victims[i];

		if (!evict_if_idle(cache, victim))
			KVS_ASSERT(!shelf_held(device_of(cache), victim->group, victim->place));
	}
}

/* --- admission -------------------------------------------------------------------------------- */

int cache_admit(struct cache *cache, const struct cache_admission *admission,
		struct cache_admitted *ret_admitted, struct kvs_error *err)
{
	const struct cache_probe *const probe = admission->probe;
	struct cache_admitted           admitted = { .epoch = admission->epoch };
	struct admit_plan               plan;
	int                             rc;

	rc = check_and_count(cache, admission, &plan, err);
	if (rc < 0)
		return rc;
	if (!plan_evictions(cache, admission, &plan, NULL, 0)) {
		shadow_end(&cache->shadow);
		return err_set(err, KVS_E_FULL, "Device: no set of evictions makes room for the demand");
	}
	if (admitted.epoch == 0)
		admitted.epoch = ++cache->clock;
	if (probe) {
		admitted.device_tokens = probe->device_tokens;
		admitted.host_tokens = probe->host_tokens;
		admitted.promotion_tokens = probe->promotion_tokens;
		claim_hit(cache, admission, &plan, admitted.epoch);
	}
	evict_idle(cache);
	completed_publish(cache, admission->tables, &admission->completed, admitted.epoch);
	if (admission->completed.computed != COMPUTED_NONE)
		cache_reclaim(cache, admission->tables, admission->completed.computed);
	evict_let_go(cache);
	shadow_end(&cache->shadow);
	take_blocks(cache, admission, &plan, &admitted);
	*ret_admitted = admitted;
	return 0;
}

/* Are they blocks of Device at all?  Whether somebody holds them does not matter: then nothing goes. */
static bool check_released(const struct shelf *device, const struct cache_block *released,
			   uint32_t released_count)
{
	uint32_t i;

	for (i = 0; i < released_count; i++) {
		if (!shelf_has(device, released[i].group, released[i].block))
			return false;
	}
	return true;
}

bool cache_can_admit(struct cache *cache, const struct cache_admission *admission,
		     const struct cache_block *released, uint32_t released_count)
{
	struct admit_plan plan;
	bool              fits;

	if (check_and_count(cache, admission, &plan, NULL) < 0 ||
	    !check_released(device_of(cache), released, released_count))
		return false;
	fits = plan_evictions(cache, admission, &plan, released, released_count);
	shadow_end(&cache->shadow);
	return fits;
}
