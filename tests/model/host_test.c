/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Host against a naive one (guestbook.h): batches of some rows from several clients, with any
 * mix of sizes, expiry in virtual time, quotas, pins and force.  After each operation all codes,
 * events, sums and bytes agree, and who was evicted had to be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "porter.h"
#include "prop.h"

static uint64_t bytes_from(uint32_t bits)
{
	static const uint32_t pages[] = { 1, 1, 1, 2, 2, 3, 5, 7 };

	if (bits % 64 == 0)
		return bits / 64 % 2 ? 0 : (uint64_t)GUESTBOOK_PAGE * PORTER_FIELD_PAGES;
	return (uint64_t)GUESTBOOK_PAGE * pages[bits / 64 % 8] - bits / 512 % 3 * 100;
}

static struct porter_batch batch_of(const struct porter *porter, const struct prop_op *op)
{
	struct porter_batch batch = { .count = op->arg[0] % 3 ? 1
							      : 1 + op->arg[0] / 3 % PORTER_ROWS };
	uint32_t            i, bits = op->arg[1];

	batch.client = op->arg[0] / 16 % GUESTBOOK_CLIENTS;
	batch.reader = op->arg[0] / 64 % GUESTBOOK_CLIENTS;
	batch.tag = op->arg[0] / 256 % 4 == 0;
	batch.locks = op->arg[0] / 1024 % 16 ? 1 + op->arg[0] / 1024 % 2 : HOST_LOCKS_MAX;
	batch.writer = (struct host_writer){ porter->book.clients[batch.client].id, batch.tag };
	for (i = 0; i < batch.count; i++) {
		batch.keys[i] = porter_key((bits + i * (bits >> 16)) % PORTER_KEYS);
		batch.bytes[i] = bytes_from((op->arg[0] >> 12) * (2 * i + 1));
		/* To be found untouched by nobody. */
		batch.rc[i] = 77;
	}
	return batch;
}

/* --- open to close ---------------------------------------------------------------------------- */

static void init_fields(struct porter *porter)
{
	const size_t field_bytes = (size_t)PORTER_FIELD_PAGES * GUESTBOOK_PAGE;
	uint32_t     f;

	/* Fields touch: nothing may lie across. */
	for (f = 0; f < GUESTBOOK_FIELDS; f++) {
		porter->fields[f] = (struct kvs_span){ .ptr = porter->memory + f * field_bytes,
						       .bytes = field_bytes };
	}
}

static void open_host(struct porter *porter, uint32_t bits)
{
	static const char *const policies[] = { "lru", "s3fifo", "arc", "lru-leaf" };
	static const uint32_t    shards[] = { 1, 1, 4, 16 };
	const bool               one = shards[bits % 4] == 1;
	struct kvs_error         err = { 0 };
	uint32_t                 c;

	porter->lazy = one && bits / 4 % 2;
	porter->options = (struct host_options){
		.fields = porter->fields,
		.field_count = GUESTBOOK_FIELDS,
		.object_max = one && bits / 8 % 2 ? 9 : 60,
		.lock_max = one && bits / 16 % 2 ? 7 : 64,
		.client_max = GUESTBOOK_CLIENTS,
		.shard_count = shards[bits % 4],
		.policy = policies[bits / 32 % 4],
		.write_ttl_ns = bits / 128 % 8 ? 600 : HOST_FOREVER,
		.read_ttl_ns = bits / 1024 % 8 ? 300 : HOST_FOREVER,
		.high = 0.75,
		.low = 0.5,
		.isolate = bits / 8192 % 2,
		.quota_bytes = bits / 8192 % 4 == 3 ? 20 * GUESTBOOK_PAGE : 0,
		.listeners = { { .events = (1u << HOST_EVENT_COUNT) - 1,
				 .notify = porter_hear,
				 .arg = porter } },
		.listener_count = 1,
	};
	if (host_open(&porter->options, &porter->host, &err) < 0)
		KVS_PANIC("%s", err.message);
	porter->book = (struct guestbook){ .options = &porter->options, .now_ns = 1000 };
	porter->relieving = false;
	memset(porter->sequences, 0, sizeof(porter->sequences));
	for (c = 0; c < PORTER_SPACES; c++)
		porter->quotas[c] = porter->options.quota_bytes;
	for (c = 0; c < GUESTBOOK_CLIENTS; c++)
		porter_open_client(porter, c);
}

static void close_host(struct porter *porter)
{
	struct host_usage usage;
	uint32_t          c;

	for (c = 0; c < PORTER_PINS; c++)
		porter_unpin(porter, c);
	for (c = 0; c < GUESTBOOK_CLIENTS; c++) {
		KVS_ASSERT(host_client_close(porter->host, porter->book.clients[c].id,
					     porter->book.now_ns) == 0);
	}
	host_audit(porter->host);
	host_usage(porter->host, &usage);
	KVS_ASSERT_CMP(usage.locks + usage.pins + usage.staged + usage.doomed + usage.clients, ==,
		       0);
	host_close(porter->host);
	porter->heard_count = 0;
}

static void *world_open(void)
{
	struct porter *const porter = calloc(1, sizeof(*porter));

	KVS_ASSERT(porter);
	porter->memory = aligned_alloc(GUESTBOOK_PAGE, (size_t)GUESTBOOK_FIELDS *
							       PORTER_FIELD_PAGES * GUESTBOOK_PAGE);
	KVS_ASSERT(porter->memory);
	init_fields(porter);
	open_host(porter, 0);
	return porter;
}

static void world_close(void *arg)
{
	struct porter *const porter = arg;

	close_host(porter);
	free(porter->memory);
	free(porter);
}

/* --- operations ------------------------------------------------------------------------------- */

enum {
	REOPEN,
	RESERVE,
	RESERVE_TEMPORARY,
	RESERVE_WHOLE,
	FINISH,
	FINISH_LOCKED,
	DISCARD,
	LOCK,
	UNLOCK,
	SPANS,
	TOUCH,
	PIN,
	UNPIN,
	REMOVE,
	FORCE,
	CLEAR,
	CLIENT,
	TIME,
	RELIEVE,
	QUOTA
};

static const struct prop_kind kinds[] = {
	[REOPEN] = { "REOPEN", 2 },
	[RESERVE] = { "RESERVE", 200 },
	[RESERVE_TEMPORARY] = { "RESERVE_TEMPORARY", 60 },
	[RESERVE_WHOLE] = { "RESERVE_WHOLE", 30 },
	[FINISH] = { "FINISH", 200 },
	[FINISH_LOCKED] = { "FINISH_LOCKED", 80 },
	[DISCARD] = { "DISCARD", 20 },
	[LOCK] = { "LOCK", 120 },
	[UNLOCK] = { "UNLOCK", 120 },
	[SPANS] = { "SPANS", 20 },
	[TOUCH] = { "TOUCH", 30 },
	[PIN] = { "PIN", 30 },
	[UNPIN] = { "UNPIN", 35 },
	[REMOVE] = { "REMOVE", 20 },
	[FORCE] = { "FORCE", 15 },
	[CLEAR] = { "CLEAR", 3 },
	[CLIENT] = { "CLIENT", 6 },
	[TIME] = { "TIME", 40 },
	[RELIEVE] = { "RELIEVE", 8 },
	[QUOTA] = { "QUOTA", 5 },
};

static void clear(struct porter *porter, const struct prop_op *op)
{
	const struct kvs_namespace space = porter_space(op->arg[0] % PORTER_SPACES);
	const bool                 all = op->arg[0] / PORTER_SPACES % 4 == 0;

	porter_clear(porter, all ? NULL : &space, op->arg[1] % 2);
}

static void step_batch(struct porter *porter, const struct prop_op *op)
{
	struct porter_batch batch = batch_of(porter, op);

	switch (op->kind) {
	case RESERVE:
		porter_reserve(porter, &batch, 0);
		break;
	case RESERVE_TEMPORARY:
		porter_reserve(porter, &batch, HOST_TEMPORARY);
		break;
	case RESERVE_WHOLE:
		porter_reserve(porter, &batch, HOST_WHOLE);
		break;
	case FINISH:
		porter_finish(porter, &batch);
		break;
	case FINISH_LOCKED:
		porter_finish_locked(porter, &batch, op->arg[0] / 65536 % 4 ? batch.locks : 0);
		break;
	case DISCARD:
		porter_discard(porter, &batch);
		break;
	case LOCK:
		porter_lock(porter, &batch);
		break;
	case UNLOCK:
		porter_unlock(porter, &batch);
		break;
	case SPANS:
		porter_spans(porter, &batch);
		break;
	case TOUCH:
		porter_touch(porter, &batch);
		break;
	case PIN:
		porter_pin(porter, &batch);
		break;
	default:
		porter_remove(porter, &batch, op->kind == FORCE);
		break;
	}
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct porter *const porter = arg;

	switch (op->kind) {
	case REOPEN:
		close_host(porter);
		open_host(porter, op->arg[0]);
		break;
	case UNPIN:
		porter_unpin(porter, op->arg[0]);
		break;
	case CLEAR:
		clear(porter, op);
		break;
	case CLIENT:
		porter_reopen_client(porter, op->arg[0] % GUESTBOOK_CLIENTS);
		break;
	case TIME:
		porter_pass(porter, op->arg[0] % 8 ? op->arg[1] % 100 : op->arg[1] % 700);
		break;
	case RELIEVE:
		porter_relieve(porter, 1 + op->arg[0] % 16);
		break;
	case QUOTA:
		porter_quota(porter, op->arg[0] % PORTER_SPACES, op->arg[1] % 30);
		break;
	default:
		step_batch(porter, op);
		break;
	}
	porter_compare(porter);
}

/* Together a million; sanitizers take ten times as long for each. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LISTS 50
#else
#define LISTS 500
#endif

PROP_MAIN("host", a_host_does_what_a_naive_one_would, LISTS, 2000, world_close)
