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

uint64_t os_memory_bytes(void)
{
	const uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) *
				  (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t       limit;
	char           text[32];
	char          *end;

	if (!read_setting(MEMORY_LIMIT, text, sizeof(text)))
		return physical;
	limit = strtoull(text, &end, 10);
	/* Without a limit the file says "max". */
	return end != text && limit < physical ? limit : physical;
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
