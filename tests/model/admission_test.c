/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission against exhaustive search, on caches of a dozen blocks: random groups, packings, windows,
 * prompts with shared beginnings and tails, requests at every stage.
 *
 * After each operation the cache is audited and every reference is accounted for: index, tables, rows
 * under way and pins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "cache_world.h"
#include "naive.h"
#include "prop.h"

/* --- the world -------------------------------------------------------------------------------- */

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	world_open_cache(world, 1);
	return world;
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	world_close_cache(world);
	free(world);
}

static void reopen(struct world *world, uint64_t seed)
{
	world_close_cache(world);
	world_open_cache(world, seed);
}

/* --- an admission and its plan ---------------------------------------------------------------- */

static void check_victims(const struct world *world, const struct naive_plan *plan)
{
	uint32_t i;

	for (i = 0; i < plan->block_count; i++) {
		const struct naive_block *const block = &plan->blocks[i];
		const bool     chosen = i < plan->candidate_count && (plan->victims >> i & 1);
		const uint32_t removed = world->removed[block->group * 20 + block->block];

		/* A block that gets its name and goes in one admission was chosen without one. */
		if (block->published)
			KVS_ASSERT_CMP(removed, ==, chosen);
		else
			KVS_ASSERT_CMP(removed, <=, chosen);
	}
}

/* What a refused admission must not change. */
struct trace {
	uint64_t     clock;
	uint32_t     used;
	struct table tables[3];
	uint32_t     slots[3][WORLD_SLOTS];
	uint64_t     epochs;
};

static struct trace trace_of(const struct world *world, const struct world_request *request)
{
	const struct pool *const pool = cache_pool(world->cache, STRATUM_DEVICE);
	struct trace             trace = { .clock = cache_clock(world->cache) };
	uint32_t                 parent, slot, g;
	struct cell_view         view;

	memcpy(trace.tables, request->tables, sizeof(trace.tables));
	memcpy(trace.slots, request->slots, sizeof(trace.slots));
	for (parent = 1; parent <= pool_parent_count(pool); parent++) {
		trace.used += pool_used(pool, parent);
		if (!pool_bound(pool, parent, &g))
			continue;
		for (slot = 0; slot < pool_packing(pool, g); slot++) {
			const uint32_t block = 1 + (parent - 1) * pool_packing(pool, g) + slot;

			if (pool_refs(pool, g, block) > 0 &&
			    cache_view(world->cache, STRATUM_DEVICE, g, block, &view)) {
				trace.epochs = mix64(trace.epochs ^ view.epoch ^ view.kind ^
						     (uint64_t)view.was_acquired << 40);
			}
		}
	}
	return trace;
}

/* Source, target and length of a row are those of its position. */
static void check_row(const struct world *world, const struct world_request *request,
		      const struct naive_names *names, const struct cache_move *move, uint64_t hit)
{
	const struct group *const group = &cache_groups(world->cache)->group[move->group];
	const uint32_t            q = group->spec.block_tokens;
	const uint32_t            page = move->position / group->page_blocks;
	const bool                tail = page == hit / world->page_tokens;
	const uint64_t            rest = hit - (uint64_t)move->position * q;

	KVS_ASSERT(move->from_host || tail);
	world_check_name(world, move->from_host ? STRATUM_HOST : STRATUM_DEVICE, move->group, move->source,
		   tail ? &names->tail : &names->hashes[page], move->position);
	KVS_ASSERT_CMP(move->target, ==, request->tables[move->group].slots[move->position]);
	KVS_ASSERT_CMP(move->tokens, ==, rest < q ? rest : q);
}

static void keep_rows(struct world *world, const struct world_request *request,
		      const struct naive_names *names, const struct cache_admitted *admitted)
{
	uint32_t i;

	for (i = 0; i < admitted->load_count + admitted->copy_count; i++) {
		KVS_ASSERT_CMP(world->row_count, <, WORLD_ROWS);
		KVS_ASSERT_CMP(admitted->moves[i].from_host, ==, i < admitted->load_count);
		check_row(world, request, names, &admitted->moves[i], admitted->host_tokens);
		world->rows[world->row_count++] = admitted->moves[i];
	}
}

/* With everything that the pins hold given back, the answer may be another one. */
static void check_what_if(struct world *world, const struct cache_admission *admission,
			  const struct naive_names *names)
{
	struct naive_plan plan;

	naive_plan(world->cache, admission, names, world->pins, world->pin_count, &plan);
	KVS_ASSERT_CMP(cache_can_admit(world->cache, admission, world->pins, world->pin_count), ==,
		       plan.possible);
}

static bool admit(struct world *world, struct world_request *request,
		  const struct cache_admission *admission, const struct naive_names *names)
{
	const struct trace    before = trace_of(world, request);
	struct trace          after;
	struct cache_admitted admitted;
	struct naive_plan     plan;
	struct kvs_error      err;
	uint64_t              fresh = 0, needed = 0;
	uint32_t              g;
	int                   rc;

	check_what_if(world, admission, names);
	naive_plan(world->cache, admission, names, NULL, 0, &plan);
	memset(world->removed, 0, sizeof(world->removed));
	rc = cache_admit(world->cache, admission, &admitted, &err);
	if (!plan.possible) {
		KVS_ASSERT(rc == KVS_E_FULL);
		after = trace_of(world, request);
		KVS_ASSERT(memcmp(&before, &after, sizeof(before)) == 0);
		return false;
	}
	KVS_ASSERT(rc == 0);
	KVS_ASSERT_CMP(admitted.epoch, ==, request->epoch ? request->epoch : before.clock + 1);
	check_victims(world, &plan);
	for (g = 0; g < world->group_count; g++) {
		fresh += admitted.fresh_count[g];
		needed += plan.needed[g];
	}
	KVS_ASSERT_CMP(fresh + admitted.load_count + admitted.copy_count, ==, needed);
	request->epoch = admitted.epoch;
	keep_rows(world, request, names, &admitted);
	return true;
}

/* --- a request's life ------------------------------------------------------------------------- */

static void make_demands(const struct world *world, uint32_t end, uint32_t tokens,
			 uint32_t reserve, struct demand *ret_demands)
{
	uint32_t g;

	for (g = 0; g < world->group_count; g++) {
		const uint32_t q = world->specs[g].block_tokens;

		ret_demands[g] = world->specs[g].kind == GROUP_STATE
					 ? demand_sparse(end + tokens, 0, (end + tokens - 1) / q)
					 : demand_dense(tokens, reserve);
	}
}

static struct cache_completed completed_of(const struct world *world, const struct world_request *request,
					   uint32_t kind)
{
	const uint32_t pages = request->end / world->page_tokens;
	const bool     any = pages > request->published;

	return (struct cache_completed){ .space = &world->space,
					 .hashes = request->hashes,
					 .page_count = pages,
					 .new_begin = request->published,
					 .kind = any ? CELL_CHUNK + kind % 3 : CELL_NONE,
					 .computed = request->end };
}

static void start(struct world *world, struct world_request *request, const struct prop_op *op)
{
	const uint32_t         page_tokens = world->page_tokens;
	const uint32_t         prompt_id = op->arg[0] / 8 % 4;
	const uint32_t         pages = (op->arg[1] + 3) % 7 % 4;
	struct tail            tails[2];
	struct cache_prompt    prompt = { &world->space, request->hashes, pages, tails, 2 };
	struct cache_admission admission = { .tables = request->tables,
					     .completed = { .computed = COMPUTED_NONE } };
	struct naive_names     names = { &world->space, request->hashes, { { 0 } } };
	struct demand          demands[3];
	struct cache_probe     probe;
	uint32_t               g, i;

	request->prompt = prompt_id;
	request->epoch = 0;
	world_name_pages(world, prompt_id, request->hashes);
	for (g = 0; g < 3; g++)
		table_init(&request->tables[g], request->slots[g], WORLD_SLOTS);
	for (i = 0; i < 2; i++) {
		tails[i].tokens = (pages + 1 - i) * page_tokens - 1;
		tails[i].hash = world_name(prompt_id, tails[i].tokens, page_tokens);
	}
	prompt.tail_count = pages > 0 ? 2 : 1;
	KVS_ASSERT(cache_probe(world->cache, &prompt, PROBE_ALL, &probe, NULL) == 0);
	names.tail = world_name(prompt_id, (uint32_t)probe.host_tokens, page_tokens);
	make_demands(world, (uint32_t)probe.host_tokens, 1 + op->arg[1] / 4 % (2 * page_tokens),
		     op->arg[1] / 64 % 3, demands);
	admission.demands = demands;
	admission.probe = &probe;
	if (!admit(world, request, &admission, &names))
		return;
	request->live = true;
	request->end = (uint32_t)probe.host_tokens + 1 + op->arg[1] / 4 % (2 * page_tokens);
	request->published = (uint32_t)probe.host_tokens / page_tokens;
	KVS_ASSERT(cache_publish(world->cache, request->tables, &world->space, request->hashes, 0,
				 request->published, request->epoch, CELL_CHUNK, NULL) == 0);
}

static void go_on(struct world *world, struct world_request *request, const struct prop_op *op)
{
	const uint32_t           tokens = 1 + op->arg[1] % (2 * world->page_tokens);
	const struct naive_names names = { &world->space, request->hashes, { { 0 } } };
	struct demand            demands[3];
	struct cache_admission   admission = {
		  .tables = request->tables,
		  .demands = demands,
		  .completed = completed_of(world, request, op->arg[1] / 16),
		  .epoch = request->epoch,
	};

	if (request->end + tokens > WORLD_TOKENS)
		return;
	make_demands(world, request->end, tokens, op->arg[1] / 64 % 3, demands);
	if (!admit(world, request, &admission, &names))
		return;
	request->published = admission.completed.page_count;
	request->end += tokens;
}

static void advance(struct world *world, struct world_request *request, const struct prop_op *op)
{
	const struct cache_completed completed = completed_of(world, request, op->arg[1]);

	KVS_ASSERT(cache_advance(world->cache, request->tables, &completed, request->epoch, NULL) ==
		   0);
	request->published = completed.page_count;
}

static void finish(struct world *world, struct world_request *request, const struct prop_op *op)
{
	const struct tail tail = {
		request->end, world_name(request->prompt, request->end, world->page_tokens)
	};

	advance(world, request, op);
	if (request->end % world->page_tokens > 0 && op->arg[1] % 4 > 0) {
		KVS_ASSERT(cache_publish_tail(world->cache, request->tables, &world->space, &tail,
					      request->end, request->epoch, CELL_ENDPOINT, NULL) == 0);
	}
	cache_free(world->cache, request->tables);
	request->live = false;
}

/* --- what happens besides --------------------------------------------------------------------- */

/* Some published block of Device; false when there is none. */
static bool pick_published(const struct world *world, uint32_t from, struct cache_block *ret_block,
			   struct cell_view *ret_view)
{
	const struct pool *const pool = cache_pool(world->cache, STRATUM_DEVICE);
	uint32_t                 i, g;

	for (i = 0; i < WORLD_PLACES; i++) {
		const uint32_t parent = 1 + (from + i) / 4 % pool_parent_count(pool);
		const uint32_t slot = (from + i) % 4;

		if (!pool_bound(pool, parent, &g) || slot >= pool_packing(pool, g))
			continue;
		ret_block->group = g;
		ret_block->block = 1 + (parent - 1) * pool_packing(pool, g) + slot;
		if (pool_refs(pool, g, ret_block->block) > 0 &&
		    cache_view(world->cache, STRATUM_DEVICE, g, ret_block->block, ret_view))
			return true;
	}
	return false;
}

static void pin(struct world *world, uint32_t from)
{
	struct cell_view view;

	if (world->pin_count == WORLD_PINS ||
	    !pick_published(world, from, &world->pins[world->pin_count], &view))
		return;
	cache_pin(world->cache, STRATUM_DEVICE, world->pins[world->pin_count].group,
		  world->pins[world->pin_count].block);
	world->pin_count++;
}

static void unpin(struct world *world)
{
	if (world->pin_count == 0)
		return;
	world->pin_count--;
	cache_unpin(world->cache, STRATUM_DEVICE, world->pins[world->pin_count].group,
		    world->pins[world->pin_count].block);
}

/* A copy to Host, from its beginning to its acknowledgement. */
static void store(struct world *world, uint32_t from)
{
	const struct pages *const  pages = cache_pages(world->cache);
	struct page_name           page;
	struct cell_name           name = { &page.space, &page.hash, 0, 0 };
	struct cache_block         block;
	struct cell_view           view;
	uint32_t                   target, column;

	if (!cache_pool(world->cache, STRATUM_HOST) || !pick_published(world, from, &block, &view))
		return;
	page = pages->entries[pages_cell_entry(pages, view.cell)].name;
	column = pages_cell_column(pages, view.cell);
	name.group = block.group;
	name.offset = column - pages->groups.group[block.group].first_column;
	target = cache_host_acquire(world->cache, block.group);
	if (target != BLOCK_NULL)
		cache_host_publish(world->cache, &name, target, view.kind);
}

static void land(struct world *world)
{
	if (world->row_count > 0)
		cache_moved(world->cache, &world->rows[--world->row_count]);
}

enum { REOPEN, RUN, FINISH, ABORT, ADVANCE, PIN, UNPIN, STORE, LAND, CLEAR };

static const struct prop_kind kinds[] = {
	{ "REOPEN", 2 }, { "RUN", 60 }, { "FINISH", 40 }, { "ABORT", 3 }, { "ADVANCE", 6 },
	{ "PIN", 8 },    { "UNPIN", 9 }, { "STORE", 40 }, { "LAND", 40 }, { "CLEAR", 1 },
};

static void step_request(struct world *world, const struct prop_op *op)
{
	struct world_request *const request = &world->requests[op->arg[0] % WORLD_REQUESTS];

	if (!request->live) {
		if (op->kind == RUN && world->row_count < WORLD_ROWS / 2)
			start(world, request, op);
	} else if (op->kind == RUN) {
		go_on(world, request, op);
	} else if (op->kind == ADVANCE) {
		advance(world, request, op);
	} else if (op->kind == FINISH) {
		finish(world, request, op);
	} else {
		cache_free(world->cache, request->tables);
		request->live = false;
	}
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	if (op->kind == REOPEN)
		reopen(world, op->arg[0]);
	else if (op->kind == PIN)
		pin(world, op->arg[0]);
	else if (op->kind == UNPIN)
		unpin(world);
	else if (op->kind == STORE)
		store(world, op->arg[0]);
	else if (op->kind == LAND)
		land(world);
	else if (op->kind == CLEAR)
		(void)(op->arg[0] % 2 ? cache_clear(world->cache) : cache_clear_device(world->cache));
	else
		step_request(world, op);
	world_account(world);
}

PROP_MAIN("admission", admission_is_what_exhaustive_search_finds, 150, 400, world_close)
