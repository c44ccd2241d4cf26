/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strata file that anybody may have written, opened and used: read-only, for writing, and again.
 *
 * The first byte of an input chooses settings, the second which checksums are made right after the
 * patches, the third the file; what follows patches it.  Whatever it says: no crash, no access out of
 * bounds, no more I/O than so much, no payload but a key's own, and what was removed is not back, nor
 * lost what was there, when it is opened again.  Where an input made up a checksum with its
 * structure, payload may be its own, too, and only the first three are asked for.
 *
 * The file is memory, behind the hook of os/hook.h.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "named_block.h"
#include "os/hook.h"
#include "os/os.h"
#include "strata/strata.h"
#include "strata_image.h"

#define BLOCK_BYTES (2u * STRATA_PAGE)
/* Blocks of a time to come, so that what lies in the file is small beside them. */
#define LARGE_BLOCK_BYTES (4u * STRATA_PAGE)
#define NEW_KEYS 14u
#define GUARD_BYTES 64u
#define GUARD 0xa5

/* Far more than any of these files needs: each page is asked for a hundred times. */
#define CALLS_MAX (100u * IMAGE_PAGES)

/* An open reads what is there to find records, and once more to compare them. */
#define OPEN_BYTES_MAX (3u * page_offset(IMAGE_ROOM_PAGES))

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t count);

/* Settings of an input. */
enum choice {
	WITH_PUT_SYNC = 1 << 0,
	WITH_S3FIFO = 1 << 1,
	WITH_FEW_OBJECTS = 1 << 2,
	WITH_LARGE_BLOCKS = 1 << 3,
	WITH_NO_PUTS = 1 << 4,
	WITH_LOCKS = 1 << 5,
	WITH_EARLY_END = 1 << 6,
	WITH_PURGE = 1 << 7
};

static struct {
	struct image image;
	int          fd; /* of that size: what the kernel is asked for but bytes */
	uint32_t     calls;
	uint64_t     read_bytes;
	bool         forged;
	bool         sound; /* the device does what it should, and nothing is forged */
	uint8_t      choice;
	uint8_t     *block; /* the largest payload and a guard */
} rig = { .fd = -1 };

/* --- the file --------------------------------------------------------------------------------- */

static int64_t serve_read(const struct os_io *io)
{
	uint64_t bytes = io->bytes, page;

	if (io->offset >= rig.image.size)
		return 0;
	rig.read_bytes += bytes;
	if (bytes > rig.image.size - io->offset)
		bytes = rig.image.size - io->offset;
	for (page = io->offset / STRATA_PAGE; page * STRATA_PAGE < io->offset + bytes; page++) {
		if (bits_test(rig.image.bad_pages, page))
			return -EIO;
	}
	memcpy(io->buffer, rig.image.bytes + io->offset, bytes);
	return (int64_t)bytes;
}

static int64_t serve_write(const struct os_io *io)
{
	if (rig.image.writes_left == 0)
		return rig.image.full ? -ENOSPC : -EIO;
	rig.image.writes_left--;
	if (io->offset >= page_offset(IMAGE_ROOM_PAGES) ||
	    io->bytes > page_offset(IMAGE_ROOM_PAGES) - io->offset)
		return -ENOSPC;
	if (io->offset + io->bytes > rig.image.size)
		rig.image.size = io->offset + io->bytes;
	memcpy(rig.image.bytes + io->offset, io->buffer, io->bytes);
	return (int64_t)io->bytes;
}

static int64_t serve_allocate(const struct os_io *io)
{
	if (rig.image.writes_left == 0 || io->offset >= page_offset(IMAGE_ROOM_PAGES) ||
	    io->bytes > page_offset(IMAGE_ROOM_PAGES) - io->offset)
		return -ENOSPC;
	if (io->offset + io->bytes > rig.image.size)
		rig.image.size = io->offset + io->bytes;
	return 0;
}

static bool serve(void *ctx, struct os_io *io, int64_t *ret_result)
{
	(void)ctx;
	KVS_ASSERT_CMP(++rig.calls, <=, CALLS_MAX);
	switch (io->kind) {
	case OS_IO_OPEN:
		*ret_result = dup(rig.fd);
		KVS_ASSERT(*ret_result >= 0);
		break;
	case OS_IO_READ:
		*ret_result = serve_read(io);
		break;
	case OS_IO_WRITE:
		*ret_result = serve_write(io);
		break;
	case OS_IO_ALLOCATE:
		*ret_result = serve_allocate(io);
		break;
	case OS_IO_SYNC:
	case OS_IO_LOCK:
		*ret_result = 0;
		break;
	case OS_IO_RESIZE:
		KVS_PANIC("nobody asked for a new file");
	}
	return true;
}

/* --- the store -------------------------------------------------------------------------------- */

static uint64_t block_bytes(void)
{
	return rig.choice & WITH_LARGE_BLOCKS ? LARGE_BLOCK_BYTES : BLOCK_BYTES;
}

/* NULL: it was refused, with a sentence. */
static struct kvs_store *open_store(bool read_only)
{
	static const struct kvs_store_ops ops = { .name = "strata" };
	const struct strata_settings      settings = {
		     .path = "memory",
		     .block_bytes = block_bytes(),
		     .objects_max = rig.choice & WITH_FEW_OBJECTS ? 5 : 64,
		     .evict_policy = rig.choice & WITH_S3FIFO ? "s3fifo" : "lru",
		     .durability = rig.choice & WITH_PUT_SYNC ? STRATA_PUT : STRATA_NONE,
		     .write_budget_bytes = rig.choice & WITH_NO_PUTS ? 1 : 0,
		     .verify = true,
		     .plain_io = true,
		     .read_only = read_only,
	};
	struct kvs_store *store = NULL;
	struct kvs_error  err = { 0 };
	int               rc;

	rig.calls = 0;
	rig.read_bytes = 0;
	KVS_ASSERT(ftruncate(rig.fd, (off_t)rig.image.size) == 0);
	rc = strata_open(&settings, &ops, &store, &err);
	KVS_ASSERT_CMP(rig.read_bytes, <=, OPEN_BYTES_MAX);
	if (rc == 0)
		return store;
	KVS_ASSERT(!store && err.code == rc && err.message[0]);
	return NULL;
}

static bool see(void *ctx, const struct strata_finding *finding)
{
	uint32_t *const seen = ctx;

	KVS_ASSERT(finding->key || finding->damage);
	return ++*seen < 1000;
}

static void look(struct kvs_store *store)
{
	struct strata_segment_report segment;
	struct strata_report         report;
	struct kvs_store_info        info;
	uint32_t                     seen = 0, i;

	strata_describe(store, &info);
	strata_inspect(store, &report);
	KVS_ASSERT_CMP(report.object_count, ==, info.object_count);
	/* Huge geometries are tested for what they cost to open. */
	for (i = 0; i < IMAGE_ROOM_PAGES && strata_inspect_segment(store, i, &segment); i++) {
		KVS_ASSERT(segment.state && segment.live_count <= segment.record_count);
		KVS_ASSERT_CMP(segment.live_bytes, <=, report.segment_bytes);
	}
	KVS_ASSERT(strata_walk(store, true, see, &seen) == 0);
	strata_audit(store);
}

static void list(struct kvs_store *store)
{
	struct kvs_key keys[3];
	uint64_t       cursor = 0;
	uint32_t       turns = 0, count;

	do {
		KVS_ASSERT(strata_list(store, NULL, &cursor, keys, ARRAY_COUNT(keys), &count) == 0);
		KVS_ASSERT_CMP(count, <=, ARRAY_COUNT(keys));
		KVS_ASSERT_CMP(++turns, <, 1000);
	} while (cursor != 0);
}

/* In the lengths that objects have here: a get of another length is no evidence. */
static enum kvs_result get(struct kvs_store *store, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result = KVS_RESULT_UNKNOWN;
	uint64_t             bytes, i;
	bool                 retired;

	for (bytes = STRATA_PAGE; bytes <= BLOCK_BYTES; bytes += STRATA_PAGE) {
		const struct kvs_span span = { rig.block, bytes, bytes };

		memset(rig.block + bytes, GUARD, GUARD_BYTES);
		KVS_ASSERT(strata_get(store, &key, &span, 1, &result, &retired) == 0 && retired);
		for (i = 0; i < GUARD_BYTES; i++)
			KVS_ASSERT(rig.block[bytes + i] == GUARD);
		if (result != KVS_RESULT_DONE)
			continue;
		KVS_ASSERT(rig.forged || is_filled((uint64_t *)rig.block, number, (uint32_t)bytes));
		break;
	}
	return result;
}

static enum kvs_result put(struct kvs_store *store, uint32_t number)
{
	const struct kvs_key  key = key_of(number);
	const uint32_t        bytes = STRATA_PAGE * (1 + number % 2);
	const struct kvs_span span = { rig.block, bytes, bytes + (number % 3 ? STRATA_PAGE : 0) };
	enum kvs_result       result = KVS_RESULT_UNKNOWN;
	bool                  retired;

	fill((uint64_t *)rig.block, number, bytes);
	KVS_ASSERT(strata_put(store, &key, &span, 1, &result, &retired) == 0 && retired);
	return result;
}

static void get_all(struct kvs_store *store)
{
	uint32_t number;

	for (number = 0; number < IMAGE_KEYS + NEW_KEYS; number++)
		(void)get(store, number);
}

static void read_it(void)
{
	struct kvs_store *const store = open_store(true);

	if (!store)
		return;
	look(store);
	list(store);
	KVS_ASSERT(put(store, IMAGE_KEYS) != KVS_RESULT_DONE);
	get_all(store);
	strata_audit(store);
	KVS_ASSERT(strata_close(store) == 0);
}

static enum kvs_result remove_one(struct kvs_store *store, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result;

	KVS_ASSERT(strata_remove(store, &key, 1, &result) == 0);
	return result;
}

/* Some of them used, so that cleaning has something to move. */
static void put_many(struct kvs_store *store)
{
	uint32_t number;

	for (number = IMAGE_KEYS; number < IMAGE_KEYS + NEW_KEYS; number++) {
		if (put(store, number) == KVS_RESULT_DONE && number % 4 == 0)
			(void)get(store, number);
		(void)get(store, number % IMAGE_KEYS);
	}
	strata_audit(store);
}

/* How many objects it held in the end; SOME when that cannot be told. */
#define SOME UINT64_MAX

static uint64_t count_objects(struct kvs_store *store)
{
	struct kvs_store_info info;

	strata_describe(store, &info);
	return rig.sound ? info.object_count : SOME;
}

static uint64_t use_it(void)
{
	const struct kvs_key    locked[2] = { key_of(0), key_of(3) };
	enum kvs_result         results[2];
	struct kvs_store *const store = open_store(false);
	uint64_t                purged, left;

	if (!store)
		return SOME;
	get_all(store);
	if (rig.choice & WITH_LOCKS)
		KVS_ASSERT(strata_lock(store, locked, 2, results) == 0);
	(void)remove_one(store, 2);
	put_many(store);
	(void)remove_one(store, IMAGE_KEYS + 1);
	look(store);
	if (rig.choice & WITH_LOCKS)
		strata_unlock(store, locked, 2);
	if (rig.choice & WITH_PURGE)
		(void)strata_purge(store, &locked[0].space, &purged);
	list(store);
	strata_audit(store);
	left = count_objects(store);
	KVS_ASSERT(strata_close(store) == 0);
	return left;
}

/* What the writes made of it is a file like any other, and what was removed or lost is not back. */
static void use_it_again(uint64_t left)
{
	struct kvs_store *const store = open_store(false);
	enum kvs_result         removed;

	KVS_ASSERT(store || left == SOME);
	if (!store)
		return;
	if (left != SOME) {
		KVS_ASSERT_CMP(count_objects(store), ==, left);
		KVS_ASSERT(get(store, 2) == KVS_RESULT_MISSING);
	}
	removed = remove_one(store, IMAGE_KEYS + 2);
	get_all(store);
	KVS_ASSERT(removed != KVS_RESULT_DONE || get(store, IMAGE_KEYS + 2) == KVS_RESULT_MISSING);
	put_many(store);
	look(store);
	KVS_ASSERT(strata_close(store) == 0);
}

static void rig_init(void)
{
	/* A store's buffers come and go with each open: half the time would be the kernel's. */
	(void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
	rig.fd = memfd_create("strata-fuzz", MFD_CLOEXEC);
	rig.block = aligned_alloc(STRATA_PAGE, BLOCK_BYTES + 2 * STRATA_PAGE);
	KVS_ASSERT(rig.fd >= 0 && rig.block);
	os_io_hook_set(serve, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t count)
{
	enum image_kind kind;
	uint32_t        repairs;

	if (count < 3)
		return 0;
	if (rig.fd < 0)
		rig_init();
	rig.choice = input[0];
	repairs = input[1];
	kind = (enum image_kind)(input[2] % IMAGE_KINDS);
	input += 3;
	count -= 3;
	image_make(&rig.image, kind);
	while (image_patch(&rig.image, &input, &count))
		;
	image_repair(&rig.image, repairs);
	rig.forged = image_is_forged(&rig.image, kind);
	rig.sound = !rig.forged && image_is_sound(&rig.image);
	read_it();
	if (rig.choice & WITH_EARLY_END)
		return 0;
	use_it_again(use_it());
	return 0;
}
