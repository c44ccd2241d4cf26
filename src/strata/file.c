/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file or device itself: opened once, locked through the descriptor that does the I/O, formatted
 * when it is empty, its superblock read.
 */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "strata/core.h"

/* The writes of a process that was killed take milliseconds to land; a stuck device may take for ever. */
#define ENDING_WAIT_NS UINT64_C(10000000000)
#define RELEASE_WAIT_NS UINT64_C(1000000000)
#define RETRY_NS UINT64_C(2000000)

/* Some formats leave the first pages of a device free, but none as much as this: btrfs 64 KiB. */
#define BLANK_BYTES (UINT64_C(1) << 20)

static int refuse(int rc, const char *what, struct kvs_error *err)
{
	return err_set(err, rc, "%s: %s", what, kvs_strerror(rc));
}

/* --- opening ---------------------------------------------------------------------------------- */

static int refuse_holder(const struct os_lock_holder *holder, struct kvs_error *err)
{
	if (holder->self) {
		return err_set(err, KVS_E_BUSY,
			       "is open in another store of this process; one file serves one store at a time");
	}
	if (holder->pid == 0) {
		return err_set(err, KVS_E_BUSY,
			       "is held by a process that has ended or cannot be seen from here; its last writes may still be landing");
	}
	return err_set(err, KVS_E_BUSY, "is open in process %ld (%s); one file serves one store at a time",
		       holder->pid, holder->name);
}

/* What holds a device: found through its lock, which a mount does not have. */
static bool find_holder(const struct strata *s, struct os_lock_holder *ret_holder)
{
	const int  fd = os_file_open(s->set.path, OS_NO_WAIT);
	const bool found = fd >= 0 && os_file_lock_holder(fd, ret_holder);

	os_close(fd);
	return found;
}

/*
 * A device stays busy while the last I/O of a process that ended, or of a store that was closed, is
 * given up: for a moment after its lock is free.
 */
static int open_waiting(const struct strata *s, int flags, struct os_lock_holder *ret_holder)
{
	const uint64_t begin_ns = os_now_ns();

	for (;;) {
		const int fd = os_file_open(s->set.path, flags);
		uint64_t  wait_ns = RELEASE_WAIT_NS;

		if (fd != -EBUSY)
			return fd;
		if (find_holder(s, ret_holder))
			wait_ns = ret_holder->ending ? ENDING_WAIT_NS : 0;
		if (os_now_ns() - begin_ns >= wait_ns)
			return fd;
		*ret_holder = (struct os_lock_holder){ 0 };
		(void)os_wait_readable(NULL, 0, RETRY_NS);
	}
}

static int open_descriptor(struct strata *s, int flags, struct kvs_error *err)
{
	struct os_lock_holder holder = { 0 };

	s->fd = open_waiting(s, flags | OS_DIRECT, &holder);
	s->direct = s->fd >= 0;
	if (s->fd == -EINVAL) {
		s->fd = open_waiting(s, flags, &holder);
		s->note = "no O_DIRECT on this file system: payload goes through the page cache";
	}
	if (s->fd == -EBUSY && holder.pid > 0)
		return refuse_holder(&holder, err);
	if (s->fd == -EBUSY)
		return err_set(err, -EBUSY, "is a block device that is mounted or otherwise in use");
	if (s->fd == -ENOENT && s->set.read_only)
		return err_set(err, -ENOENT, "does not exist");
	if (s->fd == -ENOENT && !(flags & OS_CREATE)) {
		return err_set(err, -ENOENT,
			       "does not exist; give a capacity to create it: strata:PATH?capacity=SIZE");
	}
	return s->fd < 0 ? refuse(s->fd, "cannot be opened", err) : 0;
}

static int lock(struct strata *s, struct kvs_error *err)
{
	struct os_lock_holder holder = { 0 };
	int                   rc;

	if (s->set.read_only)
		return 0;
	rc = os_file_lock_wait(s->fd, ENDING_WAIT_NS, &holder);
	if (rc == -EWOULDBLOCK)
		return refuse_holder(&holder, err);
	return rc < 0 ? refuse(rc, "cannot be locked", err) : 0;
}

static bool exists(const char *path)
{
	const int fd = os_file_open(path, OS_NO_WAIT);

	os_close(fd);
	return fd != -ENOENT;
}

static int open_and_lock(struct strata *s, uint64_t *ret_size, struct kvs_error *err)
{
	const bool may_create = !s->set.read_only && s->set.capacity_bytes > 0;
	const bool is_new = may_create && !exists(s->set.path);
	const int flags = s->set.read_only ? OS_NO_WAIT
					   : OS_WRITE | OS_EXCLUSIVE_DEVICE |
						     (may_create ? OS_CREATE : 0);
	int       rc = open_descriptor(s, flags, err);

	if (rc < 0)
		return rc;
	switch (os_file_kind(s->fd)) {
	case OS_FILE_REGULAR:
		break;
	case OS_FILE_DEVICE:
		s->device = true;
		break;
	case OS_FILE_OTHER:
		return err_set(err, KVS_E_INVALID, "is neither a file nor a block device");
	}
	rc = lock(s, err);
	/* Of two that found nothing there one makes the file; the other must not take it away. */
	s->created = rc == 0 && is_new;
	if (rc < 0)
		return rc;
	rc = os_file_size(s->fd, ret_size);
	return rc < 0 ? refuse(rc, "has no size", err) : 0;
}

static bool is_blank(const void *bytes, size_t count)
{
	const uint8_t *const at = bytes;

	return at[0] == 0 && memcmp(at, at + 1, count - 1) == 0;
}

/* Nothing is lost when a store begins here.  A device is as good as empty when it begins with nothing. */
static int find_empty(const struct strata *s, uint64_t size, bool *ret_empty)
{
	const uint64_t bytes = size < BLANK_BYTES ? size / STRATA_PAGE * STRATA_PAGE : BLANK_BYTES;
	uint8_t       *buffer;
	int            rc;

	if (!s->device || bytes == 0) {
		*ret_empty = size == 0;
		return 0;
	}
	buffer = aligned_alloc(STRATA_PAGE, bytes);
	rc = buffer ? os_file_read(s->fd, buffer, bytes, 0) : -ENOMEM;
	if (rc == 0)
		*ret_empty = is_blank(buffer, bytes);
	free(buffer);
	return rc;
}

/* --- formatting ------------------------------------------------------------------------------- */

/* The name of a new file is as durable as what is in it. */
static void sync_directory(const struct strata *s)
{
	char path[4096];
	int  fd;

	if (s->device || (size_t)snprintf(path, sizeof(path), "%s", s->set.path) >= sizeof(path))
		return;
	fd = os_file_open(dirname(path), 0);
	if (fd < 0)
		return;
	(void)os_file_sync(fd);
	os_close(fd);
}

static int make_geometry(struct strata *s, uint64_t size, struct kvs_error *err)
{
	uint64_t capacity = s->set.capacity_bytes;
	char     has[32], wanted[32];

	if (s->device && capacity == 0)
		capacity = size;
	if (s->device && capacity > size) {
		return err_set(err, KVS_E_INVALID, "store.capacity: %s is more than the device has, %s",
			       units_format_size(capacity, wanted), units_format_size(size, has));
	}
	if (capacity == 0) {
		return err_set(err, KVS_E_INVALID,
			       "store.capacity: is missing; write strata:PATH?capacity=SIZE");
	}
	return geometry_make(capacity, s->set.segment_bytes, s->set.block_bytes, &s->geometry, err);
}

/* Both copies, and nothing else: what the segments hold is of another store from now on. */
static int write_superblocks(struct strata *s, struct kvs_error *err)
{
	struct superblock *const superblock = s->superblock;
	uint32_t                 i;
	int                      rc;

	memset(superblock, 0, sizeof(*superblock));
	superblock->capacity_bytes = s->geometry.capacity_bytes;
	superblock->segment_bytes = s->geometry.segment_bytes;
	superblock->segment_count = s->geometry.segment_count;
	rc = os_random(superblock->id, sizeof(superblock->id));
	for (i = 0; rc == 0 && i < STRATA_SUPERBLOCKS; i++) {
		superblock->update++;
		superblock_seal(superblock);
		rc = os_file_write(s->fd, superblock, sizeof(*superblock),
				   page_offset((uint32_t)(superblock->update % STRATA_SUPERBLOCKS)));
	}
	if (rc == 0)
		rc = os_file_sync(s->fd);
	if (rc < 0)
		return refuse(rc, "cannot be formatted", err);
	sync_directory(s);
	return 0;
}

static int format(struct strata *s, uint64_t size, struct kvs_error *err)
{
	const int rc = make_geometry(s, size, err);

	return rc < 0 ? rc : write_superblocks(s, err);
}

/* --- formatting what may be in use ------------------------------------------------------------ */

static int refuse_disk(const struct strata *s, int rc, uint64_t available, struct kvs_error *err)
{
	const uint64_t needed = geometry_file_bytes(&s->geometry);
	char           wanted[32], had[32];

	return err_set(err, rc, "needs %s of its disk, which has %s available (%" PRIu64
		       " and %" PRIu64 " bytes)",
		       units_format_size(needed, wanted), units_format_size(available, had), needed,
		       available);
}

/* Before anything is lost for a store that cannot be: what the file has now it may have again. */
static int check_disk(const struct strata *s, uint64_t size, struct kvs_error *err)
{
	uint64_t available;

	if (os_disk_free(s->set.path, &available) < 0 ||
	    geometry_file_bytes(&s->geometry) <= available + size)
		return 0;
	return refuse_disk(s, -ENOSPC, available, err);
}

static int preallocate(const struct strata *s, struct kvs_error *err)
{
	uint64_t available = 0;
	int      rc = os_file_allocate(s->fd, 0, geometry_file_bytes(&s->geometry));

	if (rc == 0)
		return 0;
	(void)os_file_resize(s->fd, 0);
	(void)os_disk_free(s->set.path, &available);
	if (rc == -ENOSPC || rc == -EDQUOT)
		return refuse_disk(s, rc, available, err);
	if (rc == -EOPNOTSUPP)
		return err_set(err, rc, "is on a file system that cannot reserve disk space");
	return refuse(rc, "cannot be given its disk space", err);
}

static int check_empty(const struct strata *s, uint64_t size, struct kvs_error *err)
{
	bool empty;
	int  rc = find_empty(s, size, &empty);

	if (rc < 0)
		return refuse(rc, "cannot be read", err);
	return empty ? 0 : err_set(err, -EEXIST, "is not empty; it is left as it is");
}

/* A file begins anew, with as little space as a new one. */
static int begin_anew(const struct strata *s, struct kvs_error *err)
{
	const int rc = os_file_resize(s->fd, 0);

	if (rc < 0)
		return refuse(rc, "cannot be formatted", err);
	return s->set.preallocate ? preallocate(s, err) : 0;
}

int file_format(struct strata *s, struct kvs_error *err)
{
	uint64_t size;
	int      rc = open_and_lock(s, &size, err);

	if (rc < 0)
		return rc;
	if (s->set.only_empty)
		rc = check_empty(s, size, err);
	if (rc == 0)
		rc = make_geometry(s, size, err);
	if (rc == 0 && s->set.preallocate && !s->device)
		rc = check_disk(s, size, err);
	if (rc == 0 && !s->device)
		rc = begin_anew(s, err);
	return rc < 0 ? rc : write_superblocks(s, err);
}

/* --- the superblock --------------------------------------------------------------------------- */

static int refuse_superblock(const struct superblock *copies, struct kvs_error *err)
{
	struct geometry         geometry;
	enum superblock_verdict first = superblock_judge(&copies[0], &geometry);
	enum superblock_verdict second = superblock_judge(&copies[1], &geometry);

	if (first == SUPERBLOCK_VERSION || second == SUPERBLOCK_VERSION) {
		return err_set(err, KVS_E_PROTO,
			       "has format version %" PRIu32 "; this build reads %u; it is left as it is",
			       copies[first == SUPERBLOCK_VERSION ? 0 : 1].version, STRATA_VERSION);
	}
	if (first == SUPERBLOCK_DAMAGED || second == SUPERBLOCK_DAMAGED) {
		return err_set(err, KVS_E_PROTO,
			       "has two damaged superblocks: wrong checksums, or sizes that cannot be; it is left as it is");
	}
	return err_set(err, KVS_E_PROTO, "is no strata file; it is left as it is");
}

static int check_wanted(const struct strata *s, uint64_t size, struct kvs_error *err)
{
	const struct strata_settings *const set = &s->set;
	struct geometry                     geometry;
	char                                has[32], wanted[32];

	if (set->capacity_bytes && set->capacity_bytes != s->geometry.capacity_bytes) {
		return err_set(err, KVS_E_PROTO,
			       "has a capacity of %s, asked for %s; leave the capacity out or format it anew",
			       units_format_size(s->geometry.capacity_bytes, has),
			       units_format_size(set->capacity_bytes, wanted));
	}
	if (set->segment_bytes && set->segment_bytes != s->geometry.segment_bytes) {
		return err_set(err, KVS_E_PROTO,
			       "has segments of %s, asked for %s; leave the segment out or format it anew",
			       units_format_size(s->geometry.segment_bytes, has),
			       units_format_size(set->segment_bytes, wanted));
	}
	if (!set->read_only && geometry_make(s->geometry.capacity_bytes, s->geometry.segment_bytes,
					     set->block_bytes, &geometry, NULL) < 0) {
		return err_set(err, KVS_E_PROTO,
			       "has segments of %s, which hold no block of %s; use smaller blocks or format it anew",
			       units_format_size(s->geometry.segment_bytes, has),
			       units_format_size(set->block_bytes, wanted));
	}
	if (s->device ? size < geometry_file_bytes(&s->geometry)
		      : size > geometry_file_bytes(&s->geometry)) {
		return err_set(err, KVS_E_PROTO, "is %s than its superblock says; something else changed it",
			       s->device ? "shorter" : "longer");
	}
	return 0;
}

static int adopt_superblock(struct strata *s, const struct superblock *copies, struct kvs_error *err)
{
	struct geometry geometry[STRATA_SUPERBLOCKS];
	int             best = -1, i;

	for (i = 0; i < (int)STRATA_SUPERBLOCKS; i++) {
		if (superblock_judge(&copies[i], &geometry[i]) != SUPERBLOCK_VALID)
			continue;
		if (best < 0 || update_is_newer(copies[i].update, copies[best].update))
			best = i;
	}
	if (best < 0)
		return refuse_superblock(copies, err);
	*s->superblock = copies[best];
	s->geometry = geometry[best];
	return 0;
}

/* What cannot be read of one copy must not hide the other. */
static int read_copies(const struct strata *s, uint64_t size, struct superblock *ret_copies)
{
	uint32_t i;

	memset(ret_copies, 0, STRATA_SUPERBLOCKS * sizeof(*ret_copies));
	for (i = 0; size >= STRATA_SUPERBLOCKS * STRATA_PAGE && i < STRATA_SUPERBLOCKS; i++) {
		const int rc = os_file_read(s->fd, &ret_copies[i], STRATA_PAGE, page_offset(i));

		if (rc < 0 && rc != -EIO)
			return rc;
		if (rc < 0)
			memset(&ret_copies[i], 0, sizeof(ret_copies[i]));
	}
	return 0;
}

/* A crash came before the first format was done: both superblocks, or what there is of them. */
static bool is_half_formatted(const struct strata *s, uint64_t size,
			      const struct superblock *copies)
{
	struct geometry geometry;
	uint32_t        i;

	if (s->device || s->set.read_only || size != STRATA_SUPERBLOCKS * (uint64_t)STRATA_PAGE)
		return false;
	for (i = 0; i < STRATA_SUPERBLOCKS; i++) {
		if (!is_blank(&copies[i], sizeof(copies[i])) &&
		    superblock_judge(&copies[i], &geometry) != SUPERBLOCK_DAMAGED)
			return false;
	}
	return true;
}

/* What cannot be read is not empty. */
static int read_superblock(struct strata *s, uint64_t size, struct kvs_error *err)
{
	_Alignas(STRATA_PAGE) struct superblock copies[STRATA_SUPERBLOCKS];
	bool                                    empty = false;
	int                                     rc = read_copies(s, size, copies);

	if (rc < 0)
		return refuse(rc, "cannot be read", err);
	if (!s->set.read_only && is_blank(copies, sizeof(copies))) {
		rc = find_empty(s, size, &empty);
		if (rc < 0)
			return refuse(rc, "cannot be read", err);
	}
	empty = empty || is_half_formatted(s, size, copies);
	if (empty)
		return format(s, size, err);
	if (size == 0)
		return err_set(err, KVS_E_PROTO, "is empty: no strata file");
	rc = adopt_superblock(s, copies, err);
	return rc < 0 ? rc : check_wanted(s, size, err);
}

int file_open(struct strata *s, struct kvs_error *err)
{
	uint64_t size;
	int      rc = open_and_lock(s, &size, err);

	if (rc < 0)
		return rc;
	/* Somebody may have made, used and closed it meanwhile. */
	s->created = s->created && size == 0;
	rc = read_superblock(s, size, err);
	if (rc < 0)
		return rc;
	s->hash = store_hash(s->superblock->id);
	s->put_bytes = s->superblock->put_bytes;
	s->written_bytes = s->superblock->written_bytes;
	s->day_bytes = s->superblock->day_bytes;
	s->day = s->superblock->day;
	if (s->superblock->closed_epoch == s->superblock->epoch)
		s->heads = s->superblock->heads;
	return 0;
}
