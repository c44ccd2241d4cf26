/* SPDX-License-Identifier: Apache-2.0 */
/* Options, from a struct and from a file; open, close, and calls that come too late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/options.h"
#include "os/os.h"
#include "place.h"
#include "porch.h"

/* --- defaults --------------------------------------------------------------------------------- */

#define SAME_SIZE(field) assert_int_equal(by_macro.field, by_file.field);
#define SAME_COUNT(field) assert_int_equal(by_macro.field, by_file.field);
#define SAME_DURATION(field) assert_int_equal(by_macro.field, by_file.field);
#define SAME_NUMBER(field) assert_true(by_macro.field == by_file.field);
#define SAME_SWITCH(field) assert_int_equal(by_macro.field, by_file.field);
#define SAME_NAME(field) assert_string_equal(by_macro.field, by_file.field);
#define SAME_POLICY(field) assert_string_equal(by_macro.field, by_file.field);
#define SAME_LIST(field) assert_true(!by_macro.field[0] && !by_file.field[0]);

/* The macro of the header, the function and the file's table say the same of every field. */
static void defaults_are_the_same_by_macro_and_by_file(void **state)
{
	const struct kvs_options by_macro = KVS_OPTIONS_INIT;
	struct api_settings  settings;
	struct kvs_options       by_file, by_call;
	struct conf             *conf;

	(void)state;
	assert_int_equal(
		conf_read(api_options, api_options_count, &settings, 0, NULL, &conf, NULL), 0);
	assert_int_equal(api_options_from(&settings, NULL, &by_file, NULL), 0);
	assert_int_equal(by_macro.struct_size, sizeof(by_macro));
#define SAME(kind, field, ...) SAME_##kind(field)
	MANAGER_OPTIONS(SAME)
#undef SAME
	memset(&by_call, 0, sizeof(by_call));
	kvs_options_init(&by_call, sizeof(by_call));
	assert_int_equal(by_call.struct_size, sizeof(by_call));
	assert_int_equal(by_call.host_bytes, by_macro.host_bytes);
	assert_int_equal(by_call.close_timeout_ns, by_macro.close_timeout_ns);
	conf_close(conf);
}

/* A caller that was compiled with a shorter struct keeps what lies behind it. */
static void defaults_stay_within_the_size_given(void **state)
{
	struct kvs_options options;

	(void)state;
	memset(&options, 0x5a, sizeof(options));
	kvs_options_init(&options, offsetof(struct kvs_options, object_bytes));
	assert_int_equal(options.struct_size, offsetof(struct kvs_options, object_bytes));
	assert_int_equal(options.host_bytes, UINT64_C(1) << 30);
	assert_int_equal(options.object_bytes, UINT64_C(0x5a5a5a5a5a5a5a5a));
}

/* --- bad options ------------------------------------------------------------------------------ */

static void refused(struct kvs_options *options, int code, const char *sentence)
{
	struct kvs      *kvs = NULL;
	struct kvs_error err = { 0 };

	if (kvs_open(options, &kvs, &err) != code)
		fail_msg("not refused: %s", sentence);
	assert_int_equal(err.code, code);
	if (strncmp(err.message, sentence, strlen(sentence)) != 0)
		fail_msg("\"%s\" instead of \"%s\"", err.message, sentence);
	assert_null(kvs);
	/* The sentence is a courtesy. */
	assert_int_equal(kvs_open(options, &kvs, NULL), code);
}

#define REFUSED(field, value, sentence) \
	do { \
		struct kvs_options options = porch_options(); \
		options.field = value; \
		refused(&options, KVS_E_INVALID, sentence); \
	} while (0)

static void bad_options_are_refused_with_field_value_and_rule(void **state)
{
	(void)state;
	REFUSED(struct_size, 0, "struct_size: 0 is not the ");
	REFUSED(struct_size, sizeof(struct kvs_options) + 8, "struct_size: ");
	REFUSED(host_bytes, 0, "host_bytes: 0 is out of range; use 16384 to 70368744177664");
	REFUSED(host_bytes, UINT64_MAX, "host_bytes: 18446744073709551615 is out of range");
	REFUSED(host_bytes, 100001, "host_bytes: 100001 is not a multiple of 4096");
	REFUSED(host_bytes, (UINT64_C(2) << 30) + 4096, "host_bytes: 2147487744 are whole GiB and 4096; ");
	REFUSED(object_bytes, 0, "object_bytes: 0 is out of range; use 4096 to 1073737728");
	REFUSED(object_bytes, 4097, "object_bytes: 4097 is not a multiple of 4096");
	REFUSED(object_bytes, 8u << 20,
		"object_bytes: 8388608 and a trailer of 4096 are more than host_bytes, 8388608");
	REFUSED(objects, 1u << 27, "objects: 134217728 is out of range; use 0 to 67108864");
	REFUSED(clients, 0, "clients: 0 is out of range; use 1 to 1024");
	REFUSED(clients, 2000, "clients: 2000 is out of range; use 1 to 1024");
	REFUSED(host_policy, "nearest", "host_policy: \"nearest\" is not known; use one of: lru");
	REFUSED(host_policy, NULL, "host_policy: NULL; KVS_OPTIONS_INIT sets a name");
	REFUSED(high, 1.5, "high: 1.5 is out of range; use 0.01 to 1");
	REFUSED(high, 0.5, "low: 0.9 is more than high, 0.5");
	REFUSED(low, 0.0 / 0.0, "low: ");
	REFUSED(write_ttl_ns, 0,
		"write_ttl_ns: 0 is out of range; use 1000000 to 9223372036854775808");
	REFUSED(read_ttl_ns, 7, "read_ttl_ns: 7 is out of range");
	REFUSED(quota_bytes, 4096, "quota_bytes: 4096 needs isolate");
	REFUSED(store_evict_policy, "x", "store_evict_policy: \"x\" is not known; use one of: lru");
	REFUSED(store_in_flight, 0, "store_in_flight: 0 is out of range; use 1 to 256");
	REFUSED(store_queue, 0, "store_queue: 0 is out of range");
	REFUSED(store_queue, (1u << 20) + 1, "store_queue: 1048577 is out of range; use 1 to 1048576");
	REFUSED(prefetch_in_flight, 300, "prefetch_in_flight: 300 is out of range; use 1 to 256");
	REFUSED(prefetches, 0, "prefetches: 0 is out of range; use 1 to 2048");
	REFUSED(prefetch_keys, 65537, "prefetch_keys: 65537 is out of range; use 1 to 65536");
	REFUSED(query_workers, 0, "query_workers: 0 is out of range; use 1 to 62");
	REFUSED(query_workers, 62,
		"query_workers, get_workers, put_workers: 65 threads a store; use at most 64");
	REFUSED(stores[0], "mem:64MiB?evict", "stores[0]: ");
	REFUSED(stores[0], "nowhere:x",
		"stores[0]: store: \"nowhere\" is not a kind of store; use none, mem");
}

static void policies_that_are_unknown_list_the_known(void **state)
{
	(void)state;
	REFUSED(store_policy, "all", "store policy: \"all\"");
	REFUSED(prefetch_policy, "last", "prefetch policy: \"last\"");
	REFUSED(store_policy, NULL, "store_policy: NULL; KVS_OPTIONS_INIT sets a name");
}

static void too_many_keys_under_way_are_refused(void **state)
{
	struct kvs_options options = porch_options();

	(void)state;
	options.prefetch_in_flight = 128;
	options.prefetch_keys = 65536;
	refused(&options, KVS_E_INVALID,
		"prefetch_in_flight, prefetch_keys: 128 requests of 65536 keys are more than 4194304 at once");
	options.prefetch_in_flight = 8;
	options.prefetches = 1024;
	refused(&options, KVS_E_INVALID,
		"prefetches, prefetch_in_flight, prefetch_keys: 1024 and 8 of 65536 keys are more than 67108864");
}

/* Nothing of the first store is left when the second cannot be opened. */
static void a_failed_open_leaves_nothing_open(void **state)
{
	const struct place place = place_open();
	struct kvs_options options = porch_options();
	struct porch       porch;
	char               spec[96];

	(void)state;
	snprintf(spec, sizeof(spec), "strata:%s?capacity=64MiB", place.path);
	options.stores[0] = spec;
	options.stores[1] = "mem:nothing";
	refused(&options, KVS_E_INVALID, "stores[1]: ");
	options.stores[1] = NULL;
	porch_open(&porch, &options);
	porch_write(&porch, 0, 3);
	porch_close(&porch);
	place_close(&place);
}

/* --- files ------------------------------------------------------------------------------------ */

static int open_json(const char *text, struct kvs **ret_kvs, struct kvs_error *err)
{
	const struct place place = place_open();
	FILE *const        file = fopen(place.path, "w");
	char              *at;
	int                rc;

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	rc = kvs_open_json(place.path, ret_kvs, err);
	/* The path is this test's own. */
	at = rc < 0 ? strstr(err->message, place.path) : NULL;
	if (at)
		memmove(at, at + strlen(place.path) + 2, strlen(at + strlen(place.path) + 2) + 1);
	place_close(&place);
	return rc;
}

static void a_file_says_what_the_struct_says(void **state)
{
	struct kvs_status status = { .struct_size = sizeof(status) };
	struct kvs_error  err;
	struct kvs       *kvs;

	(void)state;
	if (open_json(
		    "{\"host_bytes\": \"8MiB\", \"object_bytes\": 65536, \"stores\": [\"mem:1MiB\", \"nil:\"],"
		    " \"high\": 0.8, \"low\": 0.5, \"read_ttl_ns\": \"90s\", \"write_ttl_ns\": \"never\","
		    " \"prefetch_policy\": \"retain\", \"isolate\": true, \"quota_bytes\": \"1MiB\"}",
		    &kvs, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(kvs_status(kvs, &status), 0);
	assert_int_equal(status.host_bytes, 8u << 20);
	assert_int_equal(status.stores, 2);
	assert_int_equal(kvs_close(kvs), 0);
}

static void bad_files_are_refused_with_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *sentence;
	} rows[] = {
		{ "{\"host_byte\": 1}", "host_byte: unknown key; did you mean host_bytes?" },
		{ "{\"host_bytes\": \"8MB\"}", "host_bytes: \"8MB\" is not a size" },
		{ "{\"read_ttl_ns\": 5}", "read_ttl_ns: 5 is not a duration" },
		{ "{\"clients\": 0}", "clients: 0 is " },
		{ "{\"host_policy\": \"x\"}",
		  "host_policy: \"x\" is unknown; use one of lru" },
		{ "{\"store_policy\": \"x\"}", "store policy: \"x\"" },
		{ "{\"isolate\": 1}", "isolate: 1 is not " },
		{ "{\"host_bytes\": \"32MiB\", \"stores\": [\"mem:64MiB\", \"mem:1Mi\"]}", "stores[1]: " },
		{ "{\"stores\": \"nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil,nil\"}",
		  "stores: more than 16, as many as may be attached" },
		{ "{\"low\": 0.99}", "low: 0.99 is more than high, 0.95" },
		{ "[]", "must hold one JSON object of options" },
		{ "{", "line 1, column 1: " },
	};
	struct kvs_error err;
	struct kvs      *kvs = NULL;
	size_t           i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		assert_int_equal(open_json(rows[i].text, &kvs, &err), KVS_E_INVALID);
		if (strncmp(err.message, rows[i].sentence, strlen(rows[i].sentence)) != 0)
			fail_msg("\"%s\" instead of \"%s\"", err.message, rows[i].sentence);
	}
	assert_int_equal(kvs_open_json("/nowhere/kvstrata.json", &kvs, &err), -ENOENT);
	assert_null(kvs);
}

/* --- close ------------------------------------------------------------------------------------ */

static void a_door_opens_and_closes_with_any_store(void **state)
{
	static const char *const specs[] = { NULL, "none", "nil:", "mem:1MiB" };
	struct porch             porch;
	size_t                   i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(specs); i++) {
		porch_open_on(&porch, specs[i]);
		porch_write(&porch, 0, 3);
		assert_int_equal(porch_fetch(&porch, 0, 3), 3);
		porch_close(&porch);
	}
	assert_int_equal(kvs_close(NULL), 0);
}

static void two_doors_do_not_see_each_other(void **state)
{
	struct porch one, two;

	(void)state;
	porch_open_on(&one, NULL);
	porch_open_on(&two, NULL);
	porch_write(&one, 0, 3);
	assert_int_equal(porch_fetch(&two, 0, 3), 0);
	porch_close(&two);
	assert_int_equal(porch_fetch(&one, 0, 3), 3);
	porch_close(&one);
}

/* Clients and prefetches that were left open go with it. */
static void a_close_takes_everything_with_it(void **state)
{
	struct porch porch;

	(void)state;
	porch_open_on(&porch, "mem:1MiB");
	porch_write(&porch, 0, 3);
	(void)porch_submit(&porch, 0, 3, NULL);
	(void)porch_submit(&porch, 10, 3, NULL);
	porch_name(&porch, 20, 2);
	assert_int_equal(kvs_reserve_write(porch.kvs, porch.me, porch.keys, 2, NULL, porch.spans,
					   porch.rc, NULL),
			 0);
	assert_int_equal(kvs_close(porch.kvs), 0);
}

static void calls_after_the_close_are_told_so(void **state)
{
	struct kvs_prefetch_info info = { .struct_size = sizeof(info) };
	struct kvs_status        status = { .struct_size = sizeof(status) };
	struct kvs_namespace     space = { { 0 } };
	struct kvs_error         err;
	struct porch             porch;
	kvs_prefetch             prefetch;
	kvs_client               client;
	struct kvs              *kvs;
	uint64_t                 removed, left;
	uint32_t                 number;

	(void)state;
	porch_open_on(&porch, NULL);
	porch_write(&porch, 0, 1);
	prefetch = porch_submit(&porch, 0, 1, NULL);
	kvs = porch.kvs;
	assert_int_equal(kvs_close(kvs), 0);
	assert_int_equal(kvs_close(kvs), KVS_E_CLOSED);
#define CLOSED(call) assert_int_equal(call, KVS_E_CLOSED)
	CLOSED(kvs_client_open(kvs, &client, &err));
	assert_string_equal(err.message, "kvs: it was closed");
	CLOSED(kvs_client_close(kvs, porch.me));
	CLOSED(kvs_client_fd(kvs, porch.me));
	CLOSED(kvs_reserve_write(kvs, porch.me, porch.keys, 1, NULL, porch.spans, porch.rc, &err));
	CLOSED(kvs_finish_write(kvs, porch.me, porch.keys, 1, porch.rc, &err));
	CLOSED(kvs_discard_write(kvs, porch.me, porch.keys, 1, porch.rc, &err));
	CLOSED(kvs_lock(kvs, porch.me, porch.keys, 1, porch.spans, porch.rc, &err));
	CLOSED(kvs_unlock(kvs, porch.me, porch.keys, 1, porch.rc, &err));
	CLOSED(kvs_touch(kvs, porch.keys, 1));
	CLOSED(kvs_remove(kvs, porch.keys, 1, true, porch.rc, &err));
	CLOSED(kvs_clear(kvs, NULL, true, &removed, &left));
	CLOSED(kvs_quota(kvs, &space, 1, &err));
	CLOSED(kvs_flush(kvs, 1));
	CLOSED(kvs_store_add(kvs, "mem:1MiB", &number, &err));
	CLOSED(kvs_store_remove(kvs, 0, 1, &err));
	CLOSED(kvs_status(kvs, &status));
	CLOSED(kvs_metrics(kvs, NULL, 0));
	CLOSED(kvs_prefetch_submit(kvs, porch.me, porch.keys, 1, NULL, &prefetch, &err));
	CLOSED(kvs_prefetch_info(kvs, prefetch, &info));
	CLOSED(kvs_prefetch_poll(kvs, prefetch, &number));
	CLOSED(kvs_prefetch_wait(kvs, prefetch, 1, &number));
	CLOSED(kvs_prefetch_spans(kvs, prefetch, porch.spans, 1, &number));
	CLOSED(kvs_prefetch_release(kvs, prefetch));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_the_same_by_macro_and_by_file),
		cmocka_unit_test(defaults_stay_within_the_size_given),
		cmocka_unit_test(bad_options_are_refused_with_field_value_and_rule),
		cmocka_unit_test(policies_that_are_unknown_list_the_known),
		cmocka_unit_test(too_many_keys_under_way_are_refused),
		cmocka_unit_test(a_failed_open_leaves_nothing_open),
		cmocka_unit_test(a_file_says_what_the_struct_says),
		cmocka_unit_test(bad_files_are_refused_with_what_is_wrong),
		cmocka_unit_test(a_door_opens_and_closes_with_any_store),
		cmocka_unit_test(two_doors_do_not_see_each_other),
		cmocka_unit_test(a_close_takes_everything_with_it),
		cmocka_unit_test(calls_after_the_close_are_told_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
