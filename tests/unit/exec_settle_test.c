/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that came unretired and retire later: what the store proves, who is told of it and when, and
 * what ends the quarantine.  The core one call at a time, then the executor with its threads.
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
#include "gate.h"
#include "named_block.h"
#include "tray.h"

#define OPS 5u

/* --- the core --------------------------------------------------------------------------------- */

static int core_setup(void **state)
{
	static struct exec_core  core;
	const struct exec_limits limits = { .outstanding_max = OPS, .queue_max = OPS };

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

static int submit(struct exec_core *core, uint64_t op_id)
{
	static struct kvs_key  key;
	static struct kvs_span span = { NULL, 4096, 4096 };
	struct op              op = { .op_id = op_id, .kind = OP_GET, .key_count = 1, .keys = &key,
				      .spans = &span };

	op_own_all(&op);
	return exec_core_submit(core, &op, 0);
}

/* Submitted, taken and ended in doubt; the fact waits. */
static void doubt(struct exec_core *core, uint64_t op_id)
{
	struct fact fact;
	uint32_t    job;

	assert_int_equal(submit(core, op_id), 0);
	job = exec_core_take(core, EXEC_GET);
	fact_init(&fact, &core->jobs[job].op);
	exec_core_finish(core, job, &fact, &(struct exec_report){ 0 }, 0);
	exec_core_audit(core);
}

/* Two at once, for nothing is submitted while one is in doubt. */
static void doubt_two(struct exec_core *core)
{
	struct fact fact;
	uint32_t    jobs[2], i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(submit(core, i + 1), 0);
		jobs[i] = exec_core_take(core, EXEC_GET);
	}
	for (i = 0; i < 2; i++) {
		fact_init(&fact, &core->jobs[jobs[i]].op);
		exec_core_finish(core, jobs[i], &fact, &(struct exec_report){ 0 }, 0);
	}
	exec_core_audit(core);
}

static uint32_t poll_facts(struct exec_core *core)
{
	struct pressure pressure;
	struct fact     facts[OPS];
	const uint32_t  count = exec_core_poll(core, 0, facts, OPS, &pressure);

	exec_core_audit(core);
	return count;
}

/* Sum of the ids told; no two of these sums are the same. */
static uint64_t poll_notices(struct exec_core *core)
{
	struct retirement_notice notices[OPS];
	const uint32_t           count = exec_core_poll_notices(core, notices, OPS);
	uint64_t                 sum = 0;
	uint32_t                 i;

	exec_core_audit(core);
	for (i = 0; i < count; i++)
		sum += notices[i].op_id;
	return sum;
}

static int notice(struct exec_core *core, uint64_t op_id)
{
	const int rc = exec_core_notice(core, &(struct retirement_notice){ op_id });

	exec_core_audit(core);
	return rc;
}

static void X2_a_proof_is_told_once_and_ends_nothing_by_itself(void **state)
{
	struct exec_core *const core = *state;

	doubt(core, 1);
	assert_int_equal(poll_facts(core), 1);
	assert_int_equal(poll_notices(core), 0);
	assert_false(exec_core_ready(core));

	exec_core_settle(core, core->last_doubt);
	assert_true(exec_core_ready(core));
	assert_int_equal(poll_notices(core), 1);
	assert_int_equal(poll_notices(core), 0);
	assert_false(exec_core_ready(core));
	exec_core_settle(core, core->last_doubt);
	assert_int_equal(poll_notices(core), 0);
	assert_int_equal(core->counters[EXEC_SETTLED], 1);
	assert_int_equal(submit(core, 2), KVS_E_QUARANTINE);

	/* What was agreed on does. */
	assert_int_equal(notice(core, 1), 0);
	assert_int_equal(notice(core, 1), KVS_E_STALE);
	assert_int_equal(submit(core, 2), 0);
}

static void X2_a_notice_waits_for_its_fact(void **state)
{
	struct exec_core *const core = *state;

	doubt(core, 1);
	exec_core_settle(core, core->last_doubt);
	exec_core_audit(core);
	assert_int_equal(poll_notices(core), 0);
	assert_int_equal(notice(core, 1), KVS_E_STALE);
	assert_int_equal(poll_facts(core), 1);
	assert_int_equal(poll_notices(core), 1);
	assert_int_equal(notice(core, 1), 0);
	assert_int_equal(core->slots.busy_count, 0);
}

static void X2_what_came_into_doubt_after_the_question_is_not_proved(void **state)
{
	struct exec_core *const core = *state;

	doubt_two(core);
	assert_int_equal(poll_facts(core), 2);
	exec_core_settle(core, core->last_doubt - 2);
	assert_int_equal(poll_notices(core), 0);
	exec_core_settle(core, core->last_doubt - 1);
	assert_int_equal(poll_notices(core), 1);
	assert_int_equal(core->unsettled_count, 1);
	exec_core_settle(core, core->last_doubt);
	assert_int_equal(poll_notices(core), 2);
	/* Each ends by its own. */
	assert_int_equal(notice(core, 2), 0);
	assert_int_equal(submit(core, 3), KVS_E_QUARANTINE);
	assert_int_equal(notice(core, 1), 0);
	assert_int_equal(submit(core, 3), 0);
}

/* A malformed answer: the store holds that it retired, and so it knows of nothing to prove. */
static void X2_no_proof_ends_a_doubt_that_the_store_never_had(void **state)
{
	struct exec_core *const core = *state;
	struct fact             fact;

	assert_int_equal(submit(core, 1), 0);
	fact_init(&fact, &core->jobs[exec_core_take(core, EXEC_GET)].op);
	exec_core_finish(core, 0, &fact, &(struct exec_report){ .disbelieved = true }, 0);
	assert_int_equal(poll_facts(core), 1);
	exec_core_settle(core, core->last_doubt);
	assert_int_equal(poll_notices(core), 0);
	assert_int_equal(core->disbelieved_count, 1);
	/* Its owner may know better. */
	assert_int_equal(notice(core, 1), 0);
	doubt(core, 2);
	exec_core_settle(core, core->last_doubt);
	assert_int_equal(core->unsettled_count, 0);
}

static void what_the_owner_knows_already_is_not_told(void **state)
{
	struct exec_core *const core = *state;

	doubt_two(core);
	assert_int_equal(poll_facts(core), 2);
	assert_int_equal(notice(core, 2), 0);
	exec_core_settle(core, core->last_doubt);
	assert_int_equal(notice(core, 1), 0);
	assert_int_equal(poll_notices(core), 0);
	assert_int_equal(core->counters[EXEC_SETTLED], 1);
	assert_int_equal(core->unsettled_count, 0);
}

static void a_slot_that_was_in_doubt_begins_anew(void **state)
{
	struct exec_core *const core = *state;

	doubt(core, 1);
	assert_int_equal(poll_facts(core), 1);
	exec_core_settle(core, core->last_doubt);
	assert_int_equal(notice(core, 1), 0);
	doubt(core, 2);
	assert_int_equal(poll_facts(core), 1);
	assert_int_equal(poll_notices(core), 0);
	assert_int_equal(core->unsettled_count, 1);
	exec_core_settle(core, core->last_doubt - 1);
	assert_int_equal(poll_notices(core), 0);
	exec_core_settle(core, core->last_doubt);
	assert_int_equal(poll_notices(core), 2);
}

static void settle_what_never_was(void *arg)
{
	exec_core_settle(arg, 1);
}

static void a_proof_of_the_future_is_a_mistake(void **state)
{
	char said[200];

	assert_true(death_panics(settle_what_never_was, *state, said, sizeof(said)));
	assert_non_null(strstr(said, "last_doubt"));
}

/* --- the executor ----------------------------------------------------------------------------- */

/* Its gets and puts pass, and come unretired. */
static struct gate *gate_in_doubt(const struct exec_options *options)
{
	struct gate *const gate = gate_open_on(&gate_settling_ops, options);

	gate->unretired = true;
	gate_let_through(gate);
	return gate;
}

/* The next notice; sleeps until it comes. */
static uint64_t collect_notice(struct gate *gate)
{
	struct retirement_notice told[2];
	uint32_t                 count;

	while ((count = exec_poll_notices(gate->exec, told, 2)) == 0)
		exec_wait(gate->exec, GATE_FOREVER_NS);
	assert_int_equal(count, 1);
	return told[0].op_id;
}

static void end_doubt(struct gate *gate, uint64_t op_id)
{
	const struct retirement_notice over = { op_id };

	assert_int_equal(exec_notice(gate->exec, &over), 0);
}

static void X2_a_store_that_settles_ends_a_quarantine_without_a_restart(void **state)
{
	struct gate *const       gate = gate_in_doubt(&gate_options);
	struct retirement_notice told;
	struct fact              fact;

	(void)state;
	assert_true(exec_settles(gate->exec));
	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	gate_collect(gate, &fact, 1);
	assert_false(fact.retired);
	/* It is asked again and again, and nothing comes of it. */
	gate_wait_asked(gate, 3);
	assert_int_equal(exec_poll_notices(gate->exec, &told, 1), 0);
	assert_int_equal(gate_submit(gate, 2, OP_GET), KVS_E_QUARANTINE);

	gate_settle(gate, true);
	assert_int_equal(collect_notice(gate), 1);
	assert_int_equal(gate_submit(gate, 2, OP_GET), KVS_E_QUARANTINE);
	end_doubt(gate, 1);
	gate->unretired = false;
	assert_int_equal(gate_submit(gate, 2, OP_GET), 0);
	gate_collect(gate, &fact, 1);
	assert_true(fact.retired);
	gate_close(gate);
}

static void X2_a_job_that_ends_during_the_question_is_asked_about_again(void **state)
{
	struct gate *const       gate = gate_in_doubt(&gate_options);
	struct retirement_notice told;
	struct fact              facts[2];

	(void)state;
	gate->open = false;
	gate_hold_questions(gate, true);
	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 2, OP_PUT), 0);
	gate_wait_inside(gate, 2);
	gate_let_one_through(gate);
	gate_collect(gate, facts, 1);
	gate_wait_asked(gate, 1);
	gate_let_through(gate);
	gate_collect(gate, facts + 1, 1);
	gate_settle(gate, true);
	gate_hold_questions(gate, false);
	/* The second question proves the rest; the first proved what had ended before it. */
	while (exec_poll_notices(gate->exec, &told, 1) == 0)
		exec_wait(gate->exec, GATE_FOREVER_NS);
	assert_int_equal(told.op_id, facts[0].op_id);
	assert_int_equal(collect_notice(gate), facts[1].op_id);
	assert_true(gate->question_count >= 2);
	end_doubt(gate, 1);
	end_doubt(gate, 2);
	gate_close(gate);
}

static void count_calls(void *arg)
{
	(*(_Atomic uint32_t *)arg)++;
}

static void X2_the_descriptor_and_the_hook_tell_of_notices_too(void **state)
{
	_Atomic uint32_t    calls = 0;
	struct exec_options options = gate_options;
	struct gate        *gate;
	struct fact         fact;
	uint64_t            tag;

	(void)state;
	options.notify = count_calls;
	options.notify_arg = &calls;
	gate = gate_in_doubt(&options);
	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	gate_collect(gate, &fact, 1);
	while (calls == 0)
		os_relax();
	assert_true(exec_arm(gate->exec));
	gate_settle(gate, true);
	assert_int_equal(os_epoll_wait(gate->epoll_fd, &tag, 1, GATE_FOREVER_NS), 1);
	assert_false(exec_arm(gate->exec));
	while (calls == 1)
		os_relax();
	assert_int_equal(collect_notice(gate), 1);
	assert_true(exec_arm(gate->exec));
	end_doubt(gate, 1);
	gate_close(gate);
}

/* The gate asserts that it is not asked while somebody is inside. */
static void a_store_of_one_thread_is_asked_between_its_calls(void **state)
{
	struct gate *const       gate = gate_make();
	struct retirement_notice told[2];
	struct exec_stats        stats = { .outages = 0 };
	struct fact              facts[2];

	(void)state;
	gate->store.ops = &gate_settling_ops;
	gate->one_thread = true;
	gate->unretired = true;
	assert_int_equal(exec_open(&gate->store, &gate_options, &gate->exec, NULL), 0);
	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 2, OP_PUT), 0);
	gate_wait_inside(gate, 1);
	gate_let_one_through(gate);
	gate_collect(gate, facts, 1);
	gate_wait_inside(gate, 1);
	gate_settle(gate, true);
	gate_let_through(gate);
	gate_collect(gate, facts + 1, 1);
	while (stats.counters[EXEC_SETTLED] < 2)
		exec_stats(gate->exec, &stats);
	assert_int_equal(exec_poll_notices(gate->exec, told, 2), 2);
	end_doubt(gate, 1);
	end_doubt(gate, 2);
	gate_close(gate);
}

static void X2_a_lane_settles_as_well(void **state)
{
	static struct tray        tray;
	const struct exec_options options = { .limits = { .outstanding_max = OPS, .queue_max = OPS },
					      .workers = { 1, 1, 1 } };
	static uint8_t            bytes[2][TRAY_BLOCK_BYTES];
	const struct kvs_key      keys[2] = { key_of(0), key_of(1) };
	const struct kvs_span     spans[2] = { { bytes[0], TRAY_BLOCK_BYTES, TRAY_BLOCK_BYTES },
					       { bytes[1], TRAY_BLOCK_BYTES, TRAY_BLOCK_BYTES } };
	struct op                 op = { .op_id = 1, .kind = OP_PUT, .key_count = 2, .keys = keys,
					 .spans = spans };
	struct retirement_notice  told;
	struct pressure           pressure;
	struct exec              *exec;
	struct fact               fact;

	(void)state;
	tray_init(&tray, 4);
	tray.doubtful = 1;
	tray_settle(&tray);
	assert_int_equal(exec_open(&tray.store, &options, &exec, NULL), 0);
	op_own_all(&op);
	assert_int_equal(exec_submit(exec, &op), 0);
	while (exec_poll(exec, &fact, 1, &pressure) == 0)
		exec_wait(exec, GATE_FOREVER_NS);
	assert_false(fact.retired);
	while (exec_poll_notices(exec, &told, 1) == 0)
		exec_wait(exec, GATE_FOREVER_NS);
	assert_int_equal(told.op_id, 1);
	assert_int_equal(exec_notice(exec, &told), 0);
	assert_int_equal(exec_close(exec, GATE_FOREVER_NS), 0);
	tray_fini(&tray);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void X2_a_close_needs_no_notice_of_what_is_proved_over(void **state)
{
	struct gate *const gate = gate_in_doubt(&gate_options);
	struct fact        fact;

	(void)state;
	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	gate_collect(gate, &fact, 1);
	gate_settle(gate, true);
	assert_int_equal(collect_notice(gate), 1);
	/* Told or not: this one is not even polled. */
	gate_close(gate);
}

static void X2_a_close_asks_a_last_time_and_again_when_it_is_called_again(void **state)
{
	struct gate *const gate = gate_in_doubt(&gate_options);
	struct exec_stats  stats;
	struct fact        fact;

	(void)state;
	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	gate_collect(gate, &fact, 1);
	/* Workers that have not left in time keep it from asking. */
	do
		assert_int_equal(exec_close(gate->exec, 1000000), KVS_E_QUARANTINE);
	while (gate->question_count == 0);
	assert_false(gate->closed);
	gate_settle(gate, true);
	gate->close_rc = KVS_E_QUARANTINE;
	/* Proved, and the store has I/O of its own: what is known can still be had. */
	assert_int_equal(exec_close(gate->exec, GATE_FOREVER_NS), KVS_E_QUARANTINE);
	assert_int_equal(collect_notice(gate), 1);
	end_doubt(gate, 1);
	exec_stats(gate->exec, &stats);
	assert_int_equal(stats.counters[EXEC_SETTLED], 1);
	gate->close_rc = 0;
	gate_close(gate);
}

/* The store has answered, and says so truly: it is the answer that nobody believes. */
static void X2_a_store_is_not_asked_about_what_it_was_not_believed(void **state)
{
	struct gate *const       gate = gate_open_on(&gate_settling_ops, &gate_options);
	struct retirement_notice told;
	struct fact              fact;

	(void)state;
	gate->babbles = true;
	gate_settle(gate, true);
	gate_let_through(gate);
	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	gate_collect(gate, &fact, 1);
	assert_false(fact.retired);
	assert_int_equal(exec_close(gate->exec, GATE_FOREVER_NS), KVS_E_QUARANTINE);
	assert_int_equal(gate->question_count, 0);
	assert_int_equal(exec_poll_notices(gate->exec, &told, 1), 0);
	end_doubt(gate, 1);
	gate_close(gate);
}

#define CORE_TEST(test) cmocka_unit_test_setup_teardown(test, core_setup, core_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(X2_a_proof_is_told_once_and_ends_nothing_by_itself),
		CORE_TEST(X2_a_notice_waits_for_its_fact),
		CORE_TEST(X2_what_came_into_doubt_after_the_question_is_not_proved),
		CORE_TEST(X2_no_proof_ends_a_doubt_that_the_store_never_had),
		CORE_TEST(what_the_owner_knows_already_is_not_told),
		CORE_TEST(a_slot_that_was_in_doubt_begins_anew),
		CORE_TEST(a_proof_of_the_future_is_a_mistake),
		cmocka_unit_test(X2_a_store_that_settles_ends_a_quarantine_without_a_restart),
		cmocka_unit_test(X2_a_job_that_ends_during_the_question_is_asked_about_again),
		cmocka_unit_test(X2_the_descriptor_and_the_hook_tell_of_notices_too),
		cmocka_unit_test(a_store_of_one_thread_is_asked_between_its_calls),
		cmocka_unit_test(X2_a_lane_settles_as_well),
		cmocka_unit_test(X2_a_close_needs_no_notice_of_what_is_proved_over),
		cmocka_unit_test(X2_a_close_asks_a_last_time_and_again_when_it_is_called_again),
		cmocka_unit_test(X2_a_store_is_not_asked_about_what_it_was_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
