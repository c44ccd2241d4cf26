/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor's core, one call at a time: what is refused, what is answered and when, what is
 * measured.
 *
 * Every step is followed by the room's own audit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "death.h"
#include "exec/core.h"

#define QUEUE_MAX 2u
#define OUTSTANDING_MAX 5u
#define KEYS 3u
#define BLOCK_BYTES 4096u

static struct kvs_key  keys[KEYS];
static struct kvs_span spans[KEYS];

static int core_setup(void **state)
{
	static struct exec_core  core;
	const struct exec_limits limits = { .outstanding_max = OUTSTANDING_MAX,
					    .queue_max = QUEUE_MAX };
	uint32_t                 i;

	for (i = 0; i < KEYS; i++)
		spans[i] = (struct kvs_span){ NULL, BLOCK_BYTES, BLOCK_BYTES };
	assert_int_equal(exec_core_open(&core, &limits, NULL), 0);
	*state = &core;
	return 0;
}

static int core_teardown(void **state)
{
	exec_core_audit(*state);
	exec_core_close(*state);
	return 0;
}

static struct op op_of(uint64_t op_id, enum op_kind kind)
{
	struct op op = { .op_id = op_id, .kind = kind, .key_count = KEYS, .keys = keys };

	if (kind == OP_GET || kind == OP_PUT)
		op.spans = spans;
	op_own_all(&op);
	return op;
}

static int submit(struct exec_core *core, uint64_t op_id, enum op_kind kind, uint64_t now_ns)
{
	const struct op op = op_of(op_id, kind);
	const int       rc = exec_core_submit(core, &op, now_ns);

	exec_core_audit(core);
	return rc;
}

static uint64_t id_of(const struct exec_core *core, uint32_t job)
{
	return core->jobs[job].op.op_id;
}

static void finish(struct exec_core *core, uint32_t job, bool retired)
{
	struct fact fact;

	fact_init(&fact, &core->jobs[job].op);
	fact.retired = retired;
	exec_core_finish(core, job, &fact, &(struct exec_report){ 0 }, 0);
	exec_core_audit(core);
}

/* Take the oldest of a class and end it. */
static void run(struct exec_core *core, enum exec_class class, bool retired)
{
	const uint32_t job = exec_core_take(core, class);

	assert_int_not_equal(job, SLOT_NONE);
	exec_core_audit(core);
	finish(core, job, retired);
}

static uint32_t poll_at(struct exec_core *core, uint64_t now_ns, struct fact *ret_facts,
			struct pressure *ret_pressure)
{
	const uint32_t count =
		exec_core_poll(core, now_ns, ret_facts, OUTSTANDING_MAX, ret_pressure);

	exec_core_audit(core);
	return count;
}

static uint32_t poll_facts(struct exec_core *core, struct fact *ret_facts)
{
	struct pressure pressure;

	return poll_at(core, 0, ret_facts, &pressure);
}

static void limits_of_nothing_are_refused(void **state)
{
	const struct exec_limits limits[] = { { .outstanding_max = 0, .queue_max = 1 },
					      { .outstanding_max = 1, .queue_max = 0 } };
	struct exec_core         core;
	struct kvs_error         err;
	size_t                   i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(limits); i++) {
		assert_int_equal(exec_core_open(&core, &limits[i], &err), KVS_E_INVALID);
		assert_non_null(strstr(err.message, "use at least 1"));
		exec_core_close(&core);
	}
}

static void A5_1_a_full_class_refuses_without_effect_and_others_go_on(void **state)
{
	struct exec_core *const core = *state;
	struct fact             facts[OUTSTANDING_MAX];

	assert_int_equal(submit(core, 1, OP_GET, 0), 0);
	assert_int_equal(submit(core, 2, OP_GET, 0), 0);
	assert_int_equal(submit(core, 3, OP_GET, 0), KVS_E_FULL);
	assert_int_equal(core->slots.busy_count, 2);
	assert_int_equal(core->counters[EXEC_SUBMITTED], 2);
	assert_int_equal(core->counters[EXEC_REFUSED_QUEUE], 1);
	/* Not even its id is used up. */
	assert_int_equal(submit(core, 3, OP_PUT, 0), 0);
	assert_int_equal(submit(core, 4, OP_QUERY, 0), 0);

	run(core, EXEC_GET, true);
	run(core, EXEC_GET, true);
	assert_int_equal(exec_core_take(core, EXEC_GET), SLOT_NONE);
	run(core, EXEC_QUERY, true);
	run(core, EXEC_PUT, true);
	assert_int_equal(poll_facts(core, facts), 4);
	assert_int_equal(core->slots.busy_count, 0);
}

static void a_removal_waits_with_the_queries(void **state)
{
	struct exec_core *const core = *state;

	assert_int_equal(submit(core, 1, OP_REMOVE, 0), 0);
	assert_int_equal(id_of(core, exec_core_take(core, EXEC_QUERY)), 1);
}

static void A5_1_the_outstanding_limit_counts_undelivered_facts(void **state)
{
	struct exec_core *const core = *state;
	struct fact             facts[OUTSTANDING_MAX];
	uint64_t                id;

	for (id = 1; id <= OUTSTANDING_MAX; id++) {
		assert_int_equal(submit(core, id, OP_QUERY, 0), 0);
		run(core, EXEC_QUERY, true);
	}
	assert_int_equal(submit(core, id, OP_QUERY, 0), KVS_E_FULL);
	assert_int_equal(poll_facts(core, facts), OUTSTANDING_MAX);
	assert_int_equal(submit(core, id, OP_QUERY, 0), 0);
}

static void jobs_start_in_order_of_submission_and_facts_come_in_order_of_completion(void **state)
{
	struct exec_core *const core = *state;
	struct fact             facts[OUTSTANDING_MAX];
	uint32_t                first, second;

	submit(core, 1, OP_GET, 0);
	submit(core, 2, OP_GET, 0);
	first = exec_core_take(core, EXEC_GET);
	second = exec_core_take(core, EXEC_GET);
	assert_int_equal(id_of(core, first), 1);
	assert_int_equal(id_of(core, second), 2);
	finish(core, second, true);
	finish(core, first, true);
	assert_int_equal(poll_facts(core, facts), 2);
	assert_int_equal(facts[0].op_id, 2);
	assert_int_equal(facts[1].op_id, 1);
}

static void a_fact_is_delivered_once_and_waits_when_there_is_no_room(void **state)
{
	struct exec_core *const core = *state;
	struct pressure         pressure;
	struct fact             facts[OUTSTANDING_MAX];

	submit(core, 1, OP_GET, 0);
	submit(core, 2, OP_PUT, 0);
	run(core, EXEC_GET, true);
	run(core, EXEC_PUT, true);
	assert_int_equal(exec_core_poll(core, 0, facts, 0, &pressure), 0);
	assert_int_equal(exec_core_poll(core, 0, facts, 1, &pressure), 1);
	assert_int_equal(facts[0].op_id, 1);
	assert_int_equal(poll_facts(core, facts), 1);
	assert_int_equal(facts[0].op_id, 2);
	assert_int_equal(poll_facts(core, facts), 0);
}

static void A5_3_a_cancelled_op_is_in_the_next_poll_and_inert(void **state)
{
	struct exec_core *const core = *state;
	struct fact             facts[OUTSTANDING_MAX];

	submit(core, 1, OP_GET, 0);
	submit(core, 2, OP_GET, 0);
	exec_core_cancel(core, 1, 0);
	exec_core_audit(core);
	assert_int_equal(poll_facts(core, facts), 1);
	assert_int_equal(facts[0].op_id, 1);
	assert_int_equal(facts[0].key_count, KEYS);
	assert_int_equal(facts[0].reason, OP_REASON_CANCELLED);
	assert_true(facts[0].retired);
	assert_int_equal(bits_count(facts[0].ok.words, KEYS), 0);
	/* Its place in the queue is free, and no worker ever sees it. */
	assert_int_equal(submit(core, 3, OP_GET, 0), 0);
	assert_int_equal(id_of(core, exec_core_take(core, EXEC_GET)), 2);
	assert_int_equal(id_of(core, exec_core_take(core, EXEC_GET)), 3);
	assert_int_equal(core->counters[EXEC_CANCELLED], 1);
}

static void A5_3_a_cancel_is_not_retirement_of_what_runs(void **state)
{
	struct exec_core *const core = *state;
	struct fact             facts[OUTSTANDING_MAX];
	uint32_t                job;

	submit(core, 1, OP_GET, 0);
	job = exec_core_take(core, EXEC_GET);
	exec_core_cancel(core, 1, 0);
	assert_int_equal(poll_facts(core, facts), 0);
	finish(core, job, true);
	exec_core_cancel(core, 1, 0);
	assert_int_equal(poll_facts(core, facts), 1);
	assert_int_equal(facts[0].reason, OP_REASON_NONE);
	assert_int_equal(core->counters[EXEC_CANCELLED], 0);
}

static void A1_14_a_cancel_takes_no_place_and_has_no_fact(void **state)
{
	struct exec_core *const core = *state;
	struct fact             facts[OUTSTANDING_MAX];

	submit(core, 1, OP_GET, 0);
	submit(core, 2, OP_GET, 0);
	submit(core, 3, OP_PUT, 0);
	submit(core, 4, OP_PUT, 0);
	submit(core, 5, OP_QUERY, 0);
	assert_int_equal(submit(core, 6, OP_QUERY, 0), KVS_E_FULL);
	exec_core_cancel(core, 6, 0);
	exec_core_cancel(core, 99, 0);
	assert_int_equal(poll_facts(core, facts), 0);
	exec_core_cancel(core, 4, 0);
	assert_int_equal(poll_facts(core, facts), 1);
	assert_int_equal(facts[0].op_id, 4);
}

static void A5_6_unretired_bytes_refuse_every_op_and_keep_their_place(void **state)
{
	struct exec_core *const        core = *state;
	const struct retirement_notice notice = { .op_id = 1 };
	struct fact                    facts[OUTSTANDING_MAX];

	submit(core, 1, OP_GET, 0);
	submit(core, 2, OP_PUT, 0);
	run(core, EXEC_GET, false);
	/* From the moment it is known, not from the poll. */
	assert_int_equal(submit(core, 3, OP_QUERY, 0), KVS_E_QUARANTINE);
	assert_int_equal(exec_core_notice(core, &notice), KVS_E_STALE);
	assert_int_equal(poll_facts(core, facts), 1);
	assert_false(facts[0].retired);

	/* What was submitted before runs on; an empty executor stays in quarantine. */
	run(core, EXEC_PUT, true);
	assert_int_equal(poll_facts(core, facts), 1);
	assert_int_equal(core->slots.busy_count, 1);
	assert_int_equal(submit(core, 3, OP_QUERY, 0), KVS_E_QUARANTINE);
	assert_int_equal(core->counters[EXEC_REFUSED_QUARANTINE], 2);
	assert_int_equal(core->counters[EXEC_UNRETIRED], 1);

	assert_int_equal(exec_core_notice(core, &notice), 0);
	exec_core_audit(core);
	assert_int_equal(core->slots.busy_count, 0);
	assert_int_equal(submit(core, 3, OP_QUERY, 0), 0);
	assert_int_equal(exec_core_notice(core, &notice), KVS_E_STALE);
}

static void A5_6_each_unretired_op_needs_its_own_notice(void **state)
{
	struct exec_core *const core = *state;
	struct fact             facts[OUTSTANDING_MAX];

	submit(core, 1, OP_GET, 0);
	submit(core, 2, OP_PUT, 0);
	run(core, EXEC_GET, false);
	run(core, EXEC_PUT, false);
	assert_int_equal(poll_facts(core, facts), 2);
	assert_int_equal(exec_core_notice(core, &(struct retirement_notice){ 7 }), KVS_E_STALE);
	assert_int_equal(exec_core_notice(core, &(struct retirement_notice){ 2 }), 0);
	assert_int_equal(submit(core, 3, OP_GET, 0), KVS_E_QUARANTINE);
	assert_int_equal(exec_core_notice(core, &(struct retirement_notice){ 1 }), 0);
	assert_int_equal(submit(core, 3, OP_GET, 0), 0);
}

static void check_pressure(struct exec_core *core, uint64_t now_ns, uint32_t jobs, uint64_t bytes,
			   uint64_t oldest_ns)
{
	struct pressure pressure;
	struct fact          facts[OUTSTANDING_MAX];

	poll_at(core, now_ns, facts, &pressure);
	assert_int_equal(pressure.queued_jobs, jobs);
	assert_int_equal(pressure.queued_bytes, bytes);
	assert_int_equal(pressure.oldest_ns, oldest_ns);
}

static void A5_2_pressure_is_queued_jobs_their_payload_and_the_oldest_age(void **state)
{
	struct exec_core *const core = *state;
	uint32_t                job;

	check_pressure(core, 50, 0, 0, 0);
	submit(core, 1, OP_QUERY, 100);
	check_pressure(core, 130, 1, 0, 30);
	submit(core, 2, OP_GET, 200);
	submit(core, 3, OP_PUT, 300);
	check_pressure(core, 400, 3, 2 * KEYS * BLOCK_BYTES, 300);

	/* A running job is not queued, but it ages until its fact, whoever gave up on it. */
	job = exec_core_take(core, EXEC_QUERY);
	exec_core_cancel(core, 1, 0);
	check_pressure(core, 500, 2, 2 * KEYS * BLOCK_BYTES, 400);
	finish(core, job, true);
	check_pressure(core, 500, 2, 2 * KEYS * BLOCK_BYTES, 300);
	exec_core_cancel(core, 2, 0);
	check_pressure(core, 500, 1, KEYS * BLOCK_BYTES, 200);
	/* What has not retired counts as running until its notice, delivered or not. */
	run(core, EXEC_PUT, false);
	check_pressure(core, 600, 0, 0, 300);
	check_pressure(core, 700, 0, 0, 400);
	assert_int_equal(exec_core_notice(core, &(struct retirement_notice){ 3 }), 0);
	check_pressure(core, 700, 0, 0, 0);
}

static void A5_2_rows_of_other_owners_are_no_payload(void **state)
{
	struct exec_core *const core = *state;
	struct op               op = op_of(1, OP_PUT);

	bits_clear(op.owned.words, 1);
	assert_int_equal(exec_core_submit(core, &op, 0), 0);
	check_pressure(core, 0, 1, (KEYS - 1) * BLOCK_BYTES, 0);
}

/* --- our own mistakes ------------------------------------------------------------- */

static void submit_an_old_id(void *arg)
{
	submit(arg, 5, OP_GET, 0);
	submit(arg, 5, OP_GET, 0);
}

static void submit_a_cancel(void *arg)
{
	submit(arg, 5, OP_CANCEL, 0);
}

static void submit_no_keys(void *arg)
{
	const struct op op = { .op_id = 5, .kind = OP_QUERY };

	exec_core_submit(arg, &op, 0);
}

static void finish_what_waits(void *arg)
{
	submit(arg, 5, OP_GET, 0);
	finish(arg, 0, true);
}

static void finish_twice(void *arg)
{
	uint32_t job;

	submit(arg, 5, OP_GET, 0);
	job = exec_core_take(arg, EXEC_GET);
	finish(arg, job, true);
	finish(arg, job, true);
}

static void finish_with_the_fact_of_another(void *arg)
{
	struct fact fact = { .op_id = 6 };

	submit(arg, 5, OP_GET, 0);
	exec_core_finish(arg, exec_core_take(arg, EXEC_GET), &fact, &(struct exec_report){ 0 }, 0);
}

static void lose_count_of_the_stuck(void *arg)
{
	((struct exec_core *)arg)->unretired_count++;
	exec_core_audit(arg);
}

static void mistakes_of_our_own_panic(void **state)
{
	static void (*const acts[])(void *) = { submit_an_old_id,  submit_a_cancel,
						submit_no_keys,    finish_what_waits,
						finish_twice,      finish_with_the_fact_of_another,
						lose_count_of_the_stuck };
	size_t i;

	for (i = 0; i < ARRAY_COUNT(acts); i++)
		assert_true(death_panics(acts[i], *state, NULL, 0));
}

#define CORE_TEST(test) cmocka_unit_test_setup_teardown(test, core_setup, core_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_of_nothing_are_refused),
		CORE_TEST(A5_1_a_full_class_refuses_without_effect_and_others_go_on),
		CORE_TEST(a_removal_waits_with_the_queries),
		CORE_TEST(A5_1_the_outstanding_limit_counts_undelivered_facts),
		CORE_TEST(jobs_start_in_order_of_submission_and_facts_come_in_order_of_completion),
		CORE_TEST(a_fact_is_delivered_once_and_waits_when_there_is_no_room),
		CORE_TEST(A5_3_a_cancelled_op_is_in_the_next_poll_and_inert),
		CORE_TEST(A5_3_a_cancel_is_not_retirement_of_what_runs),
		CORE_TEST(A1_14_a_cancel_takes_no_place_and_has_no_fact),
		CORE_TEST(A5_6_unretired_bytes_refuse_every_op_and_keep_their_place),
		CORE_TEST(A5_6_each_unretired_op_needs_its_own_notice),
		CORE_TEST(A5_2_pressure_is_queued_jobs_their_payload_and_the_oldest_age),
		CORE_TEST(A5_2_rows_of_other_owners_are_no_payload),
		CORE_TEST(mistakes_of_our_own_panic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
