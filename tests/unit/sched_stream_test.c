/* SPDX-License-Identifier: Apache-2.0 */
/* What Device publishes goes to Host, and comes back when Device has lost it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loom.h"

static void open_streaming(struct loom *loom, uint32_t device_parents, uint32_t host_parents)
{
	loom_usual(loom, device_parents, 4);
	loom->options.host_parents = host_parents;
	loom_open(loom);
}

static uint32_t host_free(const struct loom *loom)
{
	return cache_host_free(sched_cache(loom->sched));
}

/* A prompt of 8 tokens up to its first step, with which its pages get their names. */
static uint64_t publish_eight(struct loom *loom, const char *id, int32_t first)
{
	loom_submit(loom, id, first, 8, 2);
	loom_next(loom);
	assert_int_equal(loom->plan->copy_count, 0);
	loom_extend(loom, id);
	loom_next(loom);
	return loom->plan->copy_count > 0 ? loom->plan->copies[0] : 0;
}

/* Nothing more is published: there would be a tail. */
static void end(struct loom *loom, const char *id)
{
	loom_abort(loom, id);
	loom_next(loom);
}

/* Of the window, the two blocks before the boundary. */
static void what_is_published_is_saved_and_known_when_it_is_there(void **state)
{
	struct loom loom;
	uint64_t    save;

	(void)state;
	open_streaming(&loom, 31, 6);
	save = publish_eight(&loom, "r1", 1);
	assert_int_equal(loom.plan->copy_count, 1);
	assert_int_equal(loom_move_count(&loom, save), 6);
	assert_int_equal(loom_host_cached(&loom), 0);
	assert_int_equal(host_free(&loom), 0);
	end(&loom, "r1");
	assert_int_equal(loom.plan->copy_count, 0);
	assert_int_equal(loom_free(&loom), 31 - 6);
	loom_done(&loom);
	loom_next(&loom);
	assert_int_equal(loom_host_cached(&loom), 6);
	assert_int_equal(loom_free(&loom), 31);
	/* Told twice is told once. */
	loom_tell(&loom, save);
	assert_int_equal(loom_host_cached(&loom), 6);
	loom_close(&loom);
}

static void what_is_under_way_or_there_is_not_saved_again(void **state)
{
	struct loom loom;
	uint64_t    save;

	(void)state;
	loom_usual(&loom, 31, 32);
	loom.options.host_parents = 16;
	loom_open(&loom);
	save = publish_eight(&loom, "r1", 1);
	assert_int_equal(loom_move_count(&loom, save), 8);
	end(&loom, "r1");
	assert_int_equal(publish_eight(&loom, "r2", 1), 0);
	end(&loom, "r2");
	loom_done(&loom);
	loom_next(&loom);
	assert_int_equal(publish_eight(&loom, "r3", 1), 0);
	assert_int_equal(loom_host_cached(&loom), 8);
	loom_close(&loom);
}

static void what_two_requests_publish_at_once_is_saved_once(void **state)
{
	struct loom loom;

	(void)state;
	open_streaming(&loom, 31, 12);
	loom_submit(&loom, "r1", 1, 8, 2);
	loom_submit(&loom, "r2", 1, 8, 2);
	assert_string_equal(loom_next(&loom), "r1 p0+8, r2 p0+8");
	loom_extend_all(&loom);
	loom_next(&loom);
	assert_int_equal(loom.plan->copy_count, 1);
	assert_int_equal(loom_move_count(&loom, loom.plan->copies[0]), 6);
	loom_close(&loom);
}

/* Host is full of copies under way: what comes now waits, and takes the place of what is colder then. */
static void a_full_host_lets_saves_wait_and_gives_up_what_is_cold(void **state)
{
	struct loom loom;
	uint64_t    second;

	(void)state;
	open_streaming(&loom, 31, 6);
	publish_eight(&loom, "r1", 1);
	end(&loom, "r1");
	assert_int_equal(publish_eight(&loom, "r2", 50), 0);
	assert_int_equal(sched_load(loom.sched).candidates, 6);
	end(&loom, "r2");
	loom_done(&loom);
	loom_next(&loom);
	assert_int_equal(loom.plan->copy_count, 1);
	second = loom.plan->copies[0];
	assert_int_equal(loom_move_count(&loom, second), 6);
	assert_int_equal(loom_host_cached(&loom), 0);
	loom_done(&loom);
	loom_next(&loom);
	assert_int_equal(loom_host_cached(&loom), 6);
	loom_close(&loom);
}

static void a_small_host_takes_what_fits(void **state)
{
	struct loom loom;
	uint64_t    save;

	(void)state;
	open_streaming(&loom, 31, 4);
	save = publish_eight(&loom, "r1", 1);
	assert_int_equal(loom_move_count(&loom, save), 4);
	assert_int_equal(sched_load(loom.sched).candidates, 2);
	loom_close(&loom);
}

/* --- loads ------------------------------------------------------------------------------------ */

/* r1's prefix of 8 tokens is on Host alone: another request needed all of Device. */
static void push_out(struct loom *loom)
{
	open_streaming(loom, 12, 32);
	publish_eight(loom, "r1", 1);
	loom_done(loom);
	end(loom, "r1");
	loom_submit(loom, "r0", 50, 10, 2);
	assert_string_equal(loom_next(loom), "r0 p0+10");
	assert_int_equal(loom_free(loom), 0);
	loom_extend(loom, "r0");
	loom_next(loom);
	loom_done(loom);
	end(loom, "r0");
	assert_int_equal(loom_host_cached(loom), 13);
	assert_int_equal(loom_free(loom), 12);
}

static void what_device_lost_is_loaded_from_host(void **state)
{
	struct loom loom;
	uint64_t    load;

	(void)state;
	push_out(&loom);
	loom_submit(&loom, "r2", 1, 10, 2);
	assert_string_equal(loom_next(&loom), "r2 p8+2");
	assert_int_equal(loom.plan->copy_count, 1);
	load = loom.plan->copies[0];
	assert_string_equal(loom_moves(&loom, load), "0.0 0.1 0.2 0.3 1.2 1.3");
	/* What is loaded has its names on Device again, and Host has it already. */
	assert_int_equal(sched_mover(loom.sched)->counts.on_host, 6);
	/* The forward waits for the load, and nobody makes its blocks blank. */
	assert_int_equal(loom_row(&loom, "r2")->fence, load);
	assert_int_equal(loom_fresh(&loom, 0), 2);
	assert_string_equal(loom_line(&loom, "r2", 1), "..xxxx");
	assert_int_equal(sched_load(loom.sched).loading, 1);
	loom_done(&loom);
	loom_extend(&loom, "r2");
	assert_string_equal(loom_next(&loom), "r2 d10+1");
	assert_int_equal(sched_load(loom.sched).loading, 0);
	assert_int_equal(loom_row(&loom, "r2")->fence, 0);
	loom_abort(&loom, "r2");
	loom_tell(&loom, load);
	loom_close(&loom);
}

static void nothing_is_loaded_where_host_has_nothing(void **state)
{
	struct loom loom;

	(void)state;
	push_out(&loom);
	loom_submit(&loom, "r2", 100, 10, 2);
	assert_string_equal(loom_next(&loom), "r2 p0+10");
	assert_int_equal(loom.plan->copy_count, 0);
	loom_close(&loom);
}

static void an_admission_without_room_pins_nothing(void **state)
{
	struct loom loom;

	(void)state;
	push_out(&loom);
	loom_submit(&loom, "r2", 100, 10, 2);
	loom_next(&loom);
	loom_extend(&loom, "r2");
	loom_submit(&loom, "r3", 1, 10, 2);
	assert_string_equal(loom_next(&loom), "r2 d10+1");
	assert_int_equal(sched_load(loom.sched).loading, 0);
	loom_done(&loom);
	loom_abort(&loom, "r2");
	loom_abort(&loom, "r3");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 12);
	loom_close(&loom);
}

static void an_abort_leaves_a_load_its_blocks(void **state)
{
	struct loom loom;

	(void)state;
	push_out(&loom);
	loom_submit(&loom, "r2", 1, 10, 2);
	loom_next(&loom);
	loom_abort(&loom, "r2");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 12 - 6);
	/* Who needs them waits, quietly. */
	loom_submit(&loom, "r3", 100, 10, 2);
	assert_string_equal(loom_next(&loom), "");
	assert_string_equal(loom_next(&loom), "");
	loom_done(&loom);
	assert_string_equal(loom_next(&loom), "r3 p0+10");
	loom_close(&loom);
}

static void a_second_request_behind_a_load_waits_for_it_too(void **state)
{
	struct loom loom;
	uint64_t    load;

	(void)state;
	loom_usual(&loom, 31, 4);
	loom.options.host_parents = 32;
	loom_open(&loom);
	publish_eight(&loom, "r1", 1);
	loom_done(&loom);
	end(&loom, "r1");
	assert_int_equal(sched_clear_device(loom.sched, &loom.err), 0);
	loom_submit(&loom, "r2", 1, 10, 2);
	assert_string_equal(loom_next(&loom), "r2 p8+2");
	load = loom.plan->copies[0];
	loom_submit(&loom, "r3", 1, 9, 2);
	loom_extend(&loom, "r2");
	assert_string_equal(loom_next(&loom), "r3 p8+1");
	assert_int_equal(loom.plan->copy_count, 0);
	assert_int_equal(loom_row(&loom, "r3")->fence, load);
	loom_close(&loom);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_published_is_saved_and_known_when_it_is_there),
		cmocka_unit_test(what_is_under_way_or_there_is_not_saved_again),
		cmocka_unit_test(what_two_requests_publish_at_once_is_saved_once),
		cmocka_unit_test(a_full_host_lets_saves_wait_and_gives_up_what_is_cold),
		cmocka_unit_test(a_small_host_takes_what_fits),
		cmocka_unit_test(what_device_lost_is_loaded_from_host),
		cmocka_unit_test(nothing_is_loaded_where_host_has_nothing),
		cmocka_unit_test(an_admission_without_room_pins_nothing),
		cmocka_unit_test(an_abort_leaves_a_load_its_blocks),
		cmocka_unit_test(a_second_request_behind_a_load_waits_for_it_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
