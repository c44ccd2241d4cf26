/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an earlier replica left in the store: prefixes of some paths, most objects of them.  Without it a run
 * would be over before the store has anything that Device and Host have not.
 */
#include "sim.h"

static void put(struct sim *sim, const struct content *content, void *bytes)
{
	const struct oracle *const  oracle = oracle_get();
	struct kvs_store *const     inner = sim->store.inner;
	const struct kvs_span       span = { bytes, shape_block_bytes(&sim->shape, content->group),
					     PARENT_BYTES };
	enum kvs_result             result;
	struct kvs_key              key;
	bool                        retired;

	key_make(&oracle->space[content->version],
		 &oracle->hash[content->prefix.page][content->prefix.count - 1], content->group,
		 (uint16_t)content->replica, content->offset, &key);
	shape_fill(&sim->shape, content, bytes);
	inner->ops->put(inner, &key, &span, 1, &result, &retired);
	if (result == KVS_RESULT_DONE)
		locker_learn(sim, &key);
}

static void stock_page(struct sim *sim, uint32_t page)
{
	_Alignas(64) uint8_t bytes[PARENT_BYTES];
	struct content       content = { .version = sim->version, .prefix = { page, PAGE_TOKENS } };

	for (content.group = 0; content.group < sim->shape.group_count; content.group++) {
		const struct group *const group = &sim->shape.groups.group[content.group];
		const bool is_state = group->spec.kind == GROUP_STATE;

		for (content.offset = is_state ? group->page_blocks - 1 : 0;
		     content.offset < group->page_blocks; content.offset++) {
			for (content.replica = 0;
			     content.replica < shape_replicas(&sim->shape, content.group);
			     content.replica++) {
				if (!prng_chance(&sim->world.prng, 1, 100))
					put(sim, &content, bytes);
			}
		}
	}
}

void stock_fill(struct sim *sim)
{
	const uint32_t paths = sim_draw(sim, 0, 5);
	uint32_t       i, depth, page;

	for (i = 0; i < paths; i++) {
		page = 1;
		for (depth = 0; depth < DEPTH; depth++) {
			page = 2 * page + prng_chance(&sim->world.prng, sim->spread, 12);
			if (depth < DEPTH - 1)
				stock_page(sim, page);
		}
		sim->paths[i] = page;
	}
	sim->next_request = paths;
}
