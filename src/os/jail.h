/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process whose end proves that its I/O is over.
 *
 * That holds when nothing works on in its name: no other process has its memory, and the kernel moves
 * its bytes only while one of its threads is inside a system call.  So a confined child is refused, by
 * seccomp and before its program begins:
 *
 *   queues     io_uring, kernel AIO
 *   pages      splice, vmsplice, tee, sendfile, copy_file_range, SO_ZEROCOPY, MSG_ZEROCOPY, TLS of the
 *              kernel, and O_DIRECT, which on network file systems outlives a killed thread
 *   processes  fork, vfork, clone but of threads, ptrace, process_vm_*, process_madvise, pidfd_getfd,
 *              userfaultfd, bpf, perf
 *   sockets    other than IPv4, IPv6, netlink and pairs of streams: Unix sockets hand memory on, others
 *              have rings
 *   devices    every ioctl but of terminals and sockets: RDMA, GPUs, KVM, vhost, VFIO, udmabuf, loop
 *   unknown    calls newer than Linux 6.17, those of other tables, and clone3 and openat2, whose
 *              arguments cannot be seen
 *
 * That looks like a kernel without them, -ENOSYS or the like, and raises no signal; threads and sockets
 * that copy are left.  Its end is seen through a pidfd, which is readable when the last thread has gone
 * and with it the mapping of its memory; so neither a host that ignores SIGCHLD nor one that waits for
 * children not its own takes the proof away.
 *
 * Not covered: what the host gives it (a ring, a connected Unix socket to a third), what another process
 * does to it from outside, and a device that write() alone sets to work.
 *
 * Threads  The child is killed when the thread that started it ends.  kill and wait: any, one at a time.
 */
#ifndef OS_JAIL_H
#define OS_JAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OS_JAIL_FDS_MAX 4

struct os_jail_plan {
	char *const *argv;        /* argv[0] is found as a shell finds it */
	char *const *environment; /* "NAME=value", added to ours; NULL: none */
	int          fds[OS_JAIL_FDS_MAX]; /* become 3, 4, ... there; all others close */
	int          fd_count;
	int          output;      /* its standard output and error; -1: nowhere */
	bool         confine;     /* or fail with -ENOTSUP, where seccomp is missing */
};

struct os_jail {
	pid_t pid;      /* 0: nobody */
	int   fd;       /* the pidfd: readable when it has ended */
	bool  confined; /* its end proves that its I/O is over */
};

/*
 * 0 or -errno: of the exec, too.  Does not copy this process's page tables.  The child has a process group
 * of its own, no signal blocked or ignored, no right to gain rights, and leaves no core.
 */
int os_jail_start(const struct os_jail_plan *plan, struct os_jail *ret_jail);

/* It ends, unless the kernel holds one of its threads.  Harmless when it has ended. */
void os_jail_kill(const struct os_jail *jail);

/* True when it has ended, within timeout_ns; it is reaped then, and *jail is nobody. */
bool os_jail_wait(struct os_jail *jail, uint64_t timeout_ns);

#endif
