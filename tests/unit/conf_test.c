/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration: where values come from, what is refused, and with which sentence. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "conf/conf.h"
#include "conf/items.h"
#include "conf/nearest.h"

struct settings {
	bool        json;
	uint64_t    limit;
	uint64_t    block_bytes;
	uint64_t    deadline_ns;
	double      speed;
	const char *trace;
	const char *order;
	const char *capacity;
};

static const char *const orders[] = { "lru", "fifo", NULL };

enum { JSON, LIMIT, BLOCK_BYTES, DEADLINE, SPEED, TRACE, ORDER, CAPACITY };

static const struct conf_option options[] = {
	[JSON] = { .name = "json",
		   .type = CONF_BOOL,
		   .offset = offsetof(struct settings, json),
		   .help = "for machines" },
	[LIMIT] = { .name = "limit",
		    .type = CONF_COUNT,
		    .offset = offsetof(struct settings, limit),
		    .metavar = "REQUESTS",
		    .help = "stop early",
		    .min = 1,
		    .max = 1000,
		    .fallback = "unlimited",
		    .word = "unlimited",
		    .word_value = UINT64_MAX },
	[BLOCK_BYTES] = { .name = "block_bytes",
			  .type = CONF_SIZE,
			  .offset = offsetof(struct settings, block_bytes),
			  .fallback = "64KiB",
			  .min = 4096,
			  .max = 1 << 24,
			  .multiple = 4096,
			  .help = "bytes of one block" },
	[DEADLINE] = { .name = "deadline",
		       .type = CONF_DURATION,
		       .offset = offsetof(struct settings, deadline_ns),
		       .fallback = "250ms",
		       .min = 1000,
		       .help = "soft" },
	[SPEED] = { .name = "speed",
		    .type = CONF_NUMBER,
		    .offset = offsetof(struct settings, speed),
		    .fallback = "max",
		    .word = "max",
		    .help = "pace" },
	[TRACE] = { .name = "trace",
		    .type = CONF_TEXT,
		    .offset = offsetof(struct settings, trace),
		    .metavar = "FILE",
		    .help = "requests" },
	[ORDER] = { .name = "order",
		    .type = CONF_CHOICE,
		    .offset = offsetof(struct settings, order),
		    .fallback = "lru",
		    .choices = orders,
		    .help = "who leaves first" },
	[CAPACITY] = { .name = "capacity",
		       .type = CONF_TEXT,
		       .list = true,
		       .offset = offsetof(struct settings, capacity),
		       .help = "list" },
};

static char config_path[] = "/tmp/kvstrata-conf-XXXXXX";

static int config_create(void **state)
{
	int fd = mkstemp(config_path);

	(void)state;
	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static int config_remove(void **state)
{
	(void)state;
	return unlink(config_path);
}

static void config_write(const char *json)
{
	FILE *file = fopen(config_path, "w");

	assert_non_null(file);
	assert_true(fputs(json, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Flags end at the first NULL. */
#define READ(settings, conf, err, ...) \
	read_flags((const char *[]){ __VA_ARGS__ __VA_OPT__(, ) NULL }, settings, conf, err)

static int read_flags(const char **flags, struct settings *settings, struct conf **conf,
		      struct kvs_error *err)
{
	int count = 0;

	while (flags[count])
		count++;
	return conf_read(options, ARRAY_COUNT(options), settings, count, (char **)flags, conf, err);
}

static void refused(const char *sentence, int code, const char **flags)
{
	struct settings  before, settings;
	struct conf     *conf = NULL;
	struct kvs_error err = { 0 };

	memset(&settings, 0x5a, sizeof(settings));
	before = settings;
	assert_int_equal(read_flags(flags, &settings, &conf, &err), code);
	assert_string_equal(err.message, sentence);
	assert_int_equal(err.code, code);
	assert_null(conf);
	assert_memory_equal(&settings, &before, sizeof(settings));
}

#define REFUSED(sentence, ...) \
	refused(sentence, KVS_E_INVALID, (const char *[]){ __VA_ARGS__, NULL })

/* The sentence without its "PATH: ". */
static void refused_json(const char *json, const char *rule)
{
	char sentence[sizeof(((struct kvs_error *)0)->message)];

	config_write(json);
	snprintf(sentence, sizeof(sentence), "%s: %s", config_path, rule);
	REFUSED(sentence, "--config", config_path);
}

static void defaults_apply(void **state)
{
	struct settings settings;
	struct conf    *conf;

	(void)state;
	assert_int_equal(READ(&settings, &conf, NULL), 0);
	assert_false(settings.json);
	assert_true(settings.limit == UINT64_MAX);
	assert_int_equal(settings.block_bytes, 65536);
	assert_int_equal(settings.deadline_ns, 250000000);
	assert_true(settings.speed == 0);
	assert_null(settings.trace);
	assert_string_equal(settings.order, "lru");
	assert_int_equal(conf_source(conf, TRACE), CONF_FROM_DEFAULT);
	conf_close(conf);
}

static void flags_in_both_spellings(void **state)
{
	struct settings settings;
	struct conf    *conf;

	(void)state;
	assert_int_equal(READ(&settings, &conf, NULL, "--json", "--block-bytes", "1MiB",
			      "--limit=12", "--deadline=1.5s", "--speed", "2.5", "--trace=a=b",
			      "--order", "fifo"),
			 0);
	assert_true(settings.json);
	assert_int_equal(settings.block_bytes, 1 << 20);
	assert_int_equal(settings.limit, 12);
	assert_int_equal(settings.deadline_ns, 1500000000);
	assert_true(settings.speed == 2.5);
	assert_string_equal(settings.trace, "a=b");
	assert_string_equal(settings.order, "fifo");
	assert_int_equal(conf_source(conf, BLOCK_BYTES), CONF_FROM_FLAG);
	conf_close(conf);

	assert_int_equal(READ(&settings, &conf, NULL, "--json=false"), 0);
	assert_false(settings.json);
	conf_close(conf);
}

static void flags_win_over_the_file(void **state)
{
	struct settings settings;
	struct conf    *conf;

	(void)state;
	config_write(
		"{\"json\": true, \"block_bytes\": 8192, \"deadline\": \"2s\", \"limit\": 7, \"speed\": 1,"
		" \"capacity\": [1000, \"unlimited\"], \"order\": \"fifo\", \"trace\": \"x\"}");
	assert_int_equal(READ(&settings, &conf, NULL, "--limit", "9", "--config", config_path), 0);
	assert_true(settings.json);
	assert_int_equal(settings.block_bytes, 8192);
	assert_int_equal(settings.deadline_ns, 2000000000);
	assert_int_equal(settings.limit, 9);
	assert_true(settings.speed == 1);
	assert_string_equal(settings.capacity, "1000,unlimited");
	assert_int_equal(conf_source(conf, LIMIT), CONF_FROM_FLAG);
	assert_int_equal(conf_source(conf, SPEED), CONF_FROM_FILE);
	conf_close(conf);
}

static void words_stand_outside_the_range(void **state)
{
	struct settings settings;
	struct conf    *conf;

	(void)state;
	config_write("{\"limit\": \"unlimited\", \"speed\": \"max\"}");
	assert_int_equal(READ(&settings, &conf, NULL, "--config", config_path), 0);
	assert_true(settings.limit == UINT64_MAX);
	conf_close(conf);
	REFUSED("--limit: \"1001\" is out of range; use 1 to 1000", "--limit=1001");
	REFUSED("--limit: \"0\" is out of range; use 1 to 1000", "--limit=0");
}

static void flag_values_are_refused(void **state)
{
	(void)state;
	REFUSED("--block-bytes: \"64KB\" is not a size; use an integer or a number with KiB, MiB, GiB, TiB",
		"--block-bytes=64KB");
	REFUSED("--block-bytes: \"-4096\" is not a size; use an integer or a number with KiB, MiB, GiB, TiB",
		"--block-bytes", "-4096");
	REFUSED("--block-bytes: \"5000\" is not a multiple of 4KiB", "--block-bytes=5000");
	REFUSED("--block-bytes: \"0\" is out of range; use 4KiB to 16MiB", "--block-bytes=0");
	REFUSED("--block-bytes: \"9999999999999GiB\" is not a size;"
		" use an integer or a number with KiB, MiB, GiB, TiB",
		"--block-bytes=9999999999999GiB");
	REFUSED("--deadline: \"250\" is not a duration; use a number with ns, us, ms, s, m",
		"--deadline=250");
	REFUSED("--deadline: \"10ns\" is too small; use at least 1us", "--deadline=10ns");
	REFUSED("--limit: \"18446744073709551615\" is not a count;"
		" use an integer from 0 to 9223372036854775807, or \"unlimited\"",
		"--limit=18446744073709551615");
	REFUSED("--limit: \"1.5\" is not a count;"
		" use an integer from 0 to 9223372036854775807, or \"unlimited\"",
		"--limit=1.5");
	REFUSED("--speed: \"inf\" is not a number; use a non-negative number, or \"max\"",
		"--speed=inf");
	REFUSED("--speed: \"0x10\" is not a number; use a non-negative number, or \"max\"",
		"--speed=0x10");
	REFUSED("--speed: \"1e999\" is not a number; use a non-negative number, or \"max\"",
		"--speed=1e999");
	REFUSED("--speed: \"\" is not a number; use a non-negative number, or \"max\"", "--speed=");
	REFUSED("--trace: \"\" is not text; use a string that is not empty", "--trace", "");
	REFUSED("--order: \"mru\" is unknown; use one of lru, fifo", "--order=mru");
	REFUSED("--json: \"yes\" is not true or false", "--json=yes");
	REFUSED("--order: \"a?b\" is unknown; use one of lru, fifo", "--order=a\nb");
	REFUSED("--order: \"1234567890123456789012345678901234567890123456789012345678...\" is unknown;"
		" use one of lru, fifo",
		"--order=1234567890123456789012345678901234567890123456789012345678901234567890");
}

/* Of the flag and of the file: a comma too many is no item, wherever it stands. */
static void lists_with_an_empty_item_are_refused(void **state)
{
	static const char *const lists[] = { "1000,", ",1000", "1,,2", ",", "1,2,3,", NULL };
	int                      i;

	(void)state;
	for (i = 0; lists[i]; i++) {
		char sentence[128], flag[64], json[64];

		snprintf(flag, sizeof(flag), "--capacity=%s", lists[i]);
		snprintf(sentence, sizeof(sentence),
			 "--capacity: \"%s\" has an empty item; use commas between items only", lists[i]);
		REFUSED(sentence, flag);
		snprintf(json, sizeof(json), "{\"capacity\": \"%s\"}", lists[i]);
		refused_json(json, sentence + 2);
	}
}

struct heard {
	char     text[256]; /* each item in brackets */
	uint32_t until;     /* the item that is refused; UINT32_MAX: none */
	uint32_t count;
};

static int hear(void *ctx, const char *item, struct kvs_error *err)
{
	struct heard *const heard = ctx;
	const size_t        used = strlen(heard->text);

	if (heard->count++ == heard->until)
		return err_set(err, KVS_E_INVALID, "no more");
	snprintf(heard->text + used, sizeof(heard->text) - used, "[%s]", item);
	return 0;
}

static void lists_are_cut_at_commas(void **state)
{
	struct heard     heard = { .until = UINT32_MAX };
	struct kvs_error err = { 0 };

	(void)state;
	assert_int_equal(items_each("x", "64KiB,a b,1", hear, &heard, &err), 0);
	assert_string_equal(heard.text, "[64KiB][a b][1]");
	heard = (struct heard){ .until = UINT32_MAX };
	assert_int_equal(items_each("x", "", hear, &heard, &err), 0);
	assert_string_equal(heard.text, "[]");
	heard = (struct heard){ .until = UINT32_MAX };
	assert_int_equal(items_each("x", ",1,", hear, &heard, &err), 0);
	assert_string_equal(heard.text, "[][1][]");
	heard = (struct heard){ .until = 1 };
	assert_int_equal(items_each("x", "1,2,3", hear, &heard, &err), KVS_E_INVALID);
	assert_string_equal(heard.text, "[1]");
	assert_string_equal(err.message, "no more");
}

/* Cut at the buffer's end it would be another item: "1" of "1000...". */
static void items_that_are_too_long_are_refused(void **state)
{
	struct heard     heard = { .until = UINT32_MAX };
	struct kvs_error err = { 0 };
	char             list[4 + ITEMS_BYTES + 1], sentence[160];

	(void)state;
	memset(list, '7', sizeof(list));
	memcpy(list, "1,2,", 4);
	list[4 + ITEMS_BYTES - 1] = '\0';
	assert_int_equal(items_each("--x", list, hear, &heard, &err), 0);
	assert_int_equal(heard.count, 3);
	list[4 + ITEMS_BYTES - 1] = '7';
	list[4 + ITEMS_BYTES] = '\0';
	assert_int_equal(items_each("--x", list, hear, &heard, &err), KVS_E_INVALID);
	assert_int_equal(heard.count, 5);
	snprintf(sentence, sizeof(sentence), "--x: \"%.64s...\" is too long; use at most 127 characters",
		 list + 4);
	assert_string_equal(err.message, sentence);
}

static void flags_are_refused(void **state)
{
	(void)state;
	REFUSED("--blok-bytes: unknown flag; did you mean --block-bytes?", "--blok-bytes=4KiB");
	REFUSED("--block_bytes: unknown flag; did you mean --block-bytes?", "--block_bytes=4KiB");
	REFUSED("--confg: unknown flag; did you mean --config?", "--confg", "x");
	REFUSED("--colour: unknown flag; --help lists the flags", "--colour");
	REFUSED("--: unknown flag; --help lists the flags", "--");
	REFUSED("\"trace.jsonl\" is not expected here; flags begin with --", "trace.jsonl");
	REFUSED("\"true\" is not expected here; flags begin with --", "--json", "true");
	REFUSED("--trace: needs FILE", "--trace");
	REFUSED("--trace: needs FILE", "--trace", "--json");
	REFUSED("--config: needs FILE", "--config");
	REFUSED("--limit: given twice; use it once", "--limit=1", "--limit", "1");
	REFUSED("--config: given twice; use it once", "--config=a", "--config=a");
}

static void files_are_refused(void **state)
{
	(void)state;
	refused_json("{\"block_byte\": 4096}",
		     "block_byte: unknown key; did you mean block_bytes?");
	refused_json("{\"colour\": 1}", "colour: unknown key; --help lists the keys as flags");
	refused_json("{\"limit\": 1, \"limit\": 2}",
		     "line 1, column 20: duplicate object key near '\"limit\"'");
	refused_json("{\"limit\": 1,\n \"spee",
		     "line 2, column 6: premature end of input near '\"spee'");
	refused_json("", "line 1, column 0: unexpected token near end of file");
	refused_json("[1]", "must hold one JSON object of options");
	refused_json(
		"{\"block_bytes\": \"64KB\"}",
		"block_bytes: \"64KB\" is not a size; use an integer or a number with KiB, MiB, GiB, TiB");
	refused_json(
		"{\"block_bytes\": 4096.5}",
		"block_bytes: 4096.5 is not a size; use an integer or a number with KiB, MiB, GiB, TiB");
	refused_json("{\"block_bytes\": 5000}", "block_bytes: 5000 is not a multiple of 4KiB");
	refused_json("{\"deadline\": 250}",
		     "deadline: 250 is not a duration; use a number with ns, us, ms, s, m");
	refused_json("{\"limit\": \"12\"}",
		     "limit: \"12\" is not a count; use an integer from 0 to 9223372036854775807, or \"unlimited\"");
	refused_json("{\"limit\": -1}",
		     "limit: -1 is not a count; use an integer from 0 to 9223372036854775807, or \"unlimited\"");
	refused_json("{\"json\": \"true\"}", "json: \"true\" is not true or false");
	refused_json("{\"json\": null}", "json: null is not true or false");
	refused_json("{\"trace\": 3}", "trace: 3 is not text; use a string that is not empty");
	refused_json("{\"trace\": \"\"}",
		     "trace: \"\" is not text; use a string that is not empty");
	refused_json("{\"trace\": {\"a\": 1}}",
		     "trace: {\"a\":1} is not text; use a string that is not empty");
	refused_json("{\"capacity\": [\"1,2\"]}",
		     "capacity: [\"1,2\"] is not text; use a string that is not empty");
	refused_json("{\"capacity\": []}",
		     "capacity: [] is not text; use a string that is not empty");
	refused_json("{\"trace\": [\"x\"]}",
		     "trace: [\"x\"] is not text; use a string that is not empty");
	refused_json("{\"order\": [\"lru\"]}", "order: [\"lru\"] is unknown; use one of lru, fifo");
}

static void unreadable_files_are_refused(void **state)
{
	(void)state;
	refused("/nonexistent/x.json: No such file or directory", -ENOENT,
		(const char *[]){ "--config", "/nonexistent/x.json", NULL });
	refused("/: Is a directory", -EISDIR, (const char *[]){ "--config", "/", NULL });
	refused("/dev/zero: is larger than 1MiB, the most a configuration may have", KVS_E_INVALID,
		(const char *[]){ "--config", "/dev/zero", NULL });
}

/* What the function prints, in a buffer that the caller frees. */
#define PRINTED(ret_text, call) \
	do { \
		size_t bytes_; \
		FILE  *out = open_memstream(ret_text, &bytes_); \
		assert_non_null(out); \
		call; \
		assert_int_equal(fclose(out), 0); \
	} while (0)

static void help_lists_every_option(void **state)
{
	char *text = NULL;

	(void)state;
	PRINTED(&text, conf_help(options, ARRAY_COUNT(options), out));
	assert_string_equal(
		text,
		"  --json               for machines\n"
		"  --limit REQUESTS     stop early (default unlimited)\n"
		"  --block-bytes SIZE   bytes of one block (default 64KiB)\n"
		"  --deadline DURATION  soft (default 250ms)\n"
		"  --speed NUMBER       pace (default max)\n"
		"  --trace FILE         requests\n"
		"  --order CHOICE       who leaves first: lru, fifo (default lru)\n"
		"  --capacity TEXT      list\n"
		"  --config FILE        read options from one JSON object; flags win over it\n");
	free(text);
}

static void help_gives_a_long_default_its_own_line(void **state)
{
	static const struct conf_option option = {
		.name = "capacity",
		.type = CONF_TEXT,
		.help = "sizes of the caches to compare, commas between",
		.fallback = "1000,3000,10000,30000,100000,unlimited"
	};
	char *text = NULL;

	(void)state;
	PRINTED(&text, conf_help(&option, 1, out));
	assert_string_equal(
		text, "  --capacity TEXT  sizes of the caches to compare, commas between\n"
		      "                   (default 1000,3000,10000,30000,100000,unlimited)\n"
		      "  --config FILE    read options from one JSON object; flags win over it\n");
	free(text);
}

static void print_names_value_and_source(void **state)
{
	struct settings settings;
	struct conf    *conf;
	char           *text = NULL;

	(void)state;
	config_write("{\"block_bytes\": 1048576, \"deadline\": \"1.5ms\"}");
	assert_int_equal(
		READ(&settings, &conf, NULL, "--config", config_path, "--trace=t", "--speed=0.5"),
		0);
	PRINTED(&text, conf_print(conf, out));
	assert_string_equal(text, "json        = false      (default)\n"
				  "limit       = unlimited  (default)\n"
				  "block_bytes = 1MiB       (file)\n"
				  "deadline    = 1500us     (file)\n"
				  "speed       = 0.5        (flag)\n"
				  "trace       = t          (flag)\n"
				  "order       = lru        (default)\n"
				  "capacity    = not set    (default)\n");
	free(text);
	conf_close(conf);
}

static void nearest_prefers_fewest_edits(void **state)
{
	struct nearest nearest;

	(void)state;
	nearest_init(&nearest, "replai");
	nearest_offer(&nearest, "relay");
	nearest_offer(&nearest, "replay");
	nearest_offer(&nearest, "reply");
	assert_string_equal(nearest.best, "replay");
	nearest_init(&nearest, "xyz");
	nearest_offer(&nearest, "replay");
	assert_string_equal(nearest.best, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_apply),
		cmocka_unit_test(flags_in_both_spellings),
		cmocka_unit_test(flags_win_over_the_file),
		cmocka_unit_test(words_stand_outside_the_range),
		cmocka_unit_test(flag_values_are_refused),
		cmocka_unit_test(flags_are_refused),
		cmocka_unit_test(lists_with_an_empty_item_are_refused),
		cmocka_unit_test(lists_are_cut_at_commas),
		cmocka_unit_test(items_that_are_too_long_are_refused),
		cmocka_unit_test(files_are_refused),
		cmocka_unit_test(unreadable_files_are_refused),
		cmocka_unit_test(help_lists_every_option),
		cmocka_unit_test(help_gives_a_long_default_its_own_line),
		cmocka_unit_test(print_names_value_and_source),
		cmocka_unit_test(nearest_prefers_fewest_edits),
	};

	return cmocka_run_group_tests(tests, config_create, config_remove);
}
