/* SPDX-License-Identifier: Apache-2.0 */
/* Policies out of shared objects: used as found, or refused with the reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctrl/policy.h"

#define ODD(name) "plugin:" ODD_DIRECTORY "/libodd_policies_" name ".so"

enum { STORE = 1, PREFETCH = 2, BOTH = 3 };

static const struct {
	const char *name;
	int         asked; /* who refuses it */
	int         code;
	const char *message; /* contains */
} refusals[] = {
	{ "plugin:", BOTH, KVS_E_INVALID, "policy: \"\" is no path with a /" },
	{ "plugin:libmine.so", BOTH, KVS_E_INVALID, "policy: \"libmine.so\" is no path with a /" },
	{ "plugin:/nowhere/libx.so", BOTH, KVS_E_INVALID, "policy: /nowhere/libx.so: cannot open" },
	{ "plugin:/etc/passwd", BOTH, KVS_E_INVALID, "policy: /etc/passwd: " },
	{ ODD("symbolless"), BOTH, KVS_E_PROTO, "is no policy plugin: it exports no kvs_policies" },
	{ ODD("tableless"), BOTH, KVS_E_PROTO, "hands out no table: its kvs_policies() returned NULL" },
	{ ODD("abi"), BOTH, KVS_E_PROTO, "has policy ABI 4711, this build has 1" },
	{ ODD("nameless"), STORE, KVS_E_PROTO, "has no name in its store policy" },
	{ ODD("nameless"), PREFETCH, KVS_E_PROTO, "has no name in its prefetch policy" },
	{ ODD("storeless"), STORE, KVS_E_PROTO, "has no store policy" },
	{ ODD("prefetchless"), PREFETCH, KVS_E_PROTO, "has no prefetch policy" },
	{ ODD("targetless"), STORE, KVS_E_PROTO, "has no targets() in its store policy" },
	{ ODD("planless"), PREFETCH, KVS_E_PROTO, "has no plan() in its prefetch policy" },
	{ "", STORE, KVS_E_INVALID,
	  "store policy: \"\" is not known; use one of: default skip-host plugin:./NAME.so" },
	{ "", PREFETCH, KVS_E_INVALID,
	  "prefetch policy: \"\" is not known; use one of: default retain plugin:./NAME.so" },
	{ "retain", STORE, KVS_E_INVALID, "store policy: \"retain\" is not known" },
	{ "skip-host", PREFETCH, KVS_E_INVALID, "prefetch policy: \"skip-host\" is not known" },
};

static void check_refusal(const char *name, int code, const char *message, int found, const void *policy,
			  const struct kvs_error *err)
{
	assert_int_equal(found, code);
	assert_int_equal(err->code, code);
	assert_null(policy);
	if (!strstr(err->message, message))
		fail_msg("%s: got \"%s\"", name, err->message);
}

static void each_refusal_says_why(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(refusals); i++) {
		const char *const                 name = refusals[i].name;
		const struct kvs_store_policy    *store = NULL;
		const struct kvs_prefetch_policy *prefetch = NULL;
		struct kvs_error                  err = { 0 };

		if (refusals[i].asked & STORE) {
			check_refusal(name, refusals[i].code, refusals[i].message,
				      store_policy_find(name, &store, &err), store, &err);
		}
		if (refusals[i].asked & PREFETCH) {
			check_refusal(name, refusals[i].code, refusals[i].message,
				      prefetch_policy_find(name, &prefetch, &err), prefetch, &err);
		}
	}
}

/* What it lacks is nobody's business who does not ask for it. */
static void half_an_object_serves_who_asks_for_that_half(void **state)
{
	const struct kvs_store_policy    *store = NULL;
	const struct kvs_prefetch_policy *prefetch = NULL;

	(void)state;
	assert_int_equal(store_policy_find(ODD("prefetchless"), &store, NULL), 0);
	assert_string_equal(store->name, "even");
	assert_int_equal(store_policy_find(ODD("planless"), &store, NULL), 0);
	assert_int_equal(prefetch_policy_find(ODD("storeless"), &prefetch, NULL), 0);
	assert_string_equal(prefetch->name, "highest");
	assert_int_equal(prefetch_policy_find(ODD("targetless"), &prefetch, NULL), 0);
}

static void a_policy_of_an_object_answers(void **state)
{
	static const struct kvs_adapter_info adapters[] = { { .number = 1 }, { .number = 3 } };
	static const uint64_t                found[] = { 0xa, 0x2, 0 };
	const struct kvs_key                 keys[3] = { { .offset = 4 }, { .offset = 5 }, { .offset = 6 } };
	const uint64_t                       bytes[3] = { 1, 2, 3 };
	uint8_t        from[3] = { KVS_NO_ADAPTER, KVS_NO_ADAPTER, KVS_NO_ADAPTER };
	uint64_t       targets[3] = { 0 };
	const struct kvs_store_policy    *store = NULL;
	const struct kvs_prefetch_policy *prefetch = NULL;

	(void)state;
	assert_int_equal(store_policy_find(ODD("sound"), &store, NULL), 0);
	store->targets(adapters, 2, keys, bytes, 3, targets);
	assert_int_equal(targets[0], 2);
	assert_int_equal(targets[1], 0);
	assert_int_equal(targets[2], 2);
	assert_null(store->deletions);
	assert_int_equal(prefetch_policy_find(ODD("sound"), &prefetch, NULL), 0);
	prefetch->plan(adapters, 2, keys, found, 3, from);
	assert_int_equal(from[0], 3);
	assert_int_equal(from[1], 1);
	assert_int_equal(from[2], KVS_NO_ADAPTER);
	assert_true(prefetch->retain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_refusal_says_why),
		cmocka_unit_test(half_an_object_serves_who_asks_for_that_half),
		cmocka_unit_test(a_policy_of_an_object_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
