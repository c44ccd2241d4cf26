/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor's shell: threads around the core.
 *
 * Nobody sleeps: the test waits on the gate's condition or on the executor's descriptor.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/prng.h"
#include "gate.h"
#include "named_block.h"

static int gate_setup(void **state)
{
	*state = gate_open(&gate_options);
	return 0;
}

static int gate_teardown(void **state)
{
	gate_close(*state);
	return 0;
}

/* Armed first, so that what comes is signalled. */
static bool is_readable(const struct gate *gate)
{
	uint64_t tag;

	return os_epoll_wait(gate->epoll_fd, &tag, 1, 0) == 1;
}

static void A5_3_a_queued_cancel_is_in_the_next_poll_while_every_worker_is_blocked(void **state)
{
	struct gate *const gate = *state;
	struct fact        facts[4];

	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 2, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 3, OP_PUT), 0);
	gate_wait_inside(gate, 3);
	assert_int_equal(gate_submit(gate, 4, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 5, OP_PUT), 0);
	assert_true(exec_arm(gate->exec));
	exec_cancel(gate->exec, 4);
	exec_cancel(gate->exec, 1); /* runs: inert */
	assert_true(is_readable(gate));
	assert_int_equal(gate_poll(gate, facts, 4), 1);
	assert_int_equal(facts[0].op_id, 4);
	assert_int_equal(facts[0].reason, OP_REASON_CANCELLED);

	gate_let_through(gate);
	gate_collect(gate, facts, 4);
	assert_int_equal(gate->call_count, 4);
	assert_int_equal(facts[0].reason + facts[1].reason + facts[2].reason + facts[3].reason, 0);
}

static void A5_1_a_query_does_not_wait_behind_bulk_io(void **state)
{
	struct gate *const gate = *state;
	struct fact        fact;

	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 2, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 3, OP_PUT), 0);
	gate_wait_inside(gate, 3);
	assert_int_equal(gate_submit(gate, 4, OP_QUERY), 0);
	gate_collect(gate, &fact, 1);
	assert_int_equal(fact.op_id, 4);
	assert_true(bits_test(fact.ok.words, 0));
}

static void the_descriptor_is_signalled_once_for_who_armed_it(void **state)
{
	struct gate *const gate = *state;
	struct fact        fact;

	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 2, OP_GET), 0);
	gate_wait_inside(gate, 2);
	assert_int_equal(gate_submit(gate, 3, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 4, OP_GET), 0);
	/* Nobody sleeps: a system call for nobody. */
	exec_cancel(gate->exec, 3);
	assert_false(is_readable(gate));
	/* A fact waits: no sleep. */
	assert_false(exec_arm(gate->exec));
	assert_int_equal(gate_poll(gate, &fact, 1), 1);

	assert_true(exec_arm(gate->exec));
	assert_false(is_readable(gate));
	exec_cancel(gate->exec, 4);
	assert_true(is_readable(gate));
	assert_int_equal(gate_poll(gate, &fact, 1), 1);
	assert_true(exec_arm(gate->exec));
	assert_false(is_readable(gate));
	/* A hint without a fact is harmless. */
	exec_cancel(gate->exec, 99);
	assert_int_equal(gate_poll(gate, &fact, 1), 0);
	assert_false(is_readable(gate));
}

static void a_wait_ends_with_a_fact_or_with_its_time(void **state)
{
	struct gate *const gate = *state;
	struct fact        fact;

	assert_false(exec_wait(gate->exec, 0));
	assert_false(exec_wait(gate->exec, 1000000));
	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	gate_wait_inside(gate, 1);
	assert_false(exec_wait(gate->exec, 0));
	gate_let_through(gate);
	/* As soon as, so it needs no other end. */
	while (!exec_wait(gate->exec, GATE_FOREVER_NS))
		;
	assert_true(exec_wait(gate->exec, 0));
	assert_int_equal(gate_poll(gate, &fact, 1), 1);
	assert_false(exec_wait(gate->exec, 0));
}

/* --- the hook --------------------------------------------------------------------------------- */

struct listener {
	struct gate    *gate;
	struct os_mutex lock;
	struct os_cond  heard;
	uint32_t        fact_count;
};

/* What a hook is for: fetch, from the worker's thread. */
static void fetch(void *arg)
{
	struct listener *const listener = arg;
	struct fact            facts[GATE_OUTSTANDING];

	os_mutex_lock(&listener->lock);
	if (listener->gate)
		listener->fact_count += gate_poll(listener->gate, facts, GATE_OUTSTANDING);
	os_cond_broadcast(&listener->heard);
	os_mutex_unlock(&listener->lock);
}

static void the_hook_is_called_when_facts_are_ready(void **state)
{
	static struct listener listener;
	struct exec_options    options = gate_options;
	struct gate           *gate;
	uint64_t               id;

	(void)state;
	os_mutex_init(&listener.lock);
	os_cond_init(&listener.heard);
	options.notify = fetch;
	options.notify_arg = &listener;
	gate = gate_open(&options);
	listener.gate = gate;
	gate_let_through(gate);
	for (id = 1; id <= 9; id++)
		assert_int_equal(gate_submit(gate, id, id % 3 ? OP_GET : OP_QUERY), 0);
	os_mutex_lock(&listener.lock);
	while (listener.fact_count < 9)
		os_cond_wait(&listener.heard, &listener.lock, GATE_FOREVER_NS);
	listener.gate = NULL;
	os_mutex_unlock(&listener.lock);
	gate_close(gate);
	os_cond_fini(&listener.heard);
	os_mutex_fini(&listener.lock);
}

static void A5_2_the_poll_measures_what_waits_and_runs(void **state)
{
	struct gate *const   gate = *state;
	struct pressure first, second;
	struct fact          facts[8];

	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 2, OP_GET), 0);
	gate_wait_inside(gate, 2);
	assert_int_equal(gate_submit(gate, 3, OP_GET), 0);
	exec_poll(gate->exec, facts, 8, &first);
	assert_int_equal(first.queued_jobs, 1);
	assert_int_equal(first.queued_bytes, GATE_BLOCK_BYTES);
	do {
		exec_poll(gate->exec, facts, 8, &second);
	} while (second.oldest_ns == first.oldest_ns);
	assert_true(second.oldest_ns > first.oldest_ns);
	gate_let_through(gate);
	gate_collect(gate, facts, 3);
	exec_poll(gate->exec, facts, 8, &first);
	assert_int_equal(first.queued_jobs + first.queued_bytes + first.oldest_ns, 0);
}

/* --- figures ------------------------------------------------------------- */

/* Two workers busy at once are one busy class: a rate over that time is the class's own. */
static void busy_time_counts_a_class_once(void **state)
{
	struct gate *const gate = *state;
	const uint64_t     begin = os_now_ns();
	struct exec_stats  stats;
	struct fact        facts[2];
	uint64_t           inside;

	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 2, OP_GET), 0);
	gate_wait_inside(gate, 2);
	inside = os_now_ns();
	/* Until counting both would exceed all the time there was. */
	while (os_now_ns() - inside <= 2 * (inside - begin))
		;
	exec_stats(gate->exec, &stats);
	assert_true(stats.busy_ns[EXEC_GET] > inside - begin);
	assert_true(stats.busy_ns[EXEC_GET] <= os_now_ns() - begin);
	assert_int_equal(stats.busy_ns[EXEC_PUT], 0);
	gate_let_through(gate);
	gate_collect(gate, facts, 2);
	exec_stats(gate->exec, &stats);
	assert_true(stats.busy_ns[EXEC_GET] > 0);
	assert_true(stats.busy_ns[EXEC_GET] <= os_now_ns() - begin);
}

static void stats_are_totals_since_open(void **state)
{
	struct gate *const gate = *state;
	struct exec_stats  stats;
	struct fact        facts[3];

	gate_let_through(gate);
	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 2, OP_PUT), 0);
	assert_int_equal(gate_submit(gate, 3, OP_GET), 0);
	gate_collect(gate, facts, 3);
	exec_stats(gate->exec, &stats);
	assert_int_equal(stats.moved.get_keys, 2);
	assert_int_equal(stats.moved.get_bytes, 2 * GATE_BLOCK_BYTES);
	assert_int_equal(stats.moved.put_new_keys, 1);
	assert_int_equal(stats.moved.put_bytes, GATE_BLOCK_BYTES);
	assert_int_equal(stats.counters[EXEC_SUBMITTED], 3);
	assert_int_equal(stats.counters[EXEC_COMPLETED], 3);
	assert_int_equal(stats.counters[EXEC_CANCELLED], 0);
}

/* --- opening ------------------------------------------------------------- */

static void workers_and_limits_are_checked_at_open(void **state)
{
	static const struct {
		uint32_t    outstanding_max, queue_max;
		uint32_t    workers[EXEC_CLASS_COUNT];
		const char *rule;
	} cases[] = {
		{ 1, 1, { 0, 1, 1 }, "use 1 to 64" },
		{ 1, 1, { 1, 65, 1 }, "use 1 to 64" },
		{ 1, 1, { 1, 63, 1 }, "the limit is 64" },
		{ 1, 1, { UINT32_MAX, 2, 2 }, "use 1 to 64" },
		{ 0, 1, { 1, 1, 1 }, "at least 1" },
		{ 1, 0, { 1, 1, 1 }, "at least 1" },
	};
	struct gate *const gate = *state;
	struct exec       *exec = gate->exec;
	struct kvs_error   err;
	size_t             i;

	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		struct exec_options options = gate_options;

		options.limits.outstanding_max = cases[i].outstanding_max;
		options.limits.queue_max = cases[i].queue_max;
		memcpy(options.workers, cases[i].workers, sizeof(options.workers));
		assert_int_equal(exec_open(&gate->store, &options, &exec, &err), KVS_E_INVALID);
		assert_non_null(strstr(err.message, cases[i].rule));
		assert_ptr_equal(exec, gate->exec);
		/* The store is the caller's still. */
		assert_false(gate->closed);
	}
}

static void memory_is_told_to_the_store_at_open(void **state)
{
	static uint8_t        bytes[2][GATE_BLOCK_BYTES];
	const struct kvs_span slices[] = { { bytes[0], GATE_BLOCK_BYTES, GATE_BLOCK_BYTES },
					   { bytes[1], GATE_BLOCK_BYTES, GATE_BLOCK_BYTES } };
	struct exec_options   options = gate_options;
	struct gate          *gate;

	(void)state;
	options.memory = (struct kvs_memory){ slices, 2, -1 };
	/* The gate fails to register: that is the store's to note, and no reason to stop. */
	gate = gate_open(&options);
	assert_int_equal(gate->slice_count, 2);
	gate_close(gate);
}

/* No machine has room for such a stack, so no worker can start. */
static void a_store_that_stays_the_callers_has_been_told_of_no_memory(void **state)
{
	static uint8_t        bytes[GATE_BLOCK_BYTES];
	const struct kvs_span slice = { bytes, GATE_BLOCK_BYTES, GATE_BLOCK_BYTES };
	struct exec_options   options = gate_options;
	struct gate *const    gate = gate_make();
	pthread_attr_t        usual, huge;

	(void)state;
	options.memory = (struct kvs_memory){ &slice, 1, -1 };
	assert_int_equal(pthread_getattr_default_np(&usual), 0);
	assert_int_equal(pthread_getattr_default_np(&huge), 0);
	assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 50), 0);
	assert_int_equal(pthread_setattr_default_np(&huge), 0);
	assert_true(exec_open(&gate->store, &options, &gate->exec, NULL) < 0);
	assert_int_equal(pthread_setattr_default_np(&usual), 0);
	assert_int_equal(gate->slice_count, 0);
	gate_close(gate);
}

/* --- what the core decides, through the shell --------------------------------------------------- */

/* Each may run alone, so the second waits for the first although a worker is free. */
static void bytes_bound_what_runs_at_once(void **state)
{
	struct exec_options options = gate_options;
	struct fact         facts[4];
	struct gate        *gate;
	uint64_t            id;

	(void)state;
	options.limits.bytes_max[EXEC_GET] = GATE_BLOCK_BYTES;
	gate = gate_open(&options);
	for (id = 1; id <= 4; id++)
		assert_int_equal(gate_submit(gate, id, OP_GET), 0);
	gate_wait_inside(gate, 1);
	gate_let_through(gate);
	gate_collect(gate, facts, 4);
	assert_int_equal(gate->inside_most, 1);
	gate_close(gate);
}

static void calls_of_a_store_of_one_thread_never_overlap(void **state)
{
	struct fact  facts[GATE_OUTSTANDING];
	struct gate *gate = gate_make();
	uint64_t     id = 0;
	uint32_t     round, i;

	(void)state;
	gate->one_thread = true;
	assert_int_equal(exec_open(&gate->store, &gate_options, &gate->exec, NULL), 0);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < GATE_OUTSTANDING; i++)
			assert_int_equal(gate_submit(gate, ++id, i % 2 ? OP_GET : OP_PUT), 0);
		gate_wait_inside(gate, round == 0);
		gate_let_through(gate);
		gate_collect(gate, facts, GATE_OUTSTANDING);
	}
	assert_int_equal(gate->inside_most, 1);
	gate_close(gate);
}

static void A5_4_an_outage_refuses_until_a_probe_succeeds(void **state)
{
	struct exec_options options = gate_options;
	struct exec_stats   stats;
	struct gate        *gate;
	struct fact         fact;

	(void)state;
	options.limits.cooldown_min_ns = 1;
	options.limits.cooldown_max_ns = 1;
	gate = gate_open(&options);
	gate_let_through(gate);
	gate->rc = -EIO;
	assert_int_equal(gate_submit(gate, 1, OP_PUT), 0);
	gate_collect(gate, &fact, 1);
	assert_int_equal(fact.reason, OP_REASON_BACKEND);
	exec_stats(gate->exec, &stats);
	assert_int_equal(stats.health, HEALTH_DOWN);
	assert_int_equal(stats.outages, 1);

	gate->rc = 0;
	assert_int_equal(gate_submit(gate, 2, OP_PUT), 0);
	gate_collect(gate, &fact, 1);
	assert_int_equal(fact.reason, OP_REASON_NONE);
	exec_stats(gate->exec, &stats);
	assert_int_equal(stats.health, HEALTH_UP);
	assert_int_equal(stats.counters[EXEC_PROBES], 1);
	gate_close(gate);
}

static void a_store_that_is_away_at_open_is_asked_by_one_probe(void **state)
{
	struct gate *const gate = gate_make();
	struct fact        fact;

	(void)state;
	gate->away = true;
	assert_int_equal(exec_open(&gate->store, &gate_options, &gate->exec, NULL), 0);
	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	assert_int_equal(gate_submit(gate, 2, OP_GET), KVS_E_HEALTH);
	gate_let_through(gate);
	gate_collect(gate, &fact, 1);
	assert_int_equal(gate_submit(gate, 2, OP_GET), 0);
	gate_collect(gate, &fact, 1);
	gate_close(gate);
}

/* --- locks ------------------------------------------------------------------------------------ */

static void lock_row(struct gate *gate, uint64_t op_id, uint32_t number)
{
	struct fact fact;

	assert_int_equal(gate_submit_key(gate, op_id, OP_QUERY, OP_LOCK, number), 0);
	gate_collect(gate, &fact, 1);
	assert_true(bits_test(fact.ok.words, 0));
}

static uint64_t locks_held(struct gate *gate)
{
	struct exec_stats stats;

	exec_stats(gate->exec, &stats);
	return stats.locks_held;
}

static void B2_3_an_unlock_reaches_the_store_from_a_query_worker(void **state)
{
	struct gate *const   gate = *state;
	const struct kvs_key keys[] = { key_of(1), key_of(2), key_of(7) };

	lock_row(gate, 1, 1);
	lock_row(gate, 2, 2);
	assert_int_equal(locks_held(gate), 2);
	gate_wait_locked(gate, 1, 1);
	exec_unlock(gate->exec, keys, ARRAY_COUNT(keys));
	assert_int_equal(locks_held(gate), 0);
	gate_wait_locked(gate, 1, 0);
	gate_wait_locked(gate, 2, 0);
}

/* With every place of the executor taken, and its workers held: no job, no slot, no wait. */
static void B2_3_an_unlock_lands_when_the_executor_is_full(void **state)
{
	struct gate *const   gate = *state;
	const struct kvs_key key = key_of(3);
	struct fact          facts[GATE_OUTSTANDING];
	uint64_t             id = 1;

	lock_row(gate, id, 3);
	while (gate_submit(gate, id + 1, OP_GET) == 0)
		id++;
	exec_unlock(gate->exec, &key, 1);
	assert_int_equal(locks_held(gate), 0);
	gate_wait_locked(gate, 3, 0);
	gate_let_through(gate);
	gate_collect(gate, facts, GATE_OUTSTANDING);
}

static void locks_of_a_store_without_them_are_counts(void **state)
{
	struct gate *const   gate = gate_make();
	const struct kvs_key key = key_of(3);

	(void)state;
	gate->store.ops = &gate_plain_ops;
	assert_int_equal(exec_open(&gate->store, &gate_options, &gate->exec, NULL), 0);
	lock_row(gate, 1, 3);
	lock_row(gate, 2, 3);
	assert_int_equal(locks_held(gate), 2);
	exec_unlock(gate->exec, &key, 1);
	exec_unlock(gate->exec, &key, 1);
	assert_int_equal(locks_held(gate), 0);
	gate_close(gate);
}

/* --- all at once ------------------------------------------------------------- */

#define STRESS_OPS 4000u

struct stress {
	struct gate     *gate;
	_Atomic uint64_t submitted; /* ids up to here were tried */
	_Atomic bool     done;
	uint8_t          accepted[STRESS_OPS + 1];
	uint8_t          answered[STRESS_OPS + 1];
};

static void *cancel_many(void *arg)
{
	struct stress *const stress = arg;
	struct prng          prng;

	prng_seed(&prng, 1);
	while (!stress->done) {
		exec_cancel(stress->gate->exec, 1 + prng_below(&prng, stress->submitted + 1));
		sched_yield();
	}
	return NULL;
}

static void poll_all(struct stress *stress)
{
	struct fact facts[3];
	uint32_t    count, i;

	while ((count = gate_poll(stress->gate, facts, ARRAY_COUNT(facts))) > 0) {
		for (i = 0; i < count; i++)
			stress->answered[facts[i].op_id]++;
	}
}

static void *poll_many(void *arg)
{
	struct stress *const stress = arg;
	struct exec_stats    stats = { .counters = { 0 } };
	bool                 last;

	do {
		last = stress->done;
		poll_all(stress);
		exec_stats(stress->gate->exec, &stats);
		sched_yield();
	} while (!last || stats.counters[EXEC_COMPLETED] < stats.counters[EXEC_SUBMITTED]);
	poll_all(stress);
	return NULL;
}

static void one_fact_an_op_whoever_submits_cancels_and_polls(void **state)
{
	static struct stress stress;
	pthread_t            canceller, poller;
	uint64_t             id;

	stress.gate = *state;
	gate_let_through(stress.gate);
	assert_int_equal(os_thread_start(&canceller, "canceller", cancel_many, &stress), 0);
	assert_int_equal(os_thread_start(&poller, "poller", poll_many, &stress), 0);
	for (id = 1; id <= STRESS_OPS; id++) {
		const enum op_kind kind = id % 3 == 0 ? OP_QUERY : id % 3 == 1 ? OP_GET : OP_PUT;
		const int          rc = gate_submit(stress.gate, id, kind);

		assert_true(rc == 0 || rc == KVS_E_FULL);
		stress.accepted[id] = rc == 0;
		stress.submitted = id;
		if (rc == KVS_E_FULL)
			sched_yield();
	}
	stress.done = true;
	os_thread_join(canceller);
	os_thread_join(poller);
	assert_memory_equal(stress.accepted, stress.answered, sizeof(stress.accepted));
}

#define GATE_TEST(test) cmocka_unit_test_setup_teardown(test, gate_setup, gate_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GATE_TEST(A5_3_a_queued_cancel_is_in_the_next_poll_while_every_worker_is_blocked),
		GATE_TEST(A5_1_a_query_does_not_wait_behind_bulk_io),
		GATE_TEST(the_descriptor_is_signalled_once_for_who_armed_it),
		GATE_TEST(a_wait_ends_with_a_fact_or_with_its_time),
		cmocka_unit_test(the_hook_is_called_when_facts_are_ready),
		GATE_TEST(A5_2_the_poll_measures_what_waits_and_runs),
		GATE_TEST(busy_time_counts_a_class_once),
		GATE_TEST(stats_are_totals_since_open),
		GATE_TEST(workers_and_limits_are_checked_at_open),
		cmocka_unit_test(memory_is_told_to_the_store_at_open),
		cmocka_unit_test(a_store_that_stays_the_callers_has_been_told_of_no_memory),
		cmocka_unit_test(bytes_bound_what_runs_at_once),
		cmocka_unit_test(calls_of_a_store_of_one_thread_never_overlap),
		cmocka_unit_test(A5_4_an_outage_refuses_until_a_probe_succeeds),
		cmocka_unit_test(a_store_that_is_away_at_open_is_asked_by_one_probe),
		GATE_TEST(B2_3_an_unlock_reaches_the_store_from_a_query_worker),
		GATE_TEST(B2_3_an_unlock_lands_when_the_executor_is_full),
		cmocka_unit_test(locks_of_a_store_without_them_are_counts),
		GATE_TEST(one_fact_an_op_whoever_submits_cancels_and_polls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
