/* SPDX-License-Identifier: Apache-2.0 */
/* Who is there, and how much room is left. */
#include "guestbook_pages.h"

#include <string.h>

#include "base/err.h"

bool guest_is_key(const struct guest_object *object, const struct kvs_key *key)
{
	return object->state != GUEST_NONE && memcmp(&object->key, key, sizeof(*key)) == 0;
}

uint32_t guest_locks(const struct guest_object *object)
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
	return object->state == GUEST_RESIDENT && guest_locks(object) == 0 && object->pins == 0;
}

struct guest_object *guestbook_shown(struct guestbook *book, const struct kvs_key *key)
{
	struct guest_object *object;

	EACH_GUEST (book, object) {
		if (guest_is_key(object, key) && object->state != GUEST_STAGED)
			return object;
	}
	return NULL;
}

struct guest_object *guestbook_resident(struct guestbook *book, const struct kvs_key *key)
{
	struct guest_object *const object = guestbook_shown(book, key);

	return object && object->state == GUEST_RESIDENT ? object : NULL;
}

struct guest_object *guestbook_staged(struct guestbook *book, const struct kvs_key *key,
				      uint32_t client, uint64_t tag)
{
	struct guest_object *object;

	EACH_GUEST (book, object) {
		if (guest_is_key(object, key) && object->state == GUEST_STAGED &&
		    object->writer == client && object->tag == tag)
			return object;
	}
	return NULL;
}

bool guestbook_is_staged(struct guestbook *book, const struct kvs_key *key)
{
	struct guest_object *object;

	EACH_GUEST (book, object) {
		if (guest_is_key(object, key) && object->state == GUEST_STAGED)
			return true;
	}
	return false;
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

	EACH_GUEST (book, object) {
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

	EACH_GUEST (book, object)
		count += counts(object, with_idle);
	return count;
}

uint64_t guestbook_bytes(const struct guestbook *book, const struct kvs_namespace *space,
			 bool with_idle)
{
	const struct guest_object *object;
	uint64_t                   bytes = 0;

	EACH_GUEST (book, object) {
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
	EACH_GUEST (book, object) {
		ret_usage->objects += object->state == GUEST_RESIDENT;
		ret_usage->temporary += object->state == GUEST_RESIDENT && object->temporary;
		ret_usage->doomed += object->state == GUEST_DOOMED;
		ret_usage->locks += guest_locks(object);
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

	EACH_GUEST (book, object) {
		for (page = 0; object->state != GUEST_NONE && page < guest_pages(object); page++) {
			KVS_ASSERT(
				memcmp((uint8_t *)object->span.ptr + page * (size_t)GUESTBOOK_PAGE,
				       &object->mark, sizeof(object->mark)) == 0);
		}
	}
}
