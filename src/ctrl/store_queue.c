/* SPDX-License-Identifier: Apache-2.0 */
/* See store_queue.h; store_tables.c has its memory. */
#include "ctrl/store_queue.h"

#include <string.h>

/*
 * How far a task looks for keys of its shape: a model's groups are written side by side, and past
 * some tasks' worth of others a look costs more than a short task.
 */
#define LOOK_KEYS (4 * STORE_TASK_KEYS)

/* --- keys ------------------------------------------------------------------------------------- */

/* The i-th place of a line, from its head. */
static uint32_t *place(const struct store_queue *queue, const struct store_line *line, uint32_t i)
{
	return &line->waiting[(line->head + i) % queue->limits.queue_max];
}

uint32_t store_queue_add(struct store_queue *queue, const struct kvs_key *key, uint64_t bytes,
			 uint64_t number, uint64_t targets)
{
	const uint32_t slot = slots_acquire(&queue->slots);
	uint32_t       full = 0, left = 0, n;

	KVS_ASSERT(slot != SLOT_NONE);
	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		struct store_line *const line = &queue->lines[n];

		if (!(targets >> n & 1))
			continue;
		if (line->count == queue->limits.queue_max) {
			full++;
			continue;
		}
		*place(queue, line, line->count++) = slot;
		left++;
	}
	queue->keys[slot] = (struct store_key){
		.key = *key, .bytes = bytes, .number = number, .left = left, .next = SLOT_NONE
	};
	if (left == 0)
		slots_release(&queue->slots, slot);
	return full;
}

static void push_ended(struct store_queue *queue, uint32_t slot)
{
	if (queue->ended_tail == SLOT_NONE)
		queue->ended_head = slot;
	else
		queue->keys[queue->ended_tail].next = slot;
	queue->ended_tail = slot;
}

/* One adapter ended with it. */
static void end(struct store_queue *queue, uint32_t slot, bool stored)
{
	struct store_key *const key = &queue->keys[slot];

	KVS_ASSERT_CMP(key->left, >, 0);
	key->stored |= stored;
	if (--key->left > 0)
		return;
	if (key->stored)
		push_ended(queue, slot);
	else
		slots_release(&queue->slots, slot);
}

bool store_queue_pop_ended(struct store_queue *queue, struct kvs_key *ret_key)
{
	const uint32_t slot = queue->ended_head;

	if (slot == SLOT_NONE)
		return false;
	*ret_key = queue->keys[slot].key;
	queue->ended_head = queue->keys[slot].next;
	if (queue->ended_head == SLOT_NONE)
		queue->ended_tail = SLOT_NONE;
	slots_release(&queue->slots, slot);
	return true;
}

/* --- tasks ------------------------------------------------------------------------------------ */

static bool alike(const struct store_key *a, const struct store_key *b)
{
	return a->bytes == b->bytes && a->key.group == b->key.group &&
	       memcmp(&a->key.space, &b->key.space, sizeof(a->key.space)) == 0;
}

/* How many keys of so many bytes may go out now. */
static uint32_t room_of(const struct store_queue *queue, const struct store_line *line, uint64_t bytes)
{
	const uint64_t limit = queue->limits.in_flight_bytes;
	uint64_t       room;

	if (limit == 0)
		return STORE_TASK_KEYS;
	room = line->bytes < limit ? (limit - line->bytes) / bytes : 0;
	if (room == 0 && line->busy.busy_count == 0)
		return 1;
	return room < STORE_TASK_KEYS ? (uint32_t)room : STORE_TASK_KEYS;
}

/* Move what is like the first, at most `most`, from the front part of the line to the task. */
static void gather(const struct store_queue *queue, struct store_line *line, struct store_task *task,
		   uint32_t most)
{
	const uint32_t                look = line->count < LOOK_KEYS ? line->count : LOOK_KEYS;
	const struct store_key *const first = &queue->keys[*place(queue, line, 0)];
	uint32_t                      i, to;

	for (i = 0; i < look && task->count < most; i++) {
		uint32_t *const slot = place(queue, line, i);

		if (!alike(&queue->keys[*slot], first))
			continue;
		task->keys[task->count++] = *slot;
		*slot = SLOT_NONE;
	}
	/* What was passed over closes up, backwards: the front of the line moves. */
	for (to = i; i-- > 0;) {
		if (*place(queue, line, i) != SLOT_NONE)
			*place(queue, line, --to) = *place(queue, line, i);
	}
	KVS_ASSERT_CMP(to, ==, task->count);
	line->head = (line->head + to) % queue->limits.queue_max;
	line->count -= to;
}

struct store_task *store_queue_next(struct store_queue *queue, uint32_t adapter)
{
	struct store_line *const line = &queue->lines[adapter];
	struct store_task       *task;
	uint64_t                 bytes;
	uint32_t                 most, slot;

	if (line->count == 0 || line->busy.busy_count == queue->limits.in_flight_max)
		return NULL;
	bytes = queue->keys[*place(queue, line, 0)].bytes;
	most = room_of(queue, line, bytes);
	if (most == 0)
		return NULL;
	slot = slots_acquire(&line->busy);
	KVS_ASSERT(slot != SLOT_NONE);
	task = &line->tasks[slot];
	task->task_id = 0;
	task->doubt = false;
	task->count = 0;
	gather(queue, line, task, most);
	task->bytes = bytes * task->count;
	line->bytes += task->bytes;
	return task;
}

void store_queue_put_back(struct store_queue *queue, uint32_t adapter, struct store_task *task)
{
	struct store_line *const line = &queue->lines[adapter];

	/* There is room: nothing was added since it was taken. */
	KVS_ASSERT_CMP(line->count + task->count, <=, queue->limits.queue_max);
	line->head = (line->head + queue->limits.queue_max - task->count) % queue->limits.queue_max;
	line->count += task->count;
	for (; task->count > 0; task->count--)
		*place(queue, line, task->count - 1) = task->keys[task->count - 1];
	store_queue_release(queue, adapter, task);
}

uint32_t store_queue_keep(struct store_queue *queue, struct store_task *task, const int *rc)
{
	const uint32_t count = task->count;
	uint32_t       i;

	task->count = 0;
	for (i = 0; i < count; i++) {
		if (rc[i] != 0) {
			end(queue, task->keys[i], false);
			continue;
		}
		task->keys[task->count] = task->keys[i];
		task->pins[task->count++] = task->pins[i];
	}
	return count - task->count;
}

struct store_task *store_queue_find(const struct store_queue *queue, uint32_t adapter, uint64_t task_id)
{
	const struct store_line *const line = &queue->lines[adapter];
	uint32_t                       slot;

	SLOTS_EACH(&line->busy, slot) {
		if (line->tasks[slot].task_id == task_id)
			return &line->tasks[slot];
	}
	KVS_PANIC("store task %llu of adapter %u is unknown", (unsigned long long)task_id, adapter);
}

void store_queue_settle(struct store_queue *queue, struct store_task *task, bool stored)
{
	uint32_t i;

	for (i = 0; i < task->count; i++)
		end(queue, task->keys[i], stored);
}

void store_queue_doubt(struct store_queue *queue, uint32_t adapter, struct store_task *task)
{
	KVS_ASSERT(!task->doubt);
	task->doubt = true;
	queue->lines[adapter].doubt_count++;
}

void store_queue_release(struct store_queue *queue, uint32_t adapter, struct store_task *task)
{
	struct store_line *const line = &queue->lines[adapter];

	line->doubt_count -= task->doubt;
	line->bytes -= task->bytes;
	slots_release(&line->busy, (uint32_t)(task - line->tasks));
}

uint32_t store_queue_drop(struct store_queue *queue, uint32_t adapter)
{
	struct store_line *const line = &queue->lines[adapter];
	const uint32_t           count = line->count;

	for (; line->count > 0; line->count--) {
		end(queue, *place(queue, line, 0), false);
		line->head = (line->head + 1) % queue->limits.queue_max;
	}
	return count;
}

bool store_queue_stuck(const struct store_queue *queue, uint32_t adapter)
{
	return queue->lines[adapter].doubt_count == queue->limits.in_flight_max;
}

/* --- looking ---------------------------------------------------------------------------------- */

static uint64_t lesser(const struct store_queue *queue, uint32_t slot, uint64_t number)
{
	return queue->keys[slot].number < number ? queue->keys[slot].number : number;
}

/* Only tasks that were put back brought disorder, and into the front part alone. */
static uint64_t oldest_waiting(const struct store_queue *queue, const struct store_line *line,
			       uint64_t number)
{
	uint32_t i;

	for (i = 0; i < line->count && i < LOOK_KEYS; i++)
		number = lesser(queue, *place(queue, line, i), number);
	return number;
}

uint64_t store_queue_oldest(const struct store_queue *queue, uint64_t none_number)
{
	uint64_t oldest = none_number;
	uint32_t n, slot, i;

	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		const struct store_line *const line = &queue->lines[n];

		oldest = oldest_waiting(queue, line, oldest);
		SLOTS_EACH(&line->busy, slot) {
			const struct store_task *const task = &line->tasks[slot];

			for (i = 0; !task->doubt && i < task->count; i++)
				oldest = lesser(queue, task->keys[i], oldest);
		}
	}
	return oldest;
}

/* How many lines and tasks name a key. */
static uint32_t named(const struct store_queue *queue, uint32_t slot)
{
	uint32_t count = 0, n, i, busy;

	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		const struct store_line *const line = &queue->lines[n];

		for (i = 0; i < line->count; i++)
			count += *place(queue, line, i) == slot;
		SLOTS_EACH(&line->busy, busy) {
			const struct store_task *const task = &line->tasks[busy];

			for (i = 0; !task->doubt && i < task->count; i++)
				count += task->keys[i] == slot;
		}
	}
	return count;
}

static void audit_line(const struct store_line *line)
{
	uint32_t doubts = 0, slot;
	uint64_t bytes = 0;

	slots_audit(&line->busy);
	SLOTS_EACH(&line->busy, slot) {
		doubts += line->tasks[slot].doubt;
		bytes += line->tasks[slot].bytes;
	}
	KVS_ASSERT_CMP(doubts, ==, line->doubt_count);
	KVS_ASSERT_CMP(bytes, ==, line->bytes);
}

void store_queue_audit(const struct store_queue *queue)
{
	uint32_t ended = 0, slot, n;

	slots_audit(&queue->slots);
	for (n = 0; n < KVS_ADAPTERS_MAX; n++)
		audit_line(&queue->lines[n]);
	for (slot = queue->ended_head; slot != SLOT_NONE; slot = queue->keys[slot].next) {
		KVS_ASSERT_CMP(queue->keys[slot].left, ==, 0);
		ended++;
	}
	SLOTS_EACH(&queue->slots, slot) {
		KVS_ASSERT_CMP(queue->keys[slot].left, ==, named(queue, slot));
		ended -= queue->keys[slot].left == 0;
	}
	KVS_ASSERT_CMP(ended, ==, 0);
}
