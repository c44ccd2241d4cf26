/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of this library: names, and what each answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctrl/policy.h"

static const struct kvs_adapter_info adapters[] = { { .number = 0 }, { .number = 2 }, { .number = 15 } };
static const struct kvs_key          keys[4];
static const uint64_t                bytes[4] = { 1, 1, 1, 1 };

static const struct kvs_store_policy *store_policy(const char *name)
{
	const struct kvs_store_policy *policy = NULL;

	assert_int_equal(store_policy_find(name, &policy, NULL), 0);
	assert_string_equal(policy->name, name);
	return policy;
}

static const struct kvs_prefetch_policy *prefetch_policy(const char *name)
{
	const struct kvs_prefetch_policy *policy = NULL;

	assert_int_equal(prefetch_policy_find(name, &policy, NULL), 0);
	assert_string_equal(policy->name, name);
	return policy;
}

static void B4_5_each_name_of_a_list_names_a_policy(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; store_policy_names[i]; i++)
		store_policy(store_policy_names[i]);
	assert_int_equal(i, 2);
	for (i = 0; prefetch_policy_names[i]; i++)
		prefetch_policy(prefetch_policy_names[i]);
	assert_int_equal(i, 2);
}

static void B3_2_every_key_goes_to_every_adapter(void **state)
{
	uint64_t targets[4] = { 0 };
	size_t   i;
	uint32_t j;

	(void)state;
	for (i = 0; store_policy_names[i]; i++) {
		store_policy(store_policy_names[i])->targets(adapters, 3, keys, bytes, 4, targets);
		for (j = 0; j < 4; j++)
			assert_int_equal(targets[j], 0x8005);
	}
	store_policy("default")->targets(adapters, 0, keys, bytes, 1, targets);
	assert_int_equal(targets[0], 0);
	assert_int_equal(targets[1], 0x8005);
}

static void B3_2_skip_host_drops_what_was_stored_and_default_nothing(void **state)
{
	bool drop[4] = { false };

	(void)state;
	assert_null(store_policy("default")->deletions);
	store_policy("skip-host")->deletions(keys, 3, drop);
	assert_true(drop[0] && drop[1] && drop[2]);
	assert_false(drop[3]);
}

static void B4_2_the_lowest_adapter_that_has_a_key_loads_it(void **state)
{
	static const uint64_t found[4] = { 0x8005, 0x8004, 0x8000, 0 };
	static const uint8_t  expected[4] = { 0, 2, 15, KVS_NO_ADAPTER };
	size_t                i;

	(void)state;
	for (i = 0; prefetch_policy_names[i]; i++) {
		uint8_t from[4] = { KVS_NO_ADAPTER, KVS_NO_ADAPTER, KVS_NO_ADAPTER, KVS_NO_ADAPTER };

		prefetch_policy(prefetch_policy_names[i])->plan(adapters, 3, keys, found, 4, from);
		assert_memory_equal(from, expected, 4);
	}
	assert_false(prefetch_policy("default")->retain);
	assert_true(prefetch_policy("retain")->retain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B4_5_each_name_of_a_list_names_a_policy),
		cmocka_unit_test(B3_2_every_key_goes_to_every_adapter),
		cmocka_unit_test(B3_2_skip_host_drops_what_was_stored_and_default_nothing),
		cmocka_unit_test(B4_2_the_lowest_adapter_that_has_a_key_loads_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
