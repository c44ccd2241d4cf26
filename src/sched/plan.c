/* SPDX-License-Identifier: Apache-2.0 */
/* The loop head: what has happened is applied first, then the next round is planned. */
#include <string.h>

#include "sched/parts.h"

void plan_copy(struct sched *sched, uint64_t ticket)
{
	if (ticket == 0)
		return;
	KVS_ASSERT_CMP(sched->copy_count, <,
		       sched->mover.save_ticket_max + sched->mover.load_ticket_max);
	sched->copies[sched->copy_count++] = ticket;
}

/* --- what has happened ------------------------------------------------------------------------ */

static void tell_end(struct sched *sched, struct request *request)
{
	struct sched_result *const result = &sched->ended[sched->ended_count++];

	*result = (struct sched_result){ .end = request->end,
					 .token_count = request->token_count,
					 .retractions = request->retractions,
					 .admitted = request->admitted,
					 .explanation = request->explanation };
	memcpy(result->id, request->id, sizeof(result->id));
}

static void erase_finished(struct sched *sched)
{
	uint32_t slot;

	sched->ended_count = 0;
	while ((slot = sched->lists[REQUEST_FINISHED].head) != SLOT_NONE) {
		struct request *const request = &sched->requests[slot];

		tell_end(sched, request);
		request_step(sched, request, REQUEST_ON_ERASE);
		map_remove(&sched->ids, map_hash(&sched->ids, request->id), slot);
		slots_release(&sched->slots, slot);
	}
}

/* The names of a save; its rows are gone once it is done. */
static uint32_t list_names(struct sched *sched, const struct mover_ticket *ticket)
{
	uint32_t count = 0;
	uint32_t row;

	if (!sched->transfer || !ticket || ticket->kind != TICKET_SAVE)
		return 0;
	MOVER_ROWS(&sched->mover, ticket, row)
		sched->saved[count++] = sched->mover.rows[row].name;
	return count;
}

static void apply_copy(struct sched *sched, uint64_t id)
{
	const uint32_t count = list_names(sched, mover_find(&sched->mover, id));
	uint32_t       i;

	mover_done(&sched->mover, id);
	for (i = 0; i < count; i++) {
		const struct cell_name name = candidate_name(&sched->saved[i]);

		storage_published(sched, &name);
		storage_offer(sched, &name);
	}
}

/* --- the plan --------------------------------------------------------------------------------- */

static bool nobody_computes(const struct sched *sched)
{
	return sched->lists[REQUEST_PREFILLING].count + sched->lists[REQUEST_PREFILL_DONE].count +
		       sched->lists[REQUEST_DECODING].count == 0;
}

static void build(struct sched *sched)
{
	if (nobody_computes(sched))
		sched->draining = false;
	forward_build(sched);
	if (sched->forward.row_count == 0 && sched->forward.no_room)
		retract_for_room(sched);
}

void sched_next(struct sched *sched, const struct tick *tick, const struct sched_plan **ret_plan)
{
	uint32_t i;

	sched->now_ns = tick->now_ns;
	sched->copy_count = 0;
	sched->forward = (struct forward){ .budget = sched->options.chunk_tokens,
					   .blocked = SLOT_NONE };
	storage_begin(sched);
	erase_finished(sched);
	storage_tick(sched, tick);
	for (i = 0; i < tick->copy_count; i++)
		apply_copy(sched, tick->copies[i]);
	storage_wake(sched);
	storage_prepare(sched, tick);
	batch_begin(&sched->batcher);
	if (tick->permits.forward)
		build(sched);
	/* A DECODE rank's candidates are those of retractions that found no place. */
	if (sched->options.host_parents > 0)
		plan_copy(sched, mover_drain(&sched->mover));
	sched->plan = (struct sched_plan){ .forward = batch_end(&sched->batcher),
					   .copies = sched->copies, .copy_count = sched->copy_count,
					   .ended = sched->ended,
					   .ended_count = sched->ended_count };
	storage_outputs(sched);
	*ret_plan = &sched->plan;
}
