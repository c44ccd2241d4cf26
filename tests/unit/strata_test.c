/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strata file between two opens: what lasts, what damage does, and what is refused untouched.
 */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "named_block.h"
#include "store/store.h"
#include "store/strata_format.h"

#define BLOCK 8192u
#define SLOTS 4u
#define CAPACITY (2 * STRATA_PAGE + SLOTS * BLOCK)

static char directory[] = "/var/tmp/kvstrata-XXXXXX";
static char path[64];
static char spec[128];

static _Alignas(4096) uint64_t buffer[BLOCK / 8];

static int directory_make(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/store", directory);
	snprintf(spec, sizeof(spec), "strata:%s?capacity=%u", path, CAPACITY);
	return 0;
}

static int directory_drop(void **state)
{
	(void)state;
	return rmdir(directory);
}

static int file_drop(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static struct kvs_store *open_store(void)
{
	struct kvs_store *store = NULL;
	struct kvs_error  err;

	if (store_open(spec, BLOCK, "lru", &store, &err) < 0)
		fail_msg("%s", err.message);
	return store;
}

static void close_store(struct kvs_store *store)
{
	slotted_audit((struct slotted *)store);
	assert_int_equal(store->ops->close(store), 0);
}

static enum kvs_result put(struct kvs_store *store, uint32_t number)
{
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = { buffer, BLOCK, BLOCK };
	enum kvs_result       result;
	bool                  retired;

	fill(buffer, number, BLOCK);
	assert_int_equal(store->ops->put(store, &key, &span, 1, &result, &retired), 0);
	assert_true(retired);
	return result;
}

static enum kvs_result get(struct kvs_store *store, uint32_t number)
{
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = { buffer, BLOCK, BLOCK };
	enum kvs_result       result;
	bool                  retired;

	memset(buffer, 0xee, BLOCK);
	assert_int_equal(store->ops->get(store, &key, &span, 1, &result, &retired), 0);
	assert_true(retired);
	if (result == KVS_RESULT_DONE)
		assert_true(is_filled(buffer, number, BLOCK));
	return result;
}

static struct kvs_store_info limits_of(struct kvs_store *store)
{
	struct kvs_store_info limits;

	store->ops->describe(store, &limits);
	return limits;
}

/* A closed file with objects 0 .. count - 1 in slots of the same numbers. */
static void make_file(uint32_t count)
{
	struct kvs_store *store = open_store();
	uint32_t          i;

	for (i = 0; i < count; i++)
		assert_int_equal(put(store, i), KVS_RESULT_DONE);
	close_store(store);
}

static uint64_t header_at(uint32_t slot)
{
	return STRATA_PAGE + slot * sizeof(struct slot_header);
}

static uint64_t payload_at(uint32_t slot)
{
	return strata_payload_offset(SLOTS) + (uint64_t)slot * BLOCK;
}

static void poke(uint64_t offset, const void *bytes, size_t count)
{
	const int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, count, (off_t)offset), (ssize_t)count);
	close(fd);
}

static void peek(uint64_t offset, void *bytes, size_t count)
{
	const int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, count, (off_t)offset), (ssize_t)count);
	close(fd);
}

static void flip(uint64_t offset)
{
	uint8_t byte;

	peek(offset, &byte, 1);
	byte ^= 0x40;
	poke(offset, &byte, 1);
}

static void check_refused(int code, const char *message)
{
	struct kvs_store *store = NULL;
	struct kvs_error  err = { 0 };

	assert_int_equal(store_open(spec, BLOCK, "lru", &store, &err), code);
	assert_null(store);
	if (!strstr(err.message, message) || !strstr(err.message, "store.path: \""))
		fail_msg("%s", err.message);
}

static void objects_and_their_order_outlive_a_close(void **state)
{
	struct kvs_store *store;

	(void)state;
	make_file(SLOTS + 1); /* 0 is evicted, and 4 lies in its slot */
	store = open_store();
	assert_int_equal(limits_of(store).object_count, SLOTS);
	assert_int_equal(get(store, 0), KVS_RESULT_MISSING);
	assert_int_equal(put(store, 5), KVS_RESULT_DONE); /* in the place of 1, the oldest put */
	assert_int_equal(get(store, 1), KVS_RESULT_MISSING);
	assert_int_equal(get(store, 2), KVS_RESULT_DONE);
	assert_int_equal(get(store, 4), KVS_RESULT_DONE);
	close_store(store);
	store = open_store();
	assert_int_equal(get(store, 5), KVS_RESULT_DONE);
	assert_int_equal(get(store, 4), KVS_RESULT_DONE);
	assert_int_equal(limits_of(store).corrupt_objects, 0);
	close_store(store);
}

static void removed_stays_removed(void **state)
{
	const struct kvs_key key = key_of(1);
	struct kvs_store    *store;
	enum kvs_result      result;

	(void)state;
	make_file(2);
	store = open_store();
	assert_int_equal(store->ops->remove(store, &key, 1, &result), 0);
	assert_int_equal(result, KVS_RESULT_DONE);
	close_store(store);
	store = open_store();
	assert_int_equal(get(store, 1), KVS_RESULT_MISSING);
	assert_int_equal(get(store, 0), KVS_RESULT_DONE);
	close_store(store);
}

static void one_store_at_a_time(void **state)
{
	struct kvs_store *store = open_store();

	(void)state;
	check_refused(KVS_E_BUSY, "is open in another store");
	assert_int_equal(put(store, 1), KVS_RESULT_DONE);
	close_store(store);
	store = open_store();
	assert_int_equal(get(store, 1), KVS_RESULT_DONE);
	close_store(store);
}

static void a_wrong_payload_is_corrupt_then_missing(void **state)
{
	static const uint32_t places[] = { 0, 1, 4095, 4096, BLOCK - 1 };
	struct kvs_store     *store;
	size_t                i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(places); i++) {
		file_drop(NULL);
		make_file(2);
		flip(payload_at(1) + places[i]);
		store = open_store();
		assert_int_equal(get(store, 1), KVS_RESULT_CORRUPT);
		assert_int_equal(get(store, 1), KVS_RESULT_MISSING);
		assert_int_equal(get(store, 0), KVS_RESULT_DONE);
		assert_int_equal(limits_of(store).corrupt_objects, 1);
		close_store(store);
		store = open_store();
		assert_int_equal(get(store, 1), KVS_RESULT_MISSING);
		assert_int_equal(limits_of(store).corrupt_objects, 0);
		assert_int_equal(put(store, 1), KVS_RESULT_DONE);
		assert_int_equal(get(store, 1), KVS_RESULT_DONE);
		close_store(store);
	}
}

/*
 * Whichever byte of a header is wrong, and whichever bit of it: no object, and none in its place.
 */
static void a_wrong_header_is_no_object(void **state)
{
	uint32_t place;

	(void)state;
	make_file(2);
	for (place = 0; place < sizeof(struct slot_header); place++) {
		struct kvs_store *store;

		flip(header_at(1) + place);
		store = open_store();
		assert_int_equal(limits_of(store).object_count, 1);
		assert_int_equal(limits_of(store).corrupt_objects, 1);
		assert_int_equal(get(store, 1), KVS_RESULT_MISSING);
		assert_int_equal(get(store, 0), KVS_RESULT_DONE);
		close_store(store);
		flip(header_at(1) + place);
	}
}

static void payloads_swapped_are_corrupt(void **state)
{
	struct kvs_store *store;

	(void)state;
	make_file(2);
	fill(buffer, 1, BLOCK);
	poke(payload_at(0), buffer, BLOCK);
	fill(buffer, 0, BLOCK);
	poke(payload_at(1), buffer, BLOCK);
	store = open_store();
	assert_int_equal(get(store, 0), KVS_RESULT_CORRUPT);
	assert_int_equal(get(store, 1), KVS_RESULT_CORRUPT);
	close_store(store);
}

/* Headers and payload whole, but the one speaks of another key than the checksum was made for. */
static void bytes_under_another_key_are_corrupt(void **state)
{
	struct object      object = { .key = key_of(1), .bytes = BLOCK };
	struct slot_header header;
	struct kvs_store  *store;

	(void)state;
	make_file(2);
	fill(buffer, 1, BLOCK);
	object.checksum = object_checksum(&object.key, buffer, BLOCK);
	object.key = key_of(5);
	header_make(1, 100, &object, &header);
	poke(header_at(1), &header, sizeof(header));
	store = open_store();
	assert_int_equal(limits_of(store).object_count, 2);
	assert_int_equal(get(store, 5), KVS_RESULT_CORRUPT);
	close_store(store);
}

static void a_header_in_anothers_slot_is_none(void **state)
{
	struct slot_header header;
	struct kvs_store  *store;

	(void)state;
	make_file(1);
	peek(header_at(0), &header, sizeof(header));
	poke(header_at(2), &header, sizeof(header));
	store = open_store();
	assert_int_equal(limits_of(store).object_count, 1);
	assert_int_equal(limits_of(store).corrupt_objects, 1);
	close_store(store);
}

/* A crash can leave an object twice; the later write is the object. */
static void of_two_headers_with_one_key_the_later_wins(void **state)
{
	struct object      object = { .key = key_of(0), .bytes = BLOCK };
	struct slot_header header;
	struct kvs_store  *store;

	(void)state;
	make_file(2);
	fill(buffer, 0, BLOCK);
	object.checksum = object_checksum(&object.key, buffer, BLOCK);
	header_make(3, 100, &object, &header);
	poke(header_at(3), &header, sizeof(header));
	poke(payload_at(3), buffer, BLOCK);
	flip(payload_at(0));
	store = open_store();
	assert_int_equal(limits_of(store).object_count, 2);
	assert_int_equal(get(store, 0), KVS_RESULT_DONE);
	assert_int_equal(put(store, 7), KVS_RESULT_DONE);
	assert_int_equal(put(store, 8), KVS_RESULT_DONE);
	assert_int_equal(limits_of(store).evicted_objects, 0);
	close_store(store);
	peek(header_at(0), &header, sizeof(header));
	assert_memory_not_equal(&header.key, &object.key, sizeof(object.key));
}

static void a_header_past_all_sequences_is_none(void **state)
{
	const struct object object = { .key = key_of(0), .bytes = BLOCK };
	struct slot_header  header;
	struct kvs_store   *store;

	(void)state;
	make_file(0);
	header_make(3, UINT64_MAX, &object, &header);
	poke(header_at(3), &header, sizeof(header));
	store = open_store();
	assert_int_equal(limits_of(store).corrupt_objects, 1);
	close_store(store);
}

static void a_shortened_file_loses_what_was_cut(void **state)
{
	struct kvs_store *store;

	(void)state;
	make_file(SLOTS);
	assert_int_equal(truncate(path, (off_t)payload_at(1) + 4096), 0);
	store = open_store();
	assert_int_equal(get(store, 0), KVS_RESULT_DONE);
	assert_int_equal(get(store, 1), KVS_RESULT_CORRUPT);
	assert_int_equal(get(store, 3), KVS_RESULT_CORRUPT);
	close_store(store);
}

static void another_geometry_is_refused(void **state)
{
	struct kvs_store *store;
	struct kvs_error  err;

	(void)state;
	make_file(1);
	assert_int_equal(store_open(spec, 4096, "lru", &store, &err), KVS_E_PROTO);
	assert_non_null(
		strstr(err.message, "holds 4 blocks of 8 KiB, asked for 8 blocks of 4 KiB"));
	store = open_store();
	assert_int_equal(get(store, 0), KVS_RESULT_DONE);
	close_store(store);
}

static void a_damaged_superblock_is_refused(void **state)
{
	(void)state;
	make_file(1);
	flip(16);
	check_refused(KVS_E_PROTO, "has a damaged superblock");
	flip(16);
	flip(0);
	check_refused(KVS_E_PROTO, "is no strata file");
	flip(0);
	close_store(open_store());
}

static void another_file_is_refused_untouched(void **state)
{
	static const char text[] = "somebody's notes\n";
	struct stat       status;
	char              back[sizeof(text)];
	FILE             *file = fopen(path, "w");

	(void)state;
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	check_refused(KVS_E_PROTO, "is no strata file");
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, sizeof(text) - 1);
	peek(0, back, sizeof(text) - 1);
	assert_memory_equal(back, text, sizeof(text) - 1);

	/* Large enough to hold a superblock, and zero, as a fresh disk image is. */
	assert_int_equal(truncate(path, CAPACITY), 0);
	poke(0, &(char[17]){ 0 }, 17);
	check_refused(KVS_E_PROTO, "is no strata file");
}

static void a_longer_file_is_refused(void **state)
{
	(void)state;
	make_file(1);
	assert_int_equal(truncate(path, CAPACITY + 1), 0);
	check_refused(KVS_E_PROTO, "is longer than its superblock says");
}

static void a_directory_is_refused(void **state)
{
	struct kvs_store *store;
	struct kvs_error  err;
	char              text[128];

	(void)state;
	snprintf(text, sizeof(text), "strata:%s?capacity=1MiB", directory);
	assert_true(store_open(text, BLOCK, "lru", &store, &err) < 0);
	assert_non_null(strstr(err.message, directory));
}

/*
 * Some puts fit, the rest are refused for space; what was put stays, and nothing is claimed twice.
 */
static void check_full_disk(struct kvs_store *store)
{
	uint32_t refused = 0, i;

	for (i = 0; i < SLOTS; i++)
		refused += put(store, i) == KVS_RESULT_NO_SPACE;
	assert_in_range(refused, 1, SLOTS - 1);
	assert_int_equal(limits_of(store).object_count, SLOTS - refused);
	assert_int_equal(get(store, 0), KVS_RESULT_DONE);
	assert_int_equal(get(store, SLOTS - 1), KVS_RESULT_MISSING);
	assert_int_equal(put(store, SLOTS), KVS_RESULT_NO_SPACE);
	assert_int_equal(put(store, 0), KVS_RESULT_EXISTS);
}

static void a_file_size_limit_is_no_space(void **state)
{
	struct kvs_store *store = open_store();
	struct rlimit     limit, before;
	uint32_t          i;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = payload_at(2) + 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	check_full_disk(store);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	for (i = 0; i < SLOTS; i++)
		assert_int_not_equal(put(store, i), KVS_RESULT_NO_SPACE);
	close_store(store);
}

/* A tmpfs of this process's own with room for superblock, headers and two of four blocks. */
static void a_full_disk_is_no_space(void **state)
{
	struct kvs_store *store;

	(void)state;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", directory, "tmpfs", 0, "size=24k") < 0) {
		print_message("# left out: this user may not mount a small tmpfs\n");
		return;
	}
	store = open_store();
	check_full_disk(store);
	close_store(store);
	store = open_store();
	assert_int_equal(get(store, 0), KVS_RESULT_DONE);
	assert_int_equal(limits_of(store).corrupt_objects, 0);
	close_store(store);
	assert_int_equal(umount(directory), 0);
}

#define FILE_TEST(test) cmocka_unit_test_teardown(test, file_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(objects_and_their_order_outlive_a_close),
		FILE_TEST(removed_stays_removed),
		FILE_TEST(one_store_at_a_time),
		FILE_TEST(a_wrong_payload_is_corrupt_then_missing),
		FILE_TEST(a_wrong_header_is_no_object),
		FILE_TEST(payloads_swapped_are_corrupt),
		FILE_TEST(bytes_under_another_key_are_corrupt),
		FILE_TEST(a_header_in_anothers_slot_is_none),
		FILE_TEST(of_two_headers_with_one_key_the_later_wins),
		FILE_TEST(a_header_past_all_sequences_is_none),
		FILE_TEST(a_shortened_file_loses_what_was_cut),
		FILE_TEST(another_geometry_is_refused),
		FILE_TEST(a_damaged_superblock_is_refused),
		FILE_TEST(another_file_is_refused_untouched),
		FILE_TEST(a_longer_file_is_refused),
		FILE_TEST(a_directory_is_refused),
		FILE_TEST(a_file_size_limit_is_no_space),
		FILE_TEST(a_full_disk_is_no_space),
	};

	return cmocka_run_group_tests(tests, directory_make, directory_drop);
}
