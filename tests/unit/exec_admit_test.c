/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor's core takes and what it refuses: health, bytes, locks, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "exec/core.h"
#include "named_block.h"

#define QUEUE_MAX 4u
#define OUTSTANDING_MAX 8u
#define LOCK_MAX 4u
#define BLOCK_BYTES 4096u
#define COOLDOWN_NS 10u

static const struct exec_limits core_limits = { .outstanding_max = OUTSTANDING_MAX,
						.queue_max = QUEUE_MAX,
						.lock_max = LOCK_MAX,
						.bytes_max = { [EXEC_PUT] = 3 * BLOCK_BYTES },
						.cooldown_min_ns = COOLDOWN_NS,
						.cooldown_max_ns = 4 * COOLDOWN_NS };

static struct kvs_key  keys[8];
static struct kvs_span spans[8];

static int core_setup(void **state)
{
	static struct exec_core core;
	uint32_t                i;

	for (i = 0; i < ARRAY_COUNT(keys); i++) {
		keys[i] = key_of(i);
		spans[i] = (struct kvs_span){ NULL, BLOCK_BYTES, BLOCK_BYTES };
	}
	assert_int_equal(exec_core_open(&core, &core_limits, NULL), 0);
	*state = &core;
	return 0;
}

static int core_teardown(void **state)
{
	exec_core_audit(*state);
	exec_core_close(*state);
	return 0;
}

static struct op op_of(uint64_t op_id, enum op_kind kind, uint32_t key_count)
{
	struct op op = { .op_id = op_id, .kind = kind, .key_count = key_count, .keys = keys };

	if (kind == OP_GET || kind == OP_PUT)
		op.spans = spans;
	op_own_all(&op);
	return op;
}

static int submit(struct exec_core *core, uint64_t op_id, enum op_kind kind, uint64_t now_ns)
{
	const struct op op = op_of(op_id, kind, 1);
	const int       rc = exec_core_submit(core, &op, now_ns);

	exec_core_audit(core);
	return rc;
}

static uint32_t take(struct exec_core *core, enum op_kind kind)
{
	const uint32_t job = exec_core_take(core, exec_class_of(kind));

	exec_core_audit(core);
	assert_int_not_equal(job, SLOT_NONE);
	return job;
}

/* Every row ok, or none. */
static void finish(struct exec_core *core, uint32_t job, bool ok, enum exec_evidence evidence,
		   uint64_t now_ns)
{
	const struct op *const   op = &core->jobs[job].op;
	const struct exec_report report = { .evidence = evidence };
	struct fact              fact;

	fact_init(&fact, op);
	fact.retired = true;
	if (ok)
		bits_fill(fact.ok.words, op->key_count);
	exec_core_finish(core, job, &fact, &report, now_ns);
	exec_core_audit(core);
}

/* Submit and run an op; its evidence comes at now_ns. */
static void run(struct exec_core *core, uint64_t op_id, enum exec_evidence evidence, uint64_t now_ns)
{
	assert_int_equal(submit(core, op_id, OP_GET, now_ns), 0);
	finish(core, take(core, OP_GET), evidence == EXEC_EVIDENCE_UP, evidence, now_ns);
}

static uint32_t drain(struct exec_core *core, struct fact *ret_facts)
{
	struct pressure pressure;
	const uint32_t count = exec_core_poll(core, 0, ret_facts, OUTSTANDING_MAX, &pressure);

	exec_core_audit(core);
	return count;
}

/* --- health ----------------------------------------------------------------------------------- */

static void A5_4_a_cooldown_rejects_work_and_one_probe_asks(void **state)
{
	struct exec_core *const core = *state;
	uint32_t                probe;

	run(core, 1, EXEC_EVIDENCE_OUTAGE, 100);
	assert_int_equal(submit(core, 2, OP_QUERY, 100), KVS_E_HEALTH);
	assert_int_equal(submit(core, 2, OP_QUERY, 100 + COOLDOWN_NS - 1), KVS_E_HEALTH);
	assert_int_equal(core->counters[EXEC_REFUSED_HEALTH], 2);
	/* Not even its id is used up, and a refusal is no fact. */
	assert_int_equal(submit(core, 2, OP_QUERY, 100 + COOLDOWN_NS), 0);
	assert_int_equal(submit(core, 3, OP_GET, 1000), KVS_E_HEALTH);
	probe = take(core, OP_QUERY);
	assert_int_equal(submit(core, 3, OP_GET, 1000), KVS_E_HEALTH);
	finish(core, probe, true, EXEC_EVIDENCE_UP, 1000);
	assert_int_equal(submit(core, 3, OP_GET, 1000), 0);
	assert_int_equal(submit(core, 4, OP_GET, 1000), 0);
	assert_int_equal(core->counters[EXEC_PROBES], 1);
}

/* Its epoch is that of its start, not of its end and not of its submission. */
static void A5_4_a_success_begun_before_an_outage_never_clears_it(void **state)
{
	struct exec_core *const core = *state;
	uint32_t                old, late, failing;

	assert_int_equal(submit(core, 1, OP_GET, 0), 0);
	assert_int_equal(submit(core, 2, OP_GET, 0), 0);
	assert_int_equal(submit(core, 3, OP_GET, 0), 0);
	old = take(core, OP_GET);
	failing = take(core, OP_GET);
	finish(core, failing, false, EXEC_EVIDENCE_OUTAGE, 0);
	assert_int_equal(submit(core, 4, OP_PUT, COOLDOWN_NS), 0);
	finish(core, old, true, EXEC_EVIDENCE_UP, COOLDOWN_NS);
	assert_int_equal(submit(core, 5, OP_GET, COOLDOWN_NS), KVS_E_HEALTH);
	/* This one was submitted before the outage, and begun after it. */
	late = take(core, OP_GET);
	finish(core, late, true, EXEC_EVIDENCE_UP, COOLDOWN_NS);
	assert_int_equal(submit(core, 5, OP_GET, COOLDOWN_NS), 0);
}

static void A5_4_what_failed_in_an_old_outage_begins_no_new_one(void **state)
{
	struct exec_core *const core = *state;
	uint32_t                first, second;

	assert_int_equal(submit(core, 1, OP_GET, 0), 0);
	assert_int_equal(submit(core, 2, OP_GET, 0), 0);
	first = take(core, OP_GET);
	second = take(core, OP_GET);
	finish(core, first, false, EXEC_EVIDENCE_OUTAGE, 0);
	run(core, 3, EXEC_EVIDENCE_UP, COOLDOWN_NS);
	finish(core, second, false, EXEC_EVIDENCE_OUTAGE, COOLDOWN_NS);
	assert_int_equal(submit(core, 4, OP_GET, COOLDOWN_NS), 0);
	assert_int_equal(core->health.outages, 1);
}

static void A5_4_a_cancelled_probe_lets_another_ask_at_once(void **state)
{
	struct exec_core *const core = *state;

	run(core, 1, EXEC_EVIDENCE_OUTAGE, 0);
	assert_int_equal(submit(core, 2, OP_GET, COOLDOWN_NS), 0);
	exec_core_cancel(core, 2, COOLDOWN_NS);
	exec_core_audit(core);
	assert_int_equal(submit(core, 3, OP_GET, COOLDOWN_NS), 0);
	assert_int_equal(submit(core, 4, OP_GET, COOLDOWN_NS), KVS_E_HEALTH);
	assert_int_equal(core->counters[EXEC_PROBES], 2);
}

/* Rows of other owners, or keys that somebody else writes: the store was not asked. */
static void A5_4_a_probe_without_evidence_lets_another_ask_at_once(void **state)
{
	struct exec_core *const core = *state;

	run(core, 1, EXEC_EVIDENCE_OUTAGE, 0);
	run(core, 2, EXEC_EVIDENCE_NONE, COOLDOWN_NS);
	assert_int_equal(core->health.state, HEALTH_DOWN);
	assert_int_equal(core->health.outages, 1);
	assert_int_equal(submit(core, 3, OP_GET, COOLDOWN_NS), 0);
}

/* The probe hangs, an older job fails, and the next cooldown ends: still one probe at a time. */
static void A5_4_a_probe_that_hangs_is_the_only_one(void **state)
{
	struct exec_core *const core = *state;
	uint32_t                probe, other;

	assert_int_equal(submit(core, 1, OP_GET, 0), 0);
	assert_int_equal(submit(core, 2, OP_GET, 0), 0);
	finish(core, take(core, OP_GET), false, EXEC_EVIDENCE_OUTAGE, 0);
	assert_int_equal(submit(core, 3, OP_PUT, COOLDOWN_NS), 0);
	probe = take(core, OP_PUT);
	other = take(core, OP_GET);
	finish(core, other, false, EXEC_EVIDENCE_OUTAGE, COOLDOWN_NS);
	assert_int_equal(core->health.outages, 2);
	assert_int_equal(submit(core, 4, OP_GET, 1000), KVS_E_HEALTH);
	finish(core, probe, true, EXEC_EVIDENCE_UP, 1000);
	assert_int_equal(submit(core, 4, OP_GET, 1000), 0);
	assert_int_equal(submit(core, 5, OP_GET, 1000), KVS_E_HEALTH);
}

static void A5_4_an_answer_is_no_outage_whatever_it_says(void **state)
{
	struct exec_core *const core = *state;

	assert_int_equal(submit(core, 1, OP_GET, 0), 0);
	finish(core, take(core, OP_GET), false, EXEC_EVIDENCE_UP, 0);
	assert_int_equal(submit(core, 2, OP_GET, 0), 0);
	assert_int_equal(core->health.outages, 0);
}

/* Neither time nor an empty queue ends a quarantine, and no probe goes while one stands. */
static void A5_9_one_unproven_result_is_enough_and_nothing_but_its_notice_mends_it(void **state)
{
	struct exec_core *const core = *state;
	struct fact             fact = { .op_id = 1, .key_count = 1 };
	struct fact             facts[OUTSTANDING_MAX];

	assert_int_equal(submit(core, 1, OP_GET, 0), 0);
	exec_core_finish(core, take(core, OP_GET), &fact, &(struct exec_report){ 0 }, 0);
	assert_int_equal(drain(core, facts), 1);
	assert_int_equal(submit(core, 2, OP_QUERY, UINT64_MAX), KVS_E_QUARANTINE);
	assert_int_equal(submit(core, 2, OP_PUT, UINT64_MAX), KVS_E_QUARANTINE);
	assert_int_equal(core->counters[EXEC_PROBES], 0);
	assert_int_equal(exec_core_notice(core, &(struct retirement_notice){ 1 }), 0);
	assert_int_equal(submit(core, 2, OP_QUERY, 0), 0);
	assert_int_equal(core->counters[EXEC_NOTICES], 1);
}

/* Health is asked last: what is refused for room leaves the question to the next. */
static void a_full_queue_does_not_use_up_the_probe(void **state)
{
	struct exec_core *const core = *state;
	uint64_t                id;

	for (id = 1; id <= QUEUE_MAX; id++)
		assert_int_equal(submit(core, id, OP_GET, 0), 0);
	assert_int_equal(submit(core, id, OP_PUT, 0), 0);
	finish(core, take(core, OP_PUT), false, EXEC_EVIDENCE_OUTAGE, 0);
	assert_int_equal(submit(core, ++id, OP_GET, COOLDOWN_NS), KVS_E_FULL);
	assert_int_equal(submit(core, id, OP_PUT, COOLDOWN_NS), 0);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void A7_10_each_refusal_has_its_reason_and_becomes_one_retired_fact(void **state)
{
	static const struct {
		int            code;
		enum op_reason reason;
	} cases[] = { { KVS_E_FULL, OP_REASON_QUEUE },
		      { KVS_E_HEALTH, OP_REASON_HEALTH },
		      { KVS_E_QUARANTINE, OP_REASON_QUARANTINE },
		      { KVS_E_CLOSED, OP_REASON_CLOSED } };
	const struct op op = op_of(1, OP_GET, 8);
	struct fact     fact;
	size_t          i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		fact_refused(&fact, &op, exec_refusal_reason(cases[i].code));
		assert_int_equal(fact.op_id, 1);
		assert_int_equal(fact.reason, cases[i].reason);
		assert_true(fact.retired);
		assert_int_equal(bits_count(fact.ok.words, 8), 0);
		assert_int_equal(bits_count(fact.object_fault.words, 8), 0);
		assert_int_equal(fact_check(&fact, &op, NULL), 0);
	}
}

/* What was refused or cancelled says nothing of any object, and can be asked again. */
static void A5_8_a_refusal_or_a_cancel_carries_no_object_evidence(void **state)
{
	struct exec_core *const core = *state;
	struct fact             facts[OUTSTANDING_MAX];

	run(core, 1, EXEC_EVIDENCE_OUTAGE, 0);
	assert_int_equal(drain(core, facts), 1);
	assert_int_equal(submit(core, 2, OP_GET, 0), KVS_E_HEALTH);
	assert_int_equal(drain(core, facts), 0);
	assert_int_equal(submit(core, 3, OP_GET, COOLDOWN_NS), 0);
	exec_core_cancel(core, 3, COOLDOWN_NS);
	assert_int_equal(drain(core, facts), 1);
	assert_int_equal(bits_count(facts[0].object_fault.words, 1), 0);
	assert_int_equal(bits_count(facts[0].read_here.words, 1), 0);
	run(core, 4, EXEC_EVIDENCE_UP, COOLDOWN_NS);
}

static void A5_7_a_stop_answers_what_waits_and_refuses_the_rest(void **state)
{
	struct exec_core *const core = *state;
	struct fact             facts[OUTSTANDING_MAX];
	uint32_t                running, i;

	assert_int_equal(submit(core, 1, OP_GET, 0), 0);
	assert_int_equal(submit(core, 2, OP_PUT, 0), 0);
	assert_int_equal(submit(core, 3, OP_QUERY, 0), 0);
	running = take(core, OP_PUT);
	exec_core_stop(core, 0);
	exec_core_audit(core);
	assert_int_equal(submit(core, 4, OP_QUERY, 0), KVS_E_CLOSED);
	assert_int_equal(core->counters[EXEC_REFUSED_CLOSED], 1);
	assert_int_equal(drain(core, facts), 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(facts[i].reason, OP_REASON_CLOSED);
		assert_true(facts[i].retired);
	}
	finish(core, running, true, EXEC_EVIDENCE_UP, 0);
	assert_int_equal(drain(core, facts), 1);
	assert_int_equal(facts[0].op_id, 2);
}

static void A5_10_a_fact_says_what_happened_and_nothing_of_health(void **state)
{
	struct exec_core *const core = *state;
	struct fact             facts[OUTSTANDING_MAX];

	run(core, 1, EXEC_EVIDENCE_OUTAGE, 0);
	assert_int_equal(drain(core, facts), 1);
	assert_int_equal(facts[0].reason, OP_REASON_NONE);
	assert_true(facts[0].retired);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static void put(struct exec_core *core, uint64_t op_id, uint32_t key_count)
{
	const struct op op = op_of(op_id, OP_PUT, key_count);

	assert_int_equal(exec_core_submit(core, &op, 0), 0);
}

static void payload_that_runs_at_once_is_bounded(void **state)
{
	struct exec_core *const core = *state;
	uint32_t                first, second;

	put(core, 1, 2);
	put(core, 2, 1);
	put(core, 3, 1);
	first = take(core, OP_PUT);
	second = take(core, OP_PUT);
	assert_int_equal(exec_core_take(core, EXEC_PUT), SLOT_NONE);
	/* Other classes have bounds of their own, or none. */
	assert_int_equal(submit(core, 4, OP_GET, 0), 0);
	take(core, OP_GET);
	finish(core, first, true, EXEC_EVIDENCE_UP, 0);
	assert_int_equal(core->jobs[take(core, OP_PUT)].op.op_id, 3);
	finish(core, second, true, EXEC_EVIDENCE_UP, 0);
}

static void a_job_larger_than_the_bound_runs_alone(void **state)
{
	struct exec_core *const core = *state;
	uint32_t                small, large;

	put(core, 1, 1);
	put(core, 2, 8);
	put(core, 3, 1);
	small = take(core, OP_PUT);
	assert_int_equal(exec_core_take(core, EXEC_PUT), SLOT_NONE);
	finish(core, small, true, EXEC_EVIDENCE_UP, 0);
	large = take(core, OP_PUT);
	assert_int_equal(core->jobs[large].op.op_id, 2);
	assert_int_equal(exec_core_take(core, EXEC_PUT), SLOT_NONE);
	finish(core, large, true, EXEC_EVIDENCE_UP, 0);
	take(core, OP_PUT);
}

/* --- locks ------------------------------------------------------------------------------------ */

static int ask(struct exec_core *core, uint64_t op_id, uint32_t key_count)
{
	struct op op = op_of(op_id, OP_QUERY, key_count);
	int       rc;

	op.flags = OP_LOCK;
	rc = exec_core_submit(core, &op, 0);
	exec_core_audit(core);
	return rc;
}

static void B2_3_locks_are_granted_with_the_fact(void **state)
{
	struct exec_core *const core = *state;

	assert_int_equal(ask(core, 1, 2), 0);
	assert_int_equal(core->locks.held, 0);
	finish(core, take(core, OP_QUERY), true, EXEC_EVIDENCE_UP, 0);
	assert_int_equal(core->locks.held, 2);
	exec_core_unlock(core, keys, 2);
	exec_core_audit(core);
	assert_int_equal(core->locks.held, 0);
	assert_int_equal(core->locks.slots.busy_count, 0);
}

static void B2_3_a_query_that_ends_otherwise_leaves_no_lock(void **state)
{
	struct exec_core *const core = *state;

	assert_int_equal(ask(core, 1, 2), 0);
	finish(core, take(core, OP_QUERY), false, EXEC_EVIDENCE_UP, 0);
	assert_int_equal(ask(core, 2, 2), 0);
	exec_core_cancel(core, 2, 0);
	assert_int_equal(ask(core, 3, 2), 0);
	assert_int_equal(core->locks.asked, 2);
	exec_core_stop(core, 0);
	assert_int_equal(core->locks.asked, 0);
	assert_int_equal(core->locks.slots.busy_count, 0);
}

static void B2_3_a_full_lock_table_refuses_without_effect(void **state)
{
	struct exec_core *const core = *state;

	assert_int_equal(ask(core, 1, LOCK_MAX + 1), KVS_E_FULL);
	assert_int_equal(core->counters[EXEC_REFUSED_LOCKS], 1);
	assert_int_equal(core->locks.slots.busy_count, 0);
	assert_int_equal(ask(core, 1, LOCK_MAX), 0);
	/* Nor does a refusal for another reason. */
	run(core, 2, EXEC_EVIDENCE_OUTAGE, 0);
	finish(core, take(core, OP_QUERY), false, EXEC_EVIDENCE_NONE, 0);
	assert_int_equal(ask(core, 3, 1), KVS_E_HEALTH);
	assert_int_equal(core->locks.slots.busy_count, 0);
}

/* --- limits and names ------------------------------------------------------------------------- */

static void limits_out_of_range_are_refused(void **state)
{
	const struct {
		uint32_t    lock_max;
		uint64_t    cooldown_min_ns, cooldown_max_ns;
		const char *field;
	} cases[] = { { EXEC_LOCKS_MAX + 1, 1, 1, "locks" },
		      { 1, 2, 1, "cooldown" },
		      { 1, 0, 1, "cooldown" } };
	struct exec_limits limits = core_limits;
	struct exec_core   core;
	struct kvs_error   err;
	size_t             i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		limits.lock_max = cases[i].lock_max;
		limits.cooldown_min_ns = cases[i].cooldown_min_ns;
		limits.cooldown_max_ns = cases[i].cooldown_max_ns;
		assert_int_equal(exec_core_open(&core, &limits, &err), KVS_E_INVALID);
		assert_non_null(strstr(err.message, cases[i].field));
	}
	limits = (struct exec_limits){ .outstanding_max = 1, .queue_max = 1 };
	assert_int_equal(exec_core_open(&core, &limits, &err), 0);
	assert_int_equal(core.health.cooldown_min_ns, EXEC_COOLDOWN_MIN_NS);
	assert_int_equal(core.health.cooldown_max_ns, EXEC_COOLDOWN_MAX_NS);
	exec_core_close(&core);
}

static void counters_have_names_of_their_own(void **state)
{
	int i, j;

	(void)state;
	assert_string_equal(exec_counter_name(EXEC_REFUSED_HEALTH), "refused_health");
	for (i = 0; i < EXEC_COUNTER_COUNT; i++) {
		for (j = 0; j < i; j++) {
			assert_string_not_equal(exec_counter_name((enum exec_counter)i),
						exec_counter_name((enum exec_counter)j));
		}
	}
}

#define CORE_TEST(test) cmocka_unit_test_setup_teardown(test, core_setup, core_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORE_TEST(A5_4_a_cooldown_rejects_work_and_one_probe_asks),
		CORE_TEST(A5_4_a_success_begun_before_an_outage_never_clears_it),
		CORE_TEST(A5_4_what_failed_in_an_old_outage_begins_no_new_one),
		CORE_TEST(A5_4_a_cancelled_probe_lets_another_ask_at_once),
		CORE_TEST(A5_4_a_probe_without_evidence_lets_another_ask_at_once),
		CORE_TEST(A5_4_a_probe_that_hangs_is_the_only_one),
		CORE_TEST(A5_4_an_answer_is_no_outage_whatever_it_says),
		CORE_TEST(A5_9_one_unproven_result_is_enough_and_nothing_but_its_notice_mends_it),
		CORE_TEST(a_full_queue_does_not_use_up_the_probe),
		cmocka_unit_test(
			A7_10_each_refusal_has_its_reason_and_becomes_one_retired_fact),
		CORE_TEST(A5_8_a_refusal_or_a_cancel_carries_no_object_evidence),
		CORE_TEST(A5_7_a_stop_answers_what_waits_and_refuses_the_rest),
		CORE_TEST(A5_10_a_fact_says_what_happened_and_nothing_of_health),
		CORE_TEST(payload_that_runs_at_once_is_bounded),
		CORE_TEST(a_job_larger_than_the_bound_runs_alone),
		CORE_TEST(B2_3_locks_are_granted_with_the_fact),
		CORE_TEST(B2_3_a_query_that_ends_otherwise_leaves_no_lock),
		CORE_TEST(B2_3_a_full_lock_table_refuses_without_effect),
		cmocka_unit_test(limits_out_of_range_are_refused),
		cmocka_unit_test(counters_have_names_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
