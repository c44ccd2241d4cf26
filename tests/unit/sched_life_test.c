/* SPDX-License-Identifier: Apache-2.0 */
/* A request's life on a rank that does all: prompt, chunks, decode, end; and what a round may not do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sched_rig.h"

static struct srig rig;

static void open_with(bool prefix_cache)
{
	struct sched_options options = srig_options();

	options.prefix_cache = prefix_cache;
	srig_open(&rig, &options);
}

/* --- life ------------------------------------------------------------------------------------- */

static void a_submitted_request_waits(void **state)
{
	struct sched_load load;

	(void)state;
	open_with(false);
	srig_submit_new(&rig, "a", 4, 1);
	load = sched_load(rig.sched);
	assert_int_equal(load.waiting, 1);
	assert_int_equal(load.decoding, 0);
	srig_close(&rig);
}

static void one_request_prefills_decodes_and_finishes(void **state)
{
	const struct batch_row *row;
	uint32_t                i;

	(void)state;
	open_with(false);
	srig_submit_new(&rig, "a", 4, 1);
	srig_next(&rig);
	row = srig_row(&rig, "a");
	assert_non_null(row);
	assert_int_equal(row->kind, BATCH_PREFILL);
	assert_int_equal(row->place, 1);
	assert_int_equal(row->begin, 0);
	assert_int_equal(row->token_count, 4);
	assert_true(row->ends_prompt);
	assert_int_equal(row->fence, 0);
	/* Two pages, and room for a token. */
	assert_int_equal(srig_slots(&rig, "a", 0), 3);
	assert_int_equal(rig.plan->forward.fresh_count[0], 3);
	assert_int_not_equal(srig_line(&rig, "a", 0)[0], srig_line(&rig, "a", 0)[1]);
	srig_extend_all(&rig);
	for (i = 0; i < 4; i++) {
		srig_next(&rig);
		row = srig_row(&rig, "a");
		assert_int_equal(row->kind, BATCH_DECODE);
		assert_null(row->tokens);
		assert_int_equal(row->begin, 4 + i);
		assert_int_equal(srig_holes(&rig, "a", 0), 0);
		assert_int_equal(srig_holes(&rig, "a", 1), (4 + i - 4 + 1) / 2);
		srig_extend_all(&rig);
	}
	srig_finish(&rig, "a");
	srig_next(&rig);
	assert_int_equal(srig_ended(&rig, "a")->end, SCHED_FINISHED);
	assert_int_equal(srig_ended(&rig, "a")->token_count, 9);
	assert_int_equal(sched_available(rig.sched), 31);
	srig_close(&rig);
}

static void two_requests_share_a_forward_and_no_block(void **state)
{
	const int32_t *a, *b;
	uint32_t       i, j;

	(void)state;
	open_with(false);
	srig_submit_new(&rig, "b", 6, 2);
	srig_submit_new(&rig, "a", 4, 1);
	srig_next(&rig);
	assert_int_equal(rig.plan->forward.row_count, 2);
	assert_string_equal(rig.plan->forward.rows[0].id, "a");
	a = srig_line(&rig, "a", 0);
	b = srig_line(&rig, "b", 0);
	assert_int_equal(rig.plan->forward.tables[0].width, 4);
	assert_int_equal(a[3], -1);
	for (i = 0; i < 3; i++) {
		for (j = 0; j < 4; j++)
			assert_int_not_equal(a[i], b[j]);
	}
	srig_close(&rig);
}

static void a_missing_token_holds_a_decode_back(void **state)
{
	(void)state;
	open_with(true);
	srig_submit_new(&rig, "a", 5, 1);
	srig_next(&rig);
	srig_next(&rig);
	assert_null(srig_row(&rig, "a"));
	srig_extend(&rig, "a");
	srig_next(&rig);
	assert_non_null(srig_row(&rig, "a"));
	srig_close(&rig);
}

static void with_overlap_one_forward_is_planned_ahead(void **state)
{
	struct sched_options options = srig_options();

	(void)state;
	options.overlap_depth = 1;
	srig_open(&rig, &options);
	srig_submit_new(&rig, "a", 5, 1);
	srig_next(&rig);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "a")->begin, 5);
	srig_next(&rig);
	assert_null(srig_row(&rig, "a"));
	srig_extend(&rig, "a");
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "a")->begin, 6);
	srig_extend(&rig, "a");
	srig_finish(&rig, "a");
	srig_close(&rig);
}

/* --- chunks ----------------------------------------------------------------------------------- */

static void a_long_prompt_takes_several_chunks(void **state)
{
	struct sched_options options = srig_options();
	uint32_t             i;

	(void)state;
	options.chunk_tokens = 10;
	srig_open(&rig, &options);
	srig_submit_new(&rig, "a", 30, 1);
	for (i = 0; i < 3; i++) {
		srig_next(&rig);
		assert_int_equal(srig_row(&rig, "a")->begin, 10 * i);
		assert_int_equal(srig_row(&rig, "a")->token_count, 10);
		assert_int_equal(srig_row(&rig, "a")->ends_prompt, i == 2);
	}
	srig_close(&rig);
}

static void with_a_state_chunks_end_at_pages_and_a_tail_is_its_own(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 4, 0, 1 },
						    { "state", GROUP_STATE, 4, 0, 1 } };
	static const uint32_t          begins[] = { 0, 4, 8, 12 };
	static const uint32_t          counts[] = { 4, 4, 4, 2 };
	struct sched_options           options = srig_options();
	uint32_t                       i;

	(void)state;
	options.groups = groups;
	options.page_tokens = 4;
	options.chunk_tokens = 6;
	srig_open(&rig, &options);
	srig_submit_new(&rig, "a", 14, 1);
	for (i = 0; i < 4; i++) {
		srig_step(&rig);
		assert_int_equal(srig_row(&rig, "a")->begin, begins[i]);
		assert_int_equal(srig_row(&rig, "a")->token_count, counts[i]);
	}
	for (i = 0; i < 9; i++)
		srig_step(&rig);
	srig_finish(&rig, "a");
	srig_close(&rig);
}

/* --- hits ------------------------------------------------------------------------------------- */

static void what_one_finished_another_need_not_compute(void **state)
{
	int32_t tokens[12];

	(void)state;
	open_with(true);
	srig_tokens(tokens, 12, 100, 1);
	srig_submit(&rig, "a", tokens, 8, 1);
	srig_step(&rig);
	srig_finish(&rig, "a");
	srig_submit(&rig, "b", tokens, 12, 1);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "b")->begin, 8);
	assert_int_equal(srig_row(&rig, "b")->token_count, 4);
	assert_int_equal(sched_explain_counts(rig.sched)->admitted, 2);
	srig_close(&rig);
}

/* The tail of an earlier turn lies inside a page: its blocks are copied, and the copy fenced. */
static void a_tail_is_copied_before_it_is_written_behind(void **state)
{
	struct sched_options options = srig_options();
	int32_t              tokens[16];

	(void)state;
	options.page_tokens = 4;
	srig_open(&rig, &options);
	srig_tokens(tokens, 16, 100, 1);
	srig_submit(&rig, "a", tokens, 7, 1);
	srig_step(&rig);
	srig_finish(&rig, "a");
	srig_next(&rig);
	srig_submit(&rig, "b", tokens, 16, 1);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "b")->begin, 7);
	assert_true(srig_row(&rig, "b")->fence > 0);
	assert_true(srig_copy_rows(&rig, true) > 0);
	srig_close(&rig);
}

static void a_host_hit_is_loaded_and_fenced(void **state)
{
	struct sched_options options = srig_options();
	int32_t              tokens[12];

	(void)state;
	options.host_parents = 32;
	srig_open(&rig, &options);
	srig_tokens(tokens, 12, 100, 1);
	srig_submit(&rig, "a", tokens, 8, 1);
	srig_step(&rig);
	srig_finish(&rig, "a");
	srig_settle(&rig, 8);
	assert_true(rig.saves > 0);
	assert_int_equal(sched_clear_device(rig.sched, NULL), 0);
	rig.held = true;
	srig_submit(&rig, "b", tokens, 10, 1);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "b")->begin, 8);
	assert_int_equal(srig_row(&rig, "b")->fence, rig.plan->copies[0]);
	/* Another that hits what is being loaded is behind it, too. */
	srig_submit(&rig, "c", tokens, 12, 1);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "c")->begin, 8);
	assert_true(srig_row(&rig, "c")->fence > 0);
	srig_close(&rig);
}

/* What one computed itself may, when it is named, give way to a block that another is just loading. */
static void a_block_that_takes_the_place_of_an_own_one_is_fenced(void **state)
{
	struct sched_options options = srig_options();
	int32_t              tokens[12];
	uint64_t             load;

	(void)state;
	options.host_parents = 32;
	srig_open(&rig, &options);
	srig_tokens(tokens, 12, 100, 1);
	srig_submit(&rig, "a", tokens, 8, 1);
	srig_submit(&rig, "c", tokens, 8, 1);
	srig_next(&rig);
	srig_extend(&rig, "c");
	srig_finish(&rig, "c");
	srig_settle(&rig, 8);
	assert_int_equal(sched_clear_device(rig.sched, NULL), 0);
	rig.held = true;
	srig_submit(&rig, "b", tokens, 12, 1);
	srig_next(&rig);
	load = srig_row(&rig, "b")->fence;
	assert_true(load > 0);
	srig_extend(&rig, "a");
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "a")->fence, load);
	srig_close(&rig);
}

/* --- rounds ----------------------------------------------------------------------------------- */

static void a_frozen_round_plans_no_row(void **state)
{
	(void)state;
	open_with(true);
	srig_submit_new(&rig, "a", 5, 1);
	rig.tick.permits.forward = false;
	srig_next(&rig);
	assert_int_equal(rig.plan->forward.row_count, 0);
	assert_int_equal(sched_load(rig.sched).submitted, 1);
	srig_abort(&rig, "a");
	srig_next(&rig);
	assert_int_equal(rig.plan->ended_count, 1);
	srig_submit_new(&rig, "b", 5, 1);
	rig.tick.permits.forward = true;
	srig_next(&rig);
	assert_int_equal(rig.plan->forward.row_count, 1);
	srig_close(&rig);
}

static void A2_7_an_abort_ends_every_state_and_gives_all_back(void **state)
{
	struct sched_options options = srig_options();
	uint32_t             rounds;

	(void)state;
	options.chunk_tokens = 4;
	for (rounds = 0; rounds < 5; rounds++) {
		uint32_t i;

		srig_open(&rig, &options);
		srig_submit_new(&rig, "a", 10, 1);
		for (i = 0; i < rounds; i++)
			srig_step(&rig);
		srig_abort(&rig, "a");
		/* It publishes no more than it had. */
		assert_int_equal(srig_event(&rig, SCHED_EXTEND, "a"), 0);
		srig_next(&rig);
		assert_int_equal(srig_ended(&rig, "a")->end, SCHED_ABORTED);
		assert_int_equal(srig_ended(&rig, "a")->admitted, rounds > 0);
		assert_int_equal(sched_available(rig.sched), 31);
		srig_close(&rig);
	}
}

/* --- what is refused -------------------------------------------------------------------------- */

static void a_call_of_submit_is_all_or_nothing(void **state)
{
	static const int32_t       tokens[] = { 1, 2, 3 };
	const struct sched_request requests[] = { { .id = "a", .tokens = tokens, .token_count = 3 },
						  { .id = "b", .tokens = tokens, .token_count = 0 } };
	const struct sched_request twice[] = { { .id = "a", .tokens = tokens, .token_count = 3 },
					       { .id = "a", .tokens = tokens, .token_count = 3 } };
	struct kvs_error           err;

	(void)state;
	open_with(true);
	assert_int_equal(sched_submit(rig.sched, requests, 2, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "tokens"));
	assert_int_equal(sched_load(rig.sched).submitted, 0);
	assert_int_equal(sched_submit(rig.sched, twice, 2, &err), KVS_E_INVALID);
	assert_int_equal(sched_submit(rig.sched, requests, 1, &err), 0);
	assert_int_equal(sched_submit(rig.sched, requests, 1, &err), KVS_E_EXISTS);
	sched_audit(rig.sched);
	assert_int_equal(sched_load(rig.sched).submitted, 1);
	assert_int_equal(srig_event(&rig, SCHED_ABORT, "a"), 0);
	srig_close(&rig);
}

static void an_event_must_fit_the_state(void **state)
{
	(void)state;
	open_with(true);
	srig_submit_new(&rig, "a", 5, 1);
	assert_int_equal(srig_event(&rig, SCHED_EXTEND, "a"), KVS_E_INVALID);
	assert_int_equal(srig_event(&rig, SCHED_FINISH, "a"), KVS_E_INVALID);
	assert_int_equal(srig_event(&rig, SCHED_RESERVE, "a"), KVS_E_INVALID);
	assert_int_equal(srig_event(&rig, SCHED_EXTEND, "nobody"), 0);
	srig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_submitted_request_waits),
		cmocka_unit_test(one_request_prefills_decodes_and_finishes),
		cmocka_unit_test(two_requests_share_a_forward_and_no_block),
		cmocka_unit_test(a_missing_token_holds_a_decode_back),
		cmocka_unit_test(with_overlap_one_forward_is_planned_ahead),
		cmocka_unit_test(a_long_prompt_takes_several_chunks),
		cmocka_unit_test(with_a_state_chunks_end_at_pages_and_a_tail_is_its_own),
		cmocka_unit_test(what_one_finished_another_need_not_compute),
		cmocka_unit_test(a_tail_is_copied_before_it_is_written_behind),
		cmocka_unit_test(a_host_hit_is_loaded_and_fenced),
		cmocka_unit_test(a_block_that_takes_the_place_of_an_own_one_is_fenced),
		cmocka_unit_test(a_frozen_round_plans_no_row),
		cmocka_unit_test(A2_7_an_abort_ends_every_state_and_gives_all_back),
		cmocka_unit_test(a_call_of_submit_is_all_or_nothing),
		cmocka_unit_test(an_event_must_fit_the_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
