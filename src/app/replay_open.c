/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a replay and closing it: arena, device, store, executor, scheduler, and back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/replay.h"
#include "app/replay_marks.h"
#include "key/key.h"
#include "os/os.h"
#include "store/store.h"

/* Two million tokens in one prompt; what a request's tables hold is bounded by it. */
#define PAGE_MAX 4096u

/*
 * Small puts, so many Host parents full of the largest blocks: a drive is busy, and little is held.
 */
#define PUT_PARENTS 16u
#define BACKUP_QUEUE 4096u
#define NEGATIVES 4096u
/* Names that were put, to tell what was evicted from what never was: those of a few GiB. */
#define HISTORY 65536u
#define TAIL_HINTS 4096u
#define TAILS 8u

/* Saves are acknowledged a round later, so few are under way; each takes all that fits. */
#define SAVE_TICKETS 8u

/*
 * Payload under way at once, a direction: enough for any drive, and a bound on what one op delays.
 */
#define RUNNING_BYTES (UINT64_C(128) << 20)

/* For what still runs at the end; the loop has waited for it already. */
#define CLOSE_NS UINT64_C(2000000000)

#define GENERATED_REQUESTS 3000u

static uint32_t least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* A load a request, which may last until its successor's has begun. */
static uint32_t load_tickets(const struct replay *replay)
{
	return 2 * replay->concurrency;
}

/* Blocks of all groups that so many parents may hold. */
static uint64_t blocks_of(const struct replay *replay, uint64_t parents)
{
	uint64_t blocks = 0;
	uint32_t g;

	for (g = 0; g < replay->shape.count; g++)
		blocks += parents * replay->shape.specs[g].packing;
	return blocks;
}

static int no_page(const struct replay_settings *set, struct kvs_error *err)
{
	return err_set(err, KVS_E_INVALID,
		       "device_blocks: %" PRIu64 " do not hold a page of 512 tokens", set->device_blocks);
}

static int open_shape(struct replay *replay, struct kvs_error *err)
{
	const struct replay_settings *const set = replay->set;
	struct watermarks                   marks;
	int rc = replay_shape_parse(&replay->shape, set->groups, set->block_bytes, err);

	if (rc == 0)
		rc = replay_marks_parse(set->watermarks, &marks, err);
	if (rc < 0)
		return rc;
	replay->page_max =
		least(replay_shape_pages(&replay->shape, set->device_blocks), PAGE_MAX);
	return replay->page_max > 0 ? 0 : no_page(set, err);
}

static int open_source(struct replay *replay, struct kvs_error *err)
{
	const struct replay_settings *const set = replay->set;

	return source_open(set->trace, set->seed, set->limit ? set->limit : GENERATED_REQUESTS,
			   &replay->source, err);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* An explicit size that does not fit is refused before anything is touched. */
static int check_memory(const struct replay_settings *set, const struct hostmap *hostmap,
			struct kvs_error *err)
{
	const uint64_t have = os_memory_available_bytes();
	const uint64_t need = set->host_blocks * hostmap->part_bytes +
			      set->device_blocks * set->block_bytes;

	if (need <= have)
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "host_blocks, device_blocks: %" PRIu64 " and %" PRIu64 " blocks of %" PRIu64
		       " bytes are %" PRIu64 " bytes; this machine has %" PRIu64 " available",
		       set->host_blocks, set->device_blocks, set->block_bytes, need, have);
}

/* Of the groups as they are asked for: the Host is sized before the Device's layout is known. */
static int open_hostmap(struct replay *replay, struct hostmap *ret_hostmap, struct kvs_error *err)
{
	const struct replay_shape *const shape = &replay->shape;
	struct hostmap_group             groups[HOSTMAP_GROUPS_MAX];
	uint32_t                         g;

	for (g = 0; g < shape->count; g++)
		groups[g] = (struct hostmap_group){ shape->specs[g].packing, shape->block_bytes[g] };
	return hostmap_make(groups, shape->count, (uint32_t)replay->set->host_blocks, ret_hostmap,
			    err);
}

static int open_memory(struct replay *replay, struct kvs_error *err)
{
	const struct replay_settings *const set = replay->set;
	const uint32_t                      parents = (uint32_t)set->host_blocks;
	struct hostmap                      hostmap;
	int                                 rc = open_hostmap(replay, &hostmap, err);

	if (rc == 0)
		rc = check_memory(set, &hostmap, err);
	if (rc == 0)
		rc = arena_open(arena_part_bytes(hostmap.part_bytes, parents), 0, &replay->arena, err);
	if (rc == 0)
		rc = arena_carve(replay->arena, hostmap.part_bytes, parents, &replay->host, err);
	if (rc == 0) {
		rc = replay_device_open(&replay->device, &replay->shape,
					(uint32_t)set->device_blocks,
					&replay->host, SAVE_TICKETS + load_tickets(replay), err);
	}
	if (rc < 0)
		return rc;
	replay_device_engine(&replay->device, &replay->shape, &replay->engine);
	return layout_hostmap(&replay->device.layout, (uint32_t)set->host_blocks, &replay->hostmap,
			      err);
}

/* --- storage ---------------------------------------------------------------------------------- */

/* The store learns of all Host memory, then the executor owns it. */
static int open_exec(struct replay *replay, struct kvs_error *err)
{
	const uint32_t         slice_count = arena_report(replay->arena)->slice_count;
	struct kvs_span *const slices = calloc(slice_count, sizeof(*slices));
	const uint32_t         credits = (uint32_t)replay->set->op_credits;
	struct exec_options    options = {
		   .limits = { .outstanding_max = credits,
			       .queue_max = credits,
			       .bytes_max = { [EXEC_GET] = RUNNING_BYTES,
					      [EXEC_PUT] = RUNNING_BYTES } },
		   .workers = { [EXEC_QUERY] = 1, [EXEC_GET] = 4, [EXEC_PUT] = 4 },
		   .memory = { slices, slice_count, arena_fd(replay->arena) },
	};
	uint32_t i;
	int      rc;

	if (!slices)
		return err_set(err, -ENOMEM, "no memory for %u slices of the Host", slice_count);
	for (i = 0; i < slice_count; i++)
		slices[i] = arena_slice(replay->arena, i);
	rc = exec_open(replay->store, &options, &replay->exec, err);
	free(slices);
	return rc;
}

static int open_store(struct replay *replay, struct kvs_error *err)
{
	int rc = store_open(replay->set->store, replay->shape.object_bytes, replay->set->policy,
			    &replay->store, err);

	if (rc < 0 || !replay->store)
		return rc;
	arena_retain(replay->arena);
	return open_exec(replay, err);
}

/* --- scheduling ------------------------------------------------------------------------------- */

static int open_agree(struct replay *replay, struct kvs_error *err)
{
	const struct agree_options options = { .owners = 1,
					       .ops_max = (uint32_t)replay->set->op_credits,
					       .copies_max = replay->copies_max };

	return agree_open(&options, &replay->agree, err);
}

/* A quarter of the Host stays out of transactions, for copies from the Device. */
static uint32_t host_credits(const struct replay *replay)
{
	const uint64_t blocks = blocks_of(replay, replay->set->host_blocks);

	if (replay->set->host_credits > 0)
		return (uint32_t)replay->set->host_credits;
	return least((blocks * 3 + 3) / 4, UINT32_MAX);
}

static int limit_transfer(const struct replay *replay, struct transfer_limits *ret_limits,
			  struct kvs_error *err)
{
	const struct replay_settings *const set = replay->set;
	const uint32_t keys_max = least((uint64_t)replay->page_max * COLUMNS_MAX, OP_KEYS_MAX);
	const uint64_t put_keys = PUT_PARENTS * (set->block_bytes / replay->shape.object_bytes);

	*ret_limits = (struct transfer_limits){
		.op_credits = (uint32_t)set->op_credits,
		.host_credits = host_credits(replay),
		.keys_max = keys_max,
		.put_keys_max = least(keys_max, put_keys),
		.backup_max = BACKUP_QUEUE,
		.negative_max = NEGATIVES,
		.history_max = HISTORY,
		.tail_hint_max = TAIL_HINTS,
		.tails_max = TAILS,
		.extension_min = (uint32_t)set->min_extension,
		.lookahead_tokens = TOKENS_MAX,
		.deadline_ns = set->deadline,
		.hold_ns = set->ready_hold,
	};
	return replay_marks_parse(set->watermarks, &ret_limits->marks, err);
}

static int open_sched(struct replay *replay, struct kvs_error *err)
{
	char text[SHAPE_TEXT_BYTES];
	const struct replay_settings *const set = replay->set;
	const uint32_t                      blocks = least(blocks_of(replay, set->device_blocks),
							   CANDIDATES_MAX);
	struct sched_options                options = {
		.role = SCHED_FUSED,
		.groups = replay->shape.specs,
		.group_count = replay->shape.count,
		.page_tokens = SOURCE_PAGE_TOKENS,
		.device_parents = (uint32_t)set->device_blocks,
		.host_parents = (uint32_t)set->host_blocks,
		.prefix_cache = true,
		.request_max = replay->concurrency,
		.request_tokens_max =
			least((uint64_t)replay->page_max * SOURCE_PAGE_TOKENS, TOKENS_MAX),
		.replay_tokens = 1,
		.batch_max = replay->concurrency,
		.chunk_tokens = (uint32_t)set->chunk_tokens,
		.decode_tokens = 1,
		.save_ticket_max = SAVE_TICKETS,
		.save_row_max = blocks,
		.load_ticket_max = load_tickets(replay),
		.candidate_max = blocks,
		.with_store = strcmp(set->store, "none") != 0,
		.part = &replay->host,
		.hostmap = &replay->hostmap,
	};
	int rc = limit_transfer(replay, &options.transfer, err);

	if (rc < 0)
		return rc;
	/* Blocks of two shapes are two layouts: in one store they must not meet. */
	key_namespace(replay_shape_text(&replay->shape, text), &options.space);
	rc = sched_open(&options, &replay->sched, err);
	/* Each group may have room for itself, and all together none for any prompt. */
	if (rc == 0 && sched_request_limit(replay->sched) == 0)
		rc = no_page(set, err);
	return rc;
}

static int open_buffers(struct replay *replay, struct kvs_error *err)
{
	const size_t page_max = replay->page_max;
	bool         failed = false;
	uint32_t     i;

	replay->places = calloc(replay->concurrency, sizeof(*replay->places));
	for (i = 0; replay->places && i < replay->concurrency; i++) {
		struct replay_place *const place = &replay->places[i];

		place->page_ids = calloc(page_max, sizeof(*place->page_ids));
		failed |= !place->page_ids;
	}
	replay->tokens = calloc(page_max * SOURCE_PAGE_TOKENS, sizeof(*replay->tokens));
	replay->events = calloc((size_t)2 * replay->concurrency, sizeof(*replay->events));
	replay->facts = calloc(replay->set->op_credits, sizeof(*replay->facts));
	replay->notices = calloc(replay->set->op_credits, sizeof(*replay->notices));
	replay->copies = calloc(replay->copies_max, sizeof(*replay->copies));
	if (failed || !replay->places || !replay->tokens || !replay->events || !replay->facts ||
	    !replay->notices || !replay->copies) {
		return err_set(err, -ENOMEM, "no memory for %u concurrent requests",
			       replay->concurrency);
	}
	return 0;
}

int replay_open(struct replay *replay, const struct replay_settings *set, struct kvs_error *err)
{
	static int (*const steps[])(struct replay *replay, struct kvs_error *err) = {
		/*
		 * Whatever a store may keep is touched last, when nothing can be refused any more.
		 */
		open_shape, open_source,  open_memory, open_agree,
		open_sched, open_buffers, open_store,
	};
	size_t i;

	*replay = (struct replay){
		.set = set,
		.concurrency = (uint32_t)set->concurrency,
		.backlog_max = least(set->host_blocks / 16 + 1, BACKUP_QUEUE / 2),
	};
	replay->copies_max = SAVE_TICKETS + load_tickets(replay);
	for (i = 0; i < ARRAY_COUNT(steps); i++) {
		const int rc = steps[i](replay, err);

		if (rc < 0) {
			replay_close(replay);
			return rc;
		}
	}
	return 0;
}

/* --- closing ---------------------------------------------------------------------------------- */

/* What its I/O may still touch are blocks and, through its ops, tickets of the scheduler. */
static int close_store(struct replay *replay)
{
	if (replay->exec)
		return exec_close(replay->exec, CLOSE_NS);
	return replay->store ? replay->store->ops->close(replay->store) : 0;
}

static void free_buffers(struct replay *replay)
{
	uint32_t i;

	for (i = 0; replay->places && i < replay->concurrency; i++)
		free(replay->places[i].page_ids);
	free(replay->places);
	free(replay->tokens);
	free(replay->events);
	free(replay->facts);
	free(replay->notices);
	free(replay->copies);
}

int replay_close(struct replay *replay)
{
	const int rc = close_store(replay);

	/* Late I/O may touch any of it: nothing is freed, unmapped or forgotten. */
	if (rc < 0)
		return rc;
	sched_close(replay->sched);
	agree_close(replay->agree);
	replay_device_close(&replay->device);
	arena_close(replay->arena);
	source_close(replay->source);
	free_buffers(replay);
	*replay = (struct replay){ 0 };
	return 0;
}
