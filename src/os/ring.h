/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_uring: many transfers of files in flight, one system call to hand over and to wait.
 *
 * A transfer is queued, handed over by the next submit or reap, and known to be over when its completion
 * was reaped: until then its memory is the kernel's.  What is queued or in flight never exceeds the
 * ring's entries, so completions always have room; the caller asks os_ring_room() first.
 *
 * Limits  32768 entries; 8 registered files; 16384 registered slices of at most 1 GiB.  Nothing is
 *         allocated but by open and register.
 * Thread  The one that opened the ring, for every call but close; then nothing is in flight.
 */
#ifndef OS_RING_H
#define OS_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* A transfer's length: the kernel cuts what is longer to whole pages below 2 GiB. */
#define OS_RING_BYTES_MAX (1u << 30)
#define OS_RING_FILES_MAX 8

struct os_ring;

struct os_ring_done {
	uint64_t tag;
	int32_t  result; /* bytes moved, which may be fewer than asked; 0 for a sync; or -errno */
};

/**
 * A ring for at most `entries` transfers at a time.
 *
 * Errors  -ENOSYS  no io_uring, or one older than Linux 5.11.
 *         -EPERM   forbidden, as in most containers.
 *         -ENOMEM, -EINVAL, -EMFILE...
 */
int  os_ring_open(uint32_t entries, struct os_ring **ret_ring);
void os_ring_close(struct os_ring *ring); /* NULL is fine; nothing is in flight */

/*
 * Later transfers of fd skip the look-up of its file.  The file stays open until the ring is closed, and
 * fd's number means it that long.  -ENOSPC after OS_RING_FILES_MAX.
 */
int os_ring_register_file(struct os_ring *ring, int fd);
/*
 * Pins memory, once for a ring: a transfer that lies wholly in one slice skips the look-up of its pages.
 * -ENOMEM beyond the limit of lockable memory; -EOPNOTSUPP for a mapping of a file on disk.
 * The memory stays mapped until the ring is closed.
 */
int os_ring_register_memory(struct os_ring *ring, const struct iovec *slices, uint32_t count);

uint32_t os_ring_room(const struct os_ring *ring);      /* how many more may be queued */
uint32_t os_ring_in_flight(const struct os_ring *ring); /* queued or submitted, and not reaped */

/*
 * Queue one; there is room.  The memory is held until its completion is reaped.
 * At most OS_RING_BYTES_MAX.
 */
void os_ring_read(struct os_ring *ring, int fd, void *buffer, size_t bytes, uint64_t offset,
		  uint64_t tag);
void os_ring_write(struct os_ring *ring, int fd, const void *buffer, size_t bytes, uint64_t offset,
		   uint64_t tag);
/* Like os_file_sync(), of all writes whose completion was reaped before. */
void os_ring_sync(struct os_ring *ring, int fd, uint64_t tag);

/* Hand over what is queued: 0 or -errno.  What the kernel has no room for stays queued for the next call. */
int os_ring_submit(struct os_ring *ring);

/**
 * Submit, and take completions.
 *
 * Waits    until min_wait are there, or as many as are in flight when that is fewer, or timeout_ns
 *          passed.  min_wait is at most max; 0 never waits.
 * Returns  How many, at most max; the others stay for the next call.  -errno only when none is there:
 *          everything is still queued or in flight then.
 */
int os_ring_reap(struct os_ring *ring, struct os_ring_done *ret_done, uint32_t max,
		 uint32_t min_wait, uint64_t timeout_ns);

#endif
