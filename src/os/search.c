/* SPDX-License-Identifier: Apache-2.0 */
/* What a process was started with: its environment, its own place, its path. */
#include "os/os.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *os_environment(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

static bool is_file(const char *path)
{
	struct stat found;

	return stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

/* folder: of folder_bytes, none of them NUL. */
static bool join(const char *folder, size_t folder_bytes, const char *name, char *ret_path, size_t room)
{
	const int length = snprintf(ret_path, room, "%.*s/%s", (int)folder_bytes, folder, name);

	return length > 0 && (size_t)length < room && is_file(ret_path);
}

static bool find_beside_us(const char *name, char *ret_path, size_t room)
{
	char          self[PATH_MAX];
	const ssize_t bytes = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char   *end;

	if (bytes <= 0)
		return false;
	self[bytes] = '\0';
	end = strrchr(self, '/');
	return end && join(self, (size_t)(end - self), name, ret_path, room);
}

int os_program_find(const char *name, char *ret_path, size_t room)
{
	const char *at = os_environment("PATH");

	if (find_beside_us(name, ret_path, room))
		return 0;
	while (at) {
		const size_t bytes = strcspn(at, ":");

		if (bytes > 0 && bytes < PATH_MAX && join(at, bytes, name, ret_path, room))
			return 0;
		at = at[bytes] ? at + bytes + 1 : NULL;
	}
	return -ENOENT;
}
