/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards: the order of rows, tables as wide as the widest, holes apart from what lies behind a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "death.h"
#include "sched/batch.h"

#define GROUPS 2u
#define ROWS 4u
#define SLOTS 8u
#define FRESH 6u

static const uint32_t slot_max[GROUPS] = { SLOTS, SLOTS };
static const uint32_t fresh_max[GROUPS] = { FRESH, FRESH };

static int open_batcher(void **state)
{
	static struct batcher batcher;

	*state = &batcher;
	return batcher_open(&batcher, GROUPS, ROWS, slot_max, fresh_max);
}

static int close_batcher(void **state)
{
	batcher_close(*state);
	return 0;
}

/* A table over these slots. */
static struct table over(uint32_t *slots, uint32_t count)
{
	struct table table;

	table_init(&table, slots, count);
	table.count = count;
	return table;
}

static void add(struct batcher *batcher, const char *id, enum batch_kind kind, const struct table *first,
		const struct table *second)
{
	const struct batch_row    row = { .id = id, .kind = kind };
	const struct table *const tables[GROUPS] = { first, second };

	batch_add(batcher, &row, tables);
}

static void expect_line(const struct batch *batch, uint32_t group, uint32_t row, const int32_t *expected)
{
	const struct batch_table *const table = &batch->tables[group];

	assert_memory_equal(&table->slots[row * table->width], expected, table->width * sizeof(*expected));
}

static void nothing_gives_nothing(void **state)
{
	struct batcher *const batcher = *state;
	struct batch          batch;

	batch_begin(batcher);
	batch = batch_end(batcher);
	assert_int_equal(batch.row_count, 0);
	assert_int_equal(batch.prefill_count, 0);
	assert_int_equal(batch.tables[0].width, 0);
	assert_int_equal(batch.fresh_count[0], 0);
}

static void short_lines_are_filled_up_and_holes_are_not_that(void **state)
{
	struct batcher *const batcher = *state;
	uint32_t              long_slots[] = { 0, 5, 6 };
	uint32_t              short_slots[] = { 7 };
	const struct table    long_table = over(long_slots, 3);
	const struct table    short_table = over(short_slots, 1);
	struct batch          batch;

	batch_begin(batcher);
	add(batcher, "a", BATCH_PREFILL, &long_table, &short_table);
	add(batcher, "b", BATCH_PREFILL, &short_table, &short_table);
	batch = batch_end(batcher);
	assert_int_equal(batch.tables[0].width, 3);
	expect_line(&batch, 0, 0, (const int32_t[]){ 0, 5, 6 });
	expect_line(&batch, 0, 1, (const int32_t[]){ 7, -1, -1 });
	/* Lines of one length stay as they are. */
	assert_int_equal(batch.tables[1].width, 1);
	expect_line(&batch, 1, 0, (const int32_t[]){ 7 });
	expect_line(&batch, 1, 1, (const int32_t[]){ 7 });
}

static void a_group_that_a_row_lacks_is_an_empty_line(void **state)
{
	struct batcher *const batcher = *state;
	uint32_t              slots[] = { 3, 4 };
	const struct table    table = over(slots, 2);
	struct batch          batch;

	batch_begin(batcher);
	add(batcher, "a", BATCH_DECODE, &table, NULL);
	add(batcher, "b", BATCH_DECODE, NULL, &table);
	batch = batch_end(batcher);
	expect_line(&batch, 0, 0, (const int32_t[]){ 3, 4 });
	expect_line(&batch, 0, 1, (const int32_t[]){ -1, -1 });
	expect_line(&batch, 1, 0, (const int32_t[]){ -1, -1 });
	expect_line(&batch, 1, 1, (const int32_t[]){ 3, 4 });
}

static void prefills_come_first_and_keep_their_order_and_lines(void **state)
{
	static const char *const ids[] = { "p1", "p2", "d1", "d2" };
	struct batcher *const    batcher = *state;
	uint32_t                 slots[ROWS][1] = { { 1 }, { 2 }, { 3 }, { 4 } };
	struct table             tables[ROWS];
	struct batch             batch;
	uint32_t                 i;

	for (i = 0; i < ROWS; i++)
		tables[i] = over(slots[i], 1);
	batch_begin(batcher);
	add(batcher, "d1", BATCH_DECODE, &tables[2], NULL);
	add(batcher, "p1", BATCH_PREFILL, &tables[0], NULL);
	add(batcher, "d2", BATCH_DECODE, &tables[3], NULL);
	add(batcher, "p2", BATCH_PREFILL, &tables[1], NULL);
	batch = batch_end(batcher);
	assert_int_equal(batch.row_count, ROWS);
	assert_int_equal(batch.prefill_count, 2);
	for (i = 0; i < ROWS; i++) {
		assert_string_equal(batch.rows[i].id, ids[i]);
		expect_line(&batch, 0, i, (const int32_t[]){ (int32_t)i + 1 });
	}
}

static void a_row_arrives_as_it_was_given(void **state)
{
	static const int32_t      tokens[] = { 8, 9 };
	struct batcher *const     batcher = *state;
	const struct batch_row    row = { .id = "a", .kind = BATCH_PREFILL, .place = 3, .begin = 6,
					  .token_count = 2, .tokens = tokens, .ends_prompt = true,
					  .fence = 17 };
	const struct table *const tables[GROUPS] = { NULL, NULL };
	struct batch              batch;

	batch_begin(batcher);
	add(batcher, "b", BATCH_DECODE, NULL, NULL);
	batch_add(batcher, &row, tables);
	batch = batch_end(batcher);
	assert_string_equal(batch.rows[0].id, "a");
	assert_int_equal(batch.rows[0].kind, BATCH_PREFILL);
	assert_int_equal(batch.rows[0].place, 3);
	assert_int_equal(batch.rows[0].begin, 6);
	assert_int_equal(batch.rows[0].token_count, 2);
	assert_ptr_equal(batch.rows[0].tokens, tokens);
	assert_true(batch.rows[0].ends_prompt);
	assert_int_equal(batch.rows[0].fence, 17);
}

static void a_batch_shows_the_tables_as_they_are_at_its_end(void **state)
{
	struct batcher *const batcher = *state;
	uint32_t              slots[] = { 1, 2 };
	struct table          table = over(slots, 1);
	struct batch          batch;

	batch_begin(batcher);
	add(batcher, "a", BATCH_PREFILL, &table, NULL);
	slots[0] = 9;
	table.count = 2;
	batch = batch_end(batcher);
	assert_int_equal(batch.tables[0].width, 2);
	expect_line(&batch, 0, 0, (const int32_t[]){ 9, 2 });
}

static void fresh_blocks_add_up_group_by_group(void **state)
{
	static const uint32_t first[] = { 1, 2, 3 };  /* two of group 0, one of group 1 */
	static const uint32_t second[] = { 4, 5 };    /* of group 1 */
	struct batcher *const batcher = *state;
	struct batch          batch;

	batch_begin(batcher);
	batch_add_fresh(batcher, first, (const uint32_t[GROUPS]){ 2, 1 });
	batch_add_fresh(batcher, NULL, (const uint32_t[GROUPS]){ 0, 0 });
	batch_add_fresh(batcher, second, (const uint32_t[GROUPS]){ 0, 2 });
	batch = batch_end(batcher);
	assert_int_equal(batch.fresh_count[0], 2);
	assert_int_equal(batch.fresh_count[1], 3);
	assert_memory_equal(batch.fresh[0], ((const uint32_t[]){ 1, 2 }), 2 * sizeof(uint32_t));
	assert_memory_equal(batch.fresh[1], ((const uint32_t[]){ 3, 4, 5 }), 3 * sizeof(uint32_t));
}

static void each_batch_begins_empty(void **state)
{
	static const uint32_t fresh[] = { 1 };
	struct batcher *const batcher = *state;
	uint32_t              slots[] = { 1 };
	const struct table    table = over(slots, 1);
	uint32_t              round, i;

	for (round = 0; round < 3; round++) {
		struct batch batch;

		batch_begin(batcher);
		for (i = 0; i < ROWS; i++)
			add(batcher, "a", BATCH_PREFILL, &table, NULL);
		for (i = 0; i < FRESH; i++)
			batch_add_fresh(batcher, fresh, (const uint32_t[GROUPS]){ 1, 0 });
		batch = batch_end(batcher);
		assert_int_equal(batch.row_count, ROWS);
		assert_int_equal(batch.fresh_count[0], FRESH);
	}
}

static void bytes_count_all_that_was_taken(void **state)
{
	struct batcher *const batcher = *state;
	size_t                bytes = ROWS * (sizeof(struct batch_row) + GROUPS * sizeof(struct table *));

	bytes += GROUPS * (ROWS * SLOTS + FRESH) * sizeof(uint32_t);
	assert_int_equal(batcher_bytes(batcher), bytes);
}

static void mix(void *ctx)
{
	batch_begin(ctx);
	add(ctx, "a", BATCH_PREFILL, NULL, NULL);
	add(ctx, "b", BATCH_REMOTE, NULL, NULL);
}

static void overfill(void *ctx)
{
	uint32_t i;

	batch_begin(ctx);
	for (i = 0; i <= ROWS; i++)
		add(ctx, "a", BATCH_DECODE, NULL, NULL);
}

static void own_mistakes_are_fatal(void **state)
{
	assert_true(death_panics(mix, *state, NULL, 0));
	assert_true(death_panics(overfill, *state, NULL, 0));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_batcher, close_batcher)
	const struct CMUnitTest tests[] = {
		TEST(nothing_gives_nothing),
		TEST(short_lines_are_filled_up_and_holes_are_not_that),
		TEST(a_group_that_a_row_lacks_is_an_empty_line),
		TEST(prefills_come_first_and_keep_their_order_and_lines),
		TEST(a_row_arrives_as_it_was_given),
		TEST(a_batch_shows_the_tables_as_they_are_at_its_end),
		TEST(fresh_blocks_add_up_group_by_group),
		TEST(each_batch_begins_empty),
		TEST(bytes_count_all_that_was_taken),
		TEST(own_mistakes_are_fatal),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
