/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants apart: quotas in bytes that nothing exceeds, and who gives when memory is short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inn.h"
#include "named_block.h"

#define PAGES 24u
#define OBJECT (2 * INN_PAGE) /* of one page, with its trailer */

static const struct kvs_namespace alice = { { 1 } }, bob = { { 2 } }, carol = { { 3 } };

static int setup(void **state)
{
	static struct inn inn;

	inn_init(&inn, PAGES);
	inn.options.isolate = true;
	*state = &inn;
	return 0;
}

static int teardown(void **state)
{
	inn_close(*state);
	return 0;
}

static struct kvs_key key_in(const struct kvs_namespace *space, uint32_t number)
{
	struct kvs_key key = key_of(number);

	key.space = *space;
	return key;
}

static int reserve(struct inn *inn, const struct kvs_namespace *space, uint32_t number,
		   uint64_t bytes)
{
	const struct kvs_key     key = key_in(space, number);
	const struct host_writer writer = { inn->client, 0 };
	int                      rc;

	assert_int_equal(
		host_reserve(inn->host, writer, &key, &bytes, 1, 0, inn->now_ns, &inn_span, &rc),
		0);
	return rc;
}

static void put(struct inn *inn, const struct kvs_namespace *space, uint32_t number)
{
	const struct kvs_key     key = key_in(space, number);
	const struct host_writer writer = { inn->client, 0 };
	int                      rc;

	assert_int_equal(reserve(inn, space, number, INN_PAGE), 0);
	assert_int_equal(host_finish(inn->host, writer, &key, 1, inn->now_ns, &rc), 0);
	assert_int_equal(rc, 0);
}

static bool has(struct inn *inn, const struct kvs_namespace *space, uint32_t number)
{
	const struct kvs_key key = key_in(space, number);
	uint64_t             word;

	assert_int_equal(host_lookup(inn->host, &key, 1, &word), 0);
	return word;
}

static void lock_one(struct inn *inn, const struct kvs_namespace *space, uint32_t number)
{
	const struct kvs_key key = key_in(space, number);
	int                  rc;

	assert_int_equal(host_lock(inn->host, inn->client, 1, &key, 1, inn->now_ns, &inn_span, &rc),
			 0);
	assert_int_equal(rc, 0);
}

static uint64_t bytes_of(struct inn *inn, const struct kvs_namespace *space)
{
	uint64_t bytes = 0, quota;

	(void)host_tenant(inn->host, space, &bytes, &quota);
	return bytes;
}

/* --- quotas ----------------------------------------------------------------------------------- */

static void X11_a_tenant_at_its_quota_gives_up_its_own_objects(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn_open(inn);
	assert_int_equal(host_quota(inn->host, &alice, 3 * OBJECT, inn->now_ns), 0);
	put(inn, &bob, 0);
	for (i = 0; i < 5; i++) {
		put(inn, &alice, i);
		assert_true(bytes_of(inn, &alice) <= 3 * OBJECT);
	}
	assert_true(has(inn, &bob, 0));
	assert_false(has(inn, &alice, 0));
	assert_false(has(inn, &alice, 1));
	assert_true(has(inn, &alice, 2));
	assert_int_equal(bytes_of(inn, &alice), 3 * OBJECT);
}

static void X11_what_is_staged_counts(void **state)
{
	struct inn *const inn = *state;

	inn_open(inn);
	assert_int_equal(host_quota(inn->host, &alice, 3 * OBJECT, inn->now_ns), 0);
	put(inn, &alice, 0);
	assert_int_equal(reserve(inn, &alice, 1, INN_PAGE), 0);
	assert_int_equal(reserve(inn, &alice, 2, INN_PAGE), 0);
	assert_int_equal(reserve(inn, &alice, 3, INN_PAGE), 0);
	assert_false(has(inn, &alice, 0));
	/* Nothing is left to give, though memory is. */
	assert_int_equal(reserve(inn, &alice, 4, INN_PAGE), KVS_E_FULL);
	assert_int_equal(inn_usage(inn).counters[HOST_REFUSED_QUOTA], 1);
	assert_int_equal(inn_usage(inn).counters[HOST_REFUSED_BYTES], 0);
	assert_int_equal(reserve(inn, &bob, 4, INN_PAGE), 0);
}

static void X11_locked_bytes_count_and_an_object_past_the_quota_is_refused(void **state)
{
	struct inn *const inn = *state;

	inn_open(inn);
	assert_int_equal(host_quota(inn->host, &alice, 2 * OBJECT, inn->now_ns), 0);
	put(inn, &alice, 0);
	put(inn, &alice, 1);
	lock_one(inn, &alice, 0);
	assert_int_equal(reserve(inn, &alice, 2, 2 * INN_PAGE), KVS_E_FULL);
	assert_int_equal(reserve(inn, &alice, 2, 5 * INN_PAGE), KVS_E_FULL);
	assert_true(has(inn, &alice, 0));
	assert_int_equal(reserve(inn, &alice, 3, INN_PAGE), 0);
}

static void X11_a_default_quota_is_for_those_without_their_own(void **state)
{
	struct inn *const inn = *state;
	uint64_t          bytes, quota;
	uint32_t          i;

	inn->options.quota_bytes = 2 * OBJECT;
	inn_open(inn);
	assert_false(host_tenant(inn->host, &alice, &bytes, &quota));
	assert_int_equal(host_quota(inn->host, &bob, 4 * OBJECT, inn->now_ns), 0);
	assert_int_equal(host_quota(inn->host, &carol, 0, inn->now_ns), 0);
	for (i = 0; i < 6; i++) {
		put(inn, &alice, i);
		put(inn, &bob, i);
		put(inn, &carol, i);
	}
	assert_true(host_tenant(inn->host, &alice, &bytes, &quota));
	assert_int_equal(bytes, 2 * OBJECT);
	assert_int_equal(quota, 2 * OBJECT);
	assert_int_equal(bytes_of(inn, &bob), 4 * OBJECT);
	assert_int_equal(bytes_of(inn, &carol), 6 * OBJECT);
	assert_true(host_tenant(inn->host, &carol, &bytes, &quota));
	assert_int_equal(quota, 0);
}

static void X11_a_quota_below_what_is_used_evicts_what_it_can(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn_open(inn);
	for (i = 0; i < 5; i++)
		put(inn, &alice, i);
	put(inn, &bob, 0);
	lock_one(inn, &alice, 0);
	lock_one(inn, &alice, 1);
	assert_int_equal(host_quota(inn->host, &alice, 3 * OBJECT, inn->now_ns), 0);
	assert_int_equal(bytes_of(inn, &alice), 3 * OBJECT);
	assert_int_equal(host_quota(inn->host, &alice, OBJECT, inn->now_ns), 0);
	assert_int_equal(bytes_of(inn, &alice), 2 * OBJECT);
	assert_true(has(inn, &alice, 0));
	assert_true(has(inn, &bob, 0));
}

static void X11_quotas_hold_over_many_shards(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn->options.shard_count = 16;
	inn_open(inn);
	assert_int_equal(host_quota(inn->host, &alice, 4 * OBJECT, inn->now_ns), 0);
	for (i = 0; i < 100; i++) {
		put(inn, &alice, i);
		assert_true(bytes_of(inn, &alice) <= 4 * OBJECT);
	}
	assert_int_equal(bytes_of(inn, &alice), 4 * OBJECT);
	assert_int_equal(inn_usage(inn).objects, 4);
}

static void quotas_need_tenants_apart(void **state)
{
	struct inn *const inn = *state;
	uint64_t          bytes, quota;

	inn->options.isolate = false;
	inn_open(inn);
	assert_int_equal(host_quota(inn->host, &alice, OBJECT, inn->now_ns), KVS_E_UNSUPPORTED);
	put(inn, &alice, 0);
	assert_false(host_tenant(inn->host, &alice, &bytes, &quota));
}

/* --- memory is short -------------------------------------------------------------------------- */

static void the_tenant_that_holds_the_most_gives_first(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn_open(inn);
	for (i = 0; i < 4; i++)
		put(inn, &bob, i);
	for (i = 0; i < 8; i++)
		put(inn, &alice, i);
	/* Bob's are older, and Alice has more. */
	for (i = 0; i < 4; i++)
		put(inn, &carol, i);
	assert_int_equal(bytes_of(inn, &bob), 4 * OBJECT);
	assert_int_equal(bytes_of(inn, &alice), 4 * OBJECT);
	assert_false(has(inn, &alice, 3));
	assert_true(has(inn, &alice, 4));
	put(inn, &carol, 4);
	/* From now on nobody has more than the others, and Carol grows at her own cost. */
	put(inn, &carol, 5);
	put(inn, &carol, 6);
	assert_true(bytes_of(inn, &bob) + bytes_of(inn, &alice) >= 7 * OBJECT);
	host_audit(inn->host);
}

static void who_holds_the_most_and_has_all_of_it_locked_does_not_give(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn_open(inn);
	for (i = 0; i < 8; i++) {
		put(inn, &alice, i);
		lock_one(inn, &alice, i);
	}
	for (i = 0; i < 4; i++)
		put(inn, &bob, i);
	put(inn, &carol, 0);
	assert_int_equal(bytes_of(inn, &alice), 8 * OBJECT);
	assert_int_equal(bytes_of(inn, &bob), 3 * OBJECT);
	assert_false(has(inn, &bob, 0));
}

static void relieving_takes_from_who_holds_the_most(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn->options.high = 0.75;
	inn->options.low = 0.5;
	inn_open(inn);
	for (i = 0; i < 3; i++)
		put(inn, &bob, i);
	for (i = 0; i < 8; i++)
		put(inn, &alice, i);
	assert_int_equal(host_relieve(inn->host, inn->now_ns, 100), 5);
	assert_int_equal(bytes_of(inn, &bob), 3 * OBJECT);
	assert_int_equal(bytes_of(inn, &alice), 3 * OBJECT);
}

/* --- how many --------------------------------------------------------------------------------- */

static struct kvs_namespace space_number(uint32_t number)
{
	return (struct kvs_namespace){ { 77, (uint8_t)number, (uint8_t)(number >> 8) } };
}

/* Namespaces come and go for ever; those that hold nothing give their number to new ones. */
static void a_tenant_that_holds_nothing_is_forgotten_for_another(void **state)
{
	struct inn *const    inn = *state;
	struct kvs_namespace space;
	uint64_t             bytes, quota;
	uint32_t             i;

	inn_open(inn);
	assert_int_equal(host_quota(inn->host, &alice, 2 * OBJECT, inn->now_ns), 0);
	put(inn, &bob, 0);
	lock_one(inn, &bob, 0);
	for (i = 0; i < 3 * HOST_TENANTS_MAX; i++) {
		space = space_number(i);
		put(inn, &space, i);
	}
	host_audit(inn->host);
	assert_true(host_tenant(inn->host, &alice, &bytes, &quota));
	assert_int_equal(quota, 2 * OBJECT);
	assert_int_equal(bytes_of(inn, &bob), OBJECT);
	assert_int_equal(bytes_of(inn, &space), OBJECT);
	space = space_number(0);
	assert_false(host_tenant(inn->host, &space, &bytes, &quota));
}

static void tenants_are_bounded(void **state)
{
	struct inn *const    inn = *state;
	struct kvs_namespace space;
	uint32_t             i;

	inn_open(inn);
	for (i = 0; i < HOST_TENANTS_MAX; i++) {
		space = space_number(i);
		assert_int_equal(host_quota(inn->host, &space, OBJECT, inn->now_ns), 0);
	}
	assert_int_equal(host_quota(inn->host, &alice, OBJECT, inn->now_ns), KVS_E_FULL);
	assert_int_equal(reserve(inn, &alice, 0, INN_PAGE), KVS_E_FULL);
	assert_int_equal(inn_usage(inn).counters[HOST_REFUSED_TENANTS], 1);
	put(inn, &space, 0);
}

static void a_quota_that_is_taken_back_frees_its_number(void **state)
{
	struct inn *const    inn = *state;
	struct kvs_namespace space;
	uint32_t             i;

	inn_open(inn);
	for (i = 0; i < HOST_TENANTS_MAX; i++) {
		space = space_number(i);
		assert_int_equal(host_quota(inn->host, &space, OBJECT, inn->now_ns), 0);
	}
	assert_int_equal(reserve(inn, &alice, 0, INN_PAGE), KVS_E_FULL);
	assert_int_equal(host_quota(inn->host, &space, 0, inn->now_ns), 0);
	put(inn, &alice, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(X11_a_tenant_at_its_quota_gives_up_its_own_objects),
		TEST(X11_what_is_staged_counts),
		TEST(X11_locked_bytes_count_and_an_object_past_the_quota_is_refused),
		TEST(X11_a_default_quota_is_for_those_without_their_own),
		TEST(X11_a_quota_below_what_is_used_evicts_what_it_can),
		TEST(X11_quotas_hold_over_many_shards),
		TEST(quotas_need_tenants_apart),
		TEST(the_tenant_that_holds_the_most_gives_first),
		TEST(who_holds_the_most_and_has_all_of_it_locked_does_not_give),
		TEST(relieving_takes_from_who_holds_the_most),
		TEST(a_tenant_that_holds_nothing_is_forgotten_for_another),
		TEST(tenants_are_bounded),
		TEST(a_quota_that_is_taken_back_frees_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
