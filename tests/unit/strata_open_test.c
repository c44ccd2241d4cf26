/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a strata file: what is refused and left as it is, who may have it, and who may look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "named_block.h"
#include "quarry.h"

#define SEGMENTS 5u

static int setup(void **state)
{
	static struct quarry quarry;

	quarry_init(&quarry, SEGMENTS);
	*state = &quarry;
	return 0;
}

static int teardown(void **state)
{
	quarry_fini(*state);
	return 0;
}

/* A closed file with objects 0 .. count - 1 in their order. */
static void make_file(struct quarry *quarry, uint32_t count)
{
	quarry_open(quarry);
	quarry_put_range(quarry, 0, count);
	quarry_close(quarry);
}

/* --- superblocks ------------------------------------------------------------------------------ */

static void set_version(struct quarry *quarry, uint32_t version)
{
	const uint64_t place = offsetof(struct superblock, version);

	quarry_poke(quarry, place, &version, sizeof(version));
	quarry_poke(quarry, STRATA_PAGE + place, &version, sizeof(version));
}

/* Before the checksum is looked at: another version may keep it elsewhere. */
static void other_versions_are_refused_by_name(void **state)
{
	struct quarry *const quarry = *state;
	const uint32_t       mine = STRATA_VERSION;

	make_file(quarry, 3);
	set_version(quarry, 1);
	quarry_expect_refusal(quarry, KVS_E_PROTO,
			      "has format version 1; this build reads 2; it is left as it is");
	set_version(quarry, 3);
	quarry_expect_refusal(quarry, KVS_E_PROTO,
			      "has format version 3; this build reads 2; it is left as it is");
	set_version(quarry, mine);
	quarry_open(quarry);
	quarry_get_range(quarry, 0, 3);
}

/* Version 1 had one superblock, and slots of headers behind it. */
static void a_file_of_version_1_is_refused(void **state)
{
	struct quarry *const quarry = *state;
	static uint8_t       file[16 * STRATA_PAGE];
	const uint32_t       version = 1;
	FILE *const          out = fopen(quarry->place.path, "wb");

	assert_non_null(out);
	memset(file + STRATA_PAGE, 0x5a, sizeof(file) - STRATA_PAGE);
	memcpy(file, "kvstrata", 8);
	memcpy(file + 8, &version, sizeof(version));
	assert_int_equal(fwrite(file, 1, sizeof(file), out), sizeof(file));
	assert_int_equal(fclose(out), 0);
	quarry_expect_refusal(quarry, KVS_E_PROTO, "has format version 1; this build reads 2");
}

/* Whichever byte of it. */
static void a_damaged_superblock_leaves_the_other(void **state)
{
	static const uint64_t places[] = { 0, 12, 16, 32, 40, 48, 56, 64, 200, STRATA_PAGE - 1 };
	struct quarry *const  quarry = *state;
	size_t                i;
	uint32_t              copy;

	make_file(quarry, 6);
	for (i = 0; i < ARRAY_COUNT(places); i++) {
		for (copy = 0; copy < STRATA_SUPERBLOCKS; copy++) {
			quarry_flip(quarry, page_offset(copy) + places[i]);
			quarry_open(quarry);
			quarry_get_range(quarry, 0, 6);
			quarry_put_range(quarry, 10, 11);
			assert_int_equal(quarry_remove(quarry, 10), KVS_RESULT_DONE);
			quarry_close(quarry);
		}
	}
}

/*
 * Which of the two pages that is changes with the number of times it was written; an open is known by one
 * page alone until something else is written.
 */
static void of_two_superblocks_the_newer_counts(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	for (i = 0; i < 8; i++) {
		struct quarry copy;

		quarry_open(quarry);
		assert_int_equal(quarry_report(quarry).epoch, i + 1);
		quarry_crash(quarry, &copy);
		quarry_open(&copy);
		assert_int_equal(quarry_report(&copy).epoch, i + 2);
		quarry_fini(&copy);
		if (i % 2)
			quarry_put_range(quarry, i, i + 1);
		quarry_close(quarry);
	}
	quarry_open(quarry);
	assert_int_equal(quarry_report(quarry).put_bytes, 4 * QUARRY_BLOCK);
}

static void two_damaged_superblocks_are_refused(void **state)
{
	struct quarry *const quarry = *state;

	make_file(quarry, 3);
	quarry_flip(quarry, 100);
	quarry_flip(quarry, STRATA_PAGE + 16);
	quarry_expect_refusal(quarry, KVS_E_PROTO, "has two damaged superblocks");
	quarry_flip(quarry, STRATA_PAGE + 16);
	quarry_flip(quarry, STRATA_PAGE);
	quarry_expect_refusal(quarry, KVS_E_PROTO, "has two damaged superblocks");
	quarry_flip(quarry, 0);
	quarry_flip(quarry, 100);
	quarry_flip(quarry, STRATA_PAGE + 100);
	quarry_flip(quarry, STRATA_PAGE);
	/* The first is whole but for its magic. */
	quarry_expect_refusal(quarry, KVS_E_PROTO, "damaged");
}

/* --- other files ------------------------------------------------------------------------------ */

static void write_file(struct quarry *quarry, const void *bytes, size_t count)
{
	FILE *const out = fopen(quarry->place.path, "wb");

	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, count, out), count);
	assert_int_equal(fclose(out), 0);
}

static void other_files_are_refused_untouched(void **state)
{
	static const uint8_t zeroes[3 * STRATA_PAGE];
	static const char    text[] = "somebody's notes\n";
	struct quarry *const quarry = *state;

	write_file(quarry, text, sizeof(text) - 1);
	quarry_expect_refusal(quarry, KVS_E_PROTO, "is no strata file; it is left as it is");
	write_file(quarry, zeroes, sizeof(zeroes));
	quarry_expect_refusal(quarry, KVS_E_PROTO, "is no strata file; it is left as it is");
	write_file(quarry, zeroes, 1);
	quarry_expect_refusal(quarry, KVS_E_PROTO, "is no strata file; it is left as it is");
	/* An empty one is nobody's. */
	write_file(quarry, zeroes, 0);
	quarry_open(quarry);
	quarry_put_range(quarry, 0, 1);
}

static void other_kinds_of_files_are_refused(void **state)
{
	struct quarry *const quarry = *state;
	struct kvs_error     err = { 0 };
	struct kvs_store    *store = NULL;
	const struct strata_settings set = { .path = "/dev/zero", .capacity_bytes = 1 << 20,
					     .block_bytes = QUARRY_BLOCK, .evict_policy = "lru" };

	assert_int_equal(strata_open(&set, NULL, &store, &err), KVS_E_INVALID);
	assert_string_equal(err.message,
			    "store.path: \"/dev/zero\": is neither a file nor a block device");
	assert_int_equal(mkdir(quarry->place.path, 0700), 0);
	assert_int_equal(quarry_try(quarry, &err), -EISDIR);
	assert_int_equal(rmdir(quarry->place.path), 0);
}

static void a_longer_file_is_refused(void **state)
{
	struct quarry *const quarry = *state;

	make_file(quarry, 1);
	assert_int_equal(truncate(quarry->place.path, QUARRY_CAPACITY(SEGMENTS) + 1), 0);
	quarry_expect_refusal(quarry, KVS_E_PROTO, "is longer than its superblock says");
}

/* --- sizes ------------------------------------------------------------------------------------ */

static void other_sizes_are_refused(void **state)
{
	struct quarry *const quarry = *state;

	make_file(quarry, 4);
	quarry->set.capacity_bytes = QUARRY_CAPACITY(SEGMENTS) + STRATA_PAGE;
	quarry_expect_refusal(quarry, KVS_E_PROTO,
			      "has a capacity of 328 KiB, asked for 332 KiB; leave the capacity out");
	quarry->set.capacity_bytes = QUARRY_CAPACITY(SEGMENTS);
	quarry->set.segment_bytes = QUARRY_SEGMENT - STRATA_PAGE;
	quarry_expect_refusal(quarry, KVS_E_PROTO,
			      "has segments of 64 KiB, asked for 60 KiB; leave the segment out");
	quarry->set.capacity_bytes = quarry->set.segment_bytes = 0;
	quarry->set.block_bytes = QUARRY_SEGMENT;
	quarry_expect_refusal(quarry, KVS_E_PROTO,
			      "has segments of 64 KiB, which hold no block of 64 KiB");
	quarry->set.block_bytes = QUARRY_SEGMENT - 5 * STRATA_PAGE;
	quarry_open(quarry);
	quarry_get_range(quarry, 0, 4);
}

/* Smaller blocks than before: what is larger stays until it is moved, and cannot be asked for. */
static void blocks_may_be_smaller_than_before(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	make_file(quarry, 4);
	quarry->set.block_bytes = STRATA_PAGE;
	quarry_open(quarry);
	assert_int_equal(quarry_info(quarry).object_count, 4);
	for (i = 10; i < 100; i++)
		assert_int_equal(quarry_put_bytes(quarry, i, STRATA_PAGE), KVS_RESULT_DONE);
	assert_int_equal(quarry_get_bytes(quarry, 99, STRATA_PAGE), KVS_RESULT_DONE);
}

static void a_refused_open_creates_nothing(void **state)
{
	struct quarry *const quarry = *state;
	struct kvs_error     err = { 0 };
	struct stat          status;

	quarry->set.evict_policy = "newest";
	assert_int_equal(quarry_try(quarry, &err), KVS_E_INVALID);
	quarry->set.evict_policy = "none";
	assert_int_equal(quarry_try(quarry, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "policy: \"none\" never makes room; use one of: lru "));
	quarry->set.evict_policy = "lru";
	quarry->set.capacity_bytes = QUARRY_CAPACITY(3);
	assert_int_equal(quarry_try(quarry, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "store.capacity: "));
	quarry->set.capacity_bytes = QUARRY_CAPACITY(SEGMENTS);
	quarry->set.segment_bytes = QUARRY_BLOCK;
	assert_int_equal(quarry_try(quarry, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "store.segment: "));
	quarry->set.capacity_bytes = quarry->set.segment_bytes = 0;
	assert_int_equal(quarry_try(quarry, &err), -ENOENT);
	quarry->set.read_only = true;
	assert_int_equal(quarry_try(quarry, &err), -ENOENT);
	assert_int_equal(stat(quarry->place.path, &status), -1);
}

static void formatting_begins_anew(void **state)
{
	struct quarry *const       quarry = *state;
	const struct strata_report none = { 0 };
	struct strata_report       before, after;
	struct kvs_error           err = { 0 };
	struct stat                status;

	quarry_open(quarry);
	quarry_put_range(quarry, 0, 6);
	before = quarry_report(quarry);
	assert_int_equal(strata_format(&quarry->set, &err), KVS_E_BUSY);
	quarry_close(quarry);
	quarry->set.capacity_bytes = QUARRY_CAPACITY(4);
	assert_int_equal(strata_format(&quarry->set, &err), 0);
	assert_int_equal(stat(quarry->place.path, &status), 0);
	assert_int_equal(status.st_size, STRATA_SUPERBLOCKS * STRATA_PAGE);
	quarry_open(quarry);
	after = quarry_report(quarry);
	assert_memory_not_equal(after.id, before.id, sizeof(after.id));
	assert_memory_not_equal(after.id, none.id, sizeof(after.id));
	assert_int_equal(after.segment_count, 4);
	assert_int_equal(after.object_count, 0);
	assert_int_equal(after.put_bytes, 0);
	quarry_put_range(quarry, 0, 6);
}

/* --- one at a time ---------------------------------------------------------------------------- */

static void one_store_of_a_process_at_a_time(void **state)
{
	struct quarry *const quarry = *state;
	struct quarry        second = { 0 };

	quarry_open(quarry);
	second = *quarry;
	second.store = NULL;
	quarry_expect_refusal(&second, KVS_E_BUSY, "is open in another store of this process");
	quarry_put_range(quarry, 0, 2);
	quarry_reopen(quarry);
	quarry_get_range(quarry, 0, 2);
}

/* Holds the store until the pipe closes. */
static void hold(struct quarry *quarry, const int *opened, const int *done)
{
	char byte = 0;

	prctl(PR_SET_NAME, "quarryman");
	close(done[1]);
	quarry->set.path = quarry->place.path;
	if (strata_open(&quarry->set, NULL, &quarry->store, NULL) == 0 &&
	    write(opened[1], &byte, 1) == 1)
		(void)!read(done[0], &byte, 1);
	_exit(0);
}

static void a_process_that_has_it_is_named(void **state)
{
	struct quarry *const quarry = *state;
	int                  opened[2], done[2], status;
	char                 sentence[64], byte;
	pid_t                child;

	make_file(quarry, 2);
	assert_int_equal(pipe(opened), 0);
	assert_int_equal(pipe(done), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		hold(quarry, opened, done);
	assert_int_equal(read(opened[0], &byte, 1), 1);
	snprintf(sentence, sizeof(sentence), "is open in process %ld (quarryman); one file", (long)child);
	quarry_expect_refusal(quarry, KVS_E_BUSY, sentence);
	close(done[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	/* It ended without a word: the lock went with it. */
	quarry_open(quarry);
	quarry_get_range(quarry, 0, 2);
	close(done[0]);
	close(opened[0]);
	close(opened[1]);
}

/* --- looking on ------------------------------------------------------------------------------- */

static uint32_t list_count(struct quarry *quarry)
{
	struct kvs_key keys[3];
	uint64_t       cursor = 0;
	uint32_t       count, sum = 0;

	do {
		assert_int_equal(strata_list(quarry->store, NULL, &cursor, keys, ARRAY_COUNT(keys),
					     &count),
				 0);
		sum += count;
	} while (cursor);
	return sum;
}

static bool count_damage(void *ctx, const struct strata_finding *finding)
{
	*(uint32_t *)ctx += finding->damage != NULL;
	return true;
}

/* Also what lies in segments that nobody has sealed yet: a put and a moved one. */
static void a_reader_sees_what_a_writer_has_put(void **state)
{
	struct quarry *const quarry = *state;
	struct quarry        reader;
	uint32_t             i, damage = 0;

	quarry_open(quarry);
	for (i = 0; i < 40; i++) {
		const uint64_t there = quarry_info(quarry).object_count;

		reader = *quarry;
		reader.store = NULL;
		reader.set.read_only = true;
		quarry_open(&reader);
		assert_int_equal(quarry_info(&reader).object_count, there);
		assert_int_equal(quarry_count(&reader, 0, i), there);
		assert_int_equal(list_count(&reader), there);
		assert_int_equal(strata_walk(reader.store, true, count_damage, &damage), 0);
		assert_int_equal(damage, 0);
		if (i > 0)
			assert_int_equal(quarry_get(&reader, i - 1), KVS_RESULT_DONE);
		quarry_close(&reader);
		quarry_put_range(quarry, i, i + 1);
		quarry_get_range(quarry, i - i % 5, i - i % 5 + 1);
	}
	assert_true(quarry_info(quarry).moved_objects > 0);
}

static void a_reader_writes_nothing(void **state)
{
	struct quarry *const quarry = *state;
	struct quarry        before, after;
	static uint8_t       bytes[2][QUARRY_CAPACITY(2)];
	uint64_t             removed = 99;

	quarry_open(quarry);
	quarry_put_range(quarry, 0, 6);
	quarry_crash(quarry, &before);
	quarry_peek(&before, 0, bytes[0], sizeof(bytes[0]));
	after = before;
	after.set.read_only = true;
	quarry_open(&after);
	quarry_get_range(&after, 0, 6);
	assert_int_equal(quarry_put(&after, 9), KVS_RESULT_NO_SPACE);
	assert_int_equal(quarry_put(&after, 0), KVS_RESULT_NO_SPACE);
	assert_int_equal(quarry_remove(&after, 0), KVS_RESULT_MISSING);
	assert_int_equal(strata_purge(after.store, &(struct kvs_namespace){ 0 }, &removed), 0);
	assert_int_equal(removed, 0);
	quarry_get_range(&after, 0, 6);
	quarry_close(&after);
	quarry_peek(&before, 0, bytes[1], sizeof(bytes[1]));
	assert_memory_equal(bytes[0], bytes[1], sizeof(bytes[0]));
	quarry_fini(&before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(other_versions_are_refused_by_name),
		TEST(a_file_of_version_1_is_refused),
		TEST(a_damaged_superblock_leaves_the_other),
		TEST(of_two_superblocks_the_newer_counts),
		TEST(two_damaged_superblocks_are_refused),
		TEST(other_files_are_refused_untouched),
		TEST(other_kinds_of_files_are_refused),
		TEST(a_longer_file_is_refused),
		TEST(other_sizes_are_refused),
		TEST(blocks_may_be_smaller_than_before),
		TEST(a_refused_open_creates_nothing),
		TEST(formatting_begins_anew),
		TEST(one_store_of_a_process_at_a_time),
		TEST(a_process_that_has_it_is_named),
		TEST(a_reader_sees_what_a_writer_has_put),
		TEST(a_reader_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
