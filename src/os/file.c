/* SPDX-License-Identifier: Apache-2.0 */
/* Files by position: whole transfers or an error, and one lock that the I/O's own descriptor carries. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"

int fd_above_stdio(int fd)
{
	int moved;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (moved < 0)
		moved = -errno;
	close(fd);
	return moved;
}

int os_file_open(const char *path, int flags)
{
	int how = O_CLOEXEC;
	int fd;

	how |= flags & OS_WRITE ? O_RDWR : O_RDONLY;
	how |= flags & OS_CREATE ? O_CREAT : 0;
	how |= flags & OS_DIRECT ? O_DIRECT : 0;
	do {
		/* What we keep is derived from people's prompts: nobody else may read it. */
		fd = open(path, how, 0600);
	} while (fd < 0 && errno == EINTR);
	return fd_above_stdio(fd < 0 ? -errno : fd);
}

int os_file_read(int fd, void *buffer, size_t bytes, uint64_t offset)
{
	uint8_t *at = buffer;

	while (bytes > 0) {
		const ssize_t done = pread(fd, at, bytes, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (done == 0)
			return -ENODATA;
		at += done;
		bytes -= (size_t)done;
		offset += (uint64_t)done;
	}
	return 0;
}

int os_file_write(int fd, const void *buffer, size_t bytes, uint64_t offset)
{
	const uint8_t *at = buffer;

	while (bytes > 0) {
		const ssize_t done = pwrite(fd, at, bytes, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		/* One that takes nothing and names no reason must not hold us here. */
		if (done == 0)
			return -EIO;
		at += done;
		bytes -= (size_t)done;
		offset += (uint64_t)done;
	}
	return 0;
}

int os_stream_read(int fd, void *buffer, size_t bytes, size_t *ret_done)
{
	const ssize_t done = read(fd, buffer, bytes);

	if (done < 0)
		return -errno;
	*ret_done = (size_t)done;
	return 0;
}

bool os_stream_ready(int fd)
{
	struct pollfd input = { .fd = fd, .events = POLLIN };

	return poll(&input, 1, 0) != 0;
}

int os_file_size(int fd, uint64_t *ret_bytes)
{
	/* Unlike fstat, seeking knows the size of a block device too. */
	const off_t at = lseek(fd, 0, SEEK_CUR);
	const off_t end = at < 0 ? at : lseek(fd, 0, SEEK_END);

	if (end < 0 || lseek(fd, at, SEEK_SET) < 0)
		return -errno;
	*ret_bytes = (uint64_t)end;
	return 0;
}

bool os_file_same(const char *a, const char *b)
{
	struct stat first, second;

	return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

int os_file_resize(int fd, uint64_t bytes)
{
	int rc;

	do {
		rc = ftruncate(fd, (off_t)bytes);
	} while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

int os_file_sync(int fd)
{
	int rc;

	do {
		rc = fdatasync(fd);
	} while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

int os_file_lock(int fd)
{
	int rc;

	do {
		rc = flock(fd, LOCK_EX | LOCK_NB);
	} while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}
