/* SPDX-License-Identifier: Apache-2.0 */
/* The lists a user writes, the rows that come of them, and the command around them. */
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
#include <jansson.h>

#include "app/app.h"
#include "app/plot.h"
#include "app/sweep.h"
#include "base/text.h"
#include "evict/evict.h"

static void lists_become_axes(void **state)
{
	struct sweep_axes axes;

	(void)state;
	assert_int_equal(sweep_axes_read("10,unlimited,2_147_483_648", "host-order,lru", &axes,
					 NULL),
			 0);
	assert_int_equal(axes.capacity_count, 3);
	assert_int_equal(axes.capacities[0], 10);
	assert_int_equal(axes.capacities[1], 0);
	assert_int_equal(axes.capacities[2], SIMULATE_CAPACITY_MAX);
	assert_int_equal(axes.policy_count, 2);
	assert_string_equal(axes.policies[0], "host-order");
	assert_string_equal(axes.policies[1], "lru");
	/* All of it counts, not the 15 that its first characters would be. */
	assert_int_equal(sweep_axes_read("00000000000000000000000000000150", "lru", &axes, NULL), 0);
	assert_int_equal(axes.capacities[0], 150);
}

static const struct {
	const char *capacities, *policies, *sentence;
} refused[] = {
	{ "", "lru", "capacity: \"\" is not a capacity; use 1 to 2147483648 blocks, or unlimited" },
	{ "0", "lru", "capacity: \"0\" is not" },
	{ "-1", "lru", "capacity: \"-1\" is not" },
	{ "1.5", "lru", "capacity: \"1.5\" is not" },
	{ "10,", "lru", "capacity: \"\" is not" },
	{ ",10", "lru", "capacity: \"\" is not" },
	{ "10 ,20", "lru", "capacity: \"10 \" is not" },
	{ "2147483649", "lru", "capacity: \"2147483649\" is not" },
	{ "99999999999999999999999999999999999999", "lru",
	  "capacity: \"99999999999999999999999999999999999999\" is not" },
	{ "Unlimited", "lru", "capacity: \"Unlimited\" is not" },
	{ "10,20,10", "lru", "capacity: \"10\" is given twice" },
	{ "unlimited,unlimited", "lru", "capacity: \"unlimited\" is given twice" },
	{ "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,"
	  "33,34,35,36,37,38,"
	  "39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65",
	  "lru", "capacity: \"65\" is one too many; use at most 64 values" },
	{ "10", "", "policy: \"\" is not known; use one of: lru fifo lru-leaf s3fifo host-order arc" },
	{ "10", "lru,mru", "policy: \"mru\" is not known; use one of: lru" },
	{ "10", "lru,none",
	  "policy: \"none\" never makes room; use one of: lru fifo lru-leaf s3fifo host-order arc" },
	{ "10", "lru,fifo,lru", "policy: \"lru\" is given twice" },
	{ "10", "lru,", "policy: \"\" is not known" },
};

static void bad_lists_are_refused(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(refused); i++) {
		struct sweep_axes axes = { .policy_count = 77 };
		struct kvs_error  err = { 0 };

		assert_int_equal(sweep_axes_read(refused[i].capacities, refused[i].policies, &axes,
						 &err),
				 KVS_E_INVALID);
		assert_int_equal(axes.policy_count, 77);
		if (strncmp(err.message, refused[i].sentence, strlen(refused[i].sentence)) != 0)
			fail_msg("%s", err.message);
	}
}

/* As many as there are. */
static void all_policies_fit_into_one_sweep(void **state)
{
	struct sweep_axes axes;
	char              names[128];
	size_t            i;

	(void)state;
	assert_int_equal(sweep_axes_read("10", text_join(evict_giving_names, ",", names, sizeof(names)),
					 &axes, NULL),
			 0);
	for (i = 0; evict_giving_names[i]; i++)
		assert_string_equal(axes.policies[i], evict_giving_names[i]);
	assert_int_equal(axes.policy_count, i);
}

static void every_cache_sees_every_request(void **state)
{
	const uint64_t              ids[] = { 1, 2, 3 };
	const struct source_request request = { .page_count = 3,
						.page_ids = ids,
						.input_tokens = 1030 };
	struct sweep_axes           axes;
	struct sweep               *sweep = NULL;
	size_t                      i;

	(void)state;
	assert_int_equal(sweep_axes_read("2,unlimited", "fifo,lru", &axes, NULL), 0);
	assert_int_equal(sweep_open(&axes, &sweep, NULL), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(sweep_request(sweep, &request, NULL), 0);
	for (i = 0; i < 4; i++) {
		const struct sweep_row *row = sweep_row(sweep, i);

		assert_string_equal(row->policy, i < 2 ? "fifo" : "lru");
		assert_int_equal(row->capacity_blocks, i % 2 ? 0 : 2);
		assert_int_equal(row->counts.requests, 2);
		assert_int_equal(row->counts.hit_blocks, i % 2 ? 3 : 0);
		assert_int_equal(row->counts.hit_tokens, i % 2 ? 1030 : 0);
	}
	assert_null(sweep_row(sweep, 4));
	sweep_close(sweep);
	sweep_close(NULL);
}

/* --- the command ------------------------------------------------------------------------------ */

struct outcome {
	int  status;
	char out[4096], err[1024];
};

static void slurp(int fd, char *text, size_t bytes)
{
	const ssize_t got = pread(fd, text, bytes - 1, 0);

	assert_true(got >= 0);
	text[got] = '\0';
	close(fd);
}

static int redirect(FILE *stream, int *ret_saved)
{
	const int fd = memfd_create("stream", MFD_CLOEXEC);

	fflush(stream);
	*ret_saved = dup(fileno(stream));
	assert_true(fd >= 0 && *ret_saved >= 0 && dup2(fd, fileno(stream)) >= 0);
	return fd;
}

static void restore(FILE *stream, int saved)
{
	fflush(stream);
	assert_true(dup2(saved, fileno(stream)) >= 0);
	close(saved);
}

/*
 * Run `kvstrata simulate` with arguments separated by blanks; both streams go to files meanwhile.
 */
static struct outcome simulate(const char *arguments)
{
	char           text[512], *argv[16] = { (char *)"simulate" }, *rest = text;
	int            argc = 1, out_saved, err_saved;
	struct outcome outcome;
	const int      out = redirect(stdout, &out_saved), err = redirect(stderr, &err_saved);

	snprintf(text, sizeof(text), "%s", arguments);
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	outcome.status = simulate_command.run(argc, argv);
	restore(stdout, out_saved);
	restore(stderr, err_saved);
	slurp(out, outcome.out, sizeof(outcome.out));
	slurp(err, outcome.err, sizeof(outcome.err));
	return outcome;
}

static const char trace_text[] =
	"{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [1, 2]}\n"
	"{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [1, 2]}\n";

/* Run on a file that holds text. */
static struct outcome simulate_text(const char *text, const char *arguments)
{
	const int      fd = memfd_create("trace", MFD_CLOEXEC);
	char           command[256];
	struct outcome outcome;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(command, sizeof(command), "--trace /proc/self/fd/%d %s", fd, arguments);
	outcome = simulate(command);
	close(fd);
	return outcome;
}

static json_int_t number(const json_t *object, const char *key)
{
	assert_true(json_is_integer(json_object_get(object, key)));
	return json_integer_value(json_object_get(object, key));
}

static void json_is_an_array_of_rows(void **state)
{
	const struct outcome outcome =
		simulate_text(trace_text, "--capacity 1,unlimited --policy lru,fifo --json");
	json_t              *rows = json_loads(outcome.out, JSON_REJECT_DUPLICATES, NULL);
	size_t               i;

	(void)state;
	assert_int_equal(outcome.status, APP_DONE);
	assert_string_equal(outcome.err, "");
	assert_int_equal(json_array_size(rows), 4);
	for (i = 0; i < 4; i++) {
		const json_t *row = json_array_get(rows, i);

		assert_int_equal(json_object_size(row), 8);
		assert_string_equal(json_string_value(json_object_get(row, "policy")),
				    i < 2 ? "lru" : "fifo");
		if (i % 2)
			assert_true(json_is_null(json_object_get(row, "capacity_blocks")));
		else
			assert_int_equal(number(row, "capacity_blocks"), 1);
		assert_int_equal(number(row, "requests"), 2);
		assert_int_equal(number(row, "blocks"), 4);
		assert_int_equal(number(row, "hit_blocks"), i % 2 ? 2 : 0);
		assert_int_equal(number(row, "tokens"), 1200);
		assert_int_equal(number(row, "hit_tokens"), i % 2 ? 600 : 0);
		assert_true(json_is_real(json_object_get(row, "seconds")));
	}
	json_decref(rows);
}

static void the_table_is_aligned(void **state)
{
	const struct outcome outcome =
		simulate_text(trace_text, "--capacity 1,unlimited --policy lru");

	(void)state;
	assert_int_equal(outcome.status, APP_DONE);
	assert_non_null(strstr(outcome.out, ": 2 requests, 4 blocks, 1,200 tokens\n\n"
					    "policy           capacity    hit blocks  block ratio  "
					    "      hit tokens  token ratio  seconds\n"
					    "lru                     1             0     0.000000  "
					    "               0     0.000000    0.0"));
	assert_non_null(strstr(outcome.out, "\nlru             unlimited             2     "
					    "0.500000               600     0.500000    0.0"));
}

static void an_empty_trace_divides_nothing(void **state)
{
	const struct outcome outcome = simulate_text("", "--capacity 1 --policy lru");

	(void)state;
	assert_int_equal(outcome.status, APP_DONE);
	assert_non_null(strstr(outcome.out, "0     0.000000"));
}

static void expect_failure(struct outcome outcome, int status, const char *sentence)
{
	if (outcome.status != status || !strstr(outcome.err, sentence))
		fail_msg("status %d: %s", outcome.status, outcome.err);
	assert_string_equal(outcome.out, "");
	assert_ptr_equal(strchr(outcome.err, '\n'), outcome.err + strlen(outcome.err) - 1);
}

static void failures_are_one_line_and_a_status(void **state)
{
	(void)state;
	expect_failure(simulate("--trace no/such/file"), APP_FAILED,
		       "kvstrata simulate: no/such/file: cannot open: ");
	expect_failure(simulate("--capacity 0"), APP_USAGE,
		       "kvstrata simulate: capacity: \"0\" is not");
	expect_failure(simulate("--policy mru"), APP_USAGE, "policy: \"mru\" is not known");
	expect_failure(simulate("--requests -3"), APP_USAGE, "--requests: ");
	expect_failure(simulate("--colour"), APP_USAGE, "colour");
	expect_failure(simulate("--trace x --seed 1"), APP_USAGE, "--seed: given with --trace");
	expect_failure(simulate_text("{}\n", ""), APP_USAGE,
		       ": line 1: timestamp: missing; a request has");
}

/* --- the picture ------------------------------------------------------------------------------ */

static struct outcome plot_to_memory(const char *arguments, char *picture, size_t bytes)
{
	const int      fd = memfd_create("picture", MFD_CLOEXEC);
	char           command[256];
	struct outcome outcome;

	snprintf(command, sizeof(command), "%s --plot /proc/self/fd/%d", arguments, fd);
	outcome = simulate(command);
	slurp(fd, picture, bytes);
	return outcome;
}

static uint32_t count_of(const char *text, const char *part)
{
	uint32_t count = 0;

	while ((text = strstr(text, part))) {
		count++;
		text += strlen(part);
	}
	return count;
}

static void a_plot_has_axes_a_legend_and_a_line_a_policy(void **state)
{
	static char          picture[65536];
	const struct outcome outcome = plot_to_memory(
		"--requests 300 --policy lru,fifo,s3fifo --capacity 500,100,unlimited", picture,
		sizeof(picture));

	(void)state;
	assert_int_equal(outcome.status, APP_DONE);
	assert_memory_equal(picture, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39);
	assert_string_equal(picture + strlen(picture) - 7, "</svg>\n");
	assert_int_equal(count_of(picture, "<polyline"), 3);
	assert_int_equal(count_of(picture, " blocks: "), 6);
	assert_int_equal(count_of(picture, ">s3fifo</text>"), 1);
	assert_int_equal(count_of(picture, "prefers-color-scheme: dark"), 1);
	assert_int_equal(count_of(picture, ">unlimited: "), 1);
	assert_int_equal(count_of(picture, "middle\">200</text>"), 1);
	assert_int_equal(count_of(picture, ">0 %</text>"), 1);
	assert_int_equal(count_of(picture, "nan"), 0);
	/* Rising capacity, whatever order was asked for. */
	assert_true(strstr(picture, "lru, 100 blocks") < strstr(picture, "lru, 500 blocks"));
}

static void odd_plots_are_still_pictures(void **state)
{
	static const char *const arguments[] = {
		"--requests 10 --policy lru --capacity unlimited",
		"--requests 10 --policy lru --capacity 1",
		"--requests 10 --policy lru --capacity 1,100000",
		"--trace /dev/null --policy lru --capacity 10",
	};
	static char picture[65536];
	size_t      i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(arguments); i++) {
		assert_int_equal(plot_to_memory(arguments[i], picture, sizeof(picture)).status,
				 APP_DONE);
		assert_string_equal(picture + strlen(picture) - 7, "</svg>\n");
		assert_int_equal(count_of(picture, "nan") + count_of(picture, "inf"), 0);
		assert_true(count_of(picture, "text-anchor=\"middle\"") >= 4);
	}
}

static void text_of_any_origin_is_still_xml(void **state)
{
	static char       picture[65536];
	const struct plot plot = { .title = "a<b>&c\x01\xc3\xa9", .subtitle = "", .ceiling = -1 };
	const int         fd = memfd_create("picture", MFD_CLOEXEC);
	char              path[32];

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(plot_write(path, &plot, NULL), 0);
	slurp(fd, picture, sizeof(picture));
	assert_int_equal(count_of(picture, ">a&lt;b&gt;&amp;c??" "?<"), 2);
}

/* The numbers come first: a picture that cannot be written costs only itself. */
static void an_unwritable_plot_loses_no_numbers(void **state)
{
	struct outcome outcome =
		simulate("--requests 10 --policy lru --capacity 10 --plot no/such/place.svg");

	(void)state;
	assert_int_equal(outcome.status, APP_FAILED);
	assert_non_null(strstr(outcome.out, "10 requests"));
	assert_string_equal(
		outcome.err,
		"kvstrata simulate: plot: cannot open no/such/place.svg: No such file or"
		" directory\n");
	outcome = simulate("--requests 10 --policy lru --capacity 10 --plot /dev/full");
	assert_int_equal(outcome.status, APP_FAILED);
	assert_non_null(
		strstr(outcome.err, "plot: cannot write /dev/full: No space left on device"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_become_axes),
		cmocka_unit_test(bad_lists_are_refused),
		cmocka_unit_test(all_policies_fit_into_one_sweep),
		cmocka_unit_test(every_cache_sees_every_request),
		cmocka_unit_test(json_is_an_array_of_rows),
		cmocka_unit_test(the_table_is_aligned),
		cmocka_unit_test(an_empty_trace_divides_nothing),
		cmocka_unit_test(failures_are_one_line_and_a_status),
		cmocka_unit_test(a_plot_has_axes_a_legend_and_a_line_a_policy),
		cmocka_unit_test(odd_plots_are_still_pictures),
		cmocka_unit_test(text_of_any_origin_is_still_xml),
		cmocka_unit_test(an_unwritable_plot_loses_no_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
