/* SPDX-License-Identifier: Apache-2.0 */
/* A report against what is under way. */
#include "agree/parts.h"

#include <inttypes.h>

static int check_count(const char *name, uint32_t count, uint32_t max, struct kvs_error *err)
{
	if (count <= max)
		return 0;
	return err_set(err, KVS_E_PROTO, "%s: %u, at most %u can be under way", name, count, max);
}

static int check_counts(const struct agree *agree, const struct agree_report *report,
			struct kvs_error *err)
{
	const uint32_t ops_max = agree->options.ops_max;

	if (check_count("fact_count", report->fact_count, ops_max, err) < 0 ||
	    check_count("notice_count", report->notice_count, ops_max, err) < 0 ||
	    check_count("copy_count", report->copy_count, agree->options.copies_max, err) < 0)
		return KVS_E_PROTO;
	return 0;
}

/* The owner's bit is where it reports something that is under way, for the first time. */
static int report_once(struct records *records, struct record *record, const char *what,
		       uint64_t id, uint64_t bit, struct kvs_error *err)
{
	if (!record) {
		return err_set(err, KVS_E_PROTO, "%s %" PRIu64 ": id: nothing under way has it",
			       what, id);
	}
	if ((record->reported | record->now.reported) & bit) {
		return err_set(err, KVS_E_PROTO,
			       "%s %" PRIu64 ": id: this owner has reported it before", what, id);
	}
	records_touch(records, record);
	record->now.reported |= bit;
	return 0;
}

static int check_fact(struct agree *agree, const struct fact *fact, uint64_t bit,
		      struct kvs_error *err)
{
	struct record *const record = records_find(&agree->ops, fact->op_id);
	struct op            op;
	int                  rc = report_once(&agree->ops, record, "op", fact->op_id, bit, err);

	if (rc < 0)
		return rc;
	op = (struct op){ .op_id = record->id, .kind = record->kind,
			  .key_count = record->key_count };
	rc = fact_check(fact, &op, err);
	if (rc < 0) {
		err_prefix(err, "op %" PRIu64, record->id);
		return rc;
	}
	if (!fact->retired && record_has_payload(record))
		record->now.doubted |= bit;
	return 0;
}

/* Facts come before notices, so that one report may hold both. */
static int check_notice(struct agree *agree, uint64_t op_id, uint64_t bit, struct kvs_error *err)
{
	struct record *const record = records_find(&agree->ops, op_id);

	if (!record) {
		return err_set(err, KVS_E_PROTO,
			       "op %" PRIu64 ": notice: nothing under way has this id", op_id);
	}
	if (!((record->doubted | record->now.doubted) & ~record->now.taken_back & bit)) {
		return err_set(err, KVS_E_PROTO,
			       "op %" PRIu64 ": notice: this owner has no unretired fact of it",
			       op_id);
	}
	records_touch(&agree->ops, record);
	record->now.taken_back |= bit;
	return 0;
}

static int check_lists(struct agree *agree, const struct agree_report *report, uint64_t bit,
		       struct kvs_error *err)
{
	int      rc = check_counts(agree, report, err);
	uint32_t i;

	for (i = 0; rc == 0 && i < report->fact_count; i++)
		rc = check_fact(agree, &report->facts[i], bit, err);
	for (i = 0; rc == 0 && i < report->notice_count; i++)
		rc = check_notice(agree, report->notices[i].op_id, bit, err);
	for (i = 0; rc == 0 && i < report->copy_count; i++) {
		rc = report_once(&agree->copies, records_find(&agree->copies, report->copies[i]),
				 "copy", report->copies[i], bit, err);
	}
	return rc;
}

int report_check(struct agree *agree, uint32_t rank, const struct agree_report *report,
		 struct kvs_error *err)
{
	int rc;

	if (report->error != 0) {
		return err_set(err, KVS_E_PROTO, "rank %u: error: %d, its own poll was invalid",
			       rank, report->error);
	}
	/* As the leader's, it would stop the clock of all: no later time is greater. */
	if (report->now_ns == UINT64_MAX)
		return err_set(err, KVS_E_PROTO, "rank %u: now_ns: the highest number is no time", rank);
	rc = check_lists(agree, report, UINT64_C(1) << rank, err);
	if (rc < 0)
		err_prefix(err, "rank %u", rank);
	return rc;
}
