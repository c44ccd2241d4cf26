/* SPDX-License-Identifier: Apache-2.0 */
#include "errand.h"

#include "base/bits.h"

void errand_open(struct errand *errand, uint32_t page_tokens, uint32_t device_parents,
		uint32_t host_parents, const struct group_spec *specs)
{
	*errand = (struct errand){ 0 };
	box_open(&errand->box, page_tokens, device_parents, host_parents, specs);
	KVS_ASSERT(reserver_open(&errand->reserver, errand->box.cache, ERRAND_TAILS, NULL) == 0);
	KVS_ASSERT_CMP(cache_groups(errand->box.cache)->columns * BOX_PAGES, <=, 8 * 64);
}

void errand_close(struct errand *errand)
{
	cache_reservation_audit(errand->box.cache, &errand->reservation);
	cache_reservation_release(errand->box.cache, &errand->reservation);
	reserver_close(&errand->reserver);
	box_close(&errand->box);
}

void errand_hint(struct errand *errand, uint32_t group, uint32_t first, uint32_t end)
{
	const struct groups *const groups = cache_groups(errand->box.cache);
	uint32_t                   page, i;

	for (page = first; page < end; page++) {
		for (i = 0; i < groups->group[group].page_blocks; i++) {
			bits_set(errand->page_hints,
				 page * groups->columns + groups->group[group].first_column + i);
		}
	}
}

void errand_tail(struct errand *errand, uint32_t tokens, uint64_t columns)
{
	KVS_ASSERT_CMP(errand->tail_count, <, ERRAND_TAILS);
	errand->tail_hints[errand->tail_count] = columns;
	errand->tails[errand->tail_count] = (struct tail){ tokens, box_hash(1000 + tokens) };
	errand->tail_count++;
}

enum reserve_answer errand_ask(struct errand *errand, uint32_t pages, uint32_t credits)
{
	const struct cache_reserve_ask ask = {
		.prompt = { &errand->box.space, errand->box.hashes, pages, errand->tails,
			    errand->tail_count },
		.page_hints = errand->page_hints,
		.tail_hints = errand->tail_hints,
		.credits = credits,
	};
	enum reserve_answer answer;

	cache_reservation_release(errand->box.cache, &errand->reservation);
	errand->reservation = (struct cache_reservation){ .rows = errand->rows, .row_max = ERRAND_ROWS };
	if (cache_reserve(&errand->reserver, &ask, &errand->reservation, &answer, &errand->box.err) < 0)
		KVS_PANIC("%s", errand->box.err.message);
	cache_audit(errand->box.cache);
	cache_reservation_audit(errand->box.cache, &errand->reservation);
	KVS_ASSERT_CMP(answer == RESERVE_ROWS, ==, errand->reservation.row_count > 0);
	return answer;
}

uint32_t errand_publish(struct errand *errand, uint64_t whole, bool hold)
{
	const uint32_t count = cache_reservation_publish(errand->box.cache, &errand->reservation, &whole,
							 hold);

	cache_audit(errand->box.cache);
	cache_reservation_audit(errand->box.cache, &errand->reservation);
	return count;
}

uint32_t errand_local(struct errand *errand, uint32_t pages)
{
	const struct cache_prompt prompt = { &errand->box.space, errand->box.hashes, pages, errand->tails,
					     errand->tail_count };
	struct cache_probe        probe;

	KVS_ASSERT(cache_probe(errand->box.cache, &prompt, PROBE_ALL, &probe, NULL) == 0);
	return (uint32_t)probe.host_tokens;
}

struct errand_host errand_host(const struct errand *errand)
{
	const struct cache *const cache = errand->box.cache;
	const struct pool *const  pool = cache_pool(cache, STRATUM_HOST);
	struct errand_host         host = { 0 };
	uint32_t                  parent, slot, g;
	struct cell_view          view;

	for (parent = 1; parent <= pool_parent_count(pool); parent++) {
		host.held += pool_used(pool, parent);
		if (!pool_bound(pool, parent, &g))
			continue;
		for (slot = 0; slot < pool_packing(pool, g); slot++) {
			const uint32_t block = 1 + (parent - 1) * pool_packing(pool, g) + slot;

			if (pool_refs(pool, g, block) == 0 ||
			    !cache_view(cache, STRATUM_HOST, g, block, &view))
				continue;
			host.published++;
			host.idle += view.idle;
		}
	}
	return host;
}
