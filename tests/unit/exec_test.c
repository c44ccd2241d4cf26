/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor's shell: threads around the core.
 *
 * The store here holds its callers at a gate that the test opens, so that "every worker is blocked"
 * is a state and not a matter of time.  Nobody sleeps: the test waits on the gate's condition or on
 * the executor's descriptor.
 */
#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "exec/exec.h"
#include "named_block.h"
#include "os/os.h"

#define BLOCK_BYTES 4096u
#define FOREVER_NS UINT64_MAX
#define OUTSTANDING_MAX 16u

struct gate {
	struct kvs_store store;
	struct os_mutex  lock;
	struct os_cond   moved;
	bool             open;
	uint32_t         inside;     /* callers at the gate */
	uint32_t         call_count;
	struct exec     *exec;
	int              epoll_fd;
};

static void wait_at(struct gate *gate)
{
	os_mutex_lock(&gate->lock);
	gate->call_count++;
	gate->inside++;
	os_cond_broadcast(&gate->moved);
	while (!gate->open)
		os_cond_wait(&gate->moved, &gate->lock, FOREVER_NS);
	gate->inside--;
	os_mutex_unlock(&gate->lock);
}

/* Queries pass: only bulk I/O is held. */
static int gate_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		       enum kvs_result *result)
{
	uint32_t i;

	(void)store;
	(void)key;
	for (i = 0; i < count; i++)
		result[i] = KVS_RESULT_DONE;
	return 0;
}

static int gate_move(struct kvs_store *store, const struct kvs_key *key,
		     const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		     bool *ret_retired)
{
	(void)span;
	wait_at((struct gate *)store);
	*ret_retired = true;
	return gate_exists(store, key, count, result);
}

static const struct kvs_store_ops gate_ops = { .name = "gate",
					       .exists = gate_exists,
					       .get = gate_move,
					       .put = gate_move };

static const struct exec_options options = { .limits = { .outstanding_max = OUTSTANDING_MAX,
							 .queue_max = OUTSTANDING_MAX },
					     .workers = { 1, 2, 1 } };

static int gate_setup(void **state)
{
	struct gate *const gate = calloc(1, sizeof(*gate));

	assert_non_null(gate);
	gate->store.ops = &gate_ops;
	os_mutex_init(&gate->lock);
	os_cond_init(&gate->moved);
	assert_int_equal(exec_open(&gate->store, &options, &gate->exec, NULL), 0);
	gate->epoll_fd = os_epoll();
	assert_int_equal(os_epoll_add(gate->epoll_fd, exec_fd(gate->exec), 1), 0);
	*state = gate;
	return 0;
}

static void open_gate(struct gate *gate)
{
	os_mutex_lock(&gate->lock);
	gate->open = true;
	os_cond_broadcast(&gate->moved);
	os_mutex_unlock(&gate->lock);
}

static int gate_teardown(void **state)
{
	struct gate *const gate = *state;

	open_gate(gate);
	exec_close(gate->exec);
	os_close(gate->epoll_fd);
	os_cond_fini(&gate->moved);
	os_mutex_fini(&gate->lock);
	free(gate);
	return 0;
}

static void wait_inside(struct gate *gate, uint32_t count)
{
	os_mutex_lock(&gate->lock);
	while (gate->inside < count)
		os_cond_wait(&gate->moved, &gate->lock, FOREVER_NS);
	os_mutex_unlock(&gate->lock);
}

static bool is_readable(const struct gate *gate)
{
	uint64_t tag;

	return os_epoll_wait(gate->epoll_fd, &tag, 1, 0) == 1;
}

static void wait_readable(const struct gate *gate)
{
	uint64_t tag;

	while (os_epoll_wait(gate->epoll_fd, &tag, 1, FOREVER_NS) == 0)
		;
}

static int submit(struct exec *exec, uint64_t op_id, enum op_kind kind)
{
	static uint8_t               bytes[BLOCK_BYTES];
	static const struct kvs_key  key;
	static const struct kvs_span span = { bytes, BLOCK_BYTES, BLOCK_BYTES };
	struct op op = { .op_id = op_id, .kind = kind, .key_count = 1, .keys = &key };

	if (kind != OP_QUERY)
		op.spans = &span;
	op_own_all(&op);
	return exec_submit(exec, &op);
}

static uint32_t poll_facts(struct exec *exec, struct fact *ret_facts, uint32_t fact_max)
{
	struct exec_pressure pressure;

	return exec_poll(exec, ret_facts, fact_max, &pressure);
}

/* Sleeps on the descriptor until that many facts have come. */
static void collect(struct gate *gate, struct fact *ret_facts, uint32_t count)
{
	uint32_t got = poll_facts(gate->exec, ret_facts, count);

	while (got < count) {
		wait_readable(gate);
		got += poll_facts(gate->exec, ret_facts + got, count - got);
	}
}

static void A5_3_a_queued_cancel_is_in_the_next_poll_while_every_worker_is_blocked(void **state)
{
	struct gate *const gate = *state;
	struct fact        facts[4];

	assert_int_equal(submit(gate->exec, 1, OP_GET), 0);
	assert_int_equal(submit(gate->exec, 2, OP_GET), 0);
	assert_int_equal(submit(gate->exec, 3, OP_PUT), 0);
	wait_inside(gate, 3);
	assert_int_equal(submit(gate->exec, 4, OP_GET), 0);
	assert_int_equal(submit(gate->exec, 5, OP_PUT), 0);
	exec_cancel(gate->exec, 4);
	exec_cancel(gate->exec, 1); /* runs: inert */
	assert_true(is_readable(gate));
	assert_int_equal(poll_facts(gate->exec, facts, 4), 1);
	assert_int_equal(facts[0].op_id, 4);
	assert_int_equal(facts[0].reason, OP_REASON_CANCELLED);

	open_gate(gate);
	collect(gate, facts, 4);
	assert_int_equal(gate->call_count, 4);
	assert_int_equal(facts[0].reason + facts[1].reason + facts[2].reason + facts[3].reason, 0);
}

static void A5_1_a_query_does_not_wait_behind_bulk_io(void **state)
{
	struct gate *const gate = *state;
	struct fact        fact;

	assert_int_equal(submit(gate->exec, 1, OP_GET), 0);
	assert_int_equal(submit(gate->exec, 2, OP_GET), 0);
	assert_int_equal(submit(gate->exec, 3, OP_PUT), 0);
	wait_inside(gate, 3);
	assert_int_equal(submit(gate->exec, 4, OP_QUERY), 0);
	collect(gate, &fact, 1);
	assert_int_equal(fact.op_id, 4);
	assert_true(bits_test(fact.ok.words, 0));
}

static void the_descriptor_says_that_facts_wait(void **state)
{
	struct gate *const gate = *state;
	struct fact        fact;

	assert_false(is_readable(gate));
	assert_int_equal(submit(gate->exec, 1, OP_GET), 0);
	assert_int_equal(submit(gate->exec, 2, OP_GET), 0);
	wait_inside(gate, 2);
	assert_false(is_readable(gate));
	assert_int_equal(submit(gate->exec, 3, OP_GET), 0);
	assert_int_equal(submit(gate->exec, 4, OP_GET), 0);
	exec_cancel(gate->exec, 3);
	exec_cancel(gate->exec, 4);

	/* It stays readable while facts are left, and not after. */
	assert_int_equal(poll_facts(gate->exec, &fact, 1), 1);
	assert_true(is_readable(gate));
	assert_int_equal(poll_facts(gate->exec, &fact, 1), 1);
	assert_false(is_readable(gate));
	/* A hint without a fact is harmless. */
	exec_cancel(gate->exec, 99);
	assert_int_equal(poll_facts(gate->exec, &fact, 1), 0);
	assert_false(is_readable(gate));
}

static void A5_2_the_poll_measures_what_waits_and_runs(void **state)
{
	struct gate *const   gate = *state;
	struct exec_pressure first, second;
	struct fact          facts[8];

	assert_int_equal(submit(gate->exec, 1, OP_GET), 0);
	assert_int_equal(submit(gate->exec, 2, OP_GET), 0);
	wait_inside(gate, 2);
	assert_int_equal(submit(gate->exec, 3, OP_GET), 0);
	exec_poll(gate->exec, facts, 8, &first);
	assert_int_equal(first.queued_jobs, 1);
	assert_int_equal(first.queued_bytes, BLOCK_BYTES);
	do {
		exec_poll(gate->exec, facts, 8, &second);
	} while (second.oldest_ns == first.oldest_ns);
	assert_true(second.oldest_ns > first.oldest_ns);
	open_gate(gate);
	collect(gate, facts, 3);
	exec_poll(gate->exec, facts, 8, &first);
	assert_int_equal(first.queued_jobs + first.queued_bytes + first.oldest_ns, 0);
}

/* --- close ------------------------------------------------------------- */

/* Workers of ours that the kernel still knows, by name. */
static uint32_t worker_count(void)
{
	DIR *const     tasks = opendir("/proc/self/task");
	struct dirent *task;
	uint32_t       count = 0;

	assert_non_null(tasks);
	while ((task = readdir(tasks))) {
		char  path[300], name[32] = "";
		FILE *comm;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		comm = fopen(path, "r");
		if (!comm)
			continue;
		count += fgets(name, sizeof(name), comm) && strncmp(name, "kvs-", 4) == 0;
		fclose(comm);
	}
	closedir(tasks);
	return count;
}

static void *close_exec(void *arg)
{
	struct gate *const gate = arg;

	exec_close(gate->exec);
	gate->exec = NULL;
	return NULL;
}

/*
 * Idle workers leave as soon as a close has begun, which is how the test knows that it has; the two
 * at the gate are still there, and find the executor closing when they come out.
 */
static void a_close_ends_what_runs_and_drops_what_waits(void **state)
{
	struct gate *const gate = *state;
	pthread_t          closer;
	uint64_t           id;

	for (id = 1; id <= 8; id++)
		assert_int_equal(submit(gate->exec, id, OP_GET), 0);
	wait_inside(gate, 2);
	assert_int_equal(os_thread_start(&closer, "closer", close_exec, gate), 0);
	while (worker_count() > 2)
		sched_yield();
	open_gate(gate);
	os_thread_join(closer);
	assert_null(gate->exec);
	assert_int_equal(gate->call_count, 2);
	assert_int_equal(gate->inside, 0);
}

static void closing_nothing_is_fine(void **state)
{
	(void)state;
	exec_close(NULL);
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

	assert_int_equal(submit(gate->exec, 1, OP_GET), 0);
	assert_int_equal(submit(gate->exec, 2, OP_GET), 0);
	wait_inside(gate, 2);
	inside = os_now_ns();
	/* Until counting both would exceed all the time there was. */
	while (os_now_ns() - inside <= 2 * (inside - begin))
		;
	exec_stats(gate->exec, &stats);
	assert_true(stats.busy_ns[EXEC_GET] > inside - begin);
	assert_true(stats.busy_ns[EXEC_GET] <= os_now_ns() - begin);
	assert_int_equal(stats.busy_ns[EXEC_PUT], 0);
	open_gate(gate);
	collect(gate, facts, 2);
	exec_stats(gate->exec, &stats);
	assert_true(stats.busy_ns[EXEC_GET] > 0);
	assert_true(stats.busy_ns[EXEC_GET] <= os_now_ns() - begin);
}

static void stats_are_totals_since_open(void **state)
{
	struct gate *const gate = *state;
	struct exec_stats  stats;
	struct fact        facts[3];

	open_gate(gate);
	assert_int_equal(submit(gate->exec, 1, OP_GET), 0);
	assert_int_equal(submit(gate->exec, 2, OP_PUT), 0);
	assert_int_equal(submit(gate->exec, 3, OP_GET), 0);
	collect(gate, facts, 3);
	exec_stats(gate->exec, &stats);
	assert_int_equal(stats.moved.get_keys, 2);
	assert_int_equal(stats.moved.get_bytes, 2 * BLOCK_BYTES);
	assert_int_equal(stats.moved.put_new_keys, 1);
	assert_int_equal(stats.moved.put_bytes, BLOCK_BYTES);
	assert_int_equal(stats.counters[EXEC_SUBMITTED], 3);
	assert_int_equal(stats.counters[EXEC_COMPLETED], 3);
	assert_int_equal(stats.counters[EXEC_CANCELLED], 0);
}

/* --- opening ------------------------------------------------------------- */

static void workers_and_limits_are_checked_at_open(void **state)
{
	static const struct {
		struct exec_options options;
		const char         *rule;
	} cases[] = {
		{ { { 1, 1 }, { 0, 1, 1 } }, "use 1 to 64" },
		{ { { 1, 1 }, { 1, 65, 1 } }, "use 1 to 64" },
		{ { { 1, 1 }, { 1, 63, 1 } }, "the limit is 64" },
		{ { { 1, 1 }, { UINT32_MAX, 2, 2 } }, "use 1 to 64" },
		{ { { 0, 1 }, { 1, 1, 1 } }, "at least 1" },
		{ { { 1, 0 }, { 1, 1, 1 } }, "at least 1" },
	};
	struct gate *const gate = *state;
	struct exec       *exec = gate->exec;
	struct kvs_error   err;
	size_t             i;

	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		assert_int_equal(exec_open(&gate->store, &cases[i].options, &exec, &err),
				 KVS_E_INVALID);
		assert_non_null(strstr(err.message, cases[i].rule));
		assert_ptr_equal(exec, gate->exec);
	}
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

	while ((count = poll_facts(stress->gate->exec, facts, ARRAY_COUNT(facts))) > 0) {
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
	open_gate(stress.gate);
	assert_int_equal(os_thread_start(&canceller, "canceller", cancel_many, &stress), 0);
	assert_int_equal(os_thread_start(&poller, "poller", poll_many, &stress), 0);
	for (id = 1; id <= STRESS_OPS; id++) {
		const enum op_kind kind = id % 3 == 0 ? OP_QUERY : id % 3 == 1 ? OP_GET : OP_PUT;
		const int          rc = submit(stress.gate->exec, id, kind);

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
		GATE_TEST(the_descriptor_says_that_facts_wait),
		GATE_TEST(A5_2_the_poll_measures_what_waits_and_runs),
		GATE_TEST(a_close_ends_what_runs_and_drops_what_waits),
		cmocka_unit_test(closing_nothing_is_fine),
		GATE_TEST(busy_time_counts_a_class_once),
		GATE_TEST(stats_are_totals_since_open),
		GATE_TEST(workers_and_limits_are_checked_at_open),
		GATE_TEST(one_fact_an_op_whoever_submits_cancels_and_polls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
