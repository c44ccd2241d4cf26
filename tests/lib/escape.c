/* SPDX-License-Identifier: Apache-2.0 */
/* See escape.h. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "cell.h"

/* Sources and ends for whatever moves bytes. */
static int     pipes[2][2], sockets[2];
static uint8_t bytes[64];

static void open_ends(void)
{
	KVS_ASSERT(pipe(pipes[0]) == 0 && pipe(pipes[1]) == 0);
	KVS_ASSERT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	KVS_ASSERT(write(pipes[0][1], bytes, sizeof(bytes)) == sizeof(bytes));
}

/* What a fork that worked leaves: nobody. */
static long childless(long pid)
{
	if (pid == 0)
		_exit(0);
	return pid;
}

static long try_clone(void)
{
	return childless(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0));
}

static long try_fork(void)
{
	return childless(fork());
}

static long try_vfork(void)
{
	const pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	return pid;
}

static long try_clone3(void)
{
	uint64_t args[8] = { 0, 0, 0, 0, SIGCHLD };

	return childless(syscall(435, args, sizeof(args)));
}

static long try_ring(int call)
{
	uint64_t params[32] = { 0 };

	return call == 425 ? syscall(425, 4, params) : syscall(call, -1, 0, 0, 0, NULL, 0);
}

static long try_ring_setup(void)
{
	return try_ring(425);
}

static long try_ring_enter(void)
{
	return try_ring(426);
}

static long try_ring_register(void)
{
	return try_ring(427);
}

static long try_aio_setup(void)
{
	unsigned long context = 0;

	return syscall(SYS_io_setup, 1, &context);
}

static long try_aio_submit(void)
{
	return syscall(SYS_io_submit, 0, 0, NULL);
}

static long try_splice(void)
{
	return splice(pipes[0][0], NULL, pipes[1][1], NULL, 8, SPLICE_F_NONBLOCK);
}

static long try_vmsplice(void)
{
	struct iovec part = { bytes, sizeof(bytes) };

	return vmsplice(pipes[1][1], &part, 1, SPLICE_F_NONBLOCK);
}

static long try_tee(void)
{
	return tee(pipes[0][0], pipes[1][1], 8, SPLICE_F_NONBLOCK);
}

static long try_sendfile(void)
{
	return syscall(SYS_sendfile, sockets[0], CELL_FD, NULL, 8);
}

static long try_copy_file_range(void)
{
	off_t from = 0, to = 64;

	return copy_file_range(CELL_FD, &from, CELL_FD, &to, 8, 0);
}

static long try_zero_copy(void)
{
	const int on = 1;
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	return setsockopt(fd, SOL_SOCKET, 60, &on, sizeof(on));
}

#define ZERO_COPY 0x4000000

static long try_zero_copy_send(void)
{
	return send(sockets[0], bytes, sizeof(bytes), ZERO_COPY);
}

static long try_zero_copy_message(void)
{
	struct iovec  part = { bytes, sizeof(bytes) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	return sendmsg(sockets[0], &message, ZERO_COPY);
}

static long try_zero_copy_messages(void)
{
	struct iovec   part = { bytes, sizeof(bytes) };
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };

	return sendmmsg(sockets[0], &message, 1, ZERO_COPY);
}

static long try_kernel_tls(void)
{
	return setsockopt(socket(AF_INET, SOCK_STREAM, 0), IPPROTO_TCP, TCP_ULP, "tls", 3);
}

static long try_direct_open(void)
{
	return open("/proc/self/exe", O_RDONLY | O_DIRECT);
}

static long try_direct_later(void)
{
	return fcntl(pipes[0][0], F_SETFL, O_DIRECT);
}

static long try_open_by_struct(void)
{
	uint64_t how[3] = { O_RDONLY };

	return syscall(437, AT_FDCWD, "/", how, sizeof(how));
}

static long try_vm_write(void)
{
	struct iovec from = { bytes, 8 }, to = { bytes + 8, 8 };

	return process_vm_writev(getpid(), &from, 1, &to, 1, 0);
}

static long try_vm_read(void)
{
	struct iovec from = { bytes, 8 }, to = { bytes + 8, 8 };

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0);
}

static long try_ptrace(void)
{
	return ptrace(PTRACE_PEEKDATA, getpid(), NULL, NULL);
}

static long try_take_descriptor(void)
{
	return syscall(438, -1, 0, 0);
}

static long try_user_faults(void)
{
	return syscall(SYS_userfaultfd, -1);
}

static long try_unix_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

/* Each of its ends may send descriptors to whatever address. */
static long try_datagram_pair(void)
{
	int pair[2];

	return socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair);
}

static long try_raw_pair(void)
{
	int pair[2];

	return socketpair(AF_UNIX, SOCK_RAW, 0, pair);
}

static long try_packet_socket(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0);
}

static long try_device(void)
{
	/* RDMA's own; what a memfd answers itself is ENOTTY, too. */
	return ioctl(sockets[0], 0xc0181b01, bytes);
}

/* Behind all that exist, in the first table and in x86_64's second. */
static long try_unborn(void)
{
	return syscall(0x3fff0000);
}

static long try_second_table(void)
{
	return syscall(0x40000000 + SYS_getpid);
}

const struct escape escapes[ESCAPES] = {
	{ "fork", try_fork, EPERM, true },
	{ "vfork", try_vfork, EPERM, true },
	{ "clone", try_clone, EPERM, true },
	{ "clone3", try_clone3, ENOSYS, false },
	{ "io_uring_setup", try_ring_setup, ENOSYS, false },
	{ "io_uring_enter", try_ring_enter, ENOSYS, false },
	{ "io_uring_register", try_ring_register, ENOSYS, false },
	{ "io_setup", try_aio_setup, ENOSYS, false },
	{ "io_submit", try_aio_submit, ENOSYS, false },
	{ "splice", try_splice, ENOSYS, true },
	{ "vmsplice", try_vmsplice, ENOSYS, true },
	{ "tee", try_tee, ENOSYS, true },
	{ "sendfile", try_sendfile, ENOSYS, true },
	{ "copy_file_range", try_copy_file_range, ENOSYS, true },
	{ "SO_ZEROCOPY", try_zero_copy, EPERM, true },
	{ "sendto, MSG_ZEROCOPY", try_zero_copy_send, EPERM, true },
	{ "sendmsg, MSG_ZEROCOPY", try_zero_copy_message, EPERM, true },
	{ "sendmmsg, MSG_ZEROCOPY", try_zero_copy_messages, EPERM, true },
	{ "TCP_ULP", try_kernel_tls, EPERM, false },
	{ "open, O_DIRECT", try_direct_open, EINVAL, false },
	{ "fcntl, O_DIRECT", try_direct_later, EINVAL, true },
	{ "openat2", try_open_by_struct, ENOSYS, false },
	{ "process_vm_writev", try_vm_write, EPERM, false },
	{ "process_vm_readv", try_vm_read, EPERM, false },
	{ "ptrace", try_ptrace, EPERM, false },
	{ "pidfd_getfd", try_take_descriptor, EPERM, false },
	{ "userfaultfd", try_user_faults, EPERM, false },
	{ "socket, AF_UNIX", try_unix_socket, EAFNOSUPPORT, true },
	{ "socketpair, datagrams", try_datagram_pair, EAFNOSUPPORT, true },
	{ "socketpair, raw", try_raw_pair, EAFNOSUPPORT, true },
	{ "socket, AF_PACKET", try_packet_socket, EAFNOSUPPORT, false },
	{ "ioctl", try_device, ENOTTY, false },
	{ "a call to come", try_unborn, ENOSYS, false },
	{ "x32", try_second_table, ENOSYS, false },
};

void escape_try_all(int ret_codes[ESCAPES])
{
	int i;

	open_ends();
	for (i = 0; i < ESCAPES; i++)
		ret_codes[i] = escapes[i].make() < 0 ? errno : 0;
}
