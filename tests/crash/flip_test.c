/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every byte of a small strata file is flipped, one at a time: the store opens or refuses, each key has
 * its right bytes, or is missing or corrupt, and nothing crashes.
 *
 * The file is copied while the store is open, so that some segments have no summary; it has dead
 * records, and the tallies that say so.
 *
 * Usage    flip_test [all | EVERY]: without `all` only every 16th byte of payload is flipped, and with
 *          a number one in EVERY of those and the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "store/kind.h"
#include "strata/format.h"
#include "strata/strata.h"

#define PAGE 4096u
#define KEYS 9u
#define SEGMENT_PAGES 9u
#define SEGMENTS 6u
#define FILE_BYTES ((2 + SEGMENTS * SEGMENT_PAGES) * PAGE)

static uint8_t  image[FILE_BYTES];
static int      file;
static uint8_t *mapped; /* the file */
static char     path[32];
static uint64_t step = 16, every = 1;
static uint8_t  buffer[2 * PAGE] __attribute__((aligned(4096)));

static struct kvs_key key_of(uint32_t number)
{
	struct kvs_key key = { .offset = number };

	memset(key.hash, (int)number + 1, sizeof(key.hash));
	return key;
}

static struct kvs_span span_of(uint32_t number)
{
	return (struct kvs_span){ buffer, (1 + number % 2) * PAGE, (1 + number % 2) * PAGE };
}

static void fill(uint32_t number)
{
	uint32_t *const words = (uint32_t *)buffer;
	uint32_t        i;

	for (i = 0; i < span_of(number).bytes / 4; i++)
		words[i] = number << 24 | i;
}

static bool is_filled(uint32_t number)
{
	const uint32_t *const words = (const uint32_t *)buffer;
	uint32_t              i;

	for (i = 0; i < span_of(number).bytes / 4; i++) {
		if (words[i] != (number << 24 | i))
			return false;
	}
	return true;
}

static int open_store(bool read_only, struct kvs_store **ret_store, struct kvs_error *err)
{
	const struct strata_settings set = { .path = path,
					     .capacity_bytes = read_only ? 0 : FILE_BYTES,
					     .segment_bytes = read_only ? 0 : SEGMENT_PAGES * PAGE,
					     .block_bytes = 2 * PAGE, .evict_policy = "lru",
					     .durability = STRATA_NONE, .verify = true,
					     .plain_io = true, .read_only = read_only };

	return strata_open(&set, &store_strata_ops, ret_store, err);
}

static enum kvs_result get(struct kvs_store *store, uint32_t number)
{
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = span_of(number);
	enum kvs_result       result;
	bool                  retired;

	memset(buffer, 0xee, sizeof(buffer));
	assert_int_equal(strata_get(store, &key, &span, 1, &result, &retired), 0);
	return result;
}

/* Keys 0 and 5 are removed: one from a sealed segment, one from the open one. */
static void make_image(void)
{
	static const uint32_t removed[] = { 0, 5 };
	struct kvs_error      err;
	struct kvs_store     *store;
	enum kvs_result       result;
	uint32_t              i;

	assert_int_equal(open_store(false, &store, &err), 0);
	for (i = 0; i < KEYS; i++) {
		const struct kvs_key  key = key_of(i);
		const struct kvs_span span = span_of(i);
		bool                  retired;

		fill(i);
		assert_int_equal(strata_put(store, &key, &span, 1, &result, &retired), 0);
		assert_int_equal(result, KVS_RESULT_DONE);
	}
	for (i = 0; i < 2; i++) {
		const struct kvs_key key = key_of(removed[i]);

		assert_int_equal(strata_remove(store, &key, 1, &result), 0);
		assert_int_equal(result, KVS_RESULT_DONE);
	}
	assert_true(pread(file, image, FILE_BYTES, 0) > 0);
	assert_int_equal(strata_close(store), 0);
	assert_int_equal(ftruncate(file, FILE_BYTES), 0);
	mapped = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_true(mapped != MAP_FAILED);
}

static void restore(void)
{
	memcpy(mapped, image, FILE_BYTES);
}

static void flip(uint64_t offset, uint8_t bits)
{
	mapped[offset] = image[offset] ^ bits;
}

/* How often each thing came of a flip: all of them must, or the flips were none. */
struct tally_of {
	uint64_t refused, opened, missing, corrupt, back, damage;
};

static bool see(void *ctx, const struct strata_finding *finding)
{
	((struct tally_of *)ctx)->damage += finding->damage != NULL;
	return true;
}

static void look(bool read_only, uint64_t offset, struct tally_of *seen)
{
	struct kvs_error  err = { 0 };
	struct kvs_store *store;
	uint32_t          i;

	if (open_store(read_only, &store, &err) < 0) {
		assert_true(err.message[0] != '\0');
		seen->refused++;
		return;
	}
	seen->opened++;
	strata_audit(store);
	if (read_only)
		assert_int_equal(strata_walk(store, true, see, seen), 0);
	for (i = 0; i < KEYS; i++) {
		const enum kvs_result result = get(store, i);

		if (result == KVS_RESULT_DONE && !is_filled(i))
			fail_msg("byte %llu: key %u is wrong", (unsigned long long)offset, i);
		seen->back += result == KVS_RESULT_DONE && (i == 0 || i == 5);
		seen->missing += result == KVS_RESULT_MISSING && i != 0 && i != 5;
		seen->corrupt += result == KVS_RESULT_CORRUPT;
		assert_true(result == KVS_RESULT_DONE || result == KVS_RESULT_MISSING ||
			    result == KVS_RESULT_CORRUPT);
	}
	strata_audit(store);
	assert_int_equal(strata_close(store), 0);
}

/* Heads, tallies, the first bytes of each page, where headers are, and summaries count in full. */
static bool is_chosen(uint64_t offset)
{
	const uint64_t page = offset / PAGE, in_page = offset % PAGE;
	const uint64_t of_segment = (page - 2) % SEGMENT_PAGES;

	if (page < 2 || of_segment < STRATA_RECORD_PAGE) {
		/* Most of such a page is zero, and any byte of it is under one checksum. */
		return in_page < 128 || in_page >= PAGE - 16 || offset % 4 == 0 || step == 1;
	}
	return in_page < 192 || (of_segment == SEGMENT_PAGES - 1 && in_page >= PAGE - 64) ||
	       offset % step == 0;
}

static void flip_all(uint8_t bits, bool read_only, struct tally_of *seen)
{
	uint64_t offset, chosen = 0;

	for (offset = 0; offset < FILE_BYTES; offset++) {
		if (!is_chosen(offset) || chosen++ % every != 0)
			continue;
		if (!read_only || offset == 0)
			restore();
		flip(offset, bits);
		look(read_only, offset, seen);
		flip(offset, 0);
	}
}

static void X1_no_flip_gives_a_wrong_byte(void **state)
{
	struct tally_of seen = { 0 };

	(void)state;
	flip_all(0x01, false, &seen);
	flip_all(0xff, false, &seen);
	print_message("# %llu opened, %llu refused; keys: %llu missing, %llu corrupt, %llu back\n",
		      (unsigned long long)seen.opened, (unsigned long long)seen.refused,
		      (unsigned long long)seen.missing, (unsigned long long)seen.corrupt,
		      (unsigned long long)seen.back);
	assert_true(seen.opened > 0 && seen.missing > 0 && seen.corrupt > 0);
}

static void a_reader_walks_past_every_flip(void **state)
{
	struct tally_of seen = { 0 };

	(void)state;
	flip_all(0xff, true, &seen);
	print_message("# %llu opened, %llu refused, %llu pieces of damage\n",
		      (unsigned long long)seen.opened, (unsigned long long)seen.refused,
		      (unsigned long long)seen.damage);
	assert_true(seen.damage > 0);
}

/* Both superblocks at once. */
static void without_a_superblock_it_refuses(void **state)
{
	struct kvs_error  err = { 0 };
	struct kvs_store *store;

	(void)state;
	restore();
	flip(40, 0x10);
	flip(PAGE + 40, 0x10);
	assert_true(open_store(false, &store, &err) < 0);
	assert_non_null(strstr(err.message, "two damaged superblocks"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X1_no_flip_gives_a_wrong_byte),
		cmocka_unit_test(a_reader_walks_past_every_flip),
		cmocka_unit_test(without_a_superblock_it_refuses),
	};

	if (argc > 1 && strcmp(argv[1], "all") == 0)
		step = 1;
	else if (argc > 1)
		every = strtoull(argv[1], NULL, 10);
	/* Each open has a megabyte or two: fresh pages for them would take most of the time. */
	mallopt(M_PERTURB, 0);
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	file = memfd_create("flip", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	make_image();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
