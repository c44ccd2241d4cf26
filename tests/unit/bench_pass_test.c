/* SPDX-License-Identifier: Apache-2.0 */
/* A pass of a bench: each object moves once, whatever a store's lane has room for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "app/bench_pass.h"

#define BYTES 4096u
#define DEPTH 8u
#define OBJECTS 100u

/* A lane that answers the youngest row first, or batches; it notes the keys it saw. */
struct fake {
	struct kvs_store store;
	uint32_t         room;     /* of the lane */
	uint64_t         odd_row;  /* counted from 1: this one comes out as odd_result; 0: none */
	enum kvs_result  odd_result;
	bool             odd_unretired;
	int              refusal;  /* of every submit, unless 0 */
	struct kvs_io    rows[64];
	uint64_t         numbers[64];
	uint32_t         waiting;
	uint32_t         peak;
	uint64_t         seen;
	struct kvs_key   keys[OBJECTS];
};

static void see(struct fake *fake, const struct kvs_key *key, const struct kvs_span *span)
{
	assert_true(fake->seen < OBJECTS);
	assert_int_equal(span->bytes, BYTES);
	assert_true(span->room >= BYTES + ARENA_TRAILER_BYTES);
	assert_null(memchr(span->ptr, 0, BYTES));
	fake->keys[fake->seen++] = *key;
}

static int fake_submit(struct kvs_store *store, uint32_t lane, const struct kvs_io *io,
		       uint32_t count)
{
	struct fake *const fake = (struct fake *)store;
	uint32_t           i;

	assert_int_equal(lane, 0);
	assert_true(count > 0);
	if (fake->refusal)
		return fake->refusal;
	for (i = 0; i < count && fake->waiting < fake->room; i++) {
		see(fake, io[i].key, &io[i].span);
		fake->numbers[fake->waiting] = fake->seen;
		fake->rows[fake->waiting++] = io[i];
	}
	fake->peak = fake->waiting > fake->peak ? fake->waiting : fake->peak;
	return (int)i;
}

static int fake_reap(struct kvs_store *store, uint32_t lane, struct kvs_io_done *ret_done,
		     uint32_t done_max, uint64_t timeout_ns)
{
	struct fake *const fake = (struct fake *)store;
	bool               odd;

	(void)lane;
	(void)timeout_ns;
	assert_true(done_max > 0 && fake->waiting > 0);
	odd = fake->numbers[--fake->waiting] == fake->odd_row;
	*ret_done = (struct kvs_io_done){ .cookie = fake->rows[fake->waiting].cookie,
					  .result = odd ? fake->odd_result : KVS_RESULT_DONE,
					  .retired = !odd || !fake->odd_unretired };
	return 1;
}

static int fake_batch(struct kvs_store *store, const struct kvs_key *key,
		      const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		      bool *ret_retired)
{
	struct fake *const fake = (struct fake *)store;
	uint32_t           i;

	assert_true(count <= DEPTH);
	for (i = 0; i < count; i++) {
		see(fake, &key[i], &span[i]);
		result[i] = fake->seen == fake->odd_row ? fake->odd_result : KVS_RESULT_DONE;
	}
	*ret_retired = true;
	return 0;
}

static const struct kvs_store_ops lane_ops = { .submit = fake_submit, .reap = fake_reap };
static const struct kvs_store_ops batch_ops = { .get = fake_batch, .put = fake_batch };

static int run_pass(struct fake *fake, bool may_refuse, struct bench_pass_figures *ret_figures,
		    struct kvs_error *err)
{
	static struct bench_window window;
	struct bench_watch         watch = { .total_bytes = 1 };
	const struct bench_pass    pass = { .store = &fake->store, .window = &window,
					    .watch = &watch, .objects = OBJECTS, .is_put = true,
					    .may_refuse = may_refuse };
	int                        rc;

	assert_int_equal(bench_window_open(&window, BYTES, DEPTH, err), 0);
	rc = bench_pass(&pass, ret_figures, err);
	bench_window_close(&window);
	return rc;
}

static void check_keys(const struct fake *fake)
{
	uint32_t i, j;

	assert_int_equal(fake->seen, OBJECTS);
	for (i = 0; i < OBJECTS; i++) {
		for (j = 0; j < i; j++)
			assert_memory_not_equal(&fake->keys[i], &fake->keys[j], sizeof(*fake->keys));
	}
}

static void each_object_moves_once(void **state)
{
	static const uint32_t rooms[] = { 0, 1, 3, DEPTH, 64 };
	struct kvs_key        first[OBJECTS];
	size_t                i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(rooms); i++) {
		struct fake               fake = { .store = { rooms[i] ? &lane_ops : &batch_ops },
						   .room = rooms[i] };
		struct bench_pass_figures figures;
		struct kvs_error          err;

		assert_int_equal(run_pass(&fake, false, &figures, &err), 0);
		assert_int_equal(figures.moved_bytes, OBJECTS * BYTES);
		assert_int_equal(figures.refused, 0);
		assert_true(figures.seconds > 0 && figures.p50_us <= figures.p99_us);
		assert_int_equal(fake.peak, rooms[i] < DEPTH ? rooms[i] : DEPTH);
		check_keys(&fake);
		/* The same keys in the same order, whoever the store is. */
		if (i == 0)
			memcpy(first, fake.keys, sizeof(first));
		assert_memory_equal(first, fake.keys, sizeof(first));
	}
}

static void an_object_that_does_not_move_ends_the_pass(void **state)
{
	uint32_t room;

	(void)state;
	for (room = 0; room <= 3; room += 3) {
		struct fake               fake = { .store = { room ? &lane_ops : &batch_ops },
						   .room = room, .odd_row = 50,
						   .odd_result = KVS_RESULT_NO_SPACE };
		struct bench_pass_figures figures;
		struct kvs_error          err;

		assert_int_equal(run_pass(&fake, false, &figures, &err), -EIO);
		assert_string_equal(err.message, "store: put: refused for want of space");
		assert_true(fake.seen < OBJECTS);
		/* What was under way has been answered. */
		assert_int_equal(fake.waiting, 0);
	}
}

static void refusals_may_be_counted(void **state)
{
	struct fake               fake = { .store = { &lane_ops }, .room = 3, .odd_row = 50,
					   .odd_result = KVS_RESULT_NO_SPACE };
	struct bench_pass_figures figures;
	struct kvs_error          err;

	(void)state;
	assert_int_equal(run_pass(&fake, true, &figures, &err), 0);
	assert_int_equal(figures.refused, 1);
	assert_int_equal(figures.moved_bytes, (OBJECTS - 1) * BYTES);
}

static void a_lane_that_breaks_ends_the_pass(void **state)
{
	struct fake               unretired = { .store = { &lane_ops }, .room = 3, .odd_row = 50,
						.odd_result = KVS_RESULT_DONE,
						.odd_unretired = true };
	struct fake               closed = { .store = { &lane_ops }, .room = 0 };
	struct fake               refusing = { .store = { &lane_ops }, .refusal = -ENOMEM };
	struct bench_pass_figures figures;
	struct kvs_error          err;

	(void)state;
	assert_int_equal(run_pass(&unretired, false, &figures, &err), -EIO);
	assert_string_equal(err.message, "store: put: a block has not come back");
	assert_int_equal(unretired.waiting, 0);
	assert_int_equal(run_pass(&closed, false, &figures, &err), -EIO);
	assert_string_equal(err.message, "store: put: an empty lane takes no row");
	assert_int_equal(run_pass(&refusing, false, &figures, &err), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_object_moves_once),
		cmocka_unit_test(an_object_that_does_not_move_ends_the_pass),
		cmocka_unit_test(refusals_may_be_counted),
		cmocka_unit_test(a_lane_that_breaks_ends_the_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
