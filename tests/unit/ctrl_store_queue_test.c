/* SPDX-License-Identifier: Apache-2.0 */
/* Keys on their way to the stores: lines, tasks of one shape, bounds, and who is asked about deletion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctrl/store_queue.h"
#include "named_block.h"

static const struct ctrl_limits limits = { .in_flight_max = 2, .queue_max = 600 };

/* Even numbers are of group 0, odd ones of group 1. */
static struct kvs_key key_at(uint32_t number)
{
	struct kvs_key key = key_of(number);

	key.group = (uint16_t)(number % 2);
	return key;
}

static uint32_t add(struct store_queue *queue, uint32_t number, uint64_t targets)
{
	const struct kvs_key key = key_at(number);

	return store_queue_add(queue, &key, 100, number, targets);
}

static void open_queue(struct store_queue *queue, const struct ctrl_limits *with)
{
	assert_int_equal(store_queue_open(queue, with), 0);
}

/* The number of a task's i-th key. */
static uint32_t key_in(const struct store_queue *queue, const struct store_task *task, uint32_t i)
{
	assert_true(i < task->count);
	return queue->keys[task->keys[i]].key.offset;
}

static void end(struct store_queue *queue, uint32_t adapter, struct store_task *task, bool stored)
{
	store_queue_settle(queue, task, stored);
	store_queue_release(queue, adapter, task);
	store_queue_audit(queue);
}

static uint32_t ended(struct store_queue *queue)
{
	struct kvs_key key;
	uint32_t       count = 0;

	while (store_queue_pop_ended(queue, &key))
		count++;
	store_queue_audit(queue);
	return count;
}

static void close_empty(struct store_queue *queue)
{
	store_queue_audit(queue);
	assert_int_equal(queue->slots.busy_count, 0);
	store_queue_close(queue);
}

static void B3_1_a_task_takes_keys_of_one_shape_in_their_order(void **state)
{
	struct store_queue       queue;
	const struct store_task *even, *odd;
	uint32_t                 i;

	(void)state;
	open_queue(&queue, &limits);
	for (i = 0; i < 10; i++)
		assert_int_equal(add(&queue, i, 1), 0);
	even = store_queue_next(&queue, 0);
	odd = store_queue_next(&queue, 0);
	assert_int_equal(even->count, 5);
	assert_int_equal(odd->count, 5);
	for (i = 0; i < 5; i++) {
		assert_int_equal(key_in(&queue, even, i), 2 * i);
		assert_int_equal(key_in(&queue, odd, i), 2 * i + 1);
	}
	assert_int_equal(queue.lines[0].bytes, 1000);
	end(&queue, 0, (struct store_task *)even, true);
	end(&queue, 0, (struct store_task *)odd, false);
	assert_int_equal(ended(&queue), 5);
	close_empty(&queue);
}

static void B3_1_shape_is_namespace_group_and_bytes(void **state)
{
	struct store_queue queue;
	struct kvs_key     keys[4] = { key_of(2), key_of(4), key_of(6), key_of(8) };
	struct store_task *task;

	(void)state;
	open_queue(&queue, &limits);
	keys[1].space.byte[15] = 1;
	keys[2].group = 1;
	store_queue_add(&queue, &keys[0], 100, 0, 1);
	store_queue_add(&queue, &keys[1], 100, 1, 1);
	store_queue_add(&queue, &keys[2], 100, 2, 1);
	store_queue_add(&queue, &keys[3], 101, 3, 1);
	store_queue_add(&queue, &keys[0], 100, 4, 1);
	task = store_queue_next(&queue, 0);
	assert_int_equal(task->count, 2);
	end(&queue, 0, task, false);
	assert_int_equal(queue.lines[0].count, 3);
	while ((task = store_queue_next(&queue, 0))) {
		assert_int_equal(task->count, 1);
		end(&queue, 0, task, false);
	}
	close_empty(&queue);
}

static void a_long_line_goes_out_in_tasks_of_their_size(void **state)
{
	struct store_queue queue;
	struct store_task *one, *two;
	uint32_t           i;

	(void)state;
	open_queue(&queue, &limits);
	for (i = 0; i < 600; i++)
		add(&queue, 2 * i, 1);
	one = store_queue_next(&queue, 0);
	two = store_queue_next(&queue, 0);
	assert_int_equal(one->count, STORE_TASK_KEYS);
	assert_int_equal(two->count, STORE_TASK_KEYS);
	assert_int_equal(key_in(&queue, two, 0), 2 * STORE_TASK_KEYS);
	assert_null(store_queue_next(&queue, 0));
	end(&queue, 0, one, false);
	one = store_queue_next(&queue, 0);
	assert_int_equal(one->count, 600 - 2 * STORE_TASK_KEYS);
	end(&queue, 0, one, false);
	end(&queue, 0, two, false);
	close_empty(&queue);
}

static void a_full_line_refuses_and_others_take_the_key(void **state)
{
	struct store_queue queue;
	uint32_t           i;

	(void)state;
	open_queue(&queue, &limits);
	for (i = 0; i < 600; i++)
		assert_int_equal(add(&queue, i, 1), 0);
	assert_int_equal(add(&queue, 600, 5), 1);
	assert_int_equal(queue.lines[2].count, 1);
	assert_int_equal(add(&queue, 601, 1), 1);
	store_queue_audit(&queue);
	assert_int_equal(store_queue_drop(&queue, 0), 600);
	assert_int_equal(store_queue_drop(&queue, 0), 0);
	assert_int_equal(store_queue_drop(&queue, 2), 1);
	assert_int_equal(ended(&queue), 0);
	close_empty(&queue);
}

static void bytes_in_flight_are_bounded_but_for_one_alone(void **state)
{
	static const struct {
		uint64_t limit;
		uint32_t first, second; /* keys of 100 bytes */
	} rows[] = { { 0, 8, 0 }, { 50, 1, 0 }, { 100, 1, 0 }, { 350, 3, 0 }, { 799, 7, 0 } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		struct ctrl_limits narrow = limits;
		struct store_queue queue;
		struct store_task *task;
		uint32_t           j;

		narrow.in_flight_bytes = rows[i].limit;
		open_queue(&queue, &narrow);
		for (j = 0; j < 8; j++)
			add(&queue, 2 * j, 1);
		task = store_queue_next(&queue, 0);
		assert_int_equal(task->count, rows[i].first);
		assert_null(store_queue_next(&queue, 0));
		end(&queue, 0, task, false);
		while ((task = store_queue_next(&queue, 0)))
			end(&queue, 0, task, false);
		close_empty(&queue);
	}
}

static void what_was_put_back_is_next_and_in_order(void **state)
{
	struct store_queue queue;
	struct store_task *task;
	uint32_t           i;

	(void)state;
	open_queue(&queue, &limits);
	for (i = 0; i < 6; i++)
		add(&queue, i, 1);
	task = store_queue_next(&queue, 0);
	store_queue_put_back(&queue, 0, task);
	store_queue_audit(&queue);
	assert_int_equal(queue.lines[0].count, 6);
	assert_int_equal(queue.lines[0].busy.busy_count, 0);
	assert_int_equal(queue.lines[0].bytes, 0);
	task = store_queue_next(&queue, 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(key_in(&queue, task, i), 2 * i);
	end(&queue, 0, task, false);
	assert_int_equal(store_queue_drop(&queue, 0), 3);
	close_empty(&queue);
}

static void rows_that_are_gone_leave_a_task_and_their_pins_close_up(void **state)
{
	static const int   rc[4] = { KVS_E_MISSING, 0, KVS_E_STALE, 0 };
	struct store_queue queue;
	struct store_task *task;
	uint32_t           i;

	(void)state;
	open_queue(&queue, &limits);
	for (i = 0; i < 4; i++)
		add(&queue, 2 * i, 1);
	task = store_queue_next(&queue, 0);
	for (i = 0; i < 4; i++)
		task->pins[i] = (struct host_pin){ .shard = i, .record = 10 + i };
	assert_int_equal(store_queue_keep(&queue, task, rc), 2);
	store_queue_audit(&queue);
	assert_int_equal(task->count, 2);
	assert_int_equal(key_in(&queue, task, 0), 2);
	assert_int_equal(key_in(&queue, task, 1), 6);
	assert_int_equal(task->pins[0].record, 11);
	assert_int_equal(task->pins[1].record, 13);
	end(&queue, 0, task, true);
	assert_int_equal(ended(&queue), 2);
	close_empty(&queue);
}

/* A key that one adapter has and another still waits for would be gone too early. */
static void B3_2_a_key_is_asked_about_once_when_no_put_of_it_is_left(void **state)
{
	struct store_queue queue;
	struct store_task *slow, *fast;

	(void)state;
	open_queue(&queue, &limits);
	add(&queue, 0, 3);
	add(&queue, 2, 2);
	slow = store_queue_next(&queue, 0);
	fast = store_queue_next(&queue, 1);
	end(&queue, 1, fast, true);
	assert_int_equal(ended(&queue), 1);
	end(&queue, 0, slow, false);
	assert_int_equal(ended(&queue), 1);
	close_empty(&queue);
}

static void B3_2_a_key_that_no_adapter_stored_is_not_asked_about(void **state)
{
	struct store_queue queue;

	(void)state;
	open_queue(&queue, &limits);
	add(&queue, 0, 3);
	end(&queue, 0, store_queue_next(&queue, 0), false);
	assert_int_equal(store_queue_drop(&queue, 1), 1);
	assert_int_equal(ended(&queue), 0);
	close_empty(&queue);
}

static void a_task_in_doubt_keeps_its_place_and_stops_a_line_that_has_no_other(void **state)
{
	static const struct ctrl_limits one = { .in_flight_max = 1, .queue_max = 8 };
	struct store_queue              queue;
	struct store_task              *task;

	(void)state;
	open_queue(&queue, &one);
	add(&queue, 0, 1);
	task = store_queue_next(&queue, 0);
	task->task_id = 7;
	assert_ptr_equal(store_queue_find(&queue, 0, 7), task);
	assert_false(store_queue_stuck(&queue, 0));
	store_queue_settle(&queue, task, false);
	store_queue_doubt(&queue, 0, task);
	store_queue_audit(&queue);
	add(&queue, 2, 1);
	assert_true(store_queue_stuck(&queue, 0));
	assert_null(store_queue_next(&queue, 0));
	assert_int_equal(queue.lines[0].bytes, 100);
	store_queue_release(&queue, 0, task);
	assert_false(store_queue_stuck(&queue, 0));
	end(&queue, 0, store_queue_next(&queue, 0), false);
	close_empty(&queue);
}

static void the_oldest_key_that_has_not_ended_is_known(void **state)
{
	struct store_queue queue;
	struct store_task *even, *odd;
	uint32_t           i;

	(void)state;
	open_queue(&queue, &limits);
	assert_int_equal(store_queue_oldest(&queue, 100), 100);
	for (i = 0; i < 6; i++)
		add(&queue, i, 1);
	assert_int_equal(store_queue_oldest(&queue, 100), 0);
	even = store_queue_next(&queue, 0);
	odd = store_queue_next(&queue, 0);
	add(&queue, 6, 2);
	store_queue_put_back(&queue, 0, odd);
	end(&queue, 0, even, true);
	assert_int_equal(store_queue_oldest(&queue, 100), 1);
	odd = store_queue_next(&queue, 0);
	assert_int_equal(store_queue_oldest(&queue, 100), 1);
	store_queue_settle(&queue, odd, false);
	store_queue_doubt(&queue, 0, odd);
	assert_int_equal(store_queue_oldest(&queue, 100), 6);
	store_queue_release(&queue, 0, odd);
	store_queue_drop(&queue, 1);
	assert_int_equal(store_queue_oldest(&queue, 100), 100);
	assert_int_equal(ended(&queue), 3);
	close_empty(&queue);
}

/* Taken in part and put back, younger keys stand before older ones. */
static void the_oldest_is_known_where_a_task_was_put_back(void **state)
{
	static const struct ctrl_limits narrow = { .in_flight_max = 2,
						   .queue_max = 8,
						   .in_flight_bytes = 200 };
	struct store_queue              queue;
	struct store_task              *task;

	(void)state;
	open_queue(&queue, &narrow);
	add(&queue, 0, 1);
	add(&queue, 1, 1);
	add(&queue, 2, 1);
	store_queue_put_back(&queue, 0, store_queue_next(&queue, 0));
	queue.limits.in_flight_bytes = 100;
	task = store_queue_next(&queue, 0);
	assert_int_equal(key_in(&queue, task, 0), 0);
	end(&queue, 0, task, false);
	assert_int_equal(store_queue_oldest(&queue, 100), 1);
	store_queue_drop(&queue, 0);
	close_empty(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B3_1_a_task_takes_keys_of_one_shape_in_their_order),
		cmocka_unit_test(B3_1_shape_is_namespace_group_and_bytes),
		cmocka_unit_test(a_long_line_goes_out_in_tasks_of_their_size),
		cmocka_unit_test(a_full_line_refuses_and_others_take_the_key),
		cmocka_unit_test(bytes_in_flight_are_bounded_but_for_one_alone),
		cmocka_unit_test(what_was_put_back_is_next_and_in_order),
		cmocka_unit_test(rows_that_are_gone_leave_a_task_and_their_pins_close_up),
		cmocka_unit_test(B3_2_a_key_is_asked_about_once_when_no_put_of_it_is_left),
		cmocka_unit_test(B3_2_a_key_that_no_adapter_stored_is_not_asked_about),
		cmocka_unit_test(a_task_in_doubt_keeps_its_place_and_stops_a_line_that_has_no_other),
		cmocka_unit_test(the_oldest_key_that_has_not_ended_is_known),
		cmocka_unit_test(the_oldest_is_known_where_a_task_was_put_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
