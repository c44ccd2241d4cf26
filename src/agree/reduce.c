/* SPDX-License-Identifier: Apache-2.0 */
/* Good reports into a tick. */
#include "agree/parts.h"

static struct partial *partial_of(struct agree *agree, const struct record *record)
{
	return &agree->partials[record - agree->ops.record];
}

/* What is none of the op's keys has no bit in any mask. */
static void mask_and(struct op_mask *mask, const struct op_mask *with)
{
	size_t i;

	for (i = 0; i < ARRAY_COUNT(mask->words); i++)
		mask->words[i] &= with->words[i];
}

static void mask_or(struct op_mask *mask, const struct op_mask *with)
{
	size_t i;

	for (i = 0; i < ARRAY_COUNT(mask->words); i++)
		mask->words[i] |= with->words[i];
}

/* Who did not read a row has nothing to say against its object. */
static struct op_mask evidence(const struct fact *fact)
{
	struct op_mask mask = fact->object_fault;

	mask_and(&mask, &fact->read_here);
	return mask;
}

static void add_fact(struct partial *partial, const struct fact *fact, uint32_t rank, bool first)
{
	const struct op_mask fault = evidence(fact);

	if (first) {
		*partial = (struct partial){ .ok = fact->ok, .retired = true, .reason_rank = OWNERS_MAX };
	} else {
		mask_and(&partial->ok, &fact->ok);
	}
	mask_or(&partial->object_fault, &fault);
	mask_or(&partial->read_here, &fact->read_here);
	partial->retired = partial->retired && fact->retired;
	if (fact->reason != OP_REASON_NONE && rank < partial->reason_rank) {
		partial->reason = fact->reason;
		partial->reason_rank = rank;
	}
}

/*
 * By rank: the first of a round is whoever comes first of those that report an op which none had.
 */
static void add_facts(struct agree *agree, const struct agree_report *report, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < report->fact_count; i++) {
		const struct record *const record =
			records_find(&agree->ops, report->facts[i].op_id);
		const uint64_t lower = record->now.reported & ((UINT64_C(1) << rank) - 1);

		add_fact(partial_of(agree, record), &report->facts[i], rank,
			 (record->reported | lower) == 0);
	}
}

/* Field by field, so that padding stays clear and ticks of two owners are the same bytes. */
static void tell_fact(struct agree *agree, const struct record *record, struct tick *tick)
{
	const struct partial *const partial = partial_of(agree, record);
	struct fact *const          fact = &agree->facts[tick->fact_count++];

	fact->op_id = record->id;
	fact->key_count = record->key_count;
	fact->moved_bytes = 0;
	fact->retired = partial->retired;
	fact->reason = partial->reason;
	fact->ok = partial->ok;
	fact->object_fault = partial->object_fault;
	fact->read_here = partial->read_here;
}

/* Take in what the round said; true when the op is over.  tick: NULL for an owner that is alone. */
static bool settle_op(struct agree *agree, struct record *record, struct tick *tick)
{
	const bool was_told = record->reported == agree->owners;
	bool       is_told;

	record->reported |= record->now.reported;
	record->doubted = (record->doubted | record->now.doubted) & ~record->now.taken_back;
	is_told = record->reported == agree->owners;
#ifdef KVS_MUTANT_SKIP_OWNER /* Planted bug: does not wait for the last owner. */
	is_told = (record->reported | (agree->owners ^ agree->owners >> 1)) == agree->owners;
#endif
	if (tick && is_told && !was_told)
		tell_fact(agree, record, tick);
	if (!is_told || record->doubted != 0)
		return false;
	if (tick && record_has_payload(record) && !partial_of(agree, record)->retired)
		agree->notices[tick->notice_count++].op_id = record->id;
	return true;
}

static void settle_ops(struct agree *agree, struct tick *tick)
{
	uint32_t i;

	for (i = 0; i < agree->ops.touched_count; i++) {
		struct record *const record = &agree->ops.record[agree->ops.touched[i]];

		if (settle_op(agree, record, tick))
			records_end(&agree->ops, record);
	}
}

static void settle_copies(struct agree *agree, struct tick *tick)
{
	uint32_t i;

	for (i = 0; i < agree->copies.touched_count; i++) {
		struct record *const record = &agree->copies.record[agree->copies.touched[i]];

		record->reported |= record->now.reported;
		if (record->reported != agree->owners)
			continue;
		if (tick)
			agree->passed[tick->copy_count++] = record->id;
		records_end(&agree->copies, record);
	}
}

static void reduce_alone(struct agree *agree, const struct agree_report *report, struct tick *tick)
{
	settle_ops(agree, NULL);
	settle_copies(agree, NULL);
	tick->facts = report->facts;
	tick->fact_count = report->fact_count;
	tick->notices = report->notices;
	tick->notice_count = report->notice_count;
	tick->copies = report->copies;
	tick->copy_count = report->copy_count;
}

void reports_reduce(struct agree *agree, const struct agree_report *reports, struct tick *tick)
{
	uint32_t rank;

	if (agree->options.owners == 1) {
		reduce_alone(agree, reports, tick);
		return;
	}
	for (rank = 0; rank < agree->options.owners; rank++)
		add_facts(agree, &reports[rank], rank);
	records_sort(&agree->ops);
	records_sort(&agree->copies);
	tick->facts = agree->facts;
	tick->notices = agree->notices;
	tick->copies = agree->passed;
	settle_ops(agree, tick);
	settle_copies(agree, tick);
}
