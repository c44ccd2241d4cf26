/* SPDX-License-Identifier: Apache-2.0 */
/* The prefix index: one entry a page for all groups and both strata. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "death.h"
#include "match/pages.h"
#include "prompt.h"

#define PAGES 40u

static const struct group_spec specs[] = {
	{ .name = "full", .kind = GROUP_FULL, .block_tokens = 4, .packing = 1 },
	{ .name = "swa", .kind = GROUP_WINDOW, .block_tokens = 2, .window_tokens = 5, .packing = 1 },
};

static const struct kvs_namespace ours = { .byte = { 1 } };
static const struct kvs_namespace theirs = { .byte = { 2 } };

/* Columns: full 0 and 1, swa 2 to 5. */
static void open_pages(struct pages *pages)
{
	struct groups groups;

	assert_int_equal(groups_make(specs, 2, 8, &groups, NULL), 0);
	assert_int_equal(pages_open(pages, &groups, PAGES), 0);
}

static uint32_t add(struct pages *pages, const struct kvs_namespace *space, uint32_t page,
		    uint32_t column, enum stratum_id stratum, uint32_t block)
{
	const struct prefix_hash hash = page_hash(page);

	return pages_add(pages, space, &hash, column, stratum, block);
}

static uint32_t find(const struct pages *pages, const struct kvs_namespace *space, uint32_t page)
{
	const struct prefix_hash hash = page_hash(page);

	return pages_find(pages, space, &hash);
}

static void one_entry_serves_all_groups_and_both_strata(void **state)
{
	struct pages   pages;
	const uint32_t wanted[] = { 0, 2, 5 };
	uint32_t       i;

	(void)state;
	open_pages(&pages);
	assert_int_equal(find(&pages, &ours, 1), SLOT_NONE);
	for (i = 0; i < 3; i++) {
		const uint32_t cell = add(&pages, &ours, 1, wanted[i], STRATUM_DEVICE, 7 + i);

		assert_int_equal(cell, pages_cell(&pages, find(&pages, &ours, 1), wanted[i]));
		assert_int_equal(add(&pages, &ours, 1, wanted[i], STRATUM_HOST, 7 + i), cell);
	}
	for (i = 0; i < 3; i++) {
		const uint32_t cell = pages_cell(&pages, find(&pages, &ours, 1), wanted[i]);

		assert_int_equal(pages_block(&pages, cell, STRATUM_DEVICE), 7 + i);
		assert_int_equal(pages_block(&pages, cell, STRATUM_HOST), 7 + i);
	}
	assert_int_equal(pages.slots.busy_count, 1);
	pages_audit(&pages);
	pages_close(&pages);
}

/* Locations of two strata collide: what is dropped of one stays in the other. */
static void a_drop_is_of_one_stratum(void **state)
{
	struct pages pages;
	uint32_t     cell;

	(void)state;
	open_pages(&pages);
	cell = add(&pages, &ours, 1, 0, STRATUM_DEVICE, 3);
	add(&pages, &ours, 1, 0, STRATUM_HOST, 3);
	pages_drop(&pages, cell, STRATUM_DEVICE);
	pages_audit(&pages);
	assert_int_equal(pages_block(&pages, cell, STRATUM_DEVICE), BLOCK_NULL);
	assert_int_equal(pages_block(&pages, cell, STRATUM_HOST), 3);
	pages_close(&pages);
}

static void an_entry_goes_with_its_last_block_and_its_neighbour_stays(void **state)
{
	struct pages pages;
	uint32_t     first, second, other;

	(void)state;
	open_pages(&pages);
	first = add(&pages, &ours, 1, 0, STRATUM_DEVICE, 1);
	second = add(&pages, &ours, 1, 1, STRATUM_DEVICE, 2);
	other = add(&pages, &ours, 2, 0, STRATUM_DEVICE, 3);
	pages_drop(&pages, first, STRATUM_DEVICE);
	assert_int_equal(pages_cell_entry(&pages, second), find(&pages, &ours, 1));
	assert_int_equal(pages_block(&pages, second, STRATUM_DEVICE), 2);
	pages_drop(&pages, second, STRATUM_DEVICE);
	assert_int_equal(find(&pages, &ours, 1), SLOT_NONE);
	assert_int_equal(find(&pages, &ours, 2), pages_cell_entry(&pages, other));
	pages_audit(&pages);
	pages_close(&pages);
}

static void namespace_group_and_offset_are_part_of_a_key(void **state)
{
	static const struct {
		uint32_t page, column, group, offset;
	} rows[] = { { 1, 0, 0, 0 }, { 1, 1, 0, 1 }, { 1, 2, 1, 0 }, { 1, 5, 1, 3 }, { 2, 0, 0, 0 } };
	struct pages   pages;
	struct kvs_key keys[2 * ARRAY_COUNT(rows)];
	size_t         i, j;

	(void)state;
	open_pages(&pages);
	for (i = 0; i < ARRAY_COUNT(keys); i++) {
		const struct kvs_namespace *const space = i % 2 ? &theirs : &ours;
		const struct prefix_hash          hash = page_hash(rows[i / 2].page);
		struct kvs_key                    expected;

		key_make(space, &hash, rows[i / 2].group, 0, rows[i / 2].offset, &expected);
		pages_key(&pages, pages_add(&pages, space, &hash, rows[i / 2].column, STRATUM_HOST, 1),
			  &keys[i]);
		assert_memory_equal(&keys[i], &expected, sizeof(expected));
		for (j = 0; j < i; j++)
			assert_memory_not_equal(&keys[j], &keys[i], sizeof(keys[i]));
	}
	assert_int_equal(pages.slots.busy_count, 4);
	pages_close(&pages);
}

static void equal_content_in_two_namespaces_is_two_pages(void **state)
{
	struct pages pages;
	uint32_t     mine, other;

	(void)state;
	open_pages(&pages);
	mine = add(&pages, &ours, 1, 0, STRATUM_DEVICE, 1);
	other = add(&pages, &theirs, 1, 0, STRATUM_DEVICE, 2);
	assert_int_not_equal(mine, other);
	assert_int_equal(pages_block(&pages, mine, STRATUM_DEVICE), 1);
	assert_int_equal(pages_block(&pages, other, STRATUM_DEVICE), 2);
	pages_close(&pages);
}

/* --- many at once ------------------------------------------------------------------------------ */

/* Look up `count` pages from `first` on, and compare with single look-ups. */
/* Both ways: whoever asks for a run gets what is there up to the first gap, and may get more. */
static void find_all(const struct pages *pages, const struct kvs_namespace *space, uint32_t first,
		     uint32_t count)
{
	struct prefix_hash hashes[PAGES + 2];
	uint32_t           entries[PAGES + 2], run[PAGES + 2];
	bool               gap = false;
	uint32_t           i;

	for (i = 0; i <= count; i++)
		hashes[i] = page_hash(first + i);
	entries[count] = 12345;
	pages_find_all(pages, space, hashes, count, entries);
	run[count] = 12345;
	pages_find_run(pages, space, hashes, count, run);
	for (i = 0; i < count; i++) {
		assert_int_equal(entries[i], find(pages, space, first + i));
		assert_true(run[i] == entries[i] || (gap && run[i] == SLOT_NONE));
		gap = gap || entries[i] == SLOT_NONE;
	}
	assert_int_equal(entries[count], 12345);
	assert_int_equal(run[count], 12345);
}

static void many_look_ups_give_what_single_ones_give(void **state)
{
	struct pages pages;
	uint32_t     i;

	(void)state;
	open_pages(&pages);
	find_all(&pages, &ours, 0, PAGES);
	for (i = 0; i < 36; i++)
		add(&pages, &ours, i, 0, STRATUM_DEVICE, i + 1);
	for (i = 0; i <= PAGES; i++)
		find_all(&pages, &ours, 0, i);
	find_all(&pages, &ours, 7, PAGES);
	find_all(&pages, &theirs, 0, PAGES);
	pages_close(&pages);
}

/* Twenty pages in a row; what comes next there has the next page's hash, in another namespace. */
static void a_row_ends_where_the_namespace_does(void **state)
{
	struct pages pages;
	uint32_t     i;

	(void)state;
	open_pages(&pages);
	for (i = 0; i < 20; i++)
		add(&pages, &ours, i, 0, STRATUM_DEVICE, i + 1);
	add(&pages, &theirs, 20, 0, STRATUM_DEVICE, 1);
	assert_int_equal(find(&pages, &ours, 20), SLOT_NONE);
	find_all(&pages, &ours, 0, 21);
	pages_close(&pages);
}

/* A freed entry keeps its name until it is used again. */
static void a_row_ends_where_an_entry_was_dropped(void **state)
{
	struct pages pages;
	uint32_t     cells[30], i;

	(void)state;
	open_pages(&pages);
	for (i = 0; i < 30; i++)
		cells[i] = add(&pages, &ours, i, 3, STRATUM_HOST, i + 1);
	pages_drop(&pages, cells[20], STRATUM_HOST);
	pages_drop(&pages, cells[29], STRATUM_HOST);
	find_all(&pages, &ours, 0, 30);
	add(&pages, &ours, 29, 3, STRATUM_HOST, 1);
	find_all(&pages, &ours, 0, 30);
	pages_close(&pages);
}

static void a_row_ends_with_the_table(void **state)
{
	struct pages pages;
	uint32_t     i;

	(void)state;
	open_pages(&pages);
	for (i = 0; i < PAGES; i++)
		add(&pages, &ours, i, 0, STRATUM_DEVICE, i + 1);
	find_all(&pages, &ours, 0, PAGES + 1);
	pages_close(&pages);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void more_cells_than_numbers_are_refused(void **state)
{
	struct groups groups;
	struct pages  pages;

	(void)state;
	assert_int_equal(groups_make(specs, 2, 8, &groups, NULL), 0);
	assert_int_equal(pages_open(&pages, &groups, UINT32_C(1) << 30), -EOVERFLOW);
	pages_close(&pages);
}

/* A line, a block number a column and stratum, and at most 21 bytes of map and bitmap. */
static void memory_is_a_line_and_the_block_numbers(void **state)
{
	struct groups groups;
	struct pages  pages;

	(void)state;
	assert_int_equal(groups_make(specs, 2, 8, &groups, NULL), 0);
	assert_int_equal(pages_open(&pages, &groups, 10000), 0);
	assert_in_range(pages_bytes(&pages), 10000 * (64 + 6 * 8), 10000 * (64 + 6 * 8 + 22));
	pages_close(&pages);
	pages_close(&pages);
}

/* --- mistakes --------------------------------------------------------------------------------- */

/* Each child has its own copy, with column 0 of page 1 on Device. */
static void add_again(void *pages)
{
	add(pages, &ours, 1, 0, STRATUM_DEVICE, 2);
}

static void add_null(void *pages)
{
	add(pages, &ours, 1, 1, STRATUM_DEVICE, BLOCK_NULL);
}

static void add_outside(void *pages)
{
	add(pages, &ours, 1, 6, STRATUM_DEVICE, 2);
}

static void add_past_the_end(void *pages)
{
	uint32_t i;

	for (i = 0; i <= PAGES; i++)
		add(pages, &theirs, i, 0, STRATUM_DEVICE, 1);
}

static void drop_what_is_not_there(void *pages)
{
	pages_drop(pages, 0, STRATUM_HOST);
}

static void drop_outside(void *pages)
{
	pages_drop(pages, PAGES * 6, STRATUM_DEVICE);
}

static void audit_of_a_lost_block(void *arg)
{
	struct pages *const pages = arg;

	pages->blocks[0] = BLOCK_NULL;
	pages_audit(pages);
}

static void audit_of_a_forgotten_bit(void *arg)
{
	struct pages *const pages = arg;

	pages->entries[0].held[STRATUM_DEVICE] |= UINT64_C(1) << 40;
	pages_audit(pages);
}

static void audit_of_a_block_without_an_entry(void *arg)
{
	struct pages *const pages = arg;

	pages->entries[3].held[STRATUM_HOST] = 1;
	pages->blocks[3 * 6 * STRATUM_COUNT + STRATUM_HOST] = 9;
	pages_audit(pages);
}

static void mistakes_are_panics(void **state)
{
	void (*const mistakes[])(void *) = { add_again,        add_null,
					     add_outside,      add_past_the_end,
					     drop_what_is_not_there, drop_outside,
					     audit_of_a_lost_block, audit_of_a_forgotten_bit,
					     audit_of_a_block_without_an_entry };
	struct pages pages;
	size_t       i;

	(void)state;
	open_pages(&pages);
	assert_int_equal(add(&pages, &ours, 1, 0, STRATUM_DEVICE, 1), 0);
	for (i = 0; i < ARRAY_COUNT(mistakes); i++)
		assert_true(death_panics(mistakes[i], &pages, NULL, 0));
	pages_close(&pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_entry_serves_all_groups_and_both_strata),
		cmocka_unit_test(a_drop_is_of_one_stratum),
		cmocka_unit_test(an_entry_goes_with_its_last_block_and_its_neighbour_stays),
		cmocka_unit_test(namespace_group_and_offset_are_part_of_a_key),
		cmocka_unit_test(equal_content_in_two_namespaces_is_two_pages),
		cmocka_unit_test(many_look_ups_give_what_single_ones_give),
		cmocka_unit_test(a_row_ends_where_the_namespace_does),
		cmocka_unit_test(a_row_ends_where_an_entry_was_dropped),
		cmocka_unit_test(a_row_ends_with_the_table),
		cmocka_unit_test(more_cells_than_numbers_are_refused),
		cmocka_unit_test(memory_is_a_line_and_the_block_numbers),
		cmocka_unit_test(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
