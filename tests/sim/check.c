/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants, by their names in docs/ARCHITECTURE.md: from the ledger's view and the rooms' own
 * audits, after every step.
 *
 * The rooms are looked into, never asked: what they say of themselves is compared with what the
 * world did.
 */
#include "sim.h"

/* --- the ledger ------------------------------------------------------------------------------- */

struct sim_op *ledger_find(struct sim *sim, uint64_t op_id)
{
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++) {
		if (sim->ops[i].op_id == op_id)
			return &sim->ops[i];
	}
	return NULL;
}

const struct mono_ticket *sim_ticket(const struct sim *sim, uint64_t op_id)
{
	const struct mono_transfer *const transfer = mono_sched_transfer(sim->sched);
	uint32_t                          i;

	for (i = 0; i < transfer->limits.op_credits; i++) {
		if (transfer->tickets[i].state != MONO_TICKET_FREE &&
		    transfer->tickets[i].op.op_id == op_id)
			return &transfer->tickets[i];
	}
	return NULL;
}

struct sim_op *ledger_add(struct sim *sim, const struct op *op)
{
	struct sim_op *const            entry = ledger_find(sim, 0);
	const struct mono_ticket *const ticket = sim_ticket(sim, op->op_id);
	uint32_t                        i;

	KVS_ASSERT(entry != NULL);
	if (!ticket)
		FAIL("one-state", "op %" PRIu64 " has no ticket", op->op_id);
	*entry = (struct sim_op){ .op_id = op->op_id,
				  .kind = op->kind,
				  .page_count = op->key_count };
	for (i = 0; i < op->key_count; i++) {
		entry->pages[i] = oracle_page(&sim->oracle, &op->keys[i]);
		if (op->kind == OP_QUERY)
			continue;
		entry->blocks[i] = ticket->blocks[i];
		entry->spans[i] = op->spans[i];
	}
	if (op->kind == OP_QUERY)
		sim->requests[ticket->request].asked = sim->world.now;
	return entry;
}

void check_block(struct sim *sim, const char *invariant, const void *block, uint32_t page)
{
	const char *const wrong = oracle_check(&sim->oracle, block, page, 0, BLOCK_ROWS);

	if (wrong)
		FAIL(invariant, "%s", wrong);
}

/* --- facts and rounds ------------------------------------------------------------------------- */

void check_fact(struct sim *sim, const struct fact *fact)
{
	struct sim_op *const            op = ledger_find(sim, fact->op_id);
	const struct mono_ticket *const ticket = sim_ticket(sim, fact->op_id);
	struct kvs_error                error;

	if (!op || op->answered)
		FAIL("one-done", "op %" PRIu64 " is answered twice", fact->op_id);
	if (!ticket)
		FAIL("one-state", "op %" PRIu64 " lost its ticket", fact->op_id);
	if (fact_check(fact, &ticket->op, &error) < 0)
		FAIL("one-done", "%s", error.message);
	if (op->in_doubt && fact->retired)
		FAIL("quarantine", "op %" PRIu64 " is told as retired, and is not", fact->op_id);
	op->answered = true;
}

/* Within the round of its fact, only an op's own publication puts its block under its page. */
static bool published_by_op(const struct sim *sim, uint32_t block, uint32_t page)
{
	return stratum_find(&mono_sched_coord(sim->sched)->host, &sim->oracle.key[page]) == block;
}

/* The round has seen this fact.  What has retired is over; what nobody waited for is nowhere. */
static void settle(struct sim *sim, struct sim_op *op)
{
	uint32_t i;

	for (i = 0; op->kind == OP_GET && op->detached && i < op->page_count; i++) {
		if (published_by_op(sim, op->blocks[i], op->pages[i])) {
			FAIL("never-late", "op %" PRIu64 " was given up, and published page %u",
			     op->op_id, op->pages[i]);
		}
	}
	if (!op->in_doubt)
		*op = (struct sim_op){ 0 };
}

static void check_wakes(struct sim *sim)
{
	const struct mono_transfer *const transfer = mono_sched_transfer(sim->sched);
	const uint64_t                    deadline = transfer->limits.deadline_ns;
	uint32_t                          i;

	for (i = 0; i < transfer->out.wake_count; i++) {
		const struct mono_transfer_wake *const wake = &transfer->out.wakes[i];
		const struct sim_request *const        request = &sim->requests[wake->request];

		NOTE("request %" PRIu64 " wakes: %s", request->id,
		     mono_transfer_outcome_name(wake->outcome));
		sim->covers->ready += wake->outcome == MONO_TRANSFER_READY;
		sim->covers->deadlines += wake->outcome == MONO_TRANSFER_DEADLINE;
		if (!request->live || request->aborting || request->running)
			FAIL("never-late", "slot %u is woken, and does not wait", wake->request);
		if (wake->outcome == MONO_TRANSFER_READY && deadline != UINT64_MAX &&
		    sim->world.now - request->asked >= deadline) {
			FAIL("never-late", "request %" PRIu64 " got its blocks on its deadline",
			     request->id);
		}
	}
}

void check_round(struct sim *sim, const struct mono_sched_plan *plan)
{
	uint32_t i;

	check_wakes(sim);
	for (i = 0; i < plan->op_count; i++) {
		struct sim_op *const op = plan->ops[i].kind == OP_CANCEL
						  ? ledger_find(sim, plan->ops[i].op_id)
						  : NULL;

		if (op) {
			op->detached = true;
			sim->covers->detached_gets += op->kind == OP_GET;
		}
	}
	for (i = 0; i < OPS_MAX; i++) {
		if (sim->ops[i].op_id != 0 && sim->ops[i].answered)
			settle(sim, &sim->ops[i]);
	}
	for (i = 0; i < sim->options.request_max; i++)
		sim->requests[i].live &= !sim->requests[i].aborting;
	if (mono_sched_wake_ns(sim->sched) <= sim->world.now)
		FAIL("no-wait", "a request waits past its deadline");
}

/* --- every step ------------------------------------------------------------------------------- */

/* References of each Host block, counted from those who hold them. */
static void check_host_pins(struct sim *sim)
{
	const struct mono_transfer *const transfer = mono_sched_transfer(sim->sched);
	const struct stratum *const       host = &mono_sched_coord(sim->sched)->host;
	uint32_t                          refs[64] = { 0 };
	uint32_t                          i, j;

	/* D2H tickets begun since the last round are in no plan yet: nobody out here knows their blocks. */
	if (mono_sched_load(sim->sched).copies != sim->copy_count)
		return;
	KVS_ASSERT_CMP(sim->host.block_count, <=, ARRAY_COUNT(refs));
	for (i = 0; i < transfer->limits.op_credits; i++) {
		for (j = 0; j < transfer->tickets[i].block_count; j++)
			refs[transfer->tickets[i].blocks[j]]++;
	}
	for (i = 0; i < ARRAY_COUNT(sim->copying); i++) {
		for (j = 0; sim->copying[i] && j < mono_sched_copy(sim->sched, i)->pair_count; j++)
			refs[mono_sched_copy(sim->sched, i)->pairs[j].host_block]++;
	}
	for (i = 0; i < sim->host.block_count; i++) {
		const uint32_t expected = refs[i] + stratum_published(host, i);

		if (stratum_refs(host, i) != expected) {
			FAIL("one-state", "host block %u has %u pins; its holders have %u", i,
			     stratum_refs(host, i), expected);
		}
	}
}

/* Until an op has surely retired, its blocks are its own. */
static void check_open_ops(struct sim *sim)
{
	const struct stratum *const host = &mono_sched_coord(sim->sched)->host;
	uint32_t                    i, j;

	for (i = 0; i < OPS_MAX; i++) {
		const struct sim_op *const      op = &sim->ops[i];
		const struct mono_ticket *const ticket =
			op->op_id ? sim_ticket(sim, op->op_id) : NULL;

		if (op->op_id == 0 || op->kind == OP_QUERY)
			continue;
		for (j = 0; j < op->page_count; j++) {
			const uint32_t block = op->blocks[j];

			if (op->kind == OP_GET && stratum_published(host, block)) {
				FAIL("never-early",
				     "host block %u is published; op %" PRIu64 " may write it",
				     block, op->op_id);
			}
			if (!ticket || ticket->block_count != op->page_count ||
			    ticket->blocks[j] != block || stratum_refs(host, block) == 0) {
				FAIL("quarantine",
				     "host block %u is given back; op %" PRIu64 " may touch it",
				     block, op->op_id);
			}
		}
	}
	if (sim->exec.unretired_count != sim->doubts) {
		FAIL("quarantine", "the executor has %u ops in doubt; the world has %u",
		     sim->exec.unretired_count, sim->doubts);
	}
}

/* One row of every published block a step: all rows come round, and a stray write hits all of a block. */
static void check_published(struct sim *sim, const struct stratum *stratum)
{
	const uint32_t row = (uint32_t)(sim->world.step % BLOCK_ROWS);
	uint32_t       block;

	for (block = 0; block < pool_parent_count(stratum->pool); block++) {
		const void *bytes;
		const char *wrong;
		uint32_t    page;

		if (!stratum_published(stratum, block))
			continue;
		bytes = stratum->id == STRATUM_HOST ? arena_block(&sim->host, block).ptr
						    : sim_device_block(sim, block);
		page = oracle_page_in(&sim->oracle,
				      &stratum->index->entries[stratum->entry[block]].key, bytes);
		wrong = oracle_check(&sim->oracle, bytes, page, row, 1);
		if (wrong)
			FAIL("never-early", "%s", wrong);
	}
}

static void check_queries(struct sim *sim)
{
	const struct mono_transfer *const transfer = mono_sched_transfer(sim->sched);
	uint32_t                          i;

	for (i = 0; i < transfer->limits.op_credits; i++) {
		if (transfer->tickets[i].state == MONO_TICKET_QUERY &&
		    transfer->tickets[i].block_count > 0) {
			FAIL("pure-query", "op %" PRIu64 " holds blocks",
			     transfer->tickets[i].op.op_id);
		}
	}
}

void check_step(struct sim *sim)
{
	check_open_ops(sim);
	check_queries(sim);
	sim->world.invariant = "credits";
	mono_transfer_audit(mono_sched_transfer(sim->sched));
	check_health(sim, &sim->health, &sim->exec);
	check_health(sim, &sim->locker.health, &sim->locker.exec);
	check_locks(sim);
	sim->world.invariant = "bounded";
	exec_core_audit(&sim->exec);
	exec_core_audit(&sim->locker.exec);
	sim->world.invariant = "one-state";
	mono_sched_audit(sim->sched);
	check_host_pins(sim);
	check_published(sim, &mono_sched_coord(sim->sched)->host);
	check_published(sim, &mono_sched_coord(sim->sched)->device);
	sim->world.invariant = "assertion";
}

/* --- the end ---------------------------------------------------------------------------------- */

bool sim_at_rest(const struct sim *sim)
{
	const struct mono_sched_load load = mono_sched_load(sim->sched);
	uint32_t                     late = 0, i;

	for (i = 0; i < OPS_MAX; i++)
		late += sim->ops[i].op_id != 0 && (sim->ops[i].late > 0 || !sim->ops[i].silent);
	return load.requests == 0 && load.transfers == 0 && load.copies == 0 && load.backups == 0 &&
	       late == 0 && locker_at_rest(sim);
}

/* Only quarantine holds anything: credits, pins and slots are home. */
void check_rest(struct sim *sim)
{
	const struct mono_transfer *const transfer = mono_sched_transfer(sim->sched);
	const struct coord *const         coord = mono_sched_coord(sim->sched);
	uint32_t                          doubtful = 0, i;

	for (i = 0; i < OPS_MAX; i++)
		doubtful += sim->ops[i].in_doubt ? sim->ops[i].page_count : 0;
	if (transfer->host_refs != doubtful || transfer->quarantined != sim->doubts ||
	    transfer->slots.busy_count != sim->doubts || sim->exec.slots.busy_count != sim->doubts) {
		FAIL("credits",
		     "at rest %u host references and %u tickets are out; %u and %u are in doubt",
		     transfer->host_refs, transfer->slots.busy_count, doubtful, sim->doubts);
	}
	check_locks_rest(sim);
	for (i = 0; i < pool_parent_count(coord->device.pool); i++) {
		if (stratum_refs(&coord->device, i) != stratum_published(&coord->device, i))
			FAIL("locks-home", "at rest device block %u is still held", i);
	}
	for (i = 0; i < sim->options.request_max; i++) {
		if (sim->requests[i].live)
			FAIL("locks-home", "request %" PRIu64 " never ended", sim->requests[i].id);
	}
	sim->covers->standing_quarantines += sim->doubts > 0;
}
