/* SPDX-License-Identifier: Apache-2.0 */
/* The executor on a store that answers later and in another order: the same facts as ever. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "exec/exec.h"
#include "named_block.h"
#include "tray.h"

#define OUTSTANDING_MAX 32u
#define FOREVER_NS UINT64_MAX
#define NEVER (TRAY_ROOM_MAX + 1) /* rows: more than a lane holds */

struct rig {
	struct tray     tray;
	struct exec    *exec;
	uint64_t        next_id;
	struct kvs_key  keys[TRAY_KEYS];
	struct kvs_span sources[TRAY_KEYS];
	struct kvs_span targets[TRAY_KEYS];
	uint64_t        source_bytes[TRAY_KEYS][TRAY_BLOCK_BYTES / 8];
	uint64_t        target_bytes[TRAY_KEYS][TRAY_BLOCK_BYTES / 8];
};

static const struct exec_options options = { .limits = { .outstanding_max = OUTSTANDING_MAX,
							 .queue_max = OUTSTANDING_MAX },
					     .workers = { 1, 2, 1 } };

/* One get worker, where a test counts what lies in a lane. */
static const struct exec_options one_lane = { .limits = { .outstanding_max = OUTSTANDING_MAX,
							  .queue_max = OUTSTANDING_MAX },
					      .workers = { 1, 1, 1 } };

static struct rig *rig_open(uint32_t room, const struct exec_options *with)
{
	struct rig *const rig = calloc(1, sizeof(*rig));
	uint32_t          i;

	assert_non_null(rig);
	tray_init(&rig->tray, room);
	for (i = 0; i < TRAY_KEYS; i++) {
		rig->keys[i] = key_of(i);
		fill(rig->source_bytes[i], i, TRAY_BLOCK_BYTES);
		rig->sources[i] = (struct kvs_span){ rig->source_bytes[i], TRAY_BLOCK_BYTES,
						     TRAY_BLOCK_BYTES };
		rig->targets[i] = (struct kvs_span){ rig->target_bytes[i], TRAY_BLOCK_BYTES,
						     TRAY_BLOCK_BYTES };
	}
	assert_int_equal(exec_open(&rig->tray.store, with, &rig->exec, NULL), 0);
	return rig;
}

static void rig_close(struct rig *rig)
{
	assert_int_equal(exec_close(rig->exec, FOREVER_NS), 0);
	assert_true(rig->tray.closed);
	tray_fini(&rig->tray);
	free(rig);
}

/* An op over `count` keys from number `first` on; its id. */
static uint64_t submit(struct rig *rig, enum op_kind kind, uint32_t first, uint32_t count)
{
	struct op op = { .op_id = ++rig->next_id, .kind = kind, .key_count = count,
			 .keys = rig->keys + first };

	if (kind == OP_GET)
		op.spans = rig->targets + first;
	if (kind == OP_PUT)
		op.spans = rig->sources + first;
	op_own_all(&op);
	assert_int_equal(exec_submit(rig->exec, &op), 0);
	return op.op_id;
}

static struct fact collect(struct rig *rig)
{
	struct pressure pressure;
	struct fact          fact;

	while (exec_poll(rig->exec, &fact, 1, &pressure) == 0)
		exec_wait(rig->exec, FOREVER_NS);
	return fact;
}

/* The whole op in one fact. */
static void collect_whole(struct rig *rig, uint32_t key_count)
{
	const struct fact fact = collect(rig);

	assert_true(fact.retired);
	assert_int_equal(fact.reason, OP_REASON_NONE);
	assert_int_equal(fact.key_count, key_count);
	assert_int_equal(bits_prefix(fact.ok.words, key_count), key_count);
}

static void put_whole(struct rig *rig, uint32_t first, uint32_t count)
{
	submit(rig, OP_PUT, first, count);
	collect_whole(rig, count);
}

/* --- facts ------------------------------------------------------------------------------------ */

static void what_is_put_comes_back_whatever_the_order(void **state)
{
	struct rig *const rig = rig_open(5, &options);
	uint64_t          sum = 0;
	uint32_t          i;

	(void)state;
	for (i = 0; i < 16; i++)
		submit(rig, OP_PUT, 16 * i, 16);
	for (i = 0; i < 16; i++)
		collect_whole(rig, 16);
	for (i = 0; i < 32; i++)
		submit(rig, OP_GET, 8 * i, 8);
	for (i = 0; i < 32; i++) {
		const struct fact fact = collect(rig);

		sum += fact.op_id;
		assert_int_equal(bits_prefix(fact.ok.words, 8), 8);
		assert_int_equal(fact.moved_bytes, 8 * TRAY_BLOCK_BYTES);
	}
	/* Each once: ids 17 to 48. */
	assert_int_equal(sum, (17 + 48) * 32 / 2);
	for (i = 0; i < TRAY_KEYS; i++)
		assert_true(is_filled(rig->target_bytes[i], i, TRAY_BLOCK_BYTES));
	rig_close(rig);
}

static void an_op_longer_than_the_tray_goes_through_it(void **state)
{
	struct rig *const rig = rig_open(3, &options);

	(void)state;
	put_whole(rig, 0, TRAY_KEYS);
	assert_int_equal(rig->tray.most, 3);
	rig_close(rig);
}

/* The store answers nothing before 12 rows lie in one lane: three ops of four are there at once. */
static void a_lane_is_not_drained_between_jobs(void **state)
{
	struct rig *const rig = rig_open(64, &one_lane);
	uint32_t          i;

	(void)state;
	put_whole(rig, 0, 12);
	tray_answer_at(&rig->tray, NEVER);
	for (i = 0; i < 3; i++)
		submit(rig, OP_GET, 4 * i, 4);
	tray_wait(&rig->tray, 12);
	tray_answer_at(&rig->tray, 0);
	for (i = 0; i < 3; i++)
		collect_whole(rig, 4);
	rig_close(rig);
}

/* Two ops fit into the bytes, so the third waits although the tray has room. */
static void bytes_in_flight_bound_a_lane(void **state)
{
	struct exec_options bounded = one_lane;
	struct rig         *rig;
	uint32_t            i;

	(void)state;
	bounded.limits.bytes_max[EXEC_GET] = UINT64_C(2) * 4 * TRAY_BLOCK_BYTES;
	rig = rig_open(64, &bounded);
	put_whole(rig, 0, 4);
	put_whole(rig, 4, 4);
	put_whole(rig, 8, 4);
	rig->tray.most = 0;
	tray_answer_at(&rig->tray, NEVER);
	for (i = 0; i < 3; i++)
		submit(rig, OP_GET, 4 * i, 4);
	tray_wait(&rig->tray, 8);
	tray_answer_at(&rig->tray, 0);
	for (i = 0; i < 3; i++)
		collect_whole(rig, 4);
	assert_int_equal(rig->tray.most, 8);
	rig_close(rig);
}

static void misses_and_equal_keys_are_the_same_as_ever(void **state)
{
	struct rig *const rig = rig_open(8, &options);
	struct fact       fact;

	(void)state;
	rig->keys[3] = rig->keys[0];
	put_whole(rig, 0, 4);
	assert_int_equal(rig->tray.asked[0], 1);
	submit(rig, OP_GET, 0, 6);
	fact = collect(rig);
	assert_int_equal(rig->tray.asked[0], 2);
	assert_int_equal(fact.ok.words[0], 0xf);
	assert_int_equal(fact.object_fault.words[0], 0x30);
	assert_int_equal(fact.reason, OP_REASON_MISS);
	assert_true(is_filled(rig->target_bytes[3], 0, TRAY_BLOCK_BYTES));
	submit(rig, OP_QUERY, 0, 6);
	assert_int_equal(collect(rig).ok.words[0], 0xf);
	rig_close(rig);
}

/* --- failures --------------------------------------------------------------------------------- */

static enum health_state health(struct rig *rig)
{
	struct exec_stats stats;

	exec_stats(rig->exec, &stats);
	return stats.health;
}

static void A5_4_a_failed_row_is_an_outage(void **state)
{
	struct rig *const rig = rig_open(8, &options);
	struct fact       fact;

	(void)state;
	rig->tray.failing = 1;
	submit(rig, OP_PUT, 0, 3);
	fact = collect(rig);
	assert_int_equal(fact.ok.words[0], 0x5);
	assert_int_equal(fact.reason, OP_REASON_BACKEND);
	assert_true(fact.retired);
	assert_int_equal(health(rig), HEALTH_DOWN);
	rig_close(rig);
}

static void A5_6_one_row_in_doubt_leaves_its_op_in_doubt(void **state)
{
	struct rig *const rig = rig_open(8, &options);
	struct fact       fact;
	struct op         op = { .op_id = 2, .kind = OP_QUERY, .key_count = 1, .keys = rig->keys };

	(void)state;
	rig->tray.doubtful = 2;
	submit(rig, OP_PUT, 0, 6);
	fact = collect(rig);
	assert_false(fact.retired);
	assert_int_equal(bits_prefix(fact.ok.words, 6), 6);
	assert_int_equal(exec_submit(rig->exec, &op), KVS_E_QUARANTINE);
	assert_int_equal(exec_close(rig->exec, FOREVER_NS), KVS_E_QUARANTINE);
	assert_false(rig->tray.closed);
	assert_int_equal(exec_notice(rig->exec, &(struct retirement_notice){ fact.op_id }), 0);
	rig_close(rig);
}

static void answers_that_nobody_asked_for_are_nobodys(void **state)
{
	struct rig *const rig = rig_open(6, &options);
	uint32_t          i;

	(void)state;
	rig->tray.stutters = true;
	for (i = 0; i < 8; i++)
		submit(rig, OP_PUT, 32 * i, 32);
	for (i = 0; i < 8; i++)
		collect_whole(rig, 32);
	for (i = 0; i < 8; i++)
		submit(rig, OP_GET, 32 * i, 32);
	for (i = 0; i < 8; i++)
		collect_whole(rig, 32);
	assert_int_equal(health(rig), HEALTH_UP);
	rig_close(rig);
}

static void a_store_that_takes_nothing_holds_nothing(void **state)
{
	struct rig *const rig = rig_open(8, &options);
	struct fact       fact;

	(void)state;
	rig->tray.submit_rc = -EIO;
	submit(rig, OP_GET, 0, 100);
	fact = collect(rig);
	assert_true(fact.retired);
	assert_int_equal(bits_count(fact.ok.words, 100), 0);
	assert_int_equal(bits_count(fact.object_fault.words, 100), 0);
	assert_int_equal(fact.reason, OP_REASON_BACKEND);
	assert_int_equal(health(rig), HEALTH_DOWN);
	rig_close(rig);
}

/* It says that it has no room, with nothing in it that could make some. */
static void a_store_that_never_has_room_fails_its_rows(void **state)
{
	struct rig *const rig = rig_open(0, &options);
	struct fact       fact;

	(void)state;
	submit(rig, OP_GET, 0, 100);
	fact = collect(rig);
	assert_true(fact.retired);
	assert_int_equal(bits_count(fact.ok.words, 100), 0);
	assert_int_equal(bits_count(fact.object_fault.words, 100), 0);
	assert_int_equal(fact.reason, OP_REASON_BACKEND);
	assert_int_equal(health(rig), HEALTH_DOWN);
	rig_close(rig);
}

/* It took the rows and does not answer any more: nobody knows where they are. */
static void A5_5_a_store_that_stops_answering_leaves_its_rows_in_doubt(void **state)
{
	struct rig *const rig = rig_open(2, &options);
	struct fact       fact;

	(void)state;
	rig->tray.reap_rc = -EIO;
	submit(rig, OP_GET, 0, 4);
	fact = collect(rig);
	assert_false(fact.retired);
	assert_int_equal(fact.reason, OP_REASON_BACKEND);
	assert_int_equal(bits_count(fact.ok.words, 4), 0);
	assert_int_equal(bits_count(fact.read_here.words, 4), 0);
	assert_int_equal(exec_notice(rig->exec, &(struct retirement_notice){ fact.op_id }), 0);
	rig_close(rig);
}

/* --- what is refused -------------------------------------------------------------------------- */

static void a_store_of_one_thread_cannot_be_asynchronous(void **state)
{
	struct exec     *exec = NULL;
	struct kvs_error err;
	struct tray      tray;

	(void)state;
	tray_init(&tray, 8);
	tray.one_thread = true;
	assert_int_equal(exec_open(&tray.store, &options, &exec, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "store \"tray\": one_thread and submit()"));
	assert_null(exec);
	assert_false(tray.closed);
	tray_fini(&tray);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void A5_7_a_close_waits_for_rows_in_flight_within_its_deadline(void **state)
{
	struct rig *const rig = rig_open(8, &one_lane);

	(void)state;
	tray_answer_at(&rig->tray, NEVER);
	submit(rig, OP_PUT, 0, 4);
	tray_wait(&rig->tray, 4);
	assert_int_equal(exec_close(rig->exec, 0), KVS_E_QUARANTINE);
	assert_false(rig->tray.closed);
	tray_answer_at(&rig->tray, 0);
	collect_whole(rig, 4);
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_comes_back_whatever_the_order),
		cmocka_unit_test(an_op_longer_than_the_tray_goes_through_it),
		cmocka_unit_test(a_lane_is_not_drained_between_jobs),
		cmocka_unit_test(bytes_in_flight_bound_a_lane),
		cmocka_unit_test(misses_and_equal_keys_are_the_same_as_ever),
		cmocka_unit_test(A5_4_a_failed_row_is_an_outage),
		cmocka_unit_test(A5_6_one_row_in_doubt_leaves_its_op_in_doubt),
		cmocka_unit_test(answers_that_nobody_asked_for_are_nobodys),
		cmocka_unit_test(a_store_that_takes_nothing_holds_nothing),
		cmocka_unit_test(a_store_that_never_has_room_fails_its_rows),
		cmocka_unit_test(A5_5_a_store_that_stops_answering_leaves_its_rows_in_doubt),
		cmocka_unit_test(a_store_of_one_thread_cannot_be_asynchronous),
		cmocka_unit_test(A5_7_a_close_waits_for_rows_in_flight_within_its_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
