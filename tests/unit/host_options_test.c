/* SPDX-License-Identifier: Apache-2.0 */
/* Options that are refused, each with field, value and rule; memory that runs out; batches too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inn.h"
#include "named_block.h"

/* --- memory that runs out --------------------------------------------------------------------- */

static int64_t left = INT64_MAX; /* allocations that succeed */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return left-- > 0 ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return left-- > 0 ? __real_calloc(count, bytes) : NULL;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	return left-- > 0 ? __real_aligned_alloc(alignment, bytes) : NULL;
}

static int setup(void **state)
{
	static struct inn inn;

	inn_init(&inn, 64);
	*state = &inn;
	return 0;
}

static int teardown(void **state)
{
	inn_close(*state);
	return 0;
}

static void an_open_that_finds_no_memory_leaves_nothing(void **state)
{
	struct inn *const inn = *state;
	struct host      *host = NULL;
	struct kvs_error  err;
	int64_t           n;
	int               rc;

	if (!LINKER_WRAPS)
		skip();
	inn->options.shard_count = 4;
	inn->options.isolate = true;
	for (n = 0;; n++) {
		left = n;
		rc = host_open(&inn->options, &host, &err);
		left = INT64_MAX;
		if (rc == 0)
			break;
		assert_int_equal(rc, -ENOMEM);
		assert_null(host);
		assert_non_null(strstr(err.message, "64 objects"));
	}
	assert_true(n > 10);
	host_close(host);
}

static void after_open_nothing_is_allocated(void **state)
{
	struct inn *const inn = *state;
	struct host_pin   pin;
	uint64_t          removed, kept;
	uint32_t          i;

	if (!LINKER_WRAPS)
		skip();
	inn->options.isolate = true;
	inn->options.policy = "arc";
	inn_open(inn);
	left = 0;
	for (i = 0; i < 200; i++) {
		inn_put(inn, i);
		assert_int_equal(inn_lock(inn, inn->client, i, 1), 0);
		assert_int_equal(inn_pin(inn, i, &pin), 0);
		host_unpin(inn->host, &pin, 1);
		assert_int_equal(inn_unlock(inn, inn->client, i, 1), 0);
		inn_touch(inn, i);
	}
	host_expire(inn->host, inn->now_ns + INN_WRITE_TTL);
	assert_int_equal(host_client_close(inn->host, inn->client, inn->now_ns), 0);
	host_clear(inn->host, NULL, true, &removed, &kept);
	assert_int_equal(left, 0);
	left = INT64_MAX;
}

/* --- options ---------------------------------------------------------------------------------- */

static void assert_refused(struct inn *inn, const char *sentence)
{
	struct host     *host = NULL;
	struct kvs_error err = { 0 };

	assert_int_equal(host_open(&inn->options, &host, &err), KVS_E_INVALID);
	assert_int_equal(err.code, KVS_E_INVALID);
	assert_string_equal(err.message, sentence);
	assert_null(host);
	/* Nobody needs to ask why. */
	assert_int_equal(host_open(&inn->options, &host, NULL), KVS_E_INVALID);
}

/* Put a value in for one check. */
#define REFUSE(inn, field, value, sentence) \
	do { \
		const struct host_options refuse_kept = (inn)->options; \
\
		(inn)->options.field = (value); \
		assert_refused((inn), (sentence)); \
		(inn)->options = refuse_kept; \
	} while (0)

static void tables_have_bounds(void **state)
{
	struct inn *const inn = *state;

	REFUSE(inn, object_max, 0, "object_max: 0; use 1 to 67108864");
	REFUSE(inn, object_max, HOST_OBJECTS_MAX + 1, "object_max: 67108865; use 1 to 67108864");
	REFUSE(inn, lock_max, 0, "lock_max: 0; use 1 to 67108864");
	REFUSE(inn, client_max, 0, "client_max: 0; use 1 to 4096");
	REFUSE(inn, client_max, 4097, "client_max: 4097; use 1 to 4096");
	REFUSE(inn, shard_count, 0, "shard_count: 0; use 1 to 256");
	REFUSE(inn, shard_count, 512, "shard_count: 512; use 1 to 256");
	REFUSE(inn, shard_count, 24, "shard_count: 24; use a power of two");
}

static void fields_are_whole_pages(void **state)
{
	struct inn *const inn = *state;
	uint8_t *const    memory = inn->memory;
	char              sentence[128];

	REFUSE(inn, fields, NULL, "fields: none; the memory is needed");
	REFUSE(inn, field_count, 0, "field_count: 0; use 1 to 8192");
	inn->fields[1] = (struct kvs_span){ .ptr = memory + 8, .bytes = 2 * INN_PAGE };
	snprintf(sentence, sizeof(sentence), "fields[1].ptr: %p; it must be on a page of 4 KiB",
		 inn->fields[1].ptr);
	REFUSE(inn, field_count, 2, sentence);
	inn->fields[1] = (struct kvs_span){ .ptr = memory, .bytes = 2 * INN_PAGE - 1 };
	REFUSE(inn, field_count, 2,
	       "fields[1].bytes: 8191; use a multiple of 4 KiB, 8 KiB to 1 GiB");
	inn->fields[1].bytes = INN_PAGE;
	REFUSE(inn, field_count, 2,
	       "fields[1].bytes: 4096; use a multiple of 4 KiB, 8 KiB to 1 GiB");
	inn->fields[1].bytes = ((size_t)1 << 30) + INN_PAGE;
	REFUSE(inn, field_count, 2,
	       "fields[1].bytes: 1073745920; use a multiple of 4 KiB, 8 KiB to 1 GiB");
	inn->fields[1] = (struct kvs_span){ .ptr = memory + 60 * INN_PAGE, .bytes = 2 * INN_PAGE };
	REFUSE(inn, field_count, 2, "fields[1]: it overlaps fields[0]");
}

static void marks_times_and_quotas_make_sense(void **state)
{
	struct inn *const inn = *state;

	REFUSE(inn, low, 0, "low, high: 0, 1; use 0 < low <= high <= 1");
	REFUSE(inn, high, 0.25, "low, high: 0.5, 0.25; use 0 < low <= high <= 1");
	REFUSE(inn, high, 1.5, "low, high: 0.5, 1.5; use 0 < low <= high <= 1");
	REFUSE(inn, low, NAN, "low, high: nan, 1; use 0 < low <= high <= 1");
	REFUSE(inn, write_ttl_ns, 0, "write_ttl_ns: 0; use 1 to 18446744073709551615");
	REFUSE(inn, read_ttl_ns, 0, "read_ttl_ns: 0; use 1 to 18446744073709551615");
	REFUSE(inn, quota_bytes, 4096,
	       "quota_bytes: 4096 without isolate; quotas need tenants apart");
}

static void listeners_have_something_to_call(void **state)
{
	struct inn *const inn = *state;

	REFUSE(inn, listener_count, 9, "listener_count: 9; use 0 to 8");
	REFUSE(inn, listener_count, 2, "listeners[1].notify: none; a listener needs one");
	REFUSE(inn, listeners[0].events, 1u << HOST_EVENT_COUNT,
	       "listeners[0].events: 0x80; use bits 0 to 6");
}

static void an_unknown_policy_is_answered_with_the_known(void **state)
{
	struct inn *const inn = *state;
	struct host      *host;
	struct kvs_error  err = { 0 };

	REFUSE(inn, policy, NULL, "policy: none; name one");
	inn->options.policy = "newest";
	assert_int_equal(host_open(&inn->options, &host, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "policy: \"newest\" is not known; use one of: lru "));
	inn->options.policy = "lru";
}

/* --- calls ------------------------------------------------------------------------------------ */

static void a_batch_too_long_is_refused_as_a_whole(void **state)
{
	struct inn *const        inn = *state;
	const uint32_t           count = HOST_KEYS_MAX + 1;
	const struct host_writer writer = { 0 };
	struct host             *host;

	inn_open(inn);
	host = inn->host;
	/* Nothing is looked at, so that nothing needs to be there. */
	assert_int_equal(host_reserve(host, writer, NULL, NULL, count, 0, 1, NULL, NULL),
			 KVS_E_INVALID);
	assert_int_equal(host_finish(host, writer, NULL, count, 1, NULL), KVS_E_INVALID);
	assert_int_equal(host_finish_locked(host, writer, 0, 1, NULL, count, 1, NULL, NULL),
			 KVS_E_INVALID);
	assert_int_equal(host_discard(host, writer, NULL, count, NULL), KVS_E_INVALID);
	assert_int_equal(host_lock(host, 0, 1, NULL, count, 1, NULL, NULL), KVS_E_INVALID);
	assert_int_equal(host_unlock(host, 0, 1, NULL, count, 1, NULL), KVS_E_INVALID);
	assert_int_equal(host_spans(host, 0, NULL, count, 1, NULL, NULL), KVS_E_INVALID);
	assert_int_equal(host_lookup(host, NULL, count, NULL), KVS_E_INVALID);
	assert_int_equal(host_touch(host, NULL, count), KVS_E_INVALID);
	assert_int_equal(host_pin(host, NULL, count, NULL, NULL, NULL), KVS_E_INVALID);
	assert_int_equal(host_remove(host, NULL, count, false, NULL), KVS_E_INVALID);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 1u << 7), KVS_E_INVALID);
	/* None is none, and fine. */
	assert_int_equal(host_touch(host, NULL, 0), 0);
	assert_int_equal(host_lookup(host, NULL, 0, NULL), 0);
}

static void memory_is_reported(void **state)
{
	struct inn *const inn = *state;
	size_t            small;

	inn_open(inn);
	small = host_bytes(inn->host);
	assert_true(small > 64 * 128);
	inn_close(inn);
	inn_init(inn, 64);
	inn->options.object_max = 100000;
	inn_open(inn);
	assert_true(host_bytes(inn->host) > small + 100000 * 128);
	assert_true(host_bytes(inn->host) < small + 100000 * 256);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_open_that_finds_no_memory_leaves_nothing),
		TEST(after_open_nothing_is_allocated),
		TEST(tables_have_bounds),
		TEST(fields_are_whole_pages),
		TEST(marks_times_and_quotas_make_sense),
		TEST(listeners_have_something_to_call),
		TEST(an_unknown_policy_is_answered_with_the_known),
		TEST(a_batch_too_long_is_refused_as_a_whole),
		TEST(memory_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
