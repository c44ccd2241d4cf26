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
#include <fcntl.h>

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

static void a_program_reads_what_it_is_given_until_the_end(void **state)
{
	char *const       argv[] = { "sh", "-c", "read a; echo \"$a\"; read b || exit 5", NULL };
	struct os_process process;
	char              text[16];

	(void)state;
	assert_int_equal(os_process_start_fed(argv, &process), 0);
	assert_int_equal(os_process_write(&process, "fed\n", 4), 0);
	assert_int_equal(os_process_read(&process, text, sizeof(text)), 4);
	assert_memory_equal(text, "fed\n", 4);
	/* Nothing more comes, once somebody waits for its end. */
	assert_int_equal(os_process_wait(&process), 5);
	assert_int_equal(process.input, -1);
}

static void a_program_that_reads_nothing_any_more_is_an_error(void **state)
{
	char *const       argv[] = { "sh", "-c", "exec <&-; echo closed", NULL };
	struct os_process process;
	char              text[16];

	(void)state;
	assert_int_equal(os_process_start_fed(argv, &process), 0);
	assert_int_equal(os_process_read(&process, text, sizeof(text)), 7);
	assert_int_equal(os_process_write(&process, "x", 1), -EPIPE);
	os_process_kill(&process);
}

/* As the kernel tells it: 'T' for one that stands still. */
static char state_of(const struct os_process *process)
{
	char  path[64], letter = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)process->pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &letter), 1);
	fclose(file);
	return letter;
}

static void a_program_stands_still_and_goes_on(void **state)
{
	char *const       argv[] = { "cat", NULL };
	struct os_process process;
	char              byte;

	(void)state;
	assert_int_equal(os_process_start_fed(argv, &process), 0);
	os_process_pause(&process);
	while (state_of(&process) != 'T')
		os_relax();
	assert_int_equal(os_process_write(&process, "x", 1), 0);
	os_process_resume(&process);
	assert_int_equal(os_process_read(&process, &byte, 1), 1);
	/* One that stands still can be ended, too. */
	os_process_pause(&process);
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

static void this_machine_has_a_name(void **state)
{
	char name[256];

	(void)state;
	assert_int_equal(os_socket_host_name(name, sizeof(name)), 0);
	assert_true(strlen(name) > 0);
	assert_int_equal(os_socket_host_name(name, strlen(name)), -ENAMETOOLONG);
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

/* The descriptor that came with the bytes; -1 without. */
static int receive_fd(int from, char *text, size_t room)
{
	struct iovec part = { text, room };
	union {
		struct cmsghdr header;
		char           bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr   message = { .msg_iov = &part,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	int             fd = -1;

	assert_true(recvmsg(from, &message, MSG_CMSG_CLOEXEC) > 0);
	header = CMSG_FIRSTHDR(&message);
	if (header)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static void a_descriptor_goes_to_the_peer(void **state)
{
	char text[4], in[4];
	int  ends[2], pipe_ends[2], fd;

	(void)state;
	assert_int_equal(os_socket_pair(ends), 0);
	assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
	assert_int_equal(os_socket_send_fd(ends[0], "abc", 3, pipe_ends[1]), 3);
	fd = receive_fd(ends[1], text, sizeof(text));
	assert_memory_equal(text, "abc", 3);
	assert_true(fd >= 0);
	close(pipe_ends[1]);
	assert_int_equal(write(fd, "xyz", 3), 3);
	assert_int_equal(read(pipe_ends[0], in, sizeof(in)), 3);
	assert_memory_equal(in, "xyz", 3);
	close(fd);
	close(pipe_ends[0]);
	assert_int_equal(os_socket_send_fd(ends[0], "a", 1, pipe_ends[0]), -EBADF);
	os_close(ends[1]);
	/* No signal ends the test. */
	assert_int_equal(os_socket_send_fd(ends[0], "a", 1, ends[0]), -EPIPE);
	os_close(ends[0]);
}

static void ours_of_a_pair_never_blocks_and_none_is_inherited(void **state)
{
	char byte;
	int  ends[2], i;

	(void)state;
	assert_int_equal(os_socket_pair(ends), 0);
	assert_int_equal(read(ends[0], &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(fcntl(ends[i], F_GETFD), FD_CLOEXEC);
	while (os_socket_send_fd(ends[0], &ends, sizeof(ends), STDERR_FILENO) > 0)
		;
	assert_int_equal(os_socket_send_fd(ends[0], &ends, 1, STDERR_FILENO), -EAGAIN);
	os_close(ends[0]);
	os_close(ends[1]);
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
		cmocka_unit_test(a_program_reads_what_it_is_given_until_the_end),
		cmocka_unit_test(a_program_that_reads_nothing_any_more_is_an_error),
		cmocka_unit_test(a_program_stands_still_and_goes_on),
		cmocka_unit_test(a_connection_that_nobody_takes_is_refused),
		cmocka_unit_test(a_path_longer_than_an_address_is_refused),
		cmocka_unit_test(this_machine_has_a_name),
		cmocka_unit_test(bytes_move_and_the_end_is_told),
		cmocka_unit_test(a_descriptor_goes_to_the_peer),
		cmocka_unit_test(ours_of_a_pair_never_blocks_and_none_is_inherited),
		cmocka_unit_test(a_wait_ends_with_an_event_or_its_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
