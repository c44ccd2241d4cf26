/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a replay and closing it: arena, device, store, executor, scheduler, and back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/replay.h"
#include "key/key.h"
#include "os/os.h"
#include "store/store.h"

/* Two million tokens in one prompt; what a slot's tables hold is bounded by it. */
#define PAGE_MAX 4096u

/* 64 transactions, half of them puts of 16 blocks: a drive is busy, and little is held. */
#define OP_CREDITS 64u
#define PUT_KEYS 16u
#define BACKUP_QUEUE 4096u

/* Long enough for a request to wait for Device room behind a full batch. */
#define HOLD_NS UINT64_C(2000000000)

/* Payload under way at once, a direction: enough for any drive, and a bound on what one op delays. */
#define RUNNING_BYTES (UINT64_C(128) << 20)

/* For what still runs at the end; the loop has waited for it already. */
#define CLOSE_NS UINT64_C(2000000000)

#define GENERATED_REQUESTS 3000u

static uint32_t least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

static int open_source(struct replay *replay, struct kvs_error *err)
{
	const struct replay_settings *const set = replay->set;

	return source_open(set->trace, set->seed, set->limit ? set->limit : GENERATED_REQUESTS,
			   &replay->source, err);
}

/* An explicit size that does not fit is refused before anything is touched. */
static int check_memory(const struct replay_settings *set, struct kvs_error *err)
{
	const uint64_t have = os_memory_available_bytes();
	const uint64_t need = (set->host_blocks + set->device_blocks) * set->block_bytes;

	if (need <= have)
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "host_blocks, device_blocks: %" PRIu64 " and %" PRIu64 " blocks of %" PRIu64
		       " bytes are %" PRIu64 " bytes; this machine has %" PRIu64 " available",
		       set->host_blocks, set->device_blocks, set->block_bytes, need, have);
}

static int open_memory(struct replay *replay, struct kvs_error *err)
{
	const struct replay_settings *const set = replay->set;
	int                                 rc = check_memory(set, err);

	if (rc == 0) {
		rc = arena_open(arena_part_bytes(set->block_bytes, (uint32_t)set->host_blocks), 0,
				&replay->arena, err);
	}
	if (rc == 0) {
		rc = arena_carve(replay->arena, set->block_bytes, (uint32_t)set->host_blocks,
				 &replay->host, err);
	}
	if (rc == 0) {
		rc = device_open(&replay->device, (uint32_t)set->device_blocks, &replay->host,
				 MONO_SCHED_COPIES_A_REQUEST * replay->concurrency, err);
	}
	return rc;
}

/* The store learns of all Host memory, then the executor owns it. */
static int open_exec(struct replay *replay, struct kvs_error *err)
{
	const uint32_t         slice_count = arena_report(replay->arena)->slice_count;
	struct kvs_span *const slices = calloc(slice_count, sizeof(*slices));
	struct exec_options    options = {
		   .limits = { .outstanding_max = OP_CREDITS,
			       .queue_max = OP_CREDITS,
			       .bytes_max = { [EXEC_GET] = RUNNING_BYTES,
					      [EXEC_PUT] = RUNNING_BYTES } },
		   .workers = { [EXEC_QUERY] = 1, [EXEC_GET] = 4, [EXEC_PUT] = 4 },
		   .slices = slices,
		   .slice_count = slice_count,
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
	int rc = store_open(replay->set->store, replay->set->block_bytes, replay->set->policy,
			    &replay->store, err);

	if (rc < 0 || !replay->store)
		return rc;
	arena_retain(replay->arena);
	return open_exec(replay, err);
}

static int open_sched(struct replay *replay, struct kvs_error *err)
{
	char layout[128];
	const struct replay_settings *const set = replay->set;
	struct mono_sched_options           options = {
		.coord = { .device_blocks = (uint32_t)set->device_blocks,
			   .host_blocks = (uint32_t)set->host_blocks,
			   .device_policy = "lru-leaf",
			   .host_policy = set->policy },
		.with_store = replay->store != NULL,
		.page_tokens = SOURCE_PAGE_TOKENS,
		.request_max = replay->concurrency,
		.page_max = replay->page_max,
		.replay_tokens = 1,
		.extension_min = 1,
	};
	const uint32_t keys_max = least(replay->page_max, OP_KEYS_MAX);

	/* A quarter of the Host stays out of transactions, for copies from the Device. */
	options.transfer = (struct mono_transfer_limits){
		.op_credits = OP_CREDITS,
		.host_credits = least((set->host_blocks * 3 + 3) / 4, UINT32_MAX),
		.keys_max = keys_max,
		.put_keys_max = least(keys_max, PUT_KEYS),
		.backup_queue = BACKUP_QUEUE,
		.deadline_ns = set->deadline,
		.hold_ns = HOLD_NS,
	};
	/* Blocks of two sizes are two layouts: in one store they must not meet. */
	snprintf(layout, sizeof(layout),
		 "reference engine, full group, 512-token pages, %" PRIu64 " bytes",
		 set->block_bytes);
	key_namespace(layout, &options.space);
	return mono_sched_open(&options, &replay->host, &replay->sched, err);
}

static int open_buffers(struct replay *replay, struct kvs_error *err)
{
	const size_t page_max = replay->page_max;

	replay->page_ids = calloc(replay->concurrency * page_max, sizeof(*replay->page_ids));
	replay->blocks = calloc(page_max, sizeof(*replay->blocks));
	replay->tokens = calloc(page_max * SOURCE_PAGE_TOKENS, sizeof(*replay->tokens));
	replay->facts = calloc(OP_CREDITS, sizeof(*replay->facts));
	if (!replay->page_ids || !replay->blocks || !replay->tokens || !replay->facts) {
		return err_set(err, -ENOMEM, "no memory for %u concurrent requests",
			       replay->concurrency);
	}
	return 0;
}

int replay_open(struct replay *replay, const struct replay_settings *set, struct kvs_error *err)
{
	static int (*const steps[])(struct replay *replay, struct kvs_error *err) = {
		open_source, open_memory, open_store, open_sched, open_buffers,
	};
	size_t i;

	*replay = (struct replay){
		.set = set,
		.concurrency = (uint32_t)set->concurrency,
		.page_max = least(set->device_blocks, PAGE_MAX),
		.backlog_max = least(set->host_blocks / 16 + 1, BACKUP_QUEUE / 2),
	};
	engine_init(&replay->engine, SOURCE_PAGE_TOKENS, set->block_bytes);
	for (i = 0; i < ARRAY_COUNT(steps); i++) {
		const int rc = steps[i](replay, err);

		if (rc < 0) {
			replay_close(replay);
			return rc;
		}
	}
	return 0;
}

/* What its I/O may still touch are blocks and, through its ops, tickets of the scheduler. */
static int close_store(struct replay *replay)
{
	if (replay->exec)
		return exec_close(replay->exec, CLOSE_NS);
	return replay->store ? replay->store->ops->close(replay->store) : 0;
}

int replay_close(struct replay *replay)
{
	const int rc = close_store(replay);

	/* Late I/O may touch any of it: nothing is freed, unmapped or forgotten. */
	if (rc < 0)
		return rc;
	mono_sched_close(replay->sched);
	device_close(&replay->device);
	arena_close(replay->arena);
	source_close(replay->source);
	free(replay->page_ids);
	free(replay->blocks);
	free(replay->tokens);
	free(replay->facts);
	*replay = (struct replay){ 0 };
	return 0;
}
