/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place where a test stands between a file and the kernel.
 *
 * Every call of os_file_*() that asks the kernel, and every transfer queued to a ring (os/ring.h), is
 * shown to one hook first.  It may let it pass, shorten it, or answer in the kernel's place: short
 * transfers, errors and crashes come where the test wants them.  Without a hook, as in a product, it
 * costs one branch.
 *
 * Thread  The hook runs on the thread that does the I/O; it is set while no I/O runs.
 */
#ifndef OS_HOOK_H
#define OS_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum os_io_kind {
	OS_IO_OPEN,
	OS_IO_READ,
	OS_IO_WRITE,
	OS_IO_SYNC,
	OS_IO_ALLOCATE,
	OS_IO_RESIZE,
	OS_IO_LOCK
};

struct os_io {
	enum os_io_kind kind;
	int             fd;     /* -1 for an open */
	int             flags;  /* of an open: enum os_open_flag */
	void           *buffer; /* of a transfer; what is written is only read */
	size_t          bytes;  /* of a transfer or an allocation; the new size of a resize */
	uint64_t        offset;
};

/**
 * Asked before each call to the kernel, so again after a short transfer and after -EINTR.
 *
 * Returns True: *ret_result is what the call comes to, and the kernel is not asked.  It is a number of
 *         bytes, the descriptor of an open, 0 or -errno.
 *         False: go on.  The hook may have lowered io->bytes of a transfer, which then asks the kernel
 *         for less.
 */
typedef bool os_io_hook(void *ctx, struct os_io *io, int64_t *ret_result);

/* NULL: none; while no I/O runs. */
void os_io_hook_set(os_io_hook *hook, void *ctx);

/* --- for this room ---------------------------------------------------------------------------- */
struct os_io_hooked {
	os_io_hook *hook; /* NULL: none */
	void       *ctx;
};
extern struct os_io_hooked os_io_hooked;

/* Asks the hook and checks its answer. */
bool os_io_ask(struct os_io *io, int64_t *ret_result);

static inline bool os_io_answered(struct os_io *io, int64_t *ret_result)
{
	return __builtin_expect(os_io_hooked.hook != NULL, 0) && os_io_ask(io, ret_result);
}

#endif
