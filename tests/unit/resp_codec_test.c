/* SPDX-License-Identifier: Apache-2.0 */
/* RESP2 as bytes: every kind of reply, cut at every byte, past every limit, and garbage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/prng.h"
#include "store/resp_codec.h"

#define SAID_MAX 4096

/* What a reader says, in words: "+OK :7 $3 abc . nil *2 !" and so on. */
struct said {
	char   text[SAID_MAX];
	size_t used;
};

static void say(struct said *said, const char *format, ...) PRINTF_LIKE(2, 3);

static void say(struct said *said, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	said->used += (size_t)vsnprintf(said->text + said->used,
					sizeof(said->text) - said->used, format, list);
	va_end(list);
	assert_true(said->used < sizeof(said->text));
}

static void say_event(struct said *said, const struct resp_reader *reader, int event,
		      const char *bytes, size_t count)
{
	switch (event) {
	case RESP_MORE:
		break;
	case RESP_STATUS:
		say(said, "+%s ", reader->text);
		break;
	case RESP_ERROR:
		say(said, "-%s ", reader->text);
		break;
	case RESP_INTEGER:
		say(said, ":%lld ", (long long)reader->value);
		break;
	case RESP_NIL:
		say(said, "nil ");
		break;
	case RESP_ARRAY:
		say(said, "*%lld ", (long long)reader->value);
		break;
	case RESP_BULK:
		say(said, "$%lld ", (long long)reader->value);
		break;
	case RESP_DATA:
		say(said, "%.*s", (int)count, bytes);
		break;
	case RESP_END:
		say(said, ". ");
		break;
	default:
		assert_int_equal(event, KVS_E_PROTO);
		say(said, "broken");
	}
}

/* Feed a piece; false once the reader is broken. */
static bool feed(struct resp_reader *reader, const char *bytes, size_t count, struct said *said)
{
	size_t at = 0;

	while (at < count) {
		size_t    used = SIZE_MAX;
		const int event = resp_read(reader, bytes + at, count - at, &used);

		assert_true(used <= count - at);
		assert_true(event != RESP_MORE || used == count - at);
		say_event(said, reader, event, bytes + at, used);
		if (event < 0)
			return false;
		at += used;
	}
	return true;
}

static const char *read_whole(const char *bytes, size_t count, struct said *said)
{
	struct resp_reader reader;

	*said = (struct said){ .used = 0 };
	resp_reader_init(&reader);
	feed(&reader, bytes, count, said);
	return said->text;
}

struct sample {
	const char *bytes;
	const char *said;
};

static const struct sample samples[] = {
	{ "+OK\r\n", "+OK " },
	{ "+\r\n", "+ " },
	{ "-ERR no such thing\r\n", "-ERR no such thing " },
	{ ":0\r\n:-1\r\n:9223372036854775807\r\n", ":0 :-1 :9223372036854775807 " },
	{ "$-1\r\n", "nil " },
	{ "*-1\r\n", "nil " },
	{ "$0\r\n\r\n", "$0 . " },
	{ "$5\r\na\r\nb$\r\n+OK\r\n", "$5 a\r\nb$. +OK " },
	{ "*0\r\n", "*0 " },
	{ "*2\r\n$1\r\n0\r\n*1\r\n$2\r\nab\r\n", "*2 $1 0. *1 $2 ab. " },
	/* What is no RESP2. */
	{ "HTTP/1.1 400", "broken" },
	{ "\r\n", "broken" },
	{ "+OK\n", "broken" },
	{ "+O\rK\r\n", "broken" },
	{ "%1\r\n", "broken" },
	{ ":\r\n", "broken" },
	{ ":-\r\n", "broken" },
	{ ":+1\r\n", "broken" },
	{ ":1x\r\n", "broken" },
	{ ":9223372036854775808\r\n", "broken" },
	{ ":1234567890123456789012345", "broken" },
	{ "$-2\r\n", "broken" },
	{ "$536870913\r\n", "broken" },
	{ "*1048577\r\n", "broken" },
	{ "*-2\r\n", "broken" },
	{ "$1\r\nab\r\n", "$1 abroken" },
	{ "$1\r\na\n", "$1 abroken" },
	{ "$1\r\na\rx", "$1 abroken" },
};

static void each_kind_of_reply_is_read(void **state)
{
	struct said said;
	size_t      i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(samples); i++) {
		assert_string_equal(read_whole(samples[i].bytes, strlen(samples[i].bytes), &said),
				    samples[i].said);
	}
}

static void a_cut_at_any_two_bytes_changes_nothing(void **state)
{
	size_t i, first, second;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(samples); i++) {
		const char  *bytes = samples[i].bytes;
		const size_t count = strlen(bytes);

		for (first = 0; first <= count; first++) {
			for (second = first; second <= count; second++) {
				struct said        said = { .used = 0 };
				struct resp_reader reader;

				resp_reader_init(&reader);
				if (feed(&reader, bytes, first, &said) &&
				    feed(&reader, bytes + first, second - first, &said))
					feed(&reader, bytes + second, count - second, &said);
				assert_string_equal(said.text, samples[i].said);
			}
		}
	}
}

static void a_broken_reader_stays_broken(void **state)
{
	struct resp_reader reader;
	struct said        said = { .used = 0 };
	size_t             used;

	(void)state;
	resp_reader_init(&reader);
	assert_false(feed(&reader, "?", 1, &said));
	assert_int_equal(resp_read(&reader, "+OK\r\n", 5, &used), KVS_E_PROTO);
	assert_int_equal(used, 0);
	assert_false(resp_reader_is_between(&reader));
}

static void a_long_text_is_kept_in_part_and_has_an_end(void **state)
{
	static char        line[RESP_LINE_MAX + 8];
	struct resp_reader reader;
	size_t             used;

	(void)state;
	memset(line, 'x', sizeof(line));
	line[0] = '-';
	memcpy(line + RESP_LINE_MAX, "\r\n", 2);
	resp_reader_init(&reader);
	assert_int_equal(resp_read(&reader, line, RESP_LINE_MAX + 2, &used), RESP_ERROR);
	assert_int_equal(strlen(reader.text), RESP_TEXT_MAX);
	line[RESP_LINE_MAX] = 'x';
	resp_reader_init(&reader);
	assert_int_equal(resp_read(&reader, line, sizeof(line), &used), KVS_E_PROTO);
}

static void the_places_in_a_reply_are_known(void **state)
{
	struct resp_reader reader;
	size_t             used;

	(void)state;
	resp_reader_init(&reader);
	assert_true(resp_reader_is_between(&reader));
	assert_int_equal(resp_read(&reader, "$7\r", 3, &used), RESP_MORE);
	assert_false(resp_reader_is_between(&reader));
	assert_int_equal(resp_body_left(&reader), 0);
	assert_int_equal(resp_read(&reader, "\nabc", 4, &used), RESP_BULK);
	assert_int_equal(used, 1);
	assert_int_equal(resp_body_left(&reader), 7);
	assert_int_equal(resp_read(&reader, "abc", 3, &used), RESP_DATA);
	assert_int_equal(resp_body_left(&reader), 4);
	assert_int_equal(resp_read(&reader, "defg\r\n", 6, &used), RESP_DATA);
	assert_int_equal(used, 4);
	assert_int_equal(resp_read(&reader, "\r\n", 2, &used), RESP_END);
	assert_true(resp_reader_is_between(&reader));
}

static void garbage_is_read_alike_however_it_is_cut(void **state)
{
	static const char alphabet[] = "+-:$*0123456789\r\n\r\n\r\na";
	struct prng       prng;
	uint32_t          round;

	(void)state;
	prng_seed(&prng, 11);
	for (round = 0; round < 20000; round++) {
		char               bytes[24];
		struct said        whole, pieces = { .used = 0 };
		struct resp_reader reader;
		size_t             i;

		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = alphabet[prng_below(&prng, sizeof(alphabet) - 1)];
		read_whole(bytes, sizeof(bytes), &whole);
		resp_reader_init(&reader);
		for (i = 0; i < sizeof(bytes) && feed(&reader, bytes + i, 1, &pieces); i++)
			continue;
		assert_string_equal(pieces.text, whole.text);
	}
}

static void commands_are_written(void **state)
{
	char               text[128];
	struct resp_writer writer = { .bytes = text, .room = sizeof(text) };

	(void)state;
	resp_put_array(&writer, 3);
	resp_put_text(&writer, "SET");
	resp_put_bulk(&writer, "a\r\nb", 4);
	resp_put_bulk_head(&writer, 65536);
	assert_int_equal(writer.used, strlen("*3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$65536\r\n"));
	assert_memory_equal(text, "*3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$65536\r\n", writer.used);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_reply_is_read),
		cmocka_unit_test(a_cut_at_any_two_bytes_changes_nothing),
		cmocka_unit_test(a_broken_reader_stays_broken),
		cmocka_unit_test(a_long_text_is_kept_in_part_and_has_an_end),
		cmocka_unit_test(the_places_in_a_reply_are_known),
		cmocka_unit_test(garbage_is_read_alike_however_it_is_cut),
		cmocka_unit_test(commands_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
