/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle over groups: silent on its own rows, and it names the place of every kind of damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/groups.h"

#define GROUPS 3u
#define BLOCKS 32u
#define LAYERS 2u
#define TOKENS 24u
#define REQUEST 7u

enum { FULL, WINDOW, STATE };

/* Blocks of 4, 2 and 2 tokens; a window of 3. */
struct rig {
	struct group_engine engine;
	struct engine_plane planes[GROUPS][LAYERS];
	uint64_t            words[GROUPS][LAYERS][BLOCKS][4];
	int32_t             tokens[TOKENS];
	uint32_t            slots[GROUPS][TOKENS];
	struct engine_table tables[GROUPS];
};

static void rig_open(struct rig *rig)
{
	struct engine_group groups[GROUPS] = { { GROUP_FULL, 4, 0, LAYERS, rig->planes[FULL] },
					       { GROUP_WINDOW, 2, 3, LAYERS, rig->planes[WINDOW] },
					       { GROUP_STATE, 2, 0, LAYERS, rig->planes[STATE] } };
	uint32_t            g, i;

	memset(rig, 0, sizeof(*rig));
	memset(rig->words, 0xee, sizeof(rig->words));
	for (g = 0; g < GROUPS; g++) {
		for (i = 0; i < LAYERS; i++) {
			rig->planes[g][i] = (struct engine_plane){ (uint8_t *)rig->words[g][i],
								   sizeof(rig->words[g][i][0]) };
		}
		/* Backwards, so that no block is where its number says. */
		for (i = 0; i < TOKENS; i++)
			rig->slots[g][i] = BLOCKS - 1 - i;
		rig->tables[g] = (struct engine_table){ rig->slots[g], TOKENS };
	}
	for (i = 0; i < TOKENS; i++)
		rig->tokens[i] = (int32_t)(100 + i);
	group_engine_init(&rig->engine, groups, GROUPS);
}

static bool forward(struct rig *rig, uint32_t begin, uint32_t end)
{
	const struct engine_pass pass = { REQUEST, rig->tokens, begin, end, rig->tables };

	return group_engine_forward(&rig->engine, &pass);
}

static uint64_t *word(struct rig *rig, uint32_t group, uint32_t layer, uint32_t slot, uint32_t row)
{
	return &rig->words[group][layer][rig->slots[group][slot]][row];
}

static void assert_fault(struct rig *rig, uint32_t begin, uint32_t group, uint32_t position,
			 uint32_t layer, bool hole)
{
	rig->engine.wrong = 0;
	assert_false(forward(rig, begin, begin));
	assert_int_equal(rig->engine.first.request, REQUEST);
	assert_int_equal(rig->engine.first.group, group);
	assert_int_equal(rig->engine.first.position, position);
	assert_int_equal(rig->engine.first.layer, layer);
	assert_int_equal(rig->engine.first.hole, hole);
}

static void a_forward_reads_what_earlier_ones_wrote(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	assert_true(forward(&rig, 0, 6));
	assert_int_equal(rig.engine.rows_checked, 0);
	assert_true(forward(&rig, 6, 11));
	/* All six of FULL; of the window of token 6, tokens 4 and 5. */
	assert_int_equal(rig.engine.rows_checked, 8);
	assert_int_equal(rig.engine.checkpoints_checked, 1);
	assert_true(forward(&rig, 11, 12));
	assert_true(forward(&rig, 12, 12));
}

static void each_word_depends_on_prefix_group_and_layer(void **state)
{
	struct rig rig;
	uint64_t   before;

	(void)state;
	rig_open(&rig);
	forward(&rig, 0, 8);
	before = *word(&rig, FULL, 0, 1, 3);
	assert_true(*word(&rig, FULL, 1, 1, 3) != before);
	assert_true(*word(&rig, WINDOW, 0, 3, 1) != before);
	assert_true(*word(&rig, STATE, 0, 3, 0) != before);
	rig.tokens[0]++;
	forward(&rig, 0, 8);
	assert_true(*word(&rig, FULL, 0, 1, 3) != before);
}

static void a_wrong_row_is_named(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	forward(&rig, 0, 10);
	*word(&rig, FULL, 1, 1, 2) ^= UINT64_C(1) << 40;
	assert_fault(&rig, 10, FULL, 6, 1, false);
	*word(&rig, FULL, 1, 1, 2) ^= UINT64_C(1) << 40;
	*word(&rig, WINDOW, 0, 4, 0) += 1;
	assert_fault(&rig, 10, WINDOW, 8, 0, false);
}

static void wrong_bytes_are_counted_and_a_hole_is_a_whole_row(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	forward(&rig, 0, 10);
	*word(&rig, FULL, 1, 1, 2) ^= UINT64_C(0x0100000000000001);
	*word(&rig, FULL, 0, 2, 0) ^= 1;
	assert_false(forward(&rig, 10, 10));
	assert_int_equal(rig.engine.wrong, 2);
	assert_int_equal(rig.engine.wrong_bytes, 3);
	rig.slots[FULL][0] = 0;
	assert_false(forward(&rig, 10, 10));
	assert_int_equal(rig.engine.wrong, 2 + 4 + 2);
	assert_int_equal(rig.engine.wrong_bytes, 3 + 4 * LAYERS * sizeof(uint64_t) + 3);
}

/* A pass goes over its tokens in runs; what is first is first of all groups, and nothing is left out. */
static void long_passes_miss_no_row(void **state)
{
	enum { LONG = 1000, Q = 8, COUNT = LONG / Q };
	static uint64_t           full[COUNT + 1][Q], window[COUNT + 1][Q];
	static int32_t            tokens[LONG];
	static uint32_t           slots[COUNT];
	const struct engine_plane planes[2] = { { (uint8_t *)full, sizeof(full[0]) },
						{ (uint8_t *)window, sizeof(window[0]) } };
	const struct engine_group groups[2] = { { GROUP_FULL, Q, 0, 1, &planes[0] },
						{ GROUP_WINDOW, Q, 600, 1, &planes[1] } };
	const struct engine_table tables[2] = { { slots, COUNT }, { slots, COUNT } };
	const struct engine_pass  all = { REQUEST, tokens, 0, LONG, tables };
	const struct engine_pass  look = { REQUEST, tokens, LONG, LONG, tables };
	struct group_engine       engine;
	uint32_t                  i;

	(void)state;
	for (i = 0; i < COUNT; i++)
		slots[i] = COUNT - i;
	for (i = 0; i < LONG; i++)
		tokens[i] = (int32_t)i;
	group_engine_init(&engine, groups, 2);
	assert_true(group_engine_forward(&engine, &all));
	for (i = 0; i < LONG; i++) {
		full[slots[i / Q]][i % Q]++;
		window[slots[i / Q]][i % Q]++;
		engine.wrong = 0;
		assert_false(group_engine_forward(&engine, &look));
		assert_int_equal(engine.wrong, i + 600 > LONG ? 2 : 1);
		assert_int_equal(engine.first.position, i);
		assert_int_equal(engine.first.group, 0);
		full[slots[i / Q]][i % Q]--;
		window[slots[i / Q]][i % Q]--;
	}
	engine.rows_checked = 0;
	assert_true(group_engine_forward(&engine, &look));
	assert_int_equal(engine.rows_checked, LONG + 599);
}

static void rows_of_another_position_are_wrong(void **state)
{
	struct rig rig;
	uint32_t   kept;

	(void)state;
	rig_open(&rig);
	forward(&rig, 0, 10);
	kept = rig.slots[FULL][0];
	rig.slots[FULL][0] = rig.slots[FULL][1];
	assert_fault(&rig, 10, FULL, 0, 0, false);
	rig.slots[FULL][0] = kept;
	assert_true(forward(&rig, 10, 10));
}

static void what_a_window_has_left_is_not_looked_at(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	forward(&rig, 0, 10);
	/* The token at 10 attends to 8, 9 and itself. */
	*word(&rig, WINDOW, 0, 3, 1) += 1;
	rig.slots[WINDOW][2] = 0;
	assert_true(forward(&rig, 10, 12));
}

static void a_hole_that_is_read_or_written_is_wrong(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	forward(&rig, 0, 10);
	rig.slots[FULL][0] = 0;
	assert_fault(&rig, 10, FULL, 0, 0, true);
	rig.slots[FULL][0] = 1;
	rig_open(&rig);
	rig.tables[WINDOW].count = 3;
	assert_false(forward(&rig, 0, 8));
	assert_int_equal(rig.engine.first.group, WINDOW);
	assert_int_equal(rig.engine.first.position, 6);
	assert_true(rig.engine.first.hole);
}

static void a_forward_reads_one_checkpoint_and_writes_one(void **state)
{
	struct rig rig;
	uint32_t   slot;

	(void)state;
	rig_open(&rig);
	rig.slots[STATE][0] = rig.slots[STATE][1] = 0;
	assert_true(forward(&rig, 0, 6));
	for (slot = 0; slot < TOKENS; slot++) {
		if (slot != 2)
			assert_int_equal(*word(&rig, STATE, 0, slot, 0), UINT64_C(0xeeeeeeeeeeeeeeee));
	}
	/* Input in slot 2, output in slot 4; what is between is not touched, nor needed. */
	rig.slots[STATE][3] = 0;
	assert_true(forward(&rig, 6, 10));
	rig.slots[STATE][2] = 0;
	assert_true(forward(&rig, 10, 11));
	/* Input and output in one slot. */
	assert_true(forward(&rig, 11, 12));
	assert_true(forward(&rig, 12, 12));
}

static void a_checkpoint_of_another_token_is_wrong(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	forward(&rig, 0, 9);
	forward(&rig, 9, 10);
	/* Slot 4 is of 10 tokens now: whoever goes on behind 9 reads the wrong one. */
	assert_fault(&rig, 9, STATE, 8, 0, false);
	/* And whoever goes on behind 8 finds none: no forward has ended there. */
	assert_fault(&rig, 8, STATE, 7, 0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forward_reads_what_earlier_ones_wrote),
		cmocka_unit_test(each_word_depends_on_prefix_group_and_layer),
		cmocka_unit_test(a_wrong_row_is_named),
		cmocka_unit_test(wrong_bytes_are_counted_and_a_hole_is_a_whole_row),
		cmocka_unit_test(long_passes_miss_no_row),
		cmocka_unit_test(rows_of_another_position_are_wrong),
		cmocka_unit_test(what_a_window_has_left_is_not_looked_at),
		cmocka_unit_test(a_hole_that_is_read_or_written_is_wrong),
		cmocka_unit_test(a_forward_reads_one_checkpoint_and_writes_one),
		cmocka_unit_test(a_checkpoint_of_another_token_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
