/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_box.h"

#include <stdio.h>
#include <string.h>

struct prefix_hash box_hash(uint32_t number)
{
	struct prefix_hash hash = { { 0 } };

	memcpy(hash.byte, &number, sizeof(number));
	hash.byte[31] = 1;
	return hash;
}

static void on_inserted(void *ctx, const struct cell_name *name, uint32_t block)
{
	struct box *const box = ctx;

	(void)name;
	KVS_ASSERT_CMP(block, !=, BLOCK_NULL);
	box->inserted++;
}

static void on_removed(void *ctx, const struct cell_name *name, uint32_t block)
{
	struct box *const box = ctx;

	(void)name;
	KVS_ASSERT_CMP(block, !=, BLOCK_NULL);
	box->removed++;
}

void box_open(struct box *box, uint32_t page_tokens, uint32_t device_parents,
	      uint32_t host_parents, const struct group_spec *specs)
{
	struct cache_options options = { .page_tokens = page_tokens,
					 .device_parents = device_parents,
					 .host_parents = host_parents,
					 .prompt_pages = BOX_PAGES,
					 .sink = { on_inserted, on_removed, box } };
	uint32_t             i;

	*box = (struct box){ 0 };
	for (i = 0; i < BOX_GROUPS && specs[i].block_tokens > 0; i++) {
		box->specs[i] = specs[i];
		snprintf(box->names[i], sizeof(box->names[i]), "%s%u", specs[i].name, i);
		box->specs[i].name = box->names[i];
	}
	for (box->group_count = i, i = 0; i < BOX_PAGES; i++)
		box->hashes[i] = box_hash(i);
	options.groups = box->specs;
	options.group_count = box->group_count;
	if (cache_open(&options, &box->cache, &box->err) < 0)
		KVS_PANIC("%s", box->err.message);
}

void box_close(struct box *box)
{
	cache_audit(box->cache);
	cache_close(box->cache);
}

void box_request(const struct box *box, struct box_request *request)
{
	uint32_t g;

	*request = (struct box_request){ 0 };
	for (g = 0; g < box->group_count; g++)
		table_init(&request->tables[g], request->slots[g], BOX_SLOTS);
}

/* --- published pages -------------------------------------------------------------------------- */

uint64_t box_put_page(struct box *box, uint32_t group, uint32_t page, enum cell_kind kind,
		      uint64_t epoch)
{
	const struct groups *const groups = cache_groups(box->cache);
	struct demand              demands[BOX_GROUPS] = { { 0 } };
	struct box_request         request;
	struct cache_admitted      admitted;
	uint32_t                   g;

	box_request(box, &request);
	request.epoch = epoch;
	for (g = 0; g < groups->count; g++) {
		const uint32_t page_blocks = groups->group[g].page_blocks;

		table_push_holes(&request.tables[g], (page + (g != group)) * page_blocks);
		demands[g] = demand_dense(g == group ? groups->page_tokens : 0, 0);
	}
	if (box_admit(box, &request, demands, false, NULL, &admitted) < 0 ||
	    cache_publish(box->cache, request.tables, &box->space, &box->hashes[page], page, 1,
			  request.epoch, kind, &box->err) < 0)
		KVS_PANIC("%s", box->err.message);
	cache_free(box->cache, request.tables);
	return request.epoch;
}

uint64_t box_put(struct box *box, uint32_t group, uint32_t first, uint32_t end)
{
	uint64_t epoch = 0;

	for (; first < end; first++)
		epoch = box_put_page(box, group, first, CELL_CHUNK, epoch);
	return epoch;
}

void box_put_host(struct box *box, uint32_t group, uint32_t first, uint32_t end)
{
	const struct group *const group_of = &cache_groups(box->cache)->group[group];
	uint32_t                  offset;

	for (; first < end; first++) {
		for (offset = 0; offset < group_of->page_blocks; offset++) {
			const struct cell_name name = { &box->space, &box->hashes[first], group,
							offset };
			const uint32_t         block = cache_host_acquire(box->cache, group);

			KVS_ASSERT_CMP(block, !=, BLOCK_NULL);
			cache_host_publish(box->cache, &name, block, CELL_CHUNK);
		}
	}
}

uint32_t box_find(const struct box *box, enum stratum_id stratum, uint32_t group, uint32_t page)
{
	const struct cell_name name = { &box->space, &box->hashes[page], group, 0 };

	return cache_find(box->cache, stratum, &name);
}

struct cell_view box_view(const struct box *box, enum stratum_id stratum, uint32_t group,
			  uint32_t page)
{
	struct cell_view view;

	KVS_ASSERT(cache_view(box->cache, stratum, group, box_find(box, stratum, group, page),
			      &view));
	return view;
}

/* --- requests --------------------------------------------------------------------------------- */

const struct cache_probe *box_probe(struct box *box, struct box_request *request, uint32_t pages)
{
	const struct cache_prompt prompt = { .space = &box->space, .hashes = box->hashes,
					     .page_count = pages };

	if (cache_probe(box->cache, &prompt, PROBE_ALL, &request->probe, &box->err) < 0)
		KVS_PANIC("%s", box->err.message);
	return &request->probe;
}

int box_admit(struct box *box, struct box_request *request, const struct demand *demands,
	      bool with_probe, const struct cache_completed *completed,
	      struct cache_admitted *ret_admitted)
{
	struct cache_admission admission = { .tables = request->tables,
					     .demands = demands,
					     .probe = with_probe ? &request->probe : NULL,
					     .completed = { .computed = COMPUTED_NONE },
					     .epoch = request->epoch };
	int                    rc;

	if (completed)
		admission.completed = *completed;
	rc = cache_admit(box->cache, &admission, ret_admitted, &box->err);
	if (rc == 0)
		request->epoch = ret_admitted->epoch;
	cache_audit(box->cache);
	return rc;
}

int box_take(struct box *box, struct box_request *request, uint32_t tokens)
{
	struct demand         demands[BOX_GROUPS];
	struct cache_admitted admitted;
	uint32_t              g;

	for (g = 0; g < BOX_GROUPS; g++)
		demands[g] = demand_dense(tokens, 0);
	return box_admit(box, request, demands, false, NULL, &admitted);
}

struct cache_completed box_completed(const struct box *box, uint32_t begin, uint32_t end,
				     uint64_t computed, enum cell_kind kind)
{
	return (struct cache_completed){ .space = &box->space,
					 .hashes = box->hashes,
					 .page_count = end,
					 .new_begin = begin,
					 .kind = begin < end ? kind : CELL_NONE,
					 .computed = computed };
}

void box_advance(struct box *box, struct box_request *request, uint32_t begin, uint32_t end,
		 uint64_t computed, enum cell_kind kind)
{
	const struct cache_completed completed = box_completed(box, begin, end, computed, kind);

	if (cache_advance(box->cache, request->tables, &completed, request->epoch, &box->err) < 0)
		KVS_PANIC("%s", box->err.message);
	cache_audit(box->cache);
}
