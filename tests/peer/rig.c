/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <stdlib.h>

#define POISON 0xa5
#define STRIDE(bytes) (((bytes) + RIG_GUARD + 63) / 64 * 64)

void rig_open(struct rig *rig, const char *spec, uint32_t block_bytes)
{
	struct kvs_error err = { 0 };

	*rig = (struct rig){ .memory = malloc((size_t)RIG_ROWS * STRIDE(block_bytes)) };
	assert_non_null(rig->memory);
	if (store_open(spec, block_bytes, "lru", &rig->store, &err) != 0)
		fail_msg("%s: %s", spec, err.message);
}

void rig_close(struct rig *rig)
{
	assert_int_equal(rig->store->ops->close(rig->store), 0);
	free(rig->memory);
}

void rig_batch(struct rig *rig, uint32_t first, uint32_t count, uint32_t bytes)
{
	uint32_t i;

	rig->bytes = bytes;
	rig->count = count;
	for (i = 0; i < count; i++) {
		rig->keys[i] = key_of(first + i);
		rig->spans[i] = (struct kvs_span){ rig->memory + (size_t)i * STRIDE(bytes), bytes,
						   bytes + RIG_GUARD };
		rig->results[i] = KVS_RESULT_UNKNOWN;
	}
}

static void check_guards(const struct rig *rig)
{
	uint32_t i, b;

	for (i = 0; i < rig->count; i++) {
		/* The room is the store's to use; past it nothing may change. */
		const uint8_t *const end = (const uint8_t *)rig->spans[i].ptr + rig->spans[i].room;

		for (b = 0; b < STRIDE(rig->bytes) - rig->bytes - RIG_GUARD; b++)
			assert_int_equal(end[b], POISON);
	}
}

int rig_put(struct rig *rig)
{
	bool     retired = false;
	uint32_t i;
	int      rc;

	memset(rig->memory, POISON, (size_t)rig->count * STRIDE(rig->bytes));
	for (i = 0; i < rig->count; i++)
		fill(rig->spans[i].ptr, rig->keys[i].offset, rig->bytes);
	rc = rig->store->ops->put(rig->store, rig->keys, rig->spans, rig->count, rig->results,
				  &retired);
	assert_true(retired);
	rig_expect_payloads(rig);
	check_guards(rig);
	return rc;
}

int rig_get(struct rig *rig)
{
	bool retired = false;
	int  rc;

	memset(rig->memory, POISON, (size_t)rig->count * STRIDE(rig->bytes));
	rc = rig->store->ops->get(rig->store, rig->keys, rig->spans, rig->count, rig->results,
				  &retired);
	assert_true(retired);
	check_guards(rig);
	return rc;
}

void rig_expect(const struct rig *rig, enum kvs_result result)
{
	uint32_t i;

	for (i = 0; i < rig->count; i++) {
		if (rig->results[i] != result)
			fail_msg("row %u: %d, not %d", i, rig->results[i], result);
	}
}

void rig_expect_payloads(const struct rig *rig)
{
	uint32_t i;

	for (i = 0; i < rig->count; i++)
		assert_true(is_filled(rig->spans[i].ptr, rig->keys[i].offset, rig->bytes));
}

void rig_expect_well(struct rig *rig, uint32_t number)
{
	rig_batch(rig, number, 1, 4096);
	assert_int_equal(rig_put(rig), 0);
	rig_expect(rig, KVS_RESULT_DONE);
	assert_int_equal(rig->store->ops->exists(rig->store, rig->keys, 1, rig->results), 0);
	rig_expect(rig, KVS_RESULT_DONE);
	assert_int_equal(rig_get(rig), 0);
	rig_expect(rig, KVS_RESULT_DONE);
	rig_expect_payloads(rig);
}

void rig_refused(const char *spec, int code, const char *sentence)
{
	struct kvs_store *store = NULL;
	struct kvs_error  err = { 0 };
	const int         rc = store_open(spec, 65536, "lru", &store, &err);

	assert_true(rc < 0);
	assert_null(store);
	if (code)
		assert_int_equal(rc, code);
	assert_int_equal(err.code, rc);
	if (strncmp(err.message, sentence, strlen(sentence)) != 0)
		fail_msg("%s: %s", spec, err.message);
}
