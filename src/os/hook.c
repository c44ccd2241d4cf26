/* SPDX-License-Identifier: Apache-2.0 */
/* One hook for the process, and the arithmetic of transfers in one or two parts. */
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

size_t os_io_total(const struct iovec *parts, int count)
{
	KVS_ASSERT(count == 1 || count == 2);
	return parts[0].iov_len + (count == 2 ? parts[1].iov_len : 0);
}

int os_io_first(const struct iovec *parts, int count, size_t bytes, struct iovec ret_parts[2])
{
	const struct iovec first = parts[0];
	const struct iovec second = count == 2 ? parts[1] : (struct iovec){ 0 };
	const size_t       from_first = bytes < first.iov_len ? bytes : first.iov_len;
	const size_t       from_second = bytes - from_first;

	KVS_ASSERT(count == 1 || count == 2);
	KVS_ASSERT_CMP(from_second, <=, second.iov_len);
	if (from_first == 0 && from_second > 0) {
		ret_parts[0] = (struct iovec){ second.iov_base, from_second };
		return 1;
	}
	ret_parts[0] = (struct iovec){ first.iov_base, from_first };
	ret_parts[1] = (struct iovec){ second.iov_base, from_second };
	return from_second > 0 ? 2 : 1;
}

int os_io_rest(const struct iovec *parts, int count, size_t bytes, struct iovec ret_parts[2])
{
	const size_t total = os_io_total(parts, count);
	struct iovec rest[2] = { parts[0], count == 2 ? parts[1] : (struct iovec){ 0 } };
	const size_t from_first = bytes < rest[0].iov_len ? bytes : rest[0].iov_len;

	KVS_ASSERT_CMP(bytes, <=, total);
	rest[0].iov_base = (uint8_t *)rest[0].iov_base + from_first;
	rest[0].iov_len -= from_first;
	if (count == 2)
		rest[1].iov_base = (uint8_t *)rest[1].iov_base + (bytes - from_first);
	/* The second is still as long as it was; what is left in all bounds it. */
	return os_io_first(rest, count, total - bytes, ret_parts);
}
