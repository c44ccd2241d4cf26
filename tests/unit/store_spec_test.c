/* SPDX-License-Identifier: Apache-2.0 */
/* What people write for --store, and what they are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "store/spec.h"
#include "store/store.h"

static void a_spec_comes_apart(void **state)
{
	struct kvs_store_config config = { .struct_size = sizeof(config) };
	struct store_spec       spec;

	(void)state;
	assert_int_equal(spec_parse("strata:/a:b=c/kv?capacity=8GiB&note=x=y", &spec, NULL), 0);
	assert_string_equal(spec.kind, "strata");
	assert_string_equal(spec.place, "/a:b=c/kv");
	config.options = spec.options;
	config.option_count = spec.option_count;
	assert_string_equal(spec_option(&config, "capacity"), "8GiB");
	assert_string_equal(spec_option(&config, "note"), "x=y");
	assert_null(spec_option(&config, "other"));
	assert_int_equal(spec_parse("mem", &spec, NULL), 0);
	assert_string_equal(spec.kind, "mem");
	assert_string_equal(spec.place, "");
	assert_int_equal(spec.option_count, 0);
}

static void none_is_no_store(void **state)
{
	struct kvs_store *store = (struct kvs_store *)&store;

	(void)state;
	assert_int_equal(store_open("none", 4096, "lru", &store, NULL), 0);
	assert_null(store);
}

struct refusal {
	const char *spec;
	const char *message; /* its beginning */
};

static const struct refusal refusals[] = {
	{ "", "store: \"\" is not a kind of store; use none, mem, mooncake, " },
	{ "disk:/x", "store: \"disk\" is not a kind of store; use none, mem, mooncake, " },
	{ "none:/x", "store: none takes no path and no options" },
	{ "none?a=b", "store: none takes no path and no options" },
	{ "mem", "store.capacity: \"\" is not a size; use" },
	{ "mem:64GB7", "store.capacity: \"64GB7\" is not a size; use an integer or a number with "
		       "KiB, MiB, GiB, TiB" },
	{ "mem:-1", "store.capacity: \"-1\" is not a size" },
	{ "mem:0", "store.capacity: 0 bytes hold no block of 64 KiB; at least 64 KiB is needed" },
	{ "mem:65535", "store.capacity: 65535 bytes hold no block of 64 KiB" },
	{ "mem:9000TiB",
	  "store.capacity: 9895604649984000 bytes are more than 67,108,864 blocks of 64 KiB" },
	{ "mem:4GiB?capacity=4GiB",
	  "store: \"capacity\" is not an option of mem; use corrupt_every, verify" },
	{ "mem:4GiB?verify=maybe", "store.verify: \"maybe\" is neither on nor off" },
	{ "mem:4GiB?corrupt_every=2.5", "store.corrupt_every: \"2.5\" is not a count" },
	{ "mem:4GiB?verify=on&verify=on", "store.verify: is given twice" },
	{ "mem:4GiB?verify", "store: option 1 has no value; write key=value" },
	{ "mem:4GiB?", "store: option 1 has no value" },
	{ "mem:4GiB?a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1&a=1"
	  "&a=1&a=1&a=1&a=1&a=1",
	  "store: has more than 24 options" },
	{ "strata:?capacity=1GiB", "store.path: is missing" },
	{ "strata:/nowhere/at/all",
	  "store.path: \"/nowhere/at/all\": does not exist; give a capacity to create it" },
	{ "strata:/nowhere/at/all?capacity=344KiB",
	  "store.path: \"/nowhere/at/all\": cannot be opened: " },
	{ "strata:/nowhere/at/all?capacity=352255",
	  "store.capacity: 352255 bytes are too few for blocks of 64 KiB; at least 344 KiB is needed" },
	{ "strata:/nowhere/at/all?capacity=0", "store.capacity: 0 is not allowed; leave it out" },
	{ "strata:/nowhere/at/all?capacity=17TiB", "store.capacity: 17 TiB is more than 16 TiB" },
	{ "strata:/nowhere/at/all?capacity=1GiB&segment=80KiB",
	  "store.segment: 80 KiB is not a multiple of 4 KiB of at least 84 KiB, which holds one block "
	  "of 64 KiB" },
	{ "strata:/nowhere/at/all?capacity=1GiB&segment=88065",
	  "store.segment: 86.00 KiB is not a multiple of 4 KiB" },
	{ "strata:/nowhere/at/all?capacity=1GiB&segment=2TiB",
	  "store.segment: 2 TiB is not a multiple of 4 KiB" },
	{ "strata:/nowhere/at/all?capacity=1GiB&segment=512MiB",
	  "store.capacity: 1073741824 bytes are too few for blocks of 64 KiB; at least 2.00 GiB" },
	{ "strata:/nowhere/at/all?capacity=1GiB&segment=0", "store.segment: 0 is not allowed" },
	{ "strata:/nowhere/at/all?capacity=1GiB&write_budget=0",
	  "store.write_budget: 0 is not allowed; leave it out" },
	{ "strata:/nowhere/at/all?capacity=1GiB&write_budget=much",
	  "store.write_budget: \"much\" is not a size" },
	{ "strata:/nowhere/at/all?capacity=1GiB&objects=many",
	  "store.objects: \"many\" is not a count" },
	{ "strata:/nowhere/at/all?capacity=1GiB&durability=always",
	  "store.durability: \"always\" is not one of none, segment, put" },
	{ "strata:/nowhere/at/all?capacity=1GiB&admit=third",
	  "store.admit: \"third\" is not one of all, second" },
	{ "strata:/nowhere/at/all?capacity=1GiB&io=slow",
	  "store.io: \"slow\" is not one of auto, plain" },
	{ "strata:/nowhere/at/all?size=1GiB",
	  "store: \"size\" is not an option of strata; use capacity, segment, objects, durability, "
	  "write_budget, admit, io, corrupt_every, verify" },
};

static void each_bad_spec_is_told_why(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(refusals); i++) {
		struct kvs_store *store = NULL;
		struct kvs_error  err = { 0 };
		const int         rc = store_open(refusals[i].spec, 65536, "lru", &store, &err);

		assert_true(rc < 0);
		assert_int_equal(err.code, rc);
		assert_null(store);
		if (strncmp(err.message, refusals[i].message, strlen(refusals[i].message)) != 0)
			fail_msg("%s: %s", refusals[i].spec, err.message);
	}
}

static void a_spec_without_end_is_refused(void **state)
{
	static char       spec[2 * SPEC_BYTES_MAX];
	struct kvs_store *store;
	struct kvs_error  err;

	(void)state;
	memset(spec, 'x', sizeof(spec) - 1);
	memcpy(spec, "mem:", 4);
	assert_int_equal(store_open(spec, 65536, "lru", &store, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "store: is longer than 4607 bytes");
}

static void block_size_and_policy_are_checked(void **state)
{
	static const uint64_t bad[] = {
		0, 1, 4095, 65537, (UINT64_C(1) << 30) + 4096, UINT64_MAX - 4095
	};
	struct kvs_store     *store;
	struct kvs_error      err;
	size_t                i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(bad); i++) {
		assert_int_equal(store_open("mem:4GiB", bad[i], "lru", &store, &err),
				 KVS_E_INVALID);
		assert_int_equal(strncmp(err.message, "block_bytes: ", 13), 0);
	}
	assert_int_equal(store_open("mem:1MiB", 65536, "newest", &store, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "newest"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_spec_comes_apart),
		cmocka_unit_test(none_is_no_store),
		cmocka_unit_test(each_bad_spec_is_told_why),
		cmocka_unit_test(a_spec_without_end_is_refused),
		cmocka_unit_test(block_size_and_policy_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
