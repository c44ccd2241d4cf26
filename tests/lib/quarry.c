/* SPDX-License-Identifier: Apache-2.0 */
/* See quarry.h. */
#include "quarry.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "named_block.h"
#include "store/kind.h"

static _Alignas(4096) uint64_t buffer[QUARRY_BLOCK / 8];

void quarry_init(struct quarry *quarry, uint32_t segments)
{
	*quarry = (struct quarry){ .place = place_open(),
				   .set = { .capacity_bytes = QUARRY_CAPACITY(segments),
					    .segment_bytes = QUARRY_SEGMENT,
					    .block_bytes = QUARRY_BLOCK,
					    .evict_policy = "lru",
					    .verify = true } };
	quarry->set.path = quarry->place.path;
}

void quarry_fini(struct quarry *quarry)
{
	if (quarry->store)
		quarry_close(quarry);
	place_close(&quarry->place);
}

/* The struct may have been copied since. */
int quarry_try(struct quarry *quarry, struct kvs_error *ret_err)
{
	assert_null(quarry->store);
	quarry->set.path = quarry->place.path;
	return strata_open(&quarry->set, &store_strata_ops, &quarry->store, ret_err);
}

void quarry_open(struct quarry *quarry)
{
	struct kvs_error err = { 0 };

	if (quarry_try(quarry, &err) < 0)
		fail_msg("%s", err.message);
	strata_audit(quarry->store);
}

void quarry_open_large(struct quarry *quarry)
{
	quarry->set.segment_bytes = 0;
	quarry->set.capacity_bytes = 32 << 20;
	quarry_open(quarry);
}

void quarry_close(struct quarry *quarry)
{
	strata_audit(quarry->store);
	assert_int_equal(strata_close(quarry->store), 0);
	quarry->store = NULL;
}

void quarry_reopen(struct quarry *quarry)
{
	quarry_close(quarry);
	quarry_open(quarry);
}

/* --- the file --------------------------------------------------------------------------------- */

static uint8_t *read_whole(const char *path, size_t *ret_bytes)
{
	FILE *const    file = fopen(path, "rb");
	const size_t   room = 64 << 20;
	uint8_t *const bytes = malloc(room);

	assert_non_null(bytes);
	*ret_bytes = 0;
	if (file) {
		*ret_bytes = fread(bytes, 1, room, file);
		assert_int_equal(fclose(file), 0);
	}
	assert_true(*ret_bytes < room);
	return bytes;
}

void quarry_expect_refusal(struct quarry *quarry, int code, const char *part)
{
	struct kvs_error err = { 0 };
	size_t           before_bytes, after_bytes;
	uint8_t *const   before = read_whole(quarry->place.path, &before_bytes);
	uint8_t         *after;

	assert_int_equal(quarry_try(quarry, &err), code);
	assert_null(quarry->store);
	if (!strstr(err.message, part))
		fail_msg("%s", err.message);
	after = read_whole(quarry->place.path, &after_bytes);
	assert_int_equal(after_bytes, before_bytes);
	assert_memory_equal(after, before, before_bytes);
	free(before);
	free(after);
}

void quarry_crash(const struct quarry *quarry, struct quarry *ret_copy)
{
	size_t         count;
	uint8_t *const bytes = read_whole(quarry->place.path, &count);
	FILE          *file;

	*ret_copy = (struct quarry){ .place = place_open(), .set = quarry->set };
	file = fopen(ret_copy->place.path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
	free(bytes);
}

void quarry_peek(const struct quarry *quarry, uint64_t offset, void *bytes, size_t count)
{
	const int fd = open(quarry->place.path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, count, (off_t)offset), (ssize_t)count);
	close(fd);
}

void quarry_poke(const struct quarry *quarry, uint64_t offset, const void *bytes, size_t count)
{
	const int fd = open(quarry->place.path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, count, (off_t)offset), (ssize_t)count);
	close(fd);
}

void quarry_flip(const struct quarry *quarry, uint64_t offset)
{
	uint8_t byte;

	quarry_peek(quarry, offset, &byte, 1);
	byte ^= 0x40;
	quarry_poke(quarry, offset, &byte, 1);
}

uint64_t quarry_segment_at(uint32_t segment)
{
	return page_offset(STRATA_SUPERBLOCKS + segment * QUARRY_SEGMENT_PAGES);
}

uint64_t quarry_payload_at(uint32_t nth)
{
	return quarry_header_at(nth) + STRATA_PAGE;
}

uint64_t quarry_header_at(uint32_t nth)
{
	return quarry_segment_at(nth / QUARRY_SLOTS) + page_offset(STRATA_RECORD_PAGE) +
	       (nth % QUARRY_SLOTS) * (uint64_t)(QUARRY_BLOCK + STRATA_PAGE);
}

/* --- objects ---------------------------------------------------------------------------------- */

enum kvs_result quarry_put_bytes(struct quarry *quarry, uint32_t number, uint32_t bytes)
{
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = { buffer, bytes, bytes };
	enum kvs_result       result = KVS_RESULT_UNKNOWN;
	bool                  retired = false;

	fill(buffer, number, bytes);
	assert_int_equal(strata_put(quarry->store, &key, &span, 1, &result, &retired), 0);
	assert_true(retired);
	assert_true(is_filled(buffer, number, bytes));
	return result;
}

enum kvs_result quarry_get_bytes(struct quarry *quarry, uint32_t number, uint32_t bytes)
{
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = { buffer, bytes, bytes };
	enum kvs_result       result = KVS_RESULT_UNKNOWN;
	bool                  retired = false;

	memset(buffer, 0xee, sizeof(buffer));
	assert_int_equal(strata_get(quarry->store, &key, &span, 1, &result, &retired), 0);
	assert_true(retired);
	if (result == KVS_RESULT_DONE)
		assert_true(is_filled(buffer, number, bytes));
	return result;
}

enum kvs_result quarry_put(struct quarry *quarry, uint32_t number)
{
	return quarry_put_bytes(quarry, number, QUARRY_BLOCK);
}

enum kvs_result quarry_get(struct quarry *quarry, uint32_t number)
{
	return quarry_get_bytes(quarry, number, QUARRY_BLOCK);
}

typedef int look_call(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result);

static enum kvs_result look(struct quarry *quarry, look_call *call, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	enum kvs_result      result = KVS_RESULT_UNKNOWN;

	assert_int_equal(call(quarry->store, &key, 1, &result), 0);
	return result;
}

enum kvs_result quarry_exists(struct quarry *quarry, uint32_t number)
{
	return look(quarry, strata_exists, number);
}

enum kvs_result quarry_remove(struct quarry *quarry, uint32_t number)
{
	return look(quarry, strata_remove, number);
}

enum kvs_result quarry_lock(struct quarry *quarry, uint32_t number)
{
	return look(quarry, strata_lock, number);
}

void quarry_unlock(struct quarry *quarry, uint32_t number)
{
	const struct kvs_key key = key_of(number);

	strata_unlock(quarry->store, &key, 1);
}

void quarry_put_range(struct quarry *quarry, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		assert_int_equal(quarry_put(quarry, from), KVS_RESULT_DONE);
}

void quarry_get_range(struct quarry *quarry, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		assert_int_equal(quarry_get(quarry, from), KVS_RESULT_DONE);
}

struct count {
	uint32_t from, to;
	uint32_t found;
};

static bool count_one(void *ctx, const struct strata_finding *finding)
{
	struct count *const count = ctx;
	const uint32_t      number = finding->key ? finding->key->offset : UINT32_MAX;

	count->found += number >= count->from && number < count->to;
	return true;
}

uint32_t quarry_count(struct quarry *quarry, uint32_t from, uint32_t to)
{
	struct count count = { from, to, 0 };

	assert_int_equal(strata_walk(quarry->store, false, count_one, &count), 0);
	return count.found;
}

struct kvs_store_info quarry_info(struct quarry *quarry)
{
	struct kvs_store_info info;

	strata_describe(quarry->store, &info);
	assert_true(info.used_bytes <= info.capacity_bytes);
	return info;
}

struct strata_report quarry_report(struct quarry *quarry)
{
	struct strata_report report;

	strata_inspect(quarry->store, &report);
	return report;
}
