/* SPDX-License-Identifier: Apache-2.0 */
/* The agents' program before an owner that breaks the protocol: it ends, with a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "base/err.h"
#include "mooncake/agent_parts.h"
#include "troupe.h"

/* One agent without a keeper. */
struct solo {
	struct lane      lane; /* its socket and buffers */
	struct agent_way way;
	int              output;
};

static struct troupe troupe;
static char          python[MOONCAKE_PATH_MAX];

static int init(void **state)
{
	(void)state;
	troupe_init(&troupe, 1);
	return interpreter_find(&troupe.settings, python, NULL);
}

static int fini(void **state)
{
	(void)state;
	troupe_fini(&troupe);
	return 0;
}

static void start(struct solo *solo)
{
	int   ends[2], output[2];
	char *argv[] = { python, troupe.settings.agent, NULL };

	assert_int_equal(os_socket_pair(ends), 0);
	assert_int_equal(pipe(output), 0);
	const struct os_jail_plan plan = { .argv = argv, .fds = { ends[1] }, .fd_count = 1,
					   .output = output[1], .confine = true };

	*solo = (struct solo){ .output = output[0] };
	assert_int_equal(lane_init(&solo->lane, &solo->way, 1), 0);
	assert_int_equal(os_jail_start(&plan, &solo->lane.jail), 0);
	close(ends[1]);
	close(output[1]);
	solo->lane.fd = ends[0];
}

static void say(struct solo *solo, size_t bytes, int sent)
{
	assert_int_equal(lane_say(&solo->lane, bytes, sent, UINT64_MAX), 0);
}

static enum frame_kind hear(struct solo *solo)
{
	struct frame     frame;
	struct kvs_error err;
	int              rc;

	while ((rc = lane_hear(&solo->lane, &frame, &err)) == -EAGAIN) {
		struct os_wait wait = { .fd = solo->lane.fd, .to_read = true };

		(void)os_wait(&wait, 1, UINT64_MAX);
	}
	return rc < 0 ? FRAME_KIND_END : frame.kind;
}

static size_t seal(struct solo *solo, enum frame_kind kind, const void *body, size_t bytes)
{
	memcpy(solo->lane.said + FRAME_HEAD_BYTES, body, bytes);
	return frame_seal(solo->lane.said, kind, ++solo->lane.sequence, (uint32_t)bytes);
}

static void greet(struct solo *solo)
{
	char         body[FRAME_HELLO_MAX];
	const size_t bytes = script_hello(&troupe.settings, 1, body, sizeof(body));

	say(solo, seal(solo, FRAME_HELLO, body, bytes), -1);
	assert_int_equal(hear(solo), FRAME_READY);
}

static void give_memory(struct solo *solo)
{
	say(solo, frame_memory(solo->lane.said, ++solo->lane.sequence, TROUPE_BYTES), troupe.memory_fd);
	assert_int_equal(hear(solo), FRAME_OK);
}

/* It ends without an answer, and its last words hold `words`. */
static void check_ends(struct solo *solo, const char *words)
{
	char    text[2048];
	size_t  used = 0;
	ssize_t done;

	solo->lane.heard_bytes = 0;
	assert_int_equal(hear(solo), FRAME_KIND_END);
	while ((done = read(solo->output, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)done;
	text[used] = '\0';
	if (!strstr(text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, text);
	close(solo->output);
	assert_true(os_jail_wait(&solo->lane.jail, UINT64_MAX));
	lane_fini(&solo->lane);
}

static size_t a_call(struct solo *solo, uint64_t offset, size_t bytes)
{
	const char                *name = "one";
	const struct kvs_span      span = { NULL, bytes, bytes };
	const struct mooncake_call call = { .verb = MOONCAKE_GET, .count = 1, .names = &name,
					    .spans = &span };

	return frame_call(solo->lane.said, ++solo->lane.sequence, &call, &offset);
}

static void a_socket_that_ends_ends_the_agent(void **state)
{
	struct solo solo;

	(void)state;
	start(&solo);
	greet(&solo);
	assert_int_equal(shutdown(solo.lane.fd, SHUT_WR), 0);
	check_ends(&solo, "");
	start(&solo);
	greet(&solo);
	say(&solo, seal(&solo, FRAME_BYE, "", 0), -1);
	check_ends(&solo, "");
}

static void what_does_not_begin_with_a_greeting_is_refused(void **state)
{
	struct solo solo;

	(void)state;
	start(&solo);
	say(&solo, seal(&solo, FRAME_BYE, "", 0), -1);
	check_ends(&solo, "HELLO comes first");
}

/* Settings are what people write: they fit, whatever they hold. */
static void the_longest_settings_fit(void **state)
{
	struct mooncake_settings settings = troupe.settings;
	char *const              texts[] = { settings.local_hostname, settings.metadata_server,
					     settings.master, settings.device, settings.tenant };
	struct solo              solo;
	char                     body[FRAME_HELLO_MAX];
	size_t                   bytes, i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(texts); i++)
		memset(texts[i], i ? '"' : '\n', MOONCAKE_TEXT_MAX - 1);
	memset(settings.python, '\\', MOONCAKE_PATH_MAX - 1);
	memset(settings.protocol, 1, sizeof(settings.protocol) - 1);
	memset(settings.prefix, 'x', LABEL_PREFIX_MAX);
	bytes = script_hello(&settings, 0, body, sizeof(body));
	assert_true(bytes > 8192);
	start(&solo);
	say(&solo, seal(&solo, FRAME_HELLO, body, bytes), -1);
	/* It was understood: there is no such master. */
	assert_int_equal(hear(&solo), FRAME_ERROR);
	check_ends(&solo, "");
}

/* What each lent, the pool would have once a lane. */
static void only_the_first_lane_lends(void **state)
{
	struct mooncake_settings settings = troupe.settings;
	char                     body[FRAME_HELLO_MAX];

	(void)state;
	settings.segment_bytes = 777;
	body[script_hello(&settings, 0, body, sizeof(body))] = '\0';
	assert_non_null(strstr(body, "\"segment_bytes\":777,"));
	body[script_hello(&settings, 1, body, sizeof(body))] = '\0';
	assert_non_null(strstr(body, "\"segment_bytes\":0,"));
}

static void another_version_is_named(void **state)
{
	struct solo solo;

	(void)state;
	start(&solo);
	(void)seal(&solo, FRAME_HELLO, "{}", 2);
	solo.lane.said[4] = 2;
	say(&solo, FRAME_HEAD_BYTES + 2, -1);
	check_ends(&solo, "version 2 came");
}

static void a_checksum_counts(void **state)
{
	struct solo solo;

	(void)state;
	start(&solo);
	(void)seal(&solo, FRAME_HELLO, "{}", 2);
	solo.lane.said[FRAME_HEAD_BYTES] = '[';
	say(&solo, FRAME_HEAD_BYTES + 2, -1);
	check_ends(&solo, "checksum of a frame is wrong");
}

static void a_sequence_counts(void **state)
{
	struct solo solo;

	(void)state;
	start(&solo);
	greet(&solo);
	solo.lane.sequence++;
	say(&solo, a_call(&solo, 0, 4096), -1);
	check_ends(&solo, "sequence 3 after 1");
}

static void X2_the_agent_keeps_to_the_memory(void **state)
{
	static const struct {
		uint64_t offset;
		size_t   bytes;
	} spans[] = { { TROUPE_BYTES - 4095, 4096 }, { 1, UINT64_MAX }, { 0, 0 } };
	struct solo solo;
	size_t      i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(spans); i++) {
		start(&solo);
		greet(&solo);
		give_memory(&solo);
		say(&solo, a_call(&solo, TROUPE_BYTES - 4096, 4096), -1);
		assert_int_equal(hear(&solo), FRAME_ANSWER);
		say(&solo, a_call(&solo, spans[i].offset, spans[i].bytes), -1);
		check_ends(&solo, "outside the memory");
	}
	/* Without any, every span is outside. */
	start(&solo);
	greet(&solo);
	say(&solo, a_call(&solo, 0, 4096), -1);
	check_ends(&solo, "outside the memory of 0 bytes");
}

static void memory_comes_once_and_with_its_descriptor(void **state)
{
	struct solo solo;

	(void)state;
	start(&solo);
	greet(&solo);
	say(&solo, frame_memory(solo.lane.said, ++solo.lane.sequence, TROUPE_BYTES), -1);
	check_ends(&solo, "memory comes once");
	/* More than the descriptor has: an answer, not an end by a signal later. */
	start(&solo);
	greet(&solo);
	say(&solo, frame_memory(solo.lane.said, ++solo.lane.sequence, 2 * TROUPE_BYTES), troupe.memory_fd);
	assert_int_equal(hear(&solo), FRAME_ERROR);
	check_ends(&solo, "");
}

static void calls_that_break_a_rule_are_refused(void **state)
{
	/* A byte more than may be, and its end. */
	static char longest[FRAME_NAME_MAX + 1];
	static const struct {
		uint32_t    words[4]; /* verb, count, bytes of names, zero */
		const char *names;
		size_t      bytes;
	} calls[] = {
		{ { 5, 1, 4, 0 }, "one", 4 }, { { 4, 2, 8, 0 }, "one\0two", 8 },
		{ { 0, 1, 5, 0 }, "one", 4 }, { { 0, 2, 4, 0 }, "one", 4 },
		{ { 0, 1, 3, 0 }, "one", 3 }, { { 0, 1, 4, 0 }, "\xff\xff\xff", 4 },
		/* A name that comes twice, one that is too long. */
		{ { 0, 2, 8, 0 }, "one\0one", 8 },
		{ { 0, 1, FRAME_NAME_MAX + 1, 0 }, longest, sizeof(longest) },
	};
	struct solo solo;
	uint8_t     body[16 + sizeof(longest)];
	size_t      i;

	(void)state;
	memset(longest, 'n', FRAME_NAME_MAX);
	for (i = 0; i < ARRAY_COUNT(calls); i++) {
		start(&solo);
		greet(&solo);
		memcpy(body, calls[i].words, 16);
		memcpy(body + 16, calls[i].names, calls[i].bytes);
		say(&solo, seal(&solo, FRAME_CALL, body, 16 + calls[i].bytes), -1);
		check_ends(&solo, "kvstrata-mooncake-agent: ");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_socket_that_ends_ends_the_agent),
		cmocka_unit_test(what_does_not_begin_with_a_greeting_is_refused),
		cmocka_unit_test(the_longest_settings_fit),
		cmocka_unit_test(only_the_first_lane_lends),
		cmocka_unit_test(another_version_is_named),
		cmocka_unit_test(a_checksum_counts),
		cmocka_unit_test(a_sequence_counts),
		cmocka_unit_test(X2_the_agent_keeps_to_the_memory),
		cmocka_unit_test(memory_comes_once_and_with_its_descriptor),
		cmocka_unit_test(calls_that_break_a_rule_are_refused),
	};

	return cmocka_run_group_tests(tests, init, fini);
}
