/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: what is room for a demand and what is not, and every sentence with which it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE

/* --- room ------------------------------------------------------------------------------------- */

static void a_foreign_parent_is_not_shared_even_with_room_left(void **state)
{
	static const struct lab_model model = { 4, 1, 0, { LAB_FULL(4, 4), LAB_FULL(4, 1) } };
	struct lab_step               step = lab_tokens(0);
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, "x");
	cache_pin(lab.cache, DEVICE, 0, 1);
	lab_begin(&lab, &request);
	step.demands[1] = demand_dense(4, 0);
	lab_refuse(&lab, &request, &step, KVS_E_FULL);
	cache_unpin(lab.cache, DEVICE, 0, 1);
	lab_admit(&lab, &request, &step);
	lab_expect_held(&lab, DEVICE, 0, "");
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void the_hit_is_no_room_for_its_own_demand(void **state)
{
	static const struct lab_model model = { 4, 1, 0, { LAB_FULL(4, 1) } };
	const struct lab_step         step = lab_probed(1);
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, "x");
	lab_probe(&lab, 1);
	assert_int_equal(lab.probe.device_tokens, 4);
	lab_begin(&lab, &request);
	lab_refuse(&lab, &request, &step, KVS_E_FULL);
	lab_expect_held(&lab, DEVICE, 0, "x");
	lab_close(&lab);
}

/* Page 0 gets its name, slides out, and its block is needed: all in one admission. */
static void a_page_may_be_published_and_evicted_in_one_admission(void **state)
{
	static const struct lab_model model = { 4, 3, 0, { LAB_WINDOW(4, 7, 1) } };
	struct lab_step               step = lab_tokens(10);
	struct lab_request            request;
	struct lab                    lab;
	uint32_t                      first;

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	first = request.slots[0][0];
	step = lab_tokens(4);
	lab_complete(&lab, &step, 2, 0, CELL_CHUNK, 10);
	lab_admit(&lab, &request, &step);
	assert_int_equal(lab.inserted, 2);
	assert_int_equal(lab.removed, 1);
	lab_expect_held(&lab, DEVICE, 0, ".x");
	lab_expect_table(&lab, &request, 0, ".xxx");
	assert_int_equal(request.slots[0][3], first);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* --- names ------------------------------------------------------------------------------------ */

/* What cannot be a prefix hash does no harm: a name stays with its block, a block with its name. */
static void a_name_that_is_taken_by_another_position_is_left_alone(void **state)
{
	static const struct lab_model model = { 4, 4, 0, { LAB_FULL(4, 1) } };
	struct lab_step               step = lab_tokens(8);
	struct lab_request            request;
	struct lab                    lab;
	uint32_t                      blocks[2];

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	memcpy(blocks, request.slots[0], sizeof(blocks));
	lab.hashes[1] = lab.hashes[0];
	lab_complete(&lab, &step, 2, 0, CELL_CHUNK, 8);
	lab_advance(&lab, &request, &step);
	assert_memory_equal(request.slots[0], blocks, sizeof(blocks));
	assert_int_equal(lab.inserted, 1);
	lab.hashes[0] = lab.hashes[2];
	lab_complete(&lab, &step, 1, 0, CELL_CHUNK, 8);
	lab_advance(&lab, &request, &step);
	assert_int_equal(lab.inserted, 1);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void one_name_at_two_pages_is_the_callers_mistake_and_no_panic(void **state)
{
	static const struct lab_model model = { 4, 4, 0, { LAB_WINDOW(4, 9, 1) } };
	struct lab_step               step = lab_tokens(8);
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, "..x");
	lab.hashes[0] = lab.hashes[2];
	lab_claim(&lab, &request, 1, 0);
	assert_int_equal(lab.probe.device_tokens, 4);
	lab_admit(&lab, &request, &step);
	/* 2 blocks, where 1 is free and slot 0, which bears page 2's name, slides out. */
	lab_complete(&lab, &step, 3, 1, CELL_CHUNK, 12);
	lab_admit(&lab, &request, &step);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void refuse_range(struct lab *lab, struct lab_request *request, uint32_t first_page,
			 uint32_t page_count, enum cell_kind kind, uint64_t epoch, const char *words)
{
	const uint64_t   digest = lab_digest(lab);
	struct kvs_error err;

	assert_int_equal(cache_publish(lab->cache, request->tables, &lab->space, lab->hashes, first_page,
				       page_count, epoch, kind, &err),
			 KVS_E_INVALID);
	assert_non_null(strstr(err.message, words));
	assert_int_equal(lab_digest(lab), digest);
}

/* The window's slots 0 to 3 slid out: a hole has nothing to publish. */
static void a_range_is_published_where_it_lies(void **state)
{
	static const struct lab_model model = { 4, 16, 0, { LAB_FULL(4, 1), LAB_WINDOW(4, 5, 1) } };
	const struct lab_step         step = lab_tokens(24);
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, "xxxx");
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	lab_reclaim(&lab, &request, 20);
	lab_publish(&lab, &request, 3, 3, CELL_CHUNK);
	lab_expect_held(&lab, DEVICE, 0, "xxxxxx");
	lab_expect_held(&lab, DEVICE, 1, "....xx");
	lab_probe(&lab, 6);
	assert_int_equal(lab.probe.device_tokens, 24);
	refuse_range(&lab, &request, 4, 3, CELL_CHUNK, request.epoch, "group 0 \"a\": page_count");
	refuse_range(&lab, &request, UINT32_MAX, 1, CELL_CHUNK, request.epoch, "page_count");
	refuse_range(&lab, &request, 0, 1, CELL_NONE, request.epoch, "kind: 0");
	refuse_range(&lab, &request, 0, 1, CELL_CHUNK, 0, "epoch: 0");
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* --- what is refused -------------------------------------------------------------------------- */

static void refuse(struct lab *lab, const struct cache_admission *admission, const char *words)
{
	const uint64_t        digest = lab_digest(lab);
	struct cache_admitted admitted = { .epoch = 99 };
	struct kvs_error      err;

	assert_int_equal(cache_admit(lab->cache, admission, &admitted, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, words));
	assert_int_equal(admitted.epoch, 99);
	assert_false(cache_can_admit(lab->cache, admission, NULL, 0));
	lab_audit(lab);
	assert_int_equal(lab_digest(lab), digest);
}

/* A request of one block; pages from begin on are new. */
static void what_completed_wrongly_is_named(void **state)
{
	static const struct lab_model model = { 4, 4, 0, { LAB_FULL(4, 1) } };
	static const struct {
		uint32_t       new_begin, pages;
		enum cell_kind kind;
		uint64_t       computed;
		const char    *words;
	} cases[] = {
		{ 0, 1, CELL_CHUNK, 3, "computed: 3" },
		{ 1, 1, CELL_NONE, 3, "computed: 3 tokens, must be at least those of 1 pages, 4" },
		{ 0, 2, CELL_CHUNK, 8, "computed: 8 tokens, the tables end at 4" },
		{ 0, 2, CELL_CHUNK, COMPUTED_NONE, "group 0 \"a\": page_count" },
		{ 0, 2, CELL_CHUNK, (uint64_t)TOKENS_MAX + 1, "computed: 2147483648" },
		{ 0, 0, CELL_NONE, UINT64_MAX - 1, "computed: 18446744073709551614" },
		{ 0, 1, CELL_NONE, 4, "kind: 0" },
		{ 1, 1, CELL_CHUNK, 4, "kind: 1" },
		{ 2, 1, CELL_NONE, 4, "new_begin: 2" },
	};
	struct lab_step        step = lab_tokens(4);
	struct cache_admission admission = { .demands = step.demands };
	struct lab_request     request;
	struct lab             lab;
	size_t                 i;

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	admission.tables = request.tables;
	admission.epoch = request.epoch;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		lab_complete(&lab, &step, cases[i].pages, cases[i].new_begin, cases[i].kind,
			     cases[i].computed);
		admission.completed = step.completed;
		refuse(&lab, &admission, cases[i].words);
	}
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void what_else_the_caller_got_wrong_is_named(void **state)
{
	static const struct lab_model model = { 4, 4, 0, { LAB_FULL(4, 1) } };
	const struct demand           demand = demand_dense(1, 0), none = demand_dense(0, 0);
	const struct lab_step         step = lab_tokens(4);
	struct cache_admission        admission = { .demands = &demand,
						    .completed = { .computed = COMPUTED_NONE } };
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, "x");
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	admission.tables = request.tables;
	admission.epoch = 7;
	refuse(&lab, &admission, "epoch: 7");
	admission.epoch = request.epoch;
	lab_probe(&lab, 1);
	admission.probe = &lab.probe;
	refuse(&lab, &admission, "group 0 \"a\": tables: 1 slots");
	lab_free(&lab, &request);
	request.tables[0].slot_max = 0;
	admission.demands = &none;
	refuse(&lab, &admission, "group 0 \"a\": slot_max: 0");
	request.tables[0].slot_max = 1;
	admission.demands = &demand;
	refuse(&lab, &admission, "group 0 \"a\": tokens");
	request.tables[0].slot_max = 2;
	admission.completed.computed = 5;
	refuse(&lab, &admission, "computed: 5");
	lab_close(&lab);
}

/* Whether it fits without them or not: two parents of one block each, and the demand takes one or two. */
static void references_to_blocks_that_device_lacks_are_bad_input(void **state)
{
	static const struct lab_model   model = { 4, 2, 0, { LAB_FULL(4, 1) } };
	static const struct cache_block wrong[] = {
		{ 0, 0 }, { 0, 3 }, { 0, 1000000 }, { 0, UINT32_MAX }, { 1, 1 }, { UINT32_MAX, 1 }
	};
	const struct cache_block        right = { 0, 1 };
	struct lab_request              request, other;
	struct lab_step                 step = lab_tokens(4);
	struct cache_admission          admission = { .demands = step.demands,
						      .completed = { .computed = COMPUTED_NONE } };
	struct lab                      lab;
	uint32_t                        i;

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	lab_begin(&lab, &other);
	lab_admit(&lab, &request, &step);
	admission.tables = other.tables;
	assert_true(cache_can_admit(lab.cache, &admission, &right, 1));
	for (i = 0; i < ARRAY_COUNT(wrong); i++)
		assert_false(cache_can_admit(lab.cache, &admission, &wrong[i], 1));
	step = lab_tokens(8);
	assert_false(cache_can_admit(lab.cache, &admission, NULL, 0));
	assert_true(cache_can_admit(lab.cache, &admission, &right, 1));
	for (i = 0; i < ARRAY_COUNT(wrong); i++) {
		const struct cache_block both[] = { right, wrong[i] };

		assert_false(cache_can_admit(lab.cache, &admission, both, 2));
	}
	lab_audit(&lab);
	lab_free(&lab, &request);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_foreign_parent_is_not_shared_even_with_room_left),
		cmocka_unit_test(the_hit_is_no_room_for_its_own_demand),
		cmocka_unit_test(a_page_may_be_published_and_evicted_in_one_admission),
		cmocka_unit_test(a_name_that_is_taken_by_another_position_is_left_alone),
		cmocka_unit_test(one_name_at_two_pages_is_the_callers_mistake_and_no_panic),
		cmocka_unit_test(a_range_is_published_where_it_lies),
		cmocka_unit_test(what_completed_wrongly_is_named),
		cmocka_unit_test(what_else_the_caller_got_wrong_is_named),
		cmocka_unit_test(references_to_blocks_that_device_lacks_are_bad_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
