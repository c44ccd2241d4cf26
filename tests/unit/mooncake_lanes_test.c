/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of a Mooncake store: who gets which, and how long anybody waits. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wharf.h"
#include "named_block.h"

#define FOREVER_NS UINT64_MAX
#define WAITERS 4u

static void lookups_have_a_lane_of_their_own(void **state)
{
	struct mooncake_lanes lanes;
	struct mooncake_lane *moves[2], *lookups;
	struct byway          byway;

	(void)state;
	byway_init(&byway, NULL);
	assert_int_equal(mooncake_lanes_init(&lanes, &byway.way, 2), 0);
	moves[0] = mooncake_lanes_lease(&lanes, true, 0);
	moves[1] = mooncake_lanes_lease(&lanes, true, 0);
	assert_true(moves[0] && moves[1] && moves[0] != moves[1]);
	assert_true(moves[0]->number > 0 && moves[1]->number > 0);
	assert_null(mooncake_lanes_lease(&lanes, true, 0));
	lookups = mooncake_lanes_lease(&lanes, false, 0);
	assert_int_equal(lookups->number, MOONCAKE_LOOKUPS);
	assert_null(mooncake_lanes_lease(&lanes, false, 1000000));
	mooncake_lanes_return(&lanes, moves[0]);
	assert_null(mooncake_lanes_lease(&lanes, false, 0));
	assert_ptr_equal(mooncake_lanes_lease(&lanes, true, 0), moves[0]);
	mooncake_lanes_return(&lanes, moves[0]);
	mooncake_lanes_return(&lanes, moves[1]);
	mooncake_lanes_return(&lanes, lookups);
	mooncake_lanes_fini(&lanes);
}

/* The last one returned is leased first, of those that are up. */
static void a_lane_that_is_down_is_the_last_choice(void **state)
{
	struct mooncake_lanes lanes;
	struct mooncake_lane *leased[3];
	struct byway          byway;
	uint32_t              i;

	(void)state;
	byway_init(&byway, NULL);
	assert_int_equal(mooncake_lanes_init(&lanes, &byway.way, 3), 0);
	for (i = 0; i < 3; i++)
		leased[i] = mooncake_lanes_lease(&lanes, true, 0);
	for (i = 0; i < 3; i++)
		mooncake_lanes_return(&lanes, leased[i]);
	byway.down = 1 + leased[2]->number;
	assert_ptr_equal(mooncake_lanes_lease(&lanes, true, 0), leased[1]);
	assert_ptr_equal(mooncake_lanes_lease(&lanes, true, 0), leased[0]);
	/* While another may come back it is no choice; once it is up again it is. */
	assert_null(mooncake_lanes_lease(&lanes, true, 0));
	byway.down = 0;
	assert_ptr_equal(mooncake_lanes_lease(&lanes, true, 0), leased[2]);
	for (i = 0; i < 3; i++)
		mooncake_lanes_return(&lanes, leased[i]);
	mooncake_lanes_fini(&lanes);
}

/* Its call fails at once and says why: better than to wait for nobody. */
static void the_only_lane_is_leased_even_if_it_is_down(void **state)
{
	struct mooncake_lanes lanes;
	struct mooncake_lane *lane;
	struct byway          byway;

	(void)state;
	byway_init(&byway, NULL);
	byway.down = 2;
	assert_int_equal(mooncake_lanes_init(&lanes, &byway.way, 1), 0);
	lane = mooncake_lanes_lease(&lanes, true, UINT64_MAX);
	assert_int_equal(lane->number, 1);
	mooncake_lanes_return(&lanes, lane);
	mooncake_lanes_fini(&lanes);
}

struct queue {
	struct mooncake_lanes lanes;
	struct os_mutex       lock;
	uint32_t              order[WAITERS]; /* who came, in the order of being served */
	uint32_t              served;
};

struct waiter {
	struct queue *queue;
	pthread_t     thread;
	uint32_t      number;
	uint64_t      timeout_ns;
	bool          given;
	uint32_t      lane;
};

static void *wait_and_serve(void *arg)
{
	struct waiter *const        waiter = arg;
	struct queue *const         queue = waiter->queue;
	struct mooncake_lane *const lane =
		mooncake_lanes_lease(&queue->lanes, true, waiter->timeout_ns);

	waiter->given = lane != NULL;
	if (!lane)
		return NULL;
	waiter->lane = lane->number;
	os_mutex_lock(&queue->lock);
	queue->order[queue->served++] = waiter->number;
	os_mutex_unlock(&queue->lock);
	mooncake_lanes_return(&queue->lanes, lane);
	return NULL;
}

static void start(struct queue *queue, struct waiter *waiter, uint32_t number, uint64_t timeout_ns)
{
	*waiter = (struct waiter){ .queue = queue, .number = number, .timeout_ns = timeout_ns };
	assert_int_equal(os_thread_start(&waiter->thread, "waiter", wait_and_serve, waiter), 0);
	if (timeout_ns != FOREVER_NS)
		os_thread_join(waiter->thread);
	while (timeout_ns == FOREVER_NS && mooncake_lanes_waiting(&queue->lanes) <= number)
		sched_yield();
}

static void who_waits_is_served_in_the_order_of_coming(void **state)
{
	struct byway          byway;
	struct queue          queue = { .served = 0 };
	struct waiter         waiters[WAITERS], brief;
	struct mooncake_lane *lane;
	uint32_t              i;

	(void)state;
	byway_init(&byway, NULL);
	assert_int_equal(mooncake_lanes_init(&queue.lanes, &byway.way, 1), 0);
	os_mutex_init(&queue.lock);
	lane = mooncake_lanes_lease(&queue.lanes, true, 0);
	for (i = 0; i < WAITERS; i++) {
		start(&queue, &waiters[i], i, FOREVER_NS);
		/* Who leaves the queue again takes nobody with him. */
		start(&queue, &brief, i, 1000);
		assert_false(brief.given);
	}
	mooncake_lanes_return(&queue.lanes, lane);
	for (i = 0; i < WAITERS; i++)
		os_thread_join(waiters[i].thread);
	for (i = 0; i < WAITERS; i++)
		assert_int_equal(queue.order[i], i);
	os_mutex_fini(&queue.lock);
	mooncake_lanes_fini(&queue.lanes);
}

/* Waiters are not sent to a lane that went down while another works on. */
static void who_waits_gets_no_lane_that_is_down(void **state)
{
	struct byway          byway;
	struct queue          queue = { .served = 0 };
	struct waiter         waiter;
	struct mooncake_lane *good, *bad;
	uint32_t              good_number;

	(void)state;
	byway_init(&byway, NULL);
	assert_int_equal(mooncake_lanes_init(&queue.lanes, &byway.way, 2), 0);
	os_mutex_init(&queue.lock);
	good = mooncake_lanes_lease(&queue.lanes, true, 0);
	bad = mooncake_lanes_lease(&queue.lanes, true, 0);
	good_number = good->number;
	start(&queue, &waiter, 0, FOREVER_NS);
	byway.down = 1 + bad->number;
	mooncake_lanes_return(&queue.lanes, bad);
	assert_int_equal(mooncake_lanes_waiting(&queue.lanes), 1);
	mooncake_lanes_return(&queue.lanes, good);
	os_thread_join(waiter.thread);
	assert_int_equal(waiter.lane, good_number);
	os_mutex_fini(&queue.lock);
	mooncake_lanes_fini(&queue.lanes);
}

/* --- the store on them ------------------------------------------------------------------------ */

static void *put_one(void *arg)
{
	static const uint32_t number = 1;
	struct wharf *const   wharf = arg;
	const struct kvs_key  key = key_of(number);
	const struct kvs_span span = wharf_span(wharf, number, 4096);
	enum kvs_result       result = KVS_RESULT_UNKNOWN;
	bool                  retired = false;

	fill(span.ptr, number, 4096);
	KVS_ASSERT(wharf->store->ops->put(wharf->store, &key, &span, 1, &result, &retired) == 0);
	KVS_ASSERT(result == KVS_RESULT_DONE && retired);
	return NULL;
}

/* One lane, and somebody hangs in it: the other fails in time, untouched, and lookups go on. */
static void nobody_waits_for_a_lane_longer_than_a_call_may_take(void **state)
{
	struct wharf *const wharf = *state;
	pthread_t           thread;

	wharf_close(wharf);
	wharf->settings.lanes = 1;
	wharf->settings.timeout_ns = 1000;
	byway_init(&wharf->byway, &wharf->cluster);
	wharf_open(wharf);
	byway_shut(&wharf->byway, true, false);
	assert_int_equal(os_thread_start(&thread, "putter", put_one, wharf), 0);
	byway_wait_inside(&wharf->byway, 1);
	assert_int_equal(wharf_get(wharf, 2, 4096), KVS_RESULT_FAILED);
	assert_true(wharf->retired);
	assert_int_equal(wharf->byway.calls[MOONCAKE_GET], 0);
	assert_int_equal(wharf_exists(wharf, 2), KVS_RESULT_MISSING);
	byway_shut(&wharf->byway, false, false);
	os_thread_join(thread);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_DONE);
}

static void a_call_takes_a_lane_that_is_up(void **state)
{
	struct wharf *const wharf = *state;
	uint32_t            down;

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	down = wharf->byway.last_lane;
	wharf->byway.down = down + 1;
	assert_int_equal(wharf_put(wharf, 2, 4096), KVS_RESULT_DONE);
	assert_int_not_equal(wharf->byway.last_lane, down);
	wharf->byway.down = 0;
}

static void what_is_remembered_needs_no_lane(void **state)
{
	struct wharf *const wharf = *state;

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_DONE);
	byway_shut(&wharf->byway, true, true);
	assert_int_equal(wharf_exists(wharf, 1), KVS_RESULT_DONE);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_EXISTS);
	byway_shut(&wharf->byway, false, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, wharf_setup, wharf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lookups_have_a_lane_of_their_own),
		cmocka_unit_test(a_lane_that_is_down_is_the_last_choice),
		cmocka_unit_test(the_only_lane_is_leased_even_if_it_is_down),
		cmocka_unit_test(who_waits_is_served_in_the_order_of_coming),
		cmocka_unit_test(who_waits_gets_no_lane_that_is_down),
		TEST(nobody_waits_for_a_lane_longer_than_a_call_may_take),
		TEST(a_call_takes_a_lane_that_is_up),
		TEST(what_is_remembered_needs_no_lane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
