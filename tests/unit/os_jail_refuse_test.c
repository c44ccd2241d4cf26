/* SPDX-License-Identifier: Apache-2.0 */
/* A child in a jail: what it is refused, what is left to it, and why its end can be trusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "cell.h"
#include "escape.h"
#include "os/os.h"
#include "os/ring.h"

/* Longer than any of this takes; nothing waits so long unless it is broken. */
#define LONG UINT64_C(60000000000)
#define PAGE 4096u

/* --- parts ------------------------------------------------------------------------------------ */

static void try_all(void)
{
	int codes[ESCAPES];

	escape_try_all(codes);
	cell_tell(codes, sizeof(codes));
}

static void *add_one(void *arg)
{
	++*(int *)arg;
	return NULL;
}

/* What an SDK lives on: threads, sockets that copy, shared memory, epoll, terminals' questions. */
static void live(void)
{
	pthread_t thread;
	uint8_t  *pages;
	int       sockets[2], on = 1, value = 1, fd;

	KVS_ASSERT(pthread_create(&thread, NULL, add_one, &value) == 0);
	pthread_join(thread, NULL);
	KVS_ASSERT(value == 2);
	pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, CELL_FD, 0);
	KVS_ASSERT(pages != MAP_FAILED);
	KVS_ASSERT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	KVS_ASSERT(send(sockets[0], pages, 8, MSG_NOSIGNAL) == 8);
	KVS_ASSERT(recv(sockets[1], pages + 8, 8, 0) == 8);
	KVS_ASSERT(os_epoll() >= 0 && os_eventfd() >= 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	KVS_ASSERT(fd >= 0 && ioctl(fd, FIONBIO, &on) == 0);
	KVS_ASSERT(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
	KVS_ASSERT(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
	KVS_ASSERT(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	cell_tell("alive", 5);
}

/* Exec keeps what was refused: a program that another one becomes is in the same jail. */
static void become_another(void)
{
	(void)!execl("/proc/self/exe", "/proc/self/exe", "try_all", (char *)NULL);
}

/* The first bytes of this program into memory that it shares, moved by a queue of the kernel's. */
static void queue_a_read(void)
{
	uint8_t        *pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, CELL_FD, 0);
	const int       file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct os_ring *ring;
	int             rc = os_ring_open(4, &ring);

	KVS_ASSERT(pages != MAP_FAILED && file >= 0);
	if (rc == 0) {
		struct os_ring_done done;

		os_ring_read(ring, file, pages, 4, 0, 1);
		KVS_ASSERT(os_ring_reap(ring, &done, 1, 1, LONG) == 1);
	}
	cell_tell(&rc, sizeof(rc));
}

static const struct cell_part parts[] = {
	{ "try_all", try_all },
	{ "live", live },
	{ "become_another", become_another },
	{ "queue_a_read", queue_a_read },
};

/* --- tests ------------------------------------------------------------------------------------ */

static int memory(void)
{
	void *pages;
	int   fd;

	assert_int_equal(os_pages_map_shared("jail", PAGE, false, &pages, &fd), 0);
	os_pages_unmap(pages, PAGE);
	return fd;
}

/* What a prisoner that plays `part` tells; it plays to the end. */
static void hear(const char *part, bool confine, void *told, size_t count)
{
	const int   fd = memory();
	struct cell cell;

	assert_int_equal(cell_start(part, confine, fd, &cell), 0);
	assert_int_equal(cell.jail.confined, confine);
	assert_int_equal(cell_hear(&cell, told, count), count);
	cell_end(&cell);
	os_close(fd);
}

static void assert_refused(const char *part)
{
	int codes[ESCAPES], i;

	hear(part, true, codes, sizeof(codes));
	for (i = 0; i < ESCAPES; i++) {
		if (codes[i] != escapes[i].code) {
			fail_msg("%s: %s, not %s", escapes[i].name, strerror(codes[i]),
				 strerror(escapes[i].code));
		}
	}
}

static void X2_nothing_that_works_on_without_a_thread_is_left(void **state)
{
	(void)state;
	assert_refused("try_all");
}

static void X2_another_program_is_in_the_same_jail(void **state)
{
	(void)state;
	assert_refused("become_another");
}

/* So that the tests above say something about the jail and not about this kernel. */
static void outside_much_of_it_works(void **state)
{
	int codes[ESCAPES], i;

	(void)state;
	hear("try_all", false, codes, sizeof(codes));
	for (i = 0; i < ESCAPES; i++) {
		if (escapes[i].works_outside && codes[i] != 0)
			fail_msg("%s: %s", escapes[i].name, strerror(codes[i]));
	}
}

static void what_a_client_lives_on_is_left(void **state)
{
	char said[5];

	(void)state;
	hear("live", true, said, sizeof(said));
	assert_memory_equal(said, "alive", 5);
}

/* Why the end of a child that nobody confined proves nothing: its I/O needs no thread of it. */
static void X2_a_queue_into_our_memory_is_for_those_we_do_not_trust(void **state)
{
	struct cell cell;
	void       *pages;
	int         fd, rc;

	(void)state;
	assert_int_equal(os_pages_map_shared("jail", PAGE, false, &pages, &fd), 0);
	assert_int_equal(cell_start("queue_a_read", true, fd, &cell), 0);
	assert_true(cell.jail.confined);
	assert_int_equal(cell_hear(&cell, &rc, sizeof(rc)), sizeof(rc));
	assert_int_equal(rc, -ENOSYS);
	cell_end(&cell);
	assert_memory_equal(pages, "\0\0\0\0", 4);
	assert_int_equal(cell_start("queue_a_read", false, fd, &cell), 0);
	assert_false(cell.jail.confined);
	assert_int_equal(cell_hear(&cell, &rc, sizeof(rc)), sizeof(rc));
	cell_end(&cell);
	if (rc == 0)
		assert_memory_equal(pages, "\177ELF", 4);
	else
		print_message("# no io_uring here: %s\n", strerror(-rc));
	os_pages_unmap(pages, PAGE);
	os_close(fd);
}

/* The interpreter that python3 ends in: on the PATH may be a script that starts it. */
static bool find_python(char *path, size_t room)
{
	char *const       argv[] = { "python3", "-c",
				     "import sys; sys.stdout.write(sys.executable + '\\n')", NULL };
	struct os_process process;
	size_t            used = 0;
	ssize_t           done;

	if (os_process_start(argv, &process) < 0)
		return false;
	while ((done = os_process_read(&process, path + used, room - 1 - used)) > 0)
		used += (size_t)done;
	path[used] = '\0';
	path[strcspn(path, "\n")] = '\0';
	return os_process_wait(&process) == 0 && path[0] == '/';
}

static void an_interpreter_runs_in_it(void **state)
{
	char                path[4096];
	char               *argv[] = { path, "-c",
				       "import threading, socket, mmap\n"
				       "s = socket.socket(fileno=3)\n"
				       "m = mmap.mmap(4, 4096)\n"
				       "def run(): m[0:2] = b'in'\n"
				       "t = threading.Thread(target=run); t.start(); t.join()\n"
				       "socket.getaddrinfo('127.0.0.1', 80)\n"
				       "s.sendall(m[0:2])", NULL };
	struct os_jail_plan plan = { .argv = argv, .fd_count = 2, .output = STDERR_FILENO,
				     .confine = true };
	struct os_jail      jail;
	struct iovec        part;
	char                said[2];
	int                 ends[2];

	(void)state;
	if (!find_python(path, sizeof(path)))
		skip();
	assert_int_equal(os_socket_pair(ends), 0);
	plan.fds[0] = ends[1];
	plan.fds[1] = memory();
	assert_int_equal(os_jail_start(&plan, &jail), 0);
	assert_true(os_jail_wait(&jail, LONG));
	part = (struct iovec){ said, sizeof(said) };
	assert_int_equal(os_socket_readv(ends[0], &part, 1), 2);
	assert_memory_equal(said, "in", 2);
	os_close(plan.fds[1]);
	os_close(ends[0]);
	os_close(ends[1]);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(X2_nothing_that_works_on_without_a_thread_is_left),
		cmocka_unit_test(X2_another_program_is_in_the_same_jail),
		cmocka_unit_test(outside_much_of_it_works),
		cmocka_unit_test(what_a_client_lives_on_is_left),
		cmocka_unit_test(X2_a_queue_into_our_memory_is_for_those_we_do_not_trust),
		cmocka_unit_test(an_interpreter_runs_in_it),
	};

	cell_play(argc, argv, parts, sizeof(parts) / sizeof(parts[0]));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
