/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, requests, events.  See sched_rig.h; rounds are in sched_rig_run.c. */
#include "sched_rig_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- open and close --------------------------------------------------------------------------- */

struct sched_options srig_options(void)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 2, 0, 2 },
						    { "window", GROUP_WINDOW, 2, 4, 1 } };

	return (struct sched_options){
		.role = SCHED_FUSED,
		.space = { { 3 } },
		.groups = groups,
		.group_count = ARRAY_COUNT(groups),
		.page_tokens = 2,
		.device_parents = 31,
		.prefix_cache = true,
		.request_max = 16,
		.request_tokens_max = 256,
		.replay_tokens = 1,
		.batch_max = 8,
		.chunk_tokens = 64,
		.decode_tokens = 1,
		.save_ticket_max = 16,
		.save_row_max = 256,
		.load_ticket_max = 16,
		.candidate_max = 256,
	};
}

uint64_t srig_block_bytes(const struct group_spec *group)
{
	return group->kind == GROUP_STATE ? 8 : 8 * (uint64_t)group->block_tokens;
}

/* Every group's stride divides it, and a block fits into its stride. */
static uint64_t parent_bytes(const struct sched_options *options)
{
	uint64_t bytes = 1;
	uint64_t most = 0;
	uint32_t g;

	for (g = 0; g < options->group_count; g++) {
		const struct group_spec *const group = &options->groups[g];
		const uint64_t                 need = srig_block_bytes(group) * group->packing;

		if (bytes % group->packing != 0)
			bytes *= group->packing;
		most = need > most ? need : most;
	}
	return 8 * bytes * ((most + 8 * bytes - 1) / (8 * bytes));
}

uint64_t srig_stride(const struct srig *rig, uint32_t group)
{
	return rig->parent_bytes / rig->options.groups[group].packing;
}

uint8_t *srig_device_block(const struct srig *rig, uint32_t group, uint32_t block)
{
	return rig->device + rig->parent_bytes + (uint64_t)(block - 1) * srig_stride(rig, group);
}

uint8_t *srig_host_block(const struct srig *rig, uint32_t group, uint32_t block)
{
	return hostmap_span(&rig->hostmap, &rig->part, group, block).ptr;
}

static void open_host(struct srig *rig)
{
	struct hostmap_group groups[GROUPS_MAX];
	const uint32_t       parents = rig->options.host_parents;
	uint64_t             bytes;
	uint32_t             g;

	if (parents == 0)
		return;
	for (g = 0; g < rig->options.group_count; g++) {
		groups[g] = (struct hostmap_group){ rig->options.groups[g].packing,
						    srig_stride(rig, g) };
	}
	KVS_ASSERT(hostmap_make(groups, rig->options.group_count, parents, &rig->hostmap,
				NULL) == 0);
	bytes = rig->hostmap.parent_bytes;
	rig->host = malloc(bytes * parents);
	rig->objects = calloc(SRIG_OBJECTS, sizeof(*rig->objects));
	KVS_ASSERT(rig->host && rig->objects);
	memset(rig->host, 0x5d, bytes * parents);
	rig->part = (struct arena_part){ .base = rig->host, .block_bytes = bytes, .stride = bytes,
					 .block_count = parents, .blocks_per_slice = parents };
	rig->options.part = &rig->part;
	rig->options.hostmap = &rig->hostmap;
}

static void open_memory(struct srig *rig)
{
	const struct sched_options *const options = &rig->options;
	struct engine_group               groups[GROUPS_MAX];
	size_t                            bytes;
	uint32_t                          g;

	rig->parent_bytes = parent_bytes(options);
	bytes = rig->parent_bytes * (options->device_parents + 1);
	rig->device = malloc(bytes);
	KVS_ASSERT(rig->device);
	memset(rig->device, 0xd5, bytes);
	open_host(rig);
	for (g = 0; g < options->group_count; g++) {
		const struct group_spec *const spec = &options->groups[g];

		rig->planes[g].stride = srig_stride(rig, g);
		rig->planes[g].first = rig->device + rig->parent_bytes - srig_stride(rig, g);
		groups[g] = (struct engine_group){ spec->kind, spec->block_tokens,
						   spec->window_tokens, 1, &rig->planes[g] };
	}
	group_engine_init(&rig->engine, groups, options->group_count);
}

void srig_open(struct srig *rig, const struct sched_options *options)
{
	struct kvs_error err = { 0 };

	memset(rig, 0, sizeof(*rig));
	rig->options = *options;
	rig->accept = 1;
	rig->tick.permits = (struct agree_permits){ .forward = true, .storage = true };
	open_memory(rig);
	if (sched_open(&rig->options, &rig->sched, &err) < 0)
		KVS_PANIC("%s", err.message);
}

void srig_close(struct srig *rig)
{
	uint32_t i;

	for (i = 0; i < SRIG_REQUESTS; i++) {
		if (rig->requests[i].id[0] != '\0')
			srig_event(rig, SCHED_ABORT, rig->requests[i].id);
	}
	for (i = 0; i < 8; i++) {
		srig_let_copies(rig);
		srig_let_store(rig);
		srig_next(rig);
	}
	KVS_ASSERT_CMP(sched_available(rig->sched), ==, rig->options.device_parents);
	sched_close(rig->sched);
	srig_free(rig);
}

void srig_free(struct srig *rig)
{
	free(rig->objects);
	free(rig->host);
	free(rig->device);
}

/* --- requests --------------------------------------------------------------------------------- */

struct srig_request *srig_request(struct srig *rig, const char *id)
{
	uint32_t i;

	for (i = 0; i < SRIG_REQUESTS; i++) {
		if (strcmp(rig->requests[i].id, id) == 0)
			return &rig->requests[i];
	}
	return NULL;
}

void srig_tokens(int32_t *tokens, uint32_t count, int32_t first, int32_t step)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		tokens[i] = first + (int32_t)i * step;
}

void srig_submit(struct srig *rig, const char *id, const int32_t *tokens, uint32_t count,
		 uint32_t max_new)
{
	struct srig_request *const request = srig_request(rig, "");
	const struct sched_request ask = { .id = id, .tokens = tokens, .token_count = count,
					   .max_new_tokens = max_new, .logits_from = LOGITS_NONE };
	struct kvs_error           err = { 0 };

	KVS_ASSERT(request);
	KVS_ASSERT_CMP(count, <, SRIG_TOKENS);
	if (sched_submit(rig->sched, &ask, 1, &err) < 0)
		KVS_PANIC("%s", err.message);
	memset(request, 0, sizeof(*request));
	snprintf(request->id, sizeof(request->id), "%s", id);
	memcpy(request->tokens, tokens, count * sizeof(*tokens));
	request->count = request->told = request->prompt = count;
	sched_audit(rig->sched);
}

void srig_submit_new(struct srig *rig, const char *id, uint32_t count, int32_t seed)
{
	int32_t tokens[SRIG_TOKENS];

	srig_tokens(tokens, count, seed * 1000, 1);
	srig_submit(rig, id, tokens, count, 1);
}

/* --- events ----------------------------------------------------------------------------------- */

static int feed(struct srig *rig, const struct sched_event *event)
{
	struct kvs_error err = { 0 };
	uint32_t         applied = 7;
	const int        rc = sched_feed(rig->sched, event, 1, &applied, &err);

	KVS_ASSERT_CMP(applied, ==, rc == 0);
	KVS_ASSERT((rc < 0) == (err.message[0] != '\0'));
	sched_audit(rig->sched);
	return rc;
}

int srig_event(struct srig *rig, enum sched_event_kind kind, const char *id)
{
	return feed(rig, &(struct sched_event){ .kind = kind, .id = id });
}

void srig_extend(struct srig *rig, const char *id)
{
	struct srig_request *const request = srig_request(rig, id);
	uint32_t                   count;

	KVS_ASSERT(request);
	KVS_ASSERT_CMP(request->given_count, >, 0);
	count = request->given[0];
	request->given_count--;
	memmove(request->given, request->given + 1, request->given_count * sizeof(*request->given));
	KVS_ASSERT(feed(rig, &(struct sched_event){ .kind = SCHED_EXTEND, .id = id,
						    .tokens = request->tokens + request->told,
						    .token_count = count }) == 0);
	request->told += count;
}

void srig_extend_all(struct srig *rig)
{
	const struct batch *const batch = &rig->plan->forward;
	char                      ids[SRIG_REQUESTS][SCHED_ID_BYTES];
	uint32_t                  count = 0;
	uint32_t                  i;

	/* The plan is gone with the first event. */
	for (i = 0; i < batch->row_count; i++) {
		if (batch->rows[i].ends_prompt || batch->rows[i].kind == BATCH_DECODE)
			snprintf(ids[count++], SCHED_ID_BYTES, "%s", batch->rows[i].id);
	}
	for (i = 0; i < count; i++)
		srig_extend(rig, ids[i]);
}

void srig_finish(struct srig *rig, const char *id)
{
	KVS_ASSERT(srig_event(rig, SCHED_FINISH, id) == 0);
}

void srig_abort(struct srig *rig, const char *id)
{
	KVS_ASSERT(srig_event(rig, SCHED_ABORT, id) == 0);
}

const struct sched_plan *srig_step(struct srig *rig)
{
	srig_next(rig);
	srig_extend_all(rig);
	return rig->plan;
}

void srig_prefilled(struct srig *rig, const char *id)
{
	struct srig_request *const request = srig_request(rig, id);

	KVS_ASSERT(request);
	srig_land(rig, request);
	srig_grow(request, 1);
	KVS_ASSERT(feed(rig, &(struct sched_event){ .kind = SCHED_PREFILLED, .id = id,
						    .tokens = request->tokens + request->told,
						    .token_count = 1 }) == 0);
	request->told++;
	request->given_count = 0;
	request->awaited = false;
}

const struct sched_result *srig_ended(const struct srig *rig, const char *id)
{
	uint32_t i;

	for (i = 0; i < rig->plan->ended_count; i++) {
		if (strcmp(rig->plan->ended[i].id, id) == 0)
			return &rig->plan->ended[i];
	}
	return NULL;
}
