/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wake-ups of the executor's workers.
 *
 * The bound of a worker's idle sleep hides a wake-up that was missed: it costs a tenth of a second.
 * The linker leads the sleeps of this program through a function of its own: they have no end here,
 * so that who misses a wake-up never comes, and they are counted.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gate.h"

#define WORKERS 4u

static _Atomic uint32_t sleeps; /* that would have had an end */

/* The linker's names. */
bool __real_os_cond_wait(struct os_cond *cond, struct os_mutex *mutex, uint64_t timeout_ns);
bool __wrap_os_cond_wait(struct os_cond *cond, struct os_mutex *mutex, uint64_t timeout_ns);

bool __wrap_os_cond_wait(struct os_cond *cond, struct os_mutex *mutex, uint64_t timeout_ns)
{
	sleeps += timeout_ns != UINT64_MAX;
	return __real_os_cond_wait(cond, mutex, UINT64_MAX);
}

static void submit_bytes(struct gate *gate, uint64_t op_id, size_t bytes)
{
	static uint8_t               block[WORKERS * GATE_BLOCK_BYTES];
	static const struct kvs_key  key = { .group = 1 };
	static struct kvs_span       spans[WORKERS + 2];
	struct kvs_span *const       span = &spans[op_id];
	struct op op = { .op_id = op_id, .kind = OP_GET, .key_count = 1, .keys = &key,
			 .spans = span };

	*span = (struct kvs_span){ block, bytes, bytes };
	op_own_all(&op);
	assert_int_equal(exec_submit(gate->exec, &op), 0);
}

static void wait_sleeps(uint32_t count)
{
	while (sleeps < count)
		sched_yield();
}

/* Each small job wakes one worker, which finds no room and sleeps again before the next comes. */
static void a_large_job_that_ends_makes_room_for_as_many_small_ones_as_fit(void **state)
{
	struct exec_options options = gate_options;
	struct fact         facts[WORKERS + 1];
	struct gate        *gate;
	uint64_t            id;

	(void)state;
	/* Without the wrapped sleeps there is nothing to count. */
	if (!LINKER_WRAPS)
		skip();
	options.workers[EXEC_GET] = WORKERS;
	options.limits.bytes_max[EXEC_GET] = WORKERS * GATE_BLOCK_BYTES;
	gate = gate_open(&options);
	wait_sleeps(WORKERS + 2);
	submit_bytes(gate, 1, WORKERS * GATE_BLOCK_BYTES);
	gate_wait_inside(gate, 1);
	for (id = 2; id < WORKERS + 2; id++) {
		const uint32_t before = sleeps;

		submit_bytes(gate, id, GATE_BLOCK_BYTES);
		wait_sleeps(before + 1);
	}
	gate_let_one_through(gate);
	gate_collect(gate, facts, 1);
	gate_wait_inside(gate, WORKERS);
	gate_let_through(gate);
	gate_collect(gate, facts + 1, WORKERS);
	gate_close(gate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_large_job_that_ends_makes_room_for_as_many_small_ones_as_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
