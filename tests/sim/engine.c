/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Device does, in the order of the plans: of each plan first the blanks, then its copies are
 * submitted, then its forward, once no forward of an earlier plan runs.
 *
 * A forward is one act of all ranks, as one whose ranks exchange sums in every layer.  It begins when
 * every rank has the loads that its rows are fenced by; then every row that it may see is checked, in the
 * parts of all ranks, and those that it computes are written.  When it ends, all of them are checked
 * again.
 */
#include <string.h>

#include "sim.h"

/* --- memory ----------------------------------------------------------------------------------- */

uint8_t *device_block(struct sim *sim, uint32_t rank, uint32_t group, uint32_t block)
{
	const uint32_t stride = PARENT_BYTES / sim->shape.specs[group].packing;
	const uint32_t replica = rank / sim->shape.owners[group].cycle;
	uint8_t *const memory = is_cyclic(sim, group) ? sim->cyclic[group][replica]
						      : sim->device[rank];

	KVS_ASSERT_CMP(block, >, 0);
	return memory + PARENT_BYTES + (size_t)(block - 1) * stride;
}

uint8_t *host_block(struct sim *sim, uint32_t rank, uint32_t group, uint32_t block)
{
	const struct sim_rank *const of = &sim->ranks[rank];

	if (!owner_holds(&of->owner, group, block))
		return NULL;
	return hostmap_span(&of->hostmap, &of->part, group, owner_local(&of->owner, group, block)).ptr;
}

void engine_open(struct sim *sim)
{
	struct engine_group groups[GROUPS_MAX];
	uint32_t            g, replica, layer;

	for (g = 0; g < sim->shape.group_count; g++) {
		const struct group_spec *const spec = &sim->shape.specs[g];
		const uint32_t                 stride = PARENT_BYTES / spec->packing;

		for (replica = 0; replica < shape_replicas(&sim->shape, g); replica++) {
			const uint32_t part = shape_part(&sim->shape, g, replica);
			const uint32_t rank = replica * sim->shape.owners[g].cycle;

			for (layer = 0; layer < sim->shape.layers[g]; layer++) {
				sim->planes[part][layer] = (struct engine_plane){
					device_block(sim, rank, g, 1) - stride +
						(size_t)layer * shape_field_bytes(&sim->shape, g),
					stride
				};
			}
			groups[part] = (struct engine_group){ spec->kind, spec->block_tokens,
							      spec->window_tokens,
							      sim->shape.layers[g],
							      sim->planes[part] };
		}
	}
	group_engine_init(&sim->engine, groups, sim->shape.part_count);
}

/* --- plans ------------------------------------------------------------------------------------ */

static struct sim_work *work_at(struct sim *sim, uint32_t i)
{
	return &sim->works[(sim->work_head + i) % WORKS_MAX];
}

bool engine_may_plan(const struct sim *sim)
{
	return sim->forwards <= sim->options.overlap_depth;
}

static void take_lines(struct sim *sim, struct sim_work *work, const struct batch *batch, uint32_t row)
{
	uint32_t g, i;

	for (g = 0; g < sim->shape.group_count; g++) {
		const struct batch_table *const table = &batch->tables[g];

		KVS_ASSERT_CMP(table->width, <=, SLOTS_MAX);
		work->width[g] = table->width;
		for (i = 0; i < table->width; i++) {
			const int32_t slot = table->slots[row * table->width + i];

			work->slots[g][row][i] = slot > 0 ? (uint32_t)slot : 0;
		}
	}
}

static void detail_lines(struct sim *sim, const struct sim_work *work, uint32_t row)
{
	uint32_t g, i;

	for (g = 0; g < sim->shape.group_count && sim->world.loud; g++) {
		DETAIL("group %u:", g);
		for (i = 0; i < work->width[g]; i++)
			printf(" %u", work->slots[g][row][i]);
		puts("");
	}
}

/* Tokens to compute are those of the request's path. */
static void check_tokens(struct sim *sim, const struct sim_request *request,
			 const struct batch_row *row)
{
	uint32_t i;

	if (row->begin + row->token_count > PATH_TOKENS || row->token_count == 0) {
		FAIL("bounded", "%s computes tokens %u to %u", request->id, row->begin,
		     row->begin + row->token_count);
	}
	for (i = 0; row->tokens && i < row->token_count; i++) {
		if (row->tokens[i] != request->tokens[row->begin + i]) {
			FAIL("legal-boundary", "%s computes another token at %u", request->id,
			     row->begin + i);
		}
	}
}

static void take_row(struct sim *sim, struct sim_work *work, const struct batch *batch, uint32_t i)
{
	const struct batch_row *const   row = &batch->rows[i];
	const struct sim_request *const request = clients_find(sim, row->id);

	if (!request || request->aborting || request->finishing)
		FAIL("one-done", "a forward computes for %s, which has ended", row->id);
	check_tokens(sim, request, row);
	work->rows[i] = (struct sim_forward_row){
		.request = (uint32_t)(request - sim->requests),
		.serial = request->serial,
		.kind = row->kind,
		.begin = row->begin,
		.end = row->begin + row->token_count,
		.ends_prompt = row->ends_prompt,
	};
	memcpy(work->rows[i].tokens, request->tokens, sizeof(request->tokens));
	work->rows[i].tokens[0] = oracle_salted(request->tokens[0], sim->version);
	work->fence = row->fence > work->fence ? row->fence : work->fence;
	take_lines(sim, work, batch, i);
	detail_lines(sim, work, i);
	NOTE("forward: %s %s, tokens %u to %u", request->id,
	     row->kind == BATCH_DECODE	 ? "decodes"
	     : row->kind == BATCH_REMOTE ? "waits for its peer"
					 : "prefills", row->begin,
	     row->begin + row->token_count);
}

static void take_zeros(struct sim *sim, struct sim_work *work, const struct batch *batch)
{
	uint32_t g, i;

	for (g = 0; g < sim->shape.group_count; g++) {
		for (i = 0; i < batch->fresh_count[g]; i++) {
			work->zeros[work->zero_count++] =
				(struct cache_block){ g, batch->fresh[g][i] };
		}
	}
}

void engine_take(struct sim *sim)
{
	const struct sched_plan *const plan = sim->ranks[0].plan;
	struct sim_work *const         work = work_at(sim, sim->work_count);
	uint32_t                       i, rank;

	if (plan->forward.row_count > BATCH_MAX)
		FAIL("bounded", "a forward has %u rows", plan->forward.row_count);
	KVS_ASSERT_CMP(sim->work_count, <, WORKS_MAX);
	work->state = WORK_QUEUED;
	work->zero_count = 0;
	work->fence = 0;
	work->row_count = plan->forward.row_count;
	work->copy_count = plan->copy_count;
	take_zeros(sim, work, &plan->forward);
	for (i = 0; i < plan->copy_count; i++) {
		work->copies[i] = plan->copies[i];
		tickets_add(sim, plan->copies[i]);
		for (rank = 0; rank < sim->shape.ranks; rank++)
			agree_expect_copies(sim->ranks[rank].agree, plan->copies[i]);
	}
	for (i = 0; i < plan->forward.row_count; i++)
		take_row(sim, work, &plan->forward, i);
	if (work->zero_count + work->copy_count + work->row_count == 0)
		return;
	sim->covers->overlaps += work->row_count > 0 && sim->forwards > 0;
	sim->forwards += work->row_count > 0;
	sim->work_count++;
	engine_poke(sim);
}

/* --- forwards --------------------------------------------------------------------------------- */

static void blame(struct sim *sim, const char *invariant, const struct sim_forward_row *row)
{
	const struct engine_fault *const fault = &sim->engine.first;
	uint32_t                         g = sim->shape.group_count - 1;

	while (sim->shape.first_part[g] > fault->group)
		g--;
	FAIL(fault->hole ? "legal-boundary" : invariant,
	     "request %" PRIu64 ", tokens %u to %u: %s at token %u of group %u, replica %u",
	     row->serial, row->begin, row->end, fault->hole ? "a hole" : "a wrong row",
	     fault->position, g, fault->group - sim->shape.first_part[g]);
}

/* Check the rows before `begin`, write those from there to `end`. */
static void pass(struct sim *sim, const struct sim_work *work, uint32_t i, uint32_t begin,
		 const char *invariant)
{
	const struct sim_forward_row *const row = &work->rows[i];
	struct engine_table                 tables[GROUPS_MAX];
	const struct engine_pass            of = { row->serial, row->tokens, begin, row->end, tables };
	uint32_t                            g, replica;

	for (g = 0; g < sim->shape.group_count; g++) {
		for (replica = 0; replica < shape_replicas(&sim->shape, g); replica++) {
			tables[shape_part(&sim->shape, g, replica)] =
				(struct engine_table){ work->slots[g][i], work->width[g] };
		}
	}
	if (!group_engine_forward(&sim->engine, &of))
		blame(sim, invariant, row);
}

/* How many tokens the step before gave, the Device knows when this one begins; its plan did not. */
static void settle_begin(struct sim *sim, struct sim_forward_row *row)
{
	const struct sim_request *const request = &sim->requests[row->request];
	const uint32_t                  step = row->end - row->begin;

	if (row->kind != BATCH_DECODE || step == 1)
		return;
	if (request->serial != row->serial || !request->live || request->aborting ||
	    request->finishing) {
		/* What this one gives nobody will look at, and where it begins nobody knows. */
		row->end = row->begin;
		return;
	}
	row->begin = request->known - 1;
	row->end = row->begin + step;
}

static void begin(struct sim *sim, struct sim_work *work)
{
	uint32_t i;

	for (i = 0; i < work->row_count; i++) {
		settle_begin(sim, &work->rows[i]);
		if (work->rows[i].kind == BATCH_REMOTE || work->rows[i].end == work->rows[i].begin)
			continue;
		pass(sim, work, i, work->rows[i].begin, "miss-is-safe");
	}
}

/* The blocks are blank and restored as far as they can be: from now on a peer may write them. */
static void await_peer(struct sim *sim, const struct sim_work *work, uint32_t i)
{
	const struct sim_forward_row *const row = &work->rows[i];
	struct sim_request *const           request = &sim->requests[row->request];
	uint32_t                            g;

	if (!request->live || request->serial != row->serial)
		return;
	request->awaited = true;
	request->landing = row->begin;
	memset(request->slots, 0, sizeof(request->slots));
	for (g = 0; g < sim->shape.group_count; g++) {
		memcpy(request->slots[g], work->slots[g][i],
		       work->width[g] * sizeof(*request->slots[g]));
	}
}

static void pop(struct sim *sim)
{
	sim->forwards -= work_at(sim, 0)->row_count > 0;
	sim->work_head = (sim->work_head + 1) % WORKS_MAX;
	sim->work_count--;
}

static void end(void *context, uint64_t incarnation)
{
	struct sim *const            sim = context;
	const struct sim_work *const work = work_at(sim, 0);
	uint32_t                     i;

	if (incarnation != sim->incarnation)
		return;
	NOTE("the forward ends");
	for (i = 0; i < work->row_count; i++) {
		const struct sim_forward_row *const row = &work->rows[i];

		if (row->kind == BATCH_REMOTE) {
			await_peer(sim, work, i);
			continue;
		}
		if (row->end == row->begin)
			continue;
		pass(sim, work, i, row->end, "one-state");
		if (sim->requests[row->request].serial != row->serial)
			continue;
		if (row->ends_prompt || row->kind == BATCH_DECODE)
			clients_sampled(sim, row);
	}
	sim->covers->forwards++;
	pop(sim);
	engine_poke(sim);
}

/* --- the queue of the Device ------------------------------------------------------------------ */

static void blank(struct sim *sim, const struct sim_work *work)
{
	uint32_t i, rank;

	for (i = 0; i < work->zero_count; i++) {
		DETAIL("blank block %u of group %u\n", work->zeros[i].block, work->zeros[i].group);
		for (rank = 0; rank < sim->shape.ranks; rank++) {
			memset(device_block(sim, rank, work->zeros[i].group, work->zeros[i].block), 0,
			       shape_block_bytes(&sim->shape, work->zeros[i].group));
		}
	}
}

static void start(struct sim *sim, struct sim_work *work)
{
	uint32_t i, rank;

	blank(sim, work);
	work->state = WORK_LOADING;
	for (i = 0; i < work->copy_count; i++) {
		for (rank = 0; rank < sim->shape.ranks; rank++)
			copies_submit(sim, rank, work->copies[i]);
	}
}

static bool is_loaded(const struct sim *sim, const struct sim_work *work)
{
	uint32_t rank;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		if (sim->ranks[rank].loaded < work->fence)
			return false;
	}
	return true;
}

void engine_poke(struct sim *sim)
{
	while (sim->work_count > 0) {
		struct sim_work *const work = work_at(sim, 0);

		if (work->state == WORK_QUEUED)
			start(sim, work);
		if (work->state == WORK_RUNNING || !is_loaded(sim, work))
			return;
		if (work->row_count > 0) {
			work->state = WORK_RUNNING;
			begin(sim, work);
			world_after(&sim->world, sim_delay(sim, sim->forward_ticks), end,
				    sim->incarnation);
			return;
		}
		pop(sim);
	}
}
