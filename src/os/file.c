/* SPDX-License-Identifier: Apache-2.0 */
/* Files by position: whole transfers or an error, and one lock that the I/O's own descriptor carries. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "os/fd.h"
#include "os/hook.h"

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

/*
 * O_EXCL on a block device asks that nobody else has it: no mount, no volume, no other O_EXCL.  On any
 * other file it would mean nothing, or with O_CREAT something else.
 */
static int how_to_open(const char *path, int flags)
{
	int how = O_CLOEXEC;

	how |= flags & OS_WRITE ? O_RDWR : O_RDONLY;
	how |= flags & OS_DIRECT ? O_DIRECT : 0;
	how |= flags & OS_NO_WAIT ? O_NONBLOCK : 0;
	how |= flags & OS_APPEND ? O_APPEND : 0;
	if (flags & OS_NEW)
		return how | O_CREAT | O_EXCL;
	if (flags & OS_EXCLUSIVE_DEVICE) {
		struct stat found;

		if (stat(path, &found) == 0 && S_ISBLK(found.st_mode))
			return how | O_EXCL;
	}
	return how | (flags & OS_CREATE ? O_CREAT : 0);
}

static int64_t open_once(const char *path, int flags)
{
	struct os_io io = { .kind = OS_IO_OPEN, .fd = -1, .flags = flags };
	int64_t      result;
	int          fd;

	if (os_io_answered(&io, &result))
		return result;
	/* What we keep is derived from people's prompts: nobody else may read it. */
	fd = open(path, how_to_open(path, flags), 0600);
	return fd < 0 ? -errno : fd;
}

int os_file_open(const char *path, int flags)
{
	int64_t fd;

	do {
		fd = open_once(path, flags);
	} while (fd == -EINTR);
	return fd_above_stdio((int)fd);
}

/* One question to the kernel, or to the hook. */
static int64_t transfer(enum os_io_kind kind, int fd, void *buffer, size_t bytes, uint64_t offset)
{
	struct os_io io = { .kind = kind, .fd = fd, .buffer = buffer, .bytes = bytes,
			    .offset = offset };
	int64_t      done;

	if (os_io_answered(&io, &done))
		return done;
	done = kind == OS_IO_READ ? pread(fd, buffer, io.bytes, (off_t)offset)
				  : pwrite(fd, buffer, io.bytes, (off_t)offset);
	return done < 0 ? -errno : done;
}

/* One that moves nothing and names no reason must not hold us here: then it is idle_rc. */
static int transfer_all(enum os_io_kind kind, int fd, void *buffer, size_t bytes, uint64_t offset,
			int idle_rc)
{
	size_t moved = 0;

	while (moved < bytes) {
		const int64_t done = transfer(kind, fd, (uint8_t *)buffer + moved, bytes - moved,
					      offset + moved);

		if (done == -EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? (int)done : idle_rc;
		moved += (size_t)done;
	}
	return 0;
}

int os_file_read(int fd, void *buffer, size_t bytes, uint64_t offset)
{
	return transfer_all(OS_IO_READ, fd, buffer, bytes, offset, -ENODATA);
}

int os_file_write(int fd, const void *buffer, size_t bytes, uint64_t offset)
{
	return transfer_all(OS_IO_WRITE, fd, (void *)(uintptr_t)buffer, bytes, offset, -EIO);
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

enum os_file_kind os_file_kind(int fd)
{
	struct stat found;

	if (fstat(fd, &found) < 0)
		return OS_FILE_OTHER;
	if (S_ISREG(found.st_mode))
		return OS_FILE_REGULAR;
	return S_ISBLK(found.st_mode) ? OS_FILE_DEVICE : OS_FILE_OTHER;
}

bool os_file_is_device(int fd)
{
	return os_file_kind(fd) == OS_FILE_DEVICE;
}

/* What moves no bytes: 0 or -errno. */
static int64_t ask_once(struct os_io io)
{
	int64_t result;
	int     rc = -1;

	if (os_io_answered(&io, &result))
		return result;
	switch (io.kind) {
	case OS_IO_SYNC:
		rc = fdatasync(io.fd);
		break;
	case OS_IO_ALLOCATE:
		rc = fallocate(io.fd, 0, (off_t)io.offset, (off_t)io.bytes);
		break;
	case OS_IO_RESIZE:
		rc = ftruncate(io.fd, (off_t)io.bytes);
		break;
	case OS_IO_LOCK:
		rc = flock(io.fd, LOCK_EX | LOCK_NB);
		break;
	case OS_IO_OPEN:
	case OS_IO_READ:
	case OS_IO_WRITE:
		KVS_PANIC("no transfer comes here");
	}
	return rc < 0 ? -errno : 0;
}

static int ask(struct os_io io)
{
	int64_t result;

	do {
		result = ask_once(io);
	} while (result == -EINTR);
	return (int)result;
}

int os_file_resize(int fd, uint64_t bytes)
{
	return ask((struct os_io){ .kind = OS_IO_RESIZE, .fd = fd, .bytes = bytes });
}

int os_file_allocate(int fd, uint64_t offset, uint64_t bytes)
{
	return ask((struct os_io){
		.kind = OS_IO_ALLOCATE, .fd = fd, .bytes = bytes, .offset = offset });
}

int os_file_sync(int fd)
{
	return ask((struct os_io){ .kind = OS_IO_SYNC, .fd = fd });
}

int os_file_lock(int fd)
{
	return ask((struct os_io){ .kind = OS_IO_LOCK, .fd = fd });
}

void os_file_unlock(int fd)
{
	(void)flock(fd, LOCK_UN);
}
