/* SPDX-License-Identifier: Apache-2.0 */
/* Promises about bytes and keys. */
#include "stand.h"

#include <string.h>

#include "named_block.h"
#include "promises.h"

void what_is_put_is_got_whole(void **state)
{
	struct stand *stand = *state;
	uint32_t      bytes;

	if (!stand_keeps(stand))
		return;
	for (bytes = 4096; bytes <= BLOCK; bytes += 4096) {
		assert_int_equal(stand_put(stand, bytes, bytes), KVS_RESULT_DONE);
		assert_int_equal(stand_exists(stand, bytes), KVS_RESULT_DONE);
		assert_int_equal(stand_get(stand, bytes, bytes), KVS_RESULT_DONE);
		assert_int_equal(stand_get(stand, bytes, bytes), KVS_RESULT_DONE);
	}
}

/* Another payload under a key that is there: the first one stays. */
void a_second_put_changes_nothing(void **state)
{
	struct stand        *stand = *state;
	const struct kvs_key key = key_of(1);
	const uint32_t       other = 2;
	enum kvs_result      result;

	if (!stand_keeps(stand))
		return;
	assert_int_equal(stand_put(stand, 1, BLOCK), KVS_RESULT_DONE);
	assert_true(stand_was_there(stand, stand_put(stand, 1, BLOCK)));
	stand_put_keys(stand, &key, &other, 1, BLOCK, &result);
	assert_true(stand_was_there(stand, result));
	stand_put_keys(stand, &key, &other, 1, 4096, &result);
	assert_true(stand_was_there(stand, result));
	assert_int_equal(stand_get(stand, 1, BLOCK), KVS_RESULT_DONE);
}

void another_length_is_never_done(void **state)
{
	struct stand *stand = *state;

	if (!stand_keeps(stand))
		return;
	assert_int_equal(stand_put(stand, 1, 8192), KVS_RESULT_DONE);
	assert_int_equal(stand_put(stand, 2, 8192), KVS_RESULT_DONE);
	assert_int_equal(stand_get(stand, 1, 4096), KVS_RESULT_CORRUPT);
	assert_int_equal(stand_get(stand, 2, BLOCK), KVS_RESULT_CORRUPT);
}

void a_wrong_length_destroys_nothing(void **state)
{
	struct stand *stand = *state;

	if (!stand_keeps(stand))
		return;
	assert_int_equal(stand_put(stand, 1, 8192), KVS_RESULT_DONE);
	assert_int_equal(stand_get(stand, 1, 4096), KVS_RESULT_CORRUPT);
	assert_int_equal(stand_get(stand, 1, BLOCK), KVS_RESULT_CORRUPT);
	assert_int_equal(stand_exists(stand, 1), KVS_RESULT_DONE);
	assert_int_equal(stand_get(stand, 1, 8192), KVS_RESULT_DONE);
}

void what_is_not_there_is_missing(void **state)
{
	struct stand *stand = *state;

	if (!stand_keeps(stand))
		return;
	assert_int_equal(stand_put(stand, 1, BLOCK), KVS_RESULT_DONE);
	assert_int_equal(stand_exists(stand, 2), KVS_RESULT_MISSING);
	assert_int_equal(stand_get(stand, 2, BLOCK), KVS_RESULT_MISSING);
	assert_int_equal(stand_remove(stand, 2), KVS_RESULT_MISSING);
	if (stand->store->ops->lock)
		assert_int_equal(stand_lock(stand, 2), KVS_RESULT_MISSING);
}

void what_is_removed_is_gone(void **state)
{
	struct stand *stand = *state;

	if (!stand_keeps(stand))
		return;
	assert_int_equal(stand_put(stand, 1, BLOCK), KVS_RESULT_DONE);
	assert_int_equal(stand_put(stand, 2, BLOCK), KVS_RESULT_DONE);
	assert_int_equal(stand_remove(stand, 1), KVS_RESULT_DONE);
	assert_int_equal(stand_remove(stand, 1), KVS_RESULT_MISSING);
	assert_int_equal(stand_get(stand, 1, BLOCK), KVS_RESULT_MISSING);
	assert_int_equal(stand_get(stand, 2, BLOCK), KVS_RESULT_DONE);
	assert_int_equal(stand_put(stand, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(stand_get(stand, 1, 4096), KVS_RESULT_DONE);
}

void every_field_of_a_key_counts(void **state)
{
	static const uint32_t number[6] = { 10, 11, 12, 13, 14, 15 };
	struct stand         *stand = *state;
	struct kvs_key        key[6];
	enum kvs_result       result[6];
	int                   i;

	if (!stand_keeps(stand))
		return;
	for (i = 0; i < 6; i++)
		key[i] = key_of(1);
	key[1].space.byte[15] ^= 1;
	key[2].hash[31] ^= 1;
	key[3].group ^= 1u << 15;
	key[4].offset ^= UINT32_C(1) << 31;
	key[5].replica ^= 1u << 15;
	stand_put_keys(stand, key, number, 6, BLOCK, result);
	for (i = 0; i < 6; i++)
		assert_int_equal(result[i], KVS_RESULT_DONE);
	stand_get_keys(stand, key, number, 6, BLOCK, result);
	for (i = 0; i < 6; i++)
		assert_int_equal(result[i], KVS_RESULT_DONE);
}

/* Every second key is there. */
void every_key_of_a_batch_has_its_result(void **state)
{
	struct stand   *stand = *state;
	struct kvs_key  key[12];
	uint32_t        number[12], i;
	enum kvs_result result[12];

	for (i = 0; i < 12; i++) {
		number[i] = i;
		key[i] = key_of(i);
		if (i % 2)
			assert_int_equal(stand_put(stand, i, BLOCK), KVS_RESULT_DONE);
	}
	stand_get_keys(stand, key, number, 12, BLOCK, result);
	for (i = 0; i < 12 && stand->subject->keeps; i++)
		assert_int_equal(result[i], i % 2 ? KVS_RESULT_DONE : KVS_RESULT_MISSING);
	memset(result, 0x7f, sizeof(result));
	assert_int_equal(stand->store->ops->exists(stand->store, key, 12, result), 0);
	for (i = 0; i < 12 && stand->subject->keeps; i++)
		assert_int_equal(result[i], i % 2 ? KVS_RESULT_DONE : KVS_RESULT_MISSING);
	stand_put_keys(stand, key, number, 12, BLOCK, result);
	for (i = 0; i < 12 && stand->subject->keeps; i++) {
		assert_true(i % 2 ? stand_was_there(stand, result[i])
				  : result[i] == KVS_RESULT_DONE);
	}
}

/*
 * One bad span of two, and nothing is done for the good one either; a lane has taken what comes before it,
 * and refuses what comes behind it.
 */
void bad_spans_are_refused_whole(void **state)
{
	static const uint32_t bad_bytes[] = { 0, BLOCK + 4096 };
	struct stand         *stand = *state;
	const struct kvs_key  key[3] = { key_of(1), key_of(2), key_of(3) };
	uint32_t              i;

	for (i = 0; i < 4; i++) {
		enum kvs_result result[3] = { KVS_RESULT_UNKNOWN, KVS_RESULT_UNKNOWN,
					      KVS_RESULT_UNKNOWN };
		struct kvs_span span[3];
		bool            retired = false;

		span[0] = guarded_lend(&stand->guarded, BLOCK);
		span[1] = span[2] = span[0];
		span[1].bytes = bad_bytes[i % 2];
		assert_int_equal(stand_move(stand, 0, i < 2, key, span, 3, result, &retired),
				 KVS_E_INVALID);
		assert_int_equal(result[1], KVS_RESULT_UNKNOWN);
		assert_int_equal(result[2], KVS_RESULT_UNKNOWN);
		if (!stand->subject->lanes)
			assert_int_equal(result[0], KVS_RESULT_UNKNOWN);
		guarded_back(&stand->guarded, &span[0], retired);
	}
	if (!stand->subject->keeps)
		return;
	assert_int_equal(stand_exists(stand, 1),
			 stand->subject->lanes ? KVS_RESULT_DONE : KVS_RESULT_MISSING);
	assert_int_equal(stand_exists(stand, 3), KVS_RESULT_MISSING);
}

/* Five times what it holds: each put is answered, and what is then found is right. */
void a_full_store_evicts_or_refuses(void **state)
{
	struct stand *stand = *state;
	uint32_t      blocks = (uint32_t)(stand->info.capacity_bytes / BLOCK), i, found = 0;

	if (!stand_keeps(stand))
		return;
	blocks = blocks && blocks < 128 ? blocks : 128;
	for (i = 0; i < 5 * blocks; i++) {
		const enum kvs_result result = stand_put(stand, i, BLOCK);

		assert_true(result == KVS_RESULT_DONE || result == KVS_RESULT_NO_SPACE);
	}
	for (i = 0; i < 5 * blocks; i++) {
		const enum kvs_result result = stand_get(stand, i, BLOCK);

		assert_true(result == KVS_RESULT_DONE || result == KVS_RESULT_MISSING);
		found += result == KVS_RESULT_DONE;
	}
	assert_true(found > 0);
	if (stand->info.capacity_bytes)
		assert_true(found <= stand->info.capacity_bytes / BLOCK);
}
