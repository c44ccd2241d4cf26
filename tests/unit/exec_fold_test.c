/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beside the rows themselves: equal keys of an op, what its calls say of the store's health, and the
 * locks they took.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/prng.h"
#include "exec/run.h"
#include "named_block.h"

#define BLOCK_BYTES 64u
#define ROWS OP_KEYS_MAX

/* Answers by key number, fills what it is given, and takes no batch with equal keys. */
struct shelf {
	struct kvs_store store;
	enum kvs_result  answer[ROWS];
	uint32_t         asked[ROWS]; /* rows, by key number */
	uint32_t         call_count;
	int              rc;
	bool             unretired;
	uint32_t         locked;
};

static struct kvs_key  keys[ROWS];
static struct kvs_span spans[ROWS];
static uint8_t         bytes[ROWS][BLOCK_BYTES];

static int answer(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		  enum kvs_result *result)
{
	struct shelf *const shelf = (struct shelf *)store;
	uint32_t            i, j;

	shelf->call_count++;
	for (i = 0; i < count; i++) {
		for (j = 0; j < i; j++)
			assert_int_not_equal(key[i].offset, key[j].offset);
		result[i] = shelf->answer[key[i].offset];
		shelf->asked[key[i].offset]++;
	}
	return shelf->rc;
}

static int get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
	       uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		fill(span[i].ptr, key[i].offset, (uint32_t)span[i].bytes);
	*ret_retired = !((struct shelf *)store)->unretired;
	return answer(store, key, count, result);
}

static int put(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
	       uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	(void)span;
	*ret_retired = !((struct shelf *)store)->unretired;
	return answer(store, key, count, result);
}

static int lock(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		enum kvs_result *result)
{
	((struct shelf *)store)->locked += count;
	return answer(store, key, count, result);
}

static void describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	(void)store;
	*ret_info = (struct kvs_store_info){ .failures_retire = true };
}

static const struct kvs_store_ops shelf_ops = { .name = "shelf", .describe = describe,
						.exists = answer, .get = get, .put = put,
						.remove = answer, .lock = lock };

static int shelf_setup(void **state)
{
	static struct shelf shelf;
	uint32_t            i;

	shelf = (struct shelf){ .store = { &shelf_ops } };
	memset(bytes, 0, sizeof(bytes));
	for (i = 0; i < ROWS; i++) {
		keys[i] = key_of(i);
		spans[i] = (struct kvs_span){ bytes[i], BLOCK_BYTES, BLOCK_BYTES };
		shelf.answer[i] = KVS_RESULT_DONE;
	}
	*state = &shelf;
	return 0;
}

static struct op op_of(enum op_kind kind, uint32_t key_count)
{
	struct op op = { .op_id = 9, .kind = kind, .key_count = key_count, .keys = keys };

	if (kind == OP_GET || kind == OP_PUT)
		op.spans = spans;
	op_own_all(&op);
	return op;
}

static struct fact run(struct shelf *shelf, const struct op *op, struct exec_report *ret_report)
{
	struct fact fact;

	exec_run(&shelf->store, op, &fact, ret_report);
	assert_int_equal(fact_check(&fact, op, NULL), 0);
	return fact;
}

/* --- folding ---------------------------------------------------------------------------------- */

static void equal_keys_of_a_get_are_read_once_and_copied(void **state)
{
	struct shelf *const shelf = *state;
	const struct op     op = op_of(OP_GET, 5);
	struct exec_report  report;
	struct fact         fact;
	uint32_t            i;

	keys[2] = keys[0];
	keys[4] = keys[0];
	fact = run(shelf, &op, &report);
	assert_int_equal(shelf->asked[0], 1);
	assert_int_equal(bits_prefix(fact.ok.words, 5), 5);
	assert_int_equal(bits_prefix(fact.read_here.words, 5), 5);
	assert_true(fact.retired);
	for (i = 0; i < 5; i++)
		assert_true(is_filled(spans[i].ptr, keys[i].offset, BLOCK_BYTES));
	/* Whole keys, but the store moved each once. */
	assert_int_equal(report.moved.get_keys, 5);
	assert_int_equal(report.moved.get_bytes, 3 * BLOCK_BYTES);
	assert_int_equal(fact.moved_bytes, 3 * BLOCK_BYTES);
}

static void a_folded_row_shares_the_failure_and_its_bytes_stay(void **state)
{
	static const enum kvs_result answers[] = { KVS_RESULT_MISSING, KVS_RESULT_CORRUPT,
						   KVS_RESULT_FAILED, KVS_RESULT_UNKNOWN };
	struct shelf *const shelf = *state;
	const struct op     op = op_of(OP_GET, 2);
	struct exec_report  report;
	size_t              i;

	keys[1] = keys[0];
	for (i = 0; i < ARRAY_COUNT(answers); i++) {
		const bool  is_fault = i < 2;
		struct fact fact;

		shelf->answer[0] = answers[i];
		fact = run(shelf, &op, &report);
		assert_int_equal(bits_count(fact.ok.words, 2), 0);
		assert_int_equal(bits_count(fact.object_fault.words, 2), is_fault ? 2 : 0);
		assert_int_equal(report.moved.corrupt_keys, answers[i] == KVS_RESULT_CORRUPT);
		assert_false(is_filled(spans[1].ptr, 0, BLOCK_BYTES));
	}
}

/* Two questions: one of them may be right.  They never meet in a batch. */
static void a_get_in_two_lengths_is_two_questions(void **state)
{
	struct shelf *const shelf = *state;
	const struct op     op = op_of(OP_GET, 5);
	struct exec_report  report;
	struct fact         fact;

	keys[1] = keys[3] = keys[4] = keys[0];
	spans[1].bytes = spans[4].bytes = BLOCK_BYTES / 2;
	fact = run(shelf, &op, &report);
	assert_int_equal(shelf->asked[0], 2);
	assert_int_equal(shelf->call_count, 2);
	assert_int_equal(bits_prefix(fact.ok.words, 5), 5);
	assert_true(is_filled(spans[3].ptr, 0, BLOCK_BYTES));
	assert_true(is_filled(spans[4].ptr, 0, BLOCK_BYTES / 2));
	assert_false(is_filled(spans[4].ptr, 0, BLOCK_BYTES));
}

static void a_span_may_be_named_twice(void **state)
{
	struct shelf *const shelf = *state;
	const struct op     op = op_of(OP_GET, 2);
	struct exec_report  report;

	keys[1] = keys[0];
	spans[1] = spans[0];
	assert_int_equal(bits_prefix(run(shelf, &op, &report).ok.words, 2), 2);
	assert_true(is_filled(spans[0].ptr, 0, BLOCK_BYTES));
}

static void equal_keys_of_a_put_are_written_once(void **state)
{
	struct shelf *const shelf = *state;
	const struct op     op = op_of(OP_PUT, 4);
	struct exec_report  report;
	struct fact         fact;

	keys[3] = keys[1];
	spans[3].bytes = BLOCK_BYTES / 2;
	fact = run(shelf, &op, &report);
	assert_int_equal(shelf->asked[1], 1);
	assert_int_equal(bits_prefix(fact.ok.words, 4), 4);
	assert_int_equal(report.moved.put_keys, 4);
	assert_int_equal(report.moved.put_new_keys, 3);
	assert_int_equal(report.moved.put_bytes, 3 * BLOCK_BYTES);

	shelf->answer[1] = KVS_RESULT_NO_SPACE;
	fact = run(shelf, &op, &report);
	assert_int_equal(fact.ok.words[0], 0x5);
	assert_int_equal(report.moved.no_space_keys, 1);
}

static void folding_never_proves_retirement(void **state)
{
	struct shelf *const shelf = *state;
	const struct op     op = op_of(OP_GET, 2);
	struct exec_report  report;

	keys[1] = keys[0];
	shelf->unretired = true;
	assert_false(run(shelf, &op, &report).retired);
}

static void a_row_of_another_owner_is_no_first(void **state)
{
	struct shelf *const shelf = *state;
	struct op           op = op_of(OP_GET, 3);
	struct exec_report  report;
	struct fact         fact;

	keys[1] = keys[2] = keys[0];
	bits_clear(op.owned.words, 0);
	fact = run(shelf, &op, &report);
	assert_int_equal(shelf->asked[0], 1);
	assert_int_equal(bits_prefix(fact.ok.words, 3), 3);
	assert_false(is_filled(spans[0].ptr, 0, BLOCK_BYTES));
	assert_true(is_filled(spans[1].ptr, 0, BLOCK_BYTES));
	assert_true(is_filled(spans[2].ptr, 0, BLOCK_BYTES));
}

/* The longest op there is, of few keys: each is asked for once, and every row agrees with it. */
static void the_longest_op_folds(void **state)
{
	struct shelf *const shelf = *state;
	const struct op     op = op_of(OP_QUERY, ROWS);
	struct exec_report  report;
	struct fact         fact;
	struct prng         prng;
	uint32_t            i;

	prng_seed(&prng, 5);
	for (i = 0; i < ROWS; i++) {
		keys[i] = key_of((uint32_t)prng_below(&prng, 200));
		if (i % 3 == 0)
			shelf->answer[i] = KVS_RESULT_MISSING;
	}
	fact = run(shelf, &op, &report);
	for (i = 0; i < ROWS; i++) {
		assert_int_equal(shelf->asked[keys[i].offset], 1);
		assert_int_equal(bits_test(fact.ok.words, i), keys[i].offset % 3 != 0);
	}
}

/* --- evidence --------------------------------------------------------------------------------- */

static void A5_4_outages_are_failures_and_never_answers(void **state)
{
	static const struct {
		enum op_kind       kind;
		int                answer;
		int                rc;
		bool               unretired;
		enum exec_evidence evidence;
	} cases[] = {
		{ OP_GET, KVS_RESULT_DONE, 0, false, EXEC_EVIDENCE_UP },
		{ OP_GET, KVS_RESULT_MISSING, 0, false, EXEC_EVIDENCE_UP },
		{ OP_GET, KVS_RESULT_CORRUPT, 0, false, EXEC_EVIDENCE_UP },
		{ OP_GET, KVS_RESULT_FAILED, 0, false, EXEC_EVIDENCE_OUTAGE },
		{ OP_GET, KVS_RESULT_UNKNOWN, 0, false, EXEC_EVIDENCE_NONE },
		{ OP_GET, 99, 0, false, EXEC_EVIDENCE_OUTAGE },
		{ OP_GET, KVS_RESULT_DONE, -EIO, false, EXEC_EVIDENCE_OUTAGE },
		{ OP_GET, KVS_RESULT_DONE, KVS_E_INVALID, false, EXEC_EVIDENCE_NONE },
		{ OP_PUT, KVS_RESULT_DONE, 0, false, EXEC_EVIDENCE_UP },
		{ OP_PUT, KVS_RESULT_EXISTS, 0, false, EXEC_EVIDENCE_UP },
		{ OP_PUT, KVS_RESULT_NO_SPACE, 0, false, EXEC_EVIDENCE_UP },
		{ OP_PUT, KVS_RESULT_UNKNOWN, 0, false, EXEC_EVIDENCE_NONE },
		{ OP_PUT, KVS_RESULT_DONE, 0, true, EXEC_EVIDENCE_OUTAGE },
		{ OP_PUT, KVS_RESULT_NO_SPACE, 0, true, EXEC_EVIDENCE_OUTAGE },
		{ OP_QUERY, KVS_RESULT_MISSING, 0, false, EXEC_EVIDENCE_UP },
		{ OP_QUERY, KVS_RESULT_FAILED, 0, false, EXEC_EVIDENCE_OUTAGE },
		{ OP_REMOVE, KVS_RESULT_MISSING, 0, false, EXEC_EVIDENCE_UP },
	};
	struct shelf *const shelf = *state;
	struct exec_report  report;
	size_t              i;

	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		const struct op op = op_of(cases[i].kind, 1);

		shelf->answer[0] = (enum kvs_result)cases[i].answer;
		shelf->rc = cases[i].rc;
		shelf->unretired = cases[i].unretired;
		run(shelf, &op, &report);
		assert_int_equal(report.evidence, cases[i].evidence);
	}
}

static void one_failed_row_outweighs_all_others(void **state)
{
	struct shelf *const shelf = *state;
	const struct op     op = op_of(OP_GET, ROWS);
	struct exec_report  report;

	run(shelf, &op, &report);
	assert_int_equal(report.evidence, EXEC_EVIDENCE_UP);
	shelf->answer[7] = KVS_RESULT_FAILED;
	run(shelf, &op, &report);
	assert_int_equal(report.evidence, EXEC_EVIDENCE_OUTAGE);
}

static void an_op_of_other_owners_alone_says_nothing(void **state)
{
	struct shelf *const shelf = *state;
	struct op           op = op_of(OP_PUT, 2);
	struct exec_report  report;

	op.owned = (struct op_mask){ 0 };
	run(shelf, &op, &report);
	assert_int_equal(shelf->call_count, 0);
	assert_int_equal(report.evidence, EXEC_EVIDENCE_NONE);
}

/* --- locks ------------------------------------------------------------------------------------ */

static void a_locking_query_locks_what_it_finds_once_a_key(void **state)
{
	struct shelf *const shelf = *state;
	struct op           op = op_of(OP_QUERY, 4);
	struct exec_report  report;
	struct fact         fact;

	run(shelf, &op, &report);
	assert_int_equal(shelf->locked, 0);
	assert_int_equal(report.locked.words[0], 0);

	op.flags = OP_LOCK;
	keys[3] = keys[0];
	shelf->answer[1] = KVS_RESULT_MISSING;
	fact = run(shelf, &op, &report);
	assert_int_equal(shelf->locked, 3);
	assert_int_equal(fact.ok.words[0], 0xd);
	assert_int_equal(report.locked.words[0], 0x5);

	/* Nothing was done, whatever the results look like. */
	shelf->rc = -EIO;
	run(shelf, &op, &report);
	assert_int_equal(report.locked.words[0], 0);
}

#define SHELF_TEST(test) cmocka_unit_test_setup(test, shelf_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHELF_TEST(equal_keys_of_a_get_are_read_once_and_copied),
		SHELF_TEST(a_folded_row_shares_the_failure_and_its_bytes_stay),
		SHELF_TEST(a_get_in_two_lengths_is_two_questions),
		SHELF_TEST(a_span_may_be_named_twice),
		SHELF_TEST(equal_keys_of_a_put_are_written_once),
		SHELF_TEST(folding_never_proves_retirement),
		SHELF_TEST(a_row_of_another_owner_is_no_first),
		SHELF_TEST(the_longest_op_folds),
		SHELF_TEST(A5_4_outages_are_failures_and_never_answers),
		SHELF_TEST(one_failed_row_outweighs_all_others),
		SHELF_TEST(an_op_of_other_owners_alone_says_nothing),
		SHELF_TEST(a_locking_query_locks_what_it_finds_once_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
