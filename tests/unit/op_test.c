/* SPDX-License-Identifier: Apache-2.0 */
/* The waist's values: masks, first states of a fact, and each rule that a fact of another owner can break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "op/op.h"

static struct op op_of(enum op_kind kind, uint32_t key_count)
{
	struct op op = { .op_id = 7, .kind = kind, .key_count = key_count };

	op_own_all(&op);
	return op;
}

static void owning_all_sets_exactly_the_keys(void **state)
{
	static const uint32_t counts[] = { 0, 1, 63, 64, 65, 1023, OP_KEYS_MAX };
	struct op             op;
	size_t                i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(counts); i++) {
		op = op_of(OP_GET, counts[i]);
		assert_int_equal(bits_prefix(op.owned.words, OP_KEYS_MAX), counts[i]);
		assert_int_equal(bits_count(op.owned.words, OP_KEYS_MAX), counts[i]);
	}
	op.key_count = 3;
	op_own_all(&op);
	assert_int_equal(bits_count(op.owned.words, OP_KEYS_MAX), 3);
}

static void a_fact_starts_unretired_and_knows_nothing(void **state)
{
	const struct op op = op_of(OP_GET, 65);
	struct fact     fact;

	(void)state;
	memset(&fact, 0xff, sizeof(fact));
	fact_init(&fact, &op);
	assert_false(fact.retired);
	assert_int_equal(fact.op_id, 7);
	assert_int_equal(fact.key_count, 65);
	assert_int_equal(bits_count(fact.ok.words, OP_KEYS_MAX), 0);
	assert_int_equal(bits_count(fact.object_fault.words, OP_KEYS_MAX), 0);
	assert_int_equal(bits_count(fact.read_here.words, OP_KEYS_MAX), 0);
	assert_int_equal(fact_check(&fact, &op, NULL), 0);
}

static void a_refused_op_has_retired(void **state)
{
	const struct op op = op_of(OP_PUT, 2);
	struct fact     fact;

	(void)state;
	fact_refused(&fact, &op, OP_REASON_QUEUE);
	assert_true(fact.retired);
	assert_int_equal(fact.reason, OP_REASON_QUEUE);
	assert_int_equal(bits_count(fact.ok.words, OP_KEYS_MAX), 0);
	assert_int_equal(fact_check(&fact, &op, NULL), 0);
}

static void names_are_words(void **state)
{
	unsigned int i;

	(void)state;
	assert_string_equal(op_kind_name(OP_QUERY), "query");
	assert_string_equal(op_kind_name(OP_CANCEL), "cancel");
	assert_string_equal(op_reason_name(OP_REASON_NO_SPACE), "no_space");
	for (i = 0; i < OP_REASON_COUNT; i++)
		assert_non_null(op_reason_name((enum op_reason)i));
}

static void break_id(struct fact *fact, struct op *op)
{
	(void)op;
	fact->op_id++;
}

static void break_count(struct fact *fact, struct op *op)
{
	(void)op;
	fact->key_count--;
}

static void break_reason(struct fact *fact, struct op *op)
{
	(void)op;
	fact->reason = OP_REASON_COUNT;
}

static void break_ok_length(struct fact *fact, struct op *op)
{
	bits_set(fact->ok.words, op->key_count);
}

static void break_fault_length(struct fact *fact, struct op *op)
{
	(void)op;
	bits_set(fact->object_fault.words, OP_KEYS_MAX - 1);
}

static void break_read_length(struct fact *fact, struct op *op)
{
	bits_set(fact->read_here.words, op->key_count + 64);
}

static void break_overlap(struct fact *fact, struct op *op)
{
	(void)op;
	bits_set(fact->object_fault.words, 1);
}

static void break_query_fault(struct fact *fact, struct op *op)
{
	op->kind = OP_QUERY;
	fact->read_here = (struct op_mask){ 0 };
}

static void break_put_read(struct fact *fact, struct op *op)
{
	op->kind = OP_PUT;
	fact->object_fault = (struct op_mask){ 0 };
}

static void each_broken_rule_is_named(void **state)
{
	static const struct {
		void (*breaks)(struct fact *fact, struct op *op);
		const char *field;
	} rules[] = {
		{ break_id, "fact.op_id: " },
		{ break_count, "fact.key_count: " },
		{ break_reason, "fact.reason: " },
		{ break_ok_length, "fact.ok: " },
		{ break_fault_length, "fact.object_fault: bit" },
		{ break_read_length, "fact.read_here: " },
		{ break_overlap, "fact.object_fault: a row" },
		{ break_query_fault, "fact.object_fault: a query" },
		{ break_put_read, "fact.object_fault: a put" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(rules); i++) {
		struct op        op = op_of(OP_GET, 70);
		struct fact      fact;
		struct kvs_error err;

		fact_init(&fact, &op);
		bits_set(fact.ok.words, 1);
		bits_set(fact.object_fault.words, 69);
		bits_fill(fact.read_here.words, 70);
		assert_int_equal(fact_check(&fact, &op, &err), 0);
		rules[i].breaks(&fact, &op);
		assert_int_equal(fact_check(&fact, &op, &err), KVS_E_PROTO);
		assert_int_equal(err.code, KVS_E_PROTO);
		assert_int_equal(strncmp(err.message, rules[i].field, strlen(rules[i].field)), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owning_all_sets_exactly_the_keys),
		cmocka_unit_test(a_fact_starts_unretired_and_knows_nothing),
		cmocka_unit_test(a_refused_op_has_retired),
		cmocka_unit_test(names_are_words),
		cmocka_unit_test(each_broken_rule_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
