/* SPDX-License-Identifier: Apache-2.0 */
/* See guarded.h. */
#include "guarded.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/prng.h"
#include "os/os.h"

#ifdef IS_POISONED
#include <sanitizer/asan_interface.h>
#define POISON(from, bytes) __asan_poison_memory_region(from, bytes)
#define UNPOISON(from, bytes) __asan_unpoison_memory_region(from, bytes)
#else
#define POISON(from, bytes) ((void)(from), (void)(bytes))
#define UNPOISON(from, bytes) ((void)(from), (void)(bytes))
#endif

#define PLACE_BYTES (GUARD + BLOCK + TRAILER + GUARD)

static uint8_t *start_of(const struct guarded *guarded, const struct place *place)
{
	return guarded->memory + (size_t)(place - guarded->place) * PLACE_BYTES;
}

/* In words: all offsets are multiples of 8. */
static void paint(struct guarded *guarded, struct place *place)
{
	uint64_t *const words = (uint64_t *)start_of(guarded, place);
	size_t          i;

	place->pattern = guarded->generation++ << 32;
	for (i = 0; i < PLACE_BYTES / 8; i++)
		words[i] = mix64(place->pattern + i);
}

static void look(struct guarded *guarded, const struct place *place, size_t from, size_t to,
		 const char *what)
{
	const uint64_t *const words = (const uint64_t *)start_of(guarded, place);
	size_t                i;

	for (i = from / 8; i < to / 8 && !*guarded->violation; i++) {
		if (words[i] == mix64(place->pattern + i))
			continue;
		snprintf(guarded->violation, sizeof(guarded->violation),
			 "%s: 8 bytes from %td of the span are 0x%016" PRIx64, what,
			 (ptrdiff_t)(i * 8) - (ptrdiff_t)GUARD, words[i]);
	}
}

static size_t room_end(const struct place *place)
{
	return GUARD + place->span.room;
}

static void look_at_guards(struct guarded *guarded, const struct place *place)
{
	look(guarded, place, 0, GUARD, "before the span");
	look(guarded, place, room_end(place), PLACE_BYTES, "behind the room of the span");
}

void guarded_open_in(struct guarded *guarded, void *memory)
{
	uint32_t i;

	*guarded = (struct guarded){ .memory = memory, .borrowed = true, .generation = 1 };
	for (i = 0; i < PLACES; i++)
		paint(guarded, &guarded->place[i]);
}

void guarded_open(struct guarded *guarded)
{
	void *memory;

	KVS_ASSERT(os_pages_map(GUARDED_BYTES, &memory) == 0);
	guarded_open_in(guarded, memory);
	guarded->borrowed = false;
}

void guarded_close(struct guarded *guarded)
{
	UNPOISON(guarded->memory, GUARDED_BYTES);
	if (!guarded->borrowed)
		os_pages_unmap(guarded->memory, GUARDED_BYTES);
}

/* Round robin, so that a place rests as long as can be before it is lent again. */
static struct place *next_free(struct guarded *guarded)
{
	struct place *oldest = NULL, *place;

	for (place = guarded->place; place < guarded->place + PLACES; place++) {
		if (!place->lent && (!oldest || place->pattern < oldest->pattern))
			oldest = place;
	}
	KVS_ASSERT(oldest != NULL);
	return oldest;
}

struct kvs_span guarded_lend(struct guarded *guarded, uint32_t bytes)
{
	struct place  *place = next_free(guarded);
	uint8_t *const start = start_of(guarded, place);

	KVS_ASSERT_CMP(bytes, <=, BLOCK);
	look(guarded, place, 0, PLACE_BYTES, "while nobody had it");
	place->lent = true;
	place->span = (struct kvs_span){ start + GUARD, bytes, bytes + TRAILER };
	POISON(start, GUARD);
	POISON(start + room_end(place), PLACE_BYTES - room_end(place));
	return place->span;
}

void guarded_back(struct guarded *guarded, const struct kvs_span *span, bool retired)
{
	struct place *place = guarded->place;

	while (place->span.ptr != span->ptr)
		place++;
	UNPOISON(start_of(guarded, place), PLACE_BYTES);
	look_at_guards(guarded, place);
	if (retired) {
		paint(guarded, place);
		place->lent = false;
	}
}

bool guarded_intact(struct guarded *guarded)
{
	const struct place *place;

	for (place = guarded->place; place < guarded->place + PLACES; place++) {
		if (place->lent)
			look_at_guards(guarded, place);
		else
			look(guarded, place, 0, PLACE_BYTES, "after it was retired");
	}
	return !*guarded->violation;
}
