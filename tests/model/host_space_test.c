/* SPDX-License-Identifier: Apache-2.0 */
/* The space of Host objects against an array that says whose each page is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "host/space.h"
#include "prop.h"

#define FIELDS 3u
#define PAGES_MAX 200u
#define PLACES_MAX 256u

struct held {
	uint32_t place, pages; /* pages 0: none */
};

struct world {
	struct host_space space;
	struct kvs_span   fields[FIELDS];
	struct space_page pages[FIELDS * PAGES_MAX];
	bool              taken[FIELDS][PAGES_MAX];
	struct held       held[PLACES_MAX];
};

static uint32_t page_count(const struct world *world, uint32_t field)
{
	return (uint32_t)(world->fields[field].bytes / SPACE_PAGE_BYTES);
}

/* The longest run of free pages. */
static uint32_t longest(const struct world *world)
{
	uint32_t most = 0, run, f, p;

	for (f = 0; f < FIELDS; f++) {
		for (p = 0, run = 0; p < page_count(world, f); p++) {
			run = world->taken[f][p] ? 0 : run + 1;
			most = run > most ? run : most;
		}
	}
	return most;
}

static void set_pages(struct world *world, uint32_t place, uint32_t pages, bool taken)
{
	const uint32_t field = place >> SPACE_FIELD_BITS, first = place % SPACE_FIELD_PAGES;
	uint32_t       p;

	KVS_ASSERT_CMP(field, <, FIELDS);
	KVS_ASSERT_CMP(first + pages, <=, page_count(world, field));
	for (p = first; p < first + pages; p++) {
		KVS_ASSERT_CMP(world->taken[field][p], !=, taken);
		world->taken[field][p] = taken;
	}
	KVS_ASSERT_CMP((uintptr_t)host_space_address(&world->space, place), ==,
		       (uintptr_t)world->fields[field].ptr + first * SPACE_PAGE_BYTES);
}

static bool keep(struct world *world, uint32_t place, uint32_t pages)
{
	uint32_t i;

	for (i = 0; i < PLACES_MAX && world->held[i].pages > 0; i++)
		;
	if (i == PLACES_MAX)
		return false;
	set_pages(world, place, pages, true);
	world->held[i] = (struct held){ place, pages };
	return true;
}

static void take(struct world *world, uint32_t pages, uint32_t count)
{
	const uint32_t before = longest(world);
	uint32_t       places[8];
	const uint32_t taken = host_space_take(&world->space, pages, count, places);
	uint32_t       i;

	/* Short of a class whose runs all fit, there is none much longer. */
	KVS_ASSERT(taken > 0 || before < pages + pages / 16 + 1);
	for (i = 0; i < taken; i++) {
		if (!keep(world, places[i], pages))
			host_space_give(&world->space, places[i], pages);
	}
	if (taken < count && taken > 0)
		KVS_ASSERT_CMP(longest(world), <, pages + pages / 16 + 1);
}

static void search(struct world *world, uint32_t pages)
{
	const uint32_t before = longest(world);
	const uint32_t place = host_space_search(&world->space, pages);

	KVS_ASSERT_CMP(place != SPACE_NONE, ==, before >= pages);
	if (place != SPACE_NONE && !keep(world, place, pages))
		host_space_give(&world->space, place, pages);
}

static void give(struct world *world, uint32_t from)
{
	uint32_t i;

	for (i = 0; i < PLACES_MAX; i++) {
		struct held *const held = &world->held[(from + i) % PLACES_MAX];

		if (held->pages == 0)
			continue;
		set_pages(world, held->place, held->pages, false);
		host_space_give(&world->space, held->place, held->pages);
		held->pages = 0;
		return;
	}
}

static void compare(const struct world *world)
{
	uint64_t free_count = 0;
	uint32_t f, p;

	host_space_audit(&world->space);
	for (f = 0; f < FIELDS; f++) {
		for (p = 0; p < page_count(world, f); p++)
			free_count += !world->taken[f][p];
	}
	KVS_ASSERT_CMP(world->space.free_count, ==, free_count);
}

enum { TAKE, SEARCH, GIVE };

static const struct prop_kind kinds[] = { { "TAKE", 30 }, { "SEARCH", 10 }, { "GIVE", 45 } };

/* Mostly small, now and then as large as a field. */
static uint32_t pages_from(uint32_t bits)
{
	return 2 + (bits % 16 == 0 ? bits / 16 % (PAGES_MAX + 8) : bits / 16 % 40);
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	if (op->kind == TAKE)
		take(world, pages_from(op->arg[0]), 1 + op->arg[1] % 8);
	else if (op->kind == SEARCH)
		search(world, pages_from(op->arg[0]));
	else
		give(world, op->arg[0]);
	compare(world);
}

/* Nothing touches the memory: three fields that are addresses only. */
static void *world_open(void)
{
	static const uint32_t counts[FIELDS] = { PAGES_MAX, 2, 77 };
	struct world *const   world = calloc(1, sizeof(*world));
	uint32_t              f;

	KVS_ASSERT(world);
	for (f = 0; f < FIELDS; f++) {
		world->fields[f].ptr = (void *)(uintptr_t)((f + 1) << 24);
		world->fields[f].bytes = counts[f] * SPACE_PAGE_BYTES;
	}
	KVS_ASSERT_CMP(host_space_page_bytes(world->fields, FIELDS), <=, sizeof(world->pages));
	KVS_ASSERT(host_space_open(&world->space, world->fields, FIELDS, world->pages) == 0);
	return world;
}

static void world_close(void *arg)
{
	struct world *const world = arg;
	uint32_t            i;

	for (i = 0; i < PLACES_MAX; i++)
		give(world, i);
	compare(world);
	KVS_ASSERT_CMP(longest(world), ==, PAGES_MAX);
	host_space_close(&world->space);
	free(world);
}

PROP_MAIN("host_space", places_are_runs_of_free_pages, 100, 1500, world_close)
