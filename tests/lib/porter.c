/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of writers and readers, and pins. */
#include "porter.h"

#include <string.h>

#include "base/err.h"

struct kvs_namespace porter_space(uint32_t number)
{
	return (struct kvs_namespace){ { (uint8_t)(1 + number) } };
}

struct kvs_key porter_key(uint32_t number)
{
	return (struct kvs_key){ .space = porter_space(number % PORTER_SPACES), .offset = number };
}

/* --- rows -------------------------------------------------------------------------- */

static void check(const struct porter_batch *batch, uint32_t i, int rc)
{
	KVS_ASSERT_CMP(-batch->rc[i], ==, -rc);
}

static void check_span(const struct porter_batch *batch, uint32_t i, const struct kvs_span *span)
{
	KVS_ASSERT_CMP((uintptr_t)batch->spans[i].ptr, ==, (uintptr_t)span->ptr);
	KVS_ASSERT_CMP(batch->spans[i].bytes, ==, span->bytes);
	KVS_ASSERT_CMP(batch->spans[i].room, ==, span->room);
}

void porter_finish(struct porter *porter, struct porter_batch *batch)
{
	uint32_t i;

	guestbook_expire_locks(&porter->book);
	KVS_ASSERT(host_finish(porter->host, batch->writer, batch->keys, batch->count,
			       porter->book.now_ns, batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i,
		      guestbook_finish(&porter->book, &batch->keys[i], batch->client, batch->tag));
	}
	guestbook_expire_writes(&porter->book);
}

void porter_finish_locked(struct porter *porter, struct porter_batch *batch, uint32_t locks)
{
	struct kvs_span span;
	uint32_t        i;

	guestbook_expire_locks(&porter->book);
	KVS_ASSERT(host_finish_locked(porter->host, batch->writer,
				      porter->book.clients[batch->reader].id, locks, batch->keys,
				      batch->count, porter->book.now_ns, batch->spans,
				      batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i,
		      guestbook_finish_locked(&porter->book, &batch->keys[i], batch->client,
					      batch->tag, batch->reader, locks, &span));
		check_span(batch, i, &span);
	}
	guestbook_expire_writes(&porter->book);
}

void porter_discard(struct porter *porter, struct porter_batch *batch)
{
	uint32_t i;

	KVS_ASSERT(host_discard(porter->host, batch->writer, batch->keys, batch->count,
				batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i,
		      guestbook_discard(&porter->book, &batch->keys[i], batch->client, batch->tag));
	}
}

void porter_lock(struct porter *porter, struct porter_batch *batch)
{
	struct kvs_span span;
	uint32_t        i;

	porter_expire(porter);
	KVS_ASSERT(host_lock(porter->host, batch->writer.client, batch->locks, batch->keys,
			     batch->count, porter->book.now_ns, batch->spans, batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i,
		      guestbook_lock(&porter->book, &batch->keys[i], batch->client, batch->locks,
				     &span));
		check_span(batch, i, &span);
	}
}

void porter_unlock(struct porter *porter, struct porter_batch *batch)
{
	uint32_t i;

	porter_expire(porter);
	KVS_ASSERT(host_unlock(porter->host, batch->writer.client, batch->locks, batch->keys,
			       batch->count, porter->book.now_ns, batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i,
		      guestbook_unlock(&porter->book, &batch->keys[i], batch->client,
				       batch->locks));
	}
}

void porter_spans(struct porter *porter, struct porter_batch *batch)
{
	struct kvs_span span;
	uint32_t        i;

	porter_expire(porter);
	KVS_ASSERT(host_spans(porter->host, batch->writer.client, batch->keys, batch->count,
			      porter->book.now_ns, batch->spans, batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i,
		      guestbook_spans(&porter->book, &batch->keys[i], batch->client, &span));
		check_span(batch, i, &span);
	}
}

void porter_touch(struct porter *porter, struct porter_batch *batch)
{
	uint32_t i;

	KVS_ASSERT(host_touch(porter->host, batch->keys, batch->count) == 0);
	for (i = 0; i < batch->count; i++)
		guestbook_touch(&porter->book, &batch->keys[i]);
}

void porter_remove(struct porter *porter, struct porter_batch *batch, bool force)
{
	uint32_t i;

	KVS_ASSERT(host_remove(porter->host, batch->keys, batch->count, force, batch->rc) == 0);
	for (i = 0; i < batch->count; i++)
		check(batch, i, guestbook_remove(&porter->book, &batch->keys[i], force));
}

void porter_clear(struct porter *porter, const struct kvs_namespace *space, bool force)
{
	uint64_t removed, left, book_removed, book_left;

	host_clear(porter->host, space, force, &removed, &left);
	guestbook_clear(&porter->book, space, force, &book_removed, &book_left);
	KVS_ASSERT_CMP(removed, ==, book_removed);
	KVS_ASSERT_CMP(left, ==, book_left);
}

/* --- pins ------------------------------------------------------------------------------------- */

/* No two objects lie at one address, dead ones aside. */
static struct guest_object *object_at(struct porter *porter, const struct kvs_span *span)
{
	uint32_t i;

	for (i = 0; i < GUESTBOOK_OBJECTS; i++) {
		struct guest_object *const object = &porter->book.objects[i];

		if (object->state != GUEST_NONE && object->span.ptr == span->ptr)
			return object;
	}
	return NULL;
}

void porter_pin(struct porter *porter, struct porter_batch *batch)
{
	struct host_pin pins[PORTER_ROWS];
	struct kvs_span span;
	uint32_t        i, p;

	KVS_ASSERT(host_pin(porter->host, batch->keys, batch->count, pins, batch->spans,
			    batch->rc) == 0);
	for (i = 0; i < batch->count; i++) {
		check(batch, i, guestbook_pin(&porter->book, &batch->keys[i], &span));
		check_span(batch, i, &span);
		for (p = 0; p < PORTER_PINS && porter->pins[p].taken; p++)
			;
		if (batch->rc[i] != 0)
			continue;
		if (p < PORTER_PINS) {
			porter->pins[p] = (struct pinned){ true, pins[i], span };
		} else {
			host_unpin(porter->host, &pins[i], 1);
			guestbook_unpin(&porter->book, object_at(porter, &span));
		}
	}
}

void porter_unpin(struct porter *porter, uint32_t from)
{
	uint32_t p;

	for (p = 0; p < PORTER_PINS; p++) {
		struct pinned *const pinned = &porter->pins[(from + p) % PORTER_PINS];

		if (!pinned->taken)
			continue;
		host_unpin(porter->host, &pinned->pin, 1);
		guestbook_unpin(&porter->book, object_at(porter, &pinned->span));
		pinned->taken = false;
		return;
	}
}
