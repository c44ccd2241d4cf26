/* SPDX-License-Identifier: Apache-2.0 */
/* A round: copies, forward, what became of it.  See sched_rig.h. */
#include "sched_rig_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "engine/rows.h"

/* --- copies ----------------------------------------------------------------------------------- */

static void run_row(struct srig *rig, const struct mover_row *row)
{
	const uint8_t *const source = row->path == COPY_HOST_TO_DEVICE
					      ? srig_host_block(rig, row->group, row->source)
					      : srig_device_block(rig, row->group, row->source);
	uint8_t *const       target = row->path == COPY_DEVICE_TO_HOST
					      ? srig_host_block(rig, row->group, row->target)
					      : srig_device_block(rig, row->group, row->target);

	memcpy(target, source, srig_stride(rig, row->group));
}

void srig_run_copies(struct srig *rig, uint64_t up_to)
{
	const struct mover *const mover = sched_mover(rig->sched);

	while (rig->copies_run < rig->copy_count && rig->copies[rig->copies_run] <= up_to) {
		const uint64_t                   id = rig->copies[rig->copies_run++];
		const struct mover_ticket *const ticket = mover_find(mover, id);
		uint32_t                         row;

		KVS_ASSERT(ticket);
		MOVER_ROWS(mover, ticket, row)
			run_row(rig, &mover->rows[row]);
	}
}

void srig_take_copies(struct srig *rig)
{
	uint32_t i, j;

	for (i = 0; i < rig->plan->copy_count; i++) {
		KVS_ASSERT_CMP(rig->copy_count, <, SRIG_COPIES);
		/* By id: a plan has loads and saves in the order in which they were made. */
		j = rig->copy_count++;
		for (; j > rig->copies_run && rig->copies[j - 1] > rig->plan->copies[i]; j--)
			rig->copies[j] = rig->copies[j - 1];
		rig->copies[j] = rig->plan->copies[i];
	}
	rig->loads += srig_copy_rows(rig, true);
	rig->saves += srig_copy_rows(rig, false);
}

void srig_let_copies(struct srig *rig)
{
	srig_run_copies(rig, UINT64_MAX);
	rig->copies_let = rig->copy_count;
}

uint32_t srig_copy_rows(const struct srig *rig, bool loads)
{
	const struct mover *const mover = sched_mover(rig->sched);
	uint32_t                  count = 0;
	uint32_t                  i;

	for (i = 0; i < rig->plan->copy_count; i++) {
		const struct mover_ticket *const ticket = mover_find(mover, rig->plan->copies[i]);

		if (ticket && ticket_is_load(ticket->kind) == loads)
			count += ticket->rows.count;
	}
	return count;
}

/* --- forward ---------------------------------------------------------------------------------- */

static uint32_t row_number(const struct srig *rig, const char *id)
{
	const struct batch *const batch = &rig->plan->forward;
	uint32_t                  i;

	for (i = 0; i < batch->row_count; i++) {
		if (strcmp(batch->rows[i].id, id) == 0)
			return i;
	}
	return UINT32_MAX;
}

const struct batch_row *srig_row(const struct srig *rig, const char *id)
{
	const uint32_t row = row_number(rig, id);

	return row == UINT32_MAX ? NULL : &rig->plan->forward.rows[row];
}

const int32_t *srig_line(const struct srig *rig, const char *id, uint32_t group)
{
	const struct batch_table *const table = &rig->plan->forward.tables[group];
	const uint32_t                  row = row_number(rig, id);

	KVS_ASSERT(row != UINT32_MAX);
	return table->slots + (size_t)row * table->width;
}

uint32_t srig_slots(const struct srig *rig, const char *id, uint32_t group)
{
	const int32_t *const line = srig_line(rig, id, group);
	uint32_t             count = 0;

	while (count < rig->plan->forward.tables[group].width && line[count] >= 0)
		count++;
	return count;
}

uint32_t srig_holes(const struct srig *rig, const char *id, uint32_t group)
{
	const int32_t *const line = srig_line(rig, id, group);
	uint32_t             count = 0;
	uint32_t             i;

	for (i = 0; i < srig_slots(rig, id, group); i++)
		count += line[i] == 0;
	return count;
}

static void make_blank(struct srig *rig)
{
	const struct batch *const batch = &rig->plan->forward;
	uint32_t                  g, i;

	for (g = 0; g < rig->options.group_count; g++) {
		rig->fresh += batch->fresh_count[g];
		for (i = 0; i < batch->fresh_count[g]; i++) {
			memset(srig_device_block(rig, g, batch->fresh[g][i]), 0,
			       srig_block_bytes(&rig->options.groups[g]));
		}
	}
}

static int32_t sample(const struct srig_request *request)
{
	uint64_t state = 0;
	uint32_t i;

	if (request->counting)
		return request->tokens[request->count - 1] + 1;
	for (i = 0; i < request->count; i++)
		state = mix64(state ^ (uint64_t)request->tokens[i]);
	return (int32_t)(state >> 40);
}

void srig_grow(struct srig_request *request, uint32_t count)
{
	KVS_ASSERT_CMP(request->given_count, <, SRIG_GIVEN);
	request->given[request->given_count++] = count;
	while (count-- > 0) {
		KVS_ASSERT_CMP(request->count, <, SRIG_TOKENS);
		request->tokens[request->count] = sample(request);
		request->count++;
	}
}

static void compute(struct srig *rig, struct srig_request *request, uint32_t begin, uint32_t end)
{
	static uint32_t     slots[GROUPS_MAX][SRIG_TOKENS + 1];
	struct engine_table tables[GROUPS_MAX];
	const struct engine_pass pass = { (uint64_t)(request - rig->requests), request->tokens,
					  begin, end, tables };
	uint32_t                 g, i;

	for (g = 0; g < rig->options.group_count; g++) {
		const int32_t *const line = srig_line(rig, request->id, g);

		tables[g] = (struct engine_table){ slots[g], srig_slots(rig, request->id, g) };
		for (i = 0; i < tables[g].count; i++)
			slots[g][i] = (uint32_t)line[i];
	}
	if (!group_engine_forward(&rig->engine, &pass)) {
		const struct engine_fault *const fault = &rig->engine.first;

		KVS_PANIC("\"%s\", forward of [%u, %u): group %u, position %u: %s", request->id,
			  begin, end,
			  fault->group, fault->position, fault->hole ? "a hole" : "a wrong row");
	}
}

/* Where the rows of a peer's prompt go to. */
static void note_landing(const struct srig *rig, struct srig_request *request,
			 const struct batch_row *row)
{
	uint32_t g, i;

	memset(request->landing, 0, sizeof(request->landing));
	request->landing_begin = row->begin;
	request->awaited = true;
	for (g = 0; g < rig->options.group_count; g++) {
		for (i = 0; i < srig_slots(rig, row->id, g); i++)
			request->landing[g][i] = (uint32_t)srig_line(rig, row->id, g)[i];
	}
}

static void land_token(struct srig *rig, const struct srig_request *request, uint32_t position,
		       uint64_t state)
{
	uint32_t g;

	for (g = 0; g < rig->options.group_count; g++) {
		const struct group_spec *const group = &rig->options.groups[g];
		const uint32_t                 q = group->block_tokens;
		const uint32_t                 block = request->landing[g][position / q];
		const bool                     is_state = group->kind == GROUP_STATE;
		const uint64_t value = is_state ? rows_checkpoint(state, position + 1) : state;
		const uint64_t word = rows_word(value, (uint64_t)g * ROWS_LAYERS_MAX);

		if (block == BLOCK_NULL || (is_state && position + 1 != request->prompt))
			continue;
		memcpy(srig_device_block(rig, g, block) + (is_state ? 0 : 8 * (position % q)),
		       &word, sizeof(word));
	}
}

void srig_land(struct srig *rig, const struct srig_request *request)
{
	uint64_t state = 0;
	uint32_t i;

	for (i = 0; i < request->prompt; i++) {
		state = rows_next(state, request->tokens[i]);
		if (i >= request->landing_begin)
			land_token(rig, request, i, state);
	}
}

static void run_batch_row(struct srig *rig, const struct batch_row *row)
{
	struct srig_request *const request = srig_request(rig, row->id);
	uint32_t                   end = row->begin + row->token_count;

	KVS_ASSERT(request);
	rig->rows++;
	if (row->kind == BATCH_REMOTE) {
		note_landing(rig, request, row);
		return;
	}
	if (row->kind == BATCH_PREFILL) {
		KVS_ASSERT(memcmp(row->tokens, request->tokens + row->begin,
				  row->token_count * sizeof(*row->tokens)) == 0);
	}
	if (row->kind == BATCH_DECODE) {
		KVS_ASSERT_CMP(row->begin, ==, request->count - 1);
		KVS_ASSERT_CMP(row->token_count, ==, rig->options.decode_tokens);
		/* Drafts that are refused leave nothing behind that anybody reads. */
		srig_grow(request, rig->accept);
		end = request->count - 1;
	}
	srig_run_copies(rig, row->fence);
	if (!rig->blind)
		compute(rig, request, row->begin, end);
	if (row->ends_prompt)
		srig_grow(request, 1);
}

static void forget_ended(struct srig *rig)
{
	uint32_t i;

	for (i = 0; i < rig->plan->ended_count; i++) {
		struct srig_request *const request = srig_request(rig, rig->plan->ended[i].id);

		if (request)
			request->id[0] = '\0';
	}
}

const struct sched_plan *srig_next(struct srig *rig)
{
	uint64_t done[SRIG_COPIES];
	uint32_t i;

	memcpy(done, rig->copies, rig->copies_let * sizeof(*done));
	rig->tick.copies = done;
	rig->tick.copy_count = rig->copies_let;
	rig->copy_count -= rig->copies_let;
	rig->copies_run -= rig->copies_let;
	memmove(rig->copies, rig->copies + rig->copies_let, rig->copy_count * sizeof(*done));
	rig->copies_let = 0;
	rig->tick.now_ns++;
	if (rig->fact_count > 0) {
		rig->tick.facts = rig->facts;
		rig->tick.fact_count = rig->fact_count;
	}
	sched_next(rig->sched, &rig->tick, &rig->plan);
	rig->fact_count = 0;
	rig->tick.facts = NULL;
	rig->tick.fact_count = 0;
	rig->tick.notices = NULL;
	rig->tick.notice_count = 0;
	forget_ended(rig);
	make_blank(rig);
	srig_take_copies(rig);
	for (i = 0; i < rig->plan->forward.row_count; i++)
		run_batch_row(rig, &rig->plan->forward.rows[i]);
	if (!rig->held)
		srig_let_copies(rig);
	srig_take_ops(rig);
	sched_audit(rig->sched);
	return rig->plan;
}

/* Something is under way, or will be without anybody's doing. */
static bool is_busy(const struct srig *rig)
{
	const struct sched_load load = sched_load(rig->sched);

	return rig->plan->forward.row_count + rig->plan->copy_count + rig->plan->ended_count +
			       rig->plan->op_count + rig->copy_count + rig->op_count +
			       rig->fact_count + load.transfer.backups > 0;
}

void srig_settle(struct srig *rig, uint32_t round_max)
{
	do {
		KVS_ASSERT_CMP(round_max--, >, 0);
		srig_next(rig);
	} while (is_busy(rig));
}
