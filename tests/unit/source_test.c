/* SPDX-License-Identifier: Apache-2.0 */
/* Sources of requests: every way a trace can be malformed, and what the generator promises. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/line_file.h"
#include "app/source.h"

#define GOOD "{\"timestamp\": 5, \"input_length\": 513, \"output_length\": 7, \"hash_ids\": [3, 4]}"

/* A file without a name in any directory; path gets one for it. */
static int make_file(const char *text, char path[32])
{
	const int fd = memfd_create("trace", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static struct source *open_text(const char *text)
{
	char           path[32];
	const int      fd = make_file(text, path);
	struct source *source = NULL;

	assert_int_equal(source_open_trace(path, &source, NULL), 0);
	close(fd);
	return source;
}

static void a_line_becomes_a_request(void **state)
{
	struct source        *source = open_text(GOOD "\n" GOOD "\n");
	struct source_request request;

	(void)state;
	assert_true(source_progress(source) == 0);
	assert_int_equal(source_next(source, &request, NULL), 1);
	assert_int_equal(request.index, 0);
	assert_int_equal(request.timestamp_ms, 5);
	assert_int_equal(request.input_tokens, 513);
	assert_int_equal(request.output_tokens, 7);
	assert_int_equal(request.page_count, 2);
	assert_int_equal(request.page_ids[0], 3);
	assert_int_equal(request.page_ids[1], 4);
	assert_true(source_progress(source) > 0.49 && source_progress(source) < 0.51);
	assert_int_equal(source_next(source, &request, NULL), 1);
	assert_int_equal(request.index, 1);
	assert_int_equal(source_next(source, &request, NULL), 0);
	assert_int_equal(source_next(source, &request, NULL), 0);
	assert_true(source_progress(source) == 1);
	source_close(source);
	source_close(NULL);
}

static uint64_t count_requests(const char *text)
{
	struct source        *source = open_text(text);
	struct source_request request;
	uint64_t              count = 0;
	int                   code;

	while ((code = source_next(source, &request, NULL)) == 1)
		count++;
	assert_int_equal(code, 0);
	source_close(source);
	return count;
}

static void ends_of_files(void **state)
{
	(void)state;
	assert_int_equal(count_requests(""), 0);
	assert_int_equal(count_requests("\n"), 0);
	assert_int_equal(count_requests(GOOD), 1);
	assert_int_equal(count_requests(GOOD "\n\n \t\r\n"), 1);
	assert_int_equal(count_requests(GOOD "\r\n" GOOD "\r\n"), 2);
	/* Keys that we do not know are somebody else's. */
	assert_int_equal(count_requests("{\"timestamp\":0,\"input_length\":1,\"output_length\":0,"
					"\"hash_ids\":[0],\"x\":{}}"),
			 1);
}

#define LINE(timestamp, input, output, ids) \
	"{\"timestamp\":" timestamp ",\"input_length\":" input ",\"output_length\":" output \
	",\"hash_ids\":" ids "}"

static const struct {
	const char *line;
	const char *sentence;
} malformed[] = {
	{ "{", "expected one JSON object: " },
	{ "hello", "expected one JSON object: " },
	{ "[]", "not a JSON object; expected one request a line" },
	{ "7", "not a JSON object" },
	{ GOOD " {}", "expected one JSON object: end of file expected" },
	{ GOOD " \x1b[2J", "expected one JSON object: end of file expected near '?'" },
	{ GOOD ",", "expected one JSON object: end of file expected" },
	{ "{\"timestamp\": 1, \"timestamp\": 1}", "duplicate" },
	{ "{\"timestamp\": \"\x1b[2J\xff\"}", "expected one JSON object: " },
	{ "{\"input_length\":1,\"output_length\":0,\"hash_ids\":[0]}",
	  "timestamp: missing; a request has timestamp, " },
	{ "{\"timestamp\":5,\"output_length\":0,\"hash_ids\":[0]}", "input_length: missing" },
	{ "{\"timestamp\":5,\"input_length\":1,\"hash_ids\":[0]}", "output_length: missing" },
	{ "{\"timestamp\":5,\"input_length\":1,\"output_length\":0}", "hash_ids: missing" },
	{ LINE("-1", "1", "0", "[0]"), "timestamp: -1 is not an integer from 0 to 8796093022208" },
	{ LINE("5.0", "1", "0", "[0]"), "timestamp: 5.0 is not an integer" },
	{ LINE("null", "1", "0", "[0]"), "timestamp: null is not an integer" },
	{ LINE("8796093022209", "1", "0", "[0]"), "timestamp: 8796093022209 is not an integer" },
	{ LINE("4", "1", "0", "[0]"), "timestamp: 4 after 5; it must not go backwards" },
	{ LINE("5", "0", "0", "[]"), "input_length: 0 is not an integer from 1 to 536870912" },
	{ LINE("5", "-1", "0", "[0]"), "input_length: -1 is not" },
	{ LINE("5", "1.5", "0", "[0]"), "input_length: 1.5 is not" },
	{ LINE("5", "536870913", "0", "[0]"), "input_length: 536870913 is not" },
	{ LINE("5", "99999999999999999999", "0", "[0]"), "too big integer" },
	{ LINE("5", "\"twelve hundred and a few more tokens\"", "0", "[0]"),
	  "input_length: \"twelve hundred and a few mo... is not" },
	{ LINE("5", "1", "-3", "[0]"), "output_length: -3 is not an integer from 0 to" },
	{ LINE("5", "1", "true", "[0]"), "output_length: true is not" },
	{ LINE("5", "1", "0", "7"), "hash_ids: not an array of integers" },
	{ LINE("5", "1", "0", "[]"),
	  "hash_ids: 0 ids for input_length 1; expected 1, one for each 512 tokens begun" },
	{ LINE("5", "512", "0", "[1,2]"), "hash_ids: 2 ids for input_length 512; expected 1" },
	{ LINE("5", "513", "0", "[1]"), "hash_ids: 1 ids for input_length 513; expected 2" },
	{ LINE("5", "1", "0", "[-1]"),
	  "hash_ids: -1 is not an integer from 0 to 9223372036854775807" },
	{ LINE("5", "1", "0", "[1.25]"), "hash_ids: 1.25 is not" },
	{ LINE("5", "1", "0", "[\"a\"]"), "hash_ids: \"a\" is not" },
	{ "\n" GOOD, "line 2: empty; expected one JSON object a line" },
};

static void malformed_lines_are_refused(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(malformed); i++) {
		char                  text[512];
		struct source        *source;
		struct source_request request;
		struct kvs_error      err = { 0 };

		snprintf(text, sizeof(text), GOOD "\n%s\n" GOOD "\n", malformed[i].line);
		source = open_text(text);
		assert_int_equal(source_next(source, &request, &err), 1);
		assert_int_equal(source_next(source, &request, &err), KVS_E_INVALID);
		source_close(source);
		if (!strstr(err.message, malformed[i].sentence) ||
		    !strstr(err.message, ": line 2: ") ||
		    strncmp(err.message, "/proc/self/fd/", 14) != 0 ||
		    strpbrk(err.message, "\n\x1b"))
			fail_msg("%s: %s", malformed[i].line, err.message);
	}
}

/* A refused line changes nothing: the next one is read as if it had not been there. */
static void reading_goes_on_after_a_refusal(void **state)
{
	struct source        *source = open_text("{}\n" GOOD "\n");
	struct source_request request;
	struct kvs_error      err;

	(void)state;
	assert_int_equal(source_next(source, &request, &err), KVS_E_INVALID);
	assert_int_equal(source_next(source, &request, &err), 1);
	assert_int_equal(request.index, 0);
	source_close(source);
}

static void a_line_too_long_is_refused(void **state)
{
	char                  path[32];
	const int             fd = make_file("", path);
	struct source        *source = NULL;
	struct source_request request;
	struct kvs_error      err;

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)SOURCE_PAGES_MAX * 50), 0);
	assert_int_equal(source_open_trace(path, &source, &err), 0);
	assert_int_equal(source_next(source, &request, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "line 1: longer than 46137344 bytes"));
	source_close(source);
	close(fd);
}

/* Lines around the size of the first buffer: a newline before, at and behind its end. */
static void lines_straddle_buffers(void **state)
{
	static const size_t lengths[] = {
		262143, 262144, 262145, 0, 1, 700000, 5, 524287, 262144, 3
	};
	char                path[32];
	const int           fd = make_file("", path);
	FILE               *file = fdopen(fd, "w");
	struct line_file    lines;
	const char         *line;
	size_t              bytes, i, k;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(lengths); i++) {
		for (k = 0; k < lengths[i]; k++)
			fputc('a' + (int)((i + k) % 26), file);
		if (i + 1 < ARRAY_COUNT(lengths))
			fputc('\n', file);
	}
	fflush(file);
	assert_int_equal(line_file_open(&lines, path, 700000), 0);
	for (i = 0; i < ARRAY_COUNT(lengths); i++) {
		assert_int_equal(line_file_next(&lines, &line, &bytes), 1);
		assert_int_equal(lines.line, i + 1);
		assert_int_equal(bytes, lengths[i]);
		for (k = 0; k < bytes; k++) {
			if (line[k] != 'a' + (int)((i + k) % 26))
				fail_msg("line %zu, byte %zu", i, k);
		}
	}
	assert_int_equal(line_file_next(&lines, &line, &bytes), 0);
	assert_int_equal(lines.taken_bytes, lines.file_bytes);
	line_file_close(&lines);
	assert_int_equal(line_file_open(&lines, path, 699999), 0);
	for (i = 0; i < 5; i++)
		assert_int_equal(line_file_next(&lines, &line, &bytes), 1);
	assert_int_equal(line_file_next(&lines, &line, &bytes), KVS_E_FULL);
	assert_int_equal(lines.line, 6);
	line_file_close(&lines);
	fclose(file);
}

static void open_names_the_file(void **state)
{
	struct source   *source = NULL;
	struct kvs_error err;
	char             path[300];

	(void)state;
	assert_int_equal(source_open_trace("no/such/file", &source, &err), -ENOENT);
	assert_string_equal(err.message, "no/such/file: cannot open: No such file or directory");
	assert_int_equal(source_open_trace("/proc/self", &source, &err), -EISDIR);
	assert_string_equal(err.message, "/proc/self: cannot open: Is a directory");
	/* Of a long path its end tells more. */
	memset(path, 'x', sizeof(path));
	memcpy(path + sizeof(path) - 6, "/tail", 6);
	assert_true(source_open_trace(path, &source, &err) < 0);
	assert_memory_equal(err.message, "...xxx", 6);
	assert_non_null(strstr(err.message, "xxx/tail: cannot open: "));
	assert_null(source);
}

static void traces_come_through_pipes_too(void **state)
{
	int                   ends[2];
	char                  path[32];
	struct source        *source = NULL;
	struct source_request request;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], GOOD "\n", strlen(GOOD) + 1), strlen(GOOD) + 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	close(ends[1]);
	assert_int_equal(source_open_trace(path, &source, NULL), 0);
	assert_int_equal(source_next(source, &request, NULL), 1);
	assert_int_equal(source_next(source, &request, NULL), 0);
	assert_true(source_progress(source) == 0);
	source_close(source);
	close(ends[0]);
}

/* --- the generator ---------------------------------------------------------------------------- */

static struct source *generate(uint64_t seed, uint64_t count)
{
	struct source *source = NULL;

	assert_int_equal(source_open_generated(seed, count, &source, NULL), 0);
	return source;
}

static uint64_t first_difference(uint64_t seed_a, uint64_t seed_b)
{
	struct source        *a = generate(seed_a, 500), *b = generate(seed_b, 500);
	struct source_request of_a, of_b;
	uint64_t              i;

	for (i = 0; i < 500; i++) {
		assert_int_equal(source_next(a, &of_a, NULL), 1);
		assert_int_equal(source_next(b, &of_b, NULL), 1);
		if (of_a.timestamp_ms != of_b.timestamp_ms ||
		    of_a.input_tokens != of_b.input_tokens ||
		    of_a.output_tokens != of_b.output_tokens ||
		    memcmp(of_a.page_ids, of_b.page_ids, of_a.page_count * sizeof(uint64_t)) != 0)
			break;
	}
	source_close(a);
	source_close(b);
	return i;
}

static void a_seed_is_a_workload(void **state)
{
	(void)state;
	assert_int_equal(first_difference(1, 1), 500);
	assert_int_equal(first_difference(1, 2), 0);
}

struct sample {
	uint64_t tokens[2000];
	uint64_t partial_ids[2000];
	uint32_t partial_count;
};

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void generated_requests_are_well_formed(void **state)
{
	struct source        *source = generate(7, 2000);
	struct source_request request;
	uint64_t              last_ms = 0, count = 0;

	(void)state;
	while (source_next(source, &request, NULL) == 1) {
		assert_int_equal(request.index, count++);
		assert_true(request.timestamp_ms >= last_ms);
		assert_in_range(request.input_tokens, 1, 61440);
		assert_in_range(request.output_tokens, 1, 4096);
		assert_int_equal(request.page_count, (request.input_tokens + 511) / 512);
		last_ms = request.timestamp_ms;
	}
	assert_int_equal(count, 2000);
	assert_true(source_progress(source) == 1);
	source_close(source);
}

static void prompts_look_like_chat(void **state)
{
	static struct sample  sample;
	struct source        *source = generate(7, 2000);
	struct source_request request;

	(void)state;
	while (source_next(source, &request, NULL) == 1)
		sample.tokens[request.index] = request.input_tokens;
	qsort(sample.tokens, 2000, sizeof(uint64_t), by_value);
	assert_in_range(sample.tokens[1000], 3000, 9000);
	assert_in_range(sample.tokens[1999], 40000, 61440);
	source_close(source);
}

/* What is still partial is nobody else's, least of all the page's that grows out of it. */
static void a_partial_page_has_an_id_of_its_own(void **state)
{
	static struct sample  sample;
	struct source        *source = generate(3, 2000);
	struct source_request request;
	uint32_t              i;

	(void)state;
	while (source_next(source, &request, NULL) == 1) {
		if (request.input_tokens % SOURCE_PAGE_TOKENS != 0) {
			sample.partial_ids[sample.partial_count++] =
				request.page_ids[request.page_count - 1];
		}
	}
	source_close(source);
	qsort(sample.partial_ids, sample.partial_count, sizeof(uint64_t), by_value);
	for (i = 1; i < sample.partial_count; i++)
		assert_true(sample.partial_ids[i - 1] < sample.partial_ids[i]);
	source = generate(3, 2000);
	while (source_next(source, &request, NULL) == 1) {
		for (i = 0; i < request.input_tokens / SOURCE_PAGE_TOKENS; i++) {
			assert_null(bsearch(&request.page_ids[i], sample.partial_ids,
					    sample.partial_count, sizeof(uint64_t), by_value));
		}
	}
	source_close(source);
}

static void nothing_to_generate_is_refused(void **state)
{
	struct source   *source = NULL;
	struct kvs_error err;

	(void)state;
	assert_int_equal(source_open_generated(1, 0, &source, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "requests: 0; use at least 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_becomes_a_request),
		cmocka_unit_test(ends_of_files),
		cmocka_unit_test(malformed_lines_are_refused),
		cmocka_unit_test(reading_goes_on_after_a_refusal),
		cmocka_unit_test(a_line_too_long_is_refused),
		cmocka_unit_test(lines_straddle_buffers),
		cmocka_unit_test(open_names_the_file),
		cmocka_unit_test(traces_come_through_pipes_too),
		cmocka_unit_test(a_seed_is_a_workload),
		cmocka_unit_test(generated_requests_are_well_formed),
		cmocka_unit_test(prompts_look_like_chat),
		cmocka_unit_test(a_partial_page_has_an_id_of_its_own),
		cmocka_unit_test(nothing_to_generate_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
