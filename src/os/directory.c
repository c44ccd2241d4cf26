/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of a program's own, and the room of the disk below them. */
#include "os/os.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

int os_directory_make(char *path)
{
	return mkdtemp(path) ? 0 : -errno;
}

int os_directory_remove(const char *path)
{
	return rmdir(path) == 0 ? 0 : -errno;
}

int os_file_remove(const char *path)
{
	return unlink(path) == 0 ? 0 : -errno;
}

int os_disk_free(const char *path, uint64_t *ret_bytes)
{
	struct statvfs disk;
	int            rc;

	do {
		rc = statvfs(path, &disk);
	} while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return -errno;
	*ret_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	return 0;
}
