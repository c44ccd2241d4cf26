/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How doubts end while the executor lives: workers ask a store that can prove such things, between
 * jobs, one at a time and without the lock; the owner hears of it as of facts.
 */
#include "base/err.h"
#include "exec/shell.h"

/* Most proofs come within milliseconds, or a long time later. */
#define ASK_MIN_NS UINT64_C(1000000)
#define ASK_MAX_NS UINT64_C(100000000)

static bool can_settle(const struct exec *exec)
{
	return exec->store->ops->settled &&
	       exec->core.unsettled_count > exec->core.disbelieved_count;
}

void exec_doubt(struct exec *exec)
{
	exec->ask_gap_ns = ASK_MIN_NS;
	exec->ask_ns = os_now_ns() + ASK_MIN_NS;
}

uint64_t exec_settle_after(const struct exec *exec, uint64_t most)
{
	uint64_t now_ns;

	if (!can_settle(exec) || exec->asking)
		return most;
	now_ns = os_now_ns();
	if (exec->ask_ns <= now_ns)
		return 0;
	return exec->ask_ns - now_ns < most ? exec->ask_ns - now_ns : most;
}

/* With the lock, dropped for the call.  What comes into doubt meanwhile is not what was asked about. */
static void ask(struct exec *exec)
{
	const uint64_t last = exec->core.last_doubt;
	bool           settled;

	exec->asking = true;
	os_mutex_unlock(&exec->lock);
	exec_calls_begin(exec);
	settled = exec->store->ops->settled(exec->store);
	exec_calls_end(exec);
	os_mutex_lock(&exec->lock);
	exec->asking = false;
	if (last == exec->core.last_doubt) {
		exec->ask_gap_ns *= 2;
		if (exec->ask_gap_ns > ASK_MAX_NS)
			exec->ask_gap_ns = ASK_MAX_NS;
		exec->ask_ns = os_now_ns() + exec->ask_gap_ns;
	}
	if (!settled)
		return;
	exec_core_settle(&exec->core, last);
	if (exec->core.notices.count > 0)
		exec_announce(exec);
}

/* Who closes asks itself, when no worker is left. */
bool exec_settle(struct exec *exec)
{
	if (exec->closing || !can_settle(exec) || exec_settle_after(exec, 1) > 0)
		return false;
	ask(exec);
	return true;
}

void exec_settle_until(struct exec *exec, uint64_t until_ns)
{
	os_mutex_lock(&exec->lock);
	while (can_settle(exec)) {
		uint64_t now_ns;

		ask(exec);
		now_ns = os_now_ns();
		if (!can_settle(exec) || now_ns >= until_ns)
			break;
		/* Nobody signals it any more: a pause. */
		os_cond_wait(&exec->gone, &exec->lock,
			     exec_settle_after(exec, until_ns - now_ns));
	}
	os_mutex_unlock(&exec->lock);
}

/* --- the owner -------------------------------------------------------------------------------- */

uint32_t exec_poll_notices(struct exec *exec, struct retirement_notice *ret_notices,
			   uint32_t notice_max)
{
	uint32_t count;

	os_mutex_lock(&exec->lock);
	count = exec_core_poll_notices(&exec->core, ret_notices, notice_max);
	atomic_store_explicit(&exec->ready, exec_core_ready(&exec->core), memory_order_relaxed);
	os_mutex_unlock(&exec->lock);
	return count;
}

int exec_notice(struct exec *exec, const struct retirement_notice *notice)
{
	int rc;

	os_mutex_lock(&exec->lock);
	rc = exec_core_notice(&exec->core, notice);
	os_mutex_unlock(&exec->lock);
	return rc;
}

bool exec_settles(const struct exec *exec)
{
	return exec->store->ops->settled != NULL;
}
