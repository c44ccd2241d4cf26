/* SPDX-License-Identifier: Apache-2.0 */
#include "host/space.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/err.h"

#define RUN_FREE (1u << 31)
#define CLASS_BITS \
	4 /* 16 classes a doubling: a run is at most a sixteenth longer than its class says */

static_assert(SPACE_FIELD_PAGES < RUN_FREE, "a run's length leaves room for its mark");

static struct space_page *page_at(const struct host_space *space, uint32_t place)
{
	return &space->fields[place >> SPACE_FIELD_BITS].pages[place & (SPACE_FIELD_PAGES - 1)];
}

/* --- classes ---------------------------------------------------------------------------------- */

static uint32_t log2_of(uint32_t pages)
{
	return 31 - (uint32_t)__builtin_clz(pages);
}

/* The class that a run of so many pages lies in. */
static uint32_t class_of(uint32_t pages)
{
	uint32_t doubling;

	if (pages < 1u << CLASS_BITS)
		return pages;
	doubling = log2_of(pages) - CLASS_BITS;
	return (doubling << CLASS_BITS) + (pages >> doubling);
}

/* The first class all of whose runs have so many pages. */
static uint32_t class_fit(uint32_t pages)
{
	if (pages < 2u << CLASS_BITS)
		return pages;
	return class_of(pages + (1u << (log2_of(pages) - CLASS_BITS)) - 1);
}

static void link_run(struct host_space *space, uint32_t run, uint32_t pages)
{
	const uint32_t class = class_of(pages);
	const uint32_t next = space->heads[class];

	page_at(space, run)->link = next;
	page_at(space, run)[1].link = SPACE_NONE;
	if (next != SPACE_NONE)
		page_at(space, next)[1].link = run;
	space->heads[class] = run;
	bits_set(space->classes, class);
}

static void unlink_run(struct host_space *space, uint32_t run, uint32_t pages)
{
	const uint32_t class = class_of(pages);
	const uint32_t next = page_at(space, run)->link;
	const uint32_t prev = page_at(space, run)[1].link;

	if (next != SPACE_NONE)
		page_at(space, next)[1].link = prev;
	if (prev != SPACE_NONE)
		page_at(space, prev)->link = next;
	else
		space->heads[class] = next;
	if (space->heads[class] == SPACE_NONE)
		bits_clear(space->classes, class);
}

/* --- runs ------------------------------------------------------------------------------------- */

static void mark(struct host_space *space, uint32_t run, uint32_t pages, uint32_t is_free)
{
	struct space_page *const first = page_at(space, run);

	first->run = pages | is_free;
	first[pages - 1].run = pages | is_free;
}

/* A page alone holds no place: it waits for a neighbour. */
static void put_free(struct host_space *space, uint32_t run, uint32_t pages)
{
	mark(space, run, pages, RUN_FREE);
	if (pages > 1)
		link_run(space, run, pages);
}

static void take_free(struct host_space *space, uint32_t run, uint32_t pages)
{
	if (pages > 1)
		unlink_run(space, run, pages);
}

/* Cut places off the front of a free run; the rest stays free. */
static uint32_t carve(struct host_space *space, uint32_t run, uint32_t pages, uint32_t count,
		      uint32_t *ret_places)
{
	uint32_t left = page_at(space, run)->run & ~RUN_FREE;
	uint32_t taken = 0;

	take_free(space, run, left);
	while (taken < count && left >= pages) {
		mark(space, run, pages, 0);
		ret_places[taken++] = run;
		run += pages;
		left -= pages;
	}
	if (left > 0)
		put_free(space, run, left);
	space->free_count -= (uint64_t)taken * pages;
	return taken;
}

uint32_t host_space_take(struct host_space *space, uint32_t pages, uint32_t count,
			 uint32_t *ret_places)
{
	uint32_t taken = 0;
	size_t class;

	KVS_ASSERT_CMP(pages, >=, 2);
	while (taken < count && pages <= space->place_pages_max) {
		class = bits_next_set(space->classes, class_fit(pages), SPACE_CLASSES);
		if (class == SPACE_CLASSES)
			break;
		taken += carve(space, space->heads[class], pages, count - taken,
			       ret_places + taken);
	}
	return taken;
}

uint32_t host_space_search(struct host_space *space, uint32_t pages)
{
	uint32_t place = SPACE_NONE;
	uint32_t run;

	if (pages > space->place_pages_max || host_space_take(space, pages, 1, &place) == 1)
		return place;
	for (run = space->heads[class_of(pages)]; run != SPACE_NONE;
	     run = page_at(space, run)->link) {
		if ((page_at(space, run)->run & ~RUN_FREE) < pages)
			continue;
		(void)carve(space, run, pages, 1, &place);
		break;
	}
	return place;
}

void host_space_give(struct host_space *space, uint32_t place, uint32_t pages)
{
	const struct space_field *const field = &space->fields[place >> SPACE_FIELD_BITS];
	const uint32_t                  at = place & (SPACE_FIELD_PAGES - 1);
	const struct space_page *const  page = &field->pages[at];
	uint32_t                        first = place, count = pages, beside;

	KVS_ASSERT_CMP(page->run, ==, pages);
	space->free_count += pages;
	if (at > 0 && (page[-1].run & RUN_FREE)) {
		beside = page[-1].run & ~RUN_FREE;
		first -= beside;
		take_free(space, first, beside);
		count += beside;
	}
	if (at + pages < field->page_count && (page[pages].run & RUN_FREE)) {
		beside = page[pages].run & ~RUN_FREE;
		take_free(space, place + pages, beside);
		count += beside;
	}
	put_free(space, first, count);
}

/* --- open to close ---------------------------------------------------------------------------- */

size_t host_space_page_bytes(const struct kvs_span *fields, uint32_t field_count)
{
	size_t   page_count = 0;
	uint32_t i;

	for (i = 0; i < field_count; i++)
		page_count += fields[i].bytes >> SPACE_PAGE_BITS;
	return page_count * sizeof(struct space_page);
}

static void open_field(struct host_space *space, uint32_t number, const struct kvs_span *span,
		       struct space_page *pages)
{
	const uint32_t page_count = (uint32_t)(span->bytes >> SPACE_PAGE_BITS);

	space->fields[number] =
		(struct space_field){ .base = span->ptr, .pages = pages, .page_count = page_count };
	put_free(space, number << SPACE_FIELD_BITS, page_count);
	space->page_count += page_count;
	if (page_count > space->place_pages_max)
		space->place_pages_max = page_count;
}

int host_space_open(struct host_space *space, const struct kvs_span *fields, uint32_t field_count,
		    struct space_page *pages)
{
	uint32_t i;

	*space = (struct host_space){ .field_count = field_count };
	for (i = 0; i < SPACE_CLASSES; i++)
		space->heads[i] = SPACE_NONE;
	space->fields = calloc(field_count, sizeof(*space->fields));
	if (!space->fields)
		return -ENOMEM;
	/* Last to first, so that of equal ones the first is taken from first. */
	for (i = field_count; i > 0; i--) {
		open_field(space, i - 1, &fields[i - 1], pages);
		pages += fields[i - 1].bytes >> SPACE_PAGE_BITS;
	}
	space->free_count = space->page_count;
	return 0;
}

void host_space_close(struct host_space *space)
{
	free(space->fields);
	*space = (struct host_space){ 0 };
}

/* --- audit ------------------------------------------------------------------------------------ */

static uint64_t audit_field(const struct space_field *field, uint32_t *linked)
{
	uint64_t free_count = 0;
	uint32_t at, pages;
	bool     was_free = false;

	for (at = 0; at < field->page_count; at += pages) {
		const uint32_t run = field->pages[at].run;

		pages = run & ~RUN_FREE;
		KVS_ASSERT_CMP(pages, >, 0);
		KVS_ASSERT_CMP(pages, <=, field->page_count - at);
		KVS_ASSERT_CMP(field->pages[at + pages - 1].run, ==, run);
		KVS_ASSERT(!was_free || !(run & RUN_FREE));
		was_free = run & RUN_FREE;
		free_count += was_free ? pages : 0;
		*linked += was_free && pages > 1;
	}
	return free_count;
}

static uint32_t audit_class(const struct host_space *space, uint32_t class)
{
	uint32_t prev = SPACE_NONE, count = 0;
	uint32_t run;

	for (run = space->heads[class]; run != SPACE_NONE; run = page_at(space, run)->link) {
		KVS_ASSERT(page_at(space, run)->run & RUN_FREE);
		KVS_ASSERT_CMP(class_of(page_at(space, run)->run & ~RUN_FREE), ==, class);
		KVS_ASSERT_CMP(page_at(space, run)[1].link, ==, prev);
		prev = run;
		count++;
	}
	KVS_ASSERT_CMP(bits_test(space->classes, class), ==, count > 0);
	return count;
}

void host_space_audit(const struct host_space *space)
{
	uint64_t free_count = 0;
	uint32_t linked = 0, in_classes = 0;
	uint32_t i;

	for (i = 0; i < space->field_count; i++)
		free_count += audit_field(&space->fields[i], &linked);
	for (i = 0; i < SPACE_CLASSES; i++)
		in_classes += audit_class(space, i);
	KVS_ASSERT_CMP(free_count, ==, space->free_count);
	KVS_ASSERT_CMP(linked, ==, in_classes);
}
