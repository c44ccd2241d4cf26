/* SPDX-License-Identifier: Apache-2.0 */
/* See quay.h. */
#include "quay.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/prng.h"
#include "key/prompt.h"
#include "match/joint.h"

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
	return value > 0 ? value : fallback;
}

struct quay *quay_new(const struct quay_spec *spec)
{
	struct quay *const   quay = calloc(1, sizeof(*quay));
	struct cache_options options = { .groups = spec->groups,
					 .group_count = spec->group_count,
					 .page_tokens = spec->page_tokens,
					 .device_parents = spec->device_parents,
					 .host_parents = spec->host_parents,
					 .prompt_pages = QUAY_PAGES };
	struct mover_options mover = { .save_ticket_max = or_default(spec->save_ticket_max, 4),
				       .save_row_max = or_default(spec->save_row_max, 64),
				       .load_ticket_max = or_default(spec->load_ticket_max, 4) };

	KVS_ASSERT(quay);
	quay->spec = *spec;
	KVS_ASSERT(candidates_open(&quay->candidates, or_default(spec->candidates, 64), NULL) == 0);
	if (!spec->quiet)
		options.sink = candidates_sink(&quay->candidates);
	KVS_ASSERT(cache_open(&options, &quay->cache, NULL) == 0);
	mover.cache = quay->cache;
	mover.candidates = &quay->candidates;
	KVS_ASSERT(mover_open(&quay->mover, &mover, NULL) == 0);
	KVS_ASSERT(snapshots_open(&quay->snapshots, &quay->mover, or_default(spec->snapshots, 2),
				  or_default(spec->image_blocks, 32), NULL) == 0);
	quay->space.byte[0] = 7;
	return quay;
}

void quay_free(struct quay *quay)
{
	snapshots_close(&quay->snapshots);
	mover_close(&quay->mover);
	cache_close(quay->cache);
	candidates_close(&quay->candidates);
	free(quay);
}

/* --- prompts ---------------------------------------------------------------------------------- */

static const struct groups *groups_of(const struct quay *quay)
{
	return cache_groups(quay->cache);
}

static void know(struct quay *quay, const struct quay_request *request, uint32_t page)
{
	const uint32_t tokens = quay->spec.page_tokens;
	uint32_t       i;

	for (i = 0; i < quay->known_count; i++) {
		if (memcmp(&quay->known[i].hash, &request->hashes[page], sizeof(request->hashes[page])) == 0)
			return;
	}
	KVS_ASSERT_CMP(quay->known_count, <, QUAY_KNOWN);
	quay->known[quay->known_count].hash = request->hashes[page];
	memcpy(quay->known[quay->known_count++].words, &request->words[page * tokens],
	       tokens * sizeof(*request->words));
}

void quay_prompt(struct quay *quay, struct quay_request *request, uint64_t id, int32_t first,
		uint32_t count)
{
	const uint32_t pages = count / quay->spec.page_tokens;
	uint32_t       i;

	KVS_ASSERT_CMP(count, <=, QUAY_TOKENS);
	KVS_ASSERT_CMP(pages, <=, QUAY_PAGES);
	*request = (struct quay_request){ .id = id, .token_count = count };
	for (i = 0; i < count; i++) {
		request->tokens[i] = first + (int32_t)i;
		request->words[i] = mix64((i > 0 ? request->words[i - 1] : 0) ^
					  (uint64_t)request->tokens[i]);
	}
	prefix_hash_chain(&(struct prompt){ .tokens = request->tokens, .token_count = count,
					    .page_tokens = quay->spec.page_tokens },
			  0, pages, NULL, request->hashes);
	for (i = 0; i < pages; i++)
		know(quay, request, i);
	for (i = 0; i < QUAY_GROUPS; i++)
		table_init(&request->tables[i], request->slots[i], QUAY_TOKENS);
}

/* --- copies ----------------------------------------------------------------------------------- */

static void copy_rows(struct quay *quay, const struct mover_ticket *ticket)
{
	uint32_t i;

	KVS_ASSERT_CMP(ticket->id, <, QUAY_TICKETS);
	if (bits_test(quay->copied, ticket->id))
		return;
	bits_set(quay->copied, ticket->id);
	MOVER_ROWS(&quay->mover, ticket, i) {
		const struct mover_row *const row = &quay->mover.rows[i];
		const bool                    from_host = row->path == COPY_HOST_TO_DEVICE;
		const bool                    to_host = row->path == COPY_DEVICE_TO_HOST;
		quay_memory *const            from = from_host ? &quay->host : &quay->device;
		quay_memory *const            to = to_host ? &quay->host : &quay->device;

		memcpy((*to)[row->group][row->target], (*from)[row->group][row->source],
		       sizeof((*to)[0][0]));
	}
}

/* What was ordered before: loads of lower ids. */
static void copy_loads(struct quay *quay, uint64_t before)
{
	uint32_t slot;

	SLOTS_EACH(&quay->mover.slots, slot) {
		const struct mover_ticket *const ticket = &quay->mover.tickets[slot];

		if (ticket_is_load(ticket->kind) && ticket->id < before)
			copy_rows(quay, ticket);
	}
}

void quay_copy_loads(struct quay *quay)
{
	copy_loads(quay, UINT64_MAX);
}

void quay_copy(struct quay *quay, uint64_t id)
{
	const struct mover_ticket *const ticket = mover_find(&quay->mover, id);

	KVS_ASSERT(ticket);
	if (!ticket_is_load(ticket->kind))
		copy_loads(quay, id);
	copy_rows(quay, ticket);
}

/* --- requests --------------------------------------------------------------------------------- */

static void make_demands(const struct quay *quay, uint32_t tokens, struct demand *ret_demands)
{
	uint32_t g;

	for (g = 0; g < quay->spec.group_count; g++)
		ret_demands[g] = demand_dense(tokens, 0);
}

int quay_start(struct quay *quay, struct quay_request *request, uint32_t probe_pages, uint32_t end)
{
	const uint32_t            page = quay->spec.page_tokens;
	const struct cache_prompt prompt = { .space = &quay->space, .hashes = request->hashes,
					     .page_count = probe_pages };
	struct demand             demands[QUAY_GROUPS];
	struct cache_probe        probe;
	struct cache_admission    admission = { .tables = request->tables, .demands = demands,
						.probe = &probe,
						.completed = { .computed = COMPUTED_NONE } };
	struct cache_admitted     admitted;
	int                       rc;

	KVS_ASSERT(mover_can_load(&quay->mover));
	KVS_ASSERT(cache_probe(quay->cache, &prompt, PROBE_ALL, &probe, NULL) == 0);
	make_demands(quay, end - (uint32_t)probe.host_tokens, demands);
	rc = cache_admit(quay->cache, &admission, &admitted, NULL);
	if (rc < 0)
		return rc;
	request->epoch = admitted.epoch;
	request->hit = admitted.host_tokens;
	request->computed = admitted.host_tokens;
	request->published = (uint32_t)(admitted.host_tokens / page);
	request->load_ticket = mover_load(&quay->mover, request->id, admitted.moves,
				      admitted.load_count + admitted.copy_count);
	if (admitted.host_tokens > admitted.device_tokens) {
		const uint32_t first = (uint32_t)(admitted.device_tokens / page);

		KVS_ASSERT(cache_publish(quay->cache, request->tables, &quay->space,
					 &request->hashes[first], first, request->published - first,
					 request->epoch, CELL_CHUNK, NULL) == 0);
	}
	return 0;
}

struct cache_completed quay_completed(const struct quay *quay, const struct quay_request *request)
{
	const uint32_t pages = (uint32_t)(request->computed / quay->spec.page_tokens);

	return (struct cache_completed){ .space = &quay->space, .hashes = request->hashes,
					 .page_count = pages, .new_begin = request->published,
					 .kind = pages > request->published ? CELL_CHUNK : CELL_NONE,
					 .computed = request->computed };
}

int quay_grow(struct quay *quay, struct quay_request *request, uint32_t end)
{
	struct demand                demands[QUAY_GROUPS];
	const struct cache_admission admission = { .tables = request->tables, .demands = demands,
						   .completed = quay_completed(quay, request),
						   .epoch = request->epoch };
	struct cache_admitted        admitted;
	int                          rc;

	make_demands(quay, end - (uint32_t)request->computed, demands);
	rc = cache_admit(quay->cache, &admission, &admitted, NULL);
	if (rc == 0)
		request->published = admission.completed.page_count;
	return rc;
}

void quay_forward(struct quay *quay, struct quay_request *request, uint32_t end)
{
	uint32_t g;

	quay_copy_loads(quay);
	for (g = 0; g < quay->spec.group_count; g++) {
		const struct group_spec *const spec = &quay->spec.groups[g];
		uint32_t                       i;

		for (i = (uint32_t)request->computed; i < end; i++) {
			const uint32_t slot = request->slots[g][i / spec->block_tokens];
			const uint32_t at = spec->kind == GROUP_STATE ? 0 : i % spec->block_tokens;

			KVS_ASSERT_CMP(slot, !=, BLOCK_NULL);
			quay->device[g][slot][at] = request->words[i];
		}
	}
	request->computed = end;
}

void quay_publish(struct quay *quay, struct quay_request *request)
{
	const struct cache_completed completed = quay_completed(quay, request);

	KVS_ASSERT(cache_advance(quay->cache, request->tables, &completed, request->epoch, NULL) == 0);
	request->published = completed.page_count;
}

void quay_run(struct quay *quay, struct quay_request *request, uint32_t probe_pages, uint32_t end)
{
	KVS_ASSERT(quay_start(quay, request, probe_pages, end) == 0);
	quay_forward(quay, request, end);
}

void quay_finish(struct quay *quay, struct quay_request *request)
{
	quay_publish(quay, request);
	cache_free(quay->cache, request->tables);
	request->epoch = 0;
}

/* --- tickets ----------------------------------------------------------------------------------- */

bool quay_done(struct quay *quay, uint64_t id)
{
	if (mover_find(&quay->mover, id))
		quay_copy(quay, id);
	return mover_done(&quay->mover, id);
}

uint32_t quay_rows(const struct quay *quay, uint64_t id)
{
	const struct mover_ticket *const ticket = mover_find(&quay->mover, id);

	return ticket ? ticket->rows.count : 0;
}

const struct mover_row *quay_row(const struct quay *quay, uint64_t id, uint32_t i)
{
	const struct mover_ticket *const ticket = mover_find(&quay->mover, id);
	uint32_t                         row;

	KVS_ASSERT(ticket);
	MOVER_ROWS(&quay->mover, ticket, row) {
		if (i-- == 0)
			return &quay->mover.rows[row];
	}
	KVS_PANIC("a ticket has fewer rows");
}

/* --- what is where ---------------------------------------------------------------------------- */

/* Blocks of all groups with at least `least` owners besides the index. */
static uint32_t count_blocks(const struct quay *quay, enum stratum_id stratum, bool named, uint32_t least)
{
	const struct pool *const pool = cache_pool(quay->cache, stratum);
	uint32_t                 count = 0;
	uint32_t                 g, parent, slot, bound;

	for (parent = 1; parent <= pool_parent_count(pool); parent++) {
		for (g = 0; g < quay->spec.group_count; g++) {
			for (slot = 0; pool_bound(pool, parent, &bound) && bound == g &&
				       slot < pool_packing(pool, g); slot++) {
				const uint32_t   block = 1 + (parent - 1) * pool_packing(pool, g) + slot;
				const uint32_t   refs = pool_refs(pool, g, block);
				struct cell_view view;
				const bool       has_name =
					refs > 0 && cache_view(quay->cache, stratum, g, block, &view);

				count += refs > 0 && (has_name || !named) && refs - has_name >= least;
			}
		}
	}
	return count;
}

uint32_t quay_cached(const struct quay *quay, enum stratum_id stratum)
{
	return count_blocks(quay, stratum, true, 0);
}

uint32_t quay_held(const struct quay *quay, enum stratum_id stratum)
{
	return count_blocks(quay, stratum, false, 0);
}

uint32_t quay_pinned(const struct quay *quay, enum stratum_id stratum)
{
	return count_blocks(quay, stratum, false, 1);
}

bool quay_has(const struct quay *quay, enum stratum_id stratum, const struct quay_request *request,
	     uint32_t group, uint32_t position)
{
	const uint32_t         page_blocks = groups_of(quay)->group[group].page_blocks;
	const struct cell_name name = { &quay->space, &request->hashes[position / page_blocks], group,
					position % page_blocks };

	return cache_find(quay->cache, stratum, &name) != BLOCK_NULL;
}

/* --- checks ----------------------------------------------------------------------------------- */

/* The words of one block that a query at `computed` attends to. */
static void check_block(const struct quay *quay, const struct quay_request *request, uint32_t g,
			uint32_t position)
{
	const struct group *const group = &groups_of(quay)->group[g];
	const uint64_t *const     words = quay->device[g][request->slots[g][position]];
	const uint32_t            q = group->spec.block_tokens;
	const uint64_t            computed = request->computed;
	uint64_t                  i = (uint64_t)position * q;

	KVS_ASSERT_CMP(request->slots[g][position], !=, BLOCK_NULL);
	if (group->spec.kind == GROUP_STATE) {
		KVS_ASSERT_CMP(words[0], ==, request->words[computed - 1]);
		return;
	}
	for (; i < computed && i / q == position; i++) {
		if (group->window_tokens == 0 || i + group->window_tokens > computed)
			KVS_ASSERT_CMP(words[i % q], ==, request->words[i]);
	}
}

void quay_check_request(const struct quay *quay, const struct quay_request *request)
{
	uint32_t g, position, end;

	for (g = 0; g < quay->spec.group_count; g++) {
		match_needed(&groups_of(quay)->group[g], request->computed, &position, &end);
		for (; position < end; position++)
			check_block(quay, request, g, position);
	}
}

static const struct quay_page *known(const struct quay *quay, const struct prefix_hash *hash)
{
	uint32_t i;

	for (i = 0; i < quay->known_count; i++) {
		if (memcmp(&quay->known[i].hash, hash, sizeof(*hash)) == 0)
			return &quay->known[i];
	}
	KVS_PANIC("a page that nobody asked for");
}

static void check_cell(const struct quay *quay, uint32_t entry, uint32_t column, enum stratum_id stratum)
{
	const struct pages *const     pages = cache_pages(quay->cache);
	const uint32_t                g = pages->groups.column_group[column];
	const struct group *const     group = &pages->groups.group[g];
	const uint32_t                q = group->spec.block_tokens;
	const uint32_t                offset = column - group->first_column;
	const uint32_t                block = pages_block(pages, pages_cell(pages, entry, column), stratum);
	const struct quay_page *const page = known(quay, &pages->entries[entry].name.hash);
	const uint64_t *const         words = (stratum == STRATUM_HOST ? quay->host : quay->device)[g][block];

	if (block == BLOCK_NULL)
		return;
	if (stratum == STRATUM_DEVICE && mover_fence(&quay->mover, g, block) > 0)
		return;
	if (group->spec.kind == GROUP_STATE)
		KVS_ASSERT_CMP(words[0], ==, page->words[offset * q + q - 1]);
	else
		KVS_ASSERT(memcmp(words, &page->words[offset * q], q * sizeof(*words)) == 0);
}

void quay_check(const struct quay *quay)
{
	const struct pages *const pages = cache_pages(quay->cache);
	uint32_t                  entry, column;

	cache_audit(quay->cache);
	mover_audit(&quay->mover);
	snapshots_audit(&quay->snapshots);
	SLOTS_EACH(&pages->slots, entry) {
		for (column = 0; column < pages->groups.columns; column++) {
			check_cell(quay, entry, column, STRATUM_DEVICE);
			check_cell(quay, entry, column, STRATUM_HOST);
		}
	}
}
