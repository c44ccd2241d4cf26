/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that lies, word by word.  Gets are of four raw values, so that it can lie about data too.
 * After each lie the next operations work, and the stream is either in its place or closed.
 */
#include "rig.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "scripted.h"
#include "store/resp_conn.h"

#define LENGTH 16u

/* Sixteen bytes as a value. */
#define VALUE "$16\r\nabcdefghijklmnop\r\n"

struct lie {
	const char      *name;
	struct answer    answers[4];
	uint32_t         count;
	enum kvs_result  results[4];
	bool             keeps; /* the connection stays */
};

#define F KVS_RESULT_FAILED
#define D KVS_RESULT_DONE
#define C KVS_RESULT_CORRUPT
#define M KVS_RESULT_MISSING
#define U KVS_RESULT_UNKNOWN

static const struct lie lies[] = {
	{ "truth", { SAYS(VALUE) }, 1, { D, D, D, D }, true },
	{ "loading", { SAYS("-LOADING Redis is loading the dataset\r\n"), SAYS(VALUE) }, 2, { F, D, D, D },
	  true },
	{ "moved", { SAYS("-MOVED 3999 127.0.0.1:6381\r\n"), SAYS(VALUE) }, 2, { F, D, D, D }, true },
	{ "readonly", { SAYS(VALUE), SAYS("-READONLY You can't write\r\n"), SAYS(VALUE) }, 3, { D, F, D, D },
	  true },
	{ "noauth", { SAYS("-NOAUTH Authentication required.\r\n") }, 1, { F, F, F, F }, true },
	{ "nil", { SAYS("$-1\r\n"), SAYS(VALUE), SAYS("$-1\r\n"), SAYS(VALUE) }, 4, { M, D, M, D }, true },
	{ "wrong type", { SAYS("-WRONGTYPE Operation against a key\r\n"), SAYS(VALUE) }, 2, { C, D, D, D },
	  true },
	{ "short", { SAYS("$3\r\nabc\r\n"), SAYS(VALUE) }, 2, { C, D, D, D }, true },
	{ "empty", { SAYS("$0\r\n\r\n"), SAYS(VALUE) }, 2, { C, D, D, D }, true },
	{ "long", { SAYS("$20\r\nabcdefghijklmnopqrst\r\n"), SAYS(VALUE) }, 2, { C, D, D, D }, true },
	{ "longer than will come", { SAYS("$99999999\r\nabc"), SAYS(VALUE) }, 2, { C, U, U, U }, false },
	{ "no number", { SAYS(VALUE), SAYS("$x\r\n"), SAYS(VALUE) }, 3, { D, F, F, F }, false },
	{ "negative", { SAYS("$-7\r\n") }, 1, { F, F, F, F }, false },
	{ "leading zeros", { SAYS("$016\r\nabcdefghijklmnop\r\n") }, 1, { F, F, F, F }, false },
	{ "no line end", { SAYS("$16\r\nabcdefghijklmnopqr") }, 1, { F, F, F, F }, false },
	{ "another kind", { SAYS(VALUE), SAYS("+OK\r\n") }, 2, { D, F, F, F }, false },
	{ "an integer", { SAYS(VALUE), SAYS(":1\r\n") }, 2, { D, F, F, F }, false },
	{ "an array", { SAYS("*1\r\n" VALUE) }, 1, { F, F, F, F }, false },
	{ "garbage", { SAYS("\x00\xff\xfe") }, 1, { F, F, F, F }, false },
	{ "too much", { SAYS(VALUE VALUE) }, 1, { D, D, D, D }, false },
	{ "closes at once", { SAYS_AND_CLOSES("") }, 1, { F, F, F, F }, false },
	{ "closes in a head", { SAYS(VALUE), SAYS_AND_CLOSES("$1") }, 2, { D, F, F, F }, false },
	{ "closes in a payload", { SAYS(VALUE), SAYS(VALUE), SAYS_AND_CLOSES("$16\r\nabcdef") }, 3,
	  { D, D, F, F }, false },
	{ "closes before the line end", { SAYS_AND_CLOSES("$16\r\nabcdefghijklmnop") }, 1, { F, F, F, F },
	  false },
	{ "closes behind a reply", { SAYS(VALUE), SAYS_AND_CLOSES(VALUE) }, 2, { D, D, F, F }, false },
	{ "never answers", { SAYS(VALUE), SAYS_NOTHING }, 2, { D, F, F, F }, false },
	{ "stops in a head", { SAYS("$"), SAYS_NOTHING }, 2, { F, F, F, F }, false },
	{ "stops in a payload", { SAYS(VALUE), SAYS("$16\r\nabc"), SAYS_NOTHING }, 3, { D, F, F, F }, false },
};

#undef F
#undef D
#undef C
#undef M
#undef U

static void get_four(struct rig *rig)
{
	rig_batch(rig, 1, 4, LENGTH);
	assert_int_equal(rig_get(rig), 0);
}

static void try_lie(struct rig *rig, struct scripted *scripted, const struct lie *lie)
{
	static const struct answer truth[] = { SAYS(VALUE) };
	uint32_t                   accepted, i;

	scripted_say(scripted, truth, 1, true);
	get_four(rig);
	rig_expect(rig, KVS_RESULT_DONE);
	accepted = scripted_accepted(scripted);
	scripted_say(scripted, lie->answers, lie->count, true);
	get_four(rig);
	for (i = 0; i < 4; i++) {
		if (rig->results[i] != lie->results[i])
			fail_msg("%s, row %u: %d", lie->name, i, rig->results[i]);
		if (rig->results[i] == KVS_RESULT_DONE)
			assert_memory_equal(rig->spans[i].ptr, "abcdefghijklmnop", LENGTH);
	}
	scripted_say(scripted, truth, 1, true);
	get_four(rig);
	rig_expect(rig, KVS_RESULT_DONE);
	if (lie->keeps != (scripted_accepted(scripted) == accepted))
		fail_msg("%s: %u connections more", lie->name, scripted_accepted(scripted) - accepted);
}

static void lies_are_told(const char *options)
{
	struct scripted scripted;
	struct rig      rig;
	char            spec[128];
	size_t          i;

	scripted_start(&scripted);
	snprintf(spec, sizeof(spec), "resp:127.0.0.1:%d?format=raw&connections=1&timeout=400ms&%s",
		 scripted.port, options);
	rig_open(&rig, spec, 4096);
	for (i = 0; i < ARRAY_COUNT(lies); i++)
		try_lie(&rig, &scripted, &lies[i]);
	rig_close(&rig);
	scripted_stop(&scripted);
}

static void an_object_of_another_type_is_counted(void **state)
{
	static const struct answer list[] = { SAYS("-WRONGTYPE Operation against a key\r\n") };
	struct kvs_store_info      info;
	struct scripted            scripted;
	struct rig                 rig;
	char                       spec[128];

	(void)state;
	scripted_start(&scripted);
	snprintf(spec, sizeof(spec), "resp:127.0.0.1:%d", scripted.port);
	rig_open(&rig, spec, 4096);
	scripted_say(&scripted, list, 1, true);
	get_four(&rig);
	rig_expect(&rig, KVS_RESULT_CORRUPT);
	rig.store->ops->describe(rig.store, &info);
	assert_int_equal(info.corrupt_objects, 4);
	rig_close(&rig);
	scripted_stop(&scripted);
}

static void no_answer_to_a_get_loses_the_place(void **state)
{
	(void)state;
	lies_are_told("pipeline=4");
}

struct put_lie {
	struct answer   answer;
	enum kvs_result result;
};

static const struct put_lie put_lies[] = {
	{ SAYS("+OK\r\n"), KVS_RESULT_DONE },
	{ SAYS("$-1\r\n"), KVS_RESULT_EXISTS },
	{ SAYS("-OOM command not allowed when used memory > 'maxmemory'.\r\n"), KVS_RESULT_NO_SPACE },
	{ SAYS("-READONLY You can't write against a read only replica.\r\n"), KVS_RESULT_FAILED },
	{ SAYS("-MOVED 1 127.0.0.1:1\r\n"), KVS_RESULT_FAILED },
	{ SAYS("-LOADING Redis is loading the dataset in memory\r\n"), KVS_RESULT_FAILED },
	{ SAYS("-MISCONF Redis is configured to save RDB snapshots\r\n"), KVS_RESULT_FAILED },
	{ SAYS("-WRONGTYPE no\r\n"), KVS_RESULT_FAILED },
	{ SAYS(":1\r\n"), KVS_RESULT_FAILED },
	{ SAYS(VALUE), KVS_RESULT_FAILED },
	{ SAYS_NOTHING, KVS_RESULT_FAILED },
	{ SAYS_AND_CLOSES("+O"), KVS_RESULT_FAILED },
};

static void each_answer_to_a_put_is_understood(void **state)
{
	static const struct answer good[] = { SAYS("+OK\r\n") };
	struct scripted            scripted;
	struct kvs_store_info      info;
	struct rig                 rig;
	char                       spec[128];
	size_t                     i;

	(void)state;
	scripted_start(&scripted);
	snprintf(spec, sizeof(spec), "resp:127.0.0.1:%d?timeout=400ms", scripted.port);
	rig_open(&rig, spec, 1u << 20);
	for (i = 0; i < ARRAY_COUNT(put_lies); i++) {
		scripted_say(&scripted, &put_lies[i].answer, 1, true);
		rig_batch(&rig, 1, 3, 65536);
		assert_int_equal(rig_put(&rig), 0);
		rig_expect(&rig, put_lies[i].result);
		scripted_say(&scripted, good, 1, true);
		assert_int_equal(rig_put(&rig), 0);
		rig_expect(&rig, KVS_RESULT_DONE);
	}
	rig.store->ops->describe(rig.store, &info);
	assert_int_equal(info.refused_full, 3);
	rig_close(&rig);
	scripted_stop(&scripted);
}

#define FOUR_OK "+OK\r\n+OK\r\n+OK\r\n+OK\r\n"

/* All sixteen puts are answered when the first has arrived, and no socket holds the other fifteen. */
static void an_answer_before_the_question_has_gone_out_is_none(void **state)
{
	static const struct answer early[] = { SAYS(FOUR_OK FOUR_OK FOUR_OK FOUR_OK) };
	static const struct answer good[] = { SAYS("+OK\r\n") };
	struct scripted            scripted;
	struct rig                 rig;
	char                       spec[128];

	(void)state;
	scripted_start(&scripted);
	snprintf(spec, sizeof(spec),
		 "resp:127.0.0.1:%d?connections=1&pipeline=16&bytes_in_flight=64MiB", scripted.port);
	rig_open(&rig, spec, 1u << 20);
	scripted_say(&scripted, early, 1, true);
	rig_batch(&rig, 1, 16, 1u << 20);
	assert_int_equal(rig_put(&rig), 0);
	assert_int_equal(rig.results[15], KVS_RESULT_FAILED);
	scripted_say(&scripted, good, 1, true);
	assert_int_equal(rig_put(&rig), 0);
	rig_expect(&rig, KVS_RESULT_DONE);
	rig_close(&rig);
	scripted_stop(&scripted);
}

static void a_list_that_makes_no_sense_ends_with_an_error(void **state)
{
	static const struct answer lists[] = {
		SAYS("*2\r\n$1\r\n0\r\n:1\r\n"), SAYS("*3\r\n"), SAYS("*2\r\n$1\r\nx\r\n*0\r\n"),
		SAYS("-NOPERM no SCAN for you\r\n"), SAYS("*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n"),
		SAYS("*2\r\n$16\r\n1844674407370955\r\n*0\r\n"),
		SAYS_AND_CLOSES("*2\r\n$1\r\n0\r\n*9\r\n"),
		SAYS("*2\r\n$1\r\n0\r\n*0\r\n+OK\r\n"),
		SAYS("*2\r\n$1\r\n9\r\n*0\r\n"), SAYS("*2\r\n$0\r\n\r\n*0\r\n"),
	};
	static const struct answer empty[] = { SAYS("*2\r\n$1\r\n0\r\n*0\r\n") };
	struct scripted            scripted;
	struct kvs_key             keys[4];
	struct rig                 rig;
	char                       spec[128];
	size_t                     i;

	(void)state;
	scripted_start(&scripted);
	snprintf(spec, sizeof(spec), "resp:127.0.0.1:%d?timeout=400ms", scripted.port);
	rig_open(&rig, spec, 4096);
	for (i = 0; i < ARRAY_COUNT(lists); i++) {
		uint64_t cursor = 0, purged = 77;
		uint32_t count = 77;

		scripted_say(&scripted, &lists[i], 1, true);
		assert_true(rig.store->ops->list(rig.store, NULL, &cursor, keys, 4, &count) < 0);
		assert_int_equal(count, 77);
		assert_true(rig.store->ops->purge(rig.store, NULL, &purged) < 0);
		assert_int_equal(purged, 77);
		scripted_say(&scripted, empty, 1, true);
		assert_int_equal(rig.store->ops->list(rig.store, NULL, &cursor, keys, 4, &count), 0);
		assert_int_equal(count, 0);
		assert_int_equal(cursor, 0);
	}
	rig_close(&rig);
	scripted_stop(&scripted);
}

static void a_list_without_an_end_is_refused(void **state)
{
	static const struct answer lists[] = {
		SAYS("*2\r\n$1\r\n0\r\n*65536\r\n"), SAYS("*2\r\n$1\r\n0\r\n*1\r\n$9999\r\n"),
		SAYS("*2\r\n$9999\r\n"),
	};
	struct scripted scripted;
	struct kvs_key  keys[4];
	struct rig      rig;
	char            spec[128];
	size_t          i;

	(void)state;
	scripted_start(&scripted);
	snprintf(spec, sizeof(spec), "resp:127.0.0.1:%d", scripted.port);
	rig_open(&rig, spec, 4096);
	for (i = 0; i < ARRAY_COUNT(lists); i++) {
		uint64_t cursor = 0;
		uint32_t count;

		scripted_say(&scripted, &lists[i], 1, true);
		assert_int_equal(rig.store->ops->list(rig.store, NULL, &cursor, keys, 4, &count),
				 KVS_E_PROTO);
	}
	rig_close(&rig);
	scripted_stop(&scripted);
}

/* There are bytes, and always would be: a deadline counts all the same. */
static void bytes_behind_a_deadline_are_not_waited_for(void **state)
{
	struct resp_conn conn = { .fd = -1 };
	int              pair[2];
	char             byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(write(pair[1], "ab", 2), 2);
	conn.fd = pair[0];
	assert_int_equal(resp_conn_receive(&conn, &byte, 1, UINT64_MAX), 1);
	assert_int_equal(resp_conn_receive(&conn, &byte, 1, os_now_ns()), -ETIMEDOUT);
	resp_conn_close(&conn);
	close(pair[1]);
}

/* As many keys as a purge removes at a time and one more, so that the page is read again. */
#define PAGE_KEYS 129u

/* The answer to SCAN, with all keys of the page. */
static size_t write_page(char *text, size_t room)
{
	size_t   used = (size_t)snprintf(text, room, "*2\r\n$1\r\n0\r\n*%u\r\n", PAGE_KEYS);
	uint32_t i;

	for (i = 0; i < PAGE_KEYS; i++) {
		const struct kvs_key key = key_of(i);
		char                 name[LABEL_TEXT_MAX];
		const size_t         bytes = label_text("kvs", &key, name);

		used += (size_t)snprintf(text + used, room - used, "$%zu\r\n%s\r\n", bytes, name);
	}
	return used;
}

static void keys_that_another_client_removes_do_not_fail_a_purge(void **state)
{
	static const struct answer gone = SAYS(":0\r\n"), empty = SAYS("*2\r\n$1\r\n0\r\n*0\r\n");
	static struct answer       answers[PAGE_KEYS + 1];
	static char                page[PAGE_KEYS * (LABEL_TEXT_MAX + 16)];
	struct scripted            scripted;
	struct rig                 rig;
	uint64_t                   purged = 77;
	char                       spec[128];
	uint32_t                   i;

	(void)state;
	scripted_start(&scripted);
	snprintf(spec, sizeof(spec), "resp:127.0.0.1:%d", scripted.port);
	rig_open(&rig, spec, 4096);
	answers[0] = (struct answer){ page, write_page(page, sizeof(page)), false };
	for (i = 1; i < PAGE_KEYS; i++)
		answers[i] = gone;
	answers[PAGE_KEYS] = empty;
	scripted_say(&scripted, answers, PAGE_KEYS + 1, true);
	assert_int_equal(rig.store->ops->purge(rig.store, NULL, &purged), 0);
	assert_int_equal(purged, 0);
	rig_close(&rig);
	scripted_stop(&scripted);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_answer_to_a_get_loses_the_place),
		cmocka_unit_test(an_object_of_another_type_is_counted),
		cmocka_unit_test(each_answer_to_a_put_is_understood),
		cmocka_unit_test(an_answer_before_the_question_has_gone_out_is_none),
		cmocka_unit_test(a_list_that_makes_no_sense_ends_with_an_error),
		cmocka_unit_test(a_list_without_an_end_is_refused),
		cmocka_unit_test(bytes_behind_a_deadline_are_not_waited_for),
		cmocka_unit_test(keys_that_another_client_removes_do_not_fail_a_purge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
