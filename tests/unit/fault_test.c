/* SPDX-License-Identifier: Apache-2.0 */
/* The store that fails on purpose: every fault falls as its plan says, and bad plans are told why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <sched.h>

#include "base/err.h"
#include "named_block.h"
#include "os/os.h"
#include "store/fault.h"
#include "store/fault_late.h"
#include "store/store.h"

#define BLOCK 4096u
#define ROWS 8u

static char path[] = "/tmp/kvstrata-plan-XXXXXX";

static int file_setup(void **state)
{
	const int fd = mkstemp(path);

	(void)state;
	close(fd);
	return fd < 0 ? -1 : 0;
}

static int file_teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_plan(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int try_open(const char *plan, struct kvs_store **ret_store, struct kvs_error *err)
{
	char spec[64];

	write_plan(plan);
	snprintf(spec, sizeof(spec), "fault:%s", path);
	return store_open(spec, BLOCK, "lru", ret_store, err);
}

/* Around mem, with these faults. */
static struct kvs_store *open_with(const char *faults)
{
	struct kvs_store *store = NULL;
	struct kvs_error  err;
	char              plan[1024];

	snprintf(plan, sizeof(plan), "{\"inner\": \"mem:1MiB\", \"seed\": 3, \"faults\": [%s]}",
		 faults);
	if (try_open(plan, &store, &err) < 0)
		fail_msg("%s", err.message);
	return store;
}

static void close_store(struct kvs_store *store)
{
	assert_int_equal(store->ops->close(store), 0);
}

/* A batch of ROWS keys and where their bytes go. */
struct rows {
	struct kvs_key  key[ROWS];
	struct kvs_span span[ROWS];
	enum kvs_result result[ROWS];
	uint64_t        words[ROWS][BLOCK / 8];
	bool            retired;
	int             rc;
};

static struct rows rows;

static void prepare(bool filled)
{
	uint32_t i;

	for (i = 0; i < ROWS; i++) {
		rows.key[i] = key_of(i);
		rows.span[i] = (struct kvs_span){ rows.words[i], BLOCK, BLOCK };
		rows.result[i] = KVS_RESULT_CORRUPT;
		if (filled)
			fill(rows.words[i], i, BLOCK);
		else
			memset(rows.words[i], 0xee, BLOCK);
	}
	rows.retired = false;
}

static void put(struct kvs_store *store)
{
	prepare(true);
	rows.rc = store->ops->put(store, rows.key, rows.span, ROWS, rows.result, &rows.retired);
}

static void get(struct kvs_store *store)
{
	prepare(false);
	rows.rc = store->ops->get(store, rows.key, rows.span, ROWS, rows.result, &rows.retired);
}

static void exists(struct kvs_store *store)
{
	prepare(false);
	rows.rc = store->ops->exists(store, rows.key, ROWS, rows.result);
}

/* One letter a row, in order of enum kvs_result: ?, done, exists, missing, corrupt, no space, failed. */
static void expect(const char *letters)
{
	char     got[ROWS + 1] = "";
	uint32_t i;

	for (i = 0; i < ROWS; i++)
		got[i] = "?dEmcnf"[rows.result[i]];
	assert_string_equal(got, letters);
	assert_int_equal(rows.rc, 0);
}

static void rows_fail_where_the_plan_says(void **state)
{
	struct kvs_store *store = open_with(
		"{\"kind\": \"fail\", \"op\": \"put\", \"every\": 3},"
		"{\"kind\": \"no_space\", \"op\": \"put\", \"after\": 1, \"count\": 2},"
		"{\"kind\": \"miss\", \"op\": \"exists\", \"after\": 7},"
		"{\"kind\": \"fail\", \"op\": \"exists\", \"count\": 1}");

	(void)state;
	put(store);
	expect("dnfndfdd");
	assert_true(rows.retired);
	exists(store);
	expect("fmmmdmdm");
	put(store);
	expect("fddfEdfE");
	assert_int_equal(store_fault_count(store, 0), 5);
	assert_int_equal(store_fault_count(store, 1), 2);
	close_store(store);
}

/* Both reach the caller as success: only somebody who looks at the bytes can tell. */
static void wrong_bytes_come_as_success(void **state)
{
	struct kvs_store *store = open_with(
		"{\"kind\": \"short\", \"op\": \"get\", \"after\": 1, \"count\": 1},"
		"{\"kind\": \"corrupt\", \"op\": \"get\", \"after\": 4, \"count\": 1}");
	struct kvs_store_info info;
	uint32_t              i, flipped = 0, wrong;

	(void)state;
	put(store);
	get(store);
	expect("dddddddd");
	assert_true(rows.retired);
	for (i = 0, wrong = 0; i < ROWS; i++)
		wrong += !is_filled(rows.words[i], i, BLOCK);
	assert_int_equal(wrong, 2);
	assert_true(is_filled(rows.words[1], 1, BLOCK / 2));
	assert_int_equal(rows.words[1][BLOCK / 16], UINT64_C(0xeeeeeeeeeeeeeeee));
	for (i = 0; i < BLOCK / 8; i++)
		flipped += (uint32_t)__builtin_popcountll(rows.words[5][i] ^ word_of(5, i));
	assert_int_equal(flipped, 1);
	store->ops->describe(store, &info);
	assert_false(info.verified);
	close_store(store);
}

static void a_failed_call_does_nothing(void **state)
{
	struct kvs_store *store = open_with("{\"kind\": \"error\", \"op\": \"put\", \"every\": 2}");

	(void)state;
	put(store);
	expect("dddddddd");
	put(store);
	assert_true(rows.rc < 0);
	assert_true(rows.retired);
	assert_int_equal(rows.result[0], KVS_RESULT_UNKNOWN);
	put(store);
	expect("EEEEEEEE");
	close_store(store);
}

/* Close lands what is pending, which is the end of the time that nobody may rely on. */
static void a_late_write_is_not_retired_and_lands(void **state)
{
	struct kvs_store *store = open_with("{\"kind\": \"late_write\", \"op\": \"get\", \"ms\": "
					    "3600000, \"after\": 2, \"count\": 1}");
	struct kvs_store_info info;

	(void)state;
	put(store);
	get(store);
	expect("ddfddddd");
	assert_false(rows.retired);
	assert_int_equal(((uint8_t *)rows.words[2])[0], 0xee);
	store->ops->describe(store, &info);
	assert_false(info.failures_retire);
	close_store(store);
	assert_int_equal(((uint8_t *)rows.words[2])[0], FAULT_LATE_BYTE);
	assert_int_equal(((uint8_t *)rows.words[2])[BLOCK - 1], FAULT_LATE_BYTE);
}

static void X2_it_has_settled_when_what_is_late_has_landed(void **state)
{
	struct kvs_store *store = open_with("{\"kind\": \"late_write\", \"op\": \"get\", \"ms\": "
					    "3600000, \"after\": 2, \"count\": 2}");

	(void)state;
	assert_true(store->ops->settled(store));
	put(store);
	get(store);
	expect("ddffdddd");
	assert_false(rows.retired);
	assert_false(store->ops->settled(store));
	store_fault_land(store);
	assert_int_equal(((uint8_t *)rows.words[3])[BLOCK - 1], FAULT_LATE_BYTE);
	assert_true(store->ops->settled(store));
	get(store);
	expect("dddddddd");
	assert_true(rows.retired);
	close_store(store);
}

static void what_is_never_late_need_not_settle(void **state)
{
	struct kvs_store *store = open_with("{\"kind\": \"fail\", \"op\": \"get\"}");

	(void)state;
	assert_null(store->ops->settled);
	store_fault_land(store);
	close_store(store);
}

static void a_lie_about_it_is_possible(void **state)
{
	struct kvs_store *store = open_with("{\"kind\": \"late_write\", \"op\": \"get\", \"ms\": "
					    "[3000000, 3600000], \"claims_retired\": true}");

	(void)state;
	get(store);
	expect("ffffffff");
	assert_true(rows.retired);
	close_store(store);
}

struct lost {
	struct kvs_store *store;
	enum kvs_result   result;
	int               rc;
};

static void *lose(void *arg)
{
	struct lost   *lost = arg;
	struct kvs_key key = key_of(1);

	lost->rc = lost->store->ops->exists(lost->store, &key, 1, &lost->result);
	return NULL;
}

static pthread_t start_lost(struct lost *lost)
{
	pthread_t thread;

	assert_int_equal(os_thread_start(&thread, "lost", lose, lost), 0);
	while (store_fault_held(lost->store) == 0)
		sched_yield();
	return thread;
}

static void a_lost_call_waits_for_its_release(void **state)
{
	struct lost lost = { .store = open_with("{\"kind\": \"lost\", \"op\": \"exists\", "
						"\"count\": 1}") };
	pthread_t   thread = start_lost(&lost);

	(void)state;
	put(lost.store);
	expect("dddddddd");
	store_fault_release(lost.store);
	os_thread_join(thread);
	assert_int_equal(lost.rc, 0);
	assert_int_equal(lost.result, KVS_RESULT_DONE);
	close_store(lost.store);
}

static void a_lost_call_fails_at_close(void **state)
{
	struct lost lost = { .store = open_with("{\"kind\": \"lost\", \"op\": \"exists\"}") };
	pthread_t   thread = start_lost(&lost);

	(void)state;
	close_store(lost.store);
	os_thread_join(thread);
	assert_true(lost.rc < 0);
}

static void a_delayed_call_is_made(void **state)
{
	struct kvs_store *store = open_with("{\"kind\": \"delay\", \"op\": \"put\", \"us\": 1500}");
	const uint64_t    before = os_now_ns();

	(void)state;
	put(store);
	assert_true(os_now_ns() >= before + 1500000);
	expect("dddddddd");
	close_store(store);
}

static uint64_t failures_by_chance(const char *seed)
{
	struct kvs_store *store;
	char              plan[256];
	uint64_t          mask = 0;
	uint32_t          i;

	snprintf(plan, sizeof(plan),
		 "{\"inner\": \"mem:1MiB\", \"seed\": %s, \"faults\": "
		 "[{\"kind\": \"miss\", \"op\": \"exists\", \"chance\": 0.5}]}",
		 seed);
	assert_int_equal(try_open(plan, &store, NULL), 0);
	put(store);
	for (i = 0; i < 8; i++) {
		exists(store);
		mask = mask << 1 | (rows.result[0] == KVS_RESULT_MISSING);
		mask = mask << 1 | (rows.result[7] == KVS_RESULT_MISSING);
	}
	close_store(store);
	return mask;
}

static void chance_follows_the_seed(void **state)
{
	const uint64_t one = failures_by_chance("1");

	(void)state;
	assert_int_equal(one, failures_by_chance("1"));
	assert_int_not_equal(one, failures_by_chance("2"));
	assert_in_range(__builtin_popcountll(one), 2, 14);
}

static void what_the_inner_store_lacks_is_lacking(void **state)
{
	struct kvs_store *store;

	(void)state;
	assert_int_equal(try_open("{\"inner\": \"nil:\", \"faults\": []}", &store, NULL), 0);
	assert_null(store->ops->list);
	assert_null(store->ops->purge);
	assert_null(store->ops->lock);
	assert_null(store->ops->unlock);
	close_store(store);
	store = open_with("");
	assert_non_null(store->ops->list);
	assert_non_null(store->ops->lock);
	close_store(store);
}

#define RULE(members) "{\"inner\": \"mem:1MiB\", \"faults\": [{" members "}]}"
#define FAIL "\"kind\": \"fail\", \"op\": \"get\""
#define DELAY "\"kind\": \"delay\", \"op\": \"get\""

static const struct {
	const char *plan;
	const char *message; /* behind the name of the file */
} refusals[] = {
	{ "", "line 1, column 0: " },
	{ "{", "line 1, column 1: " },
	{ "[]", "is not one JSON object" },
	{ "{\"faults\": []}", "inner: is missing" },
	{ "{\"inner\": 7, \"faults\": []}", "inner: 7 is not the spec of a store" },
	{ "{\"inner\": \"mem:1\", \"faults\": []}", "inner: store.capacity: 1 bytes hold no block" },
	{ "{\"inner\": \"none\", \"faults\": []}", "inner: \"none\" cannot be wrapped" },
	{ "{\"inner\": \"fault:x\", \"faults\": []}", "inner: \"fault:x\" cannot be wrapped" },
	{ "{\"inner\": \"mem:1MiB\"}", "faults: is missing" },
	{ "{\"inner\": \"mem:1MiB\", \"inner\": \"x\"}", "line 1, column " },
	{ "{\"inner\": \"mem:1MiB\", \"faults\": {}}", "faults: {} is not an array of at most 32" },
	{ "{\"inner\": \"mem:1MiB\", \"faults\": [1]}", "faults[0]: is not an object" },
	{ "{\"inner\": \"mem:1MiB\", \"faults\": [], \"seed\": -1}",
	  "seed: -1 is not a non-negative integer" },
	{ "{\"inner\": \"mem:1MiB\", \"faults\": [], \"sede\": 1}",
	  "sede: is no key here; use inner, seed, faults" },
	{ RULE("\"op\": \"get\""), "faults[0].kind: is missing" },
	{ RULE("\"kind\": \"fial\", \"op\": \"get\""),
	  "faults[0].kind: \"fial\" is not a kind of fault; use delay, error, lost" },
	{ RULE("\"kind\": \"fail\""), "faults[0].op: is missing" },
	{ RULE("\"kind\": \"fail\", \"op\": \"got\""), "faults[0].op: \"got\" is not an op; use get" },
	{ RULE("\"kind\": \"short\", \"op\": \"put\""),
	  "faults[0].op: \"put\" has no fault of kind short" },
	{ RULE(FAIL ", \"every\": 0"), "faults[0].every: 0 is not an integer of at least 1" },
	{ RULE(FAIL ", \"every\": 1.5"), "faults[0].every: 1.5 is not an integer of at least 1" },
	{ RULE(FAIL ", \"after\": -1"), "faults[0].after: -1 is not a non-negative integer" },
	{ RULE(FAIL ", \"count\": \"1\""), "faults[0].count: \"1\" is not an integer" },
	{ RULE(FAIL ", \"chance\": 1.5"), "faults[0].chance: 1.5 is not a number above 0" },
	{ RULE(FAIL ", \"chance\": 0"), "faults[0].chance: 0 is not a number above 0" },
	{ RULE(FAIL ", \"chance\": 1, \"every\": 1"), "faults[0].chance: 1 cannot stand beside every" },
	{ RULE(FAIL ", \"ms\": 1"), "faults[0].ms: 1 belongs to delay and late_write" },
	{ RULE(FAIL ", \"claims_retired\": true"), "faults[0].claims_retired: true belongs to late" },
	{ RULE(FAIL ", \"evry\": 1"), "faults[0].evry: is no key here; use kind, op, every, chance" },
	{ RULE(DELAY), "faults[0].ms: is missing" },
	{ RULE(DELAY ", \"ms\": -1"), "faults[0].ms: -1 is neither a time" },
	{ RULE(DELAY ", \"ms\": [2, 1]"), "faults[0].ms: [2,1] is neither a time" },
	{ RULE(DELAY ", \"us\": [1, 2, 3]"), "faults[0].us: [1,2,3] is neither a time" },
	{ RULE(DELAY ", \"ms\": 3600001"), "faults[0].ms: 3600001 is neither a time of at most an h" },
	{ RULE(DELAY ", \"ms\": 1, \"us\": 1"), "faults[0].us: 1 cannot stand beside ms" },
};

static void each_bad_plan_is_told_why(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(refusals); i++) {
		struct kvs_store *store;
		struct kvs_error  err;
		char              wanted[256];

		snprintf(wanted, sizeof(wanted), "store.plan: \"%s\": %s", path, refusals[i].message);
		assert_int_equal(try_open(refusals[i].plan, &store, &err), KVS_E_INVALID);
		if (strncmp(err.message, wanted, strlen(wanted)) != 0)
			fail_msg("%s: got \"%s\"", refusals[i].plan, err.message);
	}
}

static void a_plan_that_cannot_be_read_is_told_why(void **state)
{
	struct kvs_store *store;
	struct kvs_error  err;

	(void)state;
	assert_int_equal(store_open("fault:", BLOCK, "lru", &store, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "store.plan: is missing; write fault:PLAN.json");
	assert_true(store_open("fault:/nowhere/plan.json", BLOCK, "lru", &store, &err) < 0);
	assert_string_equal(err.message,
			    "store.plan: \"/nowhere/plan.json\": No such file or directory");
	assert_true(store_open("fault:/tmp", BLOCK, "lru", &store, &err) < 0);
	assert_int_equal(store_open("fault:x?seed=1", BLOCK, "lru", &store, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "store: \"seed\" is not an option of fault; it takes none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_fail_where_the_plan_says),
		cmocka_unit_test(wrong_bytes_come_as_success),
		cmocka_unit_test(a_failed_call_does_nothing),
		cmocka_unit_test(a_late_write_is_not_retired_and_lands),
		cmocka_unit_test(X2_it_has_settled_when_what_is_late_has_landed),
		cmocka_unit_test(what_is_never_late_need_not_settle),
		cmocka_unit_test(a_lie_about_it_is_possible),
		cmocka_unit_test(a_lost_call_waits_for_its_release),
		cmocka_unit_test(a_lost_call_fails_at_close),
		cmocka_unit_test(a_delayed_call_is_made),
		cmocka_unit_test(chance_follows_the_seed),
		cmocka_unit_test(what_the_inner_store_lacks_is_lacking),
		cmocka_unit_test(each_bad_plan_is_told_why),
		cmocka_unit_test(a_plan_that_cannot_be_read_is_told_why),
	};

	return cmocka_run_group_tests(tests, file_setup, file_teardown);
}
