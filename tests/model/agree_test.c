/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of one to four owners, in random orders and with random delays, against a model that keeps all
 * of them for ever and works out each tick from the first report on.
 *
 * Every owner has an agreement of its own, and council.h sees to it that all of them give the same tick,
 * byte by byte.  Now and then a report is spoilt: all refuse it, and the good one is then taken as if
 * nothing had been.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "council.h"
#include "prop.h"

#define OPS_MAX 6u
#define COPIES_MAX 3u
#define HISTORY 400u

static uint32_t owners; /* of every world */

enum said { NOTHING, DRAFTED, REPORTED };

struct model_op {
	uint64_t     id;
	enum op_kind kind;
	uint32_t     keys;
	enum said    fact[COUNCIL_OWNERS_MAX];
	enum said    notice[COUNCIL_OWNERS_MAX];
	struct fact  facts[COUNCIL_OWNERS_MAX];
	bool         told, over;
};

struct model_copy {
	uint64_t  ticket;
	enum said said[COUNCIL_OWNERS_MAX];
	bool      over;
};

struct world {
	struct council    council;
	struct model_op   ops[HISTORY];
	struct model_copy copies[HISTORY];
	uint32_t          op_count, copy_count;
	uint64_t          now_ns;
	struct prng       prng; /* seeded by each operation's arguments */
};

static uint32_t below(struct world *world, uint32_t bound)
{
	return (uint32_t)prng_below(&world->prng, bound);
}

static bool all_are(const enum said *said, enum said what)
{
	uint32_t rank;

	for (rank = 0; rank < owners; rank++) {
		if (said[rank] != what)
			return false;
	}
	return true;
}

/* --- what there is to report ------------------------------------------------------------------ */

static uint32_t open_ops(const struct world *world)
{
	uint32_t i, count = 0;

	for (i = 0; i < world->op_count; i++)
		count += !world->ops[i].over;
	return count;
}

static uint32_t open_copies(const struct world *world)
{
	uint32_t i, count = 0;

	for (i = 0; i < world->copy_count; i++)
		count += !world->copies[i].over;
	return count;
}

static void dispatch(struct world *world)
{
	static const enum op_kind kinds[] = { OP_QUERY, OP_GET, OP_GET, OP_PUT, OP_REMOVE };
	static const uint32_t     keys[] = { 1, 3, 64, 70, OP_KEYS_MAX };
	struct model_op *const    op = &world->ops[world->op_count];

	if (world->op_count == HISTORY || open_ops(world) == OPS_MAX)
		return;
	op->id = world->op_count == 0 ? 1 : op[-1].id + 1 + below(world, 3);
	op->kind = kinds[below(world, ARRAY_COUNT(kinds))];
	op->keys = keys[below(world, ARRAY_COUNT(keys))];
	council_expect(&world->council, op->id, op->kind, op->keys);
	world->op_count++;
}

static void submit_copies(struct world *world)
{
	struct model_copy *const copy = &world->copies[world->copy_count];

	if (world->copy_count == HISTORY || open_copies(world) == COPIES_MAX)
		return;
	copy->ticket = world->copy_count == 0 ? 5 : copy[-1].ticket + 1 + below(world, 3);
	council_expect_copies(&world->council, copy->ticket);
	world->copy_count++;
}

static void random_row(struct world *world, const struct model_op *op, struct fact *fact, uint32_t row)
{
	const uint32_t is = below(world, 6);

	bits_clear(fact->ok.words, row);
	bits_clear(fact->object_fault.words, row);
	bits_clear(fact->read_here.words, row);
	if (is < 2)
		bits_set(fact->ok.words, row);
	if (op->kind != OP_GET)
		return;
	if (is == 2 || is == 3)
		bits_set(fact->object_fault.words, row);
	/* An owner that is alone is believed; of many, one that says so without having read is not. */
	if (is == 0 || is == 2 || is == 4 || (is == 3 && owners == 1))
		bits_set(fact->read_here.words, row);
}

/* One of the ops that this owner has not reported. */
static struct model_op *unreported(struct world *world, uint32_t rank)
{
	uint32_t i, skip = below(world, OPS_MAX);

	for (i = 0; i < world->op_count; i++) {
		if (world->ops[i].fact[rank] == NOTHING && skip-- == 0)
			return &world->ops[i];
	}
	return NULL;
}

/* At a random place of its list. */
static void draft_fact(struct world *world)
{
	const uint32_t         rank = below(world, owners);
	struct model_op *const op = unreported(world, rank);
	struct fact           *fact, *list = world->council.draft[rank].facts, swapped;
	uint32_t               i, place;

	if (!op)
		return;
	fact = council_fact(&world->council, rank, op->id, op->kind, op->keys);
	for (i = below(world, 3); i > 0; i--)
		random_row(world, op, fact, below(world, op->keys));
	fact->retired = below(world, 4) != 0;
	fact->reason = below(world, 2) == 0 ? OP_REASON_NONE : below(world, OP_REASON_COUNT);
	fact->moved_bytes = below(world, 5);
	op->fact[rank] = DRAFTED;
	op->facts[rank] = *fact;
	place = below(world, world->council.report[rank].fact_count);
	swapped = list[place];
	list[place] = *fact;
	*fact = swapped;
}

static bool has_payload(const struct model_op *op)
{
	return op->kind == OP_GET || op->kind == OP_PUT;
}

static bool doubts(const struct model_op *op, uint32_t rank)
{
	return has_payload(op) && op->fact[rank] != NOTHING && !op->facts[rank].retired;
}

static void draft_notice(struct world *world)
{
	const uint32_t rank = below(world, owners);
	uint32_t       i, skip = below(world, 3);

	for (i = 0; i < world->op_count; i++) {
		struct model_op *const op = &world->ops[i];

		if (!doubts(op, rank) || op->notice[rank] != NOTHING || skip-- > 0)
			continue;
		op->notice[rank] = DRAFTED;
		council_notice(&world->council, rank, op->id);
		return;
	}
}

static void draft_copy(struct world *world)
{
	const uint32_t rank = below(world, owners);
	uint32_t       i, skip = below(world, 3);

	for (i = 0; i < world->copy_count; i++) {
		struct model_copy *const copy = &world->copies[i];

		if (copy->said[rank] != NOTHING || skip-- > 0)
			continue;
		copy->said[rank] = DRAFTED;
		council_copy(&world->council, rank, copy->ticket);
		return;
	}
}

/* --- the tick that must come ------------------------------------------------------------------ */

static struct fact agreed(const struct model_op *op)
{
	struct fact fact = { .op_id = op->id, .key_count = op->keys, .retired = true };
	uint32_t    rank, row;

	for (rank = 0; rank < owners; rank++) {
		const struct fact *const own = &op->facts[rank];

		fact.retired = fact.retired && own->retired;
		if (fact.reason == OP_REASON_NONE)
			fact.reason = own->reason;
		if (owners == 1)
			fact.moved_bytes = own->moved_bytes;
	}
	for (row = 0; row < op->keys; row++) {
		uint32_t ok = 0, fault = 0, read = 0;

		for (rank = 0; rank < owners; rank++) {
			const bool has_read = bits_test(op->facts[rank].read_here.words, row);

			ok += bits_test(op->facts[rank].ok.words, row);
			fault += has_read && bits_test(op->facts[rank].object_fault.words, row);
			read += has_read;
		}
		if (ok == owners)
			bits_set(fact.ok.words, row);
		if (fault > 0)
			bits_set(fact.object_fault.words, row);
		if (read > 0)
			bits_set(fact.read_here.words, row);
	}
	return fact;
}

/* Of one owner the order is its own; of more it is that of the ids. */
static const struct fact *fact_at(const struct tick *tick, uint32_t at, uint64_t id)
{
	uint32_t i;

	KVS_ASSERT_CMP(at, <, tick->fact_count);
	for (i = 0; owners == 1 && i < tick->fact_count; i++) {
		if (tick->facts[i].op_id == id)
			return &tick->facts[i];
	}
	return &tick->facts[at];
}

static uint64_t notice_at(const struct tick *tick, uint32_t at, uint64_t id)
{
	uint32_t i;

	KVS_ASSERT_CMP(at, <, tick->notice_count);
	for (i = 0; owners == 1 && i < tick->notice_count; i++) {
		if (tick->notices[i].op_id == id)
			return id;
	}
	return tick->notices[at].op_id;
}

static uint64_t copy_at(const struct tick *tick, uint32_t at, uint64_t ticket)
{
	uint32_t i;

	KVS_ASSERT_CMP(at, <, tick->copy_count);
	for (i = 0; owners == 1 && i < tick->copy_count; i++) {
		if (tick->copies[i] == ticket)
			return ticket;
	}
	return tick->copies[at];
}

static void compare_fact(const struct fact *fact, const struct fact *expected)
{
	KVS_ASSERT_CMP(fact->op_id, ==, expected->op_id);
	KVS_ASSERT_CMP(fact->key_count, ==, expected->key_count);
	KVS_ASSERT_CMP(fact->moved_bytes, ==, expected->moved_bytes);
	KVS_ASSERT_CMP(fact->retired, ==, expected->retired);
	KVS_ASSERT_CMP(fact->reason, ==, expected->reason);
	KVS_ASSERT(memcmp(&fact->ok, &expected->ok, sizeof(fact->ok)) == 0);
	KVS_ASSERT(memcmp(&fact->object_fault, &expected->object_fault, sizeof(fact->object_fault)) == 0);
	KVS_ASSERT(memcmp(&fact->read_here, &expected->read_here, sizeof(fact->read_here)) == 0);
}

static void compare_ops(struct world *world, const struct tick *tick)
{
	uint32_t i, rank, facts = 0, notices = 0;

	for (i = 0; i < world->op_count; i++) {
		struct model_op *const op = &world->ops[i];
		bool                   doubted = false, unretired = false;

		if (op->over || !all_are(op->fact, REPORTED))
			continue;
		if (!op->told) {
			const struct fact expected = agreed(op);

			compare_fact(fact_at(tick, facts++, op->id), &expected);
		}
		for (rank = 0; rank < owners; rank++) {
			unretired |= doubts(op, rank);
			doubted |= doubts(op, rank) && op->notice[rank] != REPORTED;
		}
		if (unretired && !doubted)
			KVS_ASSERT_CMP(notice_at(tick, notices++, op->id), ==, op->id);
		op->told = true;
		op->over = !doubted;
	}
	KVS_ASSERT_CMP(tick->fact_count, ==, facts);
	KVS_ASSERT_CMP(tick->notice_count, ==, notices);
}

static void compare_copies(struct world *world, const struct tick *tick)
{
	uint32_t i, copies = 0;

	for (i = 0; i < world->copy_count; i++) {
		struct model_copy *const copy = &world->copies[i];

		if (copy->over || !all_are(copy->said, REPORTED))
			continue;
		KVS_ASSERT_CMP(copy_at(tick, copies++, copy->ticket), ==, copy->ticket);
		copy->over = true;
	}
	KVS_ASSERT_CMP(tick->copy_count, ==, copies);
}

/* --- rounds ----------------------------------------------------------------------------------- */

static void drafts_are_reported(struct world *world)
{
	uint32_t i, rank;

	for (i = 0; i < world->op_count; i++) {
		for (rank = 0; rank < owners; rank++) {
			if (world->ops[i].fact[rank] == DRAFTED)
				world->ops[i].fact[rank] = REPORTED;
			if (world->ops[i].notice[rank] == DRAFTED)
				world->ops[i].notice[rank] = REPORTED;
		}
	}
	for (i = 0; i < world->copy_count; i++) {
		for (rank = 0; rank < owners; rank++) {
			if (world->copies[i].said[rank] == DRAFTED)
				world->copies[i].said[rank] = REPORTED;
		}
	}
}

static void go_round(struct world *world)
{
	struct council *const council = &world->council;
	struct pressure       most = { 0 };
	const struct tick    *tick;
	uint32_t              rank;

	for (rank = 0; rank < owners; rank++) {
		struct pressure *const own = &council->report[rank].pressure;

		*own = (struct pressure){ below(world, 9), below(world, 9), below(world, 9) };
		council->report[rank].now_ns = world->now_ns - 2 + below(world, 9);
		most.queued_jobs = own->queued_jobs > most.queued_jobs ? own->queued_jobs : most.queued_jobs;
		most.queued_bytes =
			own->queued_bytes > most.queued_bytes ? own->queued_bytes : most.queued_bytes;
		most.oldest_ns = own->oldest_ns > most.oldest_ns ? own->oldest_ns : most.oldest_ns;
	}
	if (council->report[0].now_ns > world->now_ns)
		world->now_ns = council->report[0].now_ns;
	council->permits = (struct agree_permits){ below(world, 2) == 0, below(world, 2) == 0 };
	tick = council_round(council);
	drafts_are_reported(world);
	KVS_ASSERT_CMP(tick->now_ns, ==, world->now_ns);
	KVS_ASSERT_CMP(tick->pressure.queued_jobs, ==, most.queued_jobs);
	KVS_ASSERT_CMP(tick->pressure.queued_bytes, ==, most.queued_bytes);
	KVS_ASSERT_CMP(tick->pressure.oldest_ns, ==, most.oldest_ns);
	KVS_ASSERT_CMP(tick->permits.forward, ==, council->permits.forward);
	KVS_ASSERT_CMP(tick->permits.storage, ==, council->permits.storage);
	compare_ops(world, tick);
	compare_copies(world, tick);
	KVS_ASSERT_CMP(agree_open_count(council->agree[0]), ==, open_ops(world) + open_copies(world));
}

/* Something that this owner has said, or that nobody can say. */
static void spoil(struct world *world, uint32_t rank, uint32_t how)
{
	struct council *const      council = &world->council;
	struct agree_report *const report = &council->report[rank];
	struct fact *const         fact = &council->draft[rank].facts[0];
	const struct model_op     *op = &world->ops[below(world, world->op_count + 1)];

	if (how == 0 && op->id != 0 && op->fact[rank] != NOTHING) {
		(void)council_fact(council, rank, op->id, op->kind, op->keys);
	} else if (how == 1 && op->id != 0 && (!doubts(op, rank) || op->notice[rank] != NOTHING)) {
		council_notice(council, rank, op->id);
	} else if (how == 2) {
		(void)council_fact(council, rank, op->id + 1000000, OP_PUT, 1);
	} else if (how == 3) {
		council_copy(council, rank, 1000000);
	} else if (how == 4 && report->fact_count > 0) {
		fact->key_count++;
	} else if (how == 5 && report->fact_count > 0) {
		fact->ok.words[0] |= 1;
		fact->object_fault.words[0] |= 1;
	} else if (how == 6) {
		report->fact_count = OPS_MAX + 1;
	} else if (how == 7 && report->copy_count > 0) {
		council_copy(council, rank, council->draft[rank].copies[0]);
	} else {
		report->error = -5;
	}
}

/* All reports of the round as they are drafted, but for one that is spoilt. */
static void try_bad_round(struct world *world)
{
	struct council *const council = &world->council;
	struct council_draft  drafts[COUNCIL_OWNERS_MAX];
	struct agree_report   reports[COUNCIL_OWNERS_MAX];

	memcpy(drafts, council->draft, sizeof(drafts));
	memcpy(reports, council->report, sizeof(reports));
	spoil(world, below(world, owners), below(world, 9));
	council_refuses(council, NULL);
	memcpy(council->draft, drafts, sizeof(drafts));
	memcpy(council->report, reports, sizeof(reports));
}

/* --- the test --------------------------------------------------------------------------------- */

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world != NULL);
	world->now_ns = 100;
	council_open(&world->council, owners, OPS_MAX, COPIES_MAX);
	world->council.report[0].now_ns = world->now_ns;
	(void)council_round(&world->council);
	return world;
}

static void world_close(void *ctx)
{
	struct world *const world = ctx;

	go_round(world);
	council_close(&world->council);
	free(world);
}

enum { DISPATCH, FACT, NOTICE, SUBMIT, PASS, ROUND, BAD };

static const struct prop_kind kinds[] = { [DISPATCH] = { "dispatch", 6 }, [FACT] = { "fact", 30 },
					  [NOTICE] = { "notice", 6 },     [SUBMIT] = { "submit", 2 },
					  [PASS] = { "pass", 8 },         [ROUND] = { "round", 12 },
					  [BAD] = { "bad", 2 } };

static void world_step(void *ctx, const struct prop_op *op)
{
	static void (*const steps[])(struct world *) = { dispatch, draft_fact, draft_notice,
							 submit_copies, draft_copy, go_round,
							 try_bad_round };
	struct world *const world = ctx;

	prng_seed(&world->prng, (uint64_t)op->arg[0] << 32 | op->arg[1]);
	steps[op->kind](world);
}

static void every_owner_agrees_with_all_that_was_ever_said(void **state)
{
	static const struct prop prop = { .name = "agree",
					  .kinds = kinds,
					  .kind_count = ARRAY_COUNT(kinds),
					  .list_count = 60,
					  .op_count = 500,
					  .open = world_open,
					  .step = world_step,
					  .close = world_close };

	(void)state;
	for (owners = 1; owners <= COUNCIL_OWNERS_MAX; owners++)
		assert_true(prop_run(&prop));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_owner_agrees_with_all_that_was_ever_said)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
