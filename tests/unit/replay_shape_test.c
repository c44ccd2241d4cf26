/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of a replay as its user writes them: sizes, names, what fits, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "app/replay_shape.h"

#define KIB UINT64_C(1024)

static void one_full_group_takes_all(void **state)
{
	struct replay_shape shape;

	(void)state;
	assert_int_equal(replay_shape_parse(&shape, "full", 64 * KIB, NULL), 0);
	assert_int_equal(shape.count, 1);
	assert_string_equal(shape.specs[0].name, "full");
	assert_int_equal(shape.specs[0].block_tokens, 512);
	assert_int_equal(shape.specs[0].packing, 1);
	assert_int_equal(shape.block_bytes[0], 64 * KIB);
	assert_int_equal(shape.layers[0], 16);
	assert_int_equal(shape.object_bytes, 64 * KIB);
}

static void groups_share_what_nobody_chose(void **state)
{
	struct replay_shape shape;

	(void)state;
	assert_int_equal(replay_shape_parse(&shape, "full,window:4096:block=128,state", 64 * KIB, NULL), 0);
	assert_int_equal(shape.count, 3);
	assert_int_equal(shape.block_bytes[0], 32 * KIB);
	assert_int_equal(shape.specs[0].packing, 2);
	assert_int_equal(shape.layers[0], 8);
	assert_int_equal(shape.specs[1].kind, GROUP_WINDOW);
	assert_int_equal(shape.specs[1].window_tokens, 4096);
	assert_int_equal(shape.block_bytes[1], 8 * KIB);
	assert_int_equal(shape.specs[1].packing, 8);
	assert_int_equal(shape.layers[1], 8);
	assert_int_equal(shape.block_bytes[2], 4 * KIB);
	assert_int_equal(shape.specs[2].packing, 16);
	assert_int_equal(shape.layers[2], 512);
	assert_int_equal(shape.object_bytes, 32 * KIB);
}

static void a_share_is_of_a_page_and_a_states_of_its_checkpoint(void **state)
{
	struct replay_shape shape;

	(void)state;
	assert_int_equal(replay_shape_parse(&shape,
					    "full:share=3/4,window:1:share=1/4:block=256,state:share=1/8",
					    64 * KIB, NULL),
			 0);
	assert_int_equal(shape.block_bytes[0], 48 * KIB);
	/* One fits; with two the second would not be whole. */
	assert_int_equal(shape.specs[0].packing, 1);
	assert_int_equal(shape.block_bytes[1], 8 * KIB);
	assert_int_equal(shape.block_bytes[2], 8 * KIB);
	/* Three, say, of 20 KiB would not divide a parent of 64 KiB. */
	assert_int_equal(replay_shape_parse(&shape, "full:share=5/16", 64 * KIB, NULL), 0);
	assert_int_equal(shape.specs[0].packing, 2);
}

static void names_tell_groups_of_a_kind_apart(void **state)
{
	struct replay_shape shape;

	(void)state;
	assert_int_equal(replay_shape_parse(&shape, "window:64,full,window:128", 64 * KIB, NULL), 0);
	assert_string_equal(shape.specs[0].name, "window");
	assert_string_equal(shape.specs[1].name, "full");
	assert_string_equal(shape.specs[2].name, "window2");
}

static void what_fits_counts_parents(void **state)
{
	struct replay_shape shape;

	(void)state;
	assert_int_equal(replay_shape_parse(&shape, "full,window:4096,state", 64 * KIB, NULL), 0);
	assert_int_equal(replay_shape_parents(&shape, 10), 5 + 5 + 1);
	/* A FULL group of half the bytes: twice as many pages as parents. */
	assert_int_equal(replay_shape_pages(&shape, 10), 20);
	assert_int_equal(replay_shape_parse(&shape, "window:4096", 64 * KIB, NULL), 0);
	assert_int_equal(replay_shape_pages(&shape, 10), UINT64_MAX);
}

static void another_shape_has_another_text(void **state)
{
	static const char *const texts[] = { "full", "full:block=256", "full:share=1/2", "window:512",
					     "window:513", "full,state", "state,full" };
	char                     seen[ARRAY_COUNT(texts)][SHAPE_TEXT_BYTES];
	struct replay_shape      shape;
	size_t                   i, j;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(texts); i++) {
		assert_int_equal(replay_shape_parse(&shape, texts[i], 64 * KIB, NULL), 0);
		replay_shape_text(&shape, seen[i]);
		for (j = 0; j < i; j++)
			assert_string_not_equal(seen[i], seen[j]);
	}
}

static void refuses(const char *text, const char *sentence)
{
	struct replay_shape shape;
	struct kvs_error    err;

	assert_int_equal(replay_shape_parse(&shape, text, 64 * KIB, &err), KVS_E_INVALID);
	if (!strstr(err.message, sentence))
		fail_msg("\"%s\" lacks \"%s\"", err.message, sentence);
	assert_memory_equal(err.message, "groups: ", 8);
}

static void what_is_no_group_is_refused_with_its_item(void **state)
{
	(void)state;
	refuses("", "a group is full, window:TOKENS or state");
	refuses("half", "\"half\": a group is full, window:TOKENS or state");
	refuses("full,", "\"\": a group is");
	refuses("window", "\"window\": a window is window:TOKENS");
	refuses("window:0", "a window is window:TOKENS");
	refuses("window:2147483648", "a window is window:TOKENS");
	refuses("full:512", "\"full:512\": behind the kind stand block=TOKENS and share=A/B");
	refuses("full:block=0", "block= is given once, a divisor of the 512 tokens");
	refuses("full:block=96", "a divisor of the 512 tokens");
	refuses("full:block=1024", "a divisor of the 512 tokens");
	refuses("full:block=64:block=64", "block= is given once");
	refuses("full:share=1", "share= is given once, as A/B");
	refuses("full:share=2/1", "share= is given once, as A/B");
	refuses("full:share=0/1", "share= is given once, as A/B");
	refuses("full:share=1/9999", "share= is given once, as A/B");
	refuses("full:share=1/3", "no multiple of 4 KiB");
	refuses("full:share=1/32", "no multiple of 4 KiB");
	refuses("full:block=8:share=1/2", "no multiple of 4 KiB");
	refuses("full:block=2", "group 0 \"full\"");
}

static void seventeen_groups_are_too_many(void **state)
{
	(void)state;
	refuses("full,full,full,full,full,full,full,full,full,full,full,full,full,full,full,full,full",
		"more than 16");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_full_group_takes_all),
		cmocka_unit_test(groups_share_what_nobody_chose),
		cmocka_unit_test(a_share_is_of_a_page_and_a_states_of_its_checkpoint),
		cmocka_unit_test(names_tell_groups_of_a_kind_apart),
		cmocka_unit_test(what_fits_counts_parents),
		cmocka_unit_test(another_shape_has_another_text),
		cmocka_unit_test(what_is_no_group_is_refused_with_its_item),
		cmocka_unit_test(seventeen_groups_are_too_many),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
