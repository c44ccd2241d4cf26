/* SPDX-License-Identifier: Apache-2.0 */
/* The store controller over real adapters: what is put where, and what the Host keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "depot.h"

static struct depot depot;

/* Changes what depot_init() set, then opens. */
static void open_with(uint32_t crates, const struct kvs_store_policy *policy)
{
	depot_init(&depot);
	depot.crate_count = crates;
	depot.prefetch_policy = NULL;
	if (policy)
		depot.store_policy = policy;
	depot_open(&depot);
}

static const struct kvs_store_policy *named(const char *name)
{
	const struct kvs_store_policy *policy = NULL;

	assert_int_equal(store_policy_find(name, &policy, NULL), 0);
	return policy;
}

/* At the end of each test: nothing is under way, and nothing held. */
static void close_all(void)
{
	depot_flush(&depot);
	assert_int_equal(depot_usage(&depot).pins, 0);
	depot_close(&depot);
}

static uint64_t counted(enum store_ctrl_counter counter)
{
	return depot_store_counter(&depot, counter);
}

static uint32_t stored_count(uint32_t crate, uint32_t from, uint32_t count)
{
	uint32_t stored = 0, i;

	for (i = 0; i < count; i++)
		stored += depot_stored(&depot, crate, from + i);
	return stored;
}

/* --- what is heard ----------------------------------------------------------------------------- */

static void B3_1_what_writers_finish_is_heard_and_stored(void **state)
{
	(void)state;
	open_with(1, NULL);
	assert_int_equal(counted(STORE_CTRL_HEARD), 0);
	depot_write(&depot, 0, 1);
	depot_write(&depot, 1, 2);
	assert_int_equal(counted(STORE_CTRL_HEARD), 3);
	depot_flush(&depot);
	assert_int_equal(stored_count(0, 0, 4), 3);
	assert_int_equal(counted(STORE_CTRL_STORED), 3);
	assert_true(depot_has(&depot, 0) && depot_has(&depot, 1) && depot_has(&depot, 2));
	close_all();
}

static void B3_1_what_was_written_before_the_start_is_stored(void **state)
{
	(void)state;
	depot_init(&depot);
	depot.prefetch_policy = NULL;
	depot.crate_count = 0;
	depot_open(&depot);
	assert_int_equal(store_ctrl_attach(depot.store, 4, depot.adapters[1], "late"), 0);
	depot_write(&depot, 7, 5);
	depot_flush(&depot);
	assert_int_equal(stored_count(1, 7, 5), 5);
	assert_int_equal(stored_count(0, 7, 5), 0);
	close_all();
}

/* Finished with a lock for its reader, as a load is; or by its writer, and temporary. */
static void B3_3_loaded_and_temporary_objects_are_never_stored(void **state)
{
	const uint64_t  bytes = CRATE_BYTES;
	struct kvs_span span;
	uint32_t        i;
	int             rc;

	(void)state;
	open_with(1, NULL);
	for (i = 0; i < 2; i++) {
		const struct kvs_key     key = depot_key(i);
		const struct host_writer by = { depot.client, 1 };
		const unsigned           flags = i ? HOST_TEMPORARY : 0;

		assert_int_equal(host_reserve(depot.host, by, &key, &bytes, 1, flags, os_now_ns(), &span,
					      &rc),
				 0);
		assert_int_equal(rc, 0);
		if (i == 0) {
			host_finish_locked(depot.host, by, depot.client, 1, &key, 1, os_now_ns(), &span,
					   &rc);
		} else {
			host_finish(depot.host, by, &key, 1, os_now_ns(), &rc);
		}
		assert_int_equal(rc, 0);
	}
	depot_write(&depot, 2, 1);
	depot_flush(&depot);
	assert_int_equal(counted(STORE_CTRL_HEARD), 1);
	assert_int_equal(stored_count(0, 0, 3), 1);
	depot_unlock(&depot, 0, 1);
	if (depot_has(&depot, 1))
		depot_remove(&depot, 1);
	close_all();
}

static void B3_4_it_starts_and_stops_with_any_number_of_adapters(void **state)
{
	uint32_t crates;

	(void)state;
	for (crates = 0; crates <= DEPOT_CRATES; crates++) {
		open_with(crates, NULL);
		close_all();
	}
	assert_int_equal(store_ctrl_close(NULL, 0), 0);
}

static void B3_4_one_that_never_started_is_closed(void **state)
{
	const struct ctrl_limits limits = { .in_flight_max = 1, .queue_max = 1 };
	struct store_ctrl       *ctrl = NULL;

	(void)state;
	assert_int_equal(store_ctrl_open(named("default"), &limits, &ctrl, NULL), 0);
	store_ctrl_detach(ctrl, 0);
	assert_true(store_ctrl_detached(ctrl, 0, 0));
	assert_int_equal(store_ctrl_close(ctrl, 0), 0);
}

static void limits_are_checked_by_name(void **state)
{
	static const struct {
		struct ctrl_limits limits;
		const char        *says;
	} rows[] = {
		{ { .in_flight_max = 0, .queue_max = 1 },
		  "store in flight: 0 is out of range; use 1 to 1024" },
		{ { .in_flight_max = 1025, .queue_max = 1 }, "store in flight: 1025" },
		{ { .in_flight_max = 1, .queue_max = 0 }, "store queue: 0 is out of range" },
		{ { .in_flight_max = 1, .queue_max = CTRL_QUEUE_MAX + 1 }, "store queue: 1048577" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		struct store_ctrl *ctrl = NULL;
		struct kvs_error   err;

		assert_int_equal(store_ctrl_open(named("default"), &rows[i].limits, &ctrl, &err),
				 KVS_E_INVALID);
		assert_null(ctrl);
		assert_non_null(strstr(err.message, rows[i].says));
	}
}

/* --- tasks ------------------------------------------------------------------------------------- */

static void B3_1_batches_of_one_adapter_all_advance(void **state)
{
	(void)state;
	open_with(1, NULL);
	crate_shut(&depot.crates[0]);
	depot_write(&depot, 0, 3);
	crate_wait_inside(&depot.crates[0], 1);
	depot_write(&depot, 3, 3);
	crate_wait_inside(&depot.crates[0], 2);
	crate_open(&depot.crates[0]);
	depot_flush(&depot);
	assert_int_equal(stored_count(0, 0, 6), 6);
	assert_int_equal(counted(STORE_CTRL_TASKS), 2);
	close_all();
}

static void B3_1_objects_are_pinned_while_they_are_stored_and_not_before_or_after(void **state)
{
	(void)state;
	depot_init(&depot);
	depot.prefetch_policy = NULL;
	depot.crate_count = 1;
	depot.store_limits.in_flight_max = 1;
	depot_open(&depot);
	crate_shut(&depot.crates[0]);
	depot_write(&depot, 0, 2);
	crate_wait_inside(&depot.crates[0], 1);
	depot_write(&depot, 10, 3);
	depot_await_waiting(&depot, 3);
	assert_int_equal(depot_usage(&depot).pins, 2);
	/* What waits is pinned by nobody, and may go. */
	depot_remove(&depot, 11);
	crate_open(&depot.crates[0]);
	depot_flush(&depot);
	assert_int_equal(depot_usage(&depot).pins, 0);
	assert_int_equal(stored_count(0, 0, 2), 2);
	assert_int_equal(stored_count(0, 10, 3), 2);
	assert_int_equal(counted(STORE_CTRL_GONE), 1);
	depot_remove(&depot, 0);
	close_all();
}

static void B3_1_a_task_has_one_shape(void **state)
{
	uint32_t i;

	(void)state;
	depot_init(&depot);
	depot.prefetch_policy = NULL;
	depot.crate_count = 1;
	depot.store_limits.in_flight_max = 1;
	depot_open(&depot);
	crate_shut(&depot.crates[0]);
	depot_write(&depot, 100, 1);
	crate_wait_inside(&depot.crates[0], 1);
	for (i = 0; i < 8; i++)
		depot_write_as(&depot, i, i % 2, CRATE_BYTES);
	crate_open(&depot.crates[0]);
	depot_flush(&depot);
	assert_int_equal(stored_count(0, 0, 8), 8);
	/* The one at the gate, and one of each group. */
	assert_int_equal(counted(STORE_CTRL_TASKS), 3);
	close_all();
}

/* Gone and written again in another size while it waited: the second notice tells of it. */
static void B3_1_a_key_that_was_written_again_is_stored_as_it_is_now(void **state)
{
	(void)state;
	depot_init(&depot);
	depot.prefetch_policy = NULL;
	depot.crate_count = 1;
	depot.store_limits.in_flight_max = 1;
	depot_open(&depot);
	crate_shut(&depot.crates[0]);
	depot_write(&depot, 100, 1);
	crate_wait_inside(&depot.crates[0], 1);
	depot_write_as(&depot, 1, 0, 2 * CRATE_BYTES);
	/* A notice is looked at before it waits: until then there is nothing to be gone. */
	depot_await_waiting(&depot, 1);
	depot_remove(&depot, 1);
	depot_write(&depot, 1, 1);
	crate_open(&depot.crates[0]);
	depot_flush(&depot);
	assert_true(depot_stored(&depot, 0, 1));
	assert_int_equal(counted(STORE_CTRL_GONE), 1);
	assert_int_equal(counted(STORE_CTRL_STORED), 2);
	close_all();
}

/* --- failure ----------------------------------------------------------------------------------- */

static void B3_2_a_failed_put_is_counted_and_not_tried_again(void **state)
{
	(void)state;
	open_with(1, named("skip-host"));
	depot.crates[0].fate[1] = CRATE_FAILS;
	depot_write(&depot, 0, 3);
	depot_flush(&depot);
	assert_int_equal(counted(STORE_CTRL_FAILED), 3);
	assert_int_equal(counted(STORE_CTRL_STORED), 0);
	assert_int_equal(counted(STORE_CTRL_TASKS), 1);
	assert_int_equal(counted(STORE_CTRL_DELETED), 0);
	assert_int_equal(depot_usage(&depot).pins, 0);
	assert_true(depot_has(&depot, 0) && depot_has(&depot, 1) && depot_has(&depot, 2));
	close_all();
}

/* An adapter that is closing refuses the submission itself. */
static void B3_1_a_refused_submission_gives_its_pins_back(void **state)
{
	(void)state;
	open_with(1, NULL);
	crate_shut(&depot.crates[0]);
	depot_write(&depot, 0, 1);
	crate_wait_inside(&depot.crates[0], 1);
	assert_int_equal(adapter_close(depot.adapters[0], 0), KVS_E_QUARANTINE);
	depot_write(&depot, 1, 4);
	depot_await_counter(&depot, STORE_CTRL_REFUSED, 4);
	/* Nothing was under way for them: no task has failed. */
	assert_int_equal(counted(STORE_CTRL_FAILED), 0);
	assert_int_equal(depot_usage(&depot).pins, 1);
	crate_open(&depot.crates[0]);
	close_all();
}

/* --- policies ---------------------------------------------------------------------------------- */

static void to_none(const struct kvs_adapter_info *adapters, uint32_t adapter_count,
		    const struct kvs_key *keys, const uint64_t *bytes, uint32_t count, uint64_t *targets)
{
	(void)adapters, (void)adapter_count, (void)keys, (void)bytes, (void)count, (void)targets;
}

static void to_the_first_and_nobody(const struct kvs_adapter_info *adapters, uint32_t adapter_count,
				    const struct kvs_key *keys, const uint64_t *bytes, uint32_t count,
				    uint64_t *targets)
{
	uint32_t i;

	(void)keys;
	assert_int_equal(adapter_count, 2);
	assert_int_equal(adapters[1].number, 1);
	assert_string_equal(adapters[1].name, "crate");
	assert_true(adapters[0].healthy);
	for (i = 0; i < count; i++) {
		assert_int_equal(bytes[i], CRATE_BYTES);
		assert_int_equal(targets[i], 0);
		targets[i] = UINT64_C(1) << adapters[0].number | UINT64_C(1) << 9 | UINT64_C(1) << 63;
	}
}

static void B3_2_a_policy_may_store_nothing(void **state)
{
	static const struct kvs_store_policy nothing = { .name = "nothing", .targets = to_none };

	(void)state;
	open_with(2, &nothing);
	depot_write(&depot, 0, 5);
	depot_flush(&depot);
	assert_int_equal(stored_count(0, 0, 5) + stored_count(1, 0, 5), 0);
	assert_int_equal(counted(STORE_CTRL_TASKS), 0);
	close_all();
}

static void B3_2_a_policy_may_choose_some_adapters_and_others_do_not_exist(void **state)
{
	static const struct kvs_store_policy first = { .name = "first",
						       .targets = to_the_first_and_nobody };

	(void)state;
	open_with(2, &first);
	depot_write(&depot, 0, 5);
	depot_flush(&depot);
	assert_int_equal(stored_count(0, 0, 5), 5);
	assert_int_equal(stored_count(1, 0, 5), 0);
	assert_int_equal(counted(STORE_CTRL_MISNAMED), 10);
	close_all();
}

static void B3_1_a_key_may_go_to_several_adapters(void **state)
{
	(void)state;
	open_with(3, NULL);
	crate_shut(&depot.crates[0]);
	crate_shut(&depot.crates[2]);
	depot_write(&depot, 0, 5);
	crate_wait_inside(&depot.crates[0], 1);
	crate_wait_inside(&depot.crates[2], 1);
	assert_true(depot_usage(&depot).pins >= 10);
	crate_open(&depot.crates[0]);
	crate_open(&depot.crates[2]);
	depot_flush(&depot);
	assert_int_equal(stored_count(0, 0, 5) + stored_count(1, 0, 5) + stored_count(2, 0, 5), 15);
	assert_int_equal(counted(STORE_CTRL_STORED), 15);
	close_all();
}

static void B3_2_skip_host_lets_objects_flow_through(void **state)
{
	uint32_t i;

	(void)state;
	open_with(1, named("skip-host"));
	depot_write(&depot, 0, 5);
	depot_flush(&depot);
	assert_int_equal(stored_count(0, 0, 5), 5);
	assert_int_equal(counted(STORE_CTRL_DELETED), 5);
	for (i = 0; i < 5; i++)
		assert_false(depot_has(&depot, i));
	assert_int_equal(depot_usage(&depot).used_bytes, 0);
	/* And the keys can be written again. */
	depot_write(&depot, 0, 5);
	close_all();
}

/* The store's own pin is gone before the policy is followed; a reader's lock is not. */
static void B3_3_what_somebody_reads_is_kept(void **state)
{
	(void)state;
	open_with(1, named("skip-host"));
	crate_shut(&depot.crates[0]);
	depot_write(&depot, 0, 2);
	depot_lock(&depot, 1);
	crate_open(&depot.crates[0]);
	depot_flush(&depot);
	assert_false(depot_has(&depot, 0));
	assert_true(depot_has(&depot, 1));
	assert_int_equal(counted(STORE_CTRL_DELETED), 1);
	assert_int_equal(counted(STORE_CTRL_KEPT), 1);
	depot_unlock(&depot, 1, 1);
	close_all();
}

static void B3_2_an_object_is_deleted_only_when_the_slowest_adapter_has_it(void **state)
{
	(void)state;
	open_with(2, named("skip-host"));
	crate_shut(&depot.crates[1]);
	depot_write(&depot, 0, 2);
	crate_wait_inside(&depot.crates[1], 1);
	depot_await_counter(&depot, STORE_CTRL_STORED, 2);
	assert_true(depot_has(&depot, 0) && depot_has(&depot, 1));
	assert_int_equal(counted(STORE_CTRL_KEPT), 0);
	crate_open(&depot.crates[1]);
	depot_flush(&depot);
	assert_int_equal(stored_count(1, 0, 2), 2);
	assert_int_equal(counted(STORE_CTRL_DELETED), 2);
	assert_false(depot_has(&depot, 0) || depot_has(&depot, 1));
	close_all();
}

static void without_adapters_nothing_is_pinned_or_kept(void **state)
{
	(void)state;
	open_with(0, named("skip-host"));
	depot_write(&depot, 0, 5);
	depot_flush(&depot);
	assert_int_equal(depot_usage(&depot).pins, 0);
	assert_int_equal(counted(STORE_CTRL_HEARD), 5);
	assert_int_equal(counted(STORE_CTRL_UNWANTED), 5);
	assert_true(depot_has(&depot, 0));
	depot_remove(&depot, 0);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B3_1_what_writers_finish_is_heard_and_stored),
		cmocka_unit_test(B3_1_what_was_written_before_the_start_is_stored),
		cmocka_unit_test(B3_3_loaded_and_temporary_objects_are_never_stored),
		cmocka_unit_test(B3_4_it_starts_and_stops_with_any_number_of_adapters),
		cmocka_unit_test(B3_4_one_that_never_started_is_closed),
		cmocka_unit_test(limits_are_checked_by_name),
		cmocka_unit_test(B3_1_batches_of_one_adapter_all_advance),
		cmocka_unit_test(B3_1_objects_are_pinned_while_they_are_stored_and_not_before_or_after),
		cmocka_unit_test(B3_1_a_task_has_one_shape),
		cmocka_unit_test(B3_1_a_key_that_was_written_again_is_stored_as_it_is_now),
		cmocka_unit_test(B3_2_a_failed_put_is_counted_and_not_tried_again),
		cmocka_unit_test(B3_1_a_refused_submission_gives_its_pins_back),
		cmocka_unit_test(B3_2_a_policy_may_store_nothing),
		cmocka_unit_test(B3_2_a_policy_may_choose_some_adapters_and_others_do_not_exist),
		cmocka_unit_test(B3_1_a_key_may_go_to_several_adapters),
		cmocka_unit_test(B3_2_skip_host_lets_objects_flow_through),
		cmocka_unit_test(B3_3_what_somebody_reads_is_kept),
		cmocka_unit_test(B3_2_an_object_is_deleted_only_when_the_slowest_adapter_has_it),
		cmocka_unit_test(without_adapters_nothing_is_pinned_or_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
