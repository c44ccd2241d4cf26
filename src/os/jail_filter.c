/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a confined child is refused: a table, made into a program for seccomp.
 *
 * Calls that leave the kernel with our pages when the thread has gone; that make another process with
 * them, or hand them to one; and those that are newer than this table.  A call that the kernel works
 * on only while a thread is inside is none of them: read, write, send and receive copy.
 */
#include "os/jail_parts.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/err.h"

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#ifdef MACHINE

/* One that older headers lack has the same number on every machine. */
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SO_ZEROCOPY
#define SO_ZEROCOPY 60
#endif
#ifndef MSG_ZEROCOPY
#define MSG_ZEROCOPY 0x4000000
#endif

/*
 * The last call that was judged: file_setattr, Linux 6.17.  Behind it lie those that nobody has
 * looked at, and the second table of x86_64 machines, which begins at bit 30.
 */
#define JUDGED_MAX 469

/* Asked for by nobody but terminals, and by everybody for sockets: FIONBIO, SIOCGIFCONF... */
#define IOCTL_KIND      0xff00
#define IOCTL_TERMINALS 0x5400
#define IOCTL_SOCKETS   0x8900

#define CONDITIONS_MAX 3

/* (argument & mask) == value, or not. */
struct condition {
	int      argument;
	uint32_t mask, value;
	bool     differs;
};

struct refusal {
	int              call;
	int              code;
	int              condition_count; /* all of them hold; 0: always */
	struct condition conditions[CONDITIONS_MAX];
};

#define WHOLE UINT32_MAX

#define ALWAYS(name, code)        { SYS_##name, code, 0, { { 0, 0, 0, false } } }
#define WITH(name, code, n, bits) { SYS_##name, code, 1, { { n, bits, 0, true } } }
#define WITHOUT(name, code, n, bits) { SYS_##name, code, 1, { { n, bits, 0, false } } }

static const struct refusal refusals[] = {
	/* The kernel's own queues: what is in them goes on when nobody waits for it. */
	ALWAYS(io_uring_setup, ENOSYS),
	ALWAYS(io_uring_enter, ENOSYS),
	ALWAYS(io_uring_register, ENOSYS),
	ALWAYS(io_setup, ENOSYS),
	ALWAYS(io_submit, ENOSYS),
	ALWAYS(io_destroy, ENOSYS),
	ALWAYS(io_cancel, ENOSYS),
	ALWAYS(io_getevents, ENOSYS),
	ALWAYS(io_pgetevents, ENOSYS),

	/* Pages themselves on their way, not copies.  ENOSYS is what programs copy after. */
	ALWAYS(splice, ENOSYS),
	ALWAYS(vmsplice, ENOSYS),
	ALWAYS(tee, ENOSYS),
	ALWAYS(sendfile, ENOSYS),
	ALWAYS(copy_file_range, ENOSYS),
	WITH(sendto, EPERM, 3, MSG_ZEROCOPY),
	WITH(sendmsg, EPERM, 2, MSG_ZEROCOPY),
	WITH(sendmmsg, EPERM, 3, MSG_ZEROCOPY),
	{ SYS_setsockopt, EPERM, 2, { { 1, WHOLE, SOL_SOCKET, 0 }, { 2, WHOLE, SO_ZEROCOPY, 0 } } },
	/* TLS of the kernel encrypts and decrypts in place, by whatever engine it has. */
	{ SYS_setsockopt, EPERM, 2, { { 1, WHOLE, IPPROTO_TCP, 0 }, { 2, WHOLE, TCP_ULP, 0 } } },

	/*
	 * Direct I/O waits for its end on a disk, but a killed thread leaves that of a network file
	 * system, NFS's, with the server's answer on its way.  openat2's flags cannot be seen here.
	 */
#ifdef SYS_open
	WITH(open, EINVAL, 1, O_DIRECT),
#endif
	WITH(openat, EINVAL, 2, O_DIRECT),
	ALWAYS(openat2, ENOSYS),
	ALWAYS(open_by_handle_at, EPERM),
	{ SYS_fcntl, EINVAL, 2, { { 1, WHOLE, F_SETFL, 0 }, { 2, O_DIRECT, 0, true } } },

	/* Another process that has our memory, gets it, or gives us its own. */
#ifdef SYS_fork
	ALWAYS(fork, EPERM),
	ALWAYS(vfork, EPERM),
#endif
	WITHOUT(clone, EPERM, 0, CLONE_THREAD),
	/* Its flags cannot be seen; the C library falls back to clone. */
	ALWAYS(clone3, ENOSYS),
	ALWAYS(ptrace, EPERM),
	ALWAYS(process_vm_readv, EPERM),
	ALWAYS(process_vm_writev, EPERM),
	ALWAYS(process_madvise, EPERM),
	ALWAYS(pidfd_getfd, EPERM),
	ALWAYS(userfaultfd, EPERM),
	ALWAYS(bpf, EPERM),
	ALWAYS(perf_event_open, EPERM),
	/*
	 * Unix sockets hand descriptors on, packet and XDP sockets have rings, RDS and SMC are
	 * remote memory, ALG takes pages.  A pair of Unix streams stays in the family; one end of a
	 * pair of datagrams (and raw is another word for it) may still send to any address.
	 */
	{ SYS_socketpair, EAFNOSUPPORT, 1, { { 1, SOCK_DGRAM, 0, true } } },
	{ SYS_socket, EAFNOSUPPORT, 3,
	  { { 0, WHOLE, AF_INET, true },
	    { 0, WHOLE, AF_INET6, true },
	    { 0, WHOLE, AF_NETLINK, true } } },
	/* What steers devices that move memory by themselves: RDMA, GPUs, KVM, vhost, VFIO, loop. */
	{ SYS_ioctl, ENOTTY, 2,
	  { { 1, IOCTL_KIND, IOCTL_TERMINALS, true }, { 1, IOCTL_KIND, IOCTL_SOCKETS, true } } },
};

struct writer {
	struct sock_filter *code;
	int                 used;
};

static void write_one(struct writer *writer, uint16_t what, uint8_t yes, uint8_t no, uint32_t value)
{
	KVS_ASSERT(writer->used < JAIL_FILTER_MAX);
	writer->code[writer->used++] = (struct sock_filter){ what, yes, no, value };
}

static void load(struct writer *writer, size_t offset)
{
	write_one(writer, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void answer(struct writer *writer, int code)
{
	write_one(writer, BPF_RET | BPF_K, 0, 0,
		  code ? SECCOMP_RET_ERRNO | (uint32_t)code : SECCOMP_RET_ALLOW);
}

/* What the kernel reads as an int is the low half of an argument, the first one on our machines. */
static size_t argument_offset(int argument)
{
	return offsetof(struct seccomp_data, args) + (size_t)argument * sizeof(uint64_t);
}

static void refuse(struct writer *writer, const struct refusal *refusal)
{
	/* To the next refusal: over three a condition, and the answer. */
	uint8_t left = (uint8_t)(3 * refusal->condition_count + 1);
	int     i;

	load(writer, offsetof(struct seccomp_data, nr));
	write_one(writer, BPF_JMP | BPF_JEQ | BPF_K, 0, left, (uint32_t)refusal->call);
	for (i = 0; i < refusal->condition_count; i++) {
		const struct condition *condition = &refusal->conditions[i];

		left -= 3;
		load(writer, argument_offset(condition->argument));
		write_one(writer, BPF_ALU | BPF_AND | BPF_K, 0, 0, condition->mask);
		write_one(writer, BPF_JMP | BPF_JEQ | BPF_K, condition->differs ? left : 0,
			  condition->differs ? 0 : left, condition->value);
	}
	answer(writer, refusal->code);
}

int jail_filter_build(struct sock_filter code[JAIL_FILTER_MAX])
{
	struct writer writer = { code, 0 };
	size_t        i;

	load(&writer, offsetof(struct seccomp_data, arch));
	write_one(&writer, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, MACHINE);
	answer(&writer, ENOSYS);
	load(&writer, offsetof(struct seccomp_data, nr));
	write_one(&writer, BPF_JMP | BPF_JGT | BPF_K, 0, 1, JUDGED_MAX);
	answer(&writer, ENOSYS);
	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		refuse(&writer, &refusals[i]);
	answer(&writer, 0);
	return writer.used;
}

#else

int jail_filter_build(struct sock_filter code[JAIL_FILTER_MAX])
{
	(void)code;
	return 0;
}

#endif
