/* SPDX-License-Identifier: Apache-2.0 */
/* Other programs and sockets: what starts, what is said, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "os/os.h"

#define MS UINT64_C(1000000)

static size_t read_all(const struct os_process *process, char *text, size_t room)
{
	size_t  used = 0;
	ssize_t done;

	while ((done = os_process_read(process, text + used, room - 1 - used)) > 0)
		used += (size_t)done;
	text[used] = '\0';
	return used;
}

static void a_program_is_heard_and_its_status_known(void **state)
{
	char *const       argv[] = { "sh", "-c", "echo said; echo warned >&2; exit 3", NULL };
	struct os_process process;
	char              text[64];

	(void)state;
	assert_int_equal(os_process_start(argv, &process), 0);
	assert_int_equal(read_all(&process, text, sizeof(text)), 12);
	assert_string_equal(text, "said\nwarned\n");
	assert_int_equal(os_process_wait(&process), 3);
}

static void a_program_that_is_not_there_is_an_error(void **state)
{
	char *const       argv[] = { "kvstrata-no-such-program", NULL };
	struct os_process process = { .pid = 77 };

	(void)state;
	assert_int_equal(os_process_start(argv, &process), -ENOENT);
	assert_int_equal(process.pid, 77);
}

static void a_program_can_be_ended(void **state)
{
	char *const       argv[] = { "cat", "/dev/zero", NULL };
	struct os_process process;
	char              bytes[16];

	(void)state;
	assert_int_equal(os_process_start(argv, &process), 0);
	assert_true(os_process_read(&process, bytes, sizeof(bytes)) > 0);
	os_process_kill(&process);
	assert_int_equal(process.pid, 0);
	os_process_kill(&process);
}

static void a_connection_that_nobody_takes_is_refused(void **state)
{
	char port[16];

	(void)state;
	snprintf(port, sizeof(port), "%d", os_socket_free_port());
	assert_int_equal(os_socket_connect("127.0.0.1", port, os_now_ns() + 1000 * MS), -ECONNREFUSED);
	assert_int_equal(os_socket_connect("no.such.host.invalid", port, os_now_ns() + 1000 * MS) < 0, 1);
	assert_int_equal(os_socket_connect_unix("/nowhere/at/all", 0), -ENOENT);
}

static void a_path_longer_than_an_address_is_refused(void **state)
{
	char path[200];

	(void)state;
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(os_socket_connect_unix(path, 0), -ENAMETOOLONG);
}

static void bytes_move_and_the_end_is_told(void **state)
{
	char         out[] = "ab", in[8];
	struct iovec parts[2] = { { out, 1 }, { out + 1, 1 } };
	struct iovec room = { in, sizeof(in) };
	int          ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_true(os_socket_is_quiet(ends[1]));
	assert_int_equal(os_socket_readv(ends[1], &room, 1), -EAGAIN);
	assert_int_equal(os_socket_writev(ends[0], parts, 2), 2);
	assert_false(os_socket_is_quiet(ends[1]));
	assert_int_equal(os_socket_readv(ends[1], &room, 1), 2);
	assert_memory_equal(in, "ab", 2);
	close(ends[0]);
	assert_false(os_socket_is_quiet(ends[1]));
	assert_int_equal(os_socket_readv(ends[1], &room, 1), -ECONNRESET);
	/* No signal ends the test. */
	assert_int_equal(os_socket_writev(ends[1], parts, 2), -EPIPE);
	close(ends[1]);
}

static void a_wait_ends_with_an_event_or_its_deadline(void **state)
{
	struct os_wait waits[2] = { { .to_read = true }, { .to_read = true, .to_write = true } };
	int            ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	waits[0].fd = ends[0];
	waits[1].fd = ends[1];
	assert_int_equal(os_wait(waits, 1, os_now_ns() + MS), 0);
	assert_false(waits[0].ready);
	assert_int_equal(os_wait(waits, 2, os_now_ns() + 60000 * MS), 1);
	assert_false(waits[0].ready);
	assert_true(waits[1].ready);
	close(ends[1]);
	assert_int_equal(os_wait(waits, 1, os_now_ns() + 60000 * MS), 1);
	assert_true(waits[0].ready);
	close(ends[0]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_is_heard_and_its_status_known),
		cmocka_unit_test(a_program_that_is_not_there_is_an_error),
		cmocka_unit_test(a_program_can_be_ended),
		cmocka_unit_test(a_connection_that_nobody_takes_is_refused),
		cmocka_unit_test(a_path_longer_than_an_address_is_refused),
		cmocka_unit_test(bytes_move_and_the_end_is_told),
		cmocka_unit_test(a_wait_ends_with_an_event_or_its_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
