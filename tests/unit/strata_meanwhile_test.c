/* SPDX-License-Identifier: Apache-2.0 */
/* What may happen in the midst of a strata file's I/O. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>

#include <cmocka.h>

#include "base/err.h"
#include "ferry.h"
#include "named_block.h"
#include "os/hook.h"
#include "quarry.h"
#include "strata/space.h"

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
	os_io_hook_set(NULL, NULL);
	quarry_fini(*state);
	return 0;
}

/* --- while it is being read ------------------------------------------------------------------- */

struct meanwhile {
	struct quarry *quarry;
	bool           done;
};

/* The object goes, and so much comes that every other segment is used anew. */
static bool remove_meanwhile(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct meanwhile *const meanwhile = ctx;
	uint32_t                i;

	(void)ret_result;
	if (io->kind != OS_IO_READ || meanwhile->done)
		return false;
	meanwhile->done = true;
	assert_int_equal(quarry_remove(meanwhile->quarry, 1), KVS_RESULT_DONE);
	for (i = 0; i < 4 * BLOCKS; i++)
		assert_int_equal(quarry_put(meanwhile->quarry, 100 + i), KVS_RESULT_DONE);
	strata_audit(meanwhile->quarry->store);
	assert_int_equal(quarry_put(meanwhile->quarry, 1), KVS_RESULT_DONE);
	return false;
}

/* By a lane the hook runs as the read is handed over: the kernel does it after all that. */
static void what_is_read_may_go_and_stays_whole(void **state)
{
	struct quarry *const quarry = *state;
	struct ferry *const   ferry = ferry_open();
	const struct kvs_key key = key_of(1);
	int                  by_lane;

	for (by_lane = 0; by_lane < 2; by_lane++) {
		struct meanwhile      meanwhile = { .quarry = quarry };
		enum kvs_result       result = KVS_RESULT_UNKNOWN;
		const struct kvs_span span = { ferry->words, QUARRY_BLOCK, QUARRY_BLOCK };
		bool                  retired = false;

		quarry_open(quarry);
		quarry_put_range(quarry, 0, BLOCKS);
		os_io_hook_set(remove_meanwhile, &meanwhile);
		if (by_lane) {
			result = ferry_one(quarry->store, ferry, 1, false);
		} else {
			assert_int_equal(strata_get(quarry->store, &key, &span, 1, &result, &retired),
					 0);
			assert_true(retired);
		}
		os_io_hook_set(NULL, NULL);
		assert_true(meanwhile.done);
		assert_int_equal(result, KVS_RESULT_DONE);
		assert_true(is_filled(ferry->words, 1, QUARRY_BLOCK));
		/* The one that was put since is another record, and untouched by that read. */
		quarry_get_range(quarry, 1, 2);
		assert_int_equal(quarry_info(quarry).corrupt_objects, 0);
		quarry_close(quarry);
		assert_int_equal(strata_format(&quarry->set, NULL), 0);
	}
	ferry_close(ferry);
}

/* --- while it is being written ---------------------------------------------------------------- */

struct rival {
	struct quarry  *quarry;
	enum kvs_result put, get, exists, removed;
	int64_t         answer; /* of the write; 0: it is done */
	bool            done;
};

static bool put_meanwhile(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct rival *const rival = ctx;

	if (io->kind != OS_IO_WRITE || io->bytes != QUARRY_BLOCK || rival->done)
		return false;
	rival->done = true;
	rival->put = quarry_put(rival->quarry, 1);
	rival->get = quarry_get(rival->quarry, 1);
	rival->exists = quarry_exists(rival->quarry, 1);
	rival->removed = quarry_remove(rival->quarry, 1);
	fill(io->buffer, 1, QUARRY_BLOCK); /* one buffer serves all calls of a quarry */
	*ret_result = rival->answer;
	return rival->answer < 0;
}

/* It is not there yet, and nobody knows whether it will be: that write may fail. */
static void what_is_being_written_is_unknown(void **state)
{
	struct quarry *const quarry = *state;
	struct ferry *const   ferry = ferry_open();
	int                  by_lane, fails;

	quarry_open(quarry);
	for (by_lane = 0; by_lane < 2; by_lane++) {
		for (fails = 1; fails >= 0; fails--) {
			struct rival          rival = { .quarry = quarry, .answer = fails ? -EIO : 0 };
			const enum kvs_result expected =
				fails ? KVS_RESULT_FAILED : KVS_RESULT_DONE;

			os_io_hook_set(put_meanwhile, &rival);
			assert_int_equal(by_lane ? ferry_one(quarry->store, ferry, 1, true)
						 : quarry_put(quarry, 1),
					 expected);
			os_io_hook_set(NULL, NULL);
			assert_int_equal(rival.put, KVS_RESULT_UNKNOWN);
			assert_int_equal(rival.get, KVS_RESULT_MISSING);
			assert_int_equal(rival.exists, KVS_RESULT_MISSING);
			assert_int_equal(rival.removed, KVS_RESULT_MISSING);
			assert_int_equal(quarry_get(quarry, 1),
					 fails ? KVS_RESULT_MISSING : KVS_RESULT_DONE);
			strata_audit(quarry->store);
		}
		assert_int_equal(quarry_remove(quarry, 1), KVS_RESULT_DONE);
	}
	ferry_close(ferry);
}

/* --- while all places are taken --------------------------------------------------------------- */

/* A clock that a test may hurry: each look at it lets so much more go by. */
static uint64_t hurry_ns, hurried_ns;
static uint32_t looks;

uint64_t __real_os_now_ns(void);
uint64_t __wrap_os_now_ns(void);

uint64_t __wrap_os_now_ns(void)
{
	looks++;
	hurried_ns += hurry_ns;
	return __real_os_now_ns() + hurried_ns;
}

/* As many as fill all segments that may be unsealed, and one more. */
#define CROWD (SPACE_DRAFTS * QUARRY_SLOTS + 1)

struct crowd {
	struct quarry  *quarry;
	uint32_t        inside; /* puts that are being written */
	enum kvs_result result[CROWD];
};

/* Each begins as the one before is written, and that one ends behind it. */
static bool put_next(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct crowd *const crowd = ctx;
	uint32_t            number;

	(void)ret_result;
	if (io->kind != OS_IO_WRITE || io->bytes != QUARRY_BLOCK || crowd->inside == CROWD)
		return false;
	number = crowd->inside++;
	/* The last waits for what ends only behind it. */
	if (number == CROWD - 2) {
		looks = 0;
		hurry_ns = UINT64_C(3000000000);
	}
	crowd->result[number + 1] = quarry_put(crowd->quarry, number + 1);
	hurry_ns = 0;
	fill(io->buffer, number, QUARRY_BLOCK);
	return false;
}

/* Others that never end must not hold a put for ever: 10 s are its patience. */
static void a_put_that_waited_in_vain_is_refused_and_counted(void **state)
{
	struct quarry *const quarry = *state;
	struct crowd         crowd = { .quarry = quarry };
	uint32_t             i;

	if (!LINKER_WRAPS)
		skip();
	quarry_open(quarry);
	os_io_hook_set(put_next, &crowd);
	crowd.result[0] = quarry_put(quarry, 0);
	os_io_hook_set(NULL, NULL);
	assert_int_equal(crowd.inside, CROWD - 1);
	for (i = 0; i < CROWD - 1; i++)
		assert_int_equal(crowd.result[i], KVS_RESULT_DONE);
	assert_int_equal(crowd.result[CROWD - 1], KVS_RESULT_NO_SPACE);
	/* It waited first: until 12 s, or less on a machine that is slow itself. */
	assert_in_range(looks, 2, 4);
	assert_int_equal(quarry_info(quarry).refused_full, 1);
	strata_audit(quarry->store);
	/* It left nothing behind, and the others give their places back. */
	assert_int_equal(quarry_exists(quarry, CROWD - 1), KVS_RESULT_MISSING);
	quarry_put_range(quarry, CROWD - 1, BLOCKS);
	quarry_get_range(quarry, 0, BLOCKS);
	assert_int_equal(quarry_info(quarry).refused_full, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_put_that_waited_in_vain_is_refused_and_counted),
		TEST(what_is_being_written_is_unknown),
		TEST(what_is_read_may_go_and_stays_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
