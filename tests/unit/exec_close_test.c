/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an executor: what is waited for, what stays when it cannot be, and what that is for. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena/arena.h"
#include "base/err.h"
#include "gate.h"
#include "named_block.h"

/* Of a gate whose executor is closed. */
static void gate_free(struct gate *gate)
{
	gate->exec = NULL;
	gate_close(gate);
}

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

	assert_int_equal(exec_close(gate->exec, GATE_FOREVER_NS), 0);
	return NULL;
}

/*
 * Idle workers leave as soon as a close has begun, which is how the test knows that it has; the two
 * at the gate are still there, and find the executor closing when they come out.
 */
static void A5_7_a_close_ends_what_runs_drops_what_waits_and_closes_the_store(void **state)
{
	struct gate *const gate = gate_open(&gate_options);
	pthread_t          closer;
	uint64_t           id;

	(void)state;
	for (id = 1; id <= 8; id++)
		assert_int_equal(gate_submit(gate, id, OP_GET), 0);
	gate_wait_inside(gate, 2);
	assert_int_equal(os_thread_start(&closer, "closer", close_exec, gate), 0);
	while (worker_count() > 2)
		sched_yield();
	assert_false(gate->closed);
	gate_let_through(gate);
	os_thread_join(closer);
	assert_true(gate->closed);
	assert_int_equal(gate->call_count, 2);
	assert_int_equal(gate->inside, 0);
	gate_free(gate);
}

static void closing_nothing_is_fine(void **state)
{
	(void)state;
	assert_int_equal(exec_close(NULL, 0), 0);
}

static void A5_7_a_worker_that_does_not_come_back_keeps_the_store_open(void **state)
{
	struct gate *const gate = gate_open(&gate_options);
	struct fact        facts[3];

	(void)state;
	assert_int_equal(gate_submit(gate, 1, OP_PUT), 0);
	gate_wait_inside(gate, 1);
	assert_int_equal(gate_submit(gate, 2, OP_PUT), 0);
	assert_int_equal(exec_close(gate->exec, 0), KVS_E_QUARANTINE);
	assert_int_equal(exec_close(gate->exec, 1000), KVS_E_QUARANTINE);
	assert_false(gate->closed);
	assert_int_equal(gate_submit(gate, 3, OP_QUERY), KVS_E_CLOSED);

	/* What waited has its one fact; what runs gets it when it comes out. */
	assert_int_equal(gate_poll(gate, facts, 3), 1);
	assert_int_equal(facts[0].op_id, 2);
	assert_int_equal(facts[0].reason, OP_REASON_CLOSED);
	assert_true(facts[0].retired);
	gate_let_through(gate);
	gate_collect(gate, facts, 1);
	assert_int_equal(facts[0].op_id, 1);
	assert_int_equal(facts[0].reason, OP_REASON_NONE);
	assert_int_equal(exec_close(gate->exec, GATE_FOREVER_NS), 0);
	assert_true(gate->closed);
	gate_free(gate);
}

static void count_calls(void *arg)
{
	(*(_Atomic uint32_t *)arg)++;
}

/* Nobody else would tell of facts that no worker has made. */
static void A5_7_the_hook_tells_of_what_a_close_drops(void **state)
{
	_Atomic uint32_t    calls = 0;
	struct exec_options options = gate_options;
	struct gate        *gate;

	(void)state;
	options.notify = count_calls;
	options.notify_arg = &calls;
	gate = gate_open(&options);
	assert_int_equal(gate_submit(gate, 1, OP_PUT), 0);
	gate_wait_inside(gate, 1);
	assert_int_equal(gate_submit(gate, 2, OP_PUT), 0);
	assert_int_equal(calls, 0);
	assert_int_equal(exec_close(gate->exec, 0), KVS_E_QUARANTINE);
	assert_int_equal(calls, 1);
	gate_close(gate);
}

static void A5_6_bytes_in_doubt_keep_the_store_open_until_their_notice(void **state)
{
	const struct retirement_notice notice = { .op_id = 1 };
	struct gate *const             gate = gate_open(&gate_options);
	struct fact                    fact;

	(void)state;
	gate->unretired = true;
	gate_let_through(gate);
	assert_int_equal(gate_submit(gate, 1, OP_GET), 0);
	gate_collect(gate, &fact, 1);
	assert_false(fact.retired);
	assert_int_equal(gate_submit(gate, 2, OP_QUERY), KVS_E_QUARANTINE);
	assert_int_equal(exec_close(gate->exec, GATE_FOREVER_NS), KVS_E_QUARANTINE);
	assert_false(gate->closed);
	assert_int_equal(gate_submit(gate, 2, OP_QUERY), KVS_E_CLOSED);

	assert_int_equal(exec_notice(gate->exec, &notice), 0);
	assert_int_equal(exec_notice(gate->exec, &notice), KVS_E_STALE);
	assert_int_equal(exec_close(gate->exec, GATE_FOREVER_NS), 0);
	assert_true(gate->closed);
	gate_free(gate);
}

static void A5_7_a_store_with_io_of_its_own_under_way_is_not_gone(void **state)
{
	struct gate *const gate = gate_open(&gate_options);

	(void)state;
	gate->close_rc = KVS_E_QUARANTINE;
	assert_int_equal(exec_close(gate->exec, GATE_FOREVER_NS), KVS_E_QUARANTINE);
	assert_int_equal(gate_submit(gate, 1, OP_QUERY), KVS_E_CLOSED);
	gate->close_rc = 0;
	assert_int_equal(exec_close(gate->exec, GATE_FOREVER_NS), 0);
	gate_free(gate);
}

static void B2_3_a_close_gives_every_lock_back(void **state)
{
	struct gate *const gate = gate_open(&gate_options);
	struct fact        facts[2];
	uint32_t           number;

	(void)state;
	for (number = 0; number < GATE_KEYS; number++) {
		assert_int_equal(gate_submit_key(gate, 2 * number + 1, OP_QUERY, OP_LOCK, number), 0);
		assert_int_equal(gate_submit_key(gate, 2 * number + 2, OP_QUERY, OP_LOCK, number), 0);
		gate_collect(gate, facts, 2);
	}
	assert_int_equal(exec_close(gate->exec, GATE_FOREVER_NS), 0);
	for (number = 0; number < GATE_KEYS; number++)
		assert_int_equal(gate->locked[number], 0);
	gate_free(gate);
}

static void B2_3_a_close_that_fails_gives_them_back_too(void **state)
{
	struct gate *const gate = gate_open(&gate_options);
	struct exec_stats  stats;
	struct fact        fact;

	(void)state;
	assert_int_equal(gate_submit_key(gate, 1, OP_QUERY, OP_LOCK, 5), 0);
	gate_collect(gate, &fact, 1);
	assert_int_equal(gate_submit(gate, 2, OP_PUT), 0);
	gate_wait_inside(gate, 1);
	assert_int_equal(exec_close(gate->exec, 0), KVS_E_QUARANTINE);
	gate_wait_locked(gate, 5, 0);
	exec_stats(gate->exec, &stats);
	assert_int_equal(stats.locks_held, 0);
	gate_close(gate);
}

static void A5_7_unlocks_that_last_are_within_the_deadline(void **state)
{
	struct gate *const gate = gate_open(&gate_options);
	struct fact        fact;

	(void)state;
	gate->holds_unlocks = true;
	assert_int_equal(gate_submit_key(gate, 1, OP_QUERY, OP_LOCK, 0), 0);
	gate_collect(gate, &fact, 1);
	assert_int_equal(exec_close(gate->exec, 0), KVS_E_QUARANTINE);
	assert_int_equal(exec_close(gate->exec, 1000), KVS_E_QUARANTINE);
	assert_false(gate->closed);
	assert_int_equal(gate->locked[0], 1);
	gate_let_through(gate);
	assert_int_equal(exec_close(gate->exec, GATE_FOREVER_NS), 0);
	assert_int_equal(gate->locked[0], 0);
	gate_free(gate);
}

/* --- a store that writes when nobody thinks of it any more ---------------------------------------- */

#define LATE_NS UINT64_C(1000000000)
#define BLOCKS 3u

struct late_store {
	struct kvs_store store;
	struct os_mutex  lock;
	struct os_cond   wrote;
	struct kvs_span  span; /* of its one get */
	bool             has_written;
};

static int late_get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		    uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	struct late_store *const late = (struct late_store *)store;

	(void)key;
	assert_int_equal(count, 1);
	late->span = *span;
	result[0] = KVS_RESULT_FAILED;
	*ret_retired = false;
	return 0;
}

/* A second after it was started. */
static void *write_late(void *arg)
{
	struct late_store *const late = arg;
	const uint64_t           begin_ns = os_now_ns();
	uint64_t                 gone_ns;

	os_mutex_lock(&late->lock);
	while ((gone_ns = os_now_ns() - begin_ns) < LATE_NS)
		os_cond_wait(&late->wrote, &late->lock, LATE_NS - gone_ns);
	fill(late->span.ptr, 99, GATE_BLOCK_BYTES);
	late->has_written = true;
	os_cond_broadcast(&late->wrote);
	os_mutex_unlock(&late->lock);
	return NULL;
}

static void late_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	(void)store;
	*ret_info = (struct kvs_store_info){ .capacity_bytes = 0 };
}

/* Nobody may ask it to: its I/O is under way. */
static int late_close(struct kvs_store *store)
{
	(void)store;
	KVS_PANIC("a store with I/O under way was closed");
}

static const struct kvs_store_ops late_ops = { .abi = KVS_STORE_ABI, .name = "late",
					       .describe = late_describe, .close = late_close,
					       .get = late_get };

static void wait_for_the_write(struct late_store *late)
{
	os_mutex_lock(&late->lock);
	while (!late->has_written)
		os_cond_wait(&late->wrote, &late->lock, GATE_FOREVER_NS);
	os_mutex_unlock(&late->lock);
}

static void get_into(struct exec *exec, const struct kvs_span *span)
{
	const struct kvs_key key = key_of(0);
	struct pressure pressure;
	struct fact          fact;
	struct op            op = { .op_id = 1, .kind = OP_GET, .key_count = 1, .keys = &key,
				    .spans = span };

	op_own_all(&op);
	assert_int_equal(exec_submit(exec, &op), 0);
	while (exec_poll(exec, &fact, 1, &pressure) == 0)
		exec_wait(exec, GATE_FOREVER_NS);
	assert_false(fact.retired);
	op.op_id = 2;
	assert_int_equal(exec_submit(exec, &op), KVS_E_QUARANTINE);
}

/*
 * The executor stays for the life of the process, as it must: a static pointer keeps leak checkers
 * from taking that for a leak.
 */
static void A1_4_a_late_write_after_a_failed_close_touches_nobody(void **state)
{
	static struct late_store late = { .store = { &late_ops } };
	static struct exec      *exec;
	struct arena_part        part;
	struct arena            *arena;
	struct kvs_span          spans[BLOCKS];
	pthread_t                writer;
	uint32_t                 i;

	(void)state;
	os_mutex_init(&late.lock);
	os_cond_init(&late.wrote);
	assert_int_equal(arena_open(arena_part_bytes(GATE_BLOCK_BYTES, BLOCKS), ARENA_LAZY,
					 &arena, NULL),
			 0);
	assert_int_equal(arena_carve(arena, GATE_BLOCK_BYTES, BLOCKS, &part, NULL), 0);
	arena_retain(arena);
	for (i = 0; i < BLOCKS; i++) {
		spans[i] = arena_block(&part, i);
		fill(spans[i].ptr, i, GATE_BLOCK_BYTES);
	}
	assert_int_equal(exec_open(&late.store, &gate_options, &exec, NULL), 0);
	get_into(exec, &spans[1]);

	assert_int_equal(exec_close(exec, GATE_FOREVER_NS), KVS_E_QUARANTINE);
	arena_close(arena);
	assert_int_equal(os_thread_start(&writer, "late", write_late, &late), 0);
	wait_for_the_write(&late);
	os_thread_join(writer);
	assert_true(is_filled(spans[1].ptr, 99, GATE_BLOCK_BYTES));
	assert_true(is_filled(spans[0].ptr, 0, GATE_BLOCK_BYTES));
	assert_true(is_filled(spans[2].ptr, 2, GATE_BLOCK_BYTES));
	os_cond_fini(&late.wrote);
	os_mutex_fini(&late.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			A5_7_a_close_ends_what_runs_drops_what_waits_and_closes_the_store),
		cmocka_unit_test(closing_nothing_is_fine),
		cmocka_unit_test(A5_7_a_worker_that_does_not_come_back_keeps_the_store_open),
		cmocka_unit_test(A5_7_the_hook_tells_of_what_a_close_drops),
		cmocka_unit_test(A5_6_bytes_in_doubt_keep_the_store_open_until_their_notice),
		cmocka_unit_test(A5_7_a_store_with_io_of_its_own_under_way_is_not_gone),
		cmocka_unit_test(B2_3_a_close_gives_every_lock_back),
		cmocka_unit_test(B2_3_a_close_that_fails_gives_them_back_too),
		cmocka_unit_test(A5_7_unlocks_that_last_are_within_the_deadline),
		cmocka_unit_test(A1_4_a_late_write_after_a_failed_close_touches_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
