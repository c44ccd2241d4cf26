/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a request that ends inside a page leaves a tail: which of its blocks get the tail's name.
 *
 * P = 8 and q = 4.  Pictures are of page 0 and of the tail in place of page 1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE

#define MODEL(...) { 8, 16, 16, { __VA_ARGS__ } }
#define F    LAB_FULL(4, 1)
#define S(w) LAB_WINDOW(4, w, 1)
#define M    LAB_STATE(4, 1)

/* A request of so many tokens: its whole page is published, and the state at the page's end. */
static void open_request(struct lab *lab, struct lab_request *request, const struct lab_model *model,
			 uint32_t tokens)
{
	struct lab_step step = lab_tokens(8);

	lab_open(lab, model);
	lab_begin(lab, request);
	lab_admit(lab, request, &step);
	lab_complete(lab, &step, 1, 0, CELL_CHUNK, 8);
	lab_advance(lab, request, &step);
	step = lab_tokens(tokens - 8);
	lab_admit(lab, request, &step);
}

static int publish(struct lab *lab, struct lab_request *request, const struct tail *tail,
		   uint64_t computed)
{
	struct kvs_error err;
	const int rc = cache_publish_tail(lab->cache, request->tables, &lab->space, tail, computed,
					  request->epoch, CELL_ENDPOINT, &err);

	lab_audit(lab);
	return rc;
}

/* The window let go of slots 0 and 1 before; what is left of it is what a restore at 14 needs. */
static void a_tail_is_published_at_the_end_and_restored(void **state)
{
	static const struct lab_model model = MODEL(F, S(6), M);
	struct lab_request            request;
	struct tail                   tail;
	struct lab                    lab;

	(void)state;
	open_request(&lab, &request, &model, 14);
	lab_reclaim(&lab, &request, 14);
	lab_expect_table(&lab, &request, 1, "..xx");
	lab_expect_table(&lab, &request, 2, "...x");
	tail = lab_tail(&lab, 14);
	assert_int_equal(publish(&lab, &request, &tail, 14), 0);
	lab_free(&lab, &request);
	lab_expect_held(&lab, DEVICE, 0, "xxxx");
	lab_expect_held(&lab, DEVICE, 1, "xxxx"); /* 0 and 1 are those of page 0 */
	lab_expect_held(&lab, DEVICE, 2, ".x.x");
	assert_int_equal(lab_view(&lab, DEVICE, 0, 3).kind, CELL_ENDPOINT);
	assert_int_equal(lab_view(&lab, DEVICE, 0, 3).position, 3);
	assert_int_equal(lab_view(&lab, DEVICE, 0, 3).epoch, 1);
	lab_probe_tails(&lab, 1, &tail, 1);
	assert_int_equal(lab.probe.device_tokens, 14);
	assert_int_equal(lab_hits(&lab, 0, DEVICE), 4);
	assert_int_equal(lab_hits(&lab, 1, DEVICE), 2);
	assert_int_equal(lab_hits(&lab, 2, DEVICE), 1);
	lab_close(&lab);
}

/* Slot 2 is still in the window's table, but a restore at 14 does not need it. */
static void a_tail_publishes_only_what_its_restore_needs(void **state)
{
	static const struct lab_model model = MODEL(F, S(2));
	struct lab_request            request;
	struct tail                   tail;
	struct lab                    lab;

	(void)state;
	open_request(&lab, &request, &model, 14);
	lab_expect_table(&lab, &request, 1, ".xxx");
	tail = lab_tail(&lab, 14);
	assert_int_equal(publish(&lab, &request, &tail, 14), 0);
	lab_expect_held(&lab, DEVICE, 0, "xxxx");
	lab_expect_held(&lab, DEVICE, 1, ".x.x");
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* A state that is a token further on is not that of the tail. */
static void a_state_publishes_a_tail_at_its_exact_end_only(void **state)
{
	static const struct lab_model model = MODEL(F, M);
	struct lab_request            request;
	struct tail                   tail;
	struct lab                    lab;

	(void)state;
	open_request(&lab, &request, &model, 15);
	tail = lab_tail(&lab, 14);
	assert_int_equal(publish(&lab, &request, &tail, 15), 0);
	lab_free(&lab, &request);
	lab_expect_held(&lab, DEVICE, 0, "xxxx");
	lab_expect_held(&lab, DEVICE, 1, ".x");
	lab_probe_tails(&lab, 1, &tail, 1);
	assert_int_equal(lab.probe.device_tokens, 8);
	lab_close(&lab);
}

/* A block has one name: who comes second with another lacks it, and is no hit. */
static void a_named_block_keeps_its_name(void **state)
{
	static const struct lab_model model = MODEL(F);
	struct lab_request            request;
	struct tail                   tails[2];
	struct lab                    lab;

	(void)state;
	open_request(&lab, &request, &model, 14);
	tails[0] = lab_tail(&lab, 14);
	assert_int_equal(publish(&lab, &request, &tails[0], 14), 0);
	tails[1] = lab_tail(&lab, 13);
	assert_int_equal(publish(&lab, &request, &tails[1], 14), 0);
	lab_free(&lab, &request);
	lab_expect_held(&lab, DEVICE, 0, "xx");
	lab_probe_tails(&lab, 1, tails, 2);
	assert_int_equal(lab.probe.device_tokens, 14);
	lab_probe_tails(&lab, 1, &tails[1], 1);
	assert_int_equal(lab.probe.device_tokens, 8);
	lab_close(&lab);
}

/* Two requests end alike: the second one's block goes, as with any page. */
static void a_tail_that_is_published_again_is_one(void **state)
{
	static const struct lab_model model = MODEL(F);
	const struct lab_step         step = lab_tokens(14);
	struct lab_request            first, second;
	struct tail                   tail;
	struct lab                    lab;

	(void)state;
	open_request(&lab, &first, &model, 14);
	tail = lab_tail(&lab, 14);
	assert_int_equal(publish(&lab, &first, &tail, 14), 0);
	lab_begin(&lab, &second);
	lab_admit(&lab, &second, &step);
	assert_int_equal(publish(&lab, &second, &tail, 14), 0);
	assert_int_equal(second.slots[0][3], first.slots[0][3]);
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 3), 3);
	lab_free(&lab, &first);
	lab_free(&lab, &second);
	assert_int_equal(lab_published(&lab, DEVICE, 0), 4);
	assert_int_equal(lab_empty(&lab, DEVICE), 12);
	lab_close(&lab);
}

/* A boundary; more than is computed; more than the table holds. */
static void a_tail_that_is_not_the_requests_end_is_refused(void **state)
{
	static const struct lab_model model = MODEL(F);
	static const uint32_t         wrong[][2] = { { 8, 14 }, { 0, 14 }, { 14, 13 }, { 17, 17 } };
	struct lab_request            request;
	struct tail                   tail = { 0 };
	struct lab                    lab;
	uint64_t                      digest;
	size_t                        i;

	(void)state;
	open_request(&lab, &request, &model, 14);
	digest = lab_digest(&lab);
	for (i = 0; i < ARRAY_COUNT(wrong); i++) {
		tail.tokens = wrong[i][0];
		assert_int_equal(publish(&lab, &request, &tail, wrong[i][1]), KVS_E_INVALID);
		assert_int_equal(lab_digest(&lab), digest);
	}
	tail.tokens = 14;
	request.epoch = 2;
	assert_int_equal(publish(&lab, &request, &tail, 14), KVS_E_INVALID);
	lab_free(&lab, &request);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tail_is_published_at_the_end_and_restored),
		cmocka_unit_test(a_tail_publishes_only_what_its_restore_needs),
		cmocka_unit_test(a_state_publishes_a_tail_at_its_exact_end_only),
		cmocka_unit_test(a_named_block_keeps_its_name),
		cmocka_unit_test(a_tail_that_is_published_again_is_one),
		cmocka_unit_test(a_tail_that_is_not_the_requests_end_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
