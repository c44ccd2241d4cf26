/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: nothing reaches a terminal's controls, and a list never passes its buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

static void control_characters_become_question_marks(void **state)
{
	char text[] = "a\033[2J\n\t\x7f \xc3\xa9";

	(void)state;
	assert_string_equal(text_printable(text), "a?[2J??? \xc3\xa9");
}

static void words_are_joined_and_cut_at_the_end(void **state)
{
	static const char *const words[] = { "lru", "fifo", "s3fifo", NULL };
	char                     buffer[32];

	(void)state;
	assert_string_equal(text_join(words, ", ", buffer, sizeof(buffer)), "lru, fifo, s3fifo");
	assert_string_equal(text_join(words, " ", buffer, 7), "lru fi");
	assert_string_equal(text_join(words, ", ", buffer, 1), "");
	assert_string_equal(text_join(&words[3], ", ", buffer, sizeof(buffer)), "");
}

static void a_word_is_listed_as_a_whole(void **state)
{
	static const char *const words[] = { "lru", "fifo", NULL };

	(void)state;
	assert_true(text_is_listed(words, "fifo"));
	assert_false(text_is_listed(words, "fif"));
	assert_false(text_is_listed(words, "lru, fifo"));
	assert_false(text_is_listed(&words[2], "lru"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_characters_become_question_marks),
		cmocka_unit_test(words_are_joined_and_cut_at_the_end),
		cmocka_unit_test(a_word_is_listed_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
