/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that nobody can predict, from the kernel. */
#include "os/os.h"

#include <errno.h>
#include <sys/random.h>

int os_random(void *bytes, size_t count)
{
	uint8_t *at = bytes;

	while (count > 0) {
		/* Up to 256 bytes come whole; more may be interrupted. */
		const ssize_t done = getrandom(at, count, 0);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		at += done;
		count -= (size_t)done;
	}
	return 0;
}
