/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog of a strata file against a table of keys: who is there, in which state, and, with policy
 * lru, in which order they go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "prop.h"
#include "strata/catalog.h"

#define ENTRIES 12u
#define KEYS 20u /* more than fit */

struct row {
	enum entry_state state;
	uint32_t         entry;
	uint32_t         locks;
	uint32_t         uses;
	uint64_t         age; /* of the last use or publication: the lowest goes first */
};

struct world {
	struct catalog catalog;
	struct row     rows[KEYS];
	uint64_t       now;
};

static uint64_t print_of(uint32_t number)
{
	return UINT64_C(0x9e3779b97f4a7c15) * (number + 1);
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world && catalog_open(&world->catalog, ENTRIES, "lru", NULL) == 0);
	return world;
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	catalog_close(&world->catalog);
	free(world);
}

static uint32_t in_state(const struct world *world, enum entry_state state)
{
	uint32_t count = 0, i;

	for (i = 0; i < KEYS; i++)
		count += world->rows[i].state == state;
	return count;
}

static struct entry *entry_of(struct world *world, const struct row *row)
{
	return &world->catalog.entries[row->entry];
}

static void forget(struct row *row)
{
	*row = (struct row){ .state = ENTRY_FREE };
}

static void add(struct world *world, uint32_t number)
{
	struct row *const row = &world->rows[number];
	uint32_t          entry;

	if (row->state != ENTRY_FREE)
		return;
	entry = catalog_add(&world->catalog, print_of(number));
	KVS_ASSERT_CMP(entry == SLOT_NONE, ==, in_state(world, ENTRY_FREE) <= KEYS - ENTRIES);
	if (entry == SLOT_NONE)
		return;
	*row = (struct row){ .state = ENTRY_WRITING, .entry = entry };
	entry_of(world, row)->pages = number + 1;
}

static void publish(struct world *world, uint32_t number)
{
	struct row *const row = &world->rows[number];

	if (row->state != ENTRY_WRITING)
		return;
	catalog_publish(&world->catalog, row->entry);
	row->state = ENTRY_PRESENT;
	row->age = world->now;
	row->uses = 0;
}

static void use(struct world *world, uint32_t number)
{
	struct row *const row = &world->rows[number];
	const bool        present = row->state == ENTRY_PRESENT;

	KVS_ASSERT_CMP(catalog_use(&world->catalog, print_of(number)), ==,
		       present ? row->entry : SLOT_NONE);
	if (!present)
		return;
	row->age = world->now;
	row->uses = row->uses < 3 ? row->uses + 1 : 3;
}

static void renew(struct world *world, uint32_t number)
{
	struct row *const row = &world->rows[number];

	if (row->state != ENTRY_PRESENT)
		return;
	catalog_renew(&world->catalog, row->entry);
	row->age = world->now;
	row->uses = 0;
}

static void drop(struct world *world, uint32_t number, bool expel)
{
	struct row *const row = &world->rows[number];

	if (row->state == ENTRY_FREE)
		return;
	entry_of(world, row)->locks = 0;
	if (expel && row->state == ENTRY_PRESENT)
		catalog_expel(&world->catalog, row->entry);
	else
		catalog_drop(&world->catalog, row->entry);
	forget(row);
}

/* What recovery does with a record that is dead. */
static void mark_gone(struct world *world, uint32_t number)
{
	struct row *const row = &world->rows[number];

	if (row->state != ENTRY_WRITING)
		return;
	catalog_mark_gone(&world->catalog, row->entry);
	row->state = ENTRY_GONE;
}

static void lock(struct world *world, uint32_t number, bool on)
{
	struct row *const row = &world->rows[number];

	if (row->state != ENTRY_PRESENT)
		return;
	row->locks = on;
	entry_of(world, row)->locks = on;
}

static void evict(struct world *world)
{
	struct row *oldest = NULL;
	uint32_t    i, victim;

	for (i = 0; i < KEYS; i++) {
		struct row *const row = &world->rows[i];

		if (row->state == ENTRY_PRESENT && row->locks == 0 &&
		    (!oldest || row->age < oldest->age))
			oldest = row;
	}
	victim = catalog_victim(&world->catalog);
	KVS_ASSERT_CMP(victim, ==, oldest ? oldest->entry : SLOT_NONE);
	if (!oldest)
		return;
	catalog_drop(&world->catalog, victim);
	forget(oldest);
}

static void compare(struct world *world)
{
	uint32_t i;

	catalog_audit(&world->catalog);
	KVS_ASSERT_CMP(world->catalog.present, ==, in_state(world, ENTRY_PRESENT));
	for (i = 0; i < KEYS; i++) {
		const struct row *const row = &world->rows[i];

		KVS_ASSERT_CMP(catalog_find(&world->catalog, print_of(i)), ==,
			       row->state == ENTRY_FREE ? SLOT_NONE : row->entry);
		if (row->state == ENTRY_FREE)
			continue;
		KVS_ASSERT_CMP(entry_of(world, row)->state, ==, row->state);
		KVS_ASSERT_CMP(entry_of(world, row)->pages, ==, i + 1);
		if (row->state == ENTRY_PRESENT)
			KVS_ASSERT_CMP(catalog_heat(&world->catalog, row->entry), ==, row->uses);
	}
}

enum { ADD, PUBLISH, USE, RENEW, DROP, EXPEL, MARK_GONE, LOCK, UNLOCK, EVICT };

static const struct prop_kind kinds[] = { { "ADD", 30 },    { "PUBLISH", 30 },  { "USE", 20 },
					  { "RENEW", 5 },   { "DROP", 5 },      { "EXPEL", 5 },
					  { "MARK_GONE", 3 }, { "LOCK", 8 },    { "UNLOCK", 6 },
					  { "EVICT", 12 } };

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	const uint32_t      number = op->arg[0] % KEYS;

	world->now++;
	switch (op->kind) {
	case ADD:
		add(world, number);
		break;
	case PUBLISH:
		publish(world, number);
		break;
	case USE:
		use(world, number);
		break;
	case RENEW:
		renew(world, number);
		break;
	case DROP:
	case EXPEL:
		drop(world, number, op->kind == EXPEL);
		break;
	case MARK_GONE:
		mark_gone(world, number);
		break;
	case LOCK:
	case UNLOCK:
		lock(world, number, op->kind == LOCK);
		break;
	default:
		evict(world);
		break;
	}
	compare(world);
}

PROP_MAIN("catalog", the_catalog_equals_a_table, 60, 800, world_close)
