/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a reservation's rows when their GET has retired.  See reserve.h. */
#include "base/bits.h"
#include "coord/parts.h"
#include "coord/reserve.h"

struct cell_name cache_row_name(const struct cache_reservation *reservation, uint32_t row)
{
	const struct cache_row *const r = &reservation->rows[row];

	KVS_ASSERT_CMP(row, <, reservation->row_count);
	return (struct cell_name){ &reservation->space, &r->hash, r->group, r->offset };
}

uint32_t cache_reservation_publish(struct cache *cache, struct cache_reservation *reservation,
				   const uint64_t *whole, bool hold)
{
	uint32_t published = 0;
	uint32_t i;

	KVS_ASSERT(!reservation->published);
	reservation->published = true;
	for (i = reservation->row_count; i-- > 0;) {
		struct cache_row *const row = &reservation->rows[i];
		const struct cell_name  name = cache_row_name(reservation, i);

		if (!bits_test(whole, i)) {
			cache_unpin(cache, STRATUM_HOST, row->group, row->block);
			row->block = BLOCK_NULL;
			continue;
		}
		row->block = cache_host_publish(cache, &name, row->block, CELL_CHUNK);
		published++;
		reservation->tail_published |= row->of_tail;
		if (hold)
			cache_pin(cache, STRATUM_HOST, row->group, row->block);
		else
			row->block = BLOCK_NULL;
	}
	return published;
}

void cache_reservation_release(struct cache *cache, struct cache_reservation *reservation)
{
	uint32_t i;

	for (i = reservation->row_count; i-- > 0;) {
		struct cache_row *const row = &reservation->rows[i];

		if (row->block != BLOCK_NULL)
			cache_unpin(cache, STRATUM_HOST, row->group, row->block);
		row->block = BLOCK_NULL;
	}
}

/* --- audit ------------------------------------------------------------------------------------ */

static void audit_row(const struct cache *cache, const struct cache_reservation *reservation,
		      uint32_t i)
{
	const struct cache_row *const row = &reservation->rows[i];
	const struct group *const     group = &cache->pages.groups.group[row->group];
	const struct shelf *const     host = &cache->shelves[STRATUM_HOST];
	const struct cell_name        name = cache_row_name(reservation, i);

	KVS_ASSERT_CMP(row->group, <, cache->pages.groups.count);
	KVS_ASSERT_CMP(row->offset, ==, row->position % group->page_blocks);
	KVS_ASSERT_CMP(group_tokens_at(group, row->position), <, reservation->tokens);
	if (row->of_tail)
		KVS_ASSERT_CMP(reservation->tail_tokens, >, 0);
	if (row->block == BLOCK_NULL)
		return;
	if (reservation->published) {
		KVS_ASSERT_CMP(cache_find(cache, STRATUM_HOST, &name), ==, row->block);
		KVS_ASSERT_CMP(pool_refs(host->pool, row->group, row->block), >, 1);
	} else {
		KVS_ASSERT(!shelf_published(host, row->group, row->block));
		KVS_ASSERT_CMP(pool_refs(host->pool, row->group, row->block), ==, 1);
	}
}

void cache_reservation_audit(const struct cache *cache, const struct cache_reservation *reservation)
{
	const struct cache_row *const rows = reservation->rows;
	uint32_t                      i;

	KVS_ASSERT_CMP(reservation->row_count, <=, reservation->row_max);
	KVS_ASSERT_CMP(reservation->tokens, >=, reservation->local_tokens);
	for (i = 0; i < reservation->row_count; i++) {
		audit_row(cache, reservation, i);
		if (i > 0 && rows[i].group == rows[i - 1].group)
			KVS_ASSERT_CMP(rows[i].position, >, rows[i - 1].position);
		else if (i > 0)
			KVS_ASSERT_CMP(rows[i].group, >, rows[i - 1].group);
	}
}
