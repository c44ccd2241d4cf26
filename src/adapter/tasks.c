/* SPDX-License-Identifier: Apache-2.0 */
/* See tasks.h. */
#include "adapter/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

int tasks_open(struct tasks *tasks, const uint32_t *part_max)
{
	const size_t store_keys = (size_t)part_max[TASK_STORE] * OP_KEYS_MAX;
	size_t       parts = 0;
	int          kind;

	*tasks = (struct tasks){ 0 };
	for (kind = 0; kind < TASK_KIND_COUNT; kind++) {
		tasks->part_max[kind] = part_max[kind];
		parts += part_max[kind];
		list_init(&tasks->finished[kind]);
		list_init(&tasks->retired[kind]);
	}
	tasks->parts = calloc(parts, sizeof(*tasks->parts));
	tasks->tasks = calloc(parts, sizeof(*tasks->tasks));
	tasks->keys = calloc(parts, OP_KEYS_MAX * sizeof(*tasks->keys));
	tasks->spans = calloc(parts, OP_KEYS_MAX * sizeof(*tasks->spans));
	tasks->links = calloc(parts, sizeof(*tasks->links));
	if (!tasks->parts || !tasks->tasks || !tasks->keys || !tasks->spans || !tasks->links ||
	    slots_open(&tasks->slots, (uint32_t)parts) < 0 ||
	    map_open(&tasks->ops, (uint32_t)parts, &tasks->parts[0].op.op_id,
		     sizeof(*tasks->parts), sizeof(tasks->parts[0].op.op_id)) < 0 ||
	    map_open(&tasks->once, (uint32_t)store_keys, tasks->keys, sizeof(*tasks->keys),
		     sizeof(*tasks->keys)) < 0) {
		tasks_close(tasks);
		return -ENOMEM;
	}
	list_links_init(tasks->links, (uint32_t)parts);
	return 0;
}

void tasks_close(struct tasks *tasks)
{
	map_close(&tasks->once);
	map_close(&tasks->ops);
	slots_close(&tasks->slots);
	free(tasks->links);
	free(tasks->spans);
	free(tasks->keys);
	free(tasks->tasks);
	free(tasks->parts);
	*tasks = (struct tasks){ 0 };
}

static uint64_t hash_of(const struct tasks *tasks, uint64_t op_id)
{
	return map_hash(&tasks->ops, &op_id);
}

static uint32_t find_part(const struct tasks *tasks, uint64_t op_id)
{
	return map_find(&tasks->ops, hash_of(tasks, op_id), &op_id);
}

/* --- starting ------------------------------------------------------------ */

static enum op_kind op_kind_of(enum task_kind kind)
{
	return kind == TASK_STORE ? OP_PUT : kind == TASK_LOAD ? OP_GET : OP_QUERY;
}

/* The slot of one more part; its op is numbered, known by its id and ready to be submitted. */
static uint32_t start_part(struct tasks *tasks, enum task_kind kind, const struct kvs_key *keys,
			   const struct kvs_span *spans, uint32_t count)
{
	const uint32_t          slot = slots_acquire(&tasks->slots);
	struct task_part *const part = &tasks->parts[slot];
	const size_t            row = (size_t)slot * OP_KEYS_MAX;

	KVS_ASSERT(slot != SLOT_NONE);
	*part = (struct task_part){ .next = SLOT_NONE };
	part->op = (struct op){ .op_id = ++tasks->last_id,
				.kind = op_kind_of(kind),
				.flags = kind == TASK_LOOKUP ? OP_LOCK : 0,
				.key_count = count,
				.keys = tasks->keys + row,
				.spans = spans ? tasks->spans + row : NULL };
	memcpy(tasks->keys + row, keys, count * sizeof(*keys));
	if (spans)
		memcpy(tasks->spans + row, spans, count * sizeof(*spans));
	op_own_all(&part->op);
	map_insert(&tasks->ops, hash_of(tasks, part->op.op_id), slot);
	tasks->part_count[kind]++;
	return slot;
}

/*
 * Parts run side by side, and a store answers "unknown" for a key that another call just writes.
 * The executor folds equal keys of one op only, so each key is owned by its first row.
 */
static void own_each_key_once(struct tasks *tasks, uint32_t task)
{
	struct map *const once = &tasks->once;
	uint32_t          slot, i;

	for (slot = task; slot != SLOT_NONE; slot = tasks->parts[slot].next) {
		struct op *const op = &tasks->parts[slot].op;

		for (i = 0; i < op->key_count; i++) {
			const uint64_t hash = map_hash(once, &op->keys[i]);

			if (map_find(once, hash, &op->keys[i]) == SLOT_NONE)
				map_insert(once, hash, slot * OP_KEYS_MAX + i);
			else
				bits_clear(op->owned.words, i);
		}
	}
	for (slot = task; slot != SLOT_NONE; slot = tasks->parts[slot].next) {
		const struct op *const op = &tasks->parts[slot].op;

		for (i = 0; i < op->key_count; i++) {
			if (bits_test(op->owned.words, i)) {
				map_remove(once, map_hash(once, &op->keys[i]),
					   slot * OP_KEYS_MAX + i);
			}
		}
	}
}

uint32_t tasks_start(struct tasks *tasks, enum task_kind kind, const struct kvs_key *keys,
		     const struct kvs_span *spans, uint32_t count, uint64_t now_ns)
{
	const uint32_t parts = count / OP_KEYS_MAX + (count % OP_KEYS_MAX != 0);
	uint32_t       task = SLOT_NONE, last = SLOT_NONE;
	uint32_t       from;

	KVS_ASSERT_CMP(count, >, 0);
	KVS_ASSERT_CMP(!spans, ==, kind == TASK_LOOKUP);
	if (parts > tasks->part_max[kind] - tasks->part_count[kind])
		return SLOT_NONE;
	for (from = 0; from < count; from += OP_KEYS_MAX) {
		const uint32_t most = count - from < OP_KEYS_MAX ? count - from : OP_KEYS_MAX;
		const uint32_t slot = start_part(tasks, kind, keys + from,
						 spans ? spans + from : NULL, most);

		if (task == SLOT_NONE)
			task = slot;
		else
			tasks->parts[last].next = slot;
		tasks->parts[slot].task = task;
		last = slot;
	}
	if (kind == TASK_STORE && parts > 1)
		own_each_key_once(tasks, task);
	tasks->tasks[task] = (struct task){
		.kind = kind, .state = TASK_PENDING, .waiting_count = parts, .submitted_ns = now_ns
	};
	return task;
}

/* --- facts and notices --------------------------------------------------- */

uint32_t tasks_answer(struct tasks *tasks, const struct fact *fact)
{
	const uint32_t          slot = find_part(tasks, fact->op_id);
	struct task_part *const part = &tasks->parts[slot];
	struct task            *task;

	KVS_ASSERT(slot != SLOT_NONE);
	KVS_ASSERT(!part->answered);
	KVS_ASSERT_CMP(part->op.key_count, ==, fact->key_count);
	/* A query touches no payload; its locks must not be forgotten with its rows. */
	KVS_ASSERT(fact->retired || part->op.spans);
	task = &tasks->tasks[part->task];
	part->answered = true;
	part->unretired = !fact->retired;
	/* Rows whose bytes may still change are no rows to read, whatever the store said of them. */
	if (fact->retired) {
		part->ok = fact->ok;
		task->moved_bytes += fact->moved_bytes;
	} else {
		task->unretired_count++;
	}
	if (fact->reason > task->reason)
		task->reason = fact->reason;
	if (--task->waiting_count == 0) {
		task->state = TASK_FINISHED;
		list_push_tail(&tasks->finished[task->kind], tasks->links, part->task);
	}
	return part->task;
}

uint32_t tasks_notice(struct tasks *tasks, const struct retirement_notice *notice)
{
	const uint32_t slot = find_part(tasks, notice->op_id);
	struct task   *task;

	if (slot == SLOT_NONE || !tasks->parts[slot].unretired)
		return SLOT_NONE;
	tasks->parts[slot].unretired = false;
	task = &tasks->tasks[tasks->parts[slot].task];
	if (--task->unretired_count == 0 && task->state == TASK_STUCK) {
		task->state = TASK_RETIRED;
		list_push_tail(&tasks->retired[task->kind], tasks->links, tasks->parts[slot].task);
	}
	return tasks->parts[slot].task;
}

/* --- results ------------------------------------------------------------- */

uint32_t tasks_find(const struct tasks *tasks, enum task_kind kind, uint64_t task_id)
{
	const uint32_t slot = find_part(tasks, task_id);

	if (slot == SLOT_NONE || tasks->parts[slot].task != slot ||
	    tasks->tasks[slot].kind != kind || tasks->tasks[slot].state != TASK_FINISHED)
		return SLOT_NONE;
	return slot;
}

static void end(struct tasks *tasks, uint32_t task)
{
	const enum task_kind kind = tasks->tasks[task].kind;
	uint32_t             slot = task;

	while (slot != SLOT_NONE) {
		const uint32_t next = tasks->parts[slot].next;

		map_remove(&tasks->ops, hash_of(tasks, tasks->parts[slot].op.op_id), slot);
		slots_release(&tasks->slots, slot);
		tasks->part_count[kind]--;
		slot = next;
	}
}

void tasks_take(struct tasks *tasks, uint32_t task, struct task_result *ret_result,
		uint64_t *ret_words)
{
	struct task *const t = &tasks->tasks[task];
	struct task_result result = { .task_id = tasks_id(tasks, task),
				      .ok = true,
				      .retired = t->unretired_count == 0,
				      .moved_bytes = t->moved_bytes,
				      .reason = t->reason };
	uint32_t           slot;

	KVS_ASSERT_CMP(t->state, ==, TASK_FINISHED);
	for (slot = task; slot != SLOT_NONE; slot = tasks->parts[slot].next) {
		const struct task_part *const part = &tasks->parts[slot];
		const size_t                  words = bits_words(part->op.key_count);

		result.ok &= bits_prefix(part->ok.words, part->op.key_count) == part->op.key_count;
		if (!ret_words)
			continue;
		/* Only the last part of a task ends inside a word. */
		memcpy(ret_words, part->ok.words, words * sizeof(*ret_words));
		ret_words += words;
	}
	list_remove(&tasks->finished[t->kind], tasks->links, task);
	if (result.retired)
		end(tasks, task);
	else
		t->state = TASK_STUCK;
	*ret_result = result;
}

uint64_t tasks_tell(struct tasks *tasks, enum task_kind kind)
{
	const uint32_t task = list_pop_head(&tasks->retired[kind], tasks->links);
	uint64_t       id;

	if (task == SLOT_NONE)
		return 0;
	id = tasks_id(tasks, task);
	end(tasks, task);
	return id;
}

/* --- audit --------------------------------------------------------------- */

static void audit_task(const struct tasks *tasks, uint32_t task, uint32_t *parts)
{
	const struct task *const t = &tasks->tasks[task];
	uint32_t                 waiting = 0, unretired = 0;
	uint32_t                 slot;

	for (slot = task; slot != SLOT_NONE; slot = tasks->parts[slot].next) {
		KVS_ASSERT_CMP(tasks->parts[slot].task, ==, task);
		KVS_ASSERT_CMP(find_part(tasks, tasks->parts[slot].op.op_id), ==, slot);
		waiting += !tasks->parts[slot].answered;
		unretired += tasks->parts[slot].unretired;
		parts[t->kind]++;
	}
	KVS_ASSERT_CMP(t->waiting_count, ==, waiting);
	KVS_ASSERT_CMP(t->unretired_count, ==, unretired);
	KVS_ASSERT_CMP(t->state == TASK_PENDING, ==, waiting > 0);
	KVS_ASSERT(t->state != TASK_STUCK || unretired > 0);
	KVS_ASSERT_CMP(list_is_linked(tasks->links, task), ==,
		       t->state == TASK_FINISHED || t->state == TASK_RETIRED);
}

void tasks_audit(const struct tasks *tasks)
{
	uint32_t parts[TASK_KIND_COUNT] = { 0 };
	uint32_t slot;
	int      kind;

	slots_audit(&tasks->slots);
	map_audit(&tasks->ops);
	KVS_ASSERT_CMP(tasks->once.count, ==, 0);
	for (slot = slots_next(&tasks->slots, 0); slot != SLOT_NONE;
	     slot = slots_next(&tasks->slots, slot + 1)) {
		if (tasks->parts[slot].task == slot)
			audit_task(tasks, slot, parts);
	}
	for (kind = 0; kind < TASK_KIND_COUNT; kind++) {
		KVS_ASSERT_CMP(parts[kind], ==, tasks->part_count[kind]);
		KVS_ASSERT_CMP(parts[kind], <=, tasks->part_max[kind]);
		list_audit(&tasks->finished[kind], tasks->links, tasks->slots.count);
		list_audit(&tasks->retired[kind], tasks->links, tasks->slots.count);
	}
}
