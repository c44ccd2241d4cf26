/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A forward is built of candidates in their order: later chunks, decode steps, and the loop over
 * all.
 */
#include "sched/parts.h"

/* --- rows ------------------------------------------------------------------------------------- */

static void add_row(struct sched *sched, struct request *request, enum batch_kind kind,
		    uint32_t begin, uint32_t token_count)
{
	const struct batch_row row = {
		.id = request->id,
		.kind = kind,
		.place = request->place,
		.begin = begin,
		.token_count = token_count,
		.tokens = kind == BATCH_DECODE ? NULL : request->tokens + begin,
		.ends_prompt = kind == BATCH_PREFILL && begin + token_count == request->prefill,
		.fence = request->fence,
	};
	const struct table *tables[GROUPS_MAX];
	uint32_t            g;

	for (g = 0; g < groups_of(sched)->count; g++)
		tables[g] = &request->tables[g];
	batch_add(&sched->batcher, &row, tables);
	sched->forward.row_count++;
	sched->forward.kind = kind;
}

uint32_t forward_decode_room(const struct sched *sched)
{
	return sched->options.role == SCHED_PREFILL ? 0 : sched->options.decode_tokens;
}

void forward_prefilled(struct sched *sched, struct request *request, uint32_t begin,
		       uint32_t token_count)
{
	const bool completes = begin + token_count == request->prefill;

	request->computed = begin + token_count;
	request_step(sched, request, completes ? REQUEST_ON_LAST_CHUNK : REQUEST_ON_CHUNK);
	add_row(sched, request, BATCH_PREFILL, begin, token_count);
	sched->forward.budget -= token_count;
	sched->forward.prefills++;
	request->pending += completes;
}

void forward_remote(struct sched *sched, struct request *request, uint32_t begin)
{
	request->remote = true;
	request->computed = begin;
	request_step(sched, request, REQUEST_ON_CHUNK);
	add_row(sched, request, BATCH_REMOTE, begin, request->prefill - begin);
	sched->forward.prefills++;
}

void forward_no_room(struct sched *sched, const struct request *request,
		     const struct cache_admission *admission)
{
	struct forward *const           forward = &sched->forward;
	uint32_t                        count;
	const struct cache_block *const released = mover_sources(&sched->mover, &count);

	if (!forward->no_room)
		forward->blocked = request_slot(sched, request);
	forward->no_room = true;
	if (count > 0 && cache_can_admit(sched->cache, admission, released, count))
		forward->behind_saves = true;
}

/* Names may have put other blocks into slots, and those may be under way. */
static void renew_fence(struct sched *sched, struct request *request, bool published)
{
	if (published)
		request->fence = fence_of(sched, request);
	else if (request->fence > 0 && !mover_find(&sched->mover, request->fence))
		request->fence = 0;
}

static enum planned admit_more(struct sched *sched, struct request *request,
			       const struct demand *demands)
{
	const struct cache_admission admission = {
		.tables = request->tables, .demands = demands,
		.completed = completed_of(sched, request, request->computed),
		.epoch = request->epoch
	};
	struct cache_admitted        admitted;
	const int                    rc = cache_admit(sched->cache, &admission, &admitted, NULL);

	if (rc < 0) {
		KVS_ASSERT(rc == KVS_E_FULL);
		forward_no_room(sched, request, &admission);
		return PLAN_NO_ROOM;
	}
	completed_note(request, &admission.completed);
	batch_add_fresh(&sched->batcher, admitted.fresh, admitted.fresh_count);
	renew_fence(sched, request, admission.completed.kind != CELL_NONE);
	return PLANNED;
}

/* --- later chunks ----------------------------------------------------------------------------- */

uint32_t forward_size(const struct sched *sched, const struct request *request, uint32_t first,
		      uint32_t promotion, uint32_t *ret_tail)
{
	const struct sched_options *const options = &sched->options;
	const struct chunk_ask            ask = { .first = first,
						  .unscheduled = request->prefill - first,
						  .budget = sched->forward.budget,
						  .page_tokens = options->page_tokens,
						  .promotion = promotion };
	/* With chunks of less than a page a boundary would never be reached by whole pages. */
	const bool aligned = sched->has_state ||
			     (promotion > first && options->chunk_tokens >= options->page_tokens);
	uint32_t   size = ask.unscheduled < ask.budget ? ask.unscheduled : ask.budget;

	*ret_tail = 0;
	if (!aligned)
		return size;
	size = chunk_align(&ask);
	if (size > 0 && sched->has_state && options->prefix_cache && options->role != SCHED_DECODE)
		*ret_tail = chunk_final_tail(&ask, size);
	return size - *ret_tail;
}

/* The room of a tail was taken with the body. */
static bool shape_tail(const struct sched *sched, const struct request *request,
		       struct chunk_shape *ret_shape)
{
	*ret_shape = (struct chunk_shape){ .local = true, .decode = true, .begin = request->computed,
					   .tokens = request->tail };
	return request->tail <= sched->forward.budget;
}

static bool shape_chunk(const struct sched *sched, const struct request *request,
			struct chunk_shape *ret_shape)
{
	struct chunk_shape shape = { .local = true, .begin = request->computed,
				     .hit = request->computed, .prompt = request->prefill };

	shape.tokens =
		forward_size(sched, request, request->computed, request->promotion, &shape.tail);
	shape.completes = shape.begin + shape.tokens == request->prefill;
	shape.reserve = shape.tail + forward_decode_room(sched);
	*ret_shape = shape;
	return shape.tokens > 0;
}

enum planned forward_chunk(struct sched *sched, struct request *request)
{
	struct demand      demands[GROUPS_MAX];
	struct chunk_shape shape;
	enum planned       planned;

	if (!(request->tail > 0 ? shape_tail(sched, request, &shape)
				: shape_chunk(sched, request, &shape)))
		return PLAN_LATER;
	chunk_demands(groups_of(sched), &shape, demands);
	planned = admit_more(sched, request, demands);
	if (planned != PLANNED)
		return planned;
	request->tail = shape.tail;
	forward_prefilled(sched, request, shape.begin, shape.tokens);
	return PLANNED;
}

/* --- decode ----------------------------------------------------------------------------------- */

/*
 * Tokens of room that a step may need: a forward whose tokens have not come gives up to D of them,
 * but the one that ends a prompt gives one.
 */
static uint64_t decode_end(const struct sched *sched, const struct request *request)
{
	const uint32_t step = sched->options.decode_tokens;
	uint64_t       ahead = (uint64_t)request->pending * step;
	uint64_t       end;

	if (request->pending > 0 && request->token_count == request->prefill)
		ahead -= step - 1;
	end = request->token_count - 1 + ahead +
	      (request->reserve > step ? request->reserve : step);
	return end < sched->table_tokens ? end : sched->table_tokens;
}

/* A step that needs no block and completes nothing: only the tables' ends move. */
static bool is_quick(const struct sched *sched, const struct request *request, uint32_t tokens)
{
	uint32_t g;

	if (sched->options.prefix_cache &&
	    request->computed / sched->options.page_tokens > request->published)
		return false;
	for (g = 0; g < groups_of(sched)->count; g++) {
		const struct table *const table = &request->tables[g];

		if (tokens > table->available ||
		    table_expired(table, &groups_of(sched)->group[g], request->computed) >
			    table->reclaimed)
			return false;
	}
	return true;
}

static enum planned admit_step(struct sched *sched, struct request *request, uint32_t tokens)
{
	const struct chunk_shape shape = { .local = true, .decode = true, .tokens = tokens };
	struct demand            demands[GROUPS_MAX];
	uint32_t                 g;

	if (is_quick(sched, request, tokens)) {
		for (g = 0; g < groups_of(sched)->count; g++) {
			KVS_ASSERT(table_consume(&request->tables[g], &groups_of(sched)->group[g],
						 tokens, NULL) == 0);
		}
		renew_fence(sched, request, false);
		return PLANNED;
	}
	chunk_demands(groups_of(sched), &shape, demands);
	return admit_more(sched, request, demands);
}

/*
 * Decodes beside prefills leave the pending one a page, for with a state it goes by pages; where a
 * forward has no room for both, they go first.
 */
static bool has_budget(const struct sched *sched)
{
	const struct sched_options *const options = &sched->options;
	const bool pending = sched->lists[REQUEST_PREFILLING].count > 0 ||
			     (sched->lists[REQUEST_SUBMITTED].count > 0 && sched->places.count > 0);
	uint32_t   need = options->decode_tokens;

	if (options->role != SCHED_FUSED)
		return true;
	if (options->mixed && sched->has_state && pending && sched->forward.prefills == 0 &&
	    options->chunk_tokens >= options->page_tokens + need)
		need += options->page_tokens;
	return need <= sched->forward.budget;
}

uint32_t forward_computed(const struct sched *sched, const struct request *request)
{
	const uint32_t step = sched->options.decode_tokens;

	if (request->state == REQUEST_DECODING && request->token_count > request->computed + step)
		return request->token_count - step;
	return request->computed;
}

enum planned forward_decode(struct sched *sched, struct request *request)
{
	const uint32_t step = sched->options.decode_tokens;
	const uint32_t begin = request->token_count - 1 + request->pending;
	uint64_t       end, have;
	enum planned   planned;

	if (request->pending > sched->options.overlap_depth || !has_budget(sched) ||
	    begin + step > sched->table_tokens)
		return PLAN_LATER;
	request->computed = forward_computed(sched, request);
	end = decode_end(sched, request);
	have = table_end(&request->tables[0], &groups_of(sched)->group[0]);
	planned = admit_step(sched, request, end > have ? (uint32_t)(end - have) : 0);
	if (planned != PLANNED)
		return planned;
	request_step(sched, request, REQUEST_ON_DECODE);
	add_row(sched, request, BATCH_DECODE, begin, step);
	if (sched->options.role == SCHED_FUSED)
		sched->forward.budget -= step;
	request->reserve = 0;
	request->pending++;
	return PLANNED;
}

/* --- the loop --------------------------------------------------------------------------------- */

/*
 * A prompt that is under way, but for a tail that is provided for, stays at the head of the line.
 */
static bool may_go_on(const struct request *request)
{
	return request->state != REQUEST_PREFILLING || request->tail > 0;
}

static bool plan_later_chunk(struct sched *sched, struct request *request)
{
	const enum planned planned = forward_chunk(sched, request);

	if (planned == PLAN_LATER)
		sched->forward.closed = true;
	if (planned == PLAN_NO_ROOM)
		sched->forward.stopped = true;
	return planned != PLANNED || may_go_on(request);
}

/* Two prompts under way could each hold what the other needs, and neither may be retracted. */
static bool has_head(const struct sched *sched)
{
	uint32_t slot = sched->lists[REQUEST_PREFILLING].head;

	for (; slot != SLOT_NONE; slot = sched->links[slot].next) {
		if (!sched->requests[slot].remote && !may_go_on(&sched->requests[slot]))
			return true;
	}
	return false;
}

static bool plan_first_chunk(struct sched *sched, struct request *request)
{
	if (sched->forward.closed || (sched->draining && request->state == REQUEST_SUBMITTED) ||
	    has_head(sched))
		return true;
	if (admit_first(sched, request) == PLANNED)
		return may_go_on(request);
	sched->forward.closed = true;
	return true;
}

/* A DECODE rank's forward has decodes, or a peer's prompt, or prompts of its own that come back. */
static bool is_of_another_kind(const struct sched *sched, const struct request *request)
{
	enum batch_kind kind = BATCH_PREFILL;

	if (sched->options.role != SCHED_DECODE || sched->forward.row_count == 0)
		return false;
	if (request->state == REQUEST_SUBMITTED)
		kind = BATCH_REMOTE;
	if (request->state == REQUEST_PREFILL_DONE || request->state == REQUEST_DECODING)
		kind = BATCH_DECODE;
	return kind != sched->forward.kind;
}

/* False: nothing more is planned. */
static bool plan_one(struct sched *sched, struct request *request)
{
	if ((sched->forward.stopped && request->tail == 0) || is_of_another_kind(sched, request))
		return true;
	switch (request->state) {
	case REQUEST_PREFILLING:
		return plan_later_chunk(sched, request);
	case REQUEST_SUBMITTED:
	case REQUEST_RETRACTED:
		return plan_first_chunk(sched, request);
	case REQUEST_PREFILL_DONE:
	case REQUEST_DECODING:
		if (sched->options.mixed || sched->forward.prefills == 0)
			forward_decode(sched, request);
		return true;
	case REQUEST_FREE:
	case REQUEST_BOOTSTRAPPING:
	case REQUEST_PREFETCHING:
	case REQUEST_FINISHED:
	case REQUEST_STATE_COUNT:
		break;
	}
	KVS_PANIC("request \"%s\": %s is no candidate", request->id,
		  request_state_name(request->state));
}

void forward_build(struct sched *sched)
{
	uint32_t slot;

	order_fill(sched);
	while (sched->forward.row_count < sched->options.batch_max) {
		slot = order_pop(sched);
		if (slot == SLOT_NONE || !plan_one(sched, &sched->requests[slot]))
			return;
	}
}
