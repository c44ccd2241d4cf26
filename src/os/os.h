/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operating system: the only room that makes system calls.
 *
 * Thin wrappers with our error convention (0 or -errno), EINTR handled, and the few policies that
 * every caller wants: close-on-exec, full-length reads and writes, bounded waits.  The only
 * global state is the note of an interrupt, and a test's hook (os/hook.h).
 */
#ifndef OS_OS_H
#define OS_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* --- clock: monotonic, nanoseconds ------------------------------------------------------------ */
uint64_t os_now_ns(void);
/* The time that long from now; the last that the kernel takes, INT64_MAX, when it lies beyond. */
uint64_t os_until_ns(uint64_t timeout_ns);
/* CPU time of the calling thread, and of the process. */
uint64_t os_thread_cpu_ns(void);
uint64_t os_process_cpu_ns(void);
/* Days since 1970-01-01 UTC, by a clock that may be set: to date things, not to measure. */
uint64_t os_wall_day(void);

/* --- threads ---------------------------------------------------------------------------------- */
/*
 * name: at most 15 characters, shown by ps and gdb.  All signals are blocked in the new thread:
 * signals belong to the host.
 */
int  os_thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *arg);
void os_thread_join(pthread_t thread);
/* Instead: nobody will wait for its end. */
void os_thread_detach(pthread_t thread);

/* Inside a loop that watches memory: gives the processor's other half the room. */
static inline void os_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

struct os_mutex {
	pthread_mutex_t mutex;
};
struct os_cond {
	pthread_cond_t cond; /* on the monotonic clock */
};
void os_mutex_init(struct os_mutex *mutex);
void os_mutex_fini(struct os_mutex *mutex);
void os_mutex_lock(struct os_mutex *mutex);
void os_mutex_unlock(struct os_mutex *mutex);
void os_cond_init(struct os_cond *cond);
void os_cond_fini(struct os_cond *cond);
/* False when timeout_ns passed first; may wake spuriously. */
bool os_cond_wait(struct os_cond *cond, struct os_mutex *mutex, uint64_t timeout_ns);
void os_cond_signal(struct os_cond *cond);
void os_cond_broadcast(struct os_cond *cond);

/* --- eventfd and epoll ------------------------------------------------------------------------ */
int  os_eventfd(void); /* descriptor or -errno; non-blocking */
void os_eventfd_signal(int fd);
bool os_eventfd_drain(int fd); /* true when it had been signalled */
int  os_epoll(void);
int  os_epoll_add(int epoll_fd, int fd, uint64_t tag);
void os_epoll_remove(int epoll_fd, int fd); /* one that was added, and is open */
/* Ready tags, at most count; 0 after timeout_ns.  A sleep is never unbounded. */
int  os_epoll_wait(int epoll_fd, uint64_t *ret_tags, int count, uint64_t timeout_ns);
/*
 * True as soon as one of count descriptors (-1: none) is readable; false after timeout_ns, weeks at
 * most, or a signal.
 */
bool os_wait_readable(const int *fds, int count, uint64_t timeout_ns);
void os_close(int fd); /* ignores -1 */

/* --- stream sockets: never block, never raise SIGPIPE ----------------------------------------- */
/*
 * A connected descriptor, or -errno; -ETIMEDOUT at deadline_ns.  A name is resolved first, which the
 * resolver's own time-outs bound, not the deadline; every address of it is tried, IPv6 and IPv4.
 */
int os_socket_connect(const char *host, const char *port, uint64_t deadline_ns);
int os_socket_connect_unix(const char *path, uint64_t deadline_ns);
/* Bytes moved, at least one; -EAGAIN when none can be now; -ECONNRESET at the end of the stream. */
ssize_t os_socket_readv(int fd, const struct iovec *parts, int count);
ssize_t os_socket_writev(int fd, const struct iovec *parts, int count);
/* The peer has neither sent anything nor hung up. */
bool os_socket_is_quiet(int fd);
/* Two connected ends of a Unix stream: ours, and one that blocks, for a process that we start. */
int os_socket_pair(int ret_ends[2]);
/* At least one byte, and a descriptor that the peer gets a copy of; -EAGAIN as os_socket_writev(). */
ssize_t os_socket_send_fd(int fd, const void *bytes, size_t count, int sent);
/* A TCP port of the loopback that nobody has now; somebody else may be quicker.  -errno. */
int os_socket_free_port(void);
/* This machine's name, as others may resolve it; -errno, -ENAMETOOLONG where it does not fit. */
int os_socket_host_name(char *ret_name, size_t room);
/* What a kernel buffer holds in each direction; a hint. */
void os_socket_buffers(int fd, int bytes);

struct os_wait {
	int  fd;
	bool to_read, to_write; /* wanted */
	bool ready;             /* found: one of them, or the stream broke */
};
/* Until one of at most OS_WAITS_MAX is ready or deadline_ns; how many are. */
#define OS_WAITS_MAX 64
int os_wait(struct os_wait *waits, int count, uint64_t deadline_ns);

/* --- pages ------------------------------------------------------------------------------------ */
/* Anonymous, zeroed, page-aligned; -ENOMEM. */
int  os_pages_map(size_t bytes, void **ret_ptr);
/* A memfd of `bytes`, shared mapping.  huge takes hugetlb pages at once; -errno when there are too few. */
int  os_pages_map_shared(const char *name, size_t bytes, bool huge, void **ret_ptr, int *ret_fd);
void os_pages_unmap(void *ptr, size_t bytes);
/* Pages that are there or come later are never swapped; brings none in by itself. */
int  os_pages_lock(void *ptr, size_t bytes);
/* Bring the pages in now, so that no first touch waits or finds no memory: -ENOMEM or -EFAULT then. */
int  os_pages_populate(void *ptr, size_t bytes);
int  os_pages_no_fork(void *ptr, size_t bytes);
int  os_pages_advise_huge(void *ptr, size_t bytes);
/*
 * Whether transparent huge pages can back shared memory on this kernel: its setting allows advice.
 */
bool os_pages_shared_huge(void);
/* Soft limit of lockable memory in bytes; UINT64_MAX when unlimited or when the process may exceed it. */
uint64_t os_memlock_limit(void);
/* Memory this process may have: the machine's, or its container's limit where that is lower. */
uint64_t os_memory_bytes(void);
/*
 * What it may still take before others are swapped or killed for it, free huge pages among it; never
 * more than os_memory_bytes().  A hint: others take memory, too.
 */
uint64_t os_memory_available_bytes(void);
/* Peak resident set of this process in bytes; 0 when unknown. */
uint64_t os_peak_rss_bytes(void);

/* --- shared objects --------------------------------------------------------------------------- */
/* False with the loader's sentence in ret_why. */
bool  os_library_load(const char *path, void **ret_library, char *ret_why, size_t why_bytes);
void *os_library_symbol(void *library, const char *name); /* NULL when there is none */
void  os_library_unload(void *library);

/* --- for programs: what a library may not do to its process ----------------------------------- */
/*
 * First of all: give closed standard descriptors to something that refuses to be read or written,
 * and let a file-size limit be an error instead of a signal.
 */
void os_program_start(void);
/* From now on the first SIGINT or SIGTERM is only noted and the second ends the process at once. */
void os_interrupt_catch(void);
bool os_interrupted(void);

/* --- other programs, for programs ------------------------------------------------------------- */
/* The library, whose host may wait for all children, starts one with os/jail.h. */
struct os_process {
	pid_t pid;
	int   input;  /* its standard input is what os_process_write() gives it; -1: ours */
	int   output; /* its standard output and error: read it, or it may wait for ever */
};
/*
 * Run argv[0], found as a shell finds it; -errno.  It is killed when the calling thread ends, so that
 * a program that dies leaves none behind.
 */
int os_process_start(char *const argv[], struct os_process *ret_process);
int os_process_start_fed(char *const argv[], struct os_process *ret_process);
/* All of it, waiting for who reads it; -EPIPE when nobody will. */
int os_process_write(const struct os_process *process, const void *bytes, size_t count);
/* Some of what it says; 0 at its end; -errno. */
ssize_t os_process_read(const struct os_process *process, void *bytes, size_t room);
/* Wait for its end: the exit status, or 128 and the number of the signal. */
int  os_process_wait(struct os_process *process);
void os_process_kill(struct os_process *process); /* and wait */
/* It stands still where it is, as if its machine did, until it may go on. */
void os_process_pause(const struct os_process *process);
void os_process_resume(const struct os_process *process);

/* --- what a process was started with ----------------------------------------------------------- */
/* NULL when it is not set, or empty, or when the process has more rights than its user. */
const char *os_environment(const char *name);
/* A file of that name beside the running program, else on the PATH; -ENOENT. */
int os_program_find(const char *name, char *ret_path, size_t room);

/* --- files ------------------------------------------------------------------------------------ */
enum os_open_flag {
	OS_CREATE = 1 << 0,
	OS_WRITE = 1 << 1,
	OS_DIRECT = 1 << 2, /* refused with -EINVAL where the file system has no O_DIRECT */
	/* A block device that is mounted, or exclusively somebody else's, is -EBUSY. */
	OS_EXCLUSIVE_DEVICE = 1 << 3,
	OS_NEW = 1 << 4, /* made by this call, or -EEXIST */
	OS_NO_WAIT = 1 << 5, /* a pipe is opened at once, whoever is at its other end */
	OS_APPEND = 1 << 6  /* every write goes to the end, whoever else writes */
};
int os_file_open(const char *path, int flags); /* descriptor or -errno */
/* Whole transfers: 0, or -errno, or -ENODATA when the file ends before `bytes`. */
int os_file_read(int fd, void *buffer, size_t bytes, uint64_t offset);
int os_file_write(int fd, const void *buffer, size_t bytes, uint64_t offset);
/*
 * For input that may be a pipe: one read of what is there, waiting only when nothing is.  *ret_done
 * is 0 at the end.  -EINTR when a signal came first: the caller knows whether it still wants to wait.
 */
int os_stream_read(int fd, void *buffer, size_t bytes, size_t *ret_done);
/* Whether a read would return at once: with bytes, the end, or an error. */
bool os_stream_ready(int fd);
int os_file_size(int fd, uint64_t *ret_bytes);
enum os_file_kind {
	OS_FILE_REGULAR,
	OS_FILE_DEVICE, /* a block device */
	OS_FILE_OTHER   /* a directory, a pipe, a terminal..., or no open descriptor */
};
enum os_file_kind os_file_kind(int fd);
bool              os_file_is_device(int fd); /* a block device */
/* Whether two paths name one file that exists. */
bool os_file_same(const char *a, const char *b);
int os_file_resize(int fd, uint64_t bytes);
/*
 * Back these bytes with storage, so that no write into them lacks room; what they hold stays, and the
 * file grows to their end.  -EOPNOTSUPP where the file system, or a device, cannot.
 */
int os_file_allocate(int fd, uint64_t offset, uint64_t bytes);
int os_file_sync(int fd); /* data and what is needed to read it back */
/* Exclusive lock on the open file description, not waiting: -EWOULDBLOCK when somebody else holds it. */
int os_file_lock(int fd);
/*
 * Give it up, whoever else still has the description: a child that inherited it, or a ring that the kernel
 * takes down some time after it was closed.  No I/O through it is under way.
 */
void os_file_unlock(int fd);
struct os_lock_holder {
	long pid;      /* 0: ended, or not visible from here */
	bool ending;   /* its process is gone, is a zombie, exits, or has been killed */
	bool self;     /* this process, through another open file description */
	char name[32]; /* its command's, printable; empty when it cannot be read */
};
/*
 * Who holds the lock of fd's file, as far as the kernel tells; false when it names nobody.  A hint for a
 * sentence: the holder may change meanwhile, and a lock that was inherited is under its first owner's name.
 */
bool os_file_lock_holder(int fd, struct os_lock_holder *ret_holder);
/*
 * Lock, waiting for those who can no longer want it.  A killed process's writes may land after it was
 * reaped, and its lock is free only then: so while the holder is ending, or cannot be found, this tries
 * again until timeout_ns.  *ret_holder is written with -EWOULDBLOCK only: at once when the holder lives.
 */
int os_file_lock_wait(int fd, uint64_t timeout_ns, struct os_lock_holder *ret_holder);
int os_file_remove(const char *path);

/* --- directories and disks -------------------------------------------------------------------- */
/* A new one that only this user may enter; path ends in XXXXXX, which becomes its name's end. */
int os_directory_make(char *path);
int os_directory_remove(const char *path); /* when it is empty */
/* What this user may still write on the disk that path lies on. */
int os_disk_free(const char *path, uint64_t *ret_bytes);

/* --- randomness ------------------------------------------------------------------------------- */
int os_random(void *bytes, size_t count); /* unpredictable bytes: 0 or -errno */

#endif
