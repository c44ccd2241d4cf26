/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs: what counts as a use of a block, and what does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE

static const struct lab_model history = { 4, 8, 0, { LAB_FULL(4, 1) } };

static void expect_epochs(const struct lab *lab, uint32_t group, const uint64_t *epochs,
			  uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (epochs[i] > 0)
			assert_int_equal(lab_view(lab, DEVICE, group, i).epoch, epochs[i]);
	}
}

static void a_probe_is_no_use(void **state)
{
	struct cell_view view;
	struct lab       lab;

	(void)state;
	lab_open(&lab, &history);
	lab_fill(&lab, DEVICE, 0, "x");
	lab_probe(&lab, 1);
	lab_probe(&lab, 1);
	view = lab_view(&lab, DEVICE, 0, 0);
	assert_int_equal(view.epoch, 1);
	assert_false(view.was_acquired);
	assert_int_equal(cache_clock(lab.cache), 1);
	lab_close(&lab);
}

static void a_claimed_prefix_has_one_epoch(void **state)
{
	static const uint64_t before[] = { 1, 1, 1, 1 }, after[] = { 2, 2, 2, 2 };
	struct lab            lab;
	uint32_t              i;

	(void)state;
	lab_open(&lab, &history);
	lab_fill(&lab, DEVICE, 0, "xxxx");
	expect_epochs(&lab, 0, before, 4);
	lab_use(&lab, 4);
	expect_epochs(&lab, 0, after, 4);
	for (i = 0; i < 4; i++)
		assert_true(lab_view(&lab, DEVICE, 0, i).was_acquired);
	lab_close(&lab);
}

/* That a block served a request is not forgotten when another computes its page again. */
static void an_acquisition_stays(void **state)
{
	struct cell_view view;
	struct lab       lab;

	(void)state;
	lab_open(&lab, &history);
	lab_run(&lab, 4, CELL_CHUNK);
	assert_false(lab_view(&lab, DEVICE, 0, 0).was_acquired);
	lab_use(&lab, 1);
	assert_int_equal(lab_run(&lab, 4, CELL_CHUNK), 3);
	view = lab_view(&lab, DEVICE, 0, 0);
	assert_true(view.was_acquired);
	assert_int_equal(view.epoch, 3);
	lab_close(&lab);
}

/* The window reaches to page 3, so that history's page 4 is there and yet not used. */
static void a_hit_that_was_cut_off_is_no_use(void **state)
{
	static const struct lab_model model = {
		4, 16, 0, { LAB_FULL(4, 1), LAB_WINDOW(4, 10, 1) }
	};
	static const uint64_t         full[] = { 3, 3, 3, 1 };
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, "xxxx"); /* epoch 1 */
	lab_fill(&lab, DEVICE, 1, "xxx");  /* epoch 2 */
	lab_use(&lab, 4);
	assert_int_equal(lab.probe.device_tokens, 12);
	expect_epochs(&lab, 0, full, 4);
	assert_false(lab_view(&lab, DEVICE, 0, 3).was_acquired);
	lab_close(&lab);
}

/* A window of 10 needs three blocks in a row: 3 and 4 are looked at, 0 and 1 are used. */
static void a_run_that_was_given_up_is_no_use(void **state)
{
	static const struct lab_model model = { 4, 8, 0, { LAB_WINDOW(4, 10, 1) } };
	static const uint64_t         epochs[] = { 2, 2, 0, 1, 1 };
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, "xx.xx");
	lab_claim(&lab, &request, 5, 0);
	lab_expect_table(&lab, &request, 0, "xx");
	expect_epochs(&lab, 0, epochs, 5);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void all_chunks_of_a_request_have_its_epoch(void **state)
{
	static const uint64_t epochs[] = { 1, 1, 1 };
	struct lab_step       step = lab_tokens(4);
	struct lab_request    request;
	struct lab            lab;
	uint32_t              i;

	(void)state;
	lab_open(&lab, &history);
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	lab_prompt(&lab, 1, 0);
	lab_fill(&lab, DEVICE, 0, "x"); /* another request draws 2 meanwhile */
	lab_prompt(&lab, 0, 0);
	for (i = 1; i <= 3; i++) {
		lab_complete(&lab, &step, i, i - 1, CELL_CHUNK, 4 * i);
		lab_admit(&lab, &request, &step);
	}
	assert_int_equal(request.epoch, 1);
	assert_int_equal(cache_clock(lab.cache), 2);
	expect_epochs(&lab, 0, epochs, 3);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void probes_and_refusals_draw_no_epoch(void **state)
{
	struct lab_step    step = lab_tokens(36);
	struct lab_request request;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &history);
	lab_fill(&lab, DEVICE, 0, "xxx");
	lab_begin(&lab, &request);
	lab_refuse(&lab, &request, &step, KVS_E_FULL);
	lab_probe(&lab, 3);
	step = lab_probed(24);
	lab_refuse(&lab, &request, &step, KVS_E_FULL);
	step = lab_probed(20);
	assert_int_equal(lab_admit(&lab, &request, &step).epoch, 2);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* What a caller brings along must be from 1 to the clock. */
static void an_epoch_that_was_never_drawn_is_refused(void **state)
{
	struct lab_step    step = lab_tokens(4);
	struct lab_request request;
	struct kvs_error   err;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &history);
	lab_begin(&lab, &request);
	request.epoch = 1;
	lab_refuse(&lab, &request, &step, KVS_E_INVALID);
	request.epoch = 0;
	lab_admit(&lab, &request, &step);
	lab_complete(&lab, &step, 1, 0, CELL_CHUNK, 4);
	assert_int_equal(cache_advance(lab.cache, request.tables, &step.completed, 2, &err),
			 KVS_E_INVALID);
	assert_int_equal(cache_advance(lab.cache, request.tables, &step.completed, 0, &err),
			 KVS_E_INVALID);
	assert_int_equal(cache_publish(lab.cache, request.tables, &lab.space, lab.hashes, 0, 1, 2,
				       CELL_CHUNK, &err),
			 KVS_E_INVALID);
	lab_expect_held(&lab, DEVICE, 0, "");
	lab_free(&lab, &request);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_probe_is_no_use),
		cmocka_unit_test(a_claimed_prefix_has_one_epoch),
		cmocka_unit_test(an_acquisition_stays),
		cmocka_unit_test(a_hit_that_was_cut_off_is_no_use),
		cmocka_unit_test(a_run_that_was_given_up_is_no_use),
		cmocka_unit_test(all_chunks_of_a_request_have_its_epoch),
		cmocka_unit_test(probes_and_refusals_draw_no_epoch),
		cmocka_unit_test(an_epoch_that_was_never_drawn_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
