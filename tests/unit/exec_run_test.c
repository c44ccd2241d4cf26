/* SPDX-License-Identifier: Apache-2.0 */
/* One op against a store that answers as it is told: what each answer becomes in the fact. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "death.h"
#include "exec/run.h"
#include "named_block.h"

#define KEYS 300u
#define BLOCK_BYTES 64u
#define CALLS_MAX 16u

/* Answers by key number; notes each call it got. */
struct script {
	struct kvs_store store;
	enum kvs_result  answer[KEYS];
	int              rc;
	bool             retired;
	bool             silent; /* says nothing of retirement */
	bool             failures_retire;
	uint32_t         unretired_call; /* this call, from 1, does not retire; 0: none */
	uint32_t         call_count;
	uint32_t         first[CALLS_MAX], count[CALLS_MAX];
};

static struct kvs_key  keys[KEYS];
static struct kvs_span spans[KEYS];

static int answer(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		  enum kvs_result *result)
{
	struct script *const script = (struct script *)store;
	uint32_t             i;

	assert_true(script->call_count < CALLS_MAX);
	script->first[script->call_count] = key[0].offset;
	script->count[script->call_count++] = count;
	for (i = 0; i < count; i++)
		result[i] = script->answer[key[i].offset];
	return script->rc;
}

static int answer_spans(struct kvs_store *store, const struct kvs_key *key,
			const struct kvs_span *span, uint32_t count, enum kvs_result *result,
			bool *ret_retired)
{
	struct script *const script = (struct script *)store;
	uint32_t             i;

	for (i = 0; i < count; i++)
		assert_ptr_equal(span[i].ptr, spans[key[i].offset].ptr);
	if (!script->silent) {
		*ret_retired = script->retired &&
			       script->call_count + 1 != script->unretired_call;
	}
	return answer(store, key, count, result);
}

static void describe(struct kvs_store *store, struct kvs_store_info *ret_limits)
{
	*ret_limits = (struct kvs_store_info){
		.failures_retire = ((struct script *)store)->failures_retire
	};
}

static const struct kvs_store_ops script_ops = { .name = "script",
						 .describe = describe,
						 .exists = answer,
						 .get = answer_spans,
						 .put = answer_spans,
						 .remove = answer };

static void script_init(struct script *script)
{
	static uint8_t bytes[KEYS][BLOCK_BYTES];
	uint32_t       i;

	*script = (struct script){ .store = { &script_ops }, .retired = true };
	for (i = 0; i < KEYS; i++) {
		keys[i] = key_of(i);
		spans[i] = (struct kvs_span){ bytes[i], BLOCK_BYTES, BLOCK_BYTES };
		script->answer[i] = KVS_RESULT_DONE;
	}
}

static struct op op_of(enum op_kind kind, uint32_t key_count)
{
	struct op op = { .op_id = 9, .kind = kind, .key_count = key_count, .keys = keys };

	if (kind == OP_GET || kind == OP_PUT)
		op.spans = spans;
	op_own_all(&op);
	return op;
}

static struct fact run(struct script *script, const struct op *op, struct exec_report *ret_report)
{
	struct fact fact;

	memset(&fact, 0xff, sizeof(fact));
	exec_run(&script->store, op, &fact, ret_report);
	assert_int_equal(fact_check(&fact, op, NULL), 0);
	return fact;
}

/* What one answer to one row of a kind of op becomes. */
struct row_case {
	enum op_kind      kind;
	enum kvs_result   answer;
	bool              ok, fault, read_here;
	enum op_reason    reason;
	struct exec_moved moved;
};

static const struct row_case row_cases[] = {
	{ OP_QUERY, KVS_RESULT_DONE, true, false, false, OP_REASON_NONE, { 0 } },
	{ OP_QUERY, KVS_RESULT_MISSING, false, false, false, OP_REASON_MISS, { 0 } },
	{ OP_QUERY, KVS_RESULT_FAILED, false, false, false, OP_REASON_BACKEND, { 0 } },
	{ OP_QUERY, KVS_RESULT_UNKNOWN, false, false, false, OP_REASON_BACKEND, { 0 } },
	{ OP_GET,
	  KVS_RESULT_DONE,
	  true,
	  false,
	  true,
	  OP_REASON_NONE,
	  { .get_keys = 1, .get_bytes = BLOCK_BYTES } },
	{ OP_GET, KVS_RESULT_MISSING, false, true, true, OP_REASON_MISS, { 0 } },
	{ OP_GET, KVS_RESULT_CORRUPT, false, true, true, OP_REASON_CORRUPT, { .corrupt_keys = 1 } },
	{ OP_GET, KVS_RESULT_FAILED, false, false, true, OP_REASON_BACKEND, { 0 } },
	{ OP_GET, KVS_RESULT_UNKNOWN, false, false, false, OP_REASON_BACKEND, { 0 } },
	{ OP_PUT,
	  KVS_RESULT_DONE,
	  true,
	  false,
	  false,
	  OP_REASON_NONE,
	  { .put_keys = 1, .put_new_keys = 1, .put_bytes = BLOCK_BYTES } },
	{ OP_PUT, KVS_RESULT_EXISTS, true, false, false, OP_REASON_NONE, { .put_keys = 1 } },
	{ OP_PUT, KVS_RESULT_NO_SPACE, false, false, false, OP_REASON_NO_SPACE,
	  { .no_space_keys = 1 } },
	{ OP_PUT, KVS_RESULT_FAILED, false, false, false, OP_REASON_BACKEND, { 0 } },
	{ OP_PUT, KVS_RESULT_UNKNOWN, false, false, false, OP_REASON_BACKEND, { 0 } },
	{ OP_REMOVE, KVS_RESULT_DONE, true, false, false, OP_REASON_NONE, { 0 } },
	{ OP_REMOVE, KVS_RESULT_MISSING, false, false, false, OP_REASON_MISS, { 0 } },
	{ OP_REMOVE, KVS_RESULT_FAILED, false, false, false, OP_REASON_BACKEND, { 0 } },
};

static void each_answer_becomes_its_row(void **state)
{
	struct script      script;
	struct exec_report report;
	size_t             i;

	(void)state;
	script_init(&script);
	for (i = 0; i < ARRAY_COUNT(row_cases); i++) {
		const struct row_case *const row = &row_cases[i];
		const struct op              op = op_of(row->kind, 1);
		struct fact                  fact;

		script.call_count = 0;
		script.answer[0] = row->answer;
		fact = run(&script, &op, &report);
		assert_int_equal(bits_test(fact.ok.words, 0), row->ok);
		assert_int_equal(bits_test(fact.object_fault.words, 0), row->fault);
		assert_int_equal(bits_test(fact.read_here.words, 0), row->read_here);
		assert_int_equal(fact.reason, row->reason);
		assert_true(fact.retired);
		assert_memory_equal(&report.moved, &row->moved, sizeof(report.moved));
		assert_int_equal(fact.moved_bytes, report.moved.get_bytes + report.moved.put_bytes);
	}
}

static void the_worst_row_gives_the_reason(void **state)
{
	struct script      script;
	struct exec_report report;
	const struct op    op = op_of(OP_GET, 3);
	struct fact        fact;

	(void)state;
	script_init(&script);
	script.answer[0] = KVS_RESULT_CORRUPT;
	script.answer[1] = KVS_RESULT_MISSING;
	fact = run(&script, &op, &report);
	assert_int_equal(fact.reason, OP_REASON_CORRUPT);
	assert_int_equal(bits_count(fact.ok.words, 3), 1);
	assert_int_equal(bits_count(fact.object_fault.words, 3), 2);
}

static void rows_of_other_owners_succeed_without_a_store_call(void **state)
{
	struct script      script;
	struct exec_report report;
	struct op          op = op_of(OP_GET, 6);
	struct fact        fact;

	(void)state;
	script_init(&script);
	op.owned = (struct op_mask){ 0 };
	fact = run(&script, &op, &report);
	assert_int_equal(script.call_count, 0);
	assert_int_equal(bits_prefix(fact.ok.words, 6), 6);
	assert_true(fact.retired);
	assert_int_equal(fact.reason, OP_REASON_NONE);

	/*
	 * Rows 1, 2 and 4 are ours, and missing: the others succeed, give no evidence and move no
	 * bytes.
	 */
	bits_set(op.owned.words, 1);
	bits_set(op.owned.words, 2);
	bits_set(op.owned.words, 4);
	script.answer[1] = script.answer[2] = script.answer[4] = KVS_RESULT_MISSING;
	fact = run(&script, &op, &report);
	assert_int_equal(script.call_count, 2);
	assert_int_equal(script.first[0], 1);
	assert_int_equal(script.count[0], 2);
	assert_int_equal(script.first[1], 4);
	assert_int_equal(script.count[1], 1);
	assert_int_equal(fact.ok.words[0], 0x29);
	assert_int_equal(fact.object_fault.words[0], 0x16);
	assert_int_equal(fact.read_here.words[0], 0x16);
	assert_int_equal(report.moved.get_bytes, 0);
}

static void a_long_op_is_cut_into_calls_that_cover_it_once(void **state)
{
	struct script      script;
	struct exec_report report;
	const struct op    op = op_of(OP_PUT, KEYS);
	struct fact        fact;
	uint32_t           covered = 0;
	uint32_t           i;

	(void)state;
	script_init(&script);
	fact = run(&script, &op, &report);
	for (i = 0; i < script.call_count; i++) {
		assert_int_equal(script.first[i], covered);
		covered += script.count[i];
	}
	assert_int_equal(covered, KEYS);
	assert_int_equal(bits_prefix(fact.ok.words, KEYS), KEYS);
	assert_int_equal(report.moved.put_keys, KEYS);
}

static void one_call_that_did_not_retire_leaves_the_op_unretired(void **state)
{
	struct script      script;
	struct exec_report report;
	const struct op    op = op_of(OP_GET, KEYS);
	uint32_t           call_count, i;

	(void)state;
	script_init(&script);
	assert_true(run(&script, &op, &report).retired);
	call_count = script.call_count;
	assert_true(call_count > 1);
	for (i = 1; i <= call_count; i++) {
		script.call_count = 0;
		script.unretired_call = i;
		assert_false(run(&script, &op, &report).retired);
		assert_false(report.disbelieved);
	}
}

static void A5_5_a_call_that_says_nothing_of_its_spans_has_not_retired(void **state)
{
	struct script      script;
	struct exec_report report;
	const struct op    op = op_of(OP_GET, 2);

	(void)state;
	script_init(&script);
	script.silent = true;
	assert_false(run(&script, &op, &report).retired);
}

/* The results that a failed call leaves behind mean nothing; what it says of the spans does. */
static void A5_5_a_failed_call_leaves_its_rows_unknown_and_its_retirement_as_given(void **state)
{
	static const enum op_kind kinds[] = { OP_GET, OP_PUT };
	struct script             script;
	struct exec_report        report;
	size_t                    i;

	(void)state;
	script_init(&script);
	script.rc = -EIO;
	for (i = 0; i < 2 * ARRAY_COUNT(kinds); i++) {
		const struct op op = op_of(kinds[i / 2], 2);
		struct fact     fact;

		script.call_count = 0;
		script.retired = i % 2;
		fact = run(&script, &op, &report);
		assert_int_equal(bits_count(fact.ok.words, 2), 0);
		assert_int_equal(bits_count(fact.object_fault.words, 2), 0);
		assert_int_equal(bits_count(fact.read_here.words, 2), 0);
		assert_int_equal(fact.reason, OP_REASON_BACKEND);
		assert_int_equal(fact.retired, script.retired);
		assert_memory_equal(&report.moved, &(struct exec_moved){ 0 }, sizeof(report.moved));
	}
}

static void A5_5_a_query_touches_no_payload_so_it_has_always_retired(void **state)
{
	struct script      script;
	struct exec_report report;
	const struct op    op = op_of(OP_QUERY, 2);
	struct fact        fact;

	(void)state;
	script_init(&script);
	script.rc = -EIO;
	fact = run(&script, &op, &report);
	assert_true(fact.retired);
	assert_int_equal(bits_count(fact.ok.words, 2), 0);
	assert_int_equal(fact.reason, OP_REASON_BACKEND);
}

/*
 * Answers that the kind of call cannot give: no data, no evidence, and no claim of retirement is
 * believed.
 */
static void A5_5_a_malformed_answer_is_no_answer(void **state)
{
	static const struct {
		enum op_kind kind;
		int          answer;
	} cases[] = { { OP_GET, KVS_RESULT_EXISTS },   { OP_GET, KVS_RESULT_NO_SPACE },
		      { OP_GET, 99 },                  { OP_GET, -1 },
		      { OP_PUT, KVS_RESULT_MISSING },  { OP_PUT, KVS_RESULT_CORRUPT },
		      { OP_PUT, 99 },                  { OP_QUERY, KVS_RESULT_EXISTS },
		      { OP_QUERY, KVS_RESULT_CORRUPT } };
	struct script      script;
	struct exec_report report;
	size_t             i;

	(void)state;
	script_init(&script);
	for (i = 0; i < 2 * ARRAY_COUNT(cases); i++) {
		const struct op op = op_of(cases[i / 2].kind, 1);
		struct fact     fact;

		script.call_count = 0;
		script.answer[0] = (enum kvs_result)cases[i / 2].answer;
		script.failures_retire = i % 2;
		fact = run(&script, &op, &report);
		assert_int_equal(bits_count(fact.ok.words, 1), 0);
		assert_int_equal(bits_count(fact.object_fault.words, 1), 0);
		assert_int_equal(bits_count(fact.read_here.words, 1), 0);
		assert_int_equal(fact.reason, OP_REASON_BACKEND);
		assert_int_equal(fact.retired, script.failures_retire || op.kind == OP_QUERY);
		assert_int_equal(report.disbelieved, !fact.retired);
		assert_memory_equal(&report.moved, &(struct exec_moved){ 0 }, sizeof(report.moved));
	}
}

static void run_a_cancel(void *arg)
{
	const struct op    op = op_of(OP_CANCEL, 1);
	struct exec_report report;

	run(arg, &op, &report);
}

static void A1_14_a_cancel_never_reaches_a_store(void **state)
{
	struct script script;

	(void)state;
	script_init(&script);
	assert_true(death_panics(run_a_cancel, &script, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_answer_becomes_its_row),
		cmocka_unit_test(the_worst_row_gives_the_reason),
		cmocka_unit_test(rows_of_other_owners_succeed_without_a_store_call),
		cmocka_unit_test(a_long_op_is_cut_into_calls_that_cover_it_once),
		cmocka_unit_test(one_call_that_did_not_retire_leaves_the_op_unretired),
		cmocka_unit_test(A5_5_a_call_that_says_nothing_of_its_spans_has_not_retired),
		cmocka_unit_test(
			A5_5_a_failed_call_leaves_its_rows_unknown_and_its_retirement_as_given),
		cmocka_unit_test(A5_5_a_query_touches_no_payload_so_it_has_always_retired),
		cmocka_unit_test(A5_5_a_malformed_answer_is_no_answer),
		cmocka_unit_test(A1_14_a_cancel_never_reaches_a_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
