/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants of agreement: the tick is what the reports say, on every rank, and the plans that come
 * of it are one.
 */
#include <string.h>

#include "sim.h"

/* --- the tick --------------------------------------------------------------------------------- */

static const struct fact *find_fact(const struct tick *tick, uint64_t op_id)
{
	uint32_t i;

	for (i = 0; i < tick->fact_count; i++) {
		if (tick->facts[i].op_id == op_id)
			return &tick->facts[i];
	}
	return NULL;
}

static bool find_notice(const struct tick *tick, uint64_t op_id)
{
	uint32_t i;

	for (i = 0; i < tick->notice_count; i++) {
		if (tick->notices[i].op_id == op_id)
			return true;
	}
	return false;
}

static bool find_copy(const struct tick *tick, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < tick->copy_count; i++) {
		if (tick->copies[i] == id)
			return true;
	}
	return false;
}

/* Every owner has told its fact, in this round or before. */
static bool is_told(const struct sim *sim, const struct sim_op *op)
{
	uint32_t rank;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		if (!op->parts[rank].answered)
			return false;
	}
	return true;
}

/* Every owner that called it unretired has taken that back. */
static bool is_settled(const struct sim *sim, const struct sim_op *op)
{
	uint32_t rank;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		if (!op->parts[rank].fact.retired && !op->parts[rank].noticed)
			return false;
	}
	return true;
}

static void reduce(const struct sim *sim, const struct sim_op *op, struct fact *ret_fact)
{
	uint32_t rank, word;

	*ret_fact = (struct fact){ .op_id = op->op_id, .key_count = op->row_count, .retired = true };
	memset(&ret_fact->ok, 0xff, sizeof(ret_fact->ok));
	for (rank = 0; rank < sim->shape.ranks; rank++) {
		const struct fact *const fact = &op->parts[rank].fact;

		ret_fact->retired &= fact->retired;
		for (word = 0; word < ARRAY_COUNT(fact->ok.words); word++) {
			ret_fact->ok.words[word] &= fact->ok.words[word];
			ret_fact->object_fault.words[word] |=
				fact->object_fault.words[word] & fact->read_here.words[word];
		}
		if (ret_fact->reason == OP_REASON_NONE)
			ret_fact->reason = fact->reason;
	}
}

static void check_agreed(struct sim *sim, const struct sim_op *op, uint32_t rank)
{
	const struct fact *const fact = find_fact(&sim->ranks[rank].tick, op->op_id);
	struct fact              expected;

	if (!fact) {
		FAIL("one-done", "op %" PRIu64 " is told by all, and rank %u did not hear of it",
		     op->op_id, rank);
	}
	reduce(sim, op, &expected);
	if (fact->retired != expected.retired) {
		FAIL("quarantine", "op %" PRIu64 ": the agreed fact says %s", op->op_id,
		     fact->retired ? "retired" : "unretired");
	}
	if (memcmp(&fact->ok, &expected.ok, sizeof(fact->ok)) != 0)
		FAIL("never-early", "op %" PRIu64 ": ok is not what all say", op->op_id);
	if (memcmp(&fact->object_fault, &expected.object_fault, sizeof(fact->ok)) != 0 ||
	    fact->reason != expected.reason || fact->key_count != expected.key_count)
		FAIL("one-done", "op %" PRIu64 ": the agreed fact is another", op->op_id);
}

static uint32_t agree_facts(struct sim *sim)
{
	uint32_t count = 0, rank, i, told;

	for (i = 0; i < OPS_MAX; i++) {
		struct sim_op *const op = &sim->ops[i];

		if (op->op_id == 0 || op->dropped || op->agreed)
			continue;
		for (rank = told = 0; rank < sim->shape.ranks; rank++)
			told += op->parts[rank].answered;
		if (told > 0 && op->round == 0)
			op->round = sim->round;
		for (rank = 0; !is_told(sim, op) && rank < sim->shape.ranks; rank++) {
			if (find_fact(&sim->ranks[rank].tick, op->op_id)) {
				FAIL("never-early", "op %" PRIu64 " is agreed on, and not all have told",
				     op->op_id);
			}
		}
		if (!is_told(sim, op))
			continue;
		for (rank = 0; rank < sim->shape.ranks; rank++)
			check_agreed(sim, op, rank);
		count++;
		sim->covers->split_facts += op->round < sim->round;
		op->agreed = true;
		op->doubted = op->kind != OP_QUERY && !is_settled(sim, op);
	}
	return count;
}

/* Marks what this round's reports take back.  Before facts: a notice may come with the last fact. */
static void enter_notices(struct sim *sim)
{
	uint32_t rank, i;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		const struct sim_rank *const of = &sim->ranks[rank];

		for (i = 0; i < of->notice_count; i++)
			ledger_find(sim, of->notices[i].op_id)->parts[rank].noticed = true;
	}
}

static uint32_t agree_notices(struct sim *sim)
{
	uint32_t count = 0, rank, i;

	for (i = 0; i < OPS_MAX; i++) {
		struct sim_op *const op = &sim->ops[i];
		bool                 unretired = false, now;

		if (op->op_id == 0 || op->dropped || op->kind == OP_QUERY)
			continue;
		for (rank = 0; rank < sim->shape.ranks; rank++)
			unretired |= op->parts[rank].answered && !op->parts[rank].fact.retired;
		/* What was settled before has left the ledger. */
		now = op->agreed && unretired && is_settled(sim, op);
		for (rank = 0; rank < sim->shape.ranks; rank++) {
			if (find_notice(&sim->ranks[rank].tick, op->op_id) != now) {
				FAIL("quarantine", "op %" PRIu64 " %s in doubt; rank %u hears otherwise",
				     op->op_id, now ? "is no more" : "is", rank);
			}
		}
		if (now)
			op->doubted = false;
		count += now;
	}
	return count;
}

static uint32_t agree_copies(struct sim *sim)
{
	const uint32_t all = (1u << sim->shape.ranks) - 1;
	uint32_t       count = 0, rank, i, j;

	for (i = 0; i < TICKETS_MAX; i++) {
		struct sim_ticket *const ticket = &sim->tickets[i];

		if (ticket->id == 0)
			continue;
		for (rank = 0; rank < sim->shape.ranks; rank++) {
			const struct sim_rank *const of = &sim->ranks[rank];

			for (j = 0; j < of->copy_count; j++)
				ticket->passed |= (uint32_t)(of->copies[j] == ticket->id) << rank;
		}
		for (rank = 0; rank < sim->shape.ranks; rank++) {
			if (find_copy(&sim->ranks[rank].tick, ticket->id) != (ticket->passed == all)) {
				FAIL("never-early", "copy %" PRIu64 ": rank %u holds it for %s",
				     ticket->id, rank, ticket->passed == all ? "open" : "done");
			}
		}
		count += ticket->passed == all;
		if (ticket->passed == all)
			ticket->id = 0;
	}
	return count;
}

void check_tick(struct sim *sim)
{
	const uint64_t before = sim->tick.now_ns;
	uint32_t       facts, notices, copies, rank;

	enter_notices(sim);
	facts = agree_facts(sim);
	notices = agree_notices(sim);
	copies = agree_copies(sim);
	for (rank = 0; rank < sim->shape.ranks; rank++) {
		const struct tick *const tick = &sim->ranks[rank].tick;
		const struct tick *const first = &sim->ranks[0].tick;

		if (tick->fact_count != facts || tick->notice_count != notices ||
		    tick->copy_count != copies)
			FAIL("one-done", "the tick of rank %u tells of more than there is", rank);
		if (tick->now_ns != first->now_ns || tick->now_ns < before ||
		    memcmp(&tick->pressure, &first->pressure, sizeof(tick->pressure)) != 0)
			FAIL("same-plan", "the tick of rank %u is another", rank);
	}
	sim->tick = sim->ranks[0].tick;
}

/* --- plans ------------------------------------------------------------------------------------ */

#define SAME(what, condition) \
	do { \
		if (!(condition)) \
			FAIL("same-plan", "rank %u has another %s", rank, what); \
	} while (0)

static void compare_ops(struct sim *sim, uint32_t rank, const struct sched_plan *a,
			const struct sched_plan *b)
{
	uint32_t i, k;

	SAME("count of ops", a->op_count == b->op_count);
	for (i = 0; i < a->op_count; i++) {
		const struct op *const op = &a->ops[i];
		const struct op *const other = &b->ops[i];

		SAME("op", op->op_id == other->op_id && op->kind == other->kind &&
				   op->flags == other->flags && op->key_count == other->key_count);
		for (k = 0; op->kind != OP_CANCEL && k < op->key_count; k++) {
			struct kvs_key key = op->keys[k];

			if (key.group >= sim->shape.group_count ||
			    key.replica != owner_replica(&sim->ranks[0].owner, key.group) ||
			    other->keys[k].replica !=
				    owner_replica(&sim->ranks[rank].owner, key.group)) {
				FAIL("same-plan", "op %" PRIu64 " names another replica's object",
				     op->op_id);
			}
			key.replica = other->keys[k].replica;
			SAME("key", memcmp(&key, &other->keys[k], sizeof(key)) == 0);
		}
	}
}

static void compare_copies(struct sim *sim, uint32_t rank, const struct sched_plan *a,
			   const struct sched_plan *b)
{
	const struct mover *const one = sched_mover(sim->ranks[0].sched);
	const struct mover *const two = sched_mover(sim->ranks[rank].sched);
	uint32_t                  i, row, other;

	SAME("count of copies", a->copy_count == b->copy_count);
	for (i = 0; i < a->copy_count; i++) {
		const struct mover_ticket *const ticket = mover_find(one, a->copies[i]);
		const struct mover_ticket *const same = mover_find(two, b->copies[i]);

		SAME("copy", ticket && same && a->copies[i] == b->copies[i] &&
				     ticket->kind == same->kind &&
				     ticket->rows.count == same->rows.count);
		for (row = ticket->rows.head, other = same->rows.head; row != SLOT_NONE;
		     row = one->links[row].next, other = two->links[other].next) {
			const struct mover_row *const x = &one->rows[row];
			const struct mover_row *const y = &two->rows[other];

			SAME("row of a copy", x->group == y->group && x->source == y->source &&
						      x->target == y->target && x->path == y->path);
		}
	}
}

static void compare_forwards(struct sim *sim, uint32_t rank, const struct batch *a,
			     const struct batch *b)
{
	uint32_t i, g;

	SAME("count of rows", a->row_count == b->row_count && a->prefill_count == b->prefill_count);
	for (i = 0; i < a->row_count; i++) {
		const struct batch_row *const x = &a->rows[i];
		const struct batch_row *const y = &b->rows[i];

		SAME("row", strcmp(x->id, y->id) == 0 && x->kind == y->kind && x->place == y->place &&
				    x->begin == y->begin && x->token_count == y->token_count &&
				    x->ends_prompt == y->ends_prompt && x->fence == y->fence);
	}
	for (g = 0; g < sim->shape.group_count; g++) {
		SAME("table", a->tables[g].width == b->tables[g].width &&
				      a->fresh_count[g] == b->fresh_count[g]);
		SAME("table", a->row_count == 0 ||
				      memcmp(a->tables[g].slots, b->tables[g].slots,
					     (size_t)a->row_count * a->tables[g].width *
						     sizeof(*a->tables[g].slots)) == 0);
		SAME("fresh block", a->fresh_count[g] == 0 ||
					    memcmp(a->fresh[g], b->fresh[g],
						   a->fresh_count[g] * sizeof(**a->fresh)) == 0);
	}
}

static void compare_ends(struct sim *sim, uint32_t rank, const struct sched_plan *a,
			 const struct sched_plan *b)
{
	const struct sched *const one = sim->ranks[0].sched;
	const struct sched *const two = sim->ranks[rank].sched;
	uint32_t                  i;

	SAME("count of ends", a->ended_count == b->ended_count);
	for (i = 0; i < a->ended_count; i++) {
		SAME("end", strcmp(a->ended[i].id, b->ended[i].id) == 0 &&
				    a->ended[i].end == b->ended[i].end &&
				    a->ended[i].token_count == b->ended[i].token_count);
	}
	SAME("time to wake", sched_wake_ns(one) == sched_wake_ns(two));
	SAME("clock of its cache", cache_clock(sched_cache(one)) == cache_clock(sched_cache(two)));
	SAME("count of parents", sched_available(one) == sched_available(two));
}

void check_plans(struct sim *sim)
{
	const struct sched_plan *const a = sim->ranks[0].plan;
	uint32_t                       rank;

	for (rank = 1; rank < sim->shape.ranks; rank++) {
		const struct sched_plan *const b = sim->ranks[rank].plan;

		compare_ops(sim, rank, a, b);
		compare_copies(sim, rank, a, b);
		compare_forwards(sim, rank, &a->forward, &b->forward);
		compare_ends(sim, rank, a, b);
	}
}
