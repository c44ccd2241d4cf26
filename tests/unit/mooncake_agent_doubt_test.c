/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doubt: an agent that does not end in time, one that nobody confined, and who ends with whom.
 *
 * The linker leads os_jail_start() and os_jail_wait() here: a machine without seccomp, and an end that
 * is not seen.
 */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "base/err.h"
#include "os/jail.h"
#include "troupe.h"

#define BLOCK ((size_t)65536)

static atomic_int  held = -1; /* whose end is not seen */
static atomic_bool without_seccomp;

int  __real_os_jail_start(const struct os_jail_plan *plan, struct os_jail *ret_jail);
int  __wrap_os_jail_start(const struct os_jail_plan *plan, struct os_jail *ret_jail);
bool __real_os_jail_wait(struct os_jail *jail, uint64_t timeout_ns);
bool __wrap_os_jail_wait(struct os_jail *jail, uint64_t timeout_ns);

int __wrap_os_jail_start(const struct os_jail_plan *plan, struct os_jail *ret_jail)
{
	if (without_seccomp && plan->confine)
		return -ENOTSUP;
	return __real_os_jail_start(plan, ret_jail);
}

bool __wrap_os_jail_wait(struct os_jail *jail, uint64_t timeout_ns)
{
	return jail->pid != held && __real_os_jail_wait(jail, timeout_ns);
}

static void await_settled(struct troupe *troupe)
{
	while (!troupe->way->ops->settled(troupe->way))
		poll(NULL, 0, 1);
}

static bool call_retired(struct troupe *troupe, const char *name, int64_t *ret_code)
{
	bool retired = true;

	assert_int_equal(troupe_call(troupe, 1, MOONCAKE_GET, name, 0, BLOCK, ret_code, &retired), 0);
	return retired;
}

static void X2_an_end_that_is_not_seen_in_time_is_told_later(void **state)
{
	static uint8_t wanted[BLOCK];
	struct troupe  troupe;
	int64_t        code;
	bool           retired = true;

	(void)state;
	if (!LINKER_WRAPS)
		skip();
	troupe_init(&troupe, 1);
	troupe.settings.reap_timeout_ns = 0;
	troupe_open(&troupe);
	held = troupe_pid(&troupe, 1);
	assert_false(call_retired(&troupe, "one!late", &code));
	assert_int_equal(code, -800);
	assert_false(troupe.way->ops->settled(troupe.way));
	/* Its lane is down, and retires at once what it refuses; the doubt stays. */
	assert_int_equal(troupe_call(&troupe, 1, MOONCAKE_GET, "one", 0, BLOCK, &code, &retired),
			 -ENOTCONN);
	assert_true(retired);
	assert_int_equal(troupe_call(&troupe, 0, MOONCAKE_EXISTS, "one", 0, 0, &code, &retired), 0);
	assert_false(troupe.way->ops->settled(troupe.way));
	held = -1;
	await_settled(&troupe);
	memset(wanted, 0xa5, BLOCK);
	memset(troupe.memory, 0xa5, BLOCK);
	assert_memory_equal(troupe.memory, wanted, BLOCK);
	assert_memory_equal(troupe.memory, wanted, BLOCK);
	troupe_fini(&troupe);
}

/* The doubt's agent is the last thing that a close waits for. */
static void X2_close_frees_nothing_while_an_agent_may_write(void **state)
{
	struct troupe        troupe;
	struct mooncake_way *way;
	int64_t              code;

	(void)state;
	if (!LINKER_WRAPS)
		skip();
	troupe_init(&troupe, 1);
	troupe.settings.reap_timeout_ns = 0;
	troupe_open(&troupe);
	held = troupe_pid(&troupe, 1);
	assert_false(call_retired(&troupe, "one!late", &code));
	way = troupe.way;
	assert_int_equal(way->ops->close(way), KVS_E_QUARANTINE);
	assert_false(way->ops->settled(way));
	held = -1;
	await_settled(&troupe);
	/* Now it can. */
	while (way->ops->close(way) == KVS_E_QUARANTINE)
		poll(NULL, 0, 1);
	troupe.way = NULL;
	troupe_fini(&troupe);
}

/* A ring for that process, if this machine has any at all, writes on behind its end. */
static void X2_the_end_of_an_unconfined_agent_proves_nothing(void **state)
{
	/* Not ours to free any more: close() said so. */
	static struct troupe     troupe;
	struct mooncake_way_info info;
	int64_t                  code;

	(void)state;
	if (!LINKER_WRAPS)
		skip();
	without_seccomp = true;
	troupe_init(&troupe, 1);
	troupe_open(&troupe);
	info = troupe_describe(&troupe);
	assert_int_equal(info.death_retires, KVS_DEATH_NOTHING);
	assert_string_equal(info.note, "agents are not confined: their end proves nothing");
	/* What its codes prove they prove here, too. */
	assert_true(call_retired(&troupe, "one", &code));
	assert_false(call_retired(&troupe, "one!late", &code));
	troupe_await_lanes(&troupe, 2);
	assert_int_equal(troupe_describe(&troupe).restarts, 1);
	assert_false(troupe.way->ops->settled(troupe.way));
	assert_true(strstr(troupe_describe(&troupe).note, "in doubt"));
	assert_int_equal(troupe.way->ops->close(troupe.way), KVS_E_QUARANTINE);
	assert_false(troupe.way->ops->settled(troupe.way));
	assert_int_equal(rmdir(troupe.folder), 0);
	without_seccomp = false;
}

static void X2_agents_of_another_protocol_prove_nothing(void **state)
{
	struct troupe troupe;

	(void)state;
	troupe_init(&troupe, 1);
	snprintf(troupe.settings.protocol, sizeof(troupe.settings.protocol), "rdma");
	troupe_open(&troupe);
	assert_int_equal(troupe_describe(&troupe).death_retires, KVS_DEATH_NOTHING);
	troupe_fini(&troupe);
}

/* An owner that tells its agents' pids and waits to be killed. */
static void own(int out)
{
	struct troupe troupe;
	pid_t         pids[2];

	troupe_init(&troupe, 1);
	troupe_open(&troupe);
	pids[0] = troupe_pid(&troupe, 0);
	pids[1] = troupe_pid(&troupe, 1);
	KVS_ASSERT(write(out, pids, sizeof(pids)) == sizeof(pids));
	KVS_ASSERT(write(out, troupe.folder, sizeof(troupe.folder)) == sizeof(troupe.folder));
	for (;;)
		pause();
}

static void X2_agents_end_with_their_owner(void **state)
{
	char  folder[sizeof(((struct troupe *)0)->folder)];
	pid_t pids[2], owner;
	int   ends[2], fds[2], i;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	owner = fork();
	assert_true(owner >= 0);
	if (owner == 0)
		own(ends[1]);
	assert_int_equal(read(ends[0], pids, sizeof(pids)), sizeof(pids));
	assert_int_equal(read(ends[0], folder, sizeof(folder)), sizeof(folder));
	for (i = 0; i < 2; i++) {
		fds[i] = (int)syscall(SYS_pidfd_open, pids[i], 0);
		assert_true(fds[i] >= 0);
	}
	assert_int_equal(kill(owner, SIGKILL), 0);
	assert_int_equal(waitpid(owner, NULL, 0), owner);
	for (i = 0; i < 2; i++) {
		struct pollfd end = { .fd = fds[i], .events = POLLIN };

		assert_int_equal(poll(&end, 1, -1), 1);
		close(fds[i]);
	}
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X2_agents_end_with_their_owner),
		cmocka_unit_test(X2_an_end_that_is_not_seen_in_time_is_told_later),
		cmocka_unit_test(X2_close_frees_nothing_while_an_agent_may_write),
		cmocka_unit_test(X2_agents_of_another_protocol_prove_nothing),
		cmocka_unit_test(X2_the_end_of_an_unconfined_agent_proves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
