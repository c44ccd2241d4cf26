/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first chunk: what Device and Host hold of the prompt becomes the request's, the rest of the
 * chunk gets blocks.  One that was retracted comes back in the same way, with its image behind the
 * hit.
 */
#include "sched/parts.h"

/*
 * How much of a hit is tried.  A tail's blocks are copied and so take room twice, and hit blocks
 * may lie in more parents than the limit of a request counts: one that fits exactly must be able to
 * do without.
 */
enum reach { REACH_TAILS, REACH_PAGES, REACH_NOTHING };

/* What is tried. */
struct first {
	struct cache_probe probe;
	uint32_t           bound;     /* tokens that may be restored */
	uint32_t           begin;     /* of the chunk: the hit's end, or the image's */
	uint32_t           size;
	uint32_t           tail;
	uint32_t           promotion;
	enum reach         reach;
	bool               image;
	bool               remote;
	struct demand      demands[GROUPS_MAX];
};

/* --- the hit ---------------------------------------------------------------------------------- */

uint32_t request_bound(const struct sched *sched, const struct request *request)
{
	if (request->snapshot != SLOT_NONE)
		return request->prefill - 1;
	return (uint32_t)prefix_reusable_tokens(request->prefill, sched->options.replay_tokens,
						request->retractions > 0 ? LOGITS_NONE
									 : request->logits_from);
}

static void list_tails(struct sched *sched, const struct request *request, uint32_t bound,
		       struct cache_prompt *prompt)
{
	const struct prompt      tokens = request_prompt(sched, request);
	const struct tail_search search = { .space = &sched->space, .prompt = &tokens,
					    .hashes = request->hashes,
					    .bound = bound, .reach = bound,
					    .page_max = sched->page_max };

	prompt->tails = sched->tail_list;
	prompt->tail_count =
		tails_find(storage_tails(sched), &search, sched->tail_list, sched->tail_max);
}

static void probe(struct sched *sched, struct request *request, struct first *first)
{
	struct cache_prompt prompt = { .space = &sched->space, .hashes = request->hashes };
	const bool          retracted = request->state == REQUEST_RETRACTED;

	request_hash(sched, request);
	first->bound = request_bound(sched, request);
	if ((sched->options.prefix_cache || retracted) && first->reach < REACH_NOTHING)
		prompt.page_count = first->bound / sched->options.page_tokens;
	if (sched->options.prefix_cache && !retracted && !first->remote &&
	    first->reach == REACH_TAILS)
		list_tails(sched, request, first->bound, &prompt);
	KVS_ASSERT(cache_probe(sched->cache, &prompt, first->remote ? PROBE_DECODE : PROBE_ALL,
			       &first->probe, NULL) == 0);
}

/* --- the chunk -------------------------------------------------------------------------------- */

/*
 * What a query behind the image attends to, and what is computed behind it; between hit and image:
 * holes.
 */
static struct demand image_demand(const struct group *group, uint32_t hit, uint32_t computed,
				  uint32_t end, uint32_t reserve)
{
	const uint32_t first = group_expired_blocks(group, computed);
	const uint32_t restored = hit / group->spec.block_tokens;

	if (group_is_closed(group))
		return demand_dense(end - hit, reserve);
	/* A state takes the room of its step with the step. */
	return demand_sparse(end, group->spec.kind == GROUP_STATE ? 0 : reserve,
			     first > restored ? first : restored);
}

/* Behind the image: its blocks are taken anew, and what is known behind it is computed at once. */
static bool size_image(struct sched *sched, struct request *request, uint32_t computed,
		       struct first *first)
{
	uint32_t g;

	first->image = true;
	first->begin = computed;
	first->size = request->prefill - computed;
	for (g = 0; g < groups_of(sched)->count; g++) {
		first->demands[g] = image_demand(&groups_of(sched)->group[g],
						 (uint32_t)first->probe.host_tokens, computed,
						 request->prefill, sched->options.decode_tokens);
	}
	return first->size <= sched->forward.budget;
}

static bool size_chunk(struct sched *sched, struct request *request, struct first *first)
{
	const uint32_t     hit = (uint32_t)first->probe.host_tokens;
	const uint64_t     promotion = first->probe.promotion_tokens;
	struct chunk_shape shape = { .local = true, .begin = hit, .hit = hit,
				     .prompt = request->prefill };

	first->begin = hit;
	if (promotion > hit && promotion < request->prefill)
		first->promotion = (uint32_t)promotion;
	first->size = forward_size(sched, request, hit, first->promotion, &first->tail);
	shape.tokens = first->size;
	shape.tail = first->tail;
	shape.completes = hit + first->size == request->prefill;
	shape.reserve = first->tail + forward_decode_room(sched);
	chunk_demands(groups_of(sched), &shape, first->demands);
	return first->size > 0;
}

/* All of what is not here: a peer sends it as a whole. */
static bool size_remote(struct sched *sched, struct request *request, struct first *first)
{
	const uint32_t           hit = (uint32_t)first->probe.host_tokens;
	const struct chunk_shape shape = { .begin = hit, .tokens = request->prefill - hit,
					   .hit = hit, .reserve = sched->options.decode_tokens,
					   .prompt = request->prefill, .completes = true };

	first->begin = hit;
	first->size = shape.tokens;
	chunk_demands(groups_of(sched), &shape, first->demands);
	return true;
}

static bool size(struct sched *sched, struct request *request, struct first *first)
{
	uint64_t computed = first->probe.host_tokens;

	if (first->remote)
		return size_remote(sched, request, first);
	if (request->snapshot != SLOT_NONE)
		computed = snapshot_tokens(&sched->snapshots, request->snapshot, computed);
	if (computed > first->probe.host_tokens)
		return size_image(sched, request, (uint32_t)computed, first);
	return size_chunk(sched, request, first);
}

/* --- admission -------------------------------------------------------------------------------- */

/* The hit is the request's: its copies are made, and what they bring is named already. */
static void take_hit(struct sched *sched, struct request *request, const struct first *first,
		     const struct cache_admitted *admitted)
{
	const uint32_t page = sched->options.page_tokens;
	const uint32_t here = (uint32_t)admitted->device_tokens / page;

	request->epoch = admitted->epoch;
	request->published = (uint32_t)admitted->host_tokens / page;
	why_admitted(sched, request, admitted, first->bound);
	plan_copy(sched, mover_load(&sched->mover, request_slot(sched, request), admitted->moves,
				    admitted->load_count + admitted->copy_count));
	batch_add_fresh(&sched->batcher, admitted->fresh, admitted->fresh_count);
	if (request->published > here) {
		KVS_ASSERT(cache_publish(sched->cache, request->tables, &sched->space,
					 &request->hashes[here], here, request->published - here,
					 request->epoch, CELL_CHUNK, NULL) == 0);
	}
}

static void restore_image(struct sched *sched, struct request *request, const struct first *first)
{
	uint64_t ticket;

	KVS_ASSERT(snapshot_restore(&sched->snapshots, request->snapshot, request->tables,
				    first->probe.host_tokens, &ticket, NULL) == 0);
	request->snapshot = SLOT_NONE;
	plan_copy(sched, ticket);
}

static bool ends_in_tail(const struct first *first)
{
	return first->probe.tail_entry != SLOT_NONE;
}

static enum planned take(struct sched *sched, struct request *request, const struct first *first)
{
	const struct cache_admission admission = { .tables = request->tables,
						   .demands = first->demands,
						   .probe = &first->probe,
						   .completed = { .computed = COMPUTED_NONE } };
	struct cache_admitted        admitted;
	const int                    rc = cache_admit(sched->cache, &admission, &admitted, NULL);

	if (rc < 0) {
		KVS_ASSERT(rc == KVS_E_FULL);
		if (!ends_in_tail(first))
			forward_no_room(sched, request, &admission);
		return PLAN_NO_ROOM;
	}
	place_take(sched, request);
	take_hit(sched, request, first, &admitted);
	if (first->image)
		restore_image(sched, request, first);
	request->promotion = first->promotion;
	request->tail = first->tail;
	request->fence = fence_of(sched, request);
	if (first->remote)
		forward_remote(sched, request, first->begin);
	else
		forward_prefilled(sched, request, first->begin, first->size);
	return PLANNED;
}

/* Nobody will ever give back a block: what fits now is all that will. */
static bool is_alone(const struct sched *sched)
{
	return sched->forward.row_count == 0 && sched->lists[REQUEST_PREFILLING].count == 0 &&
	       sched->lists[REQUEST_PREFILL_DONE].count == 0 &&
	       sched->lists[REQUEST_DECODING].count == 0 &&
	       mover_loading(&sched->mover) + mover_saving(&sched->mover) == 0;
}

static enum planned attempt(struct sched *sched, struct request *request, struct first *first)
{
	first->remote = sched->options.role == SCHED_DECODE && request->state == REQUEST_SUBMITTED;
	probe(sched, request, first);
	return size(sched, request, first) ? take(sched, request, first) : PLAN_LATER;
}

enum planned admit_first(struct sched *sched, struct request *request)
{
	/* A hit's, and an image's. */
	const uint32_t tickets = request->snapshot == SLOT_NONE ? 1 : 2;
	struct first   first = { .reach = REACH_TAILS };
	enum planned   planned;

	if (sched->mover.load_ticket_max - mover_loading(&sched->mover) < tickets)
		return PLAN_LATER;
	if (request->snapshot != SLOT_NONE &&
	    !snapshot_is_ready(&sched->snapshots, request->snapshot))
		return PLAN_LATER;
	if (!place_lend(sched, request))
		return PLAN_LATER;
	if (sched->cramped && is_alone(sched))
		sched->cramped = !cache_clear_device(sched->cache);
	planned = attempt(sched, request, &first);
	if (planned == PLAN_NO_ROOM && ends_in_tail(&first)) {
		first = (struct first){ .reach = REACH_PAGES };
		planned = attempt(sched, request, &first);
	}
	if (planned == PLAN_NO_ROOM && first.probe.host_tokens > 0 && is_alone(sched)) {
		first = (struct first){ .reach = REACH_NOTHING };
		planned = attempt(sched, request, &first);
	}
	if (planned != PLANNED)
		request->tables = NULL;
	return planned;
}
