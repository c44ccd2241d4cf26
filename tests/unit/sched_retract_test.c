/* SPDX-License-Identifier: Apache-2.0 */
/* Retraction: who gives up, what comes back, and that a round that could not plan is not for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sched_rig.h"

static const struct group_spec full[] = { { "full", GROUP_FULL, 2, 0, 1 } };
static const struct group_spec full_state[] = { { "full", GROUP_FULL, 2, 0, 1 },
						{ "state", GROUP_STATE, 2, 0, 1 } };
static struct srig rig;

static struct sched_options small(const struct group_spec *groups, uint32_t group_count, uint32_t parents)
{
	struct sched_options options = srig_options();

	options.groups = groups;
	options.group_count = group_count;
	options.device_parents = parents;
	return options;
}

static struct sched_options with_host(struct sched_options options)
{
	options.host_parents = 32;
	options.snapshot_max = 4;
	options.snapshot_block_max = 32;
	return options;
}

/* Two requests that fill Device, until nothing can be planned any more; the round that retracts. */
static void fill(const struct sched_options *options)
{
	uint32_t rounds = 0;

	srig_open(&rig, options);
	srig_submit_new(&rig, "a", 6, 1);
	srig_submit_new(&rig, "b", 5, 2);
	do {
		srig_step(&rig);
		assert_true(rounds++ < 32);
	} while (rig.plan->forward.row_count > 0);
}

static void without_a_Host_one_begins_anew_when_the_others_are_done(void **state)
{
	const struct sched_options options = small(full, 1, 8);

	(void)state;
	fill(&options);
	/* The one with more tokens. */
	assert_int_equal(sched_load(rig.sched).submitted, 1);
	assert_int_equal(sched_load(rig.sched).decoding, 1);
	srig_step(&rig);
	assert_null(srig_row(&rig, "a"));
	assert_non_null(srig_row(&rig, "b"));
	srig_finish(&rig, "b");
	srig_next(&rig);
	assert_non_null(srig_row(&rig, "a"));
	srig_extend_all(&rig);
	srig_step(&rig);
	srig_finish(&rig, "a");
	srig_next(&rig);
	assert_int_equal(srig_ended(&rig, "a")->retractions, 1);
	srig_close(&rig);
}

static void with_a_Host_it_comes_back_where_it_stood(void **state)
{
	struct sched_options    options = with_host(small(full_state, 2, 12));
	const struct batch_row *row;
	uint32_t                before, rounds = 0;

	(void)state;
	/* Room runs out at a block's end; with pages of two blocks that may be inside of one. */
	options.page_tokens = 4;
	fill(&options);
	assert_int_equal(sched_load(rig.sched).retracted, 1);
	assert_int_equal(sched_load(rig.sched).waiting, 1);
	assert_true(rig.plan->copy_count > 0);
	assert_string_equal(sched_in_the_way(rig.sched), "live requests");
	before = srig_request(&rig, "a")->count;
	srig_finish(&rig, "b");
	do {
		srig_next(&rig);
		assert_true(rounds++ < 8);
	} while (!srig_row(&rig, "a"));
	row = srig_row(&rig, "a");
	/* One token is computed: all others come back. */
	assert_int_equal(row->begin, before - 1);
	assert_int_equal(row->token_count, 1);
	assert_true(row->fence > 0);
	srig_extend_all(&rig);
	srig_step(&rig);
	srig_finish(&rig, "a");
	srig_close(&rig);
}

/* One load brings the hit, another the image: with a single one nobody who has an image would come back. */
static void images_need_two_loads(void **state)
{
	struct sched_options options = with_host(small(full_state, 2, 12));
	struct kvs_error     err = { 0 };
	struct sched        *sched;

	(void)state;
	options.load_ticket_max = 1;
	assert_int_equal(sched_open(&options, &sched, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "load_ticket_max: 1; images need 2, the other for the hit before");
	options.snapshot_max = 0;
	assert_int_equal(sched_open(&options, &sched, &err), 0);
	sched_close(sched);
	options.snapshot_max = 4;
	options.load_ticket_max = 2;
	assert_int_equal(sched_open(&options, &sched, &err), 0);
	sched_close(sched);
}

static void an_abort_of_one_that_was_retracted_gives_its_image_back(void **state)
{
	struct sched_options options = with_host(small(full_state, 2, 12));

	(void)state;
	options.page_tokens = 4;
	fill(&options);
	srig_abort(&rig, "a");
	srig_settle(&rig, 8);
	srig_abort(&rig, "b");
	srig_settle(&rig, 8);
	assert_null(sched_in_the_way(rig.sched));
	assert_int_equal(sched_clear(rig.sched, &rig.options.space, NULL), 0);
	srig_close(&rig);
}

static void a_forward_under_way_is_waited_for(void **state)
{
	const struct sched_options options = small(full, 1, 8);

	(void)state;
	srig_open(&rig, &options);
	srig_submit_new(&rig, "a", 13, 1);
	srig_next(&rig);
	srig_submit_new(&rig, "b", 5, 2);
	srig_next(&rig);
	assert_int_equal(rig.plan->forward.row_count, 0);
	assert_int_equal(sched_load(rig.sched).prefill_done, 1);
	srig_extend(&rig, "a");
	srig_next(&rig);
	assert_non_null(srig_row(&rig, "a"));
	srig_close(&rig);
}

static void a_blocked_chunk_lets_nobody_begin(void **state)
{
	struct sched_options options = small(full, 1, 10);

	(void)state;
	options.chunk_tokens = 8;
	srig_open(&rig, &options);
	srig_submit_new(&rig, "a", 7, 1);
	srig_step(&rig);
	srig_submit_new(&rig, "b", 16, 2);
	srig_submit_new(&rig, "c", 2, 3);
	srig_step(&rig);
	assert_non_null(srig_row(&rig, "b"));
	srig_step(&rig);
	/* No row at all, "a" gave up. */
	assert_int_equal(rig.plan->forward.row_count, 0);
	assert_int_equal(sched_load(rig.sched).waiting, 2);
	srig_step(&rig);
	assert_non_null(srig_row(&rig, "b"));
	srig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_Host_one_begins_anew_when_the_others_are_done),
		cmocka_unit_test(with_a_Host_it_comes_back_where_it_stood),
		cmocka_unit_test(images_need_two_loads),
		cmocka_unit_test(an_abort_of_one_that_was_retracted_gives_its_image_back),
		cmocka_unit_test(a_forward_under_way_is_waited_for),
		cmocka_unit_test(a_blocked_chunk_lets_nobody_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
