/* SPDX-License-Identifier: Apache-2.0 */
/* The Mooncake store on a way of the test's own: objects, seals, codes, and what is proven. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "named_block.h"
#include "wharf.h"

#define SEAL_BYTES sizeof(struct label_seal)

static void reopen_raw(struct wharf *wharf)
{
	wharf_close(wharf);
	wharf->settings.verified = false;
	byway_init(&wharf->byway, &wharf->cluster);
	wharf_open(wharf);
}

static void what_is_put_is_got_found_and_removed(void **state)
{
	struct wharf *const wharf = *state;

	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_MISSING);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_MISSING);
	assert_true(wharf->retired);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_true(wharf->retired);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_true(wharf->retired);
	assert_int_equal(wharf_remove(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf_remove(wharf, 1), KVS_RESULT_MISSING);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_MISSING);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_MISSING);
}

static void an_object_is_its_payload_and_its_seal(void **state)
{
	struct wharf *const        wharf = *state;
	const struct kvs_key       key = key_of(3);
	const struct byway_object *object;
	struct label_seal          seal;
	struct kvs_span            payload;

	assert_int_equal(wharf_put(wharf, 3, WHARF_BLOCK), KVS_RESULT_DONE);
	object = byway_find(&wharf->cluster, &key);
	assert_non_null(object);
	assert_int_equal(object->count, WHARF_BLOCK + SEAL_BYTES);
	assert_true(is_filled((uint64_t *)object->bytes, 3, WHARF_BLOCK));
	memcpy(&seal, object->bytes + WHARF_BLOCK, sizeof(seal));
	payload = (struct kvs_span){ object->bytes, WHARF_BLOCK, WHARF_BLOCK };
	assert_true(label_seal_holds(&seal, &key, &payload));
}

/* Another program's, or one of this store with its own eyes shut. */
static void a_raw_object_is_its_payload_alone(void **state)
{
	struct wharf *const  wharf = *state;
	const struct kvs_key key = key_of(3);

	reopen_raw(wharf);
	assert_int_equal(wharf_put(wharf, 3, 4096), KVS_RESULT_DONE);
	assert_int_equal(byway_find(&wharf->cluster, &key)->count, 4096);
	assert_int_equal(wharf_get(wharf, 3, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_get(wharf, 3, WHARF_BLOCK), KVS_RESULT_CORRUPT);
	assert_int_equal(wharf_get(wharf, 3, 2048), KVS_RESULT_CORRUPT);
	assert_false(wharf_info(wharf).verified);
}

/* Shorter or longer, as far as the room shows it; neither harms the object. */
static void A10_1_exact_bytes_alone_prove_a_get(void **state)
{
	struct wharf *const  wharf = *state;
	const struct kvs_key key = key_of(1);

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_get(wharf, 1, WHARF_BLOCK), KVS_RESULT_CORRUPT);
	assert_true(wharf->retired);
	assert_int_equal(wharf_get(wharf, 1, 2048), KVS_RESULT_CORRUPT);
	assert_true(wharf->retired);
	assert_int_equal(wharf_info(wharf).corrupt_objects, 2);
	assert_int_equal(wharf->byway.got_bytes_max, WHARF_BLOCK + WHARF_TRAILER);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_non_null(byway_find(&wharf->cluster, &key));
}

static void a_seal_that_does_not_hold_takes_its_object_away(void **state)
{
	struct wharf *const wharf = *state;
	const size_t        flaws[] = { 0, 4095, 4096, 4096 + SEAL_BYTES - 1 };
	uint32_t            i;

	for (i = 0; i < ARRAY_COUNT(flaws); i++) {
		const struct kvs_key key = key_of(i);

		assert_int_equal(wharf_put(wharf, i, 4096), KVS_RESULT_DONE);
		byway_find(&wharf->cluster, &key)->bytes[flaws[i]] ^= 1;
		assert_int_equal(wharf_get(wharf, i, 4096), KVS_RESULT_CORRUPT);
		assert_true(wharf->retired);
		assert_null(byway_find(&wharf->cluster, &key));
		assert_int_equal(wharf_put(wharf, i, 4096), KVS_RESULT_DONE);
		assert_int_equal(wharf_get(wharf, i, 4096), KVS_RESULT_DONE);
	}
	assert_int_equal(wharf_info(wharf).corrupt_objects, ARRAY_COUNT(flaws));
}

/* What may still change proves nothing against an object. */
static void bytes_in_doubt_take_no_object_away(void **state)
{
	struct wharf *const  wharf = *state;
	const struct kvs_key key = key_of(1);

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	byway_find(&wharf->cluster, &key)->bytes[0] ^= 1;
	wharf->byway.clings = true;
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_CORRUPT);
	assert_false(wharf->retired);
	assert_non_null(byway_find(&wharf->cluster, &key));
}

/* The bytes of one key under the name of another. */
static void an_object_of_another_key_is_none(void **state)
{
	struct wharf *const  wharf = *state;
	const struct kvs_key one = key_of(1), two = key_of(2);

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_put(wharf, 2, 4096), KVS_RESULT_DONE);
	memcpy(byway_find(&wharf->cluster, &one)->bytes, byway_find(&wharf->cluster, &two)->bytes,
	       4096 + SEAL_BYTES);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_CORRUPT);
	assert_int_equal(wharf_get(wharf, 2, 4096), KVS_RESULT_DONE);
}

static void A10_1_a_second_put_is_a_success_and_the_first_stays(void **state)
{
	struct wharf *const   wharf = *state;
	const struct kvs_key  key = key_of(1);
	const struct kvs_span span = wharf_span(wharf, 1, 4096);
	enum kvs_result       result;
	bool                  retired = false;

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	fill(span.ptr, 2, 4096);
	assert_int_equal(wharf->store->ops->put(wharf->store, &key, &span, 1, &result, &retired), 0);
	assert_int_equal(result, KVS_RESULT_DONE);
	assert_true(retired);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_DONE);
}

struct told {
	int64_t         code;
	enum kvs_result of_get, of_put, of_exists;
	bool            get_retired, put_retired;
};

static const struct told told[] = {
	{ -704, KVS_RESULT_MISSING, KVS_RESULT_FAILED, KVS_RESULT_MISSING, true, false },
	{ -705, KVS_RESULT_FAILED, KVS_RESULT_EXISTS, KVS_RESULT_FAILED, false, true },
	{ -200, KVS_RESULT_FAILED, KVS_RESULT_NO_SPACE, KVS_RESULT_FAILED, false, true },
	{ -1, KVS_RESULT_FAILED, KVS_RESULT_FAILED, KVS_RESULT_FAILED, false, false },
	{ -600, KVS_RESULT_FAILED, KVS_RESULT_FAILED, KVS_RESULT_FAILED, false, false },
	{ -800, KVS_RESULT_FAILED, KVS_RESULT_FAILED, KVS_RESULT_FAILED, false, false },
	{ -900, KVS_RESULT_FAILED, KVS_RESULT_FAILED, KVS_RESULT_FAILED, false, false },
	{ -901, KVS_RESULT_FAILED, KVS_RESULT_FAILED, KVS_RESULT_FAILED, false, false },
};

/* What the way has proven, not the code, is told: with agents all of these have retired. */
static void A10_1_codes_are_results_and_the_way_knows_what_retired(void **state)
{
	struct wharf *const wharf = *state;
	uint32_t            i, reaps;

	for (reaps = 0; reaps < 2; reaps++) {
		wharf->byway.reaps = reaps == 1;
		for (i = 0; i < ARRAY_COUNT(told); i++) {
			const struct kvs_key key = key_of(i);

			wharf->byway.odd_count = 0;
			byway_make_odd(&wharf->byway, &key, told[i].code);
			assert_int_equal(wharf_get(wharf, i, 4096), told[i].of_get);
			assert_int_equal(wharf->retired, told[i].get_retired || reaps);
			assert_int_equal(wharf_put(wharf, i, 4096), told[i].of_put);
			assert_int_equal(wharf->retired, told[i].put_retired || reaps);
			assert_int_equal(wharf_exists(wharf, i), told[i].of_exists);
		}
	}
}

static void a_lane_that_is_down_fails_its_rows(void **state)
{
	struct wharf *const wharf = *state;

	wharf->byway.rc = -ECONNRESET;
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_FAILED);
	assert_true(wharf->retired);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_FAILED);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_FAILED);
	assert_int_equal(wharf_remove(wharf, 1), KVS_RESULT_FAILED);
	wharf->byway.clings = true;
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_FAILED);
	assert_false(wharf->retired);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_FAILED);
	assert_false(wharf->retired);
	wharf->byway.rc = 0;
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_false(wharf->retired);
}

static void bad_spans_are_refused_and_reach_nobody(void **state)
{
	struct wharf *const   wharf = *state;
	const struct kvs_key  keys[2] = { key_of(1), key_of(2) };
	struct kvs_span       spans[2];
	const struct kvs_span bad[] = {
		{ wharf->memory, 0, 4096 },
		{ wharf->memory, WHARF_BLOCK + 8, WHARF_BLOCK + WHARF_TRAILER },
	};
	const struct kvs_span roomless = { wharf->memory, 4096, 4096 + SEAL_BYTES - 1 };
	enum kvs_result result[2];
	bool            retired;
	uint32_t        i;

	for (i = 0; i < 2 * ARRAY_COUNT(bad); i++) {
		spans[0] = wharf_span(wharf, 1, 4096);
		spans[1] = bad[i / 2];
		result[0] = result[1] = KVS_RESULT_DONE;
		retired = false;
		assert_int_equal((i % 2 ? wharf->store->ops->get : wharf->store->ops->put)(
					 wharf->store, keys, spans, 2, result, &retired),
				 KVS_E_INVALID);
		assert_int_equal(result[0], KVS_RESULT_UNKNOWN);
		assert_int_equal(result[1], KVS_RESULT_UNKNOWN);
		assert_true(retired);
	}
	assert_int_equal(wharf->store->ops->put(wharf->store, keys, &roomless, 1, result, &retired),
			 KVS_E_INVALID);
	assert_int_equal(wharf->byway.calls[MOONCAKE_GET] + wharf->byway.calls[MOONCAKE_PUT], 0);
}

/* Of blocks that touch only the last has room for a seal: it need not suffer for the others. */
static void a_row_without_room_is_left_out(void **state)
{
	struct wharf *const   wharf = *state;
	const struct kvs_key  keys[2] = { key_of(1), key_of(2) };
	const struct kvs_span spans[2] = { { wharf->memory, 4096, 4096 },
					   wharf_span(wharf, 2, 4096) };
	enum kvs_result       result[2];
	bool                  retired = false;

	fill(spans[0].ptr, 1, 4096);
	fill(spans[1].ptr, 2, 4096);
	assert_int_equal(wharf->store->ops->put(wharf->store, keys, spans, 2, result, &retired), 0);
	assert_int_equal(result[0], KVS_RESULT_UNKNOWN);
	assert_int_equal(result[1], KVS_RESULT_DONE);
	assert_true(retired);
	assert_int_equal(wharf->store->ops->get(wharf->store, keys, spans, 2, result, &retired), 0);
	assert_int_equal(result[0], KVS_RESULT_UNKNOWN);
	assert_int_equal(result[1], KVS_RESULT_DONE);
	assert_int_equal(wharf->byway.rows[MOONCAKE_GET], 1);
	assert_non_null(strstr(wharf_info(wharf).note, "2 rows had no room for a seal"));
}

/* Memory that the way cannot reach is the caller's mistake: nothing is done, nothing is down. */
static void what_the_way_cannot_use_is_refused(void **state)
{
	struct wharf *const   wharf = *state;
	const struct kvs_key  key = key_of(1);
	const struct kvs_span span = wharf_span(wharf, 1, 4096);
	enum kvs_result       result = KVS_RESULT_DONE;
	bool                  retired = false;

	wharf->byway.rc = KVS_E_INVALID;
	assert_int_equal(wharf->store->ops->put(wharf->store, &key, &span, 1, &result, &retired),
			 KVS_E_INVALID);
	assert_int_equal(result, KVS_RESULT_UNKNOWN);
	assert_true(retired);
}

static void a_large_batch_is_cut(void **state)
{
	enum { ROWS = MOONCAKE_NAMES_MAX + 100, BYTES = 64, ROOM = BYTES + 96 };
	struct wharf *const   wharf = *state;
	uint8_t *const        memory = calloc(ROWS, ROOM);
	struct kvs_key *const keys = calloc(ROWS, sizeof(*keys));
	struct kvs_span      *spans = calloc(ROWS, sizeof(*spans));
	enum kvs_result      *result = calloc(ROWS, sizeof(*result));
	bool                  retired = false;
	uint32_t              i;

	for (i = 0; i < ROWS; i++) {
		keys[i] = key_of(i);
		spans[i] = (struct kvs_span){ memory + (size_t)i * ROOM, BYTES, ROOM };
		fill(spans[i].ptr, i, BYTES);
	}
	assert_int_equal(wharf->store->ops->put(wharf->store, keys, spans, ROWS, result, &retired),
			 0);
	assert_int_equal(wharf->byway.calls[MOONCAKE_PUT], 2);
	memset(memory, 0, (size_t)ROWS * ROOM);
	assert_int_equal(wharf->store->ops->get(wharf->store, keys, spans, ROWS, result, &retired),
			 0);
	assert_true(retired);
	assert_int_equal(wharf->byway.calls[MOONCAKE_GET], 2);
	assert_int_equal(wharf->byway.rows_most, MOONCAKE_NAMES_MAX);
	for (i = 0; i < ROWS; i++) {
		assert_int_equal(result[i], KVS_RESULT_DONE);
		assert_true(is_filled(spans[i].ptr, i, BYTES));
	}
	/* In doubt is the batch when one of its calls is, be others of it behind. */
	byway_make_odd(&wharf->byway, &keys[0], -900);
	assert_int_equal(wharf->store->ops->get(wharf->store, keys, spans, ROWS, result, &retired),
			 0);
	assert_false(retired);
	assert_int_equal(result[0], KVS_RESULT_FAILED);
	assert_int_equal(result[ROWS - 1], KVS_RESULT_DONE);
	wharf->byway.odd_count = 0;
	assert_int_equal(wharf->store->ops->remove(wharf->store, keys, ROWS, result), 0);
	assert_int_equal(wharf->cluster.object_count, 0);
	free(result);
	free(spans);
	free(keys);
	free(memory);
}

/* One piece in doubt is enough, whichever it is. */
static void X2_a_large_batch_has_retired_when_all_its_pieces_have(void **state)
{
	enum { ROWS = MOONCAKE_NAMES_MAX + 100, BYTES = 64, ROOM = BYTES + 96 };
	static const uint32_t doubted[] = { 0, ROWS - 1 };
	struct wharf *const   wharf = *state;
	uint8_t *const        memory = calloc(ROWS, ROOM);
	struct kvs_key *const keys = calloc(ROWS, sizeof(*keys));
	struct kvs_span      *spans = calloc(ROWS, sizeof(*spans));
	enum kvs_result      *result = calloc(ROWS, sizeof(*result));
	bool                  retired;
	uint32_t              i;

	for (i = 0; i < ROWS; i++) {
		keys[i] = key_of(i);
		spans[i] = (struct kvs_span){ memory + (size_t)i * ROOM, BYTES, ROOM };
	}
	for (i = 0; i < ARRAY_COUNT(doubted); i++) {
		wharf->byway.odd_count = 0;
		byway_make_odd(&wharf->byway, &keys[doubted[i]], -800);
		retired = true;
		assert_int_equal(wharf->store->ops->get(wharf->store, keys, spans, ROWS, result,
							&retired), 0);
		assert_int_equal(wharf->byway.calls[MOONCAKE_GET], 2 * (i + 1));
		assert_int_equal(result[doubted[i]], KVS_RESULT_FAILED);
		assert_false(retired);
	}
	free(result);
	free(spans);
	free(keys);
	free(memory);
}

/* Shards of one page by rank: each has its own bytes under its own name. */
static void two_replicas_are_two_objects(void **state)
{
	struct wharf *const wharf = *state;
	struct kvs_key      keys[2] = { key_of(1), key_of(1) };
	struct kvs_span     spans[2];
	enum kvs_result     result[2];
	bool                retired = false;
	uint32_t            i;

	keys[1].replica = 1;
	for (i = 0; i < 2; i++) {
		spans[i] = wharf_span(wharf, i, 4096);
		fill(spans[i].ptr, 70 + i, 4096);
	}
	assert_int_equal(wharf->store->ops->put(wharf->store, keys, spans, 2, result, &retired), 0);
	assert_int_equal(wharf->cluster.object_count, 2);
	memset(wharf->memory, 0, 4096);
	memset(spans[1].ptr, 0, 4096);
	assert_int_equal(wharf->store->ops->get(wharf->store, keys, spans, 2, result, &retired), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(result[i], KVS_RESULT_DONE);
		assert_true(is_filled(spans[i].ptr, 70 + i, 4096));
	}
}

/* Clients that lend nothing, one after the other: what the first wrote the second reads. */
static void A8_3_objects_outlive_a_writer_that_lends_nothing(void **state)
{
	struct wharf *const wharf = *state;

	assert_int_equal(wharf->settings.segment_bytes, 0);
	assert_int_equal(wharf_info(wharf).durability, KVS_DURABILITY_PROCESS);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	wharf_close(wharf);
	byway_init(&wharf->byway, &wharf->cluster);
	wharf_open(wharf);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_DONE);
}

static void a_purge_takes_one_namespace(void **state)
{
	static const char    all[] = "^kvs:[0-9a-f]+:.*";
	struct wharf *const  wharf = *state;
	const struct kvs_key mine = key_of(1);
	struct kvs_key       other = key_of(1);
	struct kvs_span      span = wharf_span(wharf, 1, 4096);
	enum kvs_result      result;
	uint64_t             count = 77;
	bool                 retired;

	other.space.byte[3] = 0xe0;
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_put(wharf, 2, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf->store->ops->put(wharf->store, &other, &span, 1, &result, &retired),
			 0);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf->store->ops->purge(wharf->store, &mine.space, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_MISSING);
	assert_non_null(byway_find(&wharf->cluster, &other));
	assert_int_equal(wharf->store->ops->purge(wharf->store, NULL, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(wharf->byway.expression, all);
	wharf->byway.rc = -ECONNRESET;
	assert_int_equal(wharf->store->ops->purge(wharf->store, NULL, &count), -ECONNRESET);
	wharf->byway.rc = 0;
	memcpy(wharf->byway.odd[0].name, all, sizeof(all));
	wharf->byway.odd[0].code = -900;
	wharf->byway.odd_count = 1;
	assert_int_equal(wharf->store->ops->purge(wharf->store, NULL, &count), -EIO);
	assert_int_equal(count, 1);
}

static void memory_and_late_proofs_are_the_ways(void **state)
{
	struct wharf *const     wharf = *state;
	const struct kvs_span   slice = wharf_span(wharf, 0, 4096);
	const struct kvs_memory memory = { .slices = &slice, .slice_count = 1, .fd = 33 };

	assert_int_equal(wharf->store->ops->register_memory(wharf->store, &memory), 0);
	assert_int_equal(wharf->byway.memory.fd, 33);
	assert_ptr_equal(wharf->byway.memory.slices, &slice);
	assert_true(wharf->store->ops->settled(wharf->store));
	wharf->byway.settled = false;
	assert_false(wharf->store->ops->settled(wharf->store));
	wharf->byway.register_rc = -EPERM;
	assert_int_equal(wharf->store->ops->register_memory(wharf->store, &memory), -EPERM);
	assert_non_null(strstr(wharf_info(wharf).note, "did not take the Host's memory"));
}

static void it_says_what_the_way_says(void **state)
{
	struct wharf *const   wharf = *state;
	struct kvs_store_info info = wharf_info(wharf);

	assert_int_equal(info.death_retires, KVS_DEATH_COPY);
	assert_false(info.away);
	assert_false(info.failures_retire);
	assert_false(info.locks);
	assert_true(info.verified);
	wharf->byway.info = (struct mooncake_way_info){ .death_retires = KVS_DEATH_NOTHING,
							.note = "agent 1 starts again" };
	info = wharf_info(wharf);
	assert_int_equal(info.death_retires, KVS_DEATH_NOTHING);
	assert_true(info.away);
	assert_string_equal(info.note, "agent 1 starts again");
}

/* Then the store stays, and with it all that late bytes may touch. */
static void a_close_in_doubt_frees_nothing(void **state)
{
	struct wharf *const wharf = *state;

	wharf->byway.close_rc = KVS_E_QUARANTINE;
	assert_int_equal(wharf->store->ops->close(wharf->store), KVS_E_QUARANTINE);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	wharf->byway.close_rc = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, wharf_setup, wharf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_put_is_got_found_and_removed),
		TEST(an_object_is_its_payload_and_its_seal),
		TEST(a_raw_object_is_its_payload_alone),
		TEST(A10_1_exact_bytes_alone_prove_a_get),
		TEST(a_seal_that_does_not_hold_takes_its_object_away),
		TEST(bytes_in_doubt_take_no_object_away),
		TEST(an_object_of_another_key_is_none),
		TEST(A10_1_a_second_put_is_a_success_and_the_first_stays),
		TEST(A10_1_codes_are_results_and_the_way_knows_what_retired),
		TEST(a_lane_that_is_down_fails_its_rows),
		TEST(bad_spans_are_refused_and_reach_nobody),
		TEST(a_row_without_room_is_left_out),
		TEST(what_the_way_cannot_use_is_refused),
		TEST(a_large_batch_is_cut),
		TEST(X2_a_large_batch_has_retired_when_all_its_pieces_have),
		TEST(two_replicas_are_two_objects),
		TEST(A8_3_objects_outlive_a_writer_that_lends_nothing),
		TEST(a_purge_takes_one_namespace),
		TEST(memory_and_late_proofs_are_the_ways),
		TEST(it_says_what_the_way_says),
		TEST(a_close_in_doubt_frees_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
