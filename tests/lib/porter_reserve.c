/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations: who was refused, and who was evicted, had to be. */
#include "porter.h"

#include <string.h>

#include "base/err.h"

/* How things were before a reservation. */
struct before {
	int      rc[PORTER_ROWS]; /* what the book said */
	uint32_t gap, gap_forced;
	uint32_t count, count_forced;
	uint64_t tenant, tenant_forced;
};

static struct before look(struct porter *porter, const struct porter_batch *batch)
{
	struct guestbook *const           book = &porter->book;
	const struct kvs_namespace *const space = &batch->keys[0].space;
	struct before                     before = {
				    .gap = guestbook_gap(book, true),
				    .gap_forced = guestbook_gap(book, false),
				    .count = guestbook_count(book, true),
				    .count_forced = guestbook_count(book, false),
				    .tenant = guestbook_bytes(book, space, true),
				    .tenant_forced = guestbook_bytes(book, space, false),
	};
	uint32_t i;

	for (i = 0; i < batch->count; i++) {
		before.rc[i] = guestbook_reserve(book, &batch->keys[i], batch->client, batch->tag,
						 batch->bytes[i]);
	}
	return before;
}

static uint32_t pages_for(uint64_t bytes)
{
	return (uint32_t)((bytes + GUESTBOOK_PAGE - 1) / GUESTBOOK_PAGE) + 1;
}

/* Of one row: it was refused, or others went for it, only where there was no other way. */
static void judge(const struct porter *porter, const struct porter_batch *batch,
		  const struct before *before, uint32_t evicted)
{
	const uint32_t pages = pages_for(batch->bytes[0]);
	const uint64_t charge = (uint64_t)pages * GUESTBOOK_PAGE;
	const uint64_t quota = porter->quotas[batch->keys[0].offset % PORTER_SPACES];

	if (batch->count > 1 || before->rc[0] != 0)
		return;
	if (batch->rc[0] == KVS_E_FULL) {
		KVS_ASSERT(before->gap_forced < pages ||
			   before->count_forced >= porter->options.object_max ||
			   (quota && before->tenant_forced + charge > quota));
	}
	if (evicted > 0) {
		KVS_ASSERT(before->gap < pages || before->count >= porter->options.object_max ||
			   (quota && before->tenant + charge > quota));
	}
}

static bool is_among(const struct kvs_span *span, const struct host_options *options)
{
	const uint8_t *const ptr = span->ptr;
	uint32_t             f;

	for (f = 0; f < options->field_count; f++) {
		const uint8_t *const base = options->fields[f].ptr;

		if (ptr >= base && ptr + span->room <= base + options->fields[f].bytes)
			return (uintptr_t)ptr % GUESTBOOK_PAGE == 0;
	}
	return false;
}

/* A twin in the batch was staged for a moment, whatever became of it. */
static bool has_twin(const struct porter_batch *batch, uint32_t row)
{
	uint32_t i;

	for (i = 0; i < batch->count; i++) {
		if (i != row &&
		    memcmp(&batch->keys[i], &batch->keys[row], sizeof(batch->keys[i])) == 0)
			return true;
	}
	return false;
}

static void check_row(struct porter *porter, const struct porter_batch *batch,
		      const struct before *before, uint32_t i)
{
	const struct kvs_key *const key = &batch->keys[i];
	const int                   rc = batch->rc[i];
	/* An earlier row, or one of another shard, may have changed what the book said. */
	const int now = guestbook_reserve(&porter->book, key, batch->client, batch->tag,
					  batch->bytes[i]);

	if (rc != 0) {
		KVS_ASSERT(!batch->spans[i].ptr && batch->spans[i].room == 0);
		KVS_ASSERT(rc == before->rc[i] || rc == now ||
			   (rc == KVS_E_FULL && (before->rc[i] == 0 || now == 0)) ||
			   (rc == KVS_E_BUSY && has_twin(batch, i)));
		return;
	}
	KVS_ASSERT(now == 0);
	KVS_ASSERT_CMP(batch->spans[i].bytes, ==, batch->bytes[i]);
	KVS_ASSERT(is_among(&batch->spans[i], &porter->options));
}

/* With HOST_WHOLE a row may have been staged for a moment. */
static void forgive_reserved(struct porter *porter, const struct porter_batch *batch)
{
	uint32_t i, h;

	for (i = 0; i < batch->count; i++) {
		for (h = 0; h < porter->heard_count && batch->rc[i] == KVS_E_FULL; h++) {
			if (porter->heard[h].event == HOST_RESERVED &&
			    memcmp(&porter->heard[h].key, &batch->keys[i],
				   sizeof(batch->keys[i])) == 0)
				porter->heard[h--] = porter->heard[--porter->heard_count];
		}
	}
}

static void check_whole(struct porter *porter, const struct porter_batch *batch)
{
	bool     full = false, staged = false;
	uint32_t i;

	for (i = 0; i < batch->count; i++) {
		full |= batch->rc[i] == KVS_E_FULL;
		staged |= batch->rc[i] == 0;
	}
	KVS_ASSERT(!full || !staged);
	if (full)
		forgive_reserved(porter, batch);
}

void porter_expire(struct porter *porter)
{
	guestbook_expire_writes(&porter->book);
	guestbook_expire_locks(&porter->book);
}

/* Who got something has no more than its quota. */
static void check_quotas(const struct porter *porter, const struct porter_batch *batch)
{
	uint32_t i;

	for (i = 0; i < batch->count; i++) {
		const uint64_t quota = porter->quotas[batch->keys[i].offset % PORTER_SPACES];

		if (batch->rc[i] != 0 || quota == 0)
			continue;
		KVS_ASSERT_CMP(guestbook_bytes(&porter->book, &batch->keys[i].space, true), <=,
			       quota);
	}
}

void porter_reserve(struct porter *porter, struct porter_batch *batch, unsigned flags)
{
	struct before before;
	uint32_t      i, evicted;

	porter_expire(porter);
	before = look(porter, batch);
	KVS_ASSERT(host_reserve(porter->host, batch->writer, batch->keys, batch->bytes,
				batch->count, flags, porter->book.now_ns, batch->spans,
				batch->rc) == 0);
	evicted = porter_note_evicted(porter);
	judge(porter, batch, &before, evicted);
	if (flags & HOST_WHOLE)
		check_whole(porter, batch);
	for (i = 0; i < batch->count; i++) {
		check_row(porter, batch, &before, i);
		if (batch->rc[i] == 0) {
			guestbook_stage(&porter->book, &batch->keys[i], batch->client, batch->tag,
					flags & HOST_TEMPORARY, &batch->spans[i]);
		}
	}
	check_quotas(porter, batch);
}
