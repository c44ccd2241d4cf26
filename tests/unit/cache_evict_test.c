/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks of Device an admission gives up, and that it gives up no more.  Pages of 4 tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cache_box.h"

static const struct group_spec one_full[BOX_GROUPS] = { BOX_FULL(4, 1) };
static const struct group_spec one_state[BOX_GROUPS] = { BOX_STATE(4, 1) };
static const struct group_spec pairs[BOX_GROUPS] = { BOX_FULL(4, 2) };
static const struct group_spec pair_and_single[BOX_GROUPS] = { BOX_FULL(4, 2), BOX_FULL(4, 1) };
static const struct group_spec full_and_state[BOX_GROUPS] = { BOX_FULL(4, 1), BOX_STATE(4, 1) };

/* Take tokens of the first group, and of the second if there is one; give them back. */
static int squeeze(struct box *box, uint32_t first, uint32_t second)
{
	const struct demand   demands[] = { demand_dense(first, 0), demand_dense(second, 0) };
	struct box_request    request;
	struct cache_admitted admitted;
	int                   rc;

	box_request(box, &request);
	box->removed = 0;
	rc = box_admit(box, &request, demands, false, NULL, &admitted);
	cache_free(box->cache, request.tables);
	return rc;
}

static bool holds(const struct box *box, uint32_t group, uint32_t page)
{
	return box_find(box, STRATUM_DEVICE, group, page) != BLOCK_NULL;
}

/* Use a page of group 0 (all groups, if it is a hit) as a request would. */
static uint64_t hit_pages(struct box *box, uint32_t pages)
{
	const struct demand   none[BOX_GROUPS] = { demand_dense(0, 0) };
	struct box_request    request;
	struct cache_admitted admitted;

	box_request(box, &request);
	assert_int_equal(box_probe(box, &request, pages)->device_tokens, pages * 4);
	assert_int_equal(box_admit(box, &request, none, true, NULL, &admitted), 0);
	cache_free(box->cache, request.tables);
	return request.epoch;
}

/* --- order ------------------------------------------------------------------------------------ */

static void an_older_request_goes_before_a_later_position(void **state)
{
	struct box box;

	(void)state;
	box_open(&box, 4, 4, 0, one_full);
	box_put(&box, 0, 9, 10);
	box_put(&box, 0, 0, 3);
	assert_int_equal(squeeze(&box, 4, 0), 0);
	assert_false(holds(&box, 0, 9));
	assert_int_equal(box.removed, 1);
	box_close(&box);
}

static void full_history_is_eaten_from_its_end(void **state)
{
	struct box box;

	(void)state;
	box_open(&box, 4, 4, 0, one_full);
	box_put(&box, 0, 0, 4);
	assert_int_equal(squeeze(&box, 4, 0), 0);
	assert_false(holds(&box, 0, 3));
	assert_int_equal(squeeze(&box, 8, 0), 0);
	assert_false(holds(&box, 0, 2));
	assert_true(holds(&box, 0, 1));
	box_close(&box);
}

static void a_hit_long_ago_protects_nothing(void **state)
{
	struct box box;

	(void)state;
	box_open(&box, 4, 2, 0, one_full);
	box_put(&box, 0, 0, 1);
	hit_pages(&box, 1);
	box_put(&box, 0, 1, 2);
	assert_int_equal(squeeze(&box, 4, 0), 0);
	assert_false(holds(&box, 0, 0));
	assert_true(holds(&box, 0, 1));
	box_close(&box);
}

/* Of one epoch: a boundary of a better kind survives a deeper chunk. */
static void an_endpoint_and_a_promoted_boundary_outlive_a_chunk(void **state)
{
	static const enum cell_kind kinds[] = { CELL_ENDPOINT, CELL_PROMOTED };
	struct box                  box;
	uint32_t                    i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(kinds); i++) {
		uint64_t epoch;

		box_open(&box, 4, 2, 0, one_state);
		epoch = box_put_page(&box, 0, 2, kinds[i], 0);
		box_put_page(&box, 0, 6, CELL_CHUNK, epoch);
		assert_int_equal(squeeze(&box, 4, 0), 0);
		assert_true(holds(&box, 0, 2));
		assert_false(holds(&box, 0, 6));
		box_close(&box);
	}
}

static void of_unused_chunks_the_shallower_goes_first(void **state)
{
	struct box box;
	uint64_t   epoch;

	(void)state;
	box_open(&box, 4, 2, 0, one_state);
	epoch = box_put_page(&box, 0, 6, CELL_CHUNK, 0);
	box_put_page(&box, 0, 2, CELL_CHUNK, epoch);
	assert_int_equal(squeeze(&box, 4, 0), 0);
	assert_false(holds(&box, 0, 2));
	assert_true(holds(&box, 0, 6));
	box_close(&box);
}

static void a_chunk_that_was_hit_is_an_established_boundary(void **state)
{
	struct box box;
	uint64_t   epoch;

	(void)state;
	box_open(&box, 4, 2, 0, one_state);
	box_put_page(&box, 0, 1, CELL_CHUNK, 0);
	epoch = hit_pages(&box, 2);
	box_put_page(&box, 0, 6, CELL_CHUNK, epoch);
	assert_int_equal(squeeze(&box, 4, 0), 0);
	assert_true(holds(&box, 0, 1));
	assert_false(holds(&box, 0, 6));
	box_close(&box);
}

static void a_newer_endpoint_outlives_an_older_hit(void **state)
{
	struct box box;

	(void)state;
	box_open(&box, 4, 2, 0, one_state);
	box_put_page(&box, 0, 1, CELL_CHUNK, 0);
	hit_pages(&box, 2);
	box_put_page(&box, 0, 6, CELL_ENDPOINT, 0);
	assert_int_equal(squeeze(&box, 4, 0), 0);
	assert_false(holds(&box, 0, 1));
	assert_true(holds(&box, 0, 6));
	box_close(&box);
}

static void of_one_epoch_boundaries_go_before_full_history(void **state)
{
	struct box box;
	uint64_t   epoch;

	(void)state;
	box_open(&box, 4, 3, 0, full_and_state);
	epoch = box_put(&box, 0, 0, 2);
	box_put_page(&box, 1, 1, CELL_ENDPOINT, epoch);
	assert_int_equal(squeeze(&box, 4, 0), 0);
	assert_false(holds(&box, 1, 1));
	assert_true(holds(&box, 0, 0));
	assert_true(holds(&box, 0, 1));
	box_close(&box);
}

/* The request's own block without a name costs nobody anything. */
static void an_expired_block_without_a_name_goes_before_all(void **state)
{
	const struct demand    demand = demand_dense(4, 0);
	struct cache_completed computed;
	struct box             box;
	struct box_request     request;
	struct cache_admitted  admitted;

	(void)state;
	box_open(&box, 4, 3, 0, one_state);
	box_put(&box, 0, 9, 10);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 8), 0);
	computed = box_completed(&box, 0, 0, 8, CELL_NONE);
	assert_int_equal(box_admit(&box, &request, &demand, false, &computed, &admitted), 0);
	assert_true(holds(&box, 0, 9));
	assert_int_equal(box.removed, 0);
	cache_free(box.cache, request.tables);
	box_close(&box);
}

/* --- no more than needed ---------------------------------------------------------------------- */

static void the_oldest_block_that_makes_room_goes(void **state)
{
	struct box box;

	(void)state;
	box_open(&box, 4, 1, 0, pairs);
	box_put(&box, 0, 0, 1);
	box_put(&box, 0, 1, 2);
	assert_int_equal(squeeze(&box, 4, 0), 0);
	assert_false(holds(&box, 0, 0));
	assert_true(holds(&box, 0, 1));
	box_close(&box);
}

static void nothing_is_evicted_to_pack_denser(void **state)
{
	struct box box;

	(void)state;
	box_open(&box, 4, 2, 0, pairs);
	box_put(&box, 0, 0, 2);
	assert_int_equal(squeeze(&box, 8, 0), 0);
	assert_int_equal(box.removed, 0);
	box_close(&box);
}

static void an_unbound_parent_is_used_before_a_block_is_evicted(void **state)
{
	struct box box;

	(void)state;
	box_open(&box, 4, 2, 0, pairs);
	box_put(&box, 0, 0, 1);
	assert_int_equal(squeeze(&box, 8, 0), 0);
	assert_int_equal(box.removed, 0);
	box_close(&box);
}

/* 2 blocks of the first group and 1 of the second: two whole parents. */
static void demand_is_packed_before_it_takes_another_groups_parent(void **state)
{
	struct box box;

	(void)state;
	box_open(&box, 4, 2, 0, pair_and_single);
	box_put(&box, 0, 0, 1);
	assert_int_equal(squeeze(&box, 8, 4), 0);
	assert_int_equal(box.removed, 1);
	box_close(&box);
}

static void a_foreign_parent_is_rebound_when_all_its_blocks_are_gone(void **state)
{
	struct box box;

	(void)state;
	box_open(&box, 4, 1, 0, pair_and_single);
	box_put(&box, 0, 0, 2);
	cache_pin(box.cache, STRATUM_DEVICE, 0, 1);
	assert_int_equal(squeeze(&box, 0, 4), KVS_E_FULL);
	assert_int_equal(box.removed, 0);
	cache_unpin(box.cache, STRATUM_DEVICE, 0, 1);
	assert_int_equal(squeeze(&box, 0, 4), 0);
	assert_int_equal(box.removed, 2);
	box_close(&box);
}

static void a_free_slot_is_used_after_another_parent_was_emptied(void **state)
{
	struct box         box;
	struct box_request request;

	(void)state;
	box_open(&box, 4, 2, 0, pairs);
	box_put(&box, 0, 0, 2);
	box_put(&box, 0, 5, 6);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 12), 0);
	assert_false(holds(&box, 0, 0));
	assert_false(holds(&box, 0, 1));
	assert_true(holds(&box, 0, 5));
	assert_int_equal(request.slots[0][0], 4);
	assert_int_equal(request.slots[0][1], 1);
	assert_int_equal(request.slots[0][2], 2);
	cache_free(box.cache, request.tables);
	box_close(&box);
}

/* The oldest is tried first, but what frees the parent is the one in the middle. */
static void an_older_sibling_is_spared_when_it_does_not_help(void **state)
{
	struct box box;

	(void)state;
	box_open(&box, 4, 2, 0, pair_and_single);
	box_put(&box, 0, 0, 1);
	box_put(&box, 0, 1, 2);
	box_put(&box, 0, 2, 3);
	box_put_page(&box, 0, 1, CELL_CHUNK, 0); /* the sibling of page 0, touched last */
	assert_int_equal(box_find(&box, STRATUM_DEVICE, 0, 1), 2);
	assert_int_equal(squeeze(&box, 0, 4), 0);
	assert_true(holds(&box, 0, 0));
	assert_true(holds(&box, 0, 1));
	assert_false(holds(&box, 0, 2));
	box_close(&box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_older_request_goes_before_a_later_position),
		cmocka_unit_test(full_history_is_eaten_from_its_end),
		cmocka_unit_test(a_hit_long_ago_protects_nothing),
		cmocka_unit_test(an_endpoint_and_a_promoted_boundary_outlive_a_chunk),
		cmocka_unit_test(of_unused_chunks_the_shallower_goes_first),
		cmocka_unit_test(a_chunk_that_was_hit_is_an_established_boundary),
		cmocka_unit_test(a_newer_endpoint_outlives_an_older_hit),
		cmocka_unit_test(of_one_epoch_boundaries_go_before_full_history),
		cmocka_unit_test(an_expired_block_without_a_name_goes_before_all),
		cmocka_unit_test(the_oldest_block_that_makes_room_goes),
		cmocka_unit_test(nothing_is_evicted_to_pack_denser),
		cmocka_unit_test(an_unbound_parent_is_used_before_a_block_is_evicted),
		cmocka_unit_test(demand_is_packed_before_it_takes_another_groups_parent),
		cmocka_unit_test(a_foreign_parent_is_rebound_when_all_its_blocks_are_gone),
		cmocka_unit_test(a_free_slot_is_used_after_another_parent_was_emptied),
		cmocka_unit_test(an_older_sibling_is_spared_when_it_does_not_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
