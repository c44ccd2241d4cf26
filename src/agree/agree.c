/* SPDX-License-Identifier: Apache-2.0 */
/* See agree.h. */
#include "agree/parts.h"

#include <errno.h>
#include <stdlib.h>

static int check_options(const struct agree_options *options, struct kvs_error *err)
{
	if (options->owners == 0 || options->owners > OWNERS_MAX) {
		return err_set(err, KVS_E_INVALID, "owners: %u, must be 1 to %u", options->owners,
			       OWNERS_MAX);
	}
	if (options->ops_max == 0 || options->ops_max > AGREE_OPS_MAX) {
		return err_set(err, KVS_E_INVALID, "ops_max: %u, must be 1 to %u", options->ops_max,
			       AGREE_OPS_MAX);
	}
	if (options->copies_max > AGREE_OPS_MAX) {
		return err_set(err, KVS_E_INVALID, "copies_max: %u, must be at most %u",
			       options->copies_max, AGREE_OPS_MAX);
	}
	return 0;
}

static int open_tick(struct agree *agree)
{
	const uint32_t copies_max = agree->options.copies_max;

	agree->partials = calloc(agree->options.ops_max, sizeof(*agree->partials));
	agree->facts = calloc(agree->options.ops_max, sizeof(*agree->facts));
	agree->notices = calloc(agree->options.ops_max, sizeof(*agree->notices));
	agree->passed = calloc(copies_max > 0 ? copies_max : 1, sizeof(*agree->passed));
	return agree->partials && agree->facts && agree->notices && agree->passed ? 0 : -ENOMEM;
}

static int open_tables(struct agree *agree, const struct agree_options *options)
{
	int rc;

	agree->options = *options;
	agree->owners = UINT64_MAX >> (OWNERS_MAX - options->owners);
	rc = records_open(&agree->ops, options->ops_max);
	if (rc == 0)
		rc = records_open(&agree->copies, options->copies_max);
	if (rc == 0 && options->owners > 1)
		rc = open_tick(agree);
	return rc;
}

int agree_open(const struct agree_options *options, struct agree **ret_agree, struct kvs_error *err)
{
	struct agree *agree;
	const int     rc = check_options(options, err);

	if (rc < 0)
		return rc;
	agree = calloc(1, sizeof(*agree));
	if (!agree || open_tables(agree, options) < 0) {
		agree_close(agree);
		return err_set(err, -ENOMEM, "ops_max: %u, no memory for the records of so many",
			       options->ops_max);
	}
	*ret_agree = agree;
	return 0;
}

void agree_close(struct agree *agree)
{
	if (!agree)
		return;
	records_close(&agree->ops);
	records_close(&agree->copies);
	free(agree->partials);
	free(agree->facts);
	free(agree->notices);
	free(agree->passed);
	free(agree);
}

size_t agree_bytes(const struct agree *agree)
{
	size_t bytes = sizeof(*agree) + records_bytes(&agree->ops) + records_bytes(&agree->copies);

	if (agree->options.owners > 1) {
		bytes += agree->options.ops_max *
				 (sizeof(*agree->partials) + sizeof(*agree->facts) +
				  sizeof(*agree->notices)) +
			 agree->options.copies_max * sizeof(*agree->passed);
	}
	return bytes;
}

void agree_expect(struct agree *agree, const struct op *op)
{
	struct record *record;

	KVS_ASSERT_CMP(op->kind, !=, OP_CANCEL);
	KVS_ASSERT_CMP(op->key_count, <=, OP_KEYS_MAX);
	record = records_add(&agree->ops, op->op_id);
	record->kind = op->kind;
	record->key_count = op->key_count;
}

void agree_expect_copies(struct agree *agree, uint64_t ticket)
{
	KVS_ASSERT_CMP(agree->copies.slots.busy_count, <, agree->options.copies_max);
	(void)records_add(&agree->copies, ticket);
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct pressure pressure_of(const struct agree_report *reports, uint32_t owners)
{
	struct pressure most = reports[0].pressure;
	uint32_t        rank;

	for (rank = 1; rank < owners; rank++) {
		const struct pressure *const own = &reports[rank].pressure;

		most.queued_jobs = (uint32_t)greater(most.queued_jobs, own->queued_jobs);
		most.queued_bytes = greater(most.queued_bytes, own->queued_bytes);
		most.oldest_ns = greater(most.oldest_ns, own->oldest_ns);
	}
	return most;
}

int agree_round(struct agree *agree, const struct agree_report *reports,
		struct agree_permits permits, struct tick *ret_tick, struct kvs_error *err)
{
	struct tick tick = { .permits = permits };
	uint32_t    rank;
	int         rc = 0;

	for (rank = 0; rc == 0 && rank < agree->options.owners; rank++)
		rc = report_check(agree, rank, &reports[rank], err);
	if (rc == 0) {
		agree->now_ns = greater(agree->now_ns, reports[0].now_ns);
		tick.now_ns = agree->now_ns;
		tick.pressure = pressure_of(reports, agree->options.owners);
		reports_reduce(agree, reports, &tick);
	}
	records_forget(&agree->ops);
	records_forget(&agree->copies);
	if (rc == 0)
		*ret_tick = tick;
	return rc;
}

uint32_t agree_facts_max(const struct agree *agree)
{
	return agree->options.ops_max;
}

uint32_t agree_open_count(const struct agree *agree)
{
	return agree->ops.slots.busy_count + agree->copies.slots.busy_count;
}

static void audit_partial(const struct agree *agree, const struct record *record)
{
	const struct partial *const partial = &agree->partials[record - agree->ops.record];
	size_t                      i;

	KVS_ASSERT(record->doubted == 0 || !partial->retired);
	KVS_ASSERT((partial->reason == OP_REASON_NONE) == (partial->reason_rank == OWNERS_MAX));
	for (i = 0; i < ARRAY_COUNT(partial->ok.words); i++) {
		KVS_ASSERT_CMP(partial->ok.words[i] & partial->object_fault.words[i], ==, 0);
		KVS_ASSERT_CMP(partial->object_fault.words[i] & ~partial->read_here.words[i], ==,
			       0);
	}
	KVS_ASSERT_CMP(bits_next_set(partial->ok.words, record->key_count, OP_KEYS_MAX), ==,
		       OP_KEYS_MAX);
	KVS_ASSERT_CMP(bits_next_set(partial->read_here.words, record->key_count, OP_KEYS_MAX), ==,
		       OP_KEYS_MAX);
}

void agree_audit(const struct agree *agree)
{
	uint32_t slot;

	records_audit(&agree->ops, agree->owners);
	records_audit(&agree->copies, agree->owners);
	SLOTS_EACH(&agree->ops.slots, slot) {
		const struct record *const record = &agree->ops.record[slot];

		KVS_ASSERT(record->doubted == 0 || record_has_payload(record));
		if (record->reported != 0 && agree->partials)
			audit_partial(agree, record);
	}
	SLOTS_EACH(&agree->copies.slots, slot)
		KVS_ASSERT_CMP(agree->copies.record[slot].doubted, ==, 0);
}
