/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in a real Redis, with hiredis as the independent peer that looks at them and spoils them. */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>

#include "os/os.h"
#include "client.h"

#define BLOCK (1u << 20)

static struct redis  redis;
static redisContext *client;

static int start(void **state)
{
	(void)state;
	redis_start(&redis);
	client = redis_client(&redis);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	redisFree(client);
	redis_stop(&redis);
	return 0;
}

static void open_with(struct rig *rig, const char *options)
{
	char spec[256];

	redis_run(client, "FLUSHALL");
	snprintf(spec, sizeof(spec), "resp:127.0.0.1:%s?%s", redis.port, options);
	rig_open(rig, spec, BLOCK);
}

static size_t text_of(uint32_t number, char text[LABEL_TEXT_MAX])
{
	const struct kvs_key key = key_of(number);

	return label_text("kvs", &key, text);
}

static void trip(struct rig *rig, uint32_t first, uint32_t count, uint32_t bytes)
{
	rig_batch(rig, first, count, bytes);
	assert_int_equal(rig_get(rig), 0);
	rig_expect(rig, KVS_RESULT_MISSING);
	assert_int_equal(rig_put(rig), 0);
	rig_expect(rig, KVS_RESULT_DONE);
	assert_int_equal(rig_put(rig), 0);
	rig_expect(rig, KVS_RESULT_EXISTS);
	assert_int_equal(rig_get(rig), 0);
	rig_expect(rig, KVS_RESULT_DONE);
	rig_expect_payloads(rig);
	assert_int_equal(rig->store->ops->exists(rig->store, rig->keys, count, rig->results), 0);
	rig_expect(rig, KVS_RESULT_DONE);
	assert_int_equal(rig->store->ops->remove(rig->store, rig->keys, count, rig->results), 0);
	rig_expect(rig, KVS_RESULT_DONE);
	assert_int_equal(rig->store->ops->exists(rig->store, rig->keys, count, rig->results), 0);
	rig_expect(rig, KVS_RESULT_MISSING);
	assert_int_equal(rig->store->ops->remove(rig->store, rig->keys, count, rig->results), 0);
	rig_expect(rig, KVS_RESULT_MISSING);
}

static void round_trips_by_size_and_batch(void **state)
{
	static const char *const windows[] = {
		"connections=1&pipeline=1", "connections=3&pipeline=2",
		"connections=1&pipeline=64&bytes_in_flight=64MiB", "format=raw"
	};
	static const uint32_t    sizes[] = { 8, 4096, 65536, BLOCK };
	static const uint32_t    counts[] = { 1, 3, 8 };
	size_t                   w, s, c;

	(void)state;
	for (w = 0; w < ARRAY_COUNT(windows); w++) {
		struct rig rig;

		open_with(&rig, windows[w]);
		for (s = 0; s < ARRAY_COUNT(sizes); s++) {
			for (c = 0; c < ARRAY_COUNT(counts); c++)
				trip(&rig, 100, counts[c], sizes[s]);
		}
		trip(&rig, 1000, RIG_ROWS, 65536);
		rig_close(&rig);
	}
}

static void a_put_leaves_an_object_as_it_is(void **state)
{
	struct rig rig;

	(void)state;
	open_with(&rig, "db=0");
	rig_batch(&rig, 1, 1, 4096);
	assert_int_equal(rig_put(&rig), 0);
	rig_batch(&rig, 1, 1, 8192);
	assert_int_equal(rig_put(&rig), 0);
	rig_expect(&rig, KVS_RESULT_EXISTS);
	rig_batch(&rig, 1, 1, 4096);
	assert_int_equal(rig_get(&rig), 0);
	rig_expect(&rig, KVS_RESULT_DONE);
	rig_expect_payloads(&rig);
	rig_close(&rig);
}

static void spans_that_fit_no_block_are_refused(void **state)
{
	static uint8_t large[BLOCK + 8];
	struct rig     rig;
	bool           retired = false;

	(void)state;
	open_with(&rig, "db=0");
	rig_batch(&rig, 1, 2, 4096);
	rig.spans[1].bytes = 0;
	assert_int_equal(rig.store->ops->put(rig.store, rig.keys, rig.spans, 2, rig.results,
					     &retired), KVS_E_INVALID);
	assert_true(retired);
	rig_expect(&rig, KVS_RESULT_UNKNOWN);
	rig.spans[1] = (struct kvs_span){ large, sizeof(large), sizeof(large) };
	assert_int_equal(rig.store->ops->get(rig.store, rig.keys, rig.spans, 2, rig.results,
					     &retired), KVS_E_INVALID);
	rig_expect_well(&rig, 7);
	rig_close(&rig);
}

/* What may lie under a key, and what a get says of it. */
enum condition {
	WELL,
	ABSENT,
	SHORTER,
	LONGER,
	EMPTY,
	A_LIST,
	SPOILT,  /* one byte of payload */
	MISTAKEN, /* the whole value of another key */
	CONDITIONS
};

static enum kvs_result expected(enum condition condition)
{
	if (condition == WELL)
		return KVS_RESULT_DONE;
	return condition == ABSENT ? KVS_RESULT_MISSING : KVS_RESULT_CORRUPT;
}

/* The object is put; now make it what the condition says, as somebody else would. */
static void spoil(uint32_t number, enum condition condition, uint32_t at)
{
	char        text[LABEL_TEXT_MAX], other[LABEL_TEXT_MAX];
	redisReply *value;

	text_of(number, text);
	text_of(number + 1000, other);
	switch (condition) {
	case WELL:
	case CONDITIONS:
		break;
	case ABSENT:
		redis_run(client, "DEL %s", text);
		break;
	case SHORTER:
		value = redis_do(client, "GET %s", text);
		redis_run(client, "SET %s %b", text, value->str,
			  (size_t)value->len - 1 - at % 4000);
		freeReplyObject(value);
		break;
	case LONGER:
		redis_run(client, "APPEND %s more", text);
		break;
	case EMPTY:
		redis_run(client, "SET %s %b", text, "", (size_t)0);
		break;
	case A_LIST:
		redis_run(client, "DEL %s", text);
		redis_run(client, "LPUSH %s element", text);
		break;
	case SPOILT:
		value = redis_do(client, "GETRANGE %s %u %u", text, at, at);
		value->str[0] ^= 1;
		redis_run(client, "SETRANGE %s %u %b", text, at, value->str, (size_t)1);
		freeReplyObject(value);
		break;
	case MISTAKEN:
		redis_run(client, "RENAME %s %s", other, text);
		break;
	}
}

static void mixture(struct rig *rig, struct prng *prng, uint32_t count, uint32_t bytes)
{
	enum condition conditions[RIG_ROWS];
	uint32_t       i;

	redis_run(client, "FLUSHALL");
	rig_batch(rig, 1000, count, bytes);
	assert_int_equal(rig_put(rig), 0);
	rig_batch(rig, 0, count, bytes);
	assert_int_equal(rig_put(rig), 0);
	rig_expect(rig, KVS_RESULT_DONE);
	for (i = 0; i < count; i++) {
		conditions[i] = (enum condition)prng_below(prng, 2 * CONDITIONS);
		conditions[i] = conditions[i] < CONDITIONS ? conditions[i] : WELL;
		spoil(i, conditions[i], (uint32_t)prng_below(prng, bytes));
	}
	assert_int_equal(rig_get(rig), 0);
	for (i = 0; i < count; i++) {
		if (rig->results[i] != expected(conditions[i]))
			fail_msg("row %u, condition %d: %d", i, conditions[i], rig->results[i]);
		if (conditions[i] == WELL)
			assert_true(is_filled(rig->spans[i].ptr, i, bytes));
	}
}

static void each_row_is_told_the_truth_in_any_company(void **state)
{
	static const char *const windows[] = {
		"connections=1&pipeline=1", "connections=1&pipeline=64",
		"connections=3&pipeline=5&bytes_in_flight=256KiB"
	};
	struct prng              prng;
	size_t                   w;
	uint32_t                 i;

	(void)state;
	prng_seed(&prng, 3);
	for (w = 0; w < ARRAY_COUNT(windows); w++) {
		struct rig rig;

		open_with(&rig, windows[w]);
		for (i = 0; i < 12; i++) {
			mixture(&rig, &prng, 1 + (uint32_t)prng_below(&prng, RIG_ROWS),
				i % 3 ? 4096 : 65536);
		}
		mixture(&rig, &prng, 6, BLOCK);
		rig_close(&rig);
	}
}

static void a_spoilt_object_makes_room_for_a_good_one(void **state)
{
	struct kvs_store_info info;
	struct rig            rig;

	(void)state;
	open_with(&rig, "pipeline=1&connections=1");
	rig_batch(&rig, 5, 1, 4096);
	assert_int_equal(rig_put(&rig), 0);
	spoil(5, SPOILT, 4095);
	assert_int_equal(rig_get(&rig), 0);
	rig_expect(&rig, KVS_RESULT_CORRUPT);
	rig.store->ops->describe(rig.store, &info);
	assert_int_equal(info.corrupt_objects, 1);
	rig_expect_well(&rig, 5);
	rig_close(&rig);
}

static void a_value_too_long_to_read_costs_the_connection_only(void **state)
{
	char       text[LABEL_TEXT_MAX];
	struct rig rig;
	uint32_t   i;

	(void)state;
	open_with(&rig, "connections=1&pipeline=4");
	rig_batch(&rig, 0, 4, 4096);
	assert_int_equal(rig_put(&rig), 0);
	text_of(1, text);
	redis_run(client, "SETRANGE %s %u x", text, 20u << 20);
	assert_int_equal(rig_get(&rig), 0);
	assert_int_equal(rig.results[0], KVS_RESULT_DONE);
	assert_int_equal(rig.results[1], KVS_RESULT_CORRUPT);
	for (i = 2; i < 4; i++)
		assert_int_equal(rig.results[i], KVS_RESULT_UNKNOWN);
	rig_expect_well(&rig, 9);
	rig_close(&rig);
}

static void raw_values_are_shared_with_other_programs(void **state)
{
	static uint64_t       words[8192];
	char                  text[LABEL_TEXT_MAX];
	struct kvs_store_info info;
	redisReply           *value;
	struct rig            rig;

	(void)state;
	open_with(&rig, "format=raw");
	rig.store->ops->describe(rig.store, &info);
	assert_false(info.verified);
	fill(words, 11, sizeof(words));
	text_of(11, text);
	redis_run(client, "SET %s %b", text, words, sizeof(words));
	rig_batch(&rig, 11, 1, sizeof(words));
	assert_int_equal(rig_get(&rig), 0);
	rig_expect(&rig, KVS_RESULT_DONE);
	rig_expect_payloads(&rig);
	rig_batch(&rig, 12, 1, sizeof(words));
	assert_int_equal(rig_put(&rig), 0);
	text_of(12, text);
	value = redis_do(client, "GET %s", text);
	assert_int_equal(value->len, sizeof(words));
	assert_true(is_filled((const uint64_t *)(const void *)value->str, 12, sizeof(words)));
	freeReplyObject(value);
	/* Length is all that can be checked. */
	redis_run(client, "APPEND %s x", text);
	assert_int_equal(rig_get(&rig), 0);
	rig_expect(&rig, KVS_RESULT_CORRUPT);
	rig_close(&rig);
}

static void a_full_server_refuses_for_capacity(void **state)
{
	struct rig rig;

	(void)state;
	open_with(&rig, "db=0");
	redis_run(client, "CONFIG SET maxmemory-policy noeviction");
	redis_run(client, "CONFIG SET maxmemory 1mb");
	rig_batch(&rig, 1, 16, 65536);
	assert_int_equal(rig_put(&rig), 0);
	assert_int_equal(rig.results[15], KVS_RESULT_NO_SPACE);
	assert_int_equal(rig_put(&rig), 0);
	rig_expect(&rig, KVS_RESULT_NO_SPACE);
	redis_run(client, "CONFIG SET maxmemory 0");
	rig_expect_well(&rig, 99);
	rig_close(&rig);
}

static void objects_lie_in_the_database_that_was_selected(void **state)
{
	redisReply *count;
	struct rig  rig;

	(void)state;
	open_with(&rig, "db=3");
	rig_expect_well(&rig, 1);
	count = redis_do(client, "DBSIZE");
	assert_int_equal(count->integer, 0);
	freeReplyObject(count);
	redis_run(client, "SELECT 3");
	count = redis_do(client, "DBSIZE");
	assert_int_equal(count->integer, 1);
	freeReplyObject(count);
	redis_run(client, "SELECT 0");
	rig_close(&rig);
}

#define LISTED 300u
#define FOREIGN 40u

/* Keys of two namespaces, and what is not ours. */
static void stock(struct rig *rig)
{
	uint32_t i;

	for (i = 0; i < LISTED; i++) {
		rig_batch(rig, i, 1, 8);
		rig->keys[0].space.byte[3] = i % 3 == 0;
		assert_int_equal(rig->store->ops->put(rig->store, rig->keys, rig->spans, 1,
						      rig->results, &(bool){ false }), 0);
	}
	for (i = 0; i < FOREIGN; i++) {
		redis_run(client, "SET other:%u x", i);
		redis_run(client, "SET kvs:%u:1:2:zz x", i);
	}
}

static uint32_t listed(struct rig *rig, const struct kvs_namespace *space, uint32_t key_max)
{
	bool           seen[LISTED] = { false };
	struct kvs_key keys[64];
	uint64_t       cursor = 0;
	uint32_t       total = 0, count, i;

	do {
		assert_int_equal(rig->store->ops->list(rig->store, space, &cursor, keys, key_max,
						       &count), 0);
		assert_true(count <= key_max);
		for (i = 0; i < count; i++) {
			struct kvs_key key = key_of(keys[i].offset);

			assert_true(keys[i].offset < LISTED);
			key.space.byte[3] = keys[i].offset % 3 == 0;
			assert_memory_equal(&keys[i], &key, sizeof(key));
			total += !seen[keys[i].offset];
			seen[keys[i].offset] = true;
		}
	} while (cursor != 0);
	return total;
}

static void a_namespace_is_listed_and_purged(void **state)
{
	const struct kvs_namespace third = { .byte[3] = 1 };
	uint64_t                   removed = 0;
	redisReply                *count;
	struct rig                 rig;

	(void)state;
	open_with(&rig, "db=0");
	stock(&rig);
	assert_int_equal(listed(&rig, NULL, 64), LISTED);
	assert_int_equal(listed(&rig, &third, 7), LISTED / 3);
	assert_int_equal(listed(&rig, &third, 1), LISTED / 3);
	assert_int_equal(rig.store->ops->purge(rig.store, &third, &removed), 0);
	assert_int_equal(removed, LISTED / 3);
	assert_int_equal(listed(&rig, &third, 64), 0);
	assert_int_equal(listed(&rig, NULL, 64), LISTED - LISTED / 3);
	assert_int_equal(rig.store->ops->purge(rig.store, NULL, &removed), 0);
	assert_int_equal(removed, LISTED - LISTED / 3);
	count = redis_do(client, "DBSIZE");
	assert_int_equal(count->integer, 2 * FOREIGN);
	freeReplyObject(count);
	rig_close(&rig);
}

struct crew {
	struct kvs_store *store;
	uint32_t          first;
	uint32_t          wrong;
};

/* Puts and gets of keys that the other threads use as well. */
static void *work(void *arg)
{
	struct crew *crew = arg;
	struct rig   rig = { .store = crew->store,
			     .memory = malloc((size_t)RIG_ROWS * (65536 + 192)) };
	bool         retired;
	uint32_t     i, r;

	for (i = 0; i < 12; i++) {
		rig_batch(&rig, crew->first + i, 24, i % 2 ? 4096 : 65536);
		for (r = 0; r < rig.count; r++)
			fill(rig.spans[r].ptr, rig.keys[r].offset, rig.bytes);
		crew->wrong += crew->store->ops->put(crew->store, rig.keys, rig.spans, rig.count,
						     rig.results, &retired) != 0;
		crew->wrong += crew->store->ops->exists(crew->store, rig.keys, rig.count,
							rig.results) != 0;
		memset(rig.memory, 0, (size_t)rig.count * (rig.bytes + 128));
		crew->wrong += crew->store->ops->get(crew->store, rig.keys, rig.spans, rig.count,
						     rig.results, &retired) != 0;
		for (r = 0; r < rig.count; r++) {
			/* Two sizes meet under one key: the one put first stays. */
			const bool well = rig.results[r] == KVS_RESULT_DONE
				? is_filled(rig.spans[r].ptr, rig.keys[r].offset, rig.bytes)
				: rig.results[r] == KVS_RESULT_CORRUPT;

			crew->wrong += !well;
		}
	}
	free(rig.memory);
	return NULL;
}

static void workers_share_a_store(void **state)
{
	struct crew crew[4];
	pthread_t   threads[4];
	struct rig  rig;
	uint32_t    i;

	(void)state;
	open_with(&rig, "connections=2&pipeline=4");
	for (i = 0; i < 4; i++) {
		crew[i] = (struct crew){ .store = rig.store, .first = i };
		assert_int_equal(os_thread_start(&threads[i], "crew", work, &crew[i]), 0);
	}
	for (i = 0; i < 4; i++) {
		os_thread_join(threads[i]);
		assert_int_equal(crew[i].wrong, 0);
	}
	rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips_by_size_and_batch),
		cmocka_unit_test(a_put_leaves_an_object_as_it_is),
		cmocka_unit_test(spans_that_fit_no_block_are_refused),
		cmocka_unit_test(each_row_is_told_the_truth_in_any_company),
		cmocka_unit_test(a_spoilt_object_makes_room_for_a_good_one),
		cmocka_unit_test(a_value_too_long_to_read_costs_the_connection_only),
		cmocka_unit_test(raw_values_are_shared_with_other_programs),
		cmocka_unit_test(a_full_server_refuses_for_capacity),
		cmocka_unit_test(objects_lie_in_the_database_that_was_selected),
		cmocka_unit_test(a_namespace_is_listed_and_purged),
		cmocka_unit_test(workers_share_a_store),
	};

	if (!redis_is_installed()) {
		print_message("1..0 # SKIP redis-server is not installed\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, start, stop);
}
