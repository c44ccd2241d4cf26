/* SPDX-License-Identifier: Apache-2.0 */
#include "guestbook.h"

#include <string.h>

#include "base/err.h"

/* --- looking ---------------------------------------------------------------------------------- */

#define EACH(book, object) \
	for ((object) = (book)->objects; (object) < (book)->objects + GUESTBOOK_OBJECTS; (object)++)

static bool is_key(const struct guest_object *object, const struct kvs_key *key)
{
	return object->state != GUEST_NONE && memcmp(&object->key, key, sizeof(*key)) == 0;
}

static uint32_t locks_of(const struct guest_object *object)
{
	uint32_t count = 0, c;

	for (c = 0; c < GUESTBOOK_CLIENTS; c++)
		count += object->claims[c].count;
	return count;
}

uint32_t guest_pages(const struct guest_object *object)
{
	return (uint32_t)((object->span.bytes + GUESTBOOK_PAGE - 1) / GUESTBOOK_PAGE) + 1;
}

bool guest_is_idle(const struct guest_object *object)
{
	return object->state == GUEST_RESIDENT && locks_of(object) == 0 && object->pins == 0;
}

struct guest_object *guestbook_shown(struct guestbook *book, const struct kvs_key *key)
{
	struct guest_object *object;

	EACH(book, object) {
		if (is_key(object, key) && object->state != GUEST_STAGED)
			return object;
	}
	return NULL;
}

struct guest_object *guestbook_resident(struct guestbook *book, const struct kvs_key *key)
{
	struct guest_object *const object = guestbook_shown(book, key);

	return object && object->state == GUEST_RESIDENT ? object : NULL;
}

struct guest_object *guestbook_staged(struct guestbook *book, const struct kvs_key *key, uint32_t client,
				      uint64_t tag)
{
	struct guest_object *object;

	EACH(book, object) {
		if (is_key(object, key) && object->state == GUEST_STAGED &&
		    object->writer == client && object->tag == tag)
			return object;
	}
	return NULL;
}

bool guestbook_is_staged(struct guestbook *book, const struct kvs_key *key)
{
	struct guest_object *object;

	EACH(book, object) {
		if (is_key(object, key) && object->state == GUEST_STAGED)
			return true;
	}
	return false;
}

/* --- what changes ----------------------------------------------------------------------------- */

static void expect(struct guestbook *book, enum host_event event, const struct kvs_key *key)
{
	KVS_ASSERT_CMP(book->expected_count, <, GUESTBOOK_EXPECTED);
	book->expected[book->expected_count++] = (struct guest_expected){ event, *key };
}

static void leave(struct guestbook *book, struct guest_object *object)
{
	if (object->state == GUEST_RESIDENT)
		expect(book, HOST_REMOVED, &object->key);
	memset(object, 0, sizeof(*object));
}

/* After a lock or a pin went. */
static void settle(struct guestbook *book, struct guest_object *object)
{
	if (locks_of(object) > 0 || object->pins > 0)
		return;
	if (object->state == GUEST_DOOMED || object->spent)
		leave(book, object);
}

static void give_locks(struct guestbook *book, struct guest_object *object, uint32_t client,
		       uint32_t count)
{
	expect(book, HOST_UNLOCKED, &object->key);
	object->claims[client].count -= count;
	object->spent = object->temporary && locks_of(object) == 0;
	settle(book, object);
}

static uint64_t until(const struct guestbook *book, uint32_t client, uint64_t ttl_ns)
{
	return book->clients[client].no_ttl || ttl_ns == HOST_FOREVER ? HOST_FOREVER
								     : book->now_ns + ttl_ns;
}

static void take_locks(struct guestbook *book, struct guest_object *object, uint32_t client,
		       uint32_t count)
{
	object->claims[client].count += count;
	object->claims[client].expiry_ns = until(book, client, book->options->read_ttl_ns);
	object->spent = false;
}

void guestbook_expire_writes(struct guestbook *book)
{
	struct guest_object *object;

	EACH(book, object) {
		if (object->state != GUEST_STAGED || object->expiry_ns > book->now_ns)
			continue;
		book->counters[HOST_EXPIRED_WRITES]++;
		leave(book, object);
	}
}

void guestbook_expire_locks(struct guestbook *book)
{
	struct guest_object *object;
	uint32_t             c;

	EACH(book, object) {
		for (c = 0; c < GUESTBOOK_CLIENTS && object->state != GUEST_NONE; c++) {
			if (object->claims[c].count == 0 ||
			    object->claims[c].expiry_ns > book->now_ns)
				continue;
			book->counters[HOST_EXPIRED_LOCKS]++;
			give_locks(book, object, c, object->claims[c].count);
		}
	}
}

void guestbook_evicted(struct guestbook *book, const struct kvs_key *key)
{
	struct guest_object *const object = guestbook_resident(book, key);

	KVS_ASSERT(object && guest_is_idle(object));
	book->counters[HOST_EVICTED]++;
	book->counters[HOST_EVICTED_BYTES] += guest_pages(object) * (uint64_t)GUESTBOOK_PAGE;
	leave(book, object);
}

/* --- writing ---------------------------------------------------------------------------------- */

int guestbook_reserve(struct guestbook *book, const struct kvs_key *key, uint32_t client, uint64_t tag,
		      uint64_t bytes)
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

void guestbook_stage(struct guestbook *book, const struct kvs_key *key, uint32_t client, uint64_t tag,
		     bool temporary, const struct kvs_span *span)
{
	struct guest_object *object;

	EACH(book, object) {
		if (object->state == GUEST_NONE)
			break;
	}
	KVS_ASSERT(object < book->objects + GUESTBOOK_OBJECTS);
	*object = (struct guest_object){ .state = GUEST_STAGED, .key = *key, .span = *span,
					 .mark = ++book->next_mark, .tag = tag, .writer = client,
					 .temporary = temporary,
					 .no_ttl = book->clients[client].no_ttl };
	object->expiry_ns = until(book, client, book->options->write_ttl_ns);
	KVS_ASSERT_CMP(span->room, ==, guest_pages(object) * (size_t)GUESTBOOK_PAGE);
	write_marks(object);
	expect(book, HOST_RESERVED, key);
}

/* 0, or what a row says that has nothing to finish. */
static int find_staged(struct guestbook *book, const struct kvs_key *key, uint32_t client, uint64_t tag,
		       struct guest_object **ret_staged)
{
	struct guest_object *const staged = guestbook_staged(book, key, client, tag);

	if (!staged)
		return guestbook_resident(book, key) ? KVS_E_STALE : KVS_E_MISSING;
	*ret_staged = staged;
	if (staged->expiry_ns > book->now_ns)
		return 0;
	book->counters[HOST_EXPIRED_WRITES]++;
	leave(book, staged);
	return KVS_E_STALE;
}

static void publish(struct guestbook *book, struct guest_object *staged, bool load)
{
	book->counters[HOST_FINISHED]++;
	staged->state = GUEST_RESIDENT;
	expect(book, load || staged->temporary ? HOST_LOADED : HOST_WRITTEN, &staged->key);
}

int guestbook_finish(struct guestbook *book, const struct kvs_key *key, uint32_t client, uint64_t tag)
{
	const struct guest_object *const shown = guestbook_shown(book, key);
	struct guest_object             *staged;
	const int                        rc = find_staged(book, key, client, tag, &staged);

	if (rc != 0)
		return rc;
	if (!shown) {
		publish(book, staged, false);
		return 0;
	}
	leave(book, staged);
	book->counters[shown->state == GUEST_RESIDENT ? HOST_DROPPED_TWINS : HOST_DISCARDED]++;
	return shown->state == GUEST_RESIDENT ? 0 : KVS_E_STALE;
}

static uint32_t pair_count(const struct guestbook *book)
{
	const struct guest_object *object;
	uint32_t                   count = 0, c;

	EACH(book, object) {
		for (c = 0; c < GUESTBOOK_CLIENTS; c++)
			count += object->claims[c].count > 0;
	}
	return count;
}

/* A claim that has expired is none, but has its place until it is dropped. */
static int may_lock(struct guestbook *book, const struct guest_object *object, uint32_t client,
		    uint32_t count)
{
	const uint32_t has = object->claims[client].count;
	const bool     full = has == 0 ? pair_count(book) >= book->options->lock_max
				       : has + count > HOST_LOCKS_MAX;

	book->counters[HOST_REFUSED_LOCKS] += full;
	return full ? KVS_E_FULL : 0;
}

int guestbook_finish_locked(struct guestbook *book, const struct kvs_key *key, uint32_t client,
			    uint64_t tag, uint32_t reader, uint32_t count, struct kvs_span *ret_span)
{
	struct guest_object *shown = guestbook_shown(book, key);
	struct guest_object *staged;
	const int            rc = find_staged(book, key, client, tag, &staged);

	*ret_span = (struct kvs_span){ 0 };
	if (rc != 0)
		return rc;
	if (shown && shown->state == GUEST_DOOMED)
		return guestbook_finish(book, key, client, tag);
	if (count > 0 && may_lock(book, shown ? shown : staged, reader, count) != 0)
		return KVS_E_FULL;
	if (shown) {
		leave(book, staged);
		book->counters[HOST_DROPPED_TWINS]++;
		if (count > 0)
			expect(book, HOST_LOCKED, key);
	} else {
		publish(book, staged, true);
		shown = staged;
		if (count == 0 && staged->temporary)
			leave(book, staged);
	}
	if (count == 0)
		return 0;
	take_locks(book, shown, reader, count);
	*ret_span = shown->span;
	return 0;
}

int guestbook_discard(struct guestbook *book, const struct kvs_key *key, uint32_t client, uint64_t tag)
{
	struct guest_object *const staged = guestbook_staged(book, key, client, tag);

	if (!staged)
		return guestbook_resident(book, key) ? KVS_E_STALE : KVS_E_MISSING;
	book->counters[HOST_DISCARDED]++;
	leave(book, staged);
	return 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

int guestbook_lock(struct guestbook *book, const struct kvs_key *key, uint32_t client, uint32_t count,
		   struct kvs_span *ret_span)
{
	struct guest_object *const object = guestbook_resident(book, key);

	*ret_span = (struct kvs_span){ 0 };
	book->counters[object ? HOST_HITS : HOST_MISSES]++;
	if (!object)
		return KVS_E_MISSING;
	if (may_lock(book, object, client, count) != 0)
		return KVS_E_FULL;
	take_locks(book, object, client, count);
	expect(book, HOST_LOCKED, key);
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
	give_locks(book, object, client, count);
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
	book->counters[object ? HOST_HITS : HOST_MISSES]++;
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
		expect(book, HOST_TOUCHED, key);
}

/* --- removing --------------------------------------------------------------------------------- */

static uint32_t drop_staged(struct guestbook *book, const struct kvs_key *key)
{
	struct guest_object *object;
	uint32_t             gone = 0;

	EACH(book, object) {
		if (!is_key(object, key) || object->state != GUEST_STAGED || object->no_ttl)
			continue;
		book->counters[HOST_DISCARDED]++;
		leave(book, object);
		gone++;
	}
	return gone;
}

static void force_out(struct guestbook *book, struct guest_object *object)
{
	if (guest_is_idle(object)) {
		leave(book, object);
		return;
	}
	expect(book, HOST_REMOVED, &object->key);
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
		leave(book, object);
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
	EACH(book, object) {
		if (object->state == GUEST_NONE || object->state == GUEST_DOOMED ||
		    (space && memcmp(&object->key.space, space, sizeof(*space)) != 0))
			continue;
		if (!may_clear(book, object, force)) {
			++*ret_left;
			continue;
		}
		++*ret_removed;
		if (object->state == GUEST_STAGED) {
			book->counters[HOST_DISCARDED]++;
			leave(book, object);
		} else {
			force_out(book, object);
		}
	}
}

void guestbook_client_close(struct guestbook *book, uint32_t client)
{
	struct guest_object *object;

	EACH(book, object) {
		if (object->state == GUEST_STAGED && object->writer == client) {
			book->counters[HOST_ABANDONED]++;
			leave(book, object);
		}
		if (object->state != GUEST_NONE && object->claims[client].count > 0)
			give_locks(book, object, client, object->claims[client].count);
	}
}

/* --- room ------------------------------------------------------------------------------------- */

static bool counts(const struct guest_object *object, bool with_idle)
{
	return object->state != GUEST_NONE && (with_idle || !guest_is_idle(object));
}

/* Whether an object has the page; else how far it is from there to the next object of the field. */
static bool has_page(const struct guestbook *book, const uint8_t *page, bool with_idle)
{
	const struct guest_object *object;

	EACH(book, object) {
		if (counts(object, with_idle) && page >= (const uint8_t *)object->span.ptr &&
		    page < (const uint8_t *)object->span.ptr + object->span.room)
			return true;
	}
	return false;
}

uint32_t guestbook_gap(const struct guestbook *book, bool with_idle)
{
	uint32_t most = 0, run, f;
	size_t   at;

	for (f = 0; f < book->options->field_count; f++) {
		const struct kvs_span *const field = &book->options->fields[f];

		for (at = 0, run = 0; at < field->bytes; at += GUESTBOOK_PAGE) {
			run = has_page(book, (uint8_t *)field->ptr + at, with_idle) ? 0 : run + 1;
			most = run > most ? run : most;
		}
	}
	return most;
}

uint32_t guestbook_count(const struct guestbook *book, bool with_idle)
{
	const struct guest_object *object;
	uint32_t                   count = 0;

	EACH(book, object)
		count += counts(object, with_idle);
	return count;
}

uint64_t guestbook_bytes(const struct guestbook *book, const struct kvs_namespace *space,
			 bool with_idle)
{
	const struct guest_object *object;
	uint64_t                   bytes = 0;

	EACH(book, object) {
		if (counts(object, with_idle) &&
		    (!space || memcmp(&object->key.space, space, sizeof(*space)) == 0))
			bytes += guest_pages(object) * (uint64_t)GUESTBOOK_PAGE;
	}
	return bytes;
}

void guestbook_usage(const struct guestbook *book, struct host_usage *ret_usage)
{
	const struct guest_object *object;

	*ret_usage = (struct host_usage){ .used_bytes = guestbook_bytes(book, NULL, true) };
	EACH(book, object) {
		ret_usage->objects += object->state == GUEST_RESIDENT;
		ret_usage->temporary += object->state == GUEST_RESIDENT && object->temporary;
		ret_usage->doomed += object->state == GUEST_DOOMED;
		ret_usage->locks += locks_of(object);
		ret_usage->pins += object->pins;
		if (object->state != GUEST_STAGED)
			continue;
		ret_usage->staged++;
		ret_usage->staged_bytes += guest_pages(object) * (uint64_t)GUESTBOOK_PAGE;
	}
}

void guestbook_check_bytes(const struct guestbook *book)
{
	const struct guest_object *object;
	uint32_t                   page;

	EACH(book, object) {
		for (page = 0; object->state != GUEST_NONE && page < guest_pages(object); page++) {
			KVS_ASSERT(memcmp((uint8_t *)object->span.ptr +
						  page * (size_t)GUESTBOOK_PAGE,
					  &object->mark, sizeof(object->mark)) == 0);
		}
	}
}
