/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: what it takes, what it reports, what a refusal leaves behind.  Pages of 4 tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cache_box.h"

static const struct group_spec one_full[BOX_GROUPS] = { BOX_FULL(4, 1) };
static const struct group_spec pairs[BOX_GROUPS] = { BOX_FULL(4, 2) };
static const struct group_spec window5[BOX_GROUPS] = { BOX_WINDOW(5, 4, 1) };
static const struct group_spec window7[BOX_GROUPS] = { BOX_WINDOW(7, 4, 1) };
static const struct group_spec pair_and_single[BOX_GROUPS] = { BOX_FULL(4, 2), BOX_FULL(4, 1) };

static uint32_t unbound(const struct box *box)
{
	return pool_unbound(cache_pool(box->cache, STRATUM_DEVICE));
}

static void free_tables(struct box *box, struct box_request *request)
{
	cache_free(box->cache, request->tables);
}

/* --- what is taken and reported --------------------------------------------------------------- */

static void only_fresh_blocks_are_reported(void **state)
{
	static const struct group_spec specs[BOX_GROUPS] = { BOX_FULL(4, 4), BOX_STATE(4, 1) };
	const struct demand            first[] = { demand_dense(5, 0), demand_dense(1, 0) };
	const struct demand            second[] = { demand_dense(1, 0), demand_dense(1, 0) };
	struct box                     box;
	struct box_request             request;
	struct cache_admitted          admitted;

	(void)state;
	box_open(&box, 4, 4, 0, specs);
	box_request(&box, &request);
	assert_int_equal(box_admit(&box, &request, first, false, NULL, &admitted), 0);
	assert_int_equal(admitted.fresh_count[0], 2);
	assert_int_equal(admitted.fresh_count[1], 1);
	assert_memory_equal(admitted.fresh, request.slots[0], 2 * sizeof(uint32_t));
	assert_int_equal(admitted.fresh[2], request.slots[1][0]);
	assert_int_equal(box_admit(&box, &request, second, false, NULL, &admitted), 0);
	assert_int_equal(admitted.fresh_count[0] + admitted.fresh_count[1], 0);
	free_tables(&box, &request);
	box_close(&box);
}

static void a_hit_costs_no_block_and_is_shared(void **state)
{
	const struct demand   demand = demand_dense(1, 0);
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;

	(void)state;
	box_open(&box, 4, 2, 0, one_full);
	box_put(&box, 0, 0, 1);
	box_request(&box, &request);
	assert_int_equal(box_probe(&box, &request, 1)->device_tokens, 4);
	assert_int_equal(cache_probe_hits(box.cache, &request.probe, 0, STRATUM_DEVICE), 1);
	assert_int_equal(box_admit(&box, &request, &demand, true, NULL, &admitted), 0);
	assert_int_equal(admitted.device_tokens, 4);
	assert_int_equal(admitted.host_tokens, 4);
	assert_int_equal(admitted.load_count + admitted.copy_count, 0);
	assert_int_equal(admitted.fresh_count[0], 1);
	assert_int_equal(admitted.fresh[0], request.slots[0][1]);
	assert_int_equal(request.slots[0][0], box_find(&box, STRATUM_DEVICE, 0, 0));
	assert_int_equal(pool_refs(cache_pool(box.cache, STRATUM_DEVICE), 0, request.slots[0][0]), 2);
	assert_int_equal(unbound(&box), 0);
	free_tables(&box, &request);
	assert_int_equal(unbound(&box), 1);
	box_close(&box);
}

static void a_reserve_is_used_before_more_is_taken(void **state)
{
	const struct demand   first = demand_dense(1, 8), next = demand_dense(0, 8);
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;

	(void)state;
	box_open(&box, 4, 8, 0, one_full);
	box_request(&box, &request);
	assert_int_equal(box_admit(&box, &request, &first, false, NULL, &admitted), 0);
	assert_int_equal(request.tables[0].count, 3);
	assert_int_equal(request.tables[0].available, 11);
	assert_int_equal(unbound(&box), 5);
	assert_int_equal(cache_blocks_needed(box.cache, &request.tables[0], 0, &next), 0);
	assert_int_equal(table_consume(&request.tables[0], &cache_groups(box.cache)->group[0], 8, NULL),
			 0);
	assert_int_equal(request.tables[0].available, 3);
	free_tables(&box, &request);
	box_close(&box);
}

static void parents_are_taken_in_the_order_of_their_release(void **state)
{
	struct box         box;
	struct box_request requests[4], next;
	uint32_t           blocks[4], i;

	(void)state;
	box_open(&box, 4, 4, 0, one_full);
	for (i = 0; i < 4; i++) {
		box_request(&box, &requests[i]);
		assert_int_equal(box_take(&box, &requests[i], 4), 0);
		blocks[i] = requests[i].slots[0][0];
	}
	free_tables(&box, &requests[2]);
	free_tables(&box, &requests[0]);
	box_request(&box, &next);
	assert_int_equal(box_take(&box, &next, 8), 0);
	assert_int_equal(next.slots[0][0], blocks[2]);
	assert_int_equal(next.slots[0][1], blocks[0]);
	free_tables(&box, &next);
	free_tables(&box, &requests[1]);
	free_tables(&box, &requests[3]);
	box_close(&box);
}

/* From the last slot to the first, whoever else holds what. */
static void a_request_gives_its_blocks_back_from_the_end(void **state)
{
	struct box         box;
	struct box_request request, next;
	uint32_t           first, last;

	(void)state;
	box_open(&box, 4, 2, 0, one_full);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 8), 0);
	first = request.slots[0][0];
	last = request.slots[0][1];
	free_tables(&box, &request);
	assert_int_equal(request.tables[0].count, 0);
	box_request(&box, &next);
	assert_int_equal(box_take(&box, &next, 8), 0);
	assert_int_equal(next.slots[0][0], last);
	assert_int_equal(next.slots[0][1], first);
	free_tables(&box, &next);
	box_close(&box);
}

static void blocks_of_one_request_share_a_new_parent(void **state)
{
	const struct pool *pool;
	struct box         box;
	struct box_request request;

	(void)state;
	box_open(&box, 4, 2, 0, pairs);
	pool = cache_pool(box.cache, STRATUM_DEVICE);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 8), 0);
	assert_int_equal(pool_parent_of(pool, 0, request.slots[0][0]),
			 pool_parent_of(pool, 0, request.slots[0][1]));
	free_tables(&box, &request);
	box_close(&box);
}

static void groups_of_different_packing_share_the_pool(void **state)
{
	const struct pool *pool;
	struct box         box;
	struct box_request request;

	(void)state;
	box_open(&box, 4, 2, 0, pair_and_single);
	pool = cache_pool(box.cache, STRATUM_DEVICE);
	box_put(&box, 0, 0, 1);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 4), 0);
	assert_int_equal(request.slots[0][0], 2);
	assert_int_equal(pool_parent_of(pool, 1, request.slots[1][0]), 2);
	assert_int_not_equal(box_find(&box, STRATUM_DEVICE, 0, 0), BLOCK_NULL);
	free_tables(&box, &request);
	box_close(&box);
}

static void a_foreign_parent_is_not_shared_even_with_room_left(void **state)
{
	static const struct group_spec specs[BOX_GROUPS] = { BOX_FULL(4, 4), BOX_FULL(4, 1) };
	const struct demand            only_second[] = { demand_dense(0, 0), demand_dense(4, 0) };
	struct box                     box;
	struct box_request             request;
	struct cache_admitted          admitted;

	(void)state;
	box_open(&box, 4, 1, 0, specs);
	box_put(&box, 0, 0, 1);
	cache_pin(box.cache, STRATUM_DEVICE, 0, 1);
	box_request(&box, &request);
	assert_int_equal(box_admit(&box, &request, only_second, false, NULL, &admitted), KVS_E_FULL);
	assert_int_equal(request.tables[0].count + request.tables[1].count, 0);
	cache_unpin(box.cache, STRATUM_DEVICE, 0, 1);
	assert_int_equal(box_admit(&box, &request, only_second, false, NULL, &admitted), 0);
	free_tables(&box, &request);
	box_close(&box);
}

/* --- epochs ----------------------------------------------------------------------------------- */

static void a_hit_is_touched_with_one_epoch(void **state)
{
	const struct demand   demand = demand_dense(1, 0);
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;
	uint32_t              page;

	(void)state;
	box_open(&box, 4, 8, 0, one_full);
	for (page = 0; page < 4; page++)
		box_put(&box, 0, page, page + 1);
	box_request(&box, &request);
	box_probe(&box, &request, 4);
	assert_int_equal(box_admit(&box, &request, &demand, true, NULL, &admitted), 0);
	for (page = 0; page < 4; page++) {
		const struct cell_view view = box_view(&box, STRATUM_DEVICE, 0, page);

		assert_int_equal(view.epoch, admitted.epoch);
		assert_true(view.was_acquired);
		assert_false(view.idle);
	}
	free_tables(&box, &request);
	assert_true(box_view(&box, STRATUM_DEVICE, 0, 0).idle);
	box_close(&box);
}

static void later_chunks_keep_the_requests_epoch(void **state)
{
	struct box         box;
	struct box_request request, other;
	uint64_t           epoch;

	(void)state;
	box_open(&box, 4, 8, 0, one_full);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 4), 0);
	epoch = request.epoch;
	box_request(&box, &other);
	assert_int_equal(box_take(&box, &other, 4), 0);
	assert_int_equal(other.epoch, epoch + 1);
	assert_int_equal(box_take(&box, &request, 4), 0);
	assert_int_equal(request.epoch, epoch);
	box_advance(&box, &request, 0, 2, 8, CELL_CHUNK);
	assert_int_equal(box_view(&box, STRATUM_DEVICE, 0, 0).epoch, epoch);
	assert_int_equal(box_view(&box, STRATUM_DEVICE, 0, 1).epoch, epoch);
	assert_int_equal(cache_clock(box.cache), epoch + 1);
	free_tables(&box, &request);
	free_tables(&box, &other);
	box_close(&box);
}

static void a_probe_and_a_refusal_leave_no_trace(void **state)
{
	const struct demand   too_much = demand_dense(12, 0), fits = demand_dense(4, 0);
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;
	struct cell_view      before, after;
	uint64_t              clock;

	(void)state;
	box_open(&box, 4, 3, 0, one_full);
	box_put(&box, 0, 0, 1);
	clock = cache_clock(box.cache);
	before = box_view(&box, STRATUM_DEVICE, 0, 0);
	box_request(&box, &request);
	box_probe(&box, &request, 1);
	assert_int_equal(box_admit(&box, &request, &too_much, true, NULL, &admitted), KVS_E_FULL);
	after = box_view(&box, STRATUM_DEVICE, 0, 0);
	assert_int_equal(after.epoch, before.epoch);
	assert_int_equal(after.was_acquired, before.was_acquired);
	assert_true(after.idle);
	assert_int_equal(cache_clock(box.cache), clock);
	assert_int_equal(request.tables[0].count, 0);
	assert_int_equal(unbound(&box), 2);
	/* The same probe is as good as before. */
	assert_int_equal(box_admit(&box, &request, &fits, true, NULL, &admitted), 0);
	assert_int_equal(admitted.epoch, clock + 1);
	free_tables(&box, &request);
	box_close(&box);
}

/* --- what the admission itself lets go -------------------------------------------------------- */

static void an_expired_block_is_used_again_in_the_same_admission(void **state)
{
	const struct demand    demand = demand_dense(4, 0);
	struct cache_completed computed;
	struct box             box;
	struct box_request     request;
	struct cache_admitted  admitted;
	uint32_t               first;

	(void)state;
	box_open(&box, 4, 2, 0, window5);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 8), 0);
	first = request.slots[0][0];
	computed = box_completed(&box, 0, 0, 8, CELL_NONE);
	assert_int_equal(box_admit(&box, &request, &demand, false, &computed, &admitted), 0);
	assert_int_equal(request.slots[0][0], BLOCK_NULL);
	assert_int_equal(request.slots[0][2], first);
	assert_int_equal(request.tables[0].reclaimed, 1);
	free_tables(&box, &request);
	box_close(&box);
}

/* Page 0 gets its name, slides out, and its block is needed: all in one admission. */
static void a_page_may_be_published_and_evicted_in_one_admission(void **state)
{
	const struct demand    demand = demand_dense(4, 0);
	struct cache_completed completed;
	struct box             box;
	struct box_request     request;
	struct cache_admitted  admitted;
	uint32_t               first;

	(void)state;
	box_open(&box, 4, 3, 0, window7);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 10), 0);
	first = request.slots[0][0];
	completed = box_completed(&box, 0, 2, 10, CELL_CHUNK);
	assert_int_equal(box_admit(&box, &request, &demand, false, &completed, &admitted), 0);
	assert_int_equal(box.inserted, 2);
	assert_int_equal(box.removed, 1);
	assert_int_equal(box_find(&box, STRATUM_DEVICE, 0, 0), BLOCK_NULL);
	assert_int_equal(box_find(&box, STRATUM_DEVICE, 0, 1), request.slots[0][1]);
	assert_int_equal(request.slots[0][3], first);
	free_tables(&box, &request);
	box_close(&box);
}

static void an_expired_block_that_another_holds_is_no_room(void **state)
{
	const struct demand      demand = demand_dense(4, 0);
	const struct cache_block released = { 0, 1 };
	struct cache_completed   computed;
	struct cache_admission   admission;
	struct box               box;
	struct box_request       request;
	struct cache_admitted    admitted;

	(void)state;
	box_open(&box, 4, 2, 0, window5);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 8), 0);
	assert_int_equal(request.slots[0][0], 1);
	cache_pin(box.cache, STRATUM_DEVICE, 0, 1);
	computed = box_completed(&box, 0, 0, 8, CELL_NONE);
	assert_int_equal(box_admit(&box, &request, &demand, false, &computed, &admitted), KVS_E_FULL);
	assert_int_equal(request.slots[0][0], 1);
	assert_int_equal(request.tables[0].reclaimed, 0);
	/* Once that one lets go it would be. */
	admission = (struct cache_admission){ request.tables, &demand, NULL, computed, request.epoch };
	assert_false(cache_can_admit(box.cache, &admission, NULL, 0));
	assert_true(cache_can_admit(box.cache, &admission, &released, 1));
	assert_int_equal(request.slots[0][0], 1);
	cache_unpin(box.cache, STRATUM_DEVICE, 0, 1);
	assert_int_equal(box_admit(&box, &request, &demand, false, &computed, &admitted), 0);
	free_tables(&box, &request);
	box_close(&box);
}

static void the_hit_is_no_room_for_its_own_demand(void **state)
{
	const struct demand   demand = demand_dense(1, 0);
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;

	(void)state;
	box_open(&box, 4, 1, 0, one_full);
	box_put(&box, 0, 0, 1);
	box_request(&box, &request);
	assert_int_equal(box_probe(&box, &request, 1)->device_tokens, 4);
	assert_int_equal(box_admit(&box, &request, &demand, true, NULL, &admitted), KVS_E_FULL);
	assert_int_not_equal(box_find(&box, STRATUM_DEVICE, 0, 0), BLOCK_NULL);
	assert_int_equal(request.tables[0].count, 0);
	box_close(&box);
}

/* --- what is refused -------------------------------------------------------------------------- */

static void check_refused(struct box *box, const struct cache_admission *admission, int rc,
			  const char *words)
{
	struct cache_admitted admitted = { .epoch = 99 };
	const uint64_t        clock = cache_clock(box->cache);

	assert_int_equal(cache_admit(box->cache, admission, &admitted, &box->err), rc);
	assert_non_null(strstr(box->err.message, words));
	assert_int_equal(admitted.epoch, 99);
	assert_int_equal(cache_clock(box->cache), clock);
	assert_false(cache_can_admit(box->cache, admission, NULL, 0));
	cache_audit(box->cache);
}

static void what_the_caller_got_wrong_is_named(void **state)
{
	const struct demand    demand = demand_dense(1, 0), none = demand_dense(0, 0);
	struct box             box;
	struct box_request     request;
	struct cache_admission admission = { .demands = &demand };

	(void)state;
	box_open(&box, 4, 4, 0, one_full);
	box_put(&box, 0, 0, 1);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 4), 0);
	admission.tables = request.tables;
	admission.completed.computed = COMPUTED_NONE;
	admission.epoch = 7;
	check_refused(&box, &admission, KVS_E_INVALID, "epoch: 7");
	admission.epoch = request.epoch;
	admission.completed = box_completed(&box, 0, 1, 3, CELL_CHUNK);
	check_refused(&box, &admission, KVS_E_INVALID, "computed: 3");
	admission.completed = box_completed(&box, 0, 2, 8, CELL_CHUNK);
	check_refused(&box, &admission, KVS_E_INVALID, "computed: 8 tokens, the tables end at 4");
	admission.completed.computed = COMPUTED_NONE;
	check_refused(&box, &admission, KVS_E_INVALID, "\"full0\": page_count");
	admission.completed.computed = (uint64_t)TOKENS_MAX + 1;
	check_refused(&box, &admission, KVS_E_INVALID, "computed: 2147483648");
	admission.completed = (struct cache_completed){ .computed = UINT64_MAX - 1 };
	check_refused(&box, &admission, KVS_E_INVALID, "computed: 18446744073709551614");
	admission.completed = box_completed(&box, 0, 1, 4, CELL_NONE);
	check_refused(&box, &admission, KVS_E_INVALID, "kind: 0");
	admission.completed = box_completed(&box, 1, 1, 4, CELL_CHUNK);
	admission.completed.kind = CELL_CHUNK;
	check_refused(&box, &admission, KVS_E_INVALID, "kind: 1");
	admission.completed = box_completed(&box, 2, 1, 4, CELL_NONE);
	check_refused(&box, &admission, KVS_E_INVALID, "new_begin: 2");
	admission.completed = (struct cache_completed){ .computed = COMPUTED_NONE };
	box_probe(&box, &request, 1);
	admission.probe = &request.probe;
	check_refused(&box, &admission, KVS_E_INVALID, "\"full0\": tables: 1 slots");
	free_tables(&box, &request);
	request.tables[0].slot_max = 0;
	admission.demands = &none;
	check_refused(&box, &admission, KVS_E_INVALID, "\"full0\": slot_max: 0");
	request.tables[0].slot_max = 1;
	admission.demands = &demand;
	check_refused(&box, &admission, KVS_E_INVALID, "\"full0\": tokens");
	request.tables[0].slot_max = 2;
	admission.completed.computed = 5;
	check_refused(&box, &admission, KVS_E_INVALID, "computed: 5");
	box_close(&box);
}

static void a_probe_is_stale_once_the_index_changed(void **state)
{
	const struct demand    demand = demand_dense(1, 0);
	struct box             box;
	struct box_request     request, other;
	struct cache_admission admission = { .demands = &demand,
					     .completed = { .computed = COMPUTED_NONE } };

	(void)state;
	box_open(&box, 4, 4, 0, one_full);
	box_put(&box, 0, 0, 1);
	box_request(&box, &request);
	box_request(&box, &other);
	admission.tables = request.tables;
	admission.probe = &request.probe;
	box_probe(&box, &request, 1);
	box_put(&box, 0, 1, 2);
	check_refused(&box, &admission, KVS_E_STALE, "probe");
	box_probe(&box, &request, 1);
	box_probe(&box, &other, 1);
	check_refused(&box, &admission, KVS_E_STALE, "probe");
	box_close(&box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_fresh_blocks_are_reported),
		cmocka_unit_test(a_hit_costs_no_block_and_is_shared),
		cmocka_unit_test(a_reserve_is_used_before_more_is_taken),
		cmocka_unit_test(parents_are_taken_in_the_order_of_their_release),
		cmocka_unit_test(a_request_gives_its_blocks_back_from_the_end),
		cmocka_unit_test(blocks_of_one_request_share_a_new_parent),
		cmocka_unit_test(groups_of_different_packing_share_the_pool),
		cmocka_unit_test(a_foreign_parent_is_not_shared_even_with_room_left),
		cmocka_unit_test(a_hit_is_touched_with_one_epoch),
		cmocka_unit_test(later_chunks_keep_the_requests_epoch),
		cmocka_unit_test(a_probe_and_a_refusal_leave_no_trace),
		cmocka_unit_test(an_expired_block_is_used_again_in_the_same_admission),
		cmocka_unit_test(a_page_may_be_published_and_evicted_in_one_admission),
		cmocka_unit_test(an_expired_block_that_another_holds_is_no_room),
		cmocka_unit_test(the_hit_is_no_room_for_its_own_demand),
		cmocka_unit_test(what_the_caller_got_wrong_is_named),
		cmocka_unit_test(a_probe_is_stale_once_the_index_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
