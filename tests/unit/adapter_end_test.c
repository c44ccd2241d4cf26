/* SPDX-License-Identifier: Apache-2.0 */
/* How tasks end that do not end well: unretired, at a close, with two controllers at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "desk.h"
#include "named_block.h"

/* --- retirement ---------------------------------------------------------- */

/* Objects up to that number are stored; I/O on it does not retire. */
static struct desk *cling(uint32_t number)
{
	struct desk *const desk = desk_new(true, &desk_options);

	desk_store(desk, 0, number);
	desk->crate.fate[number] = CRATE_CLINGS;
	return desk;
}

/* The op is over after all: only then can a close succeed. */
static void end_clinging(struct desk *desk, uint64_t op_id)
{
	const struct retirement_notice notice = { .op_id = op_id };

	assert_int_equal(adapter_close(desk->adapter, 0), KVS_E_QUARANTINE);
	assert_false(desk->crate.closed);
	assert_int_equal(adapter_notice(desk->adapter, &notice), 0);
	desk_teardown((void **)&desk);
}

static void a_load_that_did_not_retire_says_so_and_shows_no_row(void **state)
{
	struct desk *const desk = cling(4);
	const uint64_t    stuck = desk_submit_load(desk, 0, 5);
	uint64_t          id;

	(void)state;
	assert_false(desk_await_load(desk, stuck));
	assert_int_equal(desk->batch.words[0] & 0x1f, 0);
	/* From now on everything is a failed task, and nothing of it is in doubt. */
	assert_true(desk_await_load(desk, id = desk_submit_load(desk, 0, 2)));
	assert_int_equal(desk->batch.words[0] & 3, 0);
	assert_int_equal(desk_store(desk, 8, 1).reason, OP_REASON_QUARANTINE);
	assert_int_equal(desk_lookup(desk, 0, 2), 0);
	end_clinging(desk, stuck);
}

/* Only the op that failed is in doubt: rows of the task's other op are read. */
static void a_long_load_shows_the_rows_of_the_ops_that_retired(void **state)
{
	struct desk *const desk = cling(1500);
	const uint64_t    id = desk_submit_load(desk, 0, 2000);

	(void)state;
	assert_false(desk_await_load(desk, id));
	assert_int_equal(bits_prefix(desk->batch.words, 2000), OP_KEYS_MAX);
	assert_int_equal(bits_count(desk->batch.words, 2000), OP_KEYS_MAX);
	end_clinging(desk, id + 1);
}

static void a_notice_is_told_once_and_ends_the_quarantine(void **state)
{
	struct desk *const        desk = cling(1500);
	struct retirement_notice notice;
	uint64_t                 told[2];
	uint64_t                 id;

	(void)state;
	desk_name(desk, 0, 2000);
	assert_int_equal(adapter_submit_store(desk->adapter, desk->batch.keys, desk->batch.spans, 2000,
					      &id),
			 0);
	assert_false(desk_pop(desk).retired);
	notice.op_id = id; /* that one retired */
	assert_int_equal(adapter_notice(desk->adapter, &notice), KVS_E_STALE);
	assert_int_equal(adapter_pop_retired(desk->adapter, TASK_STORE, told, 2), 0);
	assert_false(desk_is_readable(desk, TASK_STORE));
	assert_int_equal(adapter_close(desk->adapter, 0), KVS_E_QUARANTINE);

	notice.op_id = id + 1;
	assert_int_equal(adapter_notice(desk->adapter, &notice), 0);
	assert_int_equal(adapter_notice(desk->adapter, &notice), KVS_E_STALE);
	desk_await(desk, TASK_STORE);
	assert_int_equal(adapter_pop_retired(desk->adapter, TASK_LOAD, told, 2), 0);
	assert_int_equal(adapter_pop_retired(desk->adapter, TASK_STORE, told, 2), 1);
	assert_int_equal(told[0], id);
	assert_int_equal(adapter_pop_retired(desk->adapter, TASK_STORE, told, 2), 0);
	assert_false(desk_is_readable(desk, TASK_STORE));
	/* And a close can prove now that nothing is left. */
	assert_int_equal(adapter_close(desk->adapter, DESK_FOREVER_NS), 0);
	assert_true(desk->crate.closed);
	desk_free(desk);
}

static void a_notice_before_the_result_was_taken_makes_it_retired(void **state)
{
	struct desk *const        desk = cling(4);
	const uint64_t           id = desk_submit_load(desk, 0, 5);
	struct retirement_notice notice = { .op_id = id };
	uint64_t                 told;

	(void)state;
	desk_await(desk, TASK_LOAD);
	assert_int_equal(adapter_notice(desk->adapter, &notice), 0);
	assert_true(desk_await_load(desk, id));
	assert_int_equal(desk->batch.words[0] & 0x1f, 0);
	assert_int_equal(adapter_pop_retired(desk->adapter, TASK_LOAD, &told, 1), 0);
	assert_int_equal(adapter_close(desk->adapter, DESK_FOREVER_NS), 0);
	desk_free(desk);
}

/* The worker comes back later, finds everything where it was, and a second close succeeds. */
static void a_close_past_its_deadline_leaves_all_in_place(void **state)
{
	struct desk *const desk = desk_new(true, &desk_options);
	uint64_t          running, waiting[3];
	bool              retired;
	int               i;

	(void)state;
	desk_store(desk, 0, 4);
	desk_lookup(desk, 0, 4);
	crate_shut(&desk->crate);
	running = desk_submit_load(desk, 0, 1);
	for (i = 0; i < 3; i++)
		waiting[i] = desk_submit_load(desk, i, 1);
	crate_wait_inside(&desk->crate, 2);
	assert_int_equal(adapter_close(desk->adapter, 0), KVS_E_QUARANTINE);
	assert_int_equal(adapter_submit_lookup(desk->adapter, desk->batch.keys, 1, &waiting[0]),
			 KVS_E_CLOSED);
	/* What waited for a worker failed, and says so; what runs has no result yet. */
	assert_true(desk_is_readable(desk, TASK_LOAD));
	assert_false(adapter_query_load(desk->adapter, running, desk->batch.words, &retired));
	assert_true(adapter_query_load(desk->adapter, waiting[2], desk->batch.words, &retired));
	assert_true(retired);
	assert_int_equal(desk->batch.words[0] & 1, 0);
	crate_open(&desk->crate);
	assert_true(desk_await_load(desk, running));
	assert_int_equal(desk->batch.words[0] & 1, 1);
	assert_int_equal(adapter_close(desk->adapter, DESK_FOREVER_NS), 0);
	assert_int_equal(crate_locked(&desk->crate), 0);
	desk_free(desk);
}

/* --- two controllers ----------------------------------------------------- */

#define ROUNDS 300u
#define TAKEN_MAX (4 * ROUNDS)

/* Shared by a store and a prefetch controller, each with a thread and descriptors of its own. */
struct pair {
	struct desk *desk;
	uint64_t    stored_ids[TAKEN_MAX];
	uint32_t    stored, loaded, locked;
};

static void *store_controller(void *arg)
{
	struct pair *const   pair = arg;
	static struct batch  batch;
	struct adapter *const adapter = pair->desk->adapter;
	const int            epoll_fd = os_epoll();
	struct task_result   results[4];
	uint32_t             submitted = 0, i, count;
	uint64_t             id, tag;

	os_epoll_add(epoll_fd, adapter_fd(adapter, TASK_STORE), 0);
	while (pair->stored < ROUNDS) {
		for (i = 0; i < 4; i++) {
			batch.keys[i] = key_of((submitted * 3 + i) % CRATE_KEYS);
			batch.spans[i] =
				(struct kvs_span){ batch.bytes[i], CRATE_BYTES, CRATE_BYTES };
		}
		/* Neighbours share a key: its second store moves nothing. */
		if (submitted < ROUNDS &&
		    adapter_submit_store(adapter, batch.keys, batch.spans, 4, &id) == 0)
			submitted++;
		else
			os_epoll_wait(epoll_fd, &tag, 1, DESK_FOREVER_NS);
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
	struct adapter *const adapter = pair->desk->adapter;
	const int             epoll_fd = os_epoll();
	uint64_t              id, tag;
	uint32_t              i, round;
	bool                  retired;

	os_epoll_add(epoll_fd, adapter_fd(adapter, TASK_LOOKUP), 0);
	os_epoll_add(epoll_fd, adapter_fd(adapter, TASK_LOAD), 1);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < 8; i++) {
			batch.keys[i] = key_of((round * 3 + i) % CRATE_KEYS);
			batch.spans[i] =
				(struct kvs_span){ batch.bytes[i], CRATE_BYTES, CRATE_BYTES };
		}
		KVS_ASSERT(adapter_submit_lookup(adapter, batch.keys, 8, &id) == 0);
		while (!adapter_query_lookup(adapter, id, batch.words))
			os_epoll_wait(epoll_fd, &tag, 1, DESK_FOREVER_NS);
		pair->locked += (uint32_t)bits_count(batch.words, 8);
		KVS_ASSERT(adapter_submit_load(adapter, batch.keys, batch.spans, 8, &id) == 0);
		while (!adapter_query_load(adapter, id, batch.words, &retired))
			os_epoll_wait(epoll_fd, &tag, 1, DESK_FOREVER_NS);
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
	struct pair pair = { .desk = *state };
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

#define DESK_TEST(test) cmocka_unit_test_setup_teardown(test, desk_setup, desk_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_load_that_did_not_retire_says_so_and_shows_no_row),
		cmocka_unit_test(a_long_load_shows_the_rows_of_the_ops_that_retired),
		cmocka_unit_test(a_notice_is_told_once_and_ends_the_quarantine),
		cmocka_unit_test(a_notice_before_the_result_was_taken_makes_it_retired),
		cmocka_unit_test(a_close_past_its_deadline_leaves_all_in_place),
		DESK_TEST(B2_4_two_controllers_share_an_adapter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
