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

#include "base/bits.h"
#include "base/err.h"
#include "guestbook.h"
#include "prop.h"

#define KEYS 14u
#define SPACES 3u
#define ROWS 4u
#define PINS 8u
#define HEARD 1024u
#define FIELD_PAGES 28u

struct pinned {
	bool            taken;
	struct host_pin pin;
	struct kvs_span span; /* names the object, whatever becomes of its key */
};

struct world {
	struct host          *host;
	struct host_options   options;
	struct kvs_span       fields[GUESTBOOK_FIELDS];
	uint8_t              *memory;
	struct guestbook      book;
	struct pinned         pins[PINS];
	bool                  lazy; /* time passes without host_expire() */
	struct guest_expected heard[HEARD];
	uint32_t              heard_count;
	uint64_t              sequences[KEYS]; /* the last of each key */
	uint64_t              quotas[SPACES];
};

/* --- one operation ---------------------------------------------------------------------------- */

/* What an operation is about. */
struct batch {
	uint32_t           count;
	uint32_t           client, reader, locks;
	uint64_t           tag;
	struct host_writer writer;
	struct kvs_key     keys[ROWS];
	uint64_t           bytes[ROWS];
	struct kvs_span    spans[ROWS];
	int                rc[ROWS];
};

static struct kvs_namespace space_of(uint32_t number)
{
	return (struct kvs_namespace){ { (uint8_t)(1 + number) } };
}

static struct kvs_key key_of(uint32_t number)
{
	return (struct kvs_key){ .space = space_of(number % SPACES), .offset = number };
}

static uint64_t bytes_from(uint32_t bits)
{
	static const uint32_t pages[] = { 1, 1, 1, 2, 2, 3, 5, 7 };

	if (bits % 64 == 0)
		return bits / 64 % 2 ? 0 : (uint64_t)GUESTBOOK_PAGE * FIELD_PAGES;
	return (uint64_t)GUESTBOOK_PAGE * pages[bits / 64 % 8] - bits / 512 % 3 * 100;
}

static struct batch batch_of(const struct world *world, const struct prop_op *op)
{
	struct batch batch = { .count = op->arg[0] % 3 ? 1 : 1 + op->arg[0] / 3 % ROWS };
	uint32_t     i, bits = op->arg[1];

	batch.client = op->arg[0] / 16 % GUESTBOOK_CLIENTS;
	batch.reader = op->arg[0] / 64 % GUESTBOOK_CLIENTS;
	batch.tag = op->arg[0] / 256 % 4 == 0;
	batch.locks = op->arg[0] / 1024 % 16 ? 1 + op->arg[0] / 1024 % 2 : HOST_LOCKS_MAX;
	batch.writer = (struct host_writer){ world->book.clients[batch.client].id, batch.tag };
	for (i = 0; i < batch.count; i++) {
		batch.keys[i] = key_of((bits + i * (bits >> 16)) % KEYS);
		batch.bytes[i] = bytes_from((op->arg[0] >> 12) * (2 * i + 1));
		/* To be found untouched by nobody. */
		batch.rc[i] = 77;
	}
	return batch;
}

/* --- events ----------------------------------------------------------------------------------- */

static void hear(void *arg, const struct host_notice *notice)
{
	struct world *const world = arg;
	uint32_t            i;

	for (i = 0; i < notice->count; i++) {
		uint64_t *const last = &world->sequences[notice->keys[i].offset];

		KVS_ASSERT_CMP(world->heard_count, <, HEARD);
		world->heard[world->heard_count++] =
			(struct guest_expected){ notice->event, notice->keys[i] };
		KVS_ASSERT_CMP(notice->sequences[i], !=, *last);
		if (notice->sequences[i] > *last)
			*last = notice->sequences[i];
	}
}

static uint32_t count_event(const struct guest_expected *list, uint32_t count,
			    const struct guest_expected *event)
{
	uint32_t found = 0, i;

	for (i = 0; i < count; i++) {
		found += list[i].event == event->event &&
			 memcmp(&list[i].key, &event->key, sizeof(event->key)) == 0;
	}
	return found;
}

static uint32_t heard(const struct world *world, enum host_event event, const struct kvs_key *key)
{
	const struct guest_expected one = { event, *key };

	return count_event(world->heard, world->heard_count, &one);
}

static uint32_t expected(const struct world *world, enum host_event event, const struct kvs_key *key)
{
	const struct guest_expected one = { event, *key };

	return count_event(world->book.expected, world->book.expected_count, &one);
}

/* Who left without a reason that the book knows was evicted. */
static uint32_t note_evicted(struct world *world)
{
	uint32_t evicted = 0, number;

	for (number = 0; number < KEYS; number++) {
		const struct kvs_key key = key_of(number);

		while (heard(world, HOST_REMOVED, &key) > expected(world, HOST_REMOVED, &key)) {
			guestbook_evicted(&world->book, &key);
			evicted++;
		}
	}
	return evicted;
}

static void compare_events(struct world *world)
{
	uint32_t event, number;

	for (number = 0; number < KEYS; number++) {
		const struct kvs_key key = key_of(number);

		for (event = 0; event < HOST_EVENT_COUNT; event++)
			KVS_ASSERT_CMP(heard(world, event, &key), ==, expected(world, event, &key));
	}
	world->heard_count = 0;
	world->book.expected_count = 0;
}

/* --- reserve ---------------------------------------------------------------------------------- */

/* How things were before a reservation. */
struct before {
	int      rc[ROWS]; /* what the book said */
	uint32_t gap, gap_forced;
	uint32_t count, count_forced;
	uint64_t tenant, tenant_forced;
};

static struct before look(struct world *world, const struct batch *batch)
{
	struct guestbook *const           book = &world->book;
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
static void judge(const struct world *world, const struct batch *batch, const struct before *before,
		  uint32_t evicted)
{
	const uint32_t pages = pages_for(batch->bytes[0]);
	const uint64_t charge = (uint64_t)pages * GUESTBOOK_PAGE;
	const uint64_t quota = world->quotas[batch->keys[0].offset % SPACES];

	if (batch->count > 1 || before->rc[0] != 0)
		return;
	if (batch->rc[0] == KVS_E_FULL) {
		KVS_ASSERT(before->gap_forced < pages ||
			   before->count_forced >= world->options.object_max ||
			   (quota && before->tenant_forced + charge > quota));
	}
	if (evicted > 0) {
		KVS_ASSERT(before->gap < pages || before->count >= world->options.object_max ||
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
static bool has_twin(const struct batch *batch, uint32_t row)
{
	uint32_t i;

	for (i = 0; i < batch->count; i++) {
		if (i != row && memcmp(&batch->keys[i], &batch->keys[row], sizeof(batch->keys[i])) == 0)
			return true;
	}
	return false;
}

static void check_row(struct world *world, const struct batch *batch, const struct before *before,
		      uint32_t i)
{
	const struct kvs_key *const key = &batch->keys[i];
	const int                   rc = batch->rc[i];
	/* An earlier row, or one of another shard, may have changed what the book said. */
	const int now = guestbook_reserve(&world->book, key, batch->client, batch->tag,
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
	KVS_ASSERT(is_among(&batch->spans[i], &world->options));
}

/* With HOST_WHOLE a row may have been staged for a moment. */
static void forgive_reserved(struct world *world, const struct batch *batch)
{
	uint32_t i, h;

	for (i = 0; i < batch->count; i++) {
		for (h = 0; h < world->heard_count && batch->rc[i] == KVS_E_FULL; h++) {
			if (world->heard[h].event == HOST_RESERVED &&
			    memcmp(&world->heard[h].key, &batch->keys[i], sizeof(batch->keys[i])) == 0)
				world->heard[h--] = world->heard[--world->heard_count];
		}
	}
}

static void check_whole(struct world *world, const struct batch *batch)
{
	bool     full = false, staged = false;
	uint32_t i;

	for (i = 0; i < batch->count; i++) {
		full |= batch->rc[i] == KVS_E_FULL;
		staged |= batch->rc[i] == 0;
	}
	KVS_ASSERT(!full || !staged);
	if (full)
		forgive_reserved(world, batch);
}

static void expire(struct world *world)
{
	guestbook_expire_writes(&world->book);
	guestbook_expire_locks(&world->book);
}

static void reserve(struct world *world, struct batch *batch, unsigned flags)
{
	struct before before;
	uint32_t      i, evicted;

	expire(world);
	before = look(world, batch);
	KVS_ASSERT(host_reserve(world->host, batch->writer, batch->keys, batch->bytes, batch->count,
				flags, world->book.now_ns, batch->spans, batch->rc) == 0);
	evicted = note_evicted(world);
	judge(world, batch, &before, evicted);
	if (flags & HOST_WHOLE)
		check_whole(world, batch);
	for (i = 0; i < batch->count; i++) {
		check_row(world, batch, &before, i);
		if (batch->rc[i] == 0) {
			guestbook_stage(&world->book, &batch->keys[i], batch->client, batch->tag,
					flags & HOST_TEMPORARY, &batch->spans[i]);
		}
	}
}

/* --- the other calls -------------------------------------------------------------------------- */

static void check(const struct batch *batch, uint32_t i, int rc)
{
	KVS_ASSERT_CMP(-batch->rc[i], ==, -rc);
}

static void check_span(const struct batch *batch, uint32_t i, const struct kvs_span *span)
{
	KVS_ASSERT_CMP((uintptr_t)batch->spans[i].ptr, ==, (uintptr_t)span->ptr);
	KVS_ASSERT_CMP(batch->spans[i].bytes, ==, span->bytes);
	KVS_ASSERT_CMP(batch->spans[i].room, ==, span->room);
}

static void finish(struct world *world, struct batch *batch)
{
	uint32_t i;

	guestbook_expire_locks(&world->book);
	KVS_ASSERT(host_finish(world->host, batch->writer, batch->keys, batch->count,
			       world->book.now_ns, batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i,
		      guestbook_finish(&world->book, &batch->keys[i], batch->client, batch->tag));
	}
	guestbook_expire_writes(&world->book);
}

static void finish_locked(struct world *world, struct batch *batch, uint32_t locks)
{
	struct kvs_span span;
	uint32_t        i;

	guestbook_expire_locks(&world->book);
	KVS_ASSERT(host_finish_locked(world->host, batch->writer,
				      world->book.clients[batch->reader].id, locks, batch->keys,
				      batch->count, world->book.now_ns, batch->spans, batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i, guestbook_finish_locked(&world->book, &batch->keys[i], batch->client,
							batch->tag, batch->reader, locks, &span));
		check_span(batch, i, &span);
	}
	guestbook_expire_writes(&world->book);
}

static void discard(struct world *world, struct batch *batch)
{
	uint32_t i;

	KVS_ASSERT(host_discard(world->host, batch->writer, batch->keys, batch->count, batch->rc) ==
		   0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i,
		      guestbook_discard(&world->book, &batch->keys[i], batch->client, batch->tag));
	}
}

static void lock(struct world *world, struct batch *batch)
{
	struct kvs_span span;
	uint32_t        i;

	expire(world);
	KVS_ASSERT(host_lock(world->host, batch->writer.client, batch->locks, batch->keys, batch->count,
			     world->book.now_ns, batch->spans, batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i, guestbook_lock(&world->book, &batch->keys[i], batch->client,
					       batch->locks, &span));
		check_span(batch, i, &span);
	}
}

static void unlock(struct world *world, struct batch *batch)
{
	uint32_t i;

	expire(world);
	KVS_ASSERT(host_unlock(world->host, batch->writer.client, batch->locks, batch->keys,
			       batch->count, world->book.now_ns, batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i, guestbook_unlock(&world->book, &batch->keys[i], batch->client,
						 batch->locks));
	}
}

static void spans(struct world *world, struct batch *batch)
{
	struct kvs_span span;
	uint32_t        i;

	expire(world);
	KVS_ASSERT(host_spans(world->host, batch->writer.client, batch->keys, batch->count,
			      world->book.now_ns, batch->spans, batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i,
		      guestbook_spans(&world->book, &batch->keys[i], batch->client, &span));
		check_span(batch, i, &span);
	}
}

static void touch(struct world *world, struct batch *batch)
{
	uint32_t i;

	KVS_ASSERT(host_touch(world->host, batch->keys, batch->count) == 0);
	for (i = 0; i < batch->count; i++)
		guestbook_touch(&world->book, &batch->keys[i]);
}

static void remove_keys(struct world *world, struct batch *batch, bool force)
{
	uint32_t i;

	KVS_ASSERT(host_remove(world->host, batch->keys, batch->count, force, batch->rc) == 0);
	for (i = 0; i < batch->count; i++)
		check(batch, i, guestbook_remove(&world->book, &batch->keys[i], force));
}

static void clear(struct world *world, const struct prop_op *op)
{
	const struct kvs_namespace space = space_of(op->arg[0] % SPACES);
	const bool                 all = op->arg[0] / SPACES % 4 == 0, force = op->arg[1] % 2;
	uint64_t                   removed, left, book_removed, book_left;

	host_clear(world->host, all ? NULL : &space, force, &removed, &left);
	guestbook_clear(&world->book, all ? NULL : &space, force, &book_removed, &book_left);
	KVS_ASSERT_CMP(removed, ==, book_removed);
	KVS_ASSERT_CMP(left, ==, book_left);
}

/* --- pins ------------------------------------------------------------------------------------- */

/* No two objects lie at one address, dead ones aside. */
static struct guest_object *object_at(struct world *world, const struct kvs_span *span)
{
	uint32_t i;

	for (i = 0; i < GUESTBOOK_OBJECTS; i++) {
		struct guest_object *const object = &world->book.objects[i];

		if (object->state != GUEST_NONE && object->span.ptr == span->ptr)
			return object;
	}
	return NULL;
}

static void pin(struct world *world, struct batch *batch)
{
	struct host_pin pins[ROWS];
	struct kvs_span span;
	uint32_t        i, p;

	KVS_ASSERT(host_pin(world->host, batch->keys, batch->count, pins, batch->spans, batch->rc) ==
		   0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i, guestbook_pin(&world->book, &batch->keys[i], &span));
		check_span(batch, i, &span);
		for (p = 0; p < PINS && world->pins[p].taken; p++)
			;
		if (batch->rc[i] != 0)
			continue;
		if (p < PINS) {
			world->pins[p] = (struct pinned){ true, pins[i], span };
		} else {
			host_unpin(world->host, &pins[i], 1);
			guestbook_unpin(&world->book, object_at(world, &span));
		}
	}
}

static void unpin(struct world *world, uint32_t from)
{
	uint32_t p;

	for (p = 0; p < PINS; p++) {
		struct pinned *const pinned = &world->pins[(from + p) % PINS];

		if (!pinned->taken)
			continue;
		host_unpin(world->host, &pinned->pin, 1);
		guestbook_unpin(&world->book, object_at(world, &pinned->span));
		pinned->taken = false;
		return;
	}
}

/* --- upkeep ----------------------------------------------------------------------------------- */

static void open_client(struct world *world, uint32_t client)
{
	struct guest_client *const entry = &world->book.clients[client];

	entry->no_ttl = client == GUESTBOOK_CLIENTS - 1;
	KVS_ASSERT(host_client_open(world->host, entry->no_ttl ? HOST_NO_TTL : 0, &entry->id) == 0);
}

static void reopen_client(struct world *world, uint32_t client)
{
	const host_client id = world->book.clients[client].id;

	KVS_ASSERT(host_client_close(world->host, id, world->book.now_ns) == 0);
	guestbook_client_close(&world->book, client);
	KVS_ASSERT_CMP(-host_client_close(world->host, id, world->book.now_ns), ==, -KVS_E_CLOSED);
	open_client(world, client);
	KVS_ASSERT(world->book.clients[client].id != id);
}

static void pass(struct world *world, uint32_t ns)
{
	world->book.now_ns += ns;
	if (world->lazy)
		return;
	host_expire(world->host, world->book.now_ns);
	expire(world);
}

static void relieve(struct world *world, uint32_t object_max)
{
	struct guestbook *const book = &world->book;
	uint64_t                used, low;
	uint32_t                gone;

	expire(world);
	used = guestbook_bytes(book, NULL, true);
	low = (uint64_t)((double)(world->options.low * FIELD_PAGES * GUESTBOOK_FIELDS)) *
	      GUESTBOOK_PAGE;
	gone = host_relieve(world->host, book->now_ns, object_max);
	KVS_ASSERT_CMP(note_evicted(world), ==, gone);
	if (used <= (uint64_t)(world->options.high * FIELD_PAGES * GUESTBOOK_FIELDS) * GUESTBOOK_PAGE)
		KVS_ASSERT_CMP(gone, ==, 0);
	else if (gone < object_max && guestbook_bytes(book, NULL, true) > low)
		KVS_ASSERT_CMP(guestbook_count(book, true), ==, guestbook_count(book, false));
}

static void set_quota(struct world *world, uint32_t space, uint32_t pages)
{
	const struct kvs_namespace name = space_of(space);
	const uint64_t             quota = (uint64_t)pages * GUESTBOOK_PAGE;

	if (!world->options.isolate) {
		KVS_ASSERT_CMP(-host_quota(world->host, &name, quota, world->book.now_ns), ==,
			       -KVS_E_UNSUPPORTED);
		return;
	}
	expire(world);
	KVS_ASSERT(host_quota(world->host, &name, quota, world->book.now_ns) == 0);
	(void)note_evicted(world);
	world->quotas[space] = quota;
	if (quota && guestbook_bytes(&world->book, &name, true) > quota) {
		KVS_ASSERT_CMP(guestbook_bytes(&world->book, &name, true), ==,
			       guestbook_bytes(&world->book, &name, false));
	}
}

/* --- after each operation --------------------------------------------------------------------- */

static void compare_usage(struct world *world)
{
	struct host_usage expected_usage, usage;
	uint32_t          i;

	guestbook_usage(&world->book, &expected_usage);
	host_usage(world->host, &usage);
	KVS_ASSERT_CMP(usage.bytes, ==, (uint64_t)GUESTBOOK_FIELDS * FIELD_PAGES * GUESTBOOK_PAGE);
	KVS_ASSERT_CMP(usage.used_bytes, ==, expected_usage.used_bytes);
	KVS_ASSERT_CMP(usage.staged_bytes, ==, expected_usage.staged_bytes);
	KVS_ASSERT_CMP(usage.objects, ==, expected_usage.objects);
	KVS_ASSERT_CMP(usage.staged, ==, expected_usage.staged);
	KVS_ASSERT_CMP(usage.doomed, ==, expected_usage.doomed);
	KVS_ASSERT_CMP(usage.temporary, ==, expected_usage.temporary);
	KVS_ASSERT_CMP(usage.locks, ==, expected_usage.locks);
	KVS_ASSERT_CMP(usage.pins, ==, expected_usage.pins);
	KVS_ASSERT_CMP(usage.clients, ==, GUESTBOOK_CLIENTS);
	/*
	 * Refusals have several reasons, and rows of a batch that go together are given up
	 * together.
	 */
	for (i = 0; i <= HOST_EVICTED_BYTES; i++) {
		if (i != HOST_DISCARDED)
			KVS_ASSERT_CMP(usage.counters[i], ==, world->book.counters[i]);
	}
	KVS_ASSERT_CMP(usage.counters[HOST_DISCARDED], >=, world->book.counters[HOST_DISCARDED]);
	KVS_ASSERT_CMP(usage.counters[HOST_REFUSED_LOCKS], ==,
		       world->book.counters[HOST_REFUSED_LOCKS]);
}

static void compare_keys(struct world *world)
{
	struct kvs_key keys[KEYS];
	uint64_t       words;
	uint32_t       number;

	for (number = 0; number < KEYS; number++)
		keys[number] = key_of(number);
	KVS_ASSERT(host_lookup(world->host, keys, KEYS, &words) == 0);
	for (number = 0; number < KEYS; number++) {
		KVS_ASSERT_CMP(bits_test(&words, number), ==,
			       guestbook_resident(&world->book, &keys[number]) != NULL);
	}
}

static void compare_tenants(struct world *world)
{
	uint64_t bytes, quota;
	uint32_t s;

	for (s = 0; s < SPACES; s++) {
		const struct kvs_namespace space = space_of(s);
		const uint64_t             has = guestbook_bytes(&world->book, &space, true);

		if (!host_tenant(world->host, &space, &bytes, &quota)) {
			KVS_ASSERT(!world->options.isolate || has == 0);
			continue;
		}
		KVS_ASSERT_CMP(bytes, ==, has);
		KVS_ASSERT_CMP(quota, ==, world->quotas[s]);
	}
}

static void compare(struct world *world)
{
	compare_events(world);
	compare_usage(world);
	compare_keys(world);
	compare_tenants(world);
	guestbook_check_bytes(&world->book);
	host_audit(world->host);
}

/* --- open to close ---------------------------------------------------------------------------- */

static void init_fields(struct world *world)
{
	const size_t field_bytes = (size_t)FIELD_PAGES * GUESTBOOK_PAGE;
	uint32_t     f;

	/* Fields touch: nothing may lie across. */
	for (f = 0; f < GUESTBOOK_FIELDS; f++) {
		world->fields[f] = (struct kvs_span){ .ptr = world->memory + f * field_bytes,
						      .bytes = field_bytes };
	}
}

static void open_host(struct world *world, uint32_t bits)
{
	static const char *const policies[] = { "lru", "s3fifo", "arc", "lru-leaf" };
	static const uint32_t    shards[] = { 1, 1, 4, 16 };
	const bool               one = shards[bits % 4] == 1;
	struct kvs_error         err = { 0 };
	uint32_t                 c;

	world->lazy = one && bits / 4 % 2;
	world->options = (struct host_options){
		.fields = world->fields,
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
		.listeners = { { .events = (1u << HOST_EVENT_COUNT) - 1, .notify = hear,
				 .arg = world } },
		.listener_count = 1,
	};
	if (host_open(&world->options, &world->host, &err) < 0)
		KVS_PANIC("%s", err.message);
	world->book = (struct guestbook){ .options = &world->options, .now_ns = 1000 };
	memset(world->sequences, 0, sizeof(world->sequences));
	for (c = 0; c < SPACES; c++)
		world->quotas[c] = world->options.quota_bytes;
	for (c = 0; c < GUESTBOOK_CLIENTS; c++)
		open_client(world, c);
}

static void close_host(struct world *world)
{
	struct host_usage usage;
	uint32_t          c;

	for (c = 0; c < PINS; c++)
		unpin(world, c);
	for (c = 0; c < GUESTBOOK_CLIENTS; c++) {
		KVS_ASSERT(host_client_close(world->host, world->book.clients[c].id,
					     world->book.now_ns) == 0);
	}
	host_audit(world->host);
	host_usage(world->host, &usage);
	KVS_ASSERT_CMP(usage.locks + usage.pins + usage.staged + usage.doomed + usage.clients, ==, 0);
	host_close(world->host);
	world->heard_count = 0;
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	world->memory = aligned_alloc(GUESTBOOK_PAGE,
				      (size_t)GUESTBOOK_FIELDS * FIELD_PAGES * GUESTBOOK_PAGE);
	KVS_ASSERT(world->memory);
	init_fields(world);
	open_host(world, 0);
	return world;
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	close_host(world);
	free(world->memory);
	free(world);
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

static void step_batch(struct world *world, const struct prop_op *op)
{
	struct batch batch = batch_of(world, op);

	switch (op->kind) {
	case RESERVE:
		reserve(world, &batch, 0);
		break;
	case RESERVE_TEMPORARY:
		reserve(world, &batch, HOST_TEMPORARY);
		break;
	case RESERVE_WHOLE:
		reserve(world, &batch, HOST_WHOLE);
		break;
	case FINISH:
		finish(world, &batch);
		break;
	case FINISH_LOCKED:
		finish_locked(world, &batch, op->arg[0] / 65536 % 4 ? batch.locks : 0);
		break;
	case DISCARD:
		discard(world, &batch);
		break;
	case LOCK:
		lock(world, &batch);
		break;
	case UNLOCK:
		unlock(world, &batch);
		break;
	case SPANS:
		spans(world, &batch);
		break;
	case TOUCH:
		touch(world, &batch);
		break;
	case PIN:
		pin(world, &batch);
		break;
	default:
		remove_keys(world, &batch, op->kind == FORCE);
		break;
	}
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	switch (op->kind) {
	case REOPEN:
		close_host(world);
		open_host(world, op->arg[0]);
		break;
	case UNPIN:
		unpin(world, op->arg[0]);
		break;
	case CLEAR:
		clear(world, op);
		break;
	case CLIENT:
		reopen_client(world, op->arg[0] % GUESTBOOK_CLIENTS);
		break;
	case TIME:
		pass(world, op->arg[0] % 8 ? op->arg[1] % 100 : op->arg[1] % 700);
		break;
	case RELIEVE:
		relieve(world, 1 + op->arg[0] % 16);
		break;
	case QUOTA:
		set_quota(world, op->arg[0] % SPACES, op->arg[1] % 30);
		break;
	default:
		step_batch(world, op);
		break;
	}
	compare(world);
}

/* Together a million; sanitizers take ten times as long for each. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LISTS 50
#else
#define LISTS 500
#endif

PROP_MAIN("host", a_host_does_what_a_naive_one_would, LISTS, 2000, world_close)
