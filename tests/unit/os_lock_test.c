/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of a store's file, among processes: who holds it is named while he lives, and when he ended
 * the lock is had again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "place.h"

#define MS UINT64_C(1000000)
/* Longer than any of this takes; nothing waits so long unless it is broken. */
#define LONG (60000 * MS)

/* Another process that opened and locked the file. */
struct other {
	pid_t pid;
	int   told;  /* it has the lock; at its end: nobody is left */
	int   until; /* closing it ends who waits for it */
};

static struct place place;
static int          mine;

static int set_up(void **state)
{
	(void)state;
	place = place_open();
	mine = os_file_open(place.path, OS_WRITE | OS_CREATE);
	return mine < 0;
}

static int tear_down(void **state)
{
	(void)state;
	os_close(mine);
	place_close(&place);
	return 0;
}

/* To the end of the pipe, which comes when the test lets go or dies. */
static void wait_for_end(int fd)
{
	char byte;

	while (read(fd, &byte, 1) > 0)
		;
}

/* heir: a child of the holder's inherits the lock and outlives him. */
static _Noreturn void hold(const char *name, bool heir, int tell, int until)
{
	const int fd = os_file_open(place.path, OS_WRITE);

	prctl(PR_SET_NAME, name);
	if (os_file_lock(fd) < 0)
		_exit(1);
	if (heir && fork() > 0)
		_exit(0);
	(void)!write(tell, "", 1);
	wait_for_end(until);
	_exit(0);
}

static struct other start(const char *name, bool heir)
{
	struct other other;
	int          told[2], until[2];
	char         byte;

	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(until), 0);
	other.pid = fork();
	assert_true(other.pid >= 0);
	if (other.pid == 0) {
		close(told[0]);
		close(until[1]);
		hold(name, heir, told[1], until[0]);
	}
	close(told[1]);
	close(until[0]);
	other.told = told[0];
	other.until = until[1];
	assert_int_equal(read(other.told, &byte, 1), 1);
	return other;
}

static void close_ends(const struct other *other)
{
	os_close(other->told);
	os_close(other->until);
}

static void kill_and_wait(const struct other *other)
{
	assert_int_equal(kill(other->pid, SIGKILL), 0);
	assert_int_equal(waitpid(other->pid, NULL, 0), other->pid);
}

static void nobody_holds_a_free_lock(void **state)
{
	struct os_lock_holder holder = { .pid = 77 };

	(void)state;
	assert_false(os_file_lock_holder(mine, &holder));
	assert_false(os_file_lock_holder(-1, &holder));
	assert_int_equal(holder.pid, 77);
	assert_int_equal(os_file_lock_wait(mine, 0, &holder), 0);
	assert_int_equal(os_file_lock_wait(-1, LONG, &holder), -EBADF);
	assert_int_equal(holder.pid, 77);
}

static void a_living_holder_is_named_at_once(void **state)
{
	const struct other    other = start("holder", false);
	struct os_lock_holder holder;

	(void)state;
	assert_int_equal(os_file_lock_wait(mine, LONG, &holder), -EWOULDBLOCK);
	assert_int_equal(holder.pid, other.pid);
	assert_string_equal(holder.name, "holder");
	assert_false(holder.ending);
	assert_false(holder.self);
	kill_and_wait(&other);
	assert_int_equal(os_file_lock_wait(mine, LONG, &holder), 0);
	close_ends(&other);
}

/* The first looks like the end of a name, and like the state and the flags of what ends. */
static void an_odd_name_confuses_nobody(void **state)
{
	static const char *const names[][2] = { { ") Z 1 1 1 1 1 4", ") Z 1 1 1 1 1 4" },
						{ "odd\x01\n\xff", "odd" },
						{ "odd\x01\xff", "odd??" } };
	struct os_lock_holder    holder;
	unsigned                 i;

	(void)state;
	for (i = 0; i < 3; i++) {
		const struct other other = start(names[i][0], false);

		assert_true(os_file_lock_holder(mine, &holder));
		assert_int_equal(holder.pid, other.pid);
		assert_memory_equal(holder.name, names[i][1], strlen(names[i][1]));
		assert_false(holder.ending);
		kill_and_wait(&other);
		close_ends(&other);
	}
}

static void this_process_knows_itself(void **state)
{
	const int             again = os_file_open(place.path, OS_WRITE);
	struct os_lock_holder holder;

	(void)state;
	assert_int_equal(os_file_lock(again), 0);
	assert_int_equal(os_file_lock_wait(mine, LONG, &holder), -EWOULDBLOCK);
	assert_true(holder.self);
	assert_int_equal(holder.pid, getpid());
	assert_false(holder.ending);
	os_close(again);
	assert_int_equal(os_file_lock_wait(mine, LONG, &holder), 0);
}

static void the_lock_of_another_file_is_another(void **state)
{
	const struct other    other = start("holder", false);
	struct place          elsewhere = place_open();
	const int             fd = os_file_open(elsewhere.path, OS_WRITE | OS_CREATE);
	struct os_lock_holder holder;

	(void)state;
	assert_false(os_file_lock_holder(fd, &holder));
	assert_int_equal(os_file_lock_wait(fd, LONG, &holder), 0);
	os_close(fd);
	place_close(&elsewhere);
	kill_and_wait(&other);
	close_ends(&other);
}

/* Its heir keeps the lock, as writes do that are still on their way. */
static void a_dead_holder_is_waited_for(void **state)
{
	const struct other    other = start("holder", true);
	const uint64_t        begin_ns = os_now_ns();
	struct os_lock_holder holder = { .pid = 77 };
	siginfo_t             info;
	char                  byte;

	(void)state;
	/* A zombie. */
	assert_int_equal(waitid(P_PID, (id_t)other.pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(os_file_lock_wait(mine, 3 * MS, &holder), -EWOULDBLOCK);
	assert_true(os_now_ns() >= begin_ns + 3 * MS);
	assert_int_equal(holder.pid, other.pid);
	assert_true(holder.ending);
	/* Gone.  Seen from a container it is not listed either. */
	assert_int_equal(waitpid(other.pid, NULL, 0), other.pid);
	assert_int_equal(os_file_lock_wait(mine, MS, &holder), -EWOULDBLOCK);
	assert_int_equal(holder.pid, 0);
	close(other.until);
	assert_int_equal(os_file_lock_wait(mine, LONG, &holder), 0);
	assert_int_equal(read(other.told, &byte, 1), 0);
	close(other.told);
}

/* A tracer holds it between its death's blow and its end. */
static void a_killed_holder_is_ending(void **state)
{
	const struct other    other = start("holder", false);
	struct os_lock_holder holder;
	int                   status = 0;

	(void)state;
	if (ptrace(PTRACE_SEIZE, other.pid, NULL, (void *)PTRACE_O_TRACEEXIT) < 0) {
		kill_and_wait(&other);
		close_ends(&other);
		print_message("# no process may be traced here: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(kill(other.pid, SIGKILL), 0);
	assert_int_equal(waitpid(other.pid, &status, 0), other.pid);
	if (WIFSTOPPED(status)) {
		assert_true(os_file_lock_holder(mine, &holder));
		assert_int_equal(holder.pid, other.pid);
		assert_true(holder.ending);
		assert_int_equal(os_file_lock_wait(mine, 0, &holder), -EWOULDBLOCK);
		assert_int_equal(ptrace(PTRACE_CONT, other.pid, NULL, NULL), 0);
		assert_int_equal(os_file_lock_wait(mine, LONG, &holder), 0);
		assert_int_equal(waitpid(other.pid, NULL, 0), other.pid);
	} else {
		print_message("# this kernel stops no killed process\n");
		close_ends(&other);
		skip();
	}
	close_ends(&other);
}

/* A copy of the descriptor stands for whatever else keeps the description. */
static void a_lock_that_is_given_up_is_nobody_s(void **state)
{
	const int again = os_file_open(place.path, OS_WRITE);
	const int copy = dup(mine);

	(void)state;
	assert_int_equal(os_file_lock(mine), 0);
	assert_int_equal(os_file_lock(again), -EWOULDBLOCK);
	os_close(mine);
	assert_int_equal(os_file_lock(again), -EWOULDBLOCK);
	os_file_unlock(copy);
	assert_int_equal(os_file_lock(again), 0);
	os_file_unlock(copy);
	assert_int_equal(os_file_lock(copy), -EWOULDBLOCK);
	os_close(again);
	mine = copy;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_holds_a_free_lock, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_living_holder_is_named_at_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_odd_name_confuses_nobody, set_up, tear_down),
		cmocka_unit_test_setup_teardown(this_process_knows_itself, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_lock_of_another_file_is_another, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_dead_holder_is_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_killed_holder_is_ending, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_lock_that_is_given_up_is_nobody_s, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
