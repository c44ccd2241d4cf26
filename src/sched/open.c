/* SPDX-License-Identifier: Apache-2.0 */
/* Open and close.  Options are checked before anything is built. */
#include <errno.h>
#include <stdlib.h>

#include "sched/parts.h"

static void told_inserted(void *ctx, const struct cell_name *name, uint32_t block)
{
	struct sched *const sched = ctx;

	(void)block;
	if (sched->streaming)
		candidates_push(&sched->candidates, name);
	storage_published(sched, name);
}

/* --- checks ----------------------------------------------------------------------------------- */

static int check_range(const char *field, uint64_t value, uint64_t least, uint64_t most,
		       struct kvs_error *err)
{
	if (value >= least && value <= most)
		return 0;
	return err_set(err, KVS_E_INVALID, "%s: %llu; must be %llu to %llu", field,
		       (unsigned long long)value, (unsigned long long)least,
		       (unsigned long long)most);
}

static int check_forwards(const struct sched_options *options, struct kvs_error *err)
{
	int rc = check_range("batch_max", options->batch_max, 1, SCHED_REQUESTS_MAX, err);

	if (rc == 0)
		rc = check_range("chunk_tokens", options->chunk_tokens, 1, TOKENS_MAX, err);
	if (rc == 0)
		rc = check_range("overlap_depth", options->overlap_depth, 0, 1, err);
	if (rc == 0) {
		rc = check_range("decode_tokens", options->decode_tokens,
				 options->role != SCHED_PREFILL || options->overlap_depth > 0,
				 options->chunk_tokens, err);
	}
	if (rc == 0)
		rc = check_range("replay_tokens", options->replay_tokens, 0, TOKENS_MAX, err);
	return rc;
}

static int check_host(const struct sched_options *options, struct kvs_error *err)
{
	if (options->snapshot_max > 0 && options->host_parents == 0) {
		return err_set(err, KVS_E_INVALID, "snapshot_max: %u; images need host_parents",
			       options->snapshot_max);
	}
	if (options->snapshot_max > 0 && options->snapshot_block_max == 0)
		return err_set(err, KVS_E_INVALID, "snapshot_block_max: 0; an image has blocks");
	/* Its hit is loaded and then its image: with one ticket it would never come back. */
	if (options->snapshot_max > 0 && options->load_ticket_max < 2) {
		return err_set(err, KVS_E_INVALID,
			       "load_ticket_max: %u; images need 2, the other for the hit before",
			       options->load_ticket_max);
	}
	if (options->with_store && options->host_parents == 0)
		return err_set(err, KVS_E_INVALID, "with_store: storage needs host_parents");
	if (options->with_store && (!options->part || !options->hostmap))
		return err_set(err, KVS_E_INVALID, "with_store: storage needs part and hostmap");
	return 0;
}

static int check_groups(const struct sched_options *options, struct kvs_error *err)
{
	struct groups groups;
	uint32_t      g;
	int           rc;

	rc = groups_make(options->groups, options->group_count, options->page_tokens, &groups, err);
	for (g = 0; rc == 0 && g < groups.count; g++) {
		if (groups.group[g].spec.kind != GROUP_STATE ||
		    options->chunk_tokens >= options->page_tokens)
			continue;
		rc = err_set(err, KVS_E_INVALID,
			     GROUP_LABEL "chunk_tokens: %u; a state needs chunks of a page, %u", g,
			     groups.group[g].spec.name, options->chunk_tokens,
			     options->page_tokens);
	}
	return rc;
}

static int check(const struct sched_options *options, struct kvs_error *err)
{
	int rc = check_groups(options, err);

	if (rc == 0)
		rc = check_range("device_parents", options->device_parents, 1, INT32_MAX, err);
	if (rc == 0)
		rc = check_range("request_max", options->request_max, 1, SCHED_REQUESTS_MAX, err);
	if (rc == 0) {
		rc = check_range("request_tokens_max", options->request_tokens_max, 1, TOKENS_MAX,
				 err);
	}
	if (rc == 0)
		rc = check_forwards(options, err);
	if (rc == 0)
		rc = check_host(options, err);
	return rc;
}

/* --- parts ------------------------------------------------------------------------------------ */

static int no_memory(struct kvs_error *err, const char *what)
{
	return err_set(err, -ENOMEM, "no memory for %s", what);
}

static int open_cache(struct sched *sched, struct kvs_error *err)
{
	const struct sched_options *const options = &sched->options;
	const bool                        host = options->host_parents > 0;
	const struct cache_options        cache = { .groups = options->groups,
						    .group_count = options->group_count,
						    .page_tokens = options->page_tokens,
						    .device_parents = options->device_parents,
						    .host_parents = options->host_parents,
						    .prompt_pages = sched->page_max,
						    .sink = { .inserted = told_inserted,
							      .ctx = sched } };
	struct mover_options              mover = {
		.save_ticket_max = host ? options->save_ticket_max : 1,
		.save_row_max = host ? options->save_row_max : 1,
		.load_ticket_max = options->load_ticket_max
	};
	int                               rc = cache_open(&cache, &sched->cache, err);

	if (rc == 0 && host)
		rc = candidates_open(&sched->candidates, options->candidate_max, err);
	mover.cache = sched->cache;
	mover.candidates = host ? &sched->candidates : NULL;
	if (rc == 0)
		rc = mover_open(&sched->mover, &mover, err);
	if (rc == 0 && options->snapshot_max > 0) {
		rc = snapshots_open(&sched->snapshots, &sched->mover, options->snapshot_max,
				    options->snapshot_block_max, err);
	}
	return rc;
}

static int open_requests(struct sched *sched, struct kvs_error *err)
{
	const uint32_t max = sched->options.request_max;
	int            state;

	sched->requests = calloc(max, sizeof(*sched->requests));
	sched->tokens =
		calloc((size_t)max * sched->options.request_tokens_max, sizeof(*sched->tokens));
	sched->hashes = calloc((size_t)max * sched->page_max, sizeof(*sched->hashes));
	sched->links = calloc(max, sizeof(*sched->links));
	sched->unprepared_links = calloc(max, sizeof(*sched->unprepared_links));
	sched->heap = calloc(max, sizeof(*sched->heap));
	sched->ended = calloc(max, sizeof(*sched->ended));
	if (!sched->requests || !sched->tokens || !sched->hashes || !sched->links ||
	    !sched->unprepared_links || !sched->heap || !sched->ended ||
	    slots_open(&sched->slots, max) < 0 ||
	    map_open(&sched->ids, max, sched->requests->id, sizeof(*sched->requests),
		     SCHED_ID_BYTES) < 0)
		return no_memory(err, "requests");
	list_links_init(sched->links, max);
	list_links_init(sched->unprepared_links, max);
	list_init(&sched->unprepared);
	for (state = 0; state < REQUEST_STATE_COUNT; state++)
		list_init(&sched->lists[state]);
	return 0;
}

static int open_places(struct sched *sched, struct kvs_error *err)
{
	const struct groups *const groups = groups_of(sched);
	const uint32_t             max = sched->options.batch_max;
	uint32_t                   place, g;

	sched->tables = calloc((size_t)max * groups->count, sizeof(*sched->tables));
	if (!sched->tables || ring_open(&sched->places, max, sizeof(uint32_t)) < 0)
		return no_memory(err, "places");
	for (g = 0; g < groups->count; g++) {
		sched->slot_max[g] = group_blocks(&groups->group[g], sched->table_tokens);
		sched->table_slots[g] =
			calloc((size_t)max * sched->slot_max[g], sizeof(**sched->table_slots));
		if (!sched->table_slots[g])
			return no_memory(err, "block tables");
	}
	for (place = 1; place <= max; place++)
		ring_push(&sched->places, &place);
	return 0;
}

static int open_plan(struct sched *sched, struct kvs_error *err)
{
	const struct groups *const groups = groups_of(sched);
	const struct mover *const  mover = &sched->mover;
	uint32_t                   blocks[GROUPS_MAX];
	uint32_t                   g;

	for (g = 0; g < groups->count; g++)
		blocks[g] = sched->options.device_parents * groups->group[g].spec.packing;
	sched->copies = calloc((size_t)mover->save_ticket_max + mover->load_ticket_max,
			       sizeof(*sched->copies));
	sched->saved = calloc(mover->save_row_max, sizeof(*sched->saved));
	if (!sched->copies || !sched->saved ||
	    batcher_open(&sched->batcher, groups->count, sched->options.batch_max, sched->slot_max,
			 blocks) < 0)
		return no_memory(err, "plans");
	return 0;
}

/* --- open and close --------------------------------------------------------------------------- */

/* What follows from the options. */
static void derive(struct sched *sched)
{
	const struct sched_options *const options = &sched->options;
	uint64_t                          tokens = options->request_tokens_max;
	uint32_t                          g;

	for (g = 0; g < options->group_count; g++)
		sched->has_state |= options->groups[g].kind == GROUP_STATE;
	sched->streaming = options->host_parents > 0 && options->role != SCHED_DECODE;
	sched->page_max = options->request_tokens_max / options->page_tokens;
	if (sched->page_max == 0)
		sched->page_max = 1;
	/* The steps that are planned before the last tokens are known. */
	tokens += (uint64_t)options->decode_tokens * (options->overlap_depth + 2);
	sched->table_tokens = tokens < TOKENS_MAX ? (uint32_t)tokens : TOKENS_MAX;
	sched->barrier = SLOT_NONE;
}

static void limit(struct sched *sched)
{
	const struct sched_options *const options = &sched->options;
	const struct chunk_limits         limits = {
		.groups = groups_of(sched),
		.decode_role = options->role == SCHED_DECODE,
		.prefill_role = options->role == SCHED_PREFILL,
		.prefix_cache = options->prefix_cache,
		.chunk_tokens = options->chunk_tokens,
		.decode_tokens = options->decode_tokens,
		.overlap_depth = options->overlap_depth,
		.parents = options->device_parents,
	};

	sched->request_limit = chunk_request_limit(&limits);
}

int sched_open(const struct sched_options *options, struct sched **ret_sched, struct kvs_error *err)
{
	struct sched *sched;
	int           rc = check(options, err);

	if (rc < 0)
		return rc;
	sched = calloc(1, sizeof(*sched));
	if (!sched)
		return no_memory(err, "a scheduler");
	sched->options = *options;
	sched->space = options->space;
	derive(sched);
	rc = open_cache(sched, err);
	if (rc == 0)
		rc = open_requests(sched, err);
	if (rc == 0)
		rc = open_places(sched, err);
	if (rc == 0)
		rc = open_plan(sched, err);
	if (rc == 0)
		rc = storage_open(sched, err);
	if (rc < 0) {
		sched_close(sched);
		return rc;
	}
	limit(sched);
	*ret_sched = sched;
	return 0;
}

/* Blocks and tickets go back as if all had been acknowledged: nobody will. */
static void let_go(struct sched *sched)
{
	uint32_t slot;

	if (!sched->mover.cache)
		return;
	SLOTS_EACH(&sched->slots, slot) {
		if (sched->requests[slot].state != REQUEST_FINISHED)
			request_step(sched, &sched->requests[slot], REQUEST_ON_ABORT);
	}
	storage_close(sched);
	SLOTS_EACH(&sched->mover.slots, slot)
		KVS_ASSERT(mover_done(&sched->mover, sched->mover.tickets[slot].id));
}

static void free_tables(struct sched *sched)
{
	uint32_t g;

	batcher_close(&sched->batcher);
	for (g = 0; g < GROUPS_MAX; g++)
		free(sched->table_slots[g]);
	free(sched->saved);
	free(sched->copies);
	ring_close(&sched->places);
	free(sched->tables);
	map_close(&sched->ids);
	slots_close(&sched->slots);
	free(sched->ended);
	free(sched->heap);
	free(sched->unprepared_links);
	free(sched->links);
	free(sched->hashes);
	free(sched->tokens);
	free(sched->requests);
}

void sched_close(struct sched *sched)
{
	if (!sched)
		return;
	let_go(sched);
	snapshots_close(&sched->snapshots);
	mover_close(&sched->mover);
	candidates_close(&sched->candidates);
	cache_close(sched->cache);
	free_tables(sched);
	free(sched);
}

size_t sched_bytes(const struct sched *sched)
{
	const struct sched_options *const options = &sched->options;
	const size_t request_bytes = sizeof(*sched->requests) + sizeof(*sched->links) +
				     sizeof(*sched->unprepared_links) + sizeof(*sched->heap) +
				     sizeof(*sched->ended) +
				     sched->page_max * sizeof(*sched->hashes) +
				     options->request_tokens_max * sizeof(*sched->tokens);
	size_t       place_bytes = options->group_count * sizeof(*sched->tables) + sizeof(uint32_t);
	uint32_t     g;

	for (g = 0; g < options->group_count; g++)
		place_bytes += sched->slot_max[g] * sizeof(**sched->table_slots);
	return sizeof(*sched) + cache_bytes(sched->cache) + candidates_bytes(&sched->candidates) +
	       mover_bytes(&sched->mover) + snapshots_bytes(&sched->snapshots) +
	       storage_bytes(sched) +
	       options->request_max * request_bytes + options->batch_max * place_bytes +
	       sched->mover.save_row_max * sizeof(*sched->saved) + slots_bytes(&sched->slots) +
	       map_bytes(&sched->ids) + batcher_bytes(&sched->batcher);
}
