/* SPDX-License-Identifier: Apache-2.0 */
/* See council.h. */
#include "council.h"

#include <string.h>

void council_open(struct council *council, uint32_t owners, uint32_t ops_max, uint32_t copies_max)
{
	const struct agree_options options = { owners, ops_max, copies_max };
	uint32_t                   rank;

	KVS_ASSERT_CMP(owners, <=, COUNCIL_OWNERS_MAX);
	*council = (struct council){ .owners = owners, .permits = { true, true } };
	for (rank = 0; rank < owners; rank++) {
		KVS_ASSERT(agree_open(&options, &council->agree[rank], NULL) == 0);
		council->report[rank].facts = council->draft[rank].facts;
		council->report[rank].notices = council->draft[rank].notices;
		council->report[rank].copies = council->draft[rank].copies;
	}
}

void council_close(struct council *council)
{
	uint32_t rank;

	for (rank = 0; rank < council->owners; rank++)
		agree_close(council->agree[rank]);
}

void council_expect(struct council *council, uint64_t op_id, enum op_kind kind, uint32_t keys)
{
	const struct op op = { .op_id = op_id, .kind = kind, .key_count = keys };
	uint32_t        rank;

	for (rank = 0; rank < council->owners; rank++)
		agree_expect(council->agree[rank], &op);
}

void council_expect_copies(struct council *council, uint64_t ticket)
{
	uint32_t rank;

	for (rank = 0; rank < council->owners; rank++)
		agree_expect_copies(council->agree[rank], ticket);
}

struct fact *council_fact(struct council *council, uint32_t rank, uint64_t op_id, enum op_kind kind,
			  uint32_t keys)
{
	struct agree_report *const report = &council->report[rank];
	struct fact *const         fact = &council->draft[rank].facts[report->fact_count++];

	KVS_ASSERT_CMP(report->fact_count, <=, COUNCIL_FACTS_MAX);
	*fact = (struct fact){ .op_id = op_id, .key_count = keys, .retired = true };
	bits_fill(fact->ok.words, keys);
	if (kind == OP_GET)
		fact->read_here = fact->ok;
	return fact;
}

void council_notice(struct council *council, uint32_t rank, uint64_t op_id)
{
	struct agree_report *const report = &council->report[rank];

	KVS_ASSERT_CMP(report->notice_count, <, COUNCIL_FACTS_MAX);
	council->draft[rank].notices[report->notice_count++].op_id = op_id;
}

void council_copy(struct council *council, uint32_t rank, uint64_t ticket)
{
	struct agree_report *const report = &council->report[rank];

	KVS_ASSERT_CMP(report->copy_count, <, COUNCIL_FACTS_MAX);
	council->draft[rank].copies[report->copy_count++] = ticket;
}

/* The next reports. */
static void turn_over(struct council *council)
{
	uint32_t rank;

	for (rank = 0; rank < council->owners; rank++) {
		struct agree_report *const report = &council->report[rank];

		report->fact_count = report->notice_count = report->copy_count = 0;
		report->error = 0;
		agree_audit(council->agree[rank]);
	}
}

static void compare(const struct tick *a, const struct tick *b)
{
	KVS_ASSERT_CMP(a->now_ns, ==, b->now_ns);
	KVS_ASSERT_CMP(a->pressure.queued_jobs, ==, b->pressure.queued_jobs);
	KVS_ASSERT_CMP(a->pressure.queued_bytes, ==, b->pressure.queued_bytes);
	KVS_ASSERT_CMP(a->pressure.oldest_ns, ==, b->pressure.oldest_ns);
	KVS_ASSERT(memcmp(&a->permits, &b->permits, sizeof(a->permits)) == 0);
	KVS_ASSERT_CMP(a->fact_count, ==, b->fact_count);
	KVS_ASSERT(memcmp(a->facts, b->facts, a->fact_count * sizeof(*a->facts)) == 0);
	KVS_ASSERT_CMP(a->notice_count, ==, b->notice_count);
	KVS_ASSERT(memcmp(a->notices, b->notices, a->notice_count * sizeof(*a->notices)) == 0);
	KVS_ASSERT_CMP(a->copy_count, ==, b->copy_count);
	KVS_ASSERT(memcmp(a->copies, b->copies, a->copy_count * sizeof(*a->copies)) == 0);
}

const struct tick *council_round(struct council *council)
{
	struct kvs_error err = { 0 };
	struct tick      tick;
	uint32_t         rank;

	for (rank = 0; rank < council->owners; rank++) {
		if (agree_round(council->agree[rank], council->report, council->permits, &tick,
				&err) < 0)
			KVS_PANIC("owner %u: %s", rank, err.message);
		if (rank == 0)
			council->tick = tick;
		else
			compare(&council->tick, &tick);
		KVS_ASSERT_CMP(agree_open_count(council->agree[rank]), ==,
			       agree_open_count(council->agree[0]));
	}
	turn_over(council);
	return &council->tick;
}

void council_refuses(struct council *council, const char *sentence)
{
	struct tick tick, untouched;
	uint32_t    rank;

	memset(&tick, 0x5a, sizeof(tick));
	memset(&untouched, 0x5a, sizeof(untouched));
	for (rank = 0; rank < council->owners; rank++) {
		struct kvs_error err;

		KVS_ASSERT(agree_round(council->agree[rank], council->report, council->permits,
				       &tick, &err) == KVS_E_PROTO);
		if (rank == 0)
			council->err = err;
		if (!sentence)
			sentence = council->err.message;
		if (strcmp(err.message, sentence) != 0)
			KVS_PANIC("owner %u says \"%s\", not \"%s\"", rank, err.message, sentence);
		KVS_ASSERT(memcmp(&tick, &untouched, sizeof(tick)) == 0);
	}
	turn_over(council);
}
