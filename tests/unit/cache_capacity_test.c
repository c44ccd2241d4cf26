/* SPDX-License-Identifier: Apache-2.0 */
/* Views of capacity, and what a cache refuses to be opened with.  Pages of 4 tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cache_box.h"

static const struct group_spec one_full[BOX_GROUPS] = { BOX_FULL(4, 1) };
static const struct group_spec pair_and_single[BOX_GROUPS] = { BOX_FULL(4, 2), BOX_FULL(4, 1) };

static void available_are_unbound_and_idle_parents(void **state)
{
	const uint32_t     needed[] = { 3, 2 };
	struct box         box;
	struct box_request request;

	(void)state;
	box_open(&box, 4, 6, 3, pair_and_single);
	assert_int_equal(cache_total(box.cache, STRATUM_DEVICE), 6);
	assert_int_equal(cache_total(box.cache, STRATUM_HOST), 3);
	assert_int_equal(cache_available(box.cache), 6);
	assert_int_equal(cache_parents_needed(box.cache, needed), 4);
	box_put(&box, 0, 0, 1);
	assert_int_equal(cache_available(box.cache), 6);
	assert_int_equal(cache_group_room(box.cache, 0), 11);
	assert_int_equal(cache_group_room(box.cache, 1), 5);
	box_request(&box, &request);
	assert_int_equal(box_take(&box, &request, 4), 0);
	/* The request's block of group 0 lies beside the idle one: that parent is not to be had. */
	assert_int_equal(cache_available(box.cache), 4);
	assert_int_equal(pool_unbound(cache_pool(box.cache, STRATUM_DEVICE)), 4);
	box_put_host(&box, 0, 0, 1);
	assert_int_equal(cache_host_free(box.cache), 2); /* Host counts unbound parents only */
	cache_free(box.cache, request.tables);
	box_close(&box);
}

static void without_host_there_is_none(void **state)
{
	struct box box;

	(void)state;
	box_open(&box, 4, 2, 0, one_full);
	assert_int_equal(cache_total(box.cache, STRATUM_HOST), 0);
	assert_int_equal(cache_host_free(box.cache), 0);
	assert_null(cache_pool(box.cache, STRATUM_HOST));
	assert_int_equal(cache_host_acquire(box.cache, 0), BLOCK_NULL);
	assert_true(cache_clear(box.cache));
	assert_true(cache_bytes(box.cache) > 0);
	box_close(&box);
}

static void what_is_no_block_is_published_as_nothing(void **state)
{
	struct cell_view view;
	struct box       box;

	(void)state;
	box_open(&box, 4, 2, 0, pair_and_single);
	box_put(&box, 0, 0, 1);
	assert_true(cache_view(box.cache, STRATUM_DEVICE, 0, 1, &view));
	assert_false(cache_view(box.cache, STRATUM_DEVICE, 0, BLOCK_NULL, &view));
	assert_false(cache_view(box.cache, STRATUM_DEVICE, 0, 5, &view));
	assert_false(cache_view(box.cache, STRATUM_DEVICE, 1, 3, &view));
	assert_false(cache_view(box.cache, STRATUM_DEVICE, 0, UINT32_MAX, &view));
	assert_false(cache_view(box.cache, STRATUM_DEVICE, 2, 1, &view));
	assert_false(cache_view(box.cache, STRATUM_HOST, 0, 1, &view));
	box_close(&box);
}

static void active_are_the_parents_that_tables_lie_in(void **state)
{
	struct box          box;
	struct box_request  first, second;
	struct table *const both[] = { first.tables, second.tables };

	(void)state;
	box_open(&box, 4, 6, 0, pair_and_single);
	box_request(&box, &first);
	box_request(&box, &second);
	assert_int_equal(cache_active(box.cache, both, 2), 0);
	assert_int_equal(box_take(&box, &first, 4), 0);
	assert_int_equal(box_take(&box, &second, 4), 0);
	/* The two blocks of group 0 share a parent. */
	assert_int_equal(cache_active(box.cache, both, 1), 2);
	assert_int_equal(cache_active(box.cache, both, 2), 3);
	cache_free(box.cache, first.tables);
	cache_free(box.cache, second.tables);
	box_close(&box);
}

static void what_another_request_shares_is_not_releasable(void **state)
{
	const struct demand   none = demand_dense(0, 0);
	struct box            box;
	struct box_request    first, second;
	struct cache_admitted admitted;
	struct table *const   both[] = { first.tables, second.tables };

	(void)state;
	box_open(&box, 4, 4, 0, one_full);
	box_request(&box, &first);
	assert_int_equal(box_take(&box, &first, 8), 0);
	box_advance(&box, &first, 0, 2, 8, CELL_CHUNK);
	box_request(&box, &second);
	box_probe(&box, &second, 1);
	assert_int_equal(box_admit(&box, &second, &none, true, NULL, &admitted), 0);
	assert_int_equal(cache_releasable(box.cache, both, 1), 1);
	assert_int_equal(cache_releasable(box.cache, both, 2), 2);
	cache_free(box.cache, second.tables);
	assert_int_equal(cache_releasable(box.cache, both, 1), 2);
	cache_free(box.cache, first.tables);
	box_close(&box);
}

static void a_parent_with_a_block_of_somebody_else_is_not_releasable(void **state)
{
	struct box          box;
	struct box_request  first, second;
	struct table *const both[] = { first.tables, second.tables };

	(void)state;
	box_open(&box, 4, 2, 0, (struct group_spec[BOX_GROUPS]){ BOX_FULL(4, 2) });
	box_request(&box, &first);
	box_request(&box, &second);
	assert_int_equal(box_take(&box, &first, 4), 0);
	assert_int_equal(box_take(&box, &second, 4), 0);
	assert_int_equal(cache_releasable(box.cache, both, 1), 0);
	assert_int_equal(cache_releasable(box.cache, both, 2), 1);
	cache_free(box.cache, first.tables);
	cache_free(box.cache, second.tables);
	box_close(&box);
}

static void a_demand_that_cannot_be_meant_needs_no_number(void **state)
{
	const struct demand bad = demand_sparse(0, 0, 0), good = demand_dense(9, 0);
	struct box          box;
	struct box_request  request;

	(void)state;
	box_open(&box, 4, 2, 0, one_full);
	box_request(&box, &request);
	assert_int_equal(cache_blocks_needed(box.cache, &request.tables[0], 0, &bad), UINT32_MAX);
	assert_int_equal(cache_blocks_needed(box.cache, &request.tables[0], 0, &good), 3);
	box_close(&box);
}

static void what_a_cache_cannot_be_is_named(void **state)
{
	static const struct {
		uint32_t    prefix, device, host, pages, block, packing;
		const char *words;
	} cases[] = {
		{ 0, 2, 2, 4, 4, 1, "page_tokens: 0" },
		{ 128, 2, 2, 4, 48, 1, "block_tokens: 48" },
		{ 4, 2, 2, 4, 4, 0, "packing: 0" },
		{ 4, 2, 2, 0, 4, 1, "prompt_pages: 0" },
		{ 4, 0, 0, 4, 4, 1, "parents: 0" },
		{ 4, 0, 2, 4, 4, 1, "parent" },
		{ 4, 1u << 30, 1u << 30, 4, 4, 4, "parents: 1073741824" },
		{ 64, 1u << 29, 0, 4, 1, 2, "columns" },
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		const struct group_spec    spec = { "full", GROUP_FULL, cases[i].block, 0,
						    cases[i].packing };
		const struct cache_options options = { .groups = &spec,
						       .group_count = 1,
						       .page_tokens = cases[i].prefix,
						       .device_parents = cases[i].device,
						       .host_parents = cases[i].host,
						       .prompt_pages = cases[i].pages };
		struct cache              *cache = NULL;
		struct kvs_error           err = { 0 };

		assert_int_equal(cache_open(&options, &cache, &err), KVS_E_INVALID);
		if (!strstr(err.message, cases[i].words))
			fail_msg("case %u: %s", i, err.message);
		assert_null(cache);
	}
	cache_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(available_are_unbound_and_idle_parents),
		cmocka_unit_test(without_host_there_is_none),
		cmocka_unit_test(what_is_no_block_is_published_as_nothing),
		cmocka_unit_test(active_are_the_parents_that_tables_lie_in),
		cmocka_unit_test(what_another_request_shares_is_not_releasable),
		cmocka_unit_test(a_parent_with_a_block_of_somebody_else_is_not_releasable),
		cmocka_unit_test(a_demand_that_cannot_be_meant_needs_no_number),
		cmocka_unit_test(what_a_cache_cannot_be_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
