/* SPDX-License-Identifier: Apache-2.0 */
/* What each code of the SDK means, for each call of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mooncake/codes.h"

#define BYTES 4096

/* Every negative one, as the SDK documents them. */
static const int64_t documented[] = {
	-1,    -10,   -100,  -101,  -102,  -103,  -200,  -300,  -400,  -500,  -600,  -601,
	-700,  -701,  -702,  -703,  -704,  -705,  -706,  -707,  -708,  -709,  -710,  -711,
	-712,  -713,  -714,  -800,  -801,  -900,  -901,  -1000, -1001, -1002, -1003, -1004,
	-1005, -1006, -1007, -1010, -1011, -1012, -1100, -1101, -1102, -1103, -1104, -1105,
	-1106, -1200, -1201, -1202, -1203, -1300, -1301, -1400, -1401, -1402, -1500, -1501,
	-1502, -1503, -1600, -1601, -1602, -1603, -1604, -1605, -1700, -1701, -1702,
};

/* No code that anybody documents. */
static const int64_t unknown[] = { INT64_MIN, -2, -7, -201, -704000, -1703, -4294967296 - 704 };

/* The exceptions to "failed"; a code that is not named here proves nothing. */
struct expectation {
	int64_t         code;
	enum kvs_result result;
};

static const struct expectation of_exists[] = { { -704, KVS_RESULT_MISSING }, { 0 } };
static const struct expectation of_get[] = {
	{ -702, KVS_RESULT_UNKNOWN }, { -703, KVS_RESULT_UNKNOWN }, { -704, KVS_RESULT_MISSING },
	{ -707, KVS_RESULT_UNKNOWN }, { -801, KVS_RESULT_CORRUPT }, { 0 },
};
static const struct expectation of_put[] = { { -200, KVS_RESULT_NO_SPACE },
					     { -705, KVS_RESULT_EXISTS },
					     { 0 } };
static const struct expectation of_remove[] = {
	{ -703, KVS_RESULT_UNKNOWN }, { -704, KVS_RESULT_MISSING }, { -706, KVS_RESULT_UNKNOWN },
	{ -708, KVS_RESULT_UNKNOWN }, { -714, KVS_RESULT_UNKNOWN }, { 0 },
};
static const struct expectation of_purge[] = { { 0 } };

static const struct expectation *const of_verb[MOONCAKE_VERB_COUNT] = {
	of_exists, of_get, of_put, of_remove, of_purge
};

static bool has_spans(enum mooncake_verb verb)
{
	return verb == MOONCAKE_GET || verb == MOONCAKE_PUT;
}

static void check(enum mooncake_verb verb, int64_t code, enum kvs_result result, bool retired)
{
	const struct mooncake_verdict verdict = mooncake_judge(verb, code, BYTES);

	if (verdict.result != result || verdict.retired != retired) {
		fail_msg("verb %d, code %lld: result %d, %s", (int)verb, (long long)code,
			 (int)verdict.result, verdict.retired ? "retired" : "not retired");
	}
}

static void check_negative(enum mooncake_verb verb, int64_t code)
{
	const struct expectation *at;

	for (at = of_verb[verb]; at->code; at++) {
		if (at->code == code) {
			check(verb, code, at->result, true);
			return;
		}
	}
	check(verb, code, KVS_RESULT_FAILED, !has_spans(verb));
}

static void A10_1_each_negative_code_means_one_thing(void **state)
{
	int    verb;
	size_t i;

	(void)state;
	for (verb = 0; verb < MOONCAKE_VERB_COUNT; verb++) {
		for (i = 0; i < ARRAY_COUNT(documented); i++)
			check_negative((enum mooncake_verb)verb, documented[i]);
		for (i = 0; i < ARRAY_COUNT(unknown); i++)
			check_negative((enum mooncake_verb)verb, unknown[i]);
	}
}

static void A10_1_exact_bytes_prove_a_get(void **state)
{
	(void)state;
	check(MOONCAKE_GET, BYTES, KVS_RESULT_DONE, true);
	check(MOONCAKE_GET, BYTES - 1, KVS_RESULT_CORRUPT, true);
	check(MOONCAKE_GET, BYTES + 1, KVS_RESULT_CORRUPT, true);
	check(MOONCAKE_GET, 0, KVS_RESULT_CORRUPT, true);
	check(MOONCAKE_GET, 1, KVS_RESULT_CORRUPT, true);
	check(MOONCAKE_GET, INT64_MAX, KVS_RESULT_CORRUPT, true);
}

static void A10_1_a_put_returns_zero_or_nothing_is_proven(void **state)
{
	(void)state;
	check(MOONCAKE_PUT, 0, KVS_RESULT_DONE, true);
	check(MOONCAKE_PUT, 1, KVS_RESULT_FAILED, false);
	check(MOONCAKE_PUT, BYTES, KVS_RESULT_FAILED, false);
	check(MOONCAKE_PUT, INT64_MAX, KVS_RESULT_FAILED, false);
	/* What would be an answer to a get is none to a put, and the other way round. */
	check(MOONCAKE_PUT, -704, KVS_RESULT_FAILED, false);
	check(MOONCAKE_GET, -200, KVS_RESULT_FAILED, false);
	check(MOONCAKE_GET, -705, KVS_RESULT_FAILED, false);
}

static void an_object_exists_or_not_and_nothing_else(void **state)
{
	(void)state;
	check(MOONCAKE_EXISTS, 1, KVS_RESULT_DONE, true);
	check(MOONCAKE_EXISTS, 0, KVS_RESULT_MISSING, true);
	check(MOONCAKE_EXISTS, 2, KVS_RESULT_FAILED, true);
	check(MOONCAKE_EXISTS, INT64_MAX, KVS_RESULT_FAILED, true);
}

static void a_removal_is_done_once_and_a_purge_counts(void **state)
{
	(void)state;
	check(MOONCAKE_REMOVE, 0, KVS_RESULT_DONE, true);
	check(MOONCAKE_REMOVE, 1, KVS_RESULT_FAILED, true);
	check(MOONCAKE_PURGE, 0, KVS_RESULT_DONE, true);
	check(MOONCAKE_PURGE, 12345, KVS_RESULT_DONE, true);
}

static void A10_1_a_call_has_retired_when_each_row_of_it_has(void **state)
{
	int64_t              codes[4] = { BYTES, -704, 7, -801 };
	struct mooncake_call call = { .verb = MOONCAKE_GET, .count = 4, .codes = codes };
	uint32_t             i;

	(void)state;
	assert_true(mooncake_call_retired(&call));
	for (i = 0; i < 4; i++) {
		const int64_t was = codes[i];

		codes[i] = -800;
		assert_false(mooncake_call_retired(&call));
		codes[i] = was;
	}
	call.verb = MOONCAKE_PUT;
	assert_false(mooncake_call_retired(&call));
	memcpy(codes, (int64_t[4]){ 0, -705, -200, 0 }, sizeof(codes));
	assert_true(mooncake_call_retired(&call));
	/* Nothing is lent to these. */
	memcpy(codes, (int64_t[4]){ -1, -900, 99, -600 }, sizeof(codes));
	call.verb = MOONCAKE_EXISTS;
	assert_true(mooncake_call_retired(&call));
	call.verb = MOONCAKE_REMOVE;
	assert_true(mooncake_call_retired(&call));
	call.verb = MOONCAKE_PURGE;
	call.count = 1;
	assert_true(mooncake_call_retired(&call));
}

static void each_documented_code_has_a_name_of_its_own(void **state)
{
	size_t i, other;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(documented); i++) {
		const char *const name = mooncake_code_name(documented[i]);

		assert_string_not_equal(name, "unknown code");
		for (other = 0; other < i; other++)
			assert_string_not_equal(name, mooncake_code_name(documented[other]));
	}
	for (i = 0; i < ARRAY_COUNT(unknown); i++)
		assert_string_equal(mooncake_code_name(unknown[i]), "unknown code");
	assert_string_equal(mooncake_code_name(0), "OK");
	assert_string_equal(mooncake_code_name(-704), "OBJECT_NOT_FOUND");
	assert_string_equal(mooncake_code_name(MOONCAKE_NO_HANDLE), "NO_AVAILABLE_HANDLE");
	assert_string_equal(mooncake_code_name(1), "unknown code");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(A10_1_each_negative_code_means_one_thing),
		cmocka_unit_test(A10_1_exact_bytes_prove_a_get),
		cmocka_unit_test(A10_1_a_put_returns_zero_or_nothing_is_proven),
		cmocka_unit_test(an_object_exists_or_not_and_nothing_else),
		cmocka_unit_test(a_removal_is_done_once_and_a_purge_counts),
		cmocka_unit_test(A10_1_a_call_has_retired_when_each_row_of_it_has),
		cmocka_unit_test(each_documented_code_has_a_name_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
