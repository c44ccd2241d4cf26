/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients: requests that share prefixes, give up, and end when they have what they wanted.
 *
 * A request runs down a path of the oracle's tree, so that what it will sample is known: outputs of one
 * are the prompt of another.
 */
#include <stdio.h>
#include <string.h>

#include "sim.h"

struct sim_request *clients_find(struct sim *sim, const char *id)
{
	uint32_t i;

	for (i = 0; i < REQUESTS_MAX; i++) {
		if (sim->requests[i].live && strcmp(sim->requests[i].id, id) == 0)
			return &sim->requests[i];
	}
	return NULL;
}

/* --- events ----------------------------------------------------------------------------------- */

static void push(struct sim *sim, struct sched_event event)
{
	KVS_ASSERT_CMP(sim->event_count, <, EVENTS_MAX);
	sim->events[sim->event_count++] = event;
}

void clients_sampled(struct sim *sim, const struct sim_forward_row *row)
{
	struct sim_request *const request = &sim->requests[row->request];
	const uint32_t            room = request->most - request->known;
	uint32_t                  count = 1;

	if (!request->live || request->aborting || request->finishing || room == 0)
		return;
	/* Of a step that drafts, as many as were right. */
	if (row->kind == BATCH_DECODE && row->end - row->begin > 1)
		count = sim_draw(sim, 1, row->end - row->begin < room ? row->end - row->begin : room);
	push(sim, (struct sched_event){ .kind = SCHED_EXTEND, .id = request->id,
					.tokens = &request->tokens[request->known],
					.token_count = count });
	request->known += count;
	if (sim->options.role == SCHED_PREFILL) {
		push(sim, (struct sched_event){ .kind = SCHED_HANDED_OVER, .id = request->id });
		request->finishing = true;
	} else if (request->known == request->most || prng_chance(&sim->world.prng, 1, 16)) {
		push(sim, (struct sched_event){ .kind = SCHED_FINISH, .id = request->id });
		request->finishing = true;
	}
}

static void abort_one(struct sim *sim, struct sim_request *request)
{
	if (!request->live || request->aborting || request->finishing)
		return;
	NOTE("%s is given up", request->id);
	push(sim, (struct sched_event){ .kind = SCHED_ABORT, .id = request->id });
	request->aborting = true;
	sim->covers->aborts++;
}

void clients_abort_some(struct sim *sim)
{
	if (fault_hits(sim, FAULT_ABORT))
		abort_one(sim, &sim->requests[sim_draw(sim, 0, REQUESTS_MAX - 1)]);
}

void clients_abort_all(struct sim *sim)
{
	uint32_t i;

	for (i = 0; i < REQUESTS_MAX; i++)
		abort_one(sim, &sim->requests[i]);
}

/* --- peers ------------------------------------------------------------------------------------ */

static void land_token(struct sim *sim, const struct sim_request *request, uint32_t position)
{
	struct content content = { .version = sim->version,
				   .prefix = { request->pages[position / PAGE_TOKENS], 0 } };
	uint32_t       g;

	for (g = 0; g < sim->shape.group_count; g++) {
		const struct group_spec *const spec = &sim->shape.specs[g];
		const uint32_t block = request->slots[g][position / spec->block_tokens];

		if (block == BLOCK_NULL ||
		    (spec->kind == GROUP_STATE && position + 1 != request->prompt))
			continue;
		content.group = g;
		for (content.replica = 0; content.replica < shape_replicas(&sim->shape, g);
		     content.replica++) {
			shape_fill_token(&sim->shape, &content, position % PAGE_TOKENS,
					 device_block(sim,
						      content.replica * sim->shape.owners[g].cycle,
						      g, block));
		}
	}
}

/* The peer has computed the prompt: its rows are there, and its first token. */
static void land(struct sim *sim, struct sim_request *request)
{
	uint32_t i;

	for (i = request->landing; i < request->prompt; i++)
		land_token(sim, request, i);
	NOTE("the prompt of %s has landed", request->id);
	request->awaited = false;
	push(sim, (struct sched_event){ .kind = SCHED_PREFILLED, .id = request->id,
					.tokens = &request->tokens[request->known],
					.token_count = 1 });
	request->known++;
	sim->covers->landed++;
	if (request->known < request->most)
		return;
	push(sim, (struct sched_event){ .kind = SCHED_FINISH, .id = request->id });
	request->finishing = true;
}

static void lose_peer(struct sim *sim, struct sim_request *request)
{
	NOTE("the peer of %s has failed", request->id);
	push(sim, (struct sched_event){ .kind = SCHED_PEER_FAILED, .id = request->id });
	request->failing = request->aborting = true;
	sim->covers->peer_failures++;
}

static void act_peer(struct sim *sim, struct sim_request *request)
{
	if (fault_hits(sim, FAULT_ABORT)) {
		lose_peer(sim, request);
	} else if (!request->bootstrapped) {
		push(sim, (struct sched_event){ .kind = SCHED_BOOTSTRAPPED, .id = request->id });
		request->bootstrapped = true;
	} else if (request->awaited) {
		land(sim, request);
	}
}

/* The other side of a prefill or of a decode: some rounds later. */
void clients_peers(struct sim *sim)
{
	uint32_t i;

	for (i = 0; sim->options.role != SCHED_FUSED && i < REQUESTS_MAX; i++) {
		struct sim_request *const request = &sim->requests[i];

		if (request->live && !request->aborting && !request->finishing &&
		    prng_chance(&sim->world.prng, 1, 4))
			act_peer(sim, request);
	}
}

/* --- submission ------------------------------------------------------------------------------- */

/*
 * One that was taken lately, or another.  Of two children one is more likely, so that prefixes meet again;
 * how much more, is the run's.
 */
static void draw_path(struct sim *sim, struct sim_request *request)
{
	const struct oracle *const oracle = oracle_get();
	const bool                 again = sim_draw(sim, 0, 2) > 0;
	const uint32_t             last = sim->paths[sim_draw(sim, 0, PATHS - 1)];
	uint32_t                   page = 1, i;

	for (i = 0; i < DEPTH; i++) {
		if (again && last > 0)
			page = last >> (DEPTH - 1 - i);
		else
			page = 2 * page + prng_chance(&sim->world.prng, sim->spread, 12);
		request->pages[i] = page;
		memcpy(&request->tokens[i * PAGE_TOKENS], oracle->tokens[page],
		       sizeof(oracle->tokens[page]));
	}
	sim->paths[sim->next_request % PATHS] = page;
}

static void draw_request(struct sim *sim, struct sim_request *request)
{
	const uint32_t limit = sim->request_limit;
	const uint32_t step = sim->options.decode_tokens;
	const uint32_t some = sim_draw(sim, 1, limit - step);
	const uint32_t others = sim_draw(sim, 1, limit - step);

	request->live = true;
	request->serial = sim->next_request + 1;
	snprintf(request->id, sizeof(request->id), "r%" PRIu64, request->serial);
	draw_path(sim, request);
	request->prompt = request->known = some > others ? some : others;
	request->most = request->prompt + sim_draw(sim, step, limit - request->prompt);
}

static struct sim_request *find_free(struct sim *sim)
{
	uint32_t i;

	for (i = 0; i < REQUESTS_MAX; i++) {
		if (!sim->requests[i].live)
			return &sim->requests[i];
	}
	return NULL;
}

static int submit_on(struct sim *sim, uint32_t rank, const struct sim_request *request)
{
	const struct sched_request ask = { .id = request->id, .tokens = request->tokens,
					   .token_count = request->prompt,
					   .max_new_tokens = request->most - request->prompt,
					   .logits_from = LOGITS_NONE };
	struct kvs_error           error;

	return sched_submit(sim->ranks[rank].sched, &ask, 1, &error);
}

static void submit(struct sim *sim, struct sim_request *slot)
{
	const struct sched_load before = sched_load(sim->ranks[0].sched);
	struct sim_request      request = { 0 };
	uint32_t                rank;
	int                     rc = 0, other;

	draw_request(sim, &request);
	for (rank = 0; rank < sim->shape.ranks; rank++) {
		other = submit_on(sim, rank, &request);
		if (rank > 0 && other != rc) {
			FAIL("same-plan", "rank %u answers %d to %s; rank 0 %d", rank, other,
			     request.id, rc);
		}
		rc = other;
	}
	if (rc < 0 && !is_same_load(&before, sim->ranks[0].sched))
		FAIL("one-done", "a refused request left a trace");
	if (rc == KVS_E_FULL) {
		sim->covers->refused_requests++;
		return;
	}
	if (rc < 0)
		FAIL("one-done", "%s is refused: %d", request.id, rc);
	NOTE("%s: %u tokens to page %u, %u more", request.id, request.prompt,
	     request.pages[(request.prompt - 1) / PAGE_TOKENS], request.most - request.prompt);
	*slot = request;
	sim->next_request++;
	sim->covers->requests++;
}

void clients_submit(void *context, uint64_t unused)
{
	struct sim *const         sim = context;
	struct sim_request *const slot = find_free(sim);

	(void)unused;
	if (sim->faults.stopped)
		return;
	if (slot && sim->errand == ERRAND_NONE)
		submit(sim, slot);
	world_after(&sim->world, sim_delay(sim, sim->submit_every), clients_submit, 0);
}

/* --- ends ------------------------------------------------------------------------------------- */

static void count_end(struct sim *sim, const struct sched_result *result)
{
	const struct explanation *const why = &result->explanation;

	sim->covers->finished += result->end == SCHED_FINISHED;
	sim->covers->retractions += result->retractions;
	if (!result->admitted)
		return;
	if (why->store_tokens > why->tokens[STRATUM_HOST] ||
	    why->tokens[STRATUM_DEVICE] + why->tokens[STRATUM_HOST] > why->bound_tokens)
		FAIL("legal-boundary", "%s restored more than it may", result->id);
	sim->covers->restored_device += why->tokens[STRATUM_DEVICE];
	sim->covers->restored_host += why->tokens[STRATUM_HOST] - why->store_tokens;
	sim->covers->restored_store += why->store_tokens;
	sim->covers->recomputed +=
		why->bound_tokens - why->tokens[STRATUM_DEVICE] - why->tokens[STRATUM_HOST];
}

void clients_ended(struct sim *sim, const struct sched_plan *plan)
{
	uint32_t i;

	for (i = 0; i < plan->ended_count; i++) {
		const struct sched_result *const result = &plan->ended[i];
		struct sim_request *const        request = clients_find(sim, result->id);

		if (!request)
			FAIL("one-done", "%s ends, and does not live", result->id);
		NOTE("%s ended", result->id);
		if (!request->aborting && !request->finishing)
			FAIL("one-done", "%s ends, and nobody asked for it", result->id);
		if (result->end != (request->failing    ? SCHED_FAILED
				    : request->aborting ? SCHED_ABORTED
							: SCHED_FINISHED)) {
			FAIL("one-done", "%s ends otherwise than it was asked to", result->id);
		}
		count_end(sim, result);
		request->live = false;
	}
}
