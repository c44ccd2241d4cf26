/* SPDX-License-Identifier: Apache-2.0 */
/* Promises of those who are asked by submit and reap. */
#include "stand.h"

#include "named_block.h"
#include "promises.h"

#define ROWS 24u

static bool has_lanes(const struct stand *stand)
{
	if (!stand->store->ops->submit)
		print_message("# %s has no lanes\n", stand->subject->name);
	return stand->store->ops->submit != NULL;
}

/* Every third row is a put; of the gets half find something, in two lengths, one of them wrong. */
static enum kvs_result expected(uint32_t row)
{
	if (row % 3 == 0)
		return KVS_RESULT_DONE;
	if (row % 2 == 0)
		return KVS_RESULT_MISSING;
	return row % 3 == 1 ? KVS_RESULT_DONE : KVS_RESULT_CORRUPT;
}

static struct kvs_io row_of(struct stand *stand, uint32_t round, uint32_t row,
			    const struct kvs_key *key)
{
	struct kvs_io io = { .is_put = row % 3 == 0, .key = key };

	io.span = guarded_lend(&stand->guarded, row % 3 == 1 ? 4096 : BLOCK);
	if (io.is_put)
		fill(io.span.ptr, 100 * round + row, BLOCK);
	return io;
}

/* The device ends them in an order of its own, and each result belongs to its row. */
void rows_of_both_kinds_cross_together(void **state)
{
	struct stand   *stand = *state;
	struct kvs_key  key[ROWS];
	struct kvs_io   io[ROWS];
	enum kvs_result result[ROWS];
	uint32_t        round, i;
	bool            retired = false;

	if (!has_lanes(stand))
		return;
	for (i = 1; i < ROWS; i += 2) {
		if (i % 3 != 0)
			assert_int_equal(stand_put(stand, i, 4096), KVS_RESULT_DONE);
	}
	for (round = 1; round < 40; round++) {
		for (i = 0; i < ROWS; i++) {
			key[i] = key_of(i % 3 == 0 ? 100 * round + i : i);
			io[i] = row_of(stand, round, i, &key[i]);
		}
		assert_int_equal(stand_cross(stand, round, io, ROWS, result, &retired), 0);
		for (i = 0; i < ROWS; i++) {
			assert_int_equal(result[i], expected(i));
			if (result[i] == KVS_RESULT_DONE) {
				assert_true(is_filled(io[i].span.ptr, key[i].offset,
						      (uint32_t)io[i].span.bytes));
			}
			guarded_back(&stand->guarded, &io[i].span, retired);
			if (i % 3 == 0) {
				assert_int_equal(stand_remove(stand, 100 * round + i),
						 KVS_RESULT_DONE);
			}
		}
		assert_true(retired && !*stand->guarded.violation);
	}
}

/* With nothing to wait for, or no time to wait. */
void a_lane_waits_no_longer_than_asked(void **state)
{
	struct stand      *stand = *state;
	struct kvs_io_done done;

	if (!has_lanes(stand))
		return;
	assert_int_equal(stand->store->ops->reap(stand->store, 5, &done, 1, 0), 0);
	assert_int_equal(stand->store->ops->reap(stand->store, 5, &done, 1, 1000000), 0);
	assert_int_equal(stand_put(stand, 1, BLOCK), KVS_RESULT_DONE);
	assert_int_equal(stand->store->ops->reap(stand->store, 0, &done, 1, 0), 0);
}
