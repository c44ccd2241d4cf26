/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by the page, and what the kernel lets this process do with it. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "os/fd.h"

#define SHARED_HUGE_SETTING "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
/* In a container this is its own limit, on a host it does not exist. */
#define MEMORY_LIMIT "/sys/fs/cgroup/memory.max"
#define MEMORY_USED "/sys/fs/cgroup/memory.current"
#define MEMORY_PARTS "/sys/fs/cgroup/memory.stat"
#define MEMORY_MACHINE "/proc/meminfo"

int os_pages_map(size_t bytes, void **ret_ptr)
{
	void *const ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

	if (ptr == MAP_FAILED)
		return -errno;
	*ret_ptr = ptr;
	return 0;
}

/*
 * A reservation is not enough: where a control group limits huge pages, a reserved page may still
 * be refused at its first touch, which kills the process.
 */
static int take_pages(int fd, size_t bytes)
{
	int rc;

	do {
		rc = fallocate(fd, 0, 0, (off_t)bytes);
	} while (rc < 0 && errno == EINTR);
	if (rc < 0 && errno == ENOSPC)
		return -ENOMEM; /* hugetlbfs calls its lack of pages a full device */
	return rc < 0 ? -errno : 0;
}

int os_pages_map_shared(const char *name, size_t bytes, bool huge, void **ret_ptr, int *ret_fd)
{
	int   fd = memfd_create(name, MFD_CLOEXEC | (huge ? MFD_HUGETLB : 0));
	void *ptr;
	int   rc;

	fd = fd_above_stdio(fd < 0 ? -errno : fd);
	if (fd < 0)
		return fd;
	rc = os_file_resize(fd, bytes);
	if (rc == 0 && huge)
		rc = take_pages(fd, bytes);
	if (rc)
		goto fail;
	ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ptr == MAP_FAILED) {
		rc = -errno;
		goto fail;
	}
	*ret_ptr = ptr;
	*ret_fd = fd;
	return 0;

fail:
	os_close(fd);
	return rc;
}

void os_pages_unmap(void *ptr, size_t bytes)
{
	KVS_ASSERT(munmap(ptr, bytes) == 0);
}

int os_pages_lock(void *ptr, size_t bytes)
{
	return mlock2(ptr, bytes, MLOCK_ONFAULT) < 0 ? -errno : 0;
}

int os_pages_populate(void *ptr, size_t bytes)
{
	return madvise(ptr, bytes, MADV_POPULATE_WRITE) < 0 ? -errno : 0;
}

int os_pages_no_fork(void *ptr, size_t bytes)
{
	return madvise(ptr, bytes, MADV_DONTFORK) < 0 ? -errno : 0;
}

int os_pages_advise_huge(void *ptr, size_t bytes)
{
	return madvise(ptr, bytes, MADV_HUGEPAGE) < 0 ? -errno : 0;
}

/* One short file of the kernel's; false when there is none. */
static bool read_setting(const char *path, char *ret_text, size_t text_bytes)
{
	const int fd = os_file_open(path, 0);
	ssize_t   length;

	if (fd < 0)
		return false;
	length = pread(fd, ret_text, text_bytes - 1, 0);
	os_close(fd);
	if (length <= 0)
		return false;
	ret_text[length] = '\0';
	return true;
}

/* The setting lists all choices with the one in force in brackets; a kernel without it has no such pages. */
bool os_pages_shared_huge(void)
{
	char text[128];

	return read_setting(SHARED_HUGE_SETTING, text, sizeof(text)) && !strstr(text, "[never]") &&
	       !strstr(text, "[deny]");
}

/* UINT64_MAX without one: the file says "max" then. */
static uint64_t memory_limit(void)
{
	uint64_t limit;
	char     text[32];
	char    *end;

	if (!read_setting(MEMORY_LIMIT, text, sizeof(text)))
		return UINT64_MAX;
	limit = strtoull(text, &end, 10);
	return end != text ? limit : UINT64_MAX;
}

uint64_t os_memory_bytes(void)
{
	const uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) *
				  (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t limit = memory_limit();

	return limit < physical ? limit : physical;
}

/* Of a file with "name value" or "name: value" a line; 0 when there is none. */
static uint64_t find_figure(const char *text, const char *name)
{
	const size_t length = strlen(name);
	const char  *line;

	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0 && strchr(" :", line[length]))
			return strtoull(line + length + strspn(line + length, " :"), NULL, 10);
	}
	return 0;
}

/* Files that are cached count as used and are given up; shared memory is no such file. */
static uint64_t group_available_bytes(void)
{
	const uint64_t limit = memory_limit();
	uint64_t       used;
	char           text[8192];

	if (limit == UINT64_MAX || !read_setting(MEMORY_USED, text, sizeof(text)))
		return limit;
	used = strtoull(text, NULL, 10);
	if (read_setting(MEMORY_PARTS, text, sizeof(text))) {
		const uint64_t cached = find_figure(text, "inactive_file") +
					find_figure(text, "active_file");

		used -= cached < used ? cached : used;
	}
	return used < limit ? limit - used : 0;
}

uint64_t os_memory_available_bytes(void)
{
	const uint64_t group = group_available_bytes();
	uint64_t       available = os_memory_bytes(), machine;
	char           text[8192];

	if (read_setting(MEMORY_MACHINE, text, sizeof(text))) {
		machine = 1024 * (find_figure(text, "MemAvailable") +
				  find_figure(text, "HugePages_Free") *
					  find_figure(text, "Hugepagesize"));
		available = machine < available ? machine : available;
	}
	return group < available ? group : available;
}

static bool may_exceed_memlock(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK);
}

uint64_t os_memlock_limit(void)
{
	struct rlimit limit;

	if (may_exceed_memlock())
		return UINT64_MAX;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return 0;
	return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

uint64_t os_peak_rss_bytes(void)
{
	struct rusage usage;

	/* Linux counts ru_maxrss in KiB. */
	return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}
