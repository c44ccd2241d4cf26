/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adapter as its two controllers see it: submit, wait on a descriptor, take once.
 *
 * Most tests run over the shelf of tests/lib, whose gate and fates say what the store does; a test
 * never waits for time, it waits on the adapter's descriptors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapter/adapter.h"
#include "named_block.h"
#include "os/os.h"
#include "shelf.h"
#include "store/store.h"

#define BATCH_MAX 2500u
#define FOREVER_NS UINT64_MAX

static const struct adapter_options options = {
	.exec = { .limits = { .outstanding_max = 64, .queue_max = 64, .lock_max = 4096 },
		  .workers = { 1, 2, 2 } },
	.op_max = { 8, 8, 8 }
};

/* A batch of numbered objects and the buffers of their payload. */
struct batch {
	uint32_t        count;
	struct kvs_key  keys[BATCH_MAX];
	struct kvs_span spans[BATCH_MAX];
	uint64_t        bytes[BATCH_MAX][SHELF_BYTES / 8];
	uint64_t        words[BATCH_MAX / 64 + 1];
};

struct rig {
	struct shelf    shelf;
	struct adapter *adapter;
	int             epoll_fd; /* on all three descriptors, tagged with their kind */
	struct batch    batch;
};

static void rig_open(struct rig *rig, const struct adapter_options *how)
{
	int kind;

	assert_int_equal(adapter_open(&rig->shelf.store, how, &rig->adapter, NULL), 0);
	rig->epoll_fd = os_epoll();
	for (kind = 0; kind < TASK_KIND_COUNT; kind++)
		assert_int_equal(os_epoll_add(rig->epoll_fd, adapter_fd(rig->adapter, kind),
					      (uint64_t)kind),
				 0);
}

static struct rig *rig_new(bool locks, const struct adapter_options *how)
{
	struct rig *const rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	shelf_init(&rig->shelf, locks);
	rig_open(rig, how);
	return rig;
}

static void rig_free(struct rig *rig)
{
	os_close(rig->epoll_fd);
	shelf_fini(&rig->shelf);
	free(rig);
}

static int setup(void **state)
{
	*state = rig_new(true, &options);
	return 0;
}

/* Every test ends like this: nothing is left locked, whatever it did. */
static int teardown(void **state)
{
	struct rig *const rig = *state;

	shelf_open(&rig->shelf);
	assert_int_equal(adapter_close(rig->adapter, FOREVER_NS), 0);
	assert_true(rig->shelf.closed);
	assert_int_equal(shelf_locked(&rig->shelf), 0);
	rig_free(rig);
	return 0;
}

/* --- batches and waiting ------------------------------------------------------------------------ */

/* Objects number, number + 1, ...; the buffers hold what a store of them would write. */
static struct batch *name(struct rig *rig, uint32_t number, uint32_t count)
{
	struct batch *const batch = &rig->batch;
	uint32_t            i;

	batch->count = count;
	for (i = 0; i < count; i++) {
		batch->keys[i] = key_of(number + i);
		batch->spans[i] =
			(struct kvs_span){ batch->bytes[i], SHELF_BYTES, SHELF_BYTES };
		fill(batch->bytes[i], number + i, SHELF_BYTES);
	}
	memset(batch->words, 0xff, sizeof(batch->words));
	return batch;
}

static void blank(struct batch *batch)
{
	memset(batch->bytes, 0, sizeof(batch->bytes));
}

static bool is_readable(const struct rig *rig, enum task_kind kind)
{
	uint64_t  tags[TASK_KIND_COUNT];
	const int count = os_epoll_wait(rig->epoll_fd, tags, TASK_KIND_COUNT, 0);
	int       i;

	for (i = 0; i < count; i++) {
		if (tags[i] == kind)
			return true;
	}
	return false;
}

static void wait_readable(const struct rig *rig, enum task_kind kind)
{
	uint64_t tags[TASK_KIND_COUNT];

	while (!is_readable(rig, kind))
		os_epoll_wait(rig->epoll_fd, tags, TASK_KIND_COUNT, FOREVER_NS);
}

static struct task_result pop_one(struct rig *rig)
{
	struct task_result result;

	wait_readable(rig, TASK_STORE);
	assert_int_equal(adapter_pop_stored(rig->adapter, &result, 1), 1);
	return result;
}

static struct task_result store(struct rig *rig, uint32_t number, uint32_t count)
{
	struct batch *const batch = name(rig, number, count);
	struct task_result  result;
	uint64_t            id;

	assert_int_equal(adapter_submit_store(rig->adapter, batch->keys, batch->spans, count, &id),
			 0);
	result = pop_one(rig);
	assert_int_equal(result.task_id, id);
	return result;
}

static void await_lookup(struct rig *rig, uint64_t id)
{
	while (!adapter_query_lookup(rig->adapter, id, rig->batch.words))
		wait_readable(rig, TASK_LOOKUP);
}

/* How many were found and locked; the rows are in batch.words. */
static size_t lookup(struct rig *rig, uint32_t number, uint32_t count)
{
	const struct batch *const batch = name(rig, number, count);
	uint64_t                  id;

	assert_int_equal(adapter_submit_lookup(rig->adapter, batch->keys, count, &id), 0);
	await_lookup(rig, id);
	return bits_count(batch->words, count);
}

static void unlock(struct rig *rig, uint32_t number, uint32_t count)
{
	const struct batch *const batch = name(rig, number, count);

	adapter_unlock(rig->adapter, batch->keys, count);
}

static uint64_t submit_load(struct rig *rig, uint32_t number, uint32_t count)
{
	struct batch *const batch = name(rig, number, count);
	uint64_t            id;

	blank(batch);
	assert_int_equal(adapter_submit_load(rig->adapter, batch->keys, batch->spans, count, &id),
			 0);
	return id;
}

static bool await_load(struct rig *rig, uint64_t id)
{
	bool retired;

	while (!adapter_query_load(rig->adapter, id, rig->batch.words, &retired))
		wait_readable(rig, TASK_LOAD);
	return retired;
}

/* The same for loads; every row that says so has its bytes and no other was touched. */
static size_t load(struct rig *rig, uint32_t number, uint32_t count)
{
	static const uint64_t untouched[SHELF_BYTES / 8];
	uint32_t              i;

	assert_true(await_load(rig, submit_load(rig, number, count)));
	for (i = 0; i < count; i++) {
		if (bits_test(rig->batch.words, i))
			assert_true(is_filled(rig->batch.bytes[i], number + i, SHELF_BYTES));
		else
			assert_memory_equal(rig->batch.bytes[i], untouched, SHELF_BYTES);
	}
	return bits_count(rig->batch.words, count);
}

/* --- descriptors ---------------------------------------------------------------------------------- */

static void B2_1_descriptors_are_distinct_within_and_across_adapters(void **state)
{
	struct rig *const one = *state;
	struct rig       *two = rig_new(true, &options);
	int               fds[2 * TASK_KIND_COUNT];
	int               i, j;

	for (i = 0; i < TASK_KIND_COUNT; i++) {
		fds[2 * i] = adapter_fd(one->adapter, i);
		fds[2 * i + 1] = adapter_fd(two->adapter, i);
	}
	for (i = 0; i < 2 * TASK_KIND_COUNT; i++) {
		assert_true(fds[i] >= 0);
		for (j = 0; j < i; j++)
			assert_int_not_equal(fds[i], fds[j]);
	}
	teardown((void **)&two);
}

static void B2_1_a_completion_signals_the_descriptor_of_its_kind(void **state)
{
	struct rig *const   rig = *state;
	struct batch *const batch = name(rig, 0, 3);
	uint64_t            id;
	bool                retired;

	assert_int_equal(adapter_submit_store(rig->adapter, batch->keys, batch->spans, 3, &id), 0);
	wait_readable(rig, TASK_STORE);
	assert_false(is_readable(rig, TASK_LOOKUP) || is_readable(rig, TASK_LOAD));
	pop_one(rig);
	assert_false(is_readable(rig, TASK_STORE));

	assert_int_equal(adapter_submit_lookup(rig->adapter, batch->keys, 3, &id), 0);
	wait_readable(rig, TASK_LOOKUP);
	assert_false(is_readable(rig, TASK_STORE) || is_readable(rig, TASK_LOAD));
	assert_true(adapter_query_lookup(rig->adapter, id, batch->words));
	assert_false(is_readable(rig, TASK_LOOKUP));

	assert_int_equal(adapter_submit_load(rig->adapter, batch->keys, batch->spans, 3, &id), 0);
	wait_readable(rig, TASK_LOAD);
	assert_false(is_readable(rig, TASK_STORE) || is_readable(rig, TASK_LOOKUP));
	assert_true(adapter_query_load(rig->adapter, id, batch->words, &retired));
	assert_false(is_readable(rig, TASK_LOAD));
}

/* A controller reads the descriptor itself; what completes after that signals again. */
static void B2_1_a_drained_descriptor_is_signalled_by_the_next_completion(void **state)
{
	struct rig *const   rig = *state;
	struct batch *const batch = name(rig, 0, 2);
	uint64_t            ids[2];
	int                 i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(adapter_submit_lookup(rig->adapter, batch->keys, 2, &ids[i]), 0);
		wait_readable(rig, TASK_LOOKUP);
		os_eventfd_drain(adapter_fd(rig->adapter, TASK_LOOKUP));
	}
	assert_true(adapter_query_lookup(rig->adapter, ids[1], batch->words));
	assert_true(adapter_query_lookup(rig->adapter, ids[0], batch->words));
}

/* --- stores ------------------------------------------------------------------------------------- */

static void B2_2_a_store_is_all_or_nothing_with_the_bytes_that_moved(void **state)
{
	static const struct {
		uint32_t        number, count;
		enum shelf_fate last; /* of the last object */
		bool            ok;
		uint64_t        moved;
		enum op_reason  reason;
	} rows[] = {
		{ 0, 1, SHELF_FINE, true, 1, OP_REASON_NONE },
		{ 1, 3, SHELF_FINE, true, 3, OP_REASON_NONE },
		{ 0, 4, SHELF_FINE, true, 0, OP_REASON_NONE }, /* all were there */
		{ 2, 5, SHELF_FINE, true, 3, OP_REASON_NONE },
		{ 6, 2, SHELF_NO_SPACE, false, 0, OP_REASON_NO_SPACE },
		{ 6, 1, SHELF_FINE, true, 0, OP_REASON_NONE },
		{ 20, 1500, SHELF_FINE, true, 1500, OP_REASON_NONE },
		{ 1600, 1500, SHELF_NO_SPACE, false, 0, OP_REASON_NO_SPACE },
		{ 30, 2, SHELF_FAILS, false, 0, OP_REASON_BACKEND },
	};
	struct rig *const rig = *state;
	size_t            i;

	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		struct task_result result;

		rig->shelf.fate[rows[i].number + rows[i].count - 1] = (uint8_t)rows[i].last;
		result = store(rig, rows[i].number, rows[i].count);
		assert_int_equal(result.ok, rows[i].ok);
		assert_int_equal(result.moved_bytes, rows[i].moved * SHELF_BYTES);
		assert_int_equal(result.reason, rows[i].reason);
		assert_true(result.retired);
	}
}

static void B2_2_pop_gives_each_task_once_in_order_of_completion(void **state)
{
	struct rig *const   rig = *state;
	struct batch *const batch = name(rig, 0, 3);
	struct task_result  results[4];
	uint64_t            ids[3];
	uint32_t            i;

	assert_int_equal(adapter_pop_stored(rig->adapter, results, 4), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(adapter_submit_store(rig->adapter, &batch->keys[i],
						      &batch->spans[i], 1, &ids[i]),
				 0);
		wait_readable(rig, TASK_STORE);
		if (i < 2)
			os_eventfd_drain(adapter_fd(rig->adapter, TASK_STORE));
	}
	assert_int_equal(adapter_pop_stored(rig->adapter, results, 0), 0);
	assert_int_equal(adapter_pop_stored(rig->adapter, results, 1), 1);
	assert_true(is_readable(rig, TASK_STORE));
	assert_int_equal(adapter_pop_stored(rig->adapter, results + 1, 3), 2);
	assert_false(is_readable(rig, TASK_STORE));
	assert_int_equal(adapter_pop_stored(rig->adapter, results + 3, 1), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(results[i].task_id, ids[i]);
}

/* The second row of a key would meet the first one's write in another op. */
static void B2_2_a_key_twice_in_a_long_store_is_stored_once(void **state)
{
	struct rig *const   rig = *state;
	struct batch *const batch = name(rig, 0, BATCH_MAX);
	struct task_result  result;
	uint64_t            id;
	uint32_t            i;

	for (i = 0; i < BATCH_MAX; i++)
		batch->keys[i] = key_of(i % 1000);
	assert_int_equal(adapter_submit_store(rig->adapter, batch->keys, batch->spans, BATCH_MAX,
					      &id),
			 0);
	result = pop_one(rig);
	assert_true(result.ok);
	assert_int_equal(result.moved_bytes, 1000 * SHELF_BYTES);
	assert_int_equal(load(rig, 0, 1001), 1000);
}

/* --- lookups and loads ---------------------------------------------------------------------------- */

static void B2_3_a_lookup_tells_and_locks_what_is_there(void **state)
{
	struct rig *const rig = *state;

	store(rig, 10, 5);
	assert_int_equal(lookup(rig, 8, 9), 5);
	assert_int_equal(rig->batch.words[0], 0x7c);
	assert_int_equal(shelf_locked(&rig->shelf), 5);
	unlock(rig, 8, 9);
	assert_int_equal(lookup(rig, 100, 70), 0);
	assert_int_equal(rig->batch.words[0], 0);
	assert_int_equal(rig->batch.words[1], 0);
}

static void B2_3_a_load_fills_what_is_there_and_touches_nothing_else(void **state)
{
	struct rig *const rig = *state;

	store(rig, 1, 1);
	store(rig, 3, 1);
	assert_int_equal(load(rig, 1, 3), 2);
	assert_int_equal(rig->batch.words[0], 5);
	rig->shelf.fate[3] = SHELF_FAILS;
	assert_int_equal(load(rig, 1, 3), 1);
	assert_int_equal(rig->batch.words[0], 1);
}

static void B2_3_a_store_lookup_load_unlock_round(void **state)
{
	struct rig *const rig = *state;

	assert_int_equal(store(rig, 0, 5).moved_bytes, 5 * SHELF_BYTES);
	assert_int_equal(lookup(rig, 0, 5), 5);
	assert_int_equal(load(rig, 0, 5), 5);
	unlock(rig, 0, 5);
}

static void B2_3_a_long_batch_is_one_task(void **state)
{
	struct rig *const rig = *state;
	uint32_t          i;

	assert_true(store(rig, 0, 2000).ok);
	assert_int_equal(lookup(rig, 0, BATCH_MAX), 2000);
	for (i = 0; i < BATCH_MAX; i++)
		assert_int_equal(bits_test(rig->batch.words, i), i < 2000);
	assert_int_equal(load(rig, 0, BATCH_MAX), 2000);
	for (i = 0; i < BATCH_MAX; i++)
		assert_int_equal(bits_test(rig->batch.words, i), i < 2000);
	unlock(rig, 0, BATCH_MAX);
}

static void B2_3_a_result_is_none_while_pending_then_once_then_none(void **state)
{
	struct rig *const   rig = *state;
	struct batch *const batch = name(rig, 0, 2);
	uint64_t            lookup_id, load_id;
	bool                retired;

	shelf_shut(&rig->shelf);
	load_id = submit_load(rig, 0, 2);
	assert_int_equal(adapter_submit_lookup(rig->adapter, batch->keys, 2, &lookup_id), 0);
	shelf_wait_inside(&rig->shelf, 2);
	assert_false(adapter_query_load(rig->adapter, load_id, batch->words, &retired));
	assert_false(adapter_query_lookup(rig->adapter, lookup_id, batch->words));
	shelf_open(&rig->shelf);
	await_load(rig, load_id);
	await_lookup(rig, lookup_id);
	memset(batch->words, 0xff, sizeof(batch->words));
	assert_false(adapter_query_load(rig->adapter, load_id, batch->words, &retired));
	assert_false(adapter_query_lookup(rig->adapter, lookup_id, batch->words));
	/* Nor does an id answer in another kind, or one that was never given. */
	assert_false(adapter_query_lookup(rig->adapter, load_id, batch->words));
	assert_false(adapter_query_load(rig->adapter, 0, batch->words, &retired));
	assert_false(adapter_query_load(rig->adapter, 999, batch->words, &retired));
	assert_true(batch->words[0] == UINT64_MAX);
}

/* The second op of a long load has an id of its own, which names no task. */
static void B2_3_the_id_of_a_later_op_is_no_task(void **state)
{
	struct rig *const rig = *state;
	const uint64_t    id = submit_load(rig, 0, 2000);
	bool              retired;

	wait_readable(rig, TASK_LOAD);
	assert_false(adapter_query_load(rig->adapter, id + 1, rig->batch.words, &retired));
	assert_true(await_load(rig, id));
}

static void B2_3_a_failed_call_gives_rows_of_zero(void **state)
{
	struct rig *const rig = *state;

	store(rig, 0, 70);
	rig->shelf.fate[69] = SHELF_BREAKS;
	assert_int_equal(load(rig, 0, 70), 0);
	assert_int_equal(rig->batch.words[1] & 0x3f, 0);
}

/* --- locks ---------------------------------------------------------------------------------------- */

static void B2_3_locks_count(void **state)
{
	struct rig *const rig = *state;

	store(rig, 0, 3);
	lookup(rig, 0, 3);
	lookup(rig, 1, 1);
	unlock(rig, 0, 3);
	/* The next lookup tells the store what was given back; the second lock on 1 still holds. */
	lookup(rig, 3, 1);
	assert_int_equal(shelf_locked(&rig->shelf), 1);
	assert_int_equal(rig->shelf.locks[1], 1);
	unlock(rig, 1, 1);
	lookup(rig, 3, 1);
	assert_int_equal(shelf_locked(&rig->shelf), 0);
}

static void B2_3_a_key_found_twice_in_a_batch_is_locked_twice(void **state)
{
	struct rig *const   rig = *state;
	struct batch *const batch = &rig->batch;
	uint64_t            id;

	store(rig, 0, 1);
	lookup(rig, 0, 1);
	name(rig, 0, 2);
	batch->keys[1] = batch->keys[0];
	assert_int_equal(adapter_submit_lookup(rig->adapter, batch->keys, 2, &id), 0);
	await_lookup(rig, id);
	assert_int_equal(batch->words[0] & 3, 3);
	adapter_unlock(rig->adapter, batch->keys, 2);
	/* One for each row, so the first lookup's lock is nobody else's to give. */
	lookup(rig, 3, 1);
	assert_int_equal(rig->shelf.locks[0], 1);
}

static void B2_3_an_unlock_of_what_is_not_locked_is_ignored(void **state)
{
	struct rig *const rig = *state;

	store(rig, 0, 2);
	unlock(rig, 0, 4);
	lookup(rig, 0, 1);
	unlock(rig, 0, 4);
	unlock(rig, 0, 4);
	lookup(rig, 3, 1);
	assert_int_equal(shelf_locked(&rig->shelf), 0);
}

/* Every worker is blocked and every queue full: an unlock needs neither. */
static void B2_3_an_unlock_lands_while_every_queue_is_full(void **state)
{
	struct rig *const         rig = *state;
	const struct batch *const batch = &rig->batch;
	uint64_t                  ids[7];
	uint32_t                  i;

	store(rig, 0, 4);
	lookup(rig, 0, 4);
	shelf_shut(&rig->shelf);
	name(rig, 50, 1);
	for (i = 0; i < 7; i++)
		assert_int_equal(adapter_submit_lookup(rig->adapter, batch->keys, 1, &ids[i]), 0);
	shelf_wait_inside(&rig->shelf, 1);
	unlock(rig, 0, 4);
	name(rig, 50, 1);
	shelf_open(&rig->shelf);
	for (i = 0; i < 7; i++)
		await_lookup(rig, ids[i]);
	assert_int_equal(shelf_locked(&rig->shelf), 0);
}

/* Nothing is submitted to a server in cooldown, so its unlocks wait for the close at the latest. */
static void B2_3_an_unlock_lands_when_the_server_is_dead(void **state)
{
	struct rig *const rig = *state;

	store(rig, 0, 4);
	assert_int_equal(lookup(rig, 0, 4), 4);
	rig->shelf.fate[9] = SHELF_BREAKS;
	assert_int_equal(load(rig, 9, 1), 0);
	unlock(rig, 0, 4);
	assert_int_equal(lookup(rig, 0, 4), 0);
}

/* Locked rows that nobody took, nobody unlocked, and some still under way: teardown counts them. */
static void B2_3_a_close_mid_flight_gives_every_lock_back(void **state)
{
	struct rig *const         rig = *state;
	const struct batch *const batch = &rig->batch;
	uint64_t                  id;

	store(rig, 0, 50);
	assert_int_equal(lookup(rig, 0, 50), 50);
	name(rig, 0, 50);
	assert_int_equal(adapter_submit_lookup(rig->adapter, batch->keys, 50, &id), 0);
	wait_readable(rig, TASK_LOOKUP);
	assert_true(shelf_locked(&rig->shelf) > 0);
	assert_int_equal(adapter_submit_lookup(rig->adapter, batch->keys, 50, &id), 0);
	submit_load(rig, 0, 50);
}

static void B2_3_without_locks_of_the_store_they_are_counts(void **state)
{
	struct rig *rig = rig_new(false, &options);

	(void)state;
	store(rig, 0, 3);
	assert_int_equal(lookup(rig, 0, 4), 3);
	unlock(rig, 0, 3);
	teardown((void **)&rig);
}

/* A small memory store: what is locked is there when everything around it was evicted. */
static void B2_3_what_is_locked_is_not_evicted(void **state)
{
	struct rig *const         rig = *state;
	const struct batch *const batch = &rig->batch;
	struct adapter *const     shelf_adapter = rig->adapter;
	struct kvs_store         *mem;
	uint32_t                  i;

	assert_int_equal(store_open("mem:64KiB", 4096, "fifo", &mem, NULL), 0);
	assert_int_equal(adapter_open(mem, &options, &rig->adapter, NULL), 0);
	os_close(rig->epoll_fd);
	rig->epoll_fd = os_epoll();
	for (i = 0; i < TASK_KIND_COUNT; i++)
		os_epoll_add(rig->epoll_fd, adapter_fd(rig->adapter, i), i);
	assert_true(store(rig, 0, 2).ok);
	assert_int_equal(lookup(rig, 0, 1), 1);
	for (i = 10; i < 60; i++)
		store(rig, i, 1);
	assert_int_equal(load(rig, 0, 2), 1);
	assert_int_equal(batch->words[0], 1);
	unlock(rig, 0, 1);
	lookup(rig, 1, 1);
	for (i = 60; i < 110; i++)
		store(rig, i, 1);
	assert_int_equal(load(rig, 0, 1), 0);
	assert_int_equal(adapter_close(rig->adapter, FOREVER_NS), 0);
	rig->adapter = shelf_adapter;
}

/* --- ids, limits and refusals --------------------------------------------------------------------- */

static void B2_4_ids_grow_and_belong_to_one_adapter(void **state)
{
	struct rig *const one = *state;
	struct rig       *two = rig_new(true, &options);
	uint64_t          last = 0;
	uint64_t          id;
	uint32_t          i;

	for (i = 0; i < 12; i++) {
		name(one, 0, 1);
		if (i % 3 == 0)
			id = store(one, i, 1).task_id;
		else if (i % 3 == 1)
			await_load(one, id = submit_load(one, 0, 1500));
		else if (adapter_submit_lookup(one->adapter, one->batch.keys, 1, &id) == 0)
			await_lookup(one, id);
		assert_true(id > last);
		last = id;
	}
	assert_int_equal(store(two, 0, 1).task_id, 1);
	teardown((void **)&two);
}

static void a_full_table_refuses_one_kind_and_nothing_happens(void **state)
{
	struct rig *const    rig = *state;
	struct batch *const  batch = name(rig, 0, 1);
	struct adapter_stats stats;
	uint64_t             ids[8], none = 77;
	uint32_t             i;

	for (i = 0; i < 8; i++)
		assert_int_equal(adapter_submit_lookup(rig->adapter, batch->keys, 1, &ids[i]), 0);
	assert_int_equal(adapter_submit_lookup(rig->adapter, batch->keys, 1, &none), KVS_E_FULL);
	assert_int_equal(none, 77);
	assert_true(store(rig, 0, 1).ok);
	adapter_stats(rig->adapter, &stats);
	assert_int_equal(stats.submitted[TASK_LOOKUP], 8);
	assert_int_equal(stats.refused_full[TASK_LOOKUP], 1);
	/* A result that nobody took keeps its room; taking it gives the room back. */
	for (i = 0; i < 8; i++)
		await_lookup(rig, ids[i]);
	assert_int_equal(lookup(rig, 0, 1), 1);
}

/* Two long tasks of three ops leave two of eight. */
static void a_long_task_is_started_whole_or_not_at_all(void **state)
{
	struct rig *const rig = *state;
	const uint64_t    one = submit_load(rig, 0, BATCH_MAX);
	const uint64_t    two = submit_load(rig, 0, BATCH_MAX);
	uint64_t          three, four;

	assert_int_equal(adapter_submit_load(rig->adapter, rig->batch.keys, rig->batch.spans,
					     BATCH_MAX, &three),
			 KVS_E_FULL);
	assert_int_equal(adapter_submit_load(rig->adapter, rig->batch.keys, rig->batch.spans, 2000,
					     &four),
			 0);
	assert_true(await_load(rig, one) && await_load(rig, two) && await_load(rig, four));
}

static void bad_arguments_are_refused(void **state)
{
	static uint8_t    bytes[8];
	struct rig *const rig = *state;
	const struct {
		struct kvs_span span;
		uint32_t        count;
	} rows[] = {
		{ { bytes, 8, 8 }, 0 },
		{ { bytes, 8, 8 }, 8 * OP_KEYS_MAX + 1 },
		{ { NULL, 8, 8 }, 1 },
		{ { bytes, 0, 8 }, 1 },
		{ { bytes, 8, 7 }, 1 },
	};
	const struct kvs_key key = key_of(0);
	uint64_t             id;
	size_t               i;

	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		assert_int_equal(adapter_submit_store(rig->adapter, &key, &rows[i].span,
						      rows[i].count, &id),
				 KVS_E_INVALID);
		assert_int_equal(adapter_submit_load(rig->adapter, &key, &rows[i].span,
						     rows[i].count, &id),
				 KVS_E_INVALID);
	}
	assert_int_equal(adapter_submit_lookup(rig->adapter, &key, 0, &id), KVS_E_INVALID);
	adapter_unlock(rig->adapter, &key, 0);
}

/* The executor takes one load and one more to wait; the rest of the task fails at once. */
static void what_the_executor_refuses_is_a_failed_row_of_a_task_that_completes_once(void **state)
{
	struct adapter_options narrow = options;
	struct rig            *rig;
	struct adapter_stats   stats;
	uint64_t               long_id, id;

	(void)state;
	narrow.exec.limits.queue_max = 1;
	narrow.exec.workers[EXEC_GET] = 1;
	rig = rig_new(true, &narrow);
	store(rig, 0, 900);
	store(rig, 900, 900);
	store(rig, 1800, 700);
	shelf_shut(&rig->shelf);
	id = submit_load(rig, 0, 1);
	shelf_wait_inside(&rig->shelf, 1);
	long_id = submit_load(rig, 0, BATCH_MAX);
	assert_false(is_readable(rig, TASK_LOAD));
	adapter_stats(rig->adapter, &stats);
	assert_int_equal(stats.refused_ops[TASK_LOAD], 2);
	shelf_open(&rig->shelf);
	assert_true(await_load(rig, id));
	assert_true(await_load(rig, long_id));
	assert_int_equal(bits_count(rig->batch.words, BATCH_MAX), OP_KEYS_MAX);
	assert_int_equal(bits_prefix(rig->batch.words, BATCH_MAX), OP_KEYS_MAX);
	teardown((void **)&rig);
}

static void a_task_that_is_refused_whole_completes_before_its_submission_returns(void **state)
{
	struct adapter_options slow = options;
	struct rig            *rig;
	struct task_result     result;

	(void)state;
	slow.exec.limits.cooldown_min_ns = slow.exec.limits.cooldown_max_ns = UINT64_C(1) << 40;
	rig = rig_new(true, &slow);
	rig->shelf.fate[3] = SHELF_BREAKS;
	assert_false(store(rig, 3, 1).ok);
	name(rig, 0, 2000);
	assert_int_equal(adapter_submit_store(rig->adapter, rig->batch.keys, rig->batch.spans, 2000,
					      &result.task_id),
			 0);
	assert_true(is_readable(rig, TASK_STORE));
	assert_int_equal(adapter_pop_stored(rig->adapter, &result, 1), 1);
	assert_false(result.ok);
	assert_true(result.retired);
	assert_int_equal(result.reason, OP_REASON_HEALTH);
	teardown((void **)&rig);
}

static void options_are_checked_at_open(void **state)
{
	static const struct {
		uint32_t    op_max[TASK_KIND_COUNT];
		uint32_t    queue_max;
		const char *says;
	} rows[] = {
		{ { 0, 1, 1 }, 1, "adapter store ops: 0 is out of range" },
		{ { 1, 4097, 1 }, 1, "adapter lookup ops: 4097 is out of range" },
		{ { 1, 1, UINT32_MAX }, 1, "adapter load ops: 4294967295 is out of range" },
		{ { 1, 1, 1 }, 0, "executor" },
	};
	struct rig *const rig = *state;
	size_t            i;

	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		struct adapter_options wrong = options;
		struct adapter        *none = NULL;
		struct kvs_error       err;

		memcpy(wrong.op_max, rows[i].op_max, sizeof(wrong.op_max));
		wrong.exec.limits.queue_max = rows[i].queue_max;
		assert_int_equal(adapter_open(&rig->shelf.store, &wrong, &none, &err),
				 KVS_E_INVALID);
		assert_non_null(strstr(err.message, rows[i].says));
		assert_null(none);
		/* The store is still its caller's. */
		assert_false(rig->shelf.closed);
	}
}

static void closing_nothing_is_fine(void **state)
{
	(void)state;
	assert_int_equal(adapter_close(NULL, 0), 0);
}

/* --- throughput ----------------------------------------------------------------------------------- */

static uint64_t samples(const struct rig *rig, enum task_kind kind)
{
	return adapter_throughput(rig->adapter, kind)->count;
}

static void B2_6_throughput_counts_bytes_that_moved(void **state)
{
	struct rig *const    rig = *state;
	struct adapter_stats stats;

	store(rig, 0, 4);
	assert_int_equal(samples(rig, TASK_STORE), 1);
	store(rig, 0, 4); /* all there already */
	assert_int_equal(samples(rig, TASK_STORE), 1);
	load(rig, 100, 4); /* all missing */
	assert_int_equal(samples(rig, TASK_LOAD), 0);
	load(rig, 2, 4);
	assert_int_equal(samples(rig, TASK_LOAD), 1);
	lookup(rig, 0, 4);
	assert_int_equal(samples(rig, TASK_LOOKUP), 0);
	assert_true(histogram_percentile(adapter_throughput(rig->adapter, TASK_LOAD), 50) > 0);
	adapter_stats(rig->adapter, &stats);
	assert_int_equal(stats.moved_bytes[TASK_STORE], 4 * SHELF_BYTES);
	assert_int_equal(stats.moved_bytes[TASK_LOAD], 2 * SHELF_BYTES);
	assert_int_equal(stats.finished[TASK_STORE], 2);
	assert_int_equal(stats.finished[TASK_LOAD], 2);
	assert_int_equal(stats.finished[TASK_LOOKUP], 1);
}

/* --- retirement ----------------------------------------------------------------------------------- */

/* Objects up to that number are stored; I/O on it does not retire. */
static struct rig *cling(uint32_t number)
{
	struct rig *const rig = rig_new(true, &options);

	store(rig, 0, number);
	rig->shelf.fate[number] = SHELF_CLINGS;
	return rig;
}

/* The op is over after all: only then can a close succeed. */
static void end_clinging(struct rig *rig, uint64_t op_id)
{
	const struct retirement_notice notice = { .op_id = op_id };

	assert_int_equal(adapter_close(rig->adapter, 0), KVS_E_QUARANTINE);
	assert_false(rig->shelf.closed);
	assert_int_equal(adapter_notice(rig->adapter, &notice), 0);
	teardown((void **)&rig);
}

static void a_load_that_did_not_retire_says_so_and_shows_no_row(void **state)
{
	struct rig *const rig = cling(4);
	const uint64_t    stuck = submit_load(rig, 0, 5);
	uint64_t          id;

	(void)state;
	assert_false(await_load(rig, stuck));
	assert_int_equal(rig->batch.words[0] & 0x1f, 0);
	/* From now on everything is a failed task, and nothing of it is in doubt. */
	assert_true(await_load(rig, id = submit_load(rig, 0, 2)));
	assert_int_equal(rig->batch.words[0] & 3, 0);
	assert_int_equal(store(rig, 8, 1).reason, OP_REASON_QUARANTINE);
	assert_int_equal(lookup(rig, 0, 2), 0);
	end_clinging(rig, stuck);
}

/* Only the op that failed is in doubt: rows of the task's other op are read. */
static void a_long_load_shows_the_rows_of_the_ops_that_retired(void **state)
{
	struct rig *const rig = cling(1500);
	const uint64_t    id = submit_load(rig, 0, 2000);

	(void)state;
	assert_false(await_load(rig, id));
	assert_int_equal(bits_prefix(rig->batch.words, 2000), OP_KEYS_MAX);
	assert_int_equal(bits_count(rig->batch.words, 2000), OP_KEYS_MAX);
	end_clinging(rig, id + 1);
}

static void a_notice_is_told_once_and_ends_the_quarantine(void **state)
{
	struct rig *const        rig = cling(1500);
	struct retirement_notice notice;
	uint64_t                 told[2];
	uint64_t                 id;

	(void)state;
	name(rig, 0, 2000);
	assert_int_equal(adapter_submit_store(rig->adapter, rig->batch.keys, rig->batch.spans, 2000,
					      &id),
			 0);
	assert_false(pop_one(rig).retired);
	notice.op_id = id; /* that one retired */
	assert_int_equal(adapter_notice(rig->adapter, &notice), KVS_E_STALE);
	assert_int_equal(adapter_pop_retired(rig->adapter, TASK_STORE, told, 2), 0);
	assert_false(is_readable(rig, TASK_STORE));
	assert_int_equal(adapter_close(rig->adapter, 0), KVS_E_QUARANTINE);

	notice.op_id = id + 1;
	assert_int_equal(adapter_notice(rig->adapter, &notice), 0);
	assert_int_equal(adapter_notice(rig->adapter, &notice), KVS_E_STALE);
	wait_readable(rig, TASK_STORE);
	assert_int_equal(adapter_pop_retired(rig->adapter, TASK_LOAD, told, 2), 0);
	assert_int_equal(adapter_pop_retired(rig->adapter, TASK_STORE, told, 2), 1);
	assert_int_equal(told[0], id);
	assert_int_equal(adapter_pop_retired(rig->adapter, TASK_STORE, told, 2), 0);
	assert_false(is_readable(rig, TASK_STORE));
	/* And a close can prove now that nothing is left. */
	assert_int_equal(adapter_close(rig->adapter, FOREVER_NS), 0);
	assert_true(rig->shelf.closed);
	rig_free(rig);
}

static void a_notice_before_the_result_was_taken_makes_it_retired(void **state)
{
	struct rig *const        rig = cling(4);
	const uint64_t           id = submit_load(rig, 0, 5);
	struct retirement_notice notice = { .op_id = id };
	uint64_t                 told;

	(void)state;
	wait_readable(rig, TASK_LOAD);
	assert_int_equal(adapter_notice(rig->adapter, &notice), 0);
	assert_true(await_load(rig, id));
	assert_int_equal(rig->batch.words[0] & 0x1f, 0);
	assert_int_equal(adapter_pop_retired(rig->adapter, TASK_LOAD, &told, 1), 0);
	assert_int_equal(adapter_close(rig->adapter, FOREVER_NS), 0);
	rig_free(rig);
}

/* The worker comes back later, finds everything where it was, and a second close succeeds. */
static void a_close_past_its_deadline_leaves_all_in_place(void **state)
{
	struct rig *const rig = rig_new(true, &options);
	uint64_t          running, waiting[3];
	bool              retired;
	int               i;

	(void)state;
	store(rig, 0, 4);
	lookup(rig, 0, 4);
	shelf_shut(&rig->shelf);
	running = submit_load(rig, 0, 1);
	for (i = 0; i < 3; i++)
		waiting[i] = submit_load(rig, i, 1);
	shelf_wait_inside(&rig->shelf, 2);
	assert_int_equal(adapter_close(rig->adapter, 0), KVS_E_QUARANTINE);
	assert_int_equal(adapter_submit_lookup(rig->adapter, rig->batch.keys, 1, &waiting[0]),
			 KVS_E_CLOSED);
	/* What waited for a worker failed, and says so; what runs has no result yet. */
	assert_true(is_readable(rig, TASK_LOAD));
	assert_false(adapter_query_load(rig->adapter, running, rig->batch.words, &retired));
	assert_true(adapter_query_load(rig->adapter, waiting[2], rig->batch.words, &retired));
	assert_true(retired);
	assert_int_equal(rig->batch.words[0] & 1, 0);
	shelf_open(&rig->shelf);
	assert_true(await_load(rig, running));
	assert_int_equal(rig->batch.words[0] & 1, 1);
	assert_int_equal(adapter_close(rig->adapter, FOREVER_NS), 0);
	assert_int_equal(shelf_locked(&rig->shelf), 0);
	rig_free(rig);
}

/* --- two controllers ------------------------------------------------------------------------------ */

#define ROUNDS 300u
#define TAKEN_MAX (4 * ROUNDS)

/* Shared by a store and a prefetch controller, each with a thread and descriptors of its own. */
struct pair {
	struct rig *rig;
	uint64_t    stored_ids[TAKEN_MAX];
	uint32_t    stored, loaded, locked;
};

static void *store_controller(void *arg)
{
	struct pair *const   pair = arg;
	static struct batch  batch;
	struct adapter *const adapter = pair->rig->adapter;
	const int            epoll_fd = os_epoll();
	struct task_result   results[4];
	uint32_t             submitted = 0, i, count;
	uint64_t             id, tag;

	os_epoll_add(epoll_fd, adapter_fd(adapter, TASK_STORE), 0);
	while (pair->stored < ROUNDS) {
		for (i = 0; i < 4; i++) {
			batch.keys[i] = key_of((submitted * 3 + i) % SHELF_KEYS);
			batch.spans[i] =
				(struct kvs_span){ batch.bytes[i], SHELF_BYTES, SHELF_BYTES };
		}
		/* Neighbours share a key: its second store moves nothing. */
		if (submitted < ROUNDS &&
		    adapter_submit_store(adapter, batch.keys, batch.spans, 4, &id) == 0)
			submitted++;
		else
			os_epoll_wait(epoll_fd, &tag, 1, FOREVER_NS);
		count = adapter_pop_stored(adapter, results, 4);
		for (i = 0; i < count; i++)
			pair->stored_ids[pair->stored++] = results[i].task_id;
	}
	os_close(epoll_fd);
	return NULL;
}

static void *prefetch_controller(void *arg)
{
	struct pair *const    pair = arg;
	static struct batch   batch;
	struct adapter *const adapter = pair->rig->adapter;
	const int             epoll_fd = os_epoll();
	uint64_t              id, tag;
	uint32_t              i, round;
	bool                  retired;

	os_epoll_add(epoll_fd, adapter_fd(adapter, TASK_LOOKUP), 0);
	os_epoll_add(epoll_fd, adapter_fd(adapter, TASK_LOAD), 1);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < 8; i++) {
			batch.keys[i] = key_of((round * 3 + i) % SHELF_KEYS);
			batch.spans[i] =
				(struct kvs_span){ batch.bytes[i], SHELF_BYTES, SHELF_BYTES };
		}
		KVS_ASSERT(adapter_submit_lookup(adapter, batch.keys, 8, &id) == 0);
		while (!adapter_query_lookup(adapter, id, batch.words))
			os_epoll_wait(epoll_fd, &tag, 1, FOREVER_NS);
		pair->locked += (uint32_t)bits_count(batch.words, 8);
		KVS_ASSERT(adapter_submit_load(adapter, batch.keys, batch.spans, 8, &id) == 0);
		while (!adapter_query_load(adapter, id, batch.words, &retired))
			os_epoll_wait(epoll_fd, &tag, 1, FOREVER_NS);
		KVS_ASSERT(retired);
		pair->loaded++;
		for (i = 0; i < 8; i++)
			adapter_unlock(adapter, &batch.keys[i], 1);
	}
	os_close(epoll_fd);
	return NULL;
}

static void B2_4_two_controllers_share_an_adapter(void **state)
{
	struct pair pair = { .rig = *state };
	pthread_t   storing, prefetching;
	uint32_t    i;

	assert_int_equal(os_thread_start(&storing, "store", store_controller, &pair), 0);
	assert_int_equal(os_thread_start(&prefetching, "prefetch", prefetch_controller, &pair), 0);
	os_thread_join(storing);
	os_thread_join(prefetching);
	assert_int_equal(pair.stored, ROUNDS);
	assert_int_equal(pair.loaded, ROUNDS);
	/* Each store came out once: with two put workers not in order. */
	for (i = 1; i < pair.stored; i++) {
		uint32_t j;

		for (j = 0; j < i; j++)
			assert_int_not_equal(pair.stored_ids[i], pair.stored_ids[j]);
	}
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(B2_1_descriptors_are_distinct_within_and_across_adapters),
		RIG_TEST(B2_1_a_completion_signals_the_descriptor_of_its_kind),
		RIG_TEST(B2_1_a_drained_descriptor_is_signalled_by_the_next_completion),
		RIG_TEST(B2_2_a_store_is_all_or_nothing_with_the_bytes_that_moved),
		RIG_TEST(B2_2_pop_gives_each_task_once_in_order_of_completion),
		RIG_TEST(B2_2_a_key_twice_in_a_long_store_is_stored_once),
		RIG_TEST(B2_3_a_lookup_tells_and_locks_what_is_there),
		RIG_TEST(B2_3_a_load_fills_what_is_there_and_touches_nothing_else),
		RIG_TEST(B2_3_a_store_lookup_load_unlock_round),
		RIG_TEST(B2_3_a_long_batch_is_one_task),
		RIG_TEST(B2_3_a_result_is_none_while_pending_then_once_then_none),
		RIG_TEST(B2_3_the_id_of_a_later_op_is_no_task),
		RIG_TEST(B2_3_a_failed_call_gives_rows_of_zero),
		RIG_TEST(B2_3_locks_count),
		RIG_TEST(B2_3_a_key_found_twice_in_a_batch_is_locked_twice),
		RIG_TEST(B2_3_an_unlock_of_what_is_not_locked_is_ignored),
		RIG_TEST(B2_3_an_unlock_lands_while_every_queue_is_full),
		RIG_TEST(B2_3_an_unlock_lands_when_the_server_is_dead),
		RIG_TEST(B2_3_a_close_mid_flight_gives_every_lock_back),
		cmocka_unit_test(B2_3_without_locks_of_the_store_they_are_counts),
		RIG_TEST(B2_3_what_is_locked_is_not_evicted),
		RIG_TEST(B2_4_ids_grow_and_belong_to_one_adapter),
		RIG_TEST(a_full_table_refuses_one_kind_and_nothing_happens),
		RIG_TEST(a_long_task_is_started_whole_or_not_at_all),
		RIG_TEST(bad_arguments_are_refused),
		cmocka_unit_test(
			what_the_executor_refuses_is_a_failed_row_of_a_task_that_completes_once),
		cmocka_unit_test(
			a_task_that_is_refused_whole_completes_before_its_submission_returns),
		RIG_TEST(options_are_checked_at_open),
		cmocka_unit_test(closing_nothing_is_fine),
		RIG_TEST(B2_6_throughput_counts_bytes_that_moved),
		cmocka_unit_test(a_load_that_did_not_retire_says_so_and_shows_no_row),
		cmocka_unit_test(a_long_load_shows_the_rows_of_the_ops_that_retired),
		cmocka_unit_test(a_notice_is_told_once_and_ends_the_quarantine),
		cmocka_unit_test(a_notice_before_the_result_was_taken_makes_it_retired),
		cmocka_unit_test(a_close_past_its_deadline_leaves_all_in_place),
		RIG_TEST(B2_4_two_controllers_share_an_adapter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
