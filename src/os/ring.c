/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_uring through liburing.
 *
 * A slot keeps a transfer's tag until it is reaped.  What a test's hook answered (os/hook.h) waits in
 * `answered` and counts as in flight like all others.
 */
#include "os/ring.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "os/hook.h"
#include "os/os.h"

/* The kernel's own limit of IORING_SETUP. */
#define ENTRIES_MAX 32768u

/* Completions that are looked at together. */
#define BATCH_MAX 32u

/* How long a hand-over that the kernel had no room for waits before it is tried again. */
#define RETRY_NS UINT64_C(1000000)

/*
 * Completions are worked off when this thread asks and not between its instructions; that needs Linux
 * 6.1.  TASKRUN_FLAG tells when there is something to ask for.  SUBMIT_ALL: one bad request becomes a
 * completion and does not stop those behind it.
 */
#define QUICK_SETUP                                                                                \
	(IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |         \
	 IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)

/*
 * Without NODROP completions could be lost, without SUBMIT_STABLE the parts would have to outlive the
 * hand-over by more, without EXT_ARG a wait's time would be a request of its own.
 */
#define FEATURES_NEEDED (IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_EXT_ARG)

struct slot {
	uint64_t tag;
	uint32_t next_free;
};

struct os_ring {
	struct io_uring      uring;
	uint32_t             entries;
	uint32_t             in_flight;
	uint32_t             free_slot; /* first of the list; entries: none */
	struct slot         *slots;
	struct os_ring_done *answered; /* by the hook; a ring of `entries` */
	uint32_t             answered_first, answered_count;
	int                  files[OS_RING_FILES_MAX]; /* at their registered number */
	uint32_t             file_count;
	struct iovec        *slices; /* registered, by address; NULL: none */
	uint32_t             slice_count;
};

/* --- open and close --------------------------------------------------------------------------- */

static int set_up(struct io_uring *uring, uint32_t entries, unsigned flags)
{
	struct io_uring_params params = { .flags = flags };
	int                    rc = io_uring_queue_init_params(entries, uring, &params);

	if (rc == 0 && (params.features & FEATURES_NEEDED) != FEATURES_NEEDED) {
		io_uring_queue_exit(uring);
		rc = -ENOSYS;
	}
	return rc;
}

static void free_parts(struct os_ring *ring)
{
	free(ring->slots);
	free(ring->answered);
	free(ring->slices);
	free(ring);
}

static struct os_ring *allocate_parts(uint32_t entries)
{
	struct os_ring *const ring = calloc(1, sizeof(*ring));
	uint32_t              i;

	if (!ring)
		return NULL;
	ring->entries = entries;
	ring->slots = calloc(entries, sizeof(*ring->slots));
	ring->answered = calloc(entries, sizeof(*ring->answered));
	if (!ring->slots || !ring->answered) {
		free_parts(ring);
		return NULL;
	}
	for (i = 0; i < entries; i++)
		ring->slots[i].next_free = i + 1;
	return ring;
}

int os_ring_open(uint32_t entries, struct os_ring **ret_ring)
{
	struct os_ring *ring;
	int             rc;

	if (entries == 0 || entries > ENTRIES_MAX)
		return -EINVAL;
	ring = allocate_parts(entries);
	if (!ring)
		return -ENOMEM;
	rc = set_up(&ring->uring, entries, QUICK_SETUP);
	if (rc == -EINVAL)
		rc = set_up(&ring->uring, entries, 0);
	if (rc < 0) {
		free_parts(ring);
		return rc;
	}
	/* Spares a look-up with every call; a kernel without it works as well. */
	(void)io_uring_register_ring_fd(&ring->uring);
	*ret_ring = ring;
	return 0;
}

void os_ring_close(struct os_ring *ring)
{
	if (!ring)
		return;
	KVS_ASSERT_CMP(ring->in_flight, ==, 0);
	/*
	 * The kernel takes a ring down some time after it was closed, and until then keeps its files open
	 * and its memory pinned.  Only the ring's own thread may let go earlier: to any other, as when a
	 * store closes its lanes, this is refused.  So whoever locked a file unlocks it himself.
	 */
	if (ring->file_count > 0)
		(void)io_uring_unregister_files(&ring->uring);
	if (ring->slices)
		(void)io_uring_unregister_buffers(&ring->uring);
	io_uring_queue_exit(&ring->uring);
	free_parts(ring);
}

/* --- files and memory that the kernel knows --------------------------------------------------- */

int os_ring_register_file(struct os_ring *ring, int fd)
{
	int      none[OS_RING_FILES_MAX];
	uint32_t i;
	int      rc;

	if (fd < 0)
		return -EBADF;
	if (ring->file_count == OS_RING_FILES_MAX)
		return -ENOSPC;
	if (ring->file_count == 0) {
		for (i = 0; i < OS_RING_FILES_MAX; i++)
			none[i] = -1;
		rc = io_uring_register_files(&ring->uring, none, OS_RING_FILES_MAX);
		/* Left by a call that failed below. */
		if (rc < 0 && rc != -EBUSY)
			return rc;
	}
	rc = io_uring_register_files_update(&ring->uring, ring->file_count, &fd, 1);
	if (rc < 0)
		return rc;
	ring->files[ring->file_count++] = fd;
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const uintptr_t first = (uintptr_t)((const struct iovec *)a)->iov_base;
	const uintptr_t second = (uintptr_t)((const struct iovec *)b)->iov_base;

	return (first > second) - (first < second);
}

int os_ring_register_memory(struct os_ring *ring, const struct iovec *slices, uint32_t count)
{
	struct iovec *sorted;
	int           rc;

	if (ring->slices)
		return -EBUSY;
	if (count == 0)
		return -EINVAL;
	sorted = calloc(count, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, slices, count * sizeof(*sorted));
	/* In this order the place of a slice is its registered number. */
	qsort(sorted, count, sizeof(*sorted), by_address);
	rc = io_uring_register_buffers(&ring->uring, sorted, count);
	if (rc < 0) {
		free(sorted);
		return rc;
	}
	ring->slices = sorted;
	ring->slice_count = count;
	return 0;
}

/* The registered number of the slice that holds all of it; slice_count when none does. */
static uint32_t find_slice(const struct os_ring *ring, const void *buffer, size_t bytes)
{
	const uintptr_t at = (uintptr_t)buffer;
	uint32_t        low = 0, high = ring->slice_count;

	/* The last that begins at or before it. */
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if ((uintptr_t)ring->slices[middle].iov_base <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low > 0) {
		const struct iovec *const slice = &ring->slices[low - 1];
		const uintptr_t           from = at - (uintptr_t)slice->iov_base;

		if (from < slice->iov_len && bytes <= slice->iov_len - from)
			return low - 1;
	}
	return ring->slice_count;
}

/* --- queueing --------------------------------------------------------------------------------- */

uint32_t os_ring_room(const struct os_ring *ring)
{
	return ring->entries - ring->in_flight;
}

uint32_t os_ring_in_flight(const struct os_ring *ring)
{
	return ring->in_flight;
}

static void keep_answer(struct os_ring *ring, uint64_t tag, int64_t result)
{
	const uint32_t at = (ring->answered_first + ring->answered_count) % ring->entries;

	KVS_ASSERT_CMP(ring->answered_count, <, ring->entries);
	ring->answered[at] = (struct os_ring_done){ .tag = tag, .result = (int32_t)result };
	ring->answered_count++;
}

static struct slot *take_slot(struct os_ring *ring, uint64_t tag)
{
	struct slot *const slot = &ring->slots[ring->free_slot];

	KVS_ASSERT_CMP(ring->free_slot, <, ring->entries);
	ring->free_slot = slot->next_free;
	slot->tag = tag;
	return slot;
}

static void aim(struct os_ring *ring, struct io_uring_sqe *sqe, int fd)
{
	uint32_t i;

	for (i = 0; i < ring->file_count; i++) {
		if (ring->files[i] == fd) {
			sqe->fd = (int)i;
			sqe->flags |= IOSQE_FIXED_FILE;
			return;
		}
	}
}

static void prepare_transfer(struct os_ring *ring, struct io_uring_sqe *sqe, const struct os_io *io)
{
	const uint32_t slice = find_slice(ring, io->buffer, io->bytes);
	const unsigned bytes = (unsigned)io->bytes;

	if (slice < ring->slice_count && io->kind == OS_IO_READ)
		io_uring_prep_read_fixed(sqe, io->fd, io->buffer, bytes, io->offset, (int)slice);
	else if (slice < ring->slice_count)
		io_uring_prep_write_fixed(sqe, io->fd, io->buffer, bytes, io->offset, (int)slice);
	else if (io->kind == OS_IO_READ)
		io_uring_prep_read(sqe, io->fd, io->buffer, bytes, io->offset);
	else
		io_uring_prep_write(sqe, io->fd, io->buffer, bytes, io->offset);
}

static void queue(struct os_ring *ring, struct os_io io, uint64_t tag)
{
	struct io_uring_sqe *sqe;
	struct slot         *slot;
	int64_t              result;

	KVS_ASSERT_CMP(ring->in_flight, <, ring->entries);
	KVS_ASSERT_CMP(io.bytes, <=, OS_RING_BYTES_MAX);
	ring->in_flight++;
	if (os_io_answered(&io, &result)) {
		keep_answer(ring, tag, result);
		return;
	}
	slot = take_slot(ring, tag);
	sqe = io_uring_get_sqe(&ring->uring);
	/* Not more are queued than are in flight, and the kernel's queue has an entry for each. */
	KVS_ASSERT(sqe != NULL);
	if (io.kind == OS_IO_SYNC)
		io_uring_prep_fsync(sqe, io.fd, IORING_FSYNC_DATASYNC);
	else
		prepare_transfer(ring, sqe, &io);
	aim(ring, sqe, io.fd);
	io_uring_sqe_set_data64(sqe, (uint64_t)(slot - ring->slots));
}

void os_ring_read(struct os_ring *ring, int fd, void *buffer, size_t bytes, uint64_t offset,
		  uint64_t tag)
{
	queue(ring,
	      (struct os_io){ .kind = OS_IO_READ, .fd = fd, .buffer = buffer, .bytes = bytes,
			      .offset = offset },
	      tag);
}

void os_ring_write(struct os_ring *ring, int fd, const void *buffer, size_t bytes, uint64_t offset,
		   uint64_t tag)
{
	queue(ring,
	      (struct os_io){ .kind = OS_IO_WRITE, .fd = fd, .buffer = (void *)(uintptr_t)buffer,
			      .bytes = bytes, .offset = offset },
	      tag);
}

void os_ring_sync(struct os_ring *ring, int fd, uint64_t tag)
{
	queue(ring, (struct os_io){ .kind = OS_IO_SYNC, .fd = fd }, tag);
}

/* --- submitting and reaping ------------------------------------------------------------------- */

/* The kernel lacks room for a moment, or a signal came: everything is where it was. */
static bool is_passing(int rc)
{
	return rc == -EINTR || rc == -EAGAIN || rc == -EBUSY;
}

int os_ring_submit(struct os_ring *ring)
{
	int rc = 0;

	/* One call, but where a signal interrupts it or memory is short. */
	while (io_uring_sq_ready(&ring->uring) > 0 && (rc >= 0 || rc == -EINTR)) {
		rc = io_uring_submit(&ring->uring);
		if (rc == 0)
			break;
	}
	return rc < 0 && !is_passing(rc) ? rc : 0;
}

static uint32_t take_answers(struct os_ring *ring, struct os_ring_done *ret_done, uint32_t max)
{
	uint32_t count = 0;

	while (count < max && ring->answered_count > 0) {
		ret_done[count++] = ring->answered[ring->answered_first];
		ring->answered_first = (ring->answered_first + 1) % ring->entries;
		ring->answered_count--;
	}
	return count;
}

static struct os_ring_done finish(struct os_ring *ring, const struct io_uring_cqe *cqe)
{
	const uint64_t     index = io_uring_cqe_get_data64(cqe);
	struct slot       *slot;
	struct os_ring_done done;

	KVS_ASSERT_CMP(index, <, ring->entries);
	slot = &ring->slots[index];
	done = (struct os_ring_done){ .tag = slot->tag, .result = cqe->res };
	slot->next_free = ring->free_slot;
	ring->free_slot = (uint32_t)index;
	return done;
}

/* What is there, without waiting; asks the kernel only when it has something to work off. */
static uint32_t take_completions(struct os_ring *ring, struct os_ring_done *ret_done, uint32_t max)
{
	struct io_uring_cqe *cqes[BATCH_MAX];
	uint32_t             count = 0;

	while (count < max) {
		const uint32_t most = max - count < BATCH_MAX ? max - count : BATCH_MAX;
		const uint32_t ready = io_uring_peek_batch_cqe(&ring->uring, cqes, most);
		uint32_t       i;

		if (ready == 0)
			break;
		for (i = 0; i < ready; i++)
			ret_done[count++] = finish(ring, cqes[i]);
		io_uring_cq_advance(&ring->uring, ready);
	}
	return count;
}

static uint32_t ready_count(const struct os_ring *ring)
{
	return io_uring_cq_ready(&ring->uring) + ring->answered_count;
}

/* One call that hands over and waits for the completions that lack; 0 or -errno. */
static int enter_and_wait(struct os_ring *ring, uint32_t wanted, uint64_t left_ns)
{
	struct __kernel_timespec left = { .tv_sec = (long long)(left_ns / 1000000000),
					  .tv_nsec = (long long)(left_ns % 1000000000) };
	struct io_uring_cqe     *first;
	const int rc = io_uring_submit_and_wait_timeout(&ring->uring, &first, wanted, &left, NULL);

	return rc < 0 ? rc : 0;
}

/* Until `wanted` completions are there or the time is over; 0 or -errno. */
static int wait_for(struct os_ring *ring, uint32_t wanted, uint64_t timeout_ns)
{
	const uint64_t until_ns = os_until_ns(timeout_ns);
	uint64_t       now_ns;

	do {
		uint64_t left_ns;
		int      rc;

		now_ns = os_now_ns();
		left_ns = now_ns < until_ns ? until_ns - now_ns : 0;
		rc = enter_and_wait(ring, wanted - ring->answered_count, left_ns);
		if (rc < 0 && rc != -ETIME && !is_passing(rc))
			return rc;
		/* The kernel has no room, so it did not wait either; what ends in flight makes some. */
		if (io_uring_sq_ready(&ring->uring) > 0 && rc != -EINTR && left_ns > 0)
			(void)os_wait_readable(NULL, 0, left_ns < RETRY_NS ? left_ns : RETRY_NS);
	} while (ready_count(ring) < wanted && now_ns < until_ns);
	return 0;
}

int os_ring_reap(struct os_ring *ring, struct os_ring_done *ret_done, uint32_t max,
		 uint32_t min_wait, uint64_t timeout_ns)
{
	const uint32_t wanted = min_wait < ring->in_flight ? min_wait : ring->in_flight;
	uint32_t       count;
	int            rc = 0;

	KVS_ASSERT(max > 0 && max <= INT32_MAX);
	KVS_ASSERT_CMP(min_wait, <=, max);
	if (wanted > ready_count(ring))
		rc = wait_for(ring, wanted, timeout_ns);
	else if (io_uring_sq_ready(&ring->uring) > 0)
		rc = io_uring_submit_and_get_events(&ring->uring);
	count = take_answers(ring, ret_done, max);
	count += take_completions(ring, ret_done + count, max - count);
	ring->in_flight -= count;
	if (count == 0 && rc < 0 && !is_passing(rc))
		return rc;
	return (int)count;
}
