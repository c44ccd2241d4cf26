/* SPDX-License-Identifier: Apache-2.0 */
/* The prefix index against a table with a line a page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "match/pages.h"
#include "prompt.h"
#include "prop.h"

#define PAGES_MAX 48u
#define SPACES    2u
#define NAMES     70u /* of each space */
#define COLUMNS   6u /* 8 / 2 and 8 / 4 */

struct line {
	uint32_t entry; /* as the first add said; SLOT_NONE: no block is held */
	uint32_t block[COLUMNS][STRATUM_COUNT];
};

struct world {
	struct pages         pages;
	struct kvs_namespace space[SPACES];
	struct prefix_hash   hash[NAMES];
	struct line          line[SPACES][NAMES];
	uint32_t             line_count; /* with an entry */
	uint32_t             next_block;
};

static const struct group_spec specs[] = {
	{ .name = "full", .kind = GROUP_FULL, .block_tokens = 2, .packing = 1 },
	{ .name = "window", .kind = GROUP_WINDOW, .block_tokens = 4, .window_tokens = 9, .packing = 1 },
};

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));
	struct groups       groups;
	uint32_t            s, i;

	KVS_ASSERT(groups_make(specs, ARRAY_COUNT(specs), 8, &groups, NULL) == 0);
	KVS_ASSERT_CMP(groups.columns, ==, COLUMNS);
	KVS_ASSERT(pages_open(&world->pages, &groups, PAGES_MAX) == 0);
	for (s = 0; s < SPACES; s++) {
		memset(&world->space[s], (int)s, sizeof(world->space[s]));
		for (i = 0; i < NAMES; i++)
			world->line[s][i].entry = SLOT_NONE;
	}
	for (i = 0; i < NAMES; i++)
		world->hash[i] = page_hash(i);
	return world;
}

static bool is_held(const struct line *line)
{
	uint32_t column;

	for (column = 0; column < COLUMNS; column++) {
		if (line->block[column][STRATUM_DEVICE] || line->block[column][STRATUM_HOST])
			return true;
	}
	return false;
}

/* --- comparisons ------------------------------------------------------------------------------ */

static void compare_key(const struct world *world, uint32_t s, uint32_t name, uint32_t column)
{
	struct kvs_key key, expected;

	pages_key(&world->pages, pages_cell(&world->pages, world->line[s][name].entry, column), &key);
	key_make(&world->space[s], &world->hash[name], column < 4 ? 0 : 1, 0,
		 column < 4 ? column : column - 4, &expected);
	KVS_ASSERT(memcmp(&key, &expected, sizeof(key)) == 0);
}

static void compare_line(const struct world *world, uint32_t s, uint32_t name)
{
	const struct line *const line = &world->line[s][name];
	uint32_t                 column, stratum;

	KVS_ASSERT_CMP(pages_find(&world->pages, &world->space[s], &world->hash[name]), ==,
		       line->entry);
	if (line->entry == SLOT_NONE)
		return;
	for (column = 0; column < COLUMNS; column++) {
		const uint32_t cell = pages_cell(&world->pages, line->entry, column);

		for (stratum = 0; stratum < STRATUM_COUNT; stratum++) {
			KVS_ASSERT_CMP(pages_block(&world->pages, cell, stratum), ==,
				       line->block[column][stratum]);
		}
		compare_key(world, s, name, column);
	}
}

/* Look up `count` names from `first` on, `step` apart. */
static void compare_find_all(const struct world *world, uint32_t s, uint32_t first, uint32_t step,
			     uint32_t count)
{
	struct prefix_hash hashes[NAMES] = { 0 };
	uint32_t           entries[NAMES];
	uint32_t           i;

	for (i = 0; i < count; i++)
		hashes[i] = world->hash[(first + i * step) % NAMES];
	pages_find_all(&world->pages, &world->space[s], hashes, count, entries);
	for (i = 0; i < count; i++)
		KVS_ASSERT_CMP(entries[i], ==, world->line[s][(first + i * step) % NAMES].entry);
}

static void compare(const struct world *world, uint32_t draw)
{
	uint32_t s, i;

	pages_audit(&world->pages);
	KVS_ASSERT_CMP(world->pages.slots.busy_count, ==, world->line_count);
	for (s = 0; s < SPACES; s++) {
		for (i = 0; i < NAMES; i++)
			compare_line(world, s, i);
		compare_find_all(world, s, draw % NAMES, 1, NAMES);
		compare_find_all(world, s, draw % NAMES, 1 + draw / NAMES % 3, draw / 256 % NAMES);
	}
}

/* --- operations ------------------------------------------------------------------------------- */

static void add(struct world *world, uint32_t s, uint32_t name, uint32_t column, uint32_t stratum)
{
	struct line *const line = &world->line[s][name];
	uint32_t           cell;

	if (line->block[column][stratum] != BLOCK_NULL ||
	    (line->entry == SLOT_NONE && world->line_count == PAGES_MAX))
		return;
	line->block[column][stratum] = ++world->next_block;
	cell = pages_add(&world->pages, &world->space[s], &world->hash[name], column, stratum,
			 line->block[column][stratum]);
	KVS_ASSERT_CMP(pages_cell_column(&world->pages, cell), ==, column);
	if (line->entry == SLOT_NONE) {
		line->entry = pages_cell_entry(&world->pages, cell);
		world->line_count++;
	}
	KVS_ASSERT_CMP(pages_cell(&world->pages, line->entry, column), ==, cell);
}

static void drop(struct world *world, uint32_t s, uint32_t name, uint32_t column, uint32_t stratum)
{
	struct line *const line = &world->line[s][name];

	if (line->block[column][stratum] == BLOCK_NULL)
		return;
	pages_drop(&world->pages, pages_cell(&world->pages, line->entry, column), stratum);
	line->block[column][stratum] = BLOCK_NULL;
	if (is_held(line))
		return;
	line->entry = SLOT_NONE;
	world->line_count--;
}

static void drop_page(struct world *world, uint32_t s, uint32_t name)
{
	uint32_t column, stratum;

	for (column = 0; column < COLUMNS; column++) {
		for (stratum = 0; stratum < STRATUM_COUNT; stratum++)
			drop(world, s, name, column, stratum);
	}
}

enum { ADD, DROP, DROP_PAGE, ADD_ROW, DROP_ROW };

static const struct prop_kind kinds[] = { { "ADD", 8 }, { "DROP", 8 }, { "DROP_PAGE", 3 },
					  { "ADD_ROW", 2 }, { "DROP_ROW", 1 } };

/* arg[0] draws space and name, arg[1] column and stratum, or the length of a row. */
static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	const uint32_t      s = op->arg[0] % SPACES;
	const uint32_t      name = op->arg[0] / SPACES % NAMES;
	const uint32_t      column = op->arg[1] % COLUMNS;
	const uint32_t      stratum = op->arg[1] / COLUMNS % STRATUM_COUNT;
	const uint32_t      row = op->arg[1] / 64 % NAMES;
	uint32_t            i;

	if (op->kind == ADD)
		add(world, s, name, column, stratum);
	else if (op->kind == DROP)
		drop(world, s, name, column, stratum);
	else if (op->kind == DROP_PAGE)
		drop_page(world, s, name);
	for (i = 0; i < row && op->kind == ADD_ROW; i++)
		add(world, s, (name + i) % NAMES, column, stratum);
	for (i = 0; i < row && op->kind == DROP_ROW; i++)
		drop_page(world, s, (name + i) % NAMES);
	compare(world, op->arg[1]);
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	pages_close(&world->pages);
	free(world);
}

PROP_MAIN("pages", the_index_behaves_as_a_table_of_pages, 100, 200, world_close)
