/* SPDX-License-Identifier: Apache-2.0 */
/* A child in a jail: how it begins, what it finds, how it ends and who may look away meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "cell.h"
#include "os/os.h"
#include "place.h"

#define MS UINT64_C(1000000)
/* Longer than any of this takes; nothing waits so long unless it is broken. */
#define LONG (60000 * MS)

/* --- parts ------------------------------------------------------------------------------------ */

static void stay(void)
{
	cell_tell("here", 4);
	for (;;)
		pause();
}

static void leave(void)
{
}

#define FDS 64

static void count_descriptors(void)
{
	uint8_t open_fds[FDS];
	int     i;

	for (i = 0; i < FDS; i++)
		open_fds[i] = fcntl(i, F_GETFD) >= 0;
	cell_tell(open_fds, sizeof(open_fds));
}

static void greet(void)
{
	/* The number behind the test's line; where the two were swapped this is the line. */
	(void)!write(CELL_FD, "swapped", 7);
}

static void start_greeter(int first, int second)
{
	char               *argv[] = { "/dev/null", "greet", NULL };
	struct os_jail_plan plan = { .argv = argv,
				     .fds = { first, second, first, second },
				     .fd_count = OS_JAIL_FDS_MAX,
				     .output = -1 };
	struct os_jail      jail;

	/* A failure is told across it all. */
	KVS_ASSERT(os_jail_start(&plan, &jail) == -EACCES);
	argv[0] = "/proc/self/exe";
	KVS_ASSERT(os_jail_start(&plan, &jail) == 0);
	KVS_ASSERT(os_jail_wait(&jail, LONG));
}

/* Our own two become one another's in a child of ours. */
static void swap(void)
{
	start_greeter(CELL_FD, CELL_LINE);
}

/* The places are free here, so that what a start opens for itself lies in them; even the first. */
static void swap_from_afar(void)
{
	const int other = fcntl(CELL_FD, F_DUPFD_CLOEXEC, 20), line = fcntl(CELL_LINE, F_DUPFD_CLOEXEC, 20);
	int       i;

	for (i = 0; i <= CELL_FD; i++)
		close(i);
	start_greeter(other, line);
}

static void tell_environment(void)
{
	static const char *const names[] = { "JAIL_NEW", "JAIL_OVER", "JAIL_OURS" };
	size_t                   i;

	for (i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);

		cell_tell(value ? value : "?", value ? strlen(value) : 1);
		cell_tell(";", 1);
	}
}

static void tell_signals(void)
{
	struct sigaction pipe_action;
	sigset_t         mask;
	uint8_t          told[3];

	sigaction(SIGPIPE, NULL, &pipe_action);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	told[0] = pipe_action.sa_handler == SIG_DFL;
	told[1] = !sigismember(&mask, SIGUSR1);
	told[2] = getpgrp() == getpid() && getsid(0) == getsid(getppid());
	cell_tell(told, sizeof(told));
}

static const struct cell_part parts[] = {
	{ "stay", stay },
	{ "leave", leave },
	{ "count_descriptors", count_descriptors },
	{ "greet", greet },
	{ "swap", swap },
	{ "swap_from_afar", swap_from_afar },
	{ "tell_environment", tell_environment },
	{ "tell_signals", tell_signals },
};

/* One that is in its program. */
static struct cell staying(bool confine)
{
	struct cell cell;
	char        said[4];

	assert_int_equal(cell_start("stay", confine, -1, &cell), 0);
	assert_int_equal(cell_hear(&cell, said, sizeof(said)), sizeof(said));
	return cell;
}

/* --- how it begins ---------------------------------------------------------------------------- */

static void X2_its_descriptors_are_there_and_no_other(void **state)
{
	uint8_t     open_fds[FDS];
	int         inherited[20];
	struct cell cell;
	int         i;

	(void)state;
	for (i = 0; i < 20; i++)
		inherited[i] = dup(STDERR_FILENO);
	assert_int_equal(cell_start("count_descriptors", true, inherited[3], &cell), 0);
	assert_int_equal(cell_hear(&cell, open_fds, FDS), FDS);
	for (i = 0; i < FDS; i++)
		assert_int_equal(open_fds[i], i <= CELL_FD);
	cell_end(&cell);
	assert_int_equal(cell_start("count_descriptors", true, -1, &cell), 0);
	assert_int_equal(cell_hear(&cell, open_fds, FDS), FDS);
	for (i = 0; i < FDS; i++)
		assert_int_equal(open_fds[i], i <= CELL_LINE);
	cell_end(&cell);
	for (i = 0; i < 20; i++)
		close(inherited[i]);
}

static void assert_swapped(const char *part)
{
	struct cell cell;
	char        said[8];

	assert_int_equal(cell_start(part, false, STDERR_FILENO, &cell), 0);
	assert_int_equal(cell_hear(&cell, said, sizeof(said)), 7);
	assert_memory_equal(said, "swapped", 7);
	cell_end(&cell);
}

static void descriptors_may_change_places(void **state)
{
	(void)state;
	assert_swapped("swap");
}

static void descriptors_may_come_where_ours_were(void **state)
{
	(void)state;
	assert_swapped("swap_from_afar");
}

static void its_output_goes_where_it_should(void **state)
{
	char               *argv[] = { "sh", "-c", "echo said; echo warned >&2; read x || echo $?", NULL };
	struct os_jail_plan plan = { .argv = argv, .confine = true };
	struct os_jail      jail;
	char                said[32];
	int                 ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	plan.output = ends[1];
	assert_int_equal(os_jail_start(&plan, &jail), 0);
	close(ends[1]);
	assert_true(os_jail_wait(&jail, LONG));
	assert_int_equal(read(ends[0], said, sizeof(said)), 14);
	assert_memory_equal(said, "said\nwarned\n1\n", 14);
	close(ends[0]);
	plan.output = -1;
	assert_int_equal(os_jail_start(&plan, &jail), 0);
	assert_true(os_jail_wait(&jail, LONG));
}

static void its_environment_is_ours_and_more(void **state)
{
	char               *environment[] = { "JAIL_NEW=1", "JAIL_OVER=2", NULL };
	char               *argv[] = { "/proc/self/exe", "tell_environment", NULL };
	struct os_jail_plan plan = { .argv = argv,
				     .environment = environment,
				     .fd_count = 1,
				     .output = STDERR_FILENO,
				     .confine = true };
	struct os_jail      jail;
	char                said[32];
	int                 ends[2];

	(void)state;
	setenv("JAIL_OVER", "9", 1);
	setenv("JAIL_OURS", "3", 1);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	plan.fds[0] = ends[1];
	assert_int_equal(os_jail_start(&plan, &jail), 0);
	assert_true(os_jail_wait(&jail, LONG));
	assert_int_equal(read(ends[0], said, sizeof(said)), 6);
	assert_memory_equal(said, "1;2;3;", 6);
	close(ends[0]);
	close(ends[1]);
}

static void a_hosts_signals_are_not_its_own(void **state)
{
	struct cell cell;
	uint8_t     told[3];
	sigset_t    one, before, after;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	sigprocmask(SIG_BLOCK, &one, &before);
	assert_int_equal(cell_start("tell_signals", true, -1, &cell), 0);
	sigprocmask(SIG_SETMASK, &before, &after);
	assert_true(sigismember(&after, SIGUSR1));
	assert_false(sigismember(&after, SIGUSR2));
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(cell_hear(&cell, told, sizeof(told)), sizeof(told));
	assert_memory_equal(told, "\1\1\1", 3);
	cell_end(&cell);
}

static int start_named(char *name)
{
	char               *argv[] = { name, NULL };
	struct os_jail_plan plan = { .argv = argv, .output = -1, .confine = true };
	struct os_jail      jail = { .pid = 77 };
	const int           rc = os_jail_start(&plan, &jail);

	assert_int_equal(jail.pid, 77);
	return rc;
}

static void what_is_no_program_is_an_error(void **state)
{
	const struct place place = place_open();
	int                fd;

	(void)state;
	assert_int_equal(start_named("kvstrata-no-such-program"), -ENOENT);
	assert_int_equal(start_named("/no/such/program"), -ENOENT);
	assert_int_equal(start_named(""), -ENOENT);
	assert_int_equal(start_named("/"), -EACCES);
	fd = open(place.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	assert_int_equal(write(fd, "no program", 10), 10);
	close(fd);
	assert_int_equal(start_named((char *)place.path), -ENOEXEC);
	place_close(&place);
}

/* --- how it ends ------------------------------------------------------------------------------ */

static void X2_one_that_lives_is_waited_for_in_vain(void **state)
{
	struct cell cell = staying(true);

	(void)state;
	assert_false(os_jail_wait(&cell.jail, 0));
	assert_false(os_jail_wait(&cell.jail, 5 * MS));
	assert_true(cell.jail.pid > 0);
	cell_kill(&cell);
	assert_int_equal(cell.jail.pid, 0);
	/* Nobody can be killed and waited for again. */
	os_jail_kill(&cell.jail);
	assert_true(os_jail_wait(&cell.jail, 0));
}

static void one_that_leaves_by_itself_is_seen(void **state)
{
	struct cell cell;

	(void)state;
	assert_int_equal(cell_start("leave", true, -1, &cell), 0);
	cell_end(&cell);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void X2_a_host_that_ignores_ends_takes_none_away(void **state)
{
	struct cell cell;

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	cell = staying(true);
	cell_kill(&cell);
	assert_int_equal(start_named("/proc/self/fd"), -EACCES);
	assert_int_equal(cell_start("leave", true, -1, &cell), 0);
	cell_end(&cell);
	signal(SIGCHLD, SIG_DFL);
}

static void *wait_for_any(void *arg)
{
	pid_t *pid = arg;

	do {
		*pid = waitpid(-1, NULL, 0);
	} while (*pid < 0 && errno == EINTR);
	return NULL;
}

static void X2_a_host_that_waits_for_any_child_takes_none_away(void **state)
{
	struct cell cell = staying(true);
	const pid_t pid = cell.jail.pid;
	pthread_t   thread;
	pid_t       reaped = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_any, &reaped), 0);
	os_jail_kill(&cell.jail);
	pthread_join(thread, NULL);
	assert_int_equal(reaped, pid);
	cell_end(&cell);
	assert_int_equal(cell.jail.pid, 0);
}

static void *start_and_end(void *arg)
{
	*(struct cell *)arg = staying(true);
	return NULL;
}

static void X2_it_ends_with_the_thread_that_started_it(void **state)
{
	struct cell cell;
	pthread_t   thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, start_and_end, &cell), 0);
	pthread_join(thread, NULL);
	cell_end(&cell);
}

static void *start_and_kill(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 5; i++) {
		struct cell cell;

		KVS_ASSERT(cell_start("stay", true, -1, &cell) == 0);
		cell_kill(&cell);
	}
	return NULL;
}

static void many_threads_may_start_and_end_theirs(void **state)
{
	pthread_t threads[4];
	int       i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, start_and_kill, NULL), 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void X2_one_that_is_stopped_can_be_killed(void **state)
{
	struct cell cell = staying(true);
	siginfo_t   info;

	(void)state;
	assert_int_equal(kill(cell.jail.pid, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)cell.jail.pid, &info, WSTOPPED), 0);
	assert_false(os_jail_wait(&cell.jail, 0));
	cell_kill(&cell);
}

static void a_child_that_nobody_confined_is_none_to_trust(void **state)
{
	struct cell cell = staying(false);

	(void)state;
	assert_false(cell.jail.confined);
	cell_kill(&cell);
	cell = staying(true);
	assert_true(cell.jail.confined);
	cell_kill(&cell);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(X2_its_descriptors_are_there_and_no_other),
		cmocka_unit_test(descriptors_may_change_places),
		cmocka_unit_test(descriptors_may_come_where_ours_were),
		cmocka_unit_test(its_output_goes_where_it_should),
		cmocka_unit_test(its_environment_is_ours_and_more),
		cmocka_unit_test(a_hosts_signals_are_not_its_own),
		cmocka_unit_test(what_is_no_program_is_an_error),
		cmocka_unit_test(X2_one_that_lives_is_waited_for_in_vain),
		cmocka_unit_test(one_that_leaves_by_itself_is_seen),
		cmocka_unit_test(X2_a_host_that_ignores_ends_takes_none_away),
		cmocka_unit_test(X2_a_host_that_waits_for_any_child_takes_none_away),
		cmocka_unit_test(X2_it_ends_with_the_thread_that_started_it),
		cmocka_unit_test(many_threads_may_start_and_end_theirs),
		cmocka_unit_test(X2_one_that_is_stopped_can_be_killed),
		cmocka_unit_test(a_child_that_nobody_confined_is_none_to_trust),
	};

	cell_play(argc, argv, parts, sizeof(parts) / sizeof(parts[0]));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
