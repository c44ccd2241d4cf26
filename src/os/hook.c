/* SPDX-License-Identifier: Apache-2.0 */
/* One hook for the process. */
#include "os/hook.h"

#include "base/err.h"

struct os_io_hooked os_io_hooked;

void os_io_hook_set(os_io_hook *hook, void *ctx)
{
	os_io_hooked = (struct os_io_hooked){ .hook = hook, .ctx = ctx };
}

static bool is_transfer(const struct os_io *io)
{
	return io->kind == OS_IO_READ || io->kind == OS_IO_WRITE;
}

bool os_io_ask(struct os_io *io, int64_t *ret_result)
{
	const struct os_io_hooked hooked = os_io_hooked;
	const size_t              bytes = io->bytes;
	int64_t                   result = 0;

	if (!hooked.hook(hooked.ctx, io, &result)) {
		/* More than the caller's memory, or an allocation that is silently smaller. */
		KVS_ASSERT_CMP(io->bytes, <=, bytes);
		KVS_ASSERT(is_transfer(io) || io->bytes == bytes);
		return false;
	}
	KVS_ASSERT(result <= 0 || io->kind == OS_IO_OPEN || is_transfer(io));
	KVS_ASSERT(!is_transfer(io) || result <= (int64_t)bytes);
	*ret_result = result;
	return true;
}
