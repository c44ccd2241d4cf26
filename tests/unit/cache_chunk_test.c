/* SPDX-License-Identifier: Apache-2.0 */
/* From chunk to chunk: names for what is complete, holes for what expired.  Pages of 4 tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cache_box.h"

static const struct group_spec one_full[BOX_GROUPS] = { BOX_FULL(4, 1) };
static const struct group_spec pairs[BOX_GROUPS] = { BOX_FULL(4, 2) };
static const struct group_spec window4[BOX_GROUPS] = { BOX_WINDOW(4, 4, 1) };
static const struct group_spec window4_small[BOX_GROUPS] = { BOX_WINDOW(4, 2, 1) };
static const struct group_spec two_full[BOX_GROUPS] = { BOX_FULL(4, 1), BOX_FULL(4, 1) };
static const struct group_spec full_and_window[BOX_GROUPS] = { BOX_FULL(4, 1), BOX_WINDOW(5, 4, 1) };

static uint32_t unbound(const struct box *box)
{
	return pool_unbound(cache_pool(box->cache, STRATUM_DEVICE));
}

static uint32_t refs(const struct box *box, uint32_t group, uint32_t block)
{
	return pool_refs(cache_pool(box->cache, STRATUM_DEVICE), group, block);
}

static bool holds(const struct box *box, uint32_t group, uint32_t page)
{
	return box_find(box, STRATUM_DEVICE, group, page) != BLOCK_NULL;
}

/* A request with so many tokens in every group. */
static void start(struct box *box, struct box_request *request, uint32_t tokens)
{
	box_request(box, request);
	assert_int_equal(box_take(box, request, tokens), 0);
}

static void finish(struct box *box, struct box_request *request)
{
	cache_free(box->cache, request->tables);
	cache_audit(box->cache);
}

/* --- publication ------------------------------------------------------------------------------ */

static void complete_pages_can_be_hit_and_a_started_one_cannot(void **state)
{
	struct box         box;
	struct box_request request, other;

	(void)state;
	box_open(&box, 4, 8, 0, one_full);
	start(&box, &request, 10);
	box_advance(&box, &request, 0, 2, 10, CELL_CHUNK);
	assert_int_equal(box_find(&box, STRATUM_DEVICE, 0, 0), request.slots[0][0]);
	assert_int_equal(box_find(&box, STRATUM_DEVICE, 0, 1), request.slots[0][1]);
	assert_false(holds(&box, 0, 2));
	assert_int_equal(box_probe(&box, &other, 3)->device_tokens, 8);
	finish(&box, &request);
	assert_int_equal(box_probe(&box, &other, 3)->device_tokens, 8);
	assert_int_equal(unbound(&box), 6);
	box_close(&box);
}

static void to_publish_again_or_nothing_changes_nothing(void **state)
{
	struct box         box;
	struct box_request request;

	(void)state;
	box_open(&box, 4, 8, 0, one_full);
	start(&box, &request, 8);
	box_advance(&box, &request, 0, 0, 0, CELL_NONE);
	assert_int_equal(box.inserted, 0);
	box_advance(&box, &request, 0, 1, 8, CELL_CHUNK);
	box_advance(&box, &request, 0, 2, 8, CELL_CHUNK);
	box_advance(&box, &request, 0, 2, 8, CELL_CHUNK);
	assert_int_equal(box.inserted, 2);
	assert_int_equal(refs(&box, 0, request.slots[0][0]), 2);
	finish(&box, &request);
	box_close(&box);
}

/* A kind only rises; the newest epoch stays. */
static void a_second_block_of_one_name_is_given_up(void **state)
{
	const struct pool *pool;
	struct box         box;
	struct box_request first, second;
	uint32_t           duplicate;

	(void)state;
	box_open(&box, 4, 2, 0, pairs);
	pool = cache_pool(box.cache, STRATUM_DEVICE);
	start(&box, &first, 8);
	box_advance(&box, &first, 0, 1, 8, CELL_ENDPOINT);
	start(&box, &second, 4);
	duplicate = second.slots[0][0];
	box_advance(&box, &second, 0, 1, 4, CELL_CHUNK);
	assert_int_not_equal(second.slots[0][0], duplicate);
	assert_int_equal(second.slots[0][0], first.slots[0][0]);
	assert_int_equal(pool_used(pool, pool_parent_of(pool, 0, duplicate)), 0);
	assert_int_equal(refs(&box, 0, first.slots[0][0]), 3);
	assert_int_equal(box.inserted, 1);
	assert_int_equal(box_view(&box, STRATUM_DEVICE, 0, 0).epoch, second.epoch);
	assert_int_equal(box_view(&box, STRATUM_DEVICE, 0, 0).kind, CELL_ENDPOINT);
	finish(&box, &first);
	finish(&box, &second);
	box_close(&box);
}

/* What cannot be a prefix hash does no harm: a name stays with its block, a block with its name. */
static void a_name_that_is_taken_by_another_position_is_left_alone(void **state)
{
	struct box         box;
	struct box_request request;
	uint32_t           blocks[2];

	(void)state;
	box_open(&box, 4, 4, 0, one_full);
	start(&box, &request, 8);
	memcpy(blocks, request.slots[0], sizeof(blocks));
	box.hashes[1] = box.hashes[0];
	box_advance(&box, &request, 0, 2, 8, CELL_CHUNK);
	assert_memory_equal(request.slots[0], blocks, sizeof(blocks));
	assert_int_equal(box.inserted, 1);
	box.hashes[0] = box.hashes[2];
	box_advance(&box, &request, 0, 1, 8, CELL_CHUNK);
	assert_int_equal(box.inserted, 1);
	finish(&box, &request);
	box_close(&box);
}

static void namespaces_do_not_share(void **state)
{
	const struct kvs_namespace other = { { 7 } };
	struct cell_name           name = { &other, NULL, 0, 0 };
	struct box                 box;
	struct box_request         request;

	(void)state;
	box_open(&box, 4, 4, 0, one_full);
	box_put(&box, 0, 0, 1);
	name.hash = &box.hashes[0];
	assert_int_equal(cache_find(box.cache, STRATUM_DEVICE, &name), BLOCK_NULL);
	start(&box, &request, 4);
	assert_int_equal(cache_publish(box.cache, request.tables, &other, box.hashes, 0, 1,
				       request.epoch, CELL_CHUNK, &box.err),
			 0);
	assert_int_equal(cache_find(box.cache, STRATUM_DEVICE, &name), request.slots[0][0]);
	assert_int_not_equal(request.slots[0][0], box_find(&box, STRATUM_DEVICE, 0, 0));
	finish(&box, &request);
	box_close(&box);
}

/* The window needs no more to be restored at the boundary, wherever the request is by now. */
static void a_window_publishes_the_blocks_before_the_boundary(void **state)
{
	static const struct group_spec window9[BOX_GROUPS] = { BOX_WINDOW(9, 4, 1) };
	static const uint32_t          computed[] = { 12, 14 };
	struct box                     box;
	struct box_request             request;
	uint32_t                       i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(computed); i++) {
		box_open(&box, 4, 8, 0, window9);
		start(&box, &request, computed[i]);
		box_advance(&box, &request, 2, 3, computed[i], CELL_CHUNK);
		assert_false(holds(&box, 0, 0));
		assert_true(holds(&box, 0, 1)); /* though only page 2 is new */
		assert_true(holds(&box, 0, 2));
		finish(&box, &request);
		box_close(&box);
	}
}

static void groups_of_smaller_blocks_publish_only_what_a_restore_needs(void **state)
{
	static const struct group_spec specs[BOX_GROUPS] = { BOX_FULL(8, 1), BOX_WINDOW(5, 2, 1) };
	struct box                     box;
	struct box_request             request, other;
	struct cell_name               name = { NULL, NULL, 1, 0 };

	(void)state;
	box_open(&box, 8, 12, 0, specs);
	start(&box, &request, 8);
	box_advance(&box, &request, 0, 1, 8, CELL_CHUNK);
	assert_true(holds(&box, 0, 0));
	name.space = &box.space;
	name.hash = &box.hashes[0];
	for (name.offset = 0; name.offset < 4; name.offset++) {
		assert_int_equal(cache_find(box.cache, STRATUM_DEVICE, &name) != BLOCK_NULL,
				 name.offset >= 2);
	}
	assert_int_equal(box_probe(&box, &other, 1)->device_tokens, 8);
	assert_int_equal(cache_probe_hits(box.cache, &other.probe, 1, STRATUM_DEVICE), 2);
	finish(&box, &request);
	box_close(&box);
}

static void a_loaded_range_is_published_where_it_lies(void **state)
{
	struct box         box;
	struct box_request request, other;
	uint32_t           rc[4];

	(void)state;
	box_open(&box, 4, 16, 0, full_and_window);
	box_put(&box, 0, 0, 4);
	start(&box, &request, 24);
	cache_reclaim(box.cache, request.tables, 20);
	assert_int_equal(request.tables[1].reclaimed, 4);
	assert_int_equal(cache_publish(box.cache, request.tables, &box.space, &box.hashes[3], 3, 3,
				       request.epoch, CELL_CHUNK, &box.err),
			 0);
	assert_false(holds(&box, 1, 3)); /* a hole has nothing to publish */
	assert_true(holds(&box, 1, 4));
	assert_true(holds(&box, 1, 5));
	assert_int_equal(box_probe(&box, &other, 6)->device_tokens, 24);
	rc[0] = cache_publish(box.cache, request.tables, &box.space, box.hashes, 4, 3, request.epoch,
			      CELL_CHUNK, &box.err);
	assert_non_null(strstr(box.err.message, "\"full0\": page_count"));
	rc[1] = cache_publish(box.cache, request.tables, &box.space, box.hashes, UINT32_MAX, 1,
			      request.epoch, CELL_CHUNK, &box.err);
	rc[2] = cache_publish(box.cache, request.tables, &box.space, box.hashes, 0, 1, request.epoch,
			      CELL_NONE, &box.err);
	rc[3] = cache_publish(box.cache, request.tables, &box.space, box.hashes, 0, 1, 0, CELL_CHUNK,
			      &box.err);
	assert_true(rc[0] == rc[1] && rc[1] == rc[2] && rc[2] == rc[3]);
	assert_int_equal((int)rc[0], KVS_E_INVALID);
	finish(&box, &request);
	box_close(&box);
}

/* --- retention -------------------------------------------------------------------------------- */

static void a_block_that_slid_out_stays_published(void **state)
{
	struct box         box;
	struct box_request request, other;
	uint32_t           block;

	(void)state;
	box_open(&box, 4, 4, 0, window4);
	start(&box, &request, 4);
	box_advance(&box, &request, 0, 1, 4, CELL_CHUNK);
	block = request.slots[0][0];
	assert_int_equal(box_take(&box, &request, 4), 0);
	cache_reclaim(box.cache, request.tables, 7);
	assert_int_equal(request.slots[0][0], BLOCK_NULL);
	assert_int_equal(request.tables[0].count, 2);
	assert_int_equal(box_probe(&box, &other, 1)->device_tokens, 4);
	assert_int_equal(box_find(&box, STRATUM_DEVICE, 0, 0), block);
	assert_true(box_view(&box, STRATUM_DEVICE, 0, 0).idle);
	finish(&box, &request);
	box_close(&box);
}

static void only_what_slid_out_is_freed_and_can_be_taken_again(void **state)
{
	struct box         box;
	struct box_request request, other;

	(void)state;
	box_open(&box, 2, 4, 0, window4_small);
	start(&box, &request, 8);
	cache_reclaim(box.cache, request.tables, 4); /* inside of the window: nothing */
	assert_int_equal(unbound(&box), 0);
	cache_reclaim(box.cache, request.tables, 8);
	assert_int_equal(unbound(&box), 2);
	assert_int_equal(request.tables[0].reclaimed, 2);
	start(&box, &other, 4);
	cache_reclaim(box.cache, request.tables, 1000); /* at most what there is */
	assert_int_equal(request.tables[0].count, 4);
	assert_int_equal(request.tables[0].reclaimed, 4);
	finish(&box, &request);
	finish(&box, &other);
	box_close(&box);
}

static void full_groups_expire_nothing(void **state)
{
	static const struct group_spec specs[BOX_GROUPS] = { BOX_FULL(2, 1), BOX_WINDOW(4, 2, 1) };
	struct box                     box;
	struct box_request             request;

	(void)state;
	box_open(&box, 2, 8, 0, specs);
	start(&box, &request, 6);
	cache_reclaim(box.cache, request.tables, 5);
	assert_int_equal(request.tables[0].reclaimed, 0);
	assert_int_equal(request.tables[1].reclaimed, 1);
	assert_int_equal(unbound(&box), 3);
	finish(&box, &request);
	box_close(&box);
}

/* A block that a copy to Host still reads is no credit, until that copy is counted as done. */
static void the_slide_credit_counts_what_a_reclaim_makes_takable(void **state)
{
	struct box                box;
	struct box_request        request;
	const struct cache_block  released = { 0, 1 };
	const struct table *const table = &request.tables[0];

	(void)state;
	box_open(&box, 4, 2, 0, window4);
	start(&box, &request, 8);
	assert_int_equal(cache_slide_credit(box.cache, table, 0, 6, false), 0);
	assert_int_equal(cache_slide_credit(box.cache, table, 0, 7, false), 1);
	assert_int_equal(cache_slide_credit(box.cache, table, 0, 7, true), 0);
	assert_int_equal(cache_publish(box.cache, request.tables, &box.space, box.hashes, 0, 1,
				       request.epoch, CELL_CHUNK, &box.err),
			 0);
	assert_int_equal(cache_slide_credit(box.cache, table, 0, 7, true), 1);
	assert_int_equal(request.slots[0][0], released.block);
	cache_pin(box.cache, STRATUM_DEVICE, 0, released.block);
	assert_int_equal(cache_slide_credit(box.cache, table, 0, 7, false), 0);
	assert_false(box_view(&box, STRATUM_DEVICE, 0, 0).idle);
	{
		const struct demand          demand = demand_dense(4, 0);
		const struct cache_admission admission = {
			request.tables, &demand, NULL,
			box_completed(&box, 0, 0, 7, CELL_NONE), request.epoch
		};

		assert_false(cache_can_admit(box.cache, &admission, NULL, 0));
		assert_true(cache_can_admit(box.cache, &admission, &released, 1));
	}
	cache_unpin(box.cache, STRATUM_DEVICE, 0, released.block);
	finish(&box, &request);
	box_close(&box);
}

static void several_windows_slide_each_by_its_own(void **state)
{
	static const struct group_spec specs[BOX_GROUPS] = { BOX_FULL(2, 1), BOX_WINDOW(6, 2, 1),
							     BOX_WINDOW(2, 2, 1) };
	static const uint32_t          expected[] = { 0, 2, 4 };
	struct box                     box;
	struct box_request             request;
	uint32_t                       before, g;

	(void)state;
	box_open(&box, 2, 20, 0, specs);
	start(&box, &request, 10);
	before = unbound(&box);
	for (g = 0; g < 3; g++) {
		assert_int_equal(cache_slide_credit(box.cache, &request.tables[g], g, 10, false),
				 expected[g]);
	}
	cache_reclaim(box.cache, request.tables, 10);
	assert_int_equal(unbound(&box), before + 6);
	finish(&box, &request);
	box_close(&box);
}

/* Chunks of 2 tokens, a window of 4: never more than 3 blocks of 2 at once. */
static void a_window_keeps_its_blocks_bounded(void **state)
{
	const struct demand demand = demand_dense(2, 0);
	struct box          box;
	struct box_request  request;
	uint32_t            step;

	(void)state;
	box_open(&box, 2, 3, 0, window4_small);
	box_request(&box, &request);
	for (step = 0; step < 20; step++) {
		const struct cache_completed completed =
			box_completed(&box, step ? step - 1 : 0, step, step * 2, CELL_CHUNK);
		struct cache_admitted        admitted;

		assert_int_equal(box_admit(&box, &request, &demand, false, &completed, &admitted), 0);
	}
	assert_int_equal(request.tables[0].count, 20);
	finish(&box, &request);
	box_close(&box);
}

/* --- a chunk at a time ------------------------------------------------------------------------ */

static void a_chunk_publishes_slides_and_takes(void **state)
{
	const struct demand          demand = demand_dense(4, 0);
	struct box                   box;
	struct box_request           request;
	struct cache_admitted        admitted;
	struct cache_completed       completed;

	(void)state;
	box_open(&box, 2, 16, 0, window4_small);
	start(&box, &request, 8);
	assert_int_equal(unbound(&box), 12);
	completed = box_completed(&box, 0, 4, 8, CELL_CHUNK);
	assert_int_equal(box_admit(&box, &request, &demand, false, &completed, &admitted), 0);
	assert_int_equal(request.tables[0].reclaimed, 2);
	assert_false(holds(&box, 0, 1));
	assert_true(holds(&box, 0, 2));
	assert_true(holds(&box, 0, 3));
	assert_int_equal(unbound(&box), 12); /* two freed, two taken */
	completed = box_completed(&box, 4, 6, 12, CELL_CHUNK);
	assert_int_equal(box_admit(&box, &request, &demand, false, &completed, &admitted), 0);
	assert_int_equal(request.tables[0].reclaimed, 4);
	assert_true(holds(&box, 0, 3)); /* slid out, and stays published */
	assert_int_equal(unbound(&box), 10);
	finish(&box, &request);
	box_close(&box);
}

static void a_first_chunk_takes_what_the_hit_leaves(void **state)
{
	const struct demand   demands[] = { demand_dense(8, 0), demand_dense(8, 0) };
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;

	(void)state;
	box_open(&box, 4, 16, 0, two_full);
	box_put(&box, 0, 0, 2);
	box_put(&box, 1, 0, 3);
	box_request(&box, &request);
	assert_int_equal(box_probe(&box, &request, 3)->device_tokens, 8);
	assert_int_equal(box_admit(&box, &request, demands, true, NULL, &admitted), 0);
	assert_int_equal(admitted.fresh_count[0], 2);
	assert_int_equal(admitted.fresh_count[1], 2);
	assert_int_equal(request.tables[0].count, 4);
	assert_int_equal(request.tables[1].count, 4);
	assert_int_equal(refs(&box, 1, request.slots[1][0]), 2);
	assert_true(box_view(&box, STRATUM_DEVICE, 1, 2).idle); /* beyond the joint boundary */
	finish(&box, &request);
	box_close(&box);
}

static void without_names_a_step_only_slides_and_takes(void **state)
{
	const struct demand    demand = demand_dense(2, 0);
	struct cache_completed computed;
	struct box             box;
	struct box_request     request;
	struct cache_admitted  admitted;

	(void)state;
	box_open(&box, 2, 8, 0, window4_small);
	start(&box, &request, 8);
	computed = box_completed(&box, 0, 0, 8, CELL_NONE);
	assert_int_equal(box_admit(&box, &request, &demand, false, &computed, &admitted), 0);
	assert_int_equal(box.inserted, 0);
	assert_int_equal(request.tables[0].reclaimed, 2);
	assert_int_equal(request.tables[0].count, 5);
	finish(&box, &request);
	assert_int_equal(unbound(&box), 8);
	box_close(&box);
}

static void a_shortfall_in_one_group_takes_nothing_of_any(void **state)
{
	struct box         box;
	struct box_request request;

	(void)state;
	box_open(&box, 4, 3, 0, two_full);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 8), KVS_E_FULL);
	assert_int_equal(unbound(&box), 3);
	assert_int_equal(box_take(&box, &request, 4), 0);
	assert_int_equal(request.tables[0].count, 1);
	assert_int_equal(request.tables[1].count, 1);
	finish(&box, &request);
	assert_int_equal(unbound(&box), 3);
	box_close(&box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_pages_can_be_hit_and_a_started_one_cannot),
		cmocka_unit_test(to_publish_again_or_nothing_changes_nothing),
		cmocka_unit_test(a_second_block_of_one_name_is_given_up),
		cmocka_unit_test(a_name_that_is_taken_by_another_position_is_left_alone),
		cmocka_unit_test(namespaces_do_not_share),
		cmocka_unit_test(a_window_publishes_the_blocks_before_the_boundary),
		cmocka_unit_test(groups_of_smaller_blocks_publish_only_what_a_restore_needs),
		cmocka_unit_test(a_loaded_range_is_published_where_it_lies),
		cmocka_unit_test(a_block_that_slid_out_stays_published),
		cmocka_unit_test(only_what_slid_out_is_freed_and_can_be_taken_again),
		cmocka_unit_test(full_groups_expire_nothing),
		cmocka_unit_test(the_slide_credit_counts_what_a_reclaim_makes_takable),
		cmocka_unit_test(several_windows_slide_each_by_its_own),
		cmocka_unit_test(a_window_keeps_its_blocks_bounded),
		cmocka_unit_test(a_chunk_publishes_slides_and_takes),
		cmocka_unit_test(a_first_chunk_takes_what_the_hit_leaves),
		cmocka_unit_test(without_names_a_step_only_slides_and_takes),
		cmocka_unit_test(a_shortfall_in_one_group_takes_nothing_of_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
