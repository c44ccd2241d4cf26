/* SPDX-License-Identifier: Apache-2.0 */
/* What a writer changes. */
#include "guestbook_pages.h"

#include <string.h>

#include "base/err.h"

/* --- writing ---------------------------------------------------------------------------------- */

int guestbook_reserve(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		      uint64_t tag, uint64_t bytes)
{
	const struct guest_object *const shown = guestbook_shown(book, key);
	uint64_t                         most = 0;
	uint32_t                         f;

	for (f = 0; f < book->options->field_count; f++) {
		if (book->options->fields[f].bytes > most)
			most = book->options->fields[f].bytes;
	}
	if (bytes == 0 || bytes > most - GUESTBOOK_PAGE)
		return KVS_E_INVALID;
	if (shown)
		return shown->state == GUEST_RESIDENT ? KVS_E_EXISTS : KVS_E_BUSY;
	return guestbook_staged(book, key, client, tag) ? KVS_E_BUSY : 0;
}

/* Each page says whose it is. */
static void write_marks(const struct guest_object *object)
{
	uint32_t page;

	for (page = 0; page < guest_pages(object); page++) {
		memcpy((uint8_t *)object->span.ptr + page * (size_t)GUESTBOOK_PAGE, &object->mark,
		       sizeof(object->mark));
	}
}

void guestbook_stage(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		     uint64_t tag, bool temporary, const struct kvs_span *span)
{
	struct guest_object *object;

	EACH_GUEST (book, object) {
		if (object->state == GUEST_NONE)
			break;
	}
	KVS_ASSERT(object < book->objects + GUESTBOOK_OBJECTS);
	*object = (struct guest_object){ .state = GUEST_STAGED,
					 .key = *key,
					 .span = *span,
					 .mark = ++book->next_mark,
					 .tag = tag,
					 .writer = client,
					 .temporary = temporary,
					 .no_ttl = book->clients[client].no_ttl };
	object->expiry_ns = guestbook_until(book, client, book->options->write_ttl_ns);
	KVS_ASSERT_CMP(span->room, ==, guest_pages(object) * (size_t)GUESTBOOK_PAGE);
	write_marks(object);
	guestbook_expect(book, HOST_RESERVED, key);
}

/* 0, or what a row says that has nothing to finish. */
static int find_staged(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		       uint64_t tag, struct guest_object **ret_staged)
{
	struct guest_object *const staged = guestbook_staged(book, key, client, tag);

	if (!staged)
		return guestbook_resident(book, key) ? KVS_E_STALE : KVS_E_MISSING;
	*ret_staged = staged;
	if (staged->expiry_ns > book->now_ns)
		return 0;
	book->counters[HOST_EXPIRED_WRITES]++;
	guestbook_leave(book, staged);
	return KVS_E_STALE;
}

static void publish(struct guestbook *book, struct guest_object *staged, bool load)
{
	book->counters[HOST_FINISHED]++;
	staged->state = GUEST_RESIDENT;
	guestbook_expect(book, load || staged->temporary ? HOST_LOADED : HOST_WRITTEN,
			 &staged->key);
}

/* Of a temporary object, when another that is to last was written under its key. */
static bool make_last(struct guest_object *shown, const struct guest_object *staged)
{
	if (shown->state != GUEST_RESIDENT || !shown->temporary || staged->temporary)
		return false;
	shown->temporary = shown->spent = false;
	return true;
}

int guestbook_finish(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		     uint64_t tag)
{
	struct guest_object *const shown = guestbook_shown(book, key);
	struct guest_object       *staged;
	const int                  rc = find_staged(book, key, client, tag, &staged);

	if (rc != 0)
		return rc;
	if (!shown) {
		publish(book, staged, false);
		return 0;
	}
	if (make_last(shown, staged))
		guestbook_expect(book, HOST_WRITTEN, key);
	guestbook_leave(book, staged);
	book->counters[shown->state == GUEST_RESIDENT ? HOST_DROPPED_TWINS : HOST_FORCED_WRITES]++;
	return shown->state == GUEST_RESIDENT ? 0 : KVS_E_STALE;
}

int guestbook_finish_locked(struct guestbook *book, const struct kvs_key *key, uint32_t client,
			    uint64_t tag, uint32_t reader, uint32_t count,
			    struct kvs_span *ret_span)
{
	struct guest_object *shown = guestbook_shown(book, key);
	struct guest_object *staged;
	const int            rc = find_staged(book, key, client, tag, &staged);

	*ret_span = (struct kvs_span){ 0 };
	if (rc != 0)
		return rc;
	if (shown && shown->state == GUEST_DOOMED)
		return guestbook_finish(book, key, client, tag);
	if (count > 0 && guestbook_may_lock(book, shown ? shown : staged, reader, count) != 0)
		return KVS_E_FULL;
	if (shown) {
		(void)make_last(shown, staged);
		guestbook_leave(book, staged);
		book->counters[HOST_DROPPED_TWINS]++;
		if (count > 0)
			guestbook_expect(book, HOST_LOCKED, key);
	} else {
		publish(book, staged, true);
		shown = staged;
		if (count == 0 && staged->temporary)
			guestbook_leave(book, staged);
	}
	if (count == 0)
		return 0;
	guestbook_take_locks(book, shown, reader, count);
	*ret_span = shown->span;
	return 0;
}

int guestbook_discard(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		      uint64_t tag)
{
	struct guest_object *const staged = guestbook_staged(book, key, client, tag);

	if (!staged)
		return guestbook_resident(book, key) ? KVS_E_STALE : KVS_E_MISSING;
	book->counters[HOST_DISCARDED]++;
	guestbook_leave(book, staged);
	return 0;
}
