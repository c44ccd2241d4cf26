/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants, by their names in docs/ARCHITECTURE.md: from the ledger's view and the rooms' own
 * audits.
 *
 * The rooms are looked into, never asked: what they say of themselves is compared with what the
 * world did.
 */
#include <string.h>

#include "sim.h"

bool is_same_load(const struct sched_load *before, const struct sched *sched)
{
	const struct sched_load now = sched_load(sched);

	return before->bootstrapping == now.bootstrapping && before->submitted == now.submitted &&
	       before->prefetching == now.prefetching && before->prefilling == now.prefilling &&
	       before->prefill_done == now.prefill_done && before->decoding == now.decoding &&
	       before->retracted == now.retracted && before->candidates == now.candidates &&
	       before->saving == now.saving && before->loading == now.loading &&
	       before->transfer.tickets == now.transfer.tickets &&
	       before->transfer.ready == now.transfer.ready &&
	       before->transfer.host_refs == now.transfer.host_refs &&
	       before->transfer.backups == now.transfer.backups &&
	       before->transfer.negatives == now.transfer.negatives;
}

/* --- bytes ------------------------------------------------------------------------------------ */

void check_key(struct sim *sim, const char *invariant, const struct kvs_key *key, const void *bytes)
{
	struct content content = { .version = oracle_version(&key->space), .group = key->group,
				   .offset = key->offset, .replica = key->replica };
	const char    *wrong;

	if (content.version == VERSIONS || !oracle_find(key->hash, &content.prefix))
		FAIL(invariant, "an object of no prefix");
	wrong = shape_check(&sim->shape, &content, bytes);
	if (wrong)
		FAIL(invariant, "%s", wrong);
}

/* What a cell of the index holds in a stratum, on one rank. */
static void check_cell(struct sim *sim, uint32_t rank, enum stratum_id stratum,
		       const struct page_entry *entry, uint32_t column, uint32_t block)
{
	const struct groups *const groups = &sim->shape.groups;
	const uint32_t             g = groups->column_group[column];
	const struct owner *const  owner = &sim->ranks[rank].owner;
	struct content             content = { .version = oracle_version(&entry->name.space),
					       .group = g,
					       .offset = column - groups->group[g].first_column,
					       .replica = owner_replica(owner, g) };
	const uint8_t             *bytes;
	const char                *wrong;

	if (stratum == STRATUM_DEVICE && mover_fence(sched_mover(sim->ranks[rank].sched), g, block))
		return;
	bytes = stratum == STRATUM_HOST ? host_block(sim, rank, g, block)
					: device_block(sim, rank, g, block);
	if (!bytes)
		return;
	if (content.version != sim->version || !oracle_find(entry->name.hash.byte, &content.prefix))
		FAIL("never-early", "a page of no prefix is published");
	wrong = shape_check(&sim->shape, &content, bytes);
	if (wrong) {
		FAIL("never-early", "rank %u, %s, block %u: %s", rank,
		     stratum == STRATUM_HOST ? "host" : "device", block, wrong);
	}
}

/* Every published block holds what its name says. */
static void check_published(struct sim *sim, uint32_t rank, enum stratum_id stratum)
{
	const struct pages *const pages = cache_pages(sched_cache(sim->ranks[rank].sched));
	uint32_t                  entry;

	SLOTS_EACH(&pages->slots, entry) {
		const struct page_entry *const at = &pages->entries[entry];
		uint64_t                       held = at->held[stratum];

		for (; held != 0; held &= held - 1) {
			const uint32_t column = (uint32_t)__builtin_ctzll(held);

			check_cell(sim, rank, stratum, at, column,
				   pages_block(pages, pages_cell(pages, entry, column), stratum));
		}
	}
}

/* --- a round ---------------------------------------------------------------------------------- */

/* Within the round of its fact, only an op's own publication puts its block under its name. */
static bool published_by_op(const struct sim *sim, const struct sim_op *op, uint32_t i)
{
	const struct oracle *const  oracle = oracle_get();
	const struct sim_row *const row = &op->rows[i];
	const struct cell_name      name = {
		&oracle->space[row->version],
		&oracle->hash[row->prefix.page][row->prefix.count - 1], row->group, row->offset
	};

	return cache_find(sched_cache(sim->ranks[0].sched), STRATUM_HOST, &name) == row->block;
}

static void count_get(struct sim *sim, const struct sim_op *op)
{
	uint32_t i;

	for (i = 0; i < op->row_count; i++) {
		const struct sim_row *const row = &op->rows[i];

		if (!published_by_op(sim, op, i))
			continue;
		sim->covers->cyclic_gets += is_cyclic(sim, row->group);
		sim->covers->tail_gets += row->prefix.count < PAGE_TOKENS;
		sim->covers->state_gets += sim->shape.specs[row->group].kind == GROUP_STATE;
		sim->covers->window_gets += sim->shape.specs[row->group].kind == GROUP_WINDOW;
	}
}

/* The round has seen this fact.  What has retired is over; what nobody waited for is nowhere. */
static void settle(struct sim *sim, struct sim_op *op)
{
	const bool is_late = op->detached || sim->tick.now_ns >= op->deadline_ns;
	uint32_t   i;

	if (op->kind == OP_GET && is_late) {
		for (i = 0; i < op->row_count; i++) {
			if (published_by_op(sim, op, i)) {
				FAIL("never-late",
				     "op %" PRIu64 " was given up, and published row %u", op->op_id,
				     i);
			}
		}
	} else if (op->kind == OP_GET) {
		count_get(sim, op);
	}
	if (op->doubted)
		return;
	op->op_id = 0;
	for (i = 0; i < RANKS_MAX; i++)
		op->parts[i].answered = false;
}

/* Whoever waits for storage, waits no longer than to the deadline, whatever becomes of the op. */
static void check_waits(struct sim *sim)
{
	const struct transfer *const transfer = sched_transfer(sim->ranks[0].sched);
	uint32_t                     i;

	for (i = 0; i < OPS_MAX; i++) {
		const struct sim_op *const op = &sim->ops[i];
		struct ticket_view         view;

		if (op->op_id == 0 || op->dropped || !transfer_find(transfer, op->op_id))
			continue;
		view = ticket_view(transfer_find(transfer, op->op_id));
		if ((view.state == TICKET_QUERY || view.state == TICKET_GET) &&
		    (view.deadline_ns <= sim->tick.now_ns || op->deadline_ns <= sim->tick.now_ns)) {
			FAIL("no-wait", "a request waits for op %" PRIu64 " past its deadline",
			     op->op_id);
		}
	}
}

static void check_wakes(struct sim *sim)
{
	const struct transfer *const   transfer = sched_transfer(sim->ranks[0].sched);
	const struct transfer_outputs *out;
	uint32_t                       i;

	if (!transfer)
		return;
	out = transfer_out(transfer);
	for (i = 0; i < out->wake_count; i++) {
		NOTE("wake: %s", read_outcome_name(out->wakes[i].outcome));
		sim->covers->ready += out->wakes[i].outcome == READ_READY;
		sim->covers->deadlines += out->wakes[i].outcome == READ_DEADLINE;
		sim->covers->gate_closures += out->wakes[i].outcome == READ_PRESSURE;
	}
}

static void count_copies(struct sim *sim, const struct sched_plan *plan)
{
	const struct mover *const mover = sched_mover(sim->ranks[0].sched);
	uint32_t                  i, row;

	for (i = 0; i < plan->copy_count; i++) {
		const struct mover_ticket *const ticket = mover_find(mover, plan->copies[i]);

		NOTE("copy %" PRIu64 ": kind %d, %u rows", ticket->id, (int)ticket->kind,
		     ticket->rows.count);
		sim->covers->saves += ticket->kind == TICKET_SAVE;
		sim->covers->loads += ticket_is_load(ticket->kind);
		sim->covers->stashes += ticket->kind == TICKET_STASH;
		MOVER_ROWS(mover, ticket, row)
			sim->covers->clones += mover->rows[row].path == COPY_DEVICE_TO_DEVICE;
	}
}

void check_round(struct sim *sim)
{
	const struct sched_plan *const plan = sim->ranks[0].plan;
	uint32_t                       i;

	check_wakes(sim);
	count_copies(sim, plan);
	for (i = 0; i < plan->op_count; i++) {
		struct sim_op *const op = plan->ops[i].kind == OP_CANCEL
						  ? ledger_find(sim, plan->ops[i].op_id)
						  : NULL;

		if (op) {
			op->detached = true;
			sim->covers->detached_gets += op->kind == OP_GET;
		} else if (plan->ops[i].kind != OP_CANCEL &&
			   (ledger_doubts(sim) > 0 || !sim->tick.permits.storage)) {
			FAIL(ledger_doubts(sim) > 0 ? "quarantine" : "no-wait",
			     "op %" PRIu64 " is begun, and may not be", plan->ops[i].op_id);
		}
	}
	if (!sim->tick.permits.forward && plan->forward.row_count > 0)
		FAIL("no-wait", "a forward is planned, and may not be");
	for (i = 0; i < OPS_MAX; i++) {
		if (sim->ops[i].op_id != 0 && !sim->ops[i].dropped && sim->ops[i].agreed)
			settle(sim, &sim->ops[i]);
	}
	check_waits(sim);
}

/* --- every step, every round ------------------------------------------------------------------ */

void check_audits(struct sim *sim)
{
	uint32_t rank;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		struct sim_rank *const of = &sim->ranks[rank];

		check_open_ops(sim, rank);
		sim->world.invariant = "credits";
		if (sched_transfer(of->sched))
			transfer_audit(sched_transfer(of->sched));
		check_credits(sim, rank);
		sim->world.invariant = "bounded";
		exec_core_audit(&of->exec);
		agree_audit(of->agree);
		sim->world.invariant = "one-state";
		if ((sim->round + rank) % sim->shape.ranks == 0) {
			sched_audit(of->sched);
			check_pins(sim, rank);
		}
		sim->world.invariant = "assertion";
		check_published(sim, rank, STRATUM_HOST);
		/* A forward under way may not have written what the next one counts on. */
		if (sim->forwards == 0 && sim->work_count == 0)
			check_published(sim, rank, STRATUM_DEVICE);
	}
	check_locks(sim);
}

void check_step(struct sim *sim)
{
	const uint32_t rank = (uint32_t)(sim->world.step % sim->shape.ranks);

	check_open_ops(sim, rank);
	check_health(sim, &sim->ranks[rank].health, &sim->ranks[rank].exec);
	check_health(sim, &sim->locker.health, &sim->locker.exec);
	sim->world.invariant = "bounded";
	exec_core_audit(&sim->locker.exec);
	sim->world.invariant = "assertion";
}

/* --- the end ---------------------------------------------------------------------------------- */

bool sim_at_rest(struct sim *sim)
{
	const struct sched_load load = sched_load(sim->ranks[0].sched);
	uint32_t                i, rank;

	for (i = 0; i < REQUESTS_MAX; i++) {
		if (sim->requests[i].live)
			return false;
	}
	for (i = 0; i < OPS_MAX; i++) {
		for (rank = 0; sim->ops[i].op_id != 0 && rank < sim->shape.ranks; rank++) {
			const struct sim_part *const part = &sim->ops[i].parts[rank];

			if (part->late > 0 || part->running || (part->in_doubt && !part->silent))
				return false;
		}
	}
	return load.transfer.tickets == load.transfer.quarantined && load.saving + load.loading == 0 &&
	       (load.transfer.backups == 0 || load.transfer.quarantined > 0) && sim->work_count == 0 &&
	       locker_at_rest(sim);
}

static void check_rank_rest(struct sim *sim, uint32_t rank)
{
	struct sim_rank *const     of = &sim->ranks[rank];
	const struct transfer_load load = sched_load(of->sched).transfer;
	const uint32_t             doubts = ledger_doubts(sim);
	const struct holds         holds = count_holds(sim);
	struct kvs_error           error;

	if (load.quarantined != doubts || load.tickets != doubts || load.host_refs != holds.blocks) {
		FAIL("credits", "at rest %u tickets are in doubt; the world has %u", load.tickets,
		     doubts);
	}
	if (of->exec.slots.busy_count != of->doubts) {
		FAIL("locks-home", "at rest the executor of rank %u has %u jobs", rank,
		     of->exec.slots.busy_count);
	}
	if (agree_open_count(of->agree) != doubts) {
		FAIL("locks-home", "at rest rank %u expects %u reports", rank,
		     agree_open_count(of->agree));
	}
	if (count_pins(sim, rank, STRATUM_DEVICE) > 0 ||
	    count_pins(sim, rank, STRATUM_HOST) != holds.blocks)
		FAIL("locks-home", "at rest blocks are held on rank %u", rank);
	if ((sched_clear(of->sched, &oracle_get()->space[sim->version], &error) == 0) != (doubts == 0))
		FAIL("locks-home", "at rest a clear says: %s", error.message);
}

/* Only quarantine holds anything: credits, pins and slots are home. */
void check_rest(struct sim *sim)
{
	uint32_t rank;

	check_audits(sim);
	check_locks_rest(sim);
	for (rank = 0; rank < sim->shape.ranks; rank++)
		check_rank_rest(sim, rank);
	sim->covers->standing_quarantines += ledger_doubts(sim) > 0;
}
