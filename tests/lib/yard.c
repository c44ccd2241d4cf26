/* SPDX-License-Identifier: Apache-2.0 */
/* See yard.h. */
#include "yard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

/* --- what the cache tells --------------------------------------------------------------------- */

static void inserted(void *ctx, const struct cell_name *name, uint32_t block)
{
	struct yard *const yard = ctx;

	(void)block;
	candidates_push(&yard->candidates, name);
}

static void removed(void *ctx, const struct cell_name *name, uint32_t block)
{
	struct yard *const yard = ctx;

	(void)name;
	(void)block;
	yard->counts->device_evictions += !yard->clearing;
}

/* --- open and close --------------------------------------------------------------------------- */

static uint64_t field_bytes(const struct group_spec *group)
{
	return group->kind == GROUP_STATE ? 8 : 8 * (uint64_t)group->block_tokens;
}

/* The fields of a group, and the planes that the engine sees them as. */
static void make_fields(struct yard *yard, uint32_t g, struct layout_field_spec *fields)
{
	const struct group_spec *const spec = &yard->spec.groups[g];
	const uint64_t                 stride = YARD_PARENT_BYTES / spec->packing;
	uint32_t                       layer;

	KVS_ASSERT_CMP(YARD_PARENT_BYTES % spec->packing, ==, 0);
	KVS_ASSERT_CMP(yard->spec.layers[g], <=, YARD_LAYERS);
	for (layer = 0; layer < yard->spec.layers[g]; layer++) {
		char *const    id = yard->ids[g * YARD_LAYERS + layer];
		const uint64_t offset =
			YARD_PARENT_BYTES - stride + layer * field_bytes(spec);

		snprintf(id, sizeof(yard->ids[0]), "layer.%u.g%u", layer, g);
		fields[layer] = (struct layout_field_spec){ id, 0, offset, stride, field_bytes(spec) };
		yard->planes[g][layer] =
			(struct engine_plane){ yard->device_memory + offset, stride };
	}
}

static void open_layout(struct yard *yard)
{
	struct layout_field_spec fields[YARD_GROUPS][YARD_LAYERS];
	struct layout_group_spec groups[YARD_GROUPS];
	const char              *ids[YARD_GROUPS * YARD_LAYERS];
	struct layout_buffer     buffer = { 1, sizeof(yard->device_memory) };
	struct layout_consumer_spec consumer = { ids, 0 };
	const struct layout_spec    spec = { yard->spec.device_parents, groups,
					     yard->spec.group_count, &buffer, 1, &consumer, 1 };
	uint32_t                    g, layer;

	for (g = 0; g < yard->spec.group_count; g++) {
		make_fields(yard, g, fields[g]);
		groups[g] = (struct layout_group_spec){ g, yard->spec.groups[g].packing, fields[g],
							yard->spec.layers[g] };
		for (layer = 0; layer < yard->spec.layers[g]; layer++)
			ids[consumer.field_count++] = fields[g][layer].id;
	}
	KVS_ASSERT(layout_open(&spec, NULL, &yard->layout, NULL) == 0);
}

static void open_engines(struct yard *yard)
{
	struct engine_group   groups[YARD_GROUPS];
	void *const           buffers[] = { yard->device_memory };
	struct copier_options options = { &yard->layout, buffers, &yard->host, YARD_TICKETS, YARD_ROWS };
	uint32_t              g;

	for (g = 0; g < yard->spec.group_count; g++) {
		const struct group_spec *const spec = &yard->spec.groups[g];

		groups[g] = (struct engine_group){ spec->kind, spec->block_tokens, spec->window_tokens,
						   yard->spec.layers[g], yard->planes[g] };
	}
	group_engine_init(&yard->engine, groups, yard->spec.group_count);
	yard->host = (struct arena_part){ .base = yard->host_memory, .block_bytes = YARD_PARENT_BYTES,
					  .stride = YARD_PARENT_BYTES,
					  .block_count = YARD_PARENTS,
					  .blocks_per_slice = YARD_PARENTS };
	KVS_ASSERT(cpu_open(&options, CPU_STEPPED, &yard->copier, NULL) == 0);
}

struct yard *yard_open(const struct yard_spec *spec, struct yard_counts *counts)
{
	struct yard *const         yard = aligned_alloc(64, (sizeof(*yard) + 63) / 64 * 64);
	const struct cache_options options = { .groups = spec->groups,
					       .group_count = spec->group_count,
					       .page_tokens = spec->page_tokens,
					       .device_parents = spec->device_parents,
					       .host_parents = spec->host_parents,
					       .prompt_pages = spec->prompt_pages,
					       .sink = { inserted, removed, yard } };
	struct mover_options mover = { .save_ticket_max = 6, .save_row_max = 96,
				       .load_ticket_max = 6 };

	KVS_ASSERT(yard);
	KVS_ASSERT_CMP(spec->device_parents, <=, YARD_PARENTS);
	KVS_ASSERT_CMP(spec->host_parents, <=, YARD_PARENTS);
	memset(yard, 0, sizeof(*yard));
	memset(yard->device_memory, 0xd5, sizeof(yard->device_memory));
	memset(yard->host_memory, 0x5d, sizeof(yard->host_memory));
	yard->spec = *spec;
	yard->counts = counts;
	yard->space.byte[0] = 3;
	KVS_ASSERT(cache_open(&options, &yard->cache, NULL) == 0);
	KVS_ASSERT(candidates_open(&yard->candidates, 64, NULL) == 0);
	mover.cache = yard->cache;
	mover.candidates = &yard->candidates;
	KVS_ASSERT(mover_open(&yard->mover, &mover, NULL) == 0);
	KVS_ASSERT(snapshots_open(&yard->snapshots, &yard->mover, 3, 32, NULL) == 0);
	KVS_ASSERT(tails_open(&yard->tails, 32, spec->page_tokens, NULL) == 0);
	open_layout(yard);
	open_engines(yard);
	return yard;
}

void yard_close(struct yard *yard)
{
	int stratum;

	yard_settle(yard);
	yard_audit(yard);
	KVS_ASSERT(yard_clear(yard));
	for (stratum = 0; stratum < STRATUM_COUNT; stratum++) {
		const struct pool *const pool = cache_pool(yard->cache, (enum stratum_id)stratum);

		if (pool)
			KVS_ASSERT_CMP(pool_unbound(pool), ==, pool_parent_count(pool));
	}
	yard->counts->rows_checked += yard->engine.rows_checked;
	yard->counts->checkpoints_checked += yard->engine.checkpoints_checked;
	yard->counts->restored += yard->snapshots.counts.restored;
	copier_close(yard->copier);
	layout_close(&yard->layout);
	tails_close(&yard->tails);
	snapshots_close(&yard->snapshots);
	mover_close(&yard->mover);
	candidates_close(&yard->candidates);
	cache_close(yard->cache);
	free(yard);
}

/* --- streams ---------------------------------------------------------------------------------- */

static void submit(struct yard *yard, enum copier_stream stream, const struct copier_batch *batch,
		   uint64_t after)
{
	struct yard_stream *const of = &yard->stream[stream];
	uint32_t                  at;

	while (of->submitted - of->executed == YARD_TICKETS ||
	       copier_submit(yard->copier, stream, batch) < 0)
		KVS_ASSERT(yard_step(yard, stream));
	at = of->submitted++ % YARD_TICKETS;
	of->ticket[at] = batch->ticket;
	of->after[at] = after;
}

static uint32_t list_zeros(const struct yard *yard, const struct cache_admitted *admitted,
			   struct copier_block *zeros)
{
	uint32_t count = 0;
	uint32_t g, i;

	if (!admitted || yard->spec.unzeroed)
		return 0;
	for (g = 0; g < yard->spec.group_count; g++) {
		for (i = 0; i < admitted->fresh_count[g]; i++, count++)
			zeros[count] = (struct copier_block){ g, admitted->fresh[count] };
	}
	return count;
}

void yard_load(struct yard *yard, uint64_t id, const struct cache_admitted *admitted)
{
	const struct mover_ticket *const ticket = mover_find(&yard->mover, id);
	struct copier_block              zeros[YARD_ROWS];
	struct copier_pair               pairs[YARD_ROWS];
	struct copier_clone              clones[YARD_ROWS];
	struct copier_batch              batch = { .ticket = id, .zeros = zeros, .pairs = pairs,
						   .clones = clones };
	uint32_t                         i;

	KVS_ASSERT((id > 0) == (ticket != NULL));
	batch.zero_count = list_zeros(yard, admitted, zeros);
	for (i = ticket ? ticket->rows.head : SLOT_NONE; i != SLOT_NONE; i = yard->mover.links[i].next) {
		const struct mover_row *const row = &yard->mover.rows[i];

		if (row->path == COPY_HOST_TO_DEVICE) {
			pairs[batch.pair_count++] =
				(struct copier_pair){ row->group, row->target, row->source };
		} else {
			clones[batch.clone_count++] =
				(struct copier_clone){ row->group, row->source, row->target };
		}
	}
	if (id > 0 || batch.zero_count > 0)
		submit(yard, COPIER_LOAD, &batch, 0);
}

void yard_save(struct yard *yard, uint64_t id)
{
	const struct mover_ticket *const ticket = mover_find(&yard->mover, id);
	struct copier_pair               pairs[YARD_ROWS];
	struct copier_batch              batch = { .ticket = id, .pairs = pairs };
	uint64_t                         after = 0;
	uint32_t                         i;

	if (id == 0)
		return;
	KVS_ASSERT(ticket);
	MOVER_ROWS(&yard->mover, ticket, i) {
		const struct mover_row *const row = &yard->mover.rows[i];

		const uint64_t                fence = mover_fence(&yard->mover, row->group, row->source);

		after = fence > after ? fence : after;
		pairs[batch.pair_count++] = (struct copier_pair){ row->group, row->source, row->target };
	}
	yard->counts->saves += batch.pair_count;
	submit(yard, COPIER_SAVE, &batch, after);
}

void yard_drain(struct yard *yard)
{
	yard_save(yard, mover_drain(&yard->mover));
}

bool yard_step(struct yard *yard, enum copier_stream stream)
{
	struct yard_stream *const of = &yard->stream[stream];
	const uint32_t            at = of->executed % YARD_TICKETS;
	struct copier_done        done;

	if (of->executed == of->submitted)
		return false;
	if (stream == COPIER_SAVE)
		yard_run_ticket(yard, of->after[at]);
	KVS_ASSERT(cpu_step(yard->copier, stream));
	KVS_ASSERT(copier_poll(yard->copier, &done));
	KVS_ASSERT_CMP(done.stream, ==, stream);
	KVS_ASSERT_CMP(done.ticket, ==, of->ticket[at]);
	of->executed++;
	if (done.ticket == 0)
		return true;
	KVS_ASSERT_CMP(yard->done_count, <, YARD_DONE);
	yard->done[yard->done_count++] = done.ticket;
	if (stream == COPIER_LOAD)
		yard->loaded_ticket = done.ticket;
	return true;
}

void yard_run_ticket(struct yard *yard, uint64_t id)
{
	while (yard->loaded_ticket < id)
		KVS_ASSERT(yard_step(yard, COPIER_LOAD));
}

void yard_run_batches(struct yard *yard, uint64_t batches)
{
	while (yard->stream[COPIER_LOAD].executed < batches)
		KVS_ASSERT(yard_step(yard, COPIER_LOAD));
}

bool yard_acknowledge(struct yard *yard, uint32_t pick)
{
	if (yard->done_count == 0)
		return false;
	pick %= yard->done_count;
	yard->counts->late_acks += pick + 1 < yard->done_count;
	KVS_ASSERT(mover_done(&yard->mover, yard->done[pick]));
	KVS_ASSERT(!mover_done(&yard->mover, yard->done[pick]));
	yard->done[pick] = yard->done[--yard->done_count];
	return true;
}

void yard_settle(struct yard *yard)
{
	while (yard_step(yard, COPIER_LOAD) || yard_step(yard, COPIER_SAVE))
		;
	while (yard_acknowledge(yard, 0))
		;
	KVS_ASSERT_CMP(mover_saving(&yard->mover) + mover_loading(&yard->mover), ==, 0);
}

void yard_settle_saves(struct yard *yard)
{
	uint32_t i;

	while (yard_step(yard, COPIER_SAVE))
		;
	for (i = 0; i < yard->done_count;) {
		if (ticket_is_load(mover_find(&yard->mover, yard->done[i])->kind))
			i++;
		else
			yard_acknowledge(yard, i);
	}
	KVS_ASSERT_CMP(mover_saving(&yard->mover), ==, 0);
}

bool yard_clear(struct yard *yard)
{
	bool cleared;

	yard->clearing = true;
	cleared = snapshots_clear(&yard->snapshots);
	yard->clearing = false;
	if (!cleared)
		return false;
	yard->host_cells = 0;
	tails_clear(&yard->tails);
	return true;
}

/* Only acknowledgements bring cells to Host: when there are fewer than before, it has evicted. */
static void count_host_cells(struct yard *yard)
{
	const struct pages *const pages = cache_pages(yard->cache);
	uint32_t                  count = 0;
	uint32_t                  entry;

	SLOTS_EACH(&pages->slots, entry)
		count += (uint32_t)__builtin_popcountll(pages->entries[entry].held[STRATUM_HOST]);
	if (count < yard->host_cells)
		yard->counts->host_evictions += yard->host_cells - count;
	yard->host_cells = count;
}

void yard_audit(struct yard *yard)
{
	count_host_cells(yard);
	cache_audit(yard->cache);
	mover_audit(&yard->mover);
	snapshots_audit(&yard->snapshots);
	tails_audit(&yard->tails);
	copier_audit(yard->copier);
}
