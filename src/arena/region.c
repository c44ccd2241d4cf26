/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ask the kernel for the best memory it has, then for less, and write down what was had.
 *
 * Huge pages come first because they spare the translation misses of copies and the time to
 * register; locked pages are never swapped; a region that forked children do not see is never
 * copied on write under late I/O.
 */
#include "arena/region.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "os/os.h"

/* The usual huge page.  Where it is larger, hugetlb refuses the size and base pages serve. */
#define HUGE_BYTES ((size_t)2 << 20)

#define NAME "kvstrata-arena"

/* One more reason in the note; what does not fit is cut. */
static void PRINTF_LIKE(2, 3) note(struct arena_report *report, const char *format, ...)
{
	const size_t used = strlen(report->note);
	const size_t joint = used ? 2 : 0;
	va_list      args;

	if (used + joint >= sizeof(report->note))
		return;
	memcpy(report->note + used, "; ", joint);
	va_start(args, format);
	vsnprintf(report->note + used + joint, sizeof(report->note) - used - joint, format, args);
	va_end(args);
}

static int map_plain(struct region *region)
{
	void *ptr;
	int   rc = os_pages_map_shared(NAME, region->report.bytes, false, &ptr, &region->fd);

	if (rc)
		return rc;
	region->base = ptr;
	if (!os_pages_shared_huge()) {
		note(&region->report, "no huge pages: the kernel's shmem_enabled forbids them");
		return 0;
	}
	rc = os_pages_advise_huge(ptr, region->report.bytes);
	if (rc)
		note(&region->report, "no huge pages: %s", kvs_strerror(rc));
	else
		region->report.pages = ARENA_PAGES_TRANSPARENT_HUGE;
	return 0;
}

static int map(struct region *region, unsigned flags)
{
	void *ptr;
	int   rc;

	if (flags & ARENA_LAZY)
		return map_plain(region);
	rc = os_pages_map_shared(NAME, region->report.bytes, true, &ptr, &region->fd);
	if (rc) {
		note(&region->report, "no hugetlb pages: %s", kvs_strerror(rc));
		return map_plain(region);
	}
	region->base = ptr;
	region->report.pages = ARENA_PAGES_HUGETLB;
	return 0;
}

static void lock(struct region *region)
{
	struct arena_report *const report = &region->report;
	const uint64_t             limit = os_memlock_limit();
	char                       text[UNITS_TEXT_BYTES];
	int                        rc;

	if (limit < report->bytes)
		note(report, "not locked: RLIMIT_MEMLOCK is %s", units_format_size(limit, text));
	rc = limit < report->bytes ? 0 : os_pages_lock(region->base, report->bytes);
	if (rc)
		note(report, "not locked: %s", kvs_strerror(rc));
	report->locked = limit >= report->bytes && rc == 0;
}

int region_init(struct region *region, size_t bytes, unsigned flags)
{
	struct arena_report *const report = &region->report;
	int                        rc;

	*region = (struct region){ .fd = -1 };
	report->bytes = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	report->slice_count = (uint32_t)((report->bytes - 1) / ARENA_SLICE_BYTES + 1);
	rc = map(region, flags);
	if (rc)
		return rc;
	rc = os_pages_no_fork(region->base, report->bytes);
	report->no_fork = rc == 0;
	if (rc)
		note(report, "forked children share it: %s", kvs_strerror(rc));
	report->registrable = os_memlock_limit() >= report->bytes;
	if (flags & ARENA_LAZY)
		note(report, "not locked: opened lazily");
	else
		lock(region);
	return 0;
}

void region_fini(struct region *region, bool keep_mapping)
{
	if (!keep_mapping)
		os_pages_unmap(region->base, region->report.bytes);
	os_close(region->fd);
}
