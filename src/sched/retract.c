/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retraction: when nothing at all could be planned for want of room, one request gives up its
 * blocks.
 *
 * With a Host its prefix and its image go there, and it comes back where it stood.  Without, it
 * begins anew, and nobody who has not begun is let in until those that compute have ended:
 * otherwise two requests could push each other out for ever.
 */
#include <string.h>

#include "sched/parts.h"

/* --- giving up -------------------------------------------------------------------------------- */

/* Everything that is known counts as the prompt when it comes back. */
static void rebase(struct request *request)
{
	request->prefill = request->token_count;
	request->retractions++;
}

void retract_image(struct sched *sched, struct request *request)
{
	/*
	 * No forward is under way: all but the last one sampled has its cache, in every group
	 * exactly.
	 */
	const uint32_t          computed = request->token_count - 1;
	const uint32_t          pages = computed / sched->options.page_tokens;
	const struct retraction retraction = {
		.request = request_slot(sched, request),
		.tables = request->tables,
		.completed = { .space = &sched->space, .hashes = request->hashes,
			       .page_count = pages,
			       .new_begin = request->published < pages ? request->published : pages,
			       .kind = request->published < pages ? CELL_CHUNK : CELL_NONE,
			       .computed = computed },
		.epoch = request->epoch,
	};
	struct retracted retracted = { .snapshot = SLOT_NONE };

	request_hash(sched, request);
	if (sched->options.host_parents == 0) {
		rebase(request);
		return;
	}
	if (sched->options.snapshot_max > 0) {
		KVS_ASSERT(snapshot_retract(&sched->snapshots, &retraction, &retracted, NULL) == 0);
	} else {
		KVS_ASSERT(cache_advance(sched->cache, request->tables, &retraction.completed,
					 request->epoch, NULL) == 0);
		retracted.save_ticket = mover_save_prefix(&sched->mover, &sched->space,
							  request->hashes, pages);
	}
	plan_copy(sched, retracted.save_ticket);
	plan_copy(sched, retracted.stash_ticket);
	request->snapshot = retracted.snapshot;
	rebase(request);
}

void retract_release(struct sched *sched, struct request *request)
{
	(void)sched;
	rebase(request);
}

void retract_drop_image(struct sched *sched, struct request *request)
{
	if (request->snapshot == SLOT_NONE)
		return;
	snapshot_drop(&sched->snapshots, request->snapshot);
	request->snapshot = SLOT_NONE;
}

/* --- who -------------------------------------------------------------------------------------- */

/* Its tables may still be read by a forward, or be filled by a load: then nobody is retracted. */
static bool is_busy(const struct sched *sched)
{
	static const enum request_state states[] = { REQUEST_PREFILL_DONE, REQUEST_DECODING };
	uint32_t                        i, slot;

	if (mover_loading(&sched->mover) > 0)
		return true;
	for (i = 0; i < ARRAY_COUNT(states); i++) {
		for (slot = sched->lists[states[i]].head; slot != SLOT_NONE;
		     slot = sched->links[slot].next) {
			if (sched->requests[slot].pending > 0)
				return true;
		}
	}
	return false;
}

/* The one with the most tokens, by id where they are as many. */
static bool is_better(const struct request *request, const struct request *than)
{
	if (!than || request->token_count != than->token_count)
		return !than || request->token_count > than->token_count;
	return strcmp(request->id, than->id) < 0;
}

static bool is_shorter(const struct request *request, const struct request *than)
{
	if (request->token_count != than->token_count)
		return request->token_count < than->token_count;
	return strcmp(request->id, than->id) < 0;
}

static struct request *largest(struct sched *sched)
{
	static const enum request_state states[] = { REQUEST_PREFILL_DONE, REQUEST_DECODING };
	struct request                 *best = NULL;
	uint32_t                        i, slot;

	for (i = 0; i < ARRAY_COUNT(states); i++) {
		for (slot = sched->lists[states[i]].head; slot != SLOT_NONE;
		     slot = sched->links[slot].next) {
			if (is_better(&sched->requests[slot], best))
				best = &sched->requests[slot];
		}
	}
	return best;
}

/* The one that frees most, then the one that is least work to bring back. */
static struct request *cheapest(struct sched *sched, enum request_state state)
{
	struct request *best = NULL;
	uint32_t        best_parents = 0;
	uint32_t        slot;

	for (slot = sched->lists[state].head; slot != SLOT_NONE; slot = sched->links[slot].next) {
		struct request *const request = &sched->requests[slot];
		const uint32_t        parents = cache_releasable(sched->cache, &request->tables, 1);

		if (best && (parents < best_parents ||
			     (parents == best_parents && !is_shorter(request, best))))
			continue;
		best = request;
		best_parents = parents;
	}
	return best;
}

/*
 * Who is served before anybody comes back: the one that found no room, or the next that waits for
 * some.
 */
static uint32_t find_barrier(struct sched *sched, const struct request *victim)
{
	uint32_t slot = sched->forward.blocked;

	/* One that comes back is in front of the victim as it is. */
	if (sched->requests[slot].state == REQUEST_RETRACTED)
		return SLOT_NONE;
	if (&sched->requests[slot] != victim)
		return slot;
	order_fill(sched);
	while ((slot = order_pop(sched)) != SLOT_NONE) {
		const enum request_state state = sched->requests[slot].state;

		if (state == REQUEST_SUBMITTED || state == REQUEST_PREFILLING)
			break;
	}
	return slot;
}

/* The one that computes, when it is the only one, and nothing is copied; NULL. */
static struct request *lone(struct sched *sched)
{
	static const enum request_state states[] = { REQUEST_PREFILLING, REQUEST_PREFILL_DONE,
						     REQUEST_DECODING };
	struct request                 *request = NULL;
	uint32_t                        count = 0;
	uint32_t                        i;

	for (i = 0; i < ARRAY_COUNT(states); i++) {
		count += sched->lists[states[i]].count;
		if (sched->lists[states[i]].count > 0)
			request = &sched->requests[sched->lists[states[i]].head];
	}
	if (count != 1 || mover_loading(&sched->mover) + mover_saving(&sched->mover) > 0)
		return NULL;
	return request;
}

/*
 * Alone it fits, but for the parents: its blocks lie in many that others left full of names, and
 * what is free in those is of no use to another group.  From an empty Device it fits for certain.
 */
static bool restart_alone(struct sched *sched)
{
	struct request *const request = lone(sched);

	if (!request)
		return false;
	sched->cramped = true;
	if (request->state != REQUEST_PREFILLING || request->remote)
		return false;
	request_step(sched, request, REQUEST_ON_RESTART);
	return true;
}

void retract_for_room(struct sched *sched)
{
	const bool      decode = sched->options.role == SCHED_DECODE;
	struct request *victim;

	if (sched->forward.behind_saves || is_busy(sched) || restart_alone(sched) ||
	    sched->options.role == SCHED_PREFILL)
		return;
	victim = decode ? cheapest(sched, REQUEST_DECODING) : largest(sched);
	/* Prompts that have landed can block each other before anybody decodes. */
	if (!victim && decode)
		victim = cheapest(sched, REQUEST_PREFILL_DONE);
	if (!victim)
		return;
	if (decode) {
		const uint32_t barrier = find_barrier(sched, victim);

		request_step(sched, victim, REQUEST_ON_RETRACT);
		sched->barrier = barrier;
		return;
	}
	if (sched->options.host_parents > 0 && victim->state == REQUEST_DECODING) {
		request_step(sched, victim, REQUEST_ON_RETRACT);
		return;
	}
	request_step(sched, victim, REQUEST_ON_RELEASE);
	sched->draining = sched->options.host_parents == 0;
}
