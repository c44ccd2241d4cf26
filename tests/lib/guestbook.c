/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader and what passing time change. */
#include "guestbook_pages.h"

#include <string.h>

#include "base/err.h"

/* --- what changes ----------------------------------------------------------------------------- */

void guestbook_expect(struct guestbook *book, enum host_event event, const struct kvs_key *key)
{
	KVS_ASSERT_CMP(book->expected_count, <, GUESTBOOK_EXPECTED);
	book->expected[book->expected_count++] = (struct guest_expected){ event, *key };
}

void guestbook_leave(struct guestbook *book, struct guest_object *object)
{
	if (object->state == GUEST_RESIDENT)
		guestbook_expect(book, HOST_REMOVED, &object->key);
	memset(object, 0, sizeof(*object));
}

/* After a lock or a pin went. */
static void settle(struct guestbook *book, struct guest_object *object)
{
	if (guest_locks(object) > 0 || object->pins > 0)
		return;
	if (object->state == GUEST_DOOMED || object->spent)
		guestbook_leave(book, object);
}

void guestbook_give_locks(struct guestbook *book, struct guest_object *object, uint32_t client,
			  uint32_t count)
{
	guestbook_expect(book, HOST_UNLOCKED, &object->key);
	object->claims[client].count -= count;
	object->spent = object->temporary && guest_locks(object) == 0;
	settle(book, object);
}

uint64_t guestbook_until(const struct guestbook *book, uint32_t client, uint64_t ttl_ns)
{
	return book->clients[client].no_ttl || ttl_ns == HOST_FOREVER ? HOST_FOREVER
								      : book->now_ns + ttl_ns;
}

void guestbook_take_locks(struct guestbook *book, struct guest_object *object, uint32_t client,
			  uint32_t count)
{
	object->claims[client].count += count;
	object->claims[client].expiry_ns = guestbook_until(book, client,
							   book->options->read_ttl_ns);
	object->spent = false;
}

void guestbook_expire_writes(struct guestbook *book)
{
	struct guest_object *object;

	EACH_GUEST (book, object) {
		if (object->state != GUEST_STAGED || object->expiry_ns > book->now_ns)
			continue;
		book->counters[HOST_EXPIRED_WRITES]++;
		guestbook_leave(book, object);
	}
}

void guestbook_expire_locks(struct guestbook *book)
{
	struct guest_object *object;
	uint32_t             c;

	EACH_GUEST (book, object) {
		for (c = 0; c < GUESTBOOK_CLIENTS && object->state != GUEST_NONE; c++) {
			if (object->claims[c].count == 0 ||
			    object->claims[c].expiry_ns > book->now_ns)
				continue;
			book->counters[HOST_EXPIRED_LOCKS]++;
			guestbook_give_locks(book, object, c, object->claims[c].count);
		}
	}
}

void guestbook_evicted(struct guestbook *book, const struct kvs_key *key)
{
	struct guest_object *const object = guestbook_resident(book, key);

	KVS_ASSERT(object && guest_is_idle(object));
	book->counters[HOST_EVICTED]++;
	book->counters[HOST_EVICTED_BYTES] += guest_pages(object) * (uint64_t)GUESTBOOK_PAGE;
	guestbook_leave(book, object);
}

static uint32_t pair_count(const struct guestbook *book)
{
	const struct guest_object *object;
	uint32_t                   count = 0, c;

	EACH_GUEST (book, object) {
		for (c = 0; c < GUESTBOOK_CLIENTS; c++)
			count += object->claims[c].count > 0;
	}
	return count;
}

/* A claim that has expired is none, but has its place until it is dropped. */
int guestbook_may_lock(struct guestbook *book, const struct guest_object *object, uint32_t client,
		       uint32_t count)
{
	const uint32_t has = object->claims[client].count;
	const bool     full = has == 0 ? pair_count(book) >= book->options->lock_max
				       : has + count > HOST_LOCKS_MAX;

	book->counters[HOST_REFUSED_LOCKS] += full;
	return full ? KVS_E_FULL : 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

int guestbook_lock(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		   uint32_t count, struct kvs_span *ret_span)
{
	struct guest_object *const object = guestbook_resident(book, key);

	*ret_span = (struct kvs_span){ 0 };
	book->counters[object ? HOST_HITS : HOST_MISSES]++;
	if (!object)
		return KVS_E_MISSING;
	if (guestbook_may_lock(book, object, client, count) != 0)
		return KVS_E_FULL;
	guestbook_take_locks(book, object, client, count);
	guestbook_expect(book, HOST_LOCKED, key);
	*ret_span = object->span;
	return 0;
}

int guestbook_unlock(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		     uint32_t count)
{
	struct guest_object *const object = guestbook_shown(book, key);

	if (!object || (object->state == GUEST_DOOMED && object->claims[client].count == 0))
		return KVS_E_MISSING;
	if (object->claims[client].count < count)
		return KVS_E_STALE;
	guestbook_give_locks(book, object, client, count);
	return 0;
}

int guestbook_spans(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		    struct kvs_span *ret_span)
{
	const struct guest_object *const object = guestbook_shown(book, key);

	*ret_span = (struct kvs_span){ 0 };
	if (!object || (object->state == GUEST_DOOMED && object->claims[client].count == 0))
		return KVS_E_MISSING;
	if (object->claims[client].count == 0)
		return KVS_E_STALE;
	*ret_span = object->span;
	return 0;
}

int guestbook_pin(struct guestbook *book, const struct kvs_key *key, struct kvs_span *ret_span)
{
	struct guest_object *const object = guestbook_resident(book, key);

	*ret_span = (struct kvs_span){ 0 };
	if (!object)
		return KVS_E_MISSING;
	object->pins++;
	*ret_span = object->span;
	return 0;
}

void guestbook_unpin(struct guestbook *book, struct guest_object *object)
{
	KVS_ASSERT_CMP(object->pins, >, 0);
	object->pins--;
	settle(book, object);
}

void guestbook_touch(struct guestbook *book, const struct kvs_key *key)
{
	if (guestbook_resident(book, key))
		guestbook_expect(book, HOST_TOUCHED, key);
}

/* --- removing --------------------------------------------------------------------------------- */

static uint32_t drop_staged(struct guestbook *book, const struct kvs_key *key)
{
	struct guest_object *object;
	uint32_t             gone = 0;

	EACH_GUEST (book, object) {
		if (!guest_is_key(object, key) || object->state != GUEST_STAGED || object->no_ttl)
			continue;
		book->counters[HOST_FORCED_WRITES]++;
		guestbook_leave(book, object);
		gone++;
	}
	return gone;
}

static void force_out(struct guestbook *book, struct guest_object *object)
{
	if (guest_is_idle(object)) {
		guestbook_leave(book, object);
		return;
	}
	guestbook_expect(book, HOST_REMOVED, &object->key);
	object->state = GUEST_DOOMED;
}

int guestbook_remove(struct guestbook *book, const struct kvs_key *key, bool force)
{
	struct guest_object *const object = guestbook_resident(book, key);
	const bool                 staged = guestbook_is_staged(book, key);

	if (!object && !staged)
		return KVS_E_MISSING;
	if (!force) {
		if (staged || !guest_is_idle(object))
			return KVS_E_LOCKED;
		guestbook_leave(book, object);
		return 0;
	}
	if (drop_staged(book, key) == 0 && !object)
		return KVS_E_LOCKED;
	if (object)
		force_out(book, object);
	return 0;
}

static bool may_clear(struct guestbook *book, const struct guest_object *object, bool force)
{
	if (object->state == GUEST_STAGED)
		return force && !object->no_ttl;
	return force || (guest_is_idle(object) && !guestbook_is_staged(book, &object->key));
}

void guestbook_clear(struct guestbook *book, const struct kvs_namespace *space, bool force,
		     uint64_t *ret_removed, uint64_t *ret_left)
{
	struct guest_object *object;

	*ret_removed = 0;
	*ret_left = 0;
	EACH_GUEST (book, object) {
		if (object->state == GUEST_NONE || object->state == GUEST_DOOMED ||
		    (space && memcmp(&object->key.space, space, sizeof(*space)) != 0))
			continue;
		if (!may_clear(book, object, force)) {
			++*ret_left;
			continue;
		}
		++*ret_removed;
		if (object->state == GUEST_STAGED) {
			book->counters[HOST_FORCED_WRITES]++;
			guestbook_leave(book, object);
		} else {
			force_out(book, object);
		}
	}
}

void guestbook_client_close(struct guestbook *book, uint32_t client)
{
	struct guest_object *object;

	EACH_GUEST (book, object) {
		if (object->state == GUEST_STAGED && object->writer == client) {
			book->counters[HOST_ABANDONED]++;
			guestbook_leave(book, object);
		}
		if (object->state != GUEST_NONE && object->claims[client].count > 0)
			guestbook_give_locks(book, object, client, object->claims[client].count);
	}
}
