/* SPDX-License-Identifier: Apache-2.0 */
/* Three ways into a strata file, which do the same: calls, lanes, lanes without io_uring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "ferry.h"
#include "named_block.h"
#include "os/os.h"
#include "quarry.h"

#define SEGMENTS 8u
#define BLOCKS ((SEGMENTS - 1) * QUARRY_SLOTS)

static int setup(void **state)
{
	static struct quarry quarry;

	quarry_init(&quarry, SEGMENTS);
	*state = &quarry;
	return 0;
}

static int teardown(void **state)
{
	quarry_fini(*state);
	return 0;
}

/* --- the same in every way -------------------------------------------------------------------- */

enum way { BY_CALLS, BY_LANES, BY_LANES_PLAINLY, WAY_COUNT };

#define SCRIPT_STEPS 1500u
#define SCRIPT_KEYS 60u

struct outcome {
	enum kvs_result results[SCRIPT_STEPS];
	struct kvs_key  keys[SCRIPT_KEYS];
	uint32_t        key_count;
	uint64_t        evicted, moved;
};

static enum kvs_result step_once(struct quarry *quarry, struct ferry *ferry, enum way way,
				 struct prng *prng)
{
	const uint32_t number = (uint32_t)prng_below(prng, SCRIPT_KEYS);
	const uint64_t dice = prng_below(prng, 20);

	if (dice == 0)
		return quarry_remove(quarry, number);
	if (dice == 1)
		return quarry_exists(quarry, number);
	if (dice == 2 && number % 10 == 0)
		return quarry_lock(quarry, number);
	if (dice == 3) {
		quarry_unlock(quarry, number);
		return KVS_RESULT_UNKNOWN;
	}
	if (way == BY_CALLS)
		return dice < 12 ? quarry_put(quarry, number) : quarry_get(quarry, number);
	return ferry_one(quarry->store, ferry, number, dice < 12);
}

static void play(enum way way, uint64_t seed, struct outcome *ret_outcome)
{
	struct ferry *const ferry = ferry_open();
	struct quarry      quarry;
	struct prng        prng;
	uint64_t           cursor = 0;
	uint32_t           i;

	quarry_init(&quarry, SEGMENTS);
	quarry.set.plain_io = way != BY_LANES;
	quarry_open(&quarry);
	prng_seed(&prng, seed);
	for (i = 0; i < SCRIPT_STEPS; i++) {
		ret_outcome->results[i] = step_once(&quarry, ferry, way, &prng);
		if (i % 400 == 399)
			quarry_reopen(&quarry);
	}
	strata_audit(quarry.store);
	assert_int_equal(strata_list(quarry.store, NULL, &cursor, ret_outcome->keys, SCRIPT_KEYS,
				     &ret_outcome->key_count),
			 0);
	assert_int_equal(cursor, 0);
	ret_outcome->evicted = quarry_info(&quarry).evicted_objects;
	ret_outcome->moved = quarry_info(&quarry).moved_objects;
	quarry_fini(&quarry);
	ferry_close(ferry);
}

static void every_way_does_the_same(void **state)
{
	static struct outcome outcomes[WAY_COUNT];
	uint64_t              seed;
	int                   way;

	(void)state;
	for (seed = 0; seed < 4; seed++) {
		memset(outcomes, 0, sizeof(outcomes));
		for (way = 0; way < WAY_COUNT; way++)
			play((enum way)way, seed, &outcomes[way]);
		assert_true(outcomes[0].evicted > 0 && outcomes[0].moved > 0);
		for (way = 1; way < WAY_COUNT; way++)
			assert_memory_equal(&outcomes[way], &outcomes[0], sizeof(outcomes[0]));
	}
}

/* --- a lane's queue --------------------------------------------------------------------------- */

static void a_lane_takes_what_it_has_room_for(void **state)
{
	struct quarry *const quarry = *state;
	struct ferry *const   ferry = ferry_open();
	uint32_t             i;
	int                  taken;

	quarry_open_large(quarry);
	for (i = 0; i < FERRY_ROWS; i++)
		ferry_load(ferry, i, i, true);
	taken = strata_submit(quarry->store, 3, ferry->io, FERRY_ROWS);
	assert_in_range(taken, 1, FERRY_ROWS - 1);
	assert_int_equal(strata_submit(quarry->store, 3, ferry->io, FERRY_ROWS), 0);
	/* Nobody waits for them: the store cannot be closed before they are answered. */
	assert_int_equal(strata_close(quarry->store), KVS_E_QUARANTINE);
	for (i = 0; i < (uint32_t)taken;)
		i += ferry_reap(quarry->store, 3, ferry, FERRY_FOREVER_NS);
	assert_int_equal(i, taken);
	for (i = 0; i < FERRY_ROWS; i++)
		ferry_load(ferry, i, i, true);
	ferry_cross(quarry->store, 3, ferry, FERRY_ROWS);
	for (i = 0; i < FERRY_ROWS; i++) {
		assert_int_equal(ferry->result[i],
				 i < (uint32_t)taken ? KVS_RESULT_EXISTS : KVS_RESULT_DONE);
		ferry_load(ferry, i, FERRY_ROWS - 1 - i, false);
	}
	ferry_cross(quarry->store, 63, ferry, FERRY_ROWS);
	for (i = 0; i < FERRY_ROWS; i++)
		assert_int_equal(ferry->result[i], KVS_RESULT_DONE);
	assert_int_equal(strata_submit(quarry->store, 64, ferry->io, 1), KVS_E_INVALID);
	assert_int_equal(strata_reap(quarry->store, 64, NULL, 0, 0), KVS_E_INVALID);
	assert_int_equal(strata_reap(quarry->store, 0, NULL, 0, 0), 0);
	ferry_close(ferry);
}

/* What comes before it is taken; then it is refused, and nothing of it is answered. */
static void a_bad_span_is_told_when_it_is_the_first(void **state)
{
	struct quarry *const  quarry = *state;
	struct ferry *const    ferry = ferry_open();
	const struct kvs_span bad[] = { { ferry->words, 0, QUARRY_BLOCK },
					{ ferry->words, 100, QUARRY_BLOCK },
					{ ferry->words, 2 * QUARRY_BLOCK, 2 * QUARRY_BLOCK },
					{ ferry->words + 1, 4096, 4096 } };
	size_t                i;

	quarry_open(quarry);
	for (i = 0; i < ARRAY_COUNT(bad); i++) {
		uint32_t row;

		for (row = 0; row < 3; row++)
			ferry_load(ferry, row, (uint32_t)(10 * i) + row, true);
		ferry->io[1].span = bad[i];
		assert_int_equal(strata_submit(quarry->store, 0, ferry->io, 3), 1);
		assert_int_equal(strata_submit(quarry->store, 0, ferry->io + 1, 2), KVS_E_INVALID);
		assert_int_equal(ferry_reap(quarry->store, 0, ferry, FERRY_FOREVER_NS), 1);
		assert_int_equal(ferry->result[0], KVS_RESULT_DONE);
		assert_int_equal(ferry->answered[1] + ferry->answered[2], 0);
		assert_int_equal(quarry_exists(quarry, (uint32_t)(10 * i) + 2), KVS_RESULT_MISSING);
	}
	ferry_close(ferry);
}

/* Each of many threads has a lane, and all have the same keys: an object is written once. */
#define LANES 6u
#define LANE_KEYS 24u
#define LANE_ROUNDS 12u

struct worker {
	struct kvs_store *store;
	uint32_t          lane; /* LANES: by calls */
	uint32_t          done[LANE_KEYS];
};

static void put_all(struct worker *worker, struct ferry *ferry)
{
	enum kvs_result result = KVS_RESULT_UNKNOWN;
	uint32_t        i;
	bool            retired;

	for (i = 0; i < LANE_KEYS; i++)
		ferry_load(ferry, i, (i + worker->lane) % LANE_KEYS, true);
	if (worker->lane < LANES)
		ferry_cross(worker->store, worker->lane, ferry, LANE_KEYS);
	for (i = 0; i < LANE_KEYS; i++) {
		if (worker->lane == LANES) {
			KVS_ASSERT(strata_put(worker->store, &ferry->keys[i], &ferry->io[i].span, 1,
					      &result, &retired) == 0);
			ferry->result[i] = result;
		}
		KVS_ASSERT(ferry->result[i] != KVS_RESULT_FAILED &&
			   ferry->result[i] != KVS_RESULT_NO_SPACE);
		worker->done[ferry->keys[i].offset] += ferry->result[i] == KVS_RESULT_DONE;
	}
}

static void *work(void *arg)
{
	struct worker *const worker = arg;
	struct ferry *const   ferry = ferry_open();
	uint32_t             round;

	for (round = 0; round < LANE_ROUNDS; round++)
		put_all(worker, ferry);
	ferry_close(ferry);
	return NULL;
}

static void a_key_put_by_many_is_written_once(void **state)
{
	struct quarry *const quarry = *state;
	struct worker        workers[LANES + 1] = { 0 };
	pthread_t            threads[LANES + 1];
	uint32_t             i, key, sum;

	quarry_open_large(quarry);
	for (i = 0; i <= LANES; i++) {
		workers[i] = (struct worker){ .store = quarry->store, .lane = i };
		assert_int_equal(os_thread_start(&threads[i], "worker", work, &workers[i]), 0);
	}
	for (i = 0; i <= LANES; i++)
		os_thread_join(threads[i]);
	for (key = 0; key < LANE_KEYS; key++) {
		for (i = 0, sum = 0; i <= LANES; i++)
			sum += workers[i].done[key];
		assert_int_equal(sum, 1);
	}
	assert_int_equal(quarry_report(quarry).put_bytes, LANE_KEYS * QUARRY_BLOCK);
	quarry_reopen(quarry);
	quarry_get_range(quarry, 0, LANE_KEYS);
}

/* Many lanes in a store so small that each waits for the others' writes: nobody waits for ever. */
struct presser {
	struct kvs_store *store;
	uint32_t          lane;
};

static void *press(void *arg)
{
	const struct presser *const presser = arg;
	struct ferry *const          ferry = ferry_open();
	struct prng                 prng;
	uint32_t                    round, i;

	prng_seed(&prng, presser->lane);
	for (round = 0; round < 25; round++) {
		for (i = 0; i < 40; i++) {
			ferry_load(ferry, i, 1000 * i + (uint32_t)prng_below(&prng, 4),
				prng_chance(&prng, 1, 2));
		}
		ferry_cross(presser->store, presser->lane, ferry, 40);
		for (i = 0; i < 40; i++) {
			KVS_ASSERT(ferry->result[i] != KVS_RESULT_FAILED &&
				   ferry->result[i] != KVS_RESULT_CORRUPT);
		}
	}
	ferry_close(ferry);
	return NULL;
}

static void crowded_lanes_make_progress(void **state)
{
	struct quarry *const quarry = *state;
	struct presser       pressers[8];
	pthread_t            threads[8];
	int                  durability;
	uint32_t             i;

	for (durability = STRATA_NONE; durability <= STRATA_PUT; durability++) {
		quarry->set.capacity_bytes = QUARRY_CAPACITY(4);
		quarry->set.durability = (enum strata_durability)durability;
		quarry_open(quarry);
		for (i = 0; i < 8; i++) {
			pressers[i] = (struct presser){ .store = quarry->store, .lane = i };
			assert_int_equal(os_thread_start(&threads[i], "presser", press, &pressers[i]),
					 0);
		}
		for (i = 0; i < 8; i++)
			os_thread_join(threads[i]);
		assert_true(quarry_info(quarry).evicted_objects > 0);
		quarry_close(quarry);
	}
}

static void *put_some(void *arg)
{
	const struct presser *const presser = arg;
	struct ferry *const          ferry = ferry_open();
	uint32_t                    i;

	for (i = 0; i < 40; i++)
		ferry_load(ferry, i, 100 * presser->lane + i, true);
	ferry_cross(presser->store, presser->lane, ferry, 40);
	ferry_close(ferry);
	return NULL;
}

/* The kernel takes the ring of a thread that ended down at its own time, and has the file open till then. */
static void a_close_leaves_no_lock_behind(void **state)
{
	struct quarry *const quarry = *state;
	struct presser       pressers[4];
	pthread_t            threads[4];
	uint32_t             round, i;

	quarry_open_large(quarry);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 4; i++) {
			pressers[i] = (struct presser){ quarry->store, i };
			assert_int_equal(os_thread_start(&threads[i], "putter", put_some, &pressers[i]),
					 0);
		}
		for (i = 0; i < 4; i++)
			os_thread_join(threads[i]);
		quarry_reopen(quarry);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_way_does_the_same),
		TEST(a_lane_takes_what_it_has_room_for),
		TEST(a_bad_span_is_told_when_it_is_the_first),
		TEST(a_key_put_by_many_is_written_once),
		TEST(crowded_lanes_make_progress),
		TEST(a_close_leaves_no_lock_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
