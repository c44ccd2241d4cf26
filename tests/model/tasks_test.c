/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of an adapter against records in a row: every result once, every row where it belongs, no
 * room lost.
 *
 * Facts come in any order and with any rows; some say that they did not retire, and some of those are
 * followed by a notice, before or after the result was taken.  Bits of a row follow from its op's
 * id, so that a row that strays shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapter/tasks.h"
#include "named_block.h"
#include "prop.h"

#define PARTS_MAX 4u
#define KEYS_MAX (PARTS_MAX * OP_KEYS_MAX)
#define LIVE_MAX (PARTS_MAX * TASK_KIND_COUNT)

static const uint32_t part_max[TASK_KIND_COUNT] = { PARTS_MAX, 2, 3 };

enum life { NONE, PENDING, FINISHED, STUCK, RETIRED };

struct record {
	enum life      life;
	enum task_kind kind;
	uint64_t       id; /* ops have the ids from here on */
	uint32_t       key_count, part_count;
	uint32_t       distinct; /* keys of the first rows; the later ones repeat them */
	bool           answered[PARTS_MAX], unretired[PARTS_MAX];
	bool           doubted[PARTS_MAX]; /* was unretired once: a notice mends no row */
	uint64_t       seed; /* of its rows; 0: all ok */
	uint64_t       moved_bytes;
	uint64_t       turn; /* when it became FINISHED or RETIRED */
};

struct world {
	struct tasks    tasks;
	struct record   records[LIVE_MAX];
	uint64_t        next_id, turn;
	struct kvs_key  keys[KEYS_MAX];
	struct kvs_span spans[KEYS_MAX];
};

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	KVS_ASSERT(tasks_open(&world->tasks, part_max) == 0);
	world->next_id = 1;
	return world;
}

static uint32_t parts_busy(const struct world *world, enum task_kind kind)
{
	uint32_t busy = 0;
	uint32_t i;

	for (i = 0; i < LIVE_MAX; i++) {
		if (world->records[i].life != NONE && world->records[i].kind == kind)
			busy += world->records[i].part_count;
	}
	return busy;
}

/* The from-th record of a life, counted round and round; NULL when there is none. */
static struct record *pick(struct world *world, enum life life, uint32_t from)
{
	uint32_t i;

	for (i = 0; i < LIVE_MAX; i++) {
		struct record *const record = &world->records[(from + i) % LIVE_MAX];

		if (record->life == life)
			return record;
	}
	return NULL;
}

static uint32_t part_keys(const struct record *record, uint32_t part)
{
	const uint32_t left = record->key_count - part * OP_KEYS_MAX;

	return left < OP_KEYS_MAX ? left : OP_KEYS_MAX;
}

static bool row_ok(const struct record *record, uint32_t part, uint32_t row)
{
	return record->seed == 0 || (mix64(record->seed + record->id + part) + row) % 3 != 0;
}

/* --- steps --------------------------------------------------------------- */

/* Each part carries its rows of the batch, and a store names each key to the executor once. */
static void check_ops(const struct world *world, const struct record *record, uint32_t slot)
{
	const bool once = record->kind == TASK_STORE && record->part_count > 1;
	uint32_t   part = 0, row = 0;

	for (; slot != SLOT_NONE; slot = world->tasks.parts[slot].next, part++) {
		const struct op *const op = &world->tasks.parts[slot].op;
		uint32_t               i;

		KVS_ASSERT_CMP(op->op_id, ==, record->id + part);
		KVS_ASSERT_CMP(op->key_count, ==, part_keys(record, part));
		KVS_ASSERT_CMP(op->flags, ==, record->kind == TASK_LOOKUP ? OP_LOCK : 0);
		for (i = 0; i < op->key_count; i++, row++) {
			KVS_ASSERT(memcmp(&op->keys[i], &world->keys[row], sizeof(op->keys[i])) == 0);
			KVS_ASSERT(!op->spans || op->spans[i].bytes == world->spans[row].bytes);
			KVS_ASSERT_CMP(bits_test(op->owned.words, i), ==,
				       !once || row < record->distinct);
		}
	}
	KVS_ASSERT_CMP(part, ==, record->part_count);
}

static void start(struct world *world, enum task_kind kind, const struct prop_op *op)
{
	const uint32_t       count = 1 + op->arg[1] % (part_max[kind] * OP_KEYS_MAX);
	const uint32_t       parts = (count + OP_KEYS_MAX - 1) / OP_KEYS_MAX;
	struct record *const record = pick(world, NONE, 0);
	const uint32_t       distinct = 1 + op->arg[0] / 8 % (2 * count);
	uint32_t             slot, i;

	for (i = 0; i < count; i++) {
		world->keys[i] = key_of(i % distinct);
		world->spans[i] = (struct kvs_span){ .bytes = op->arg[0] % 100 + i };
	}
	slot = tasks_start(&world->tasks, kind, world->keys,
			   kind == TASK_LOOKUP ? NULL : world->spans, count, 0);
	if (parts_busy(world, kind) + parts > part_max[kind]) {
		KVS_ASSERT_CMP(slot, ==, SLOT_NONE);
		return;
	}
	*record = (struct record){ .life = PENDING,
				   .kind = kind,
				   .id = world->next_id,
				   .key_count = count,
				   .part_count = parts,
				   .distinct = distinct,
				   .seed = op->arg[0] % 2 ? op->arg[0] : 0 };
	world->next_id += parts;
	KVS_ASSERT_CMP(tasks_id(&world->tasks, slot), ==, record->id);
	check_ops(world, record, slot);
}

static bool all_answered(const struct record *record)
{
	uint32_t part;

	for (part = 0; part < record->part_count; part++) {
		if (!record->answered[part])
			return false;
	}
	return true;
}

static bool is_retired(const struct record *record)
{
	uint32_t part;

	for (part = 0; part < record->part_count; part++) {
		if (record->unretired[part])
			return false;
	}
	return true;
}

static uint32_t part_that(const struct record *record, const bool *flag, bool value, uint32_t from)
{
	uint32_t i;

	for (i = 0; i < record->part_count; i++) {
		const uint32_t part = (from + i) % record->part_count;

		if (flag[part] == value)
			return part;
	}
	return SLOT_NONE;
}

static void answer(struct world *world, const struct prop_op *op)
{
	struct record *const record = pick(world, PENDING, op->arg[0]);
	struct fact          fact = { .retired = true };
	uint32_t             part, row;

	if (!record)
		return;
	part = part_that(record, record->answered, false, op->arg[1]);
	fact.retired = record->kind == TASK_LOOKUP || op->arg[1] % 4 != 0;
	fact.op_id = record->id + part;
	fact.key_count = part_keys(record, part);
	fact.moved_bytes = op->arg[1] % 1000;
	for (row = 0; row < fact.key_count; row++) {
		if (row_ok(record, part, row))
			bits_set(fact.ok.words, row);
	}
	tasks_answer(&world->tasks, &fact);
	record->answered[part] = true;
	record->unretired[part] = record->doubted[part] = !fact.retired;
	record->moved_bytes += fact.retired ? fact.moved_bytes : 0;
	if (all_answered(record)) {
		record->life = FINISHED;
		record->turn = ++world->turn;
	}
}

static void notice(struct world *world, enum life life, const struct prop_op *op)
{
	struct record *const     record = pick(world, life, op->arg[0]);
	struct retirement_notice said;
	uint32_t                 part;

	if (!record)
		return;
	part = part_that(record, record->unretired, true, op->arg[1]);
	/* A notice of an op that nobody doubts, or that nobody knows, changes nothing. */
	said.op_id = part == SLOT_NONE ? record->id : record->id + part;
	KVS_ASSERT_CMP(tasks_notice(&world->tasks, &said) == SLOT_NONE, ==, part == SLOT_NONE);
	KVS_ASSERT_CMP(tasks_notice(&world->tasks, &said), ==, SLOT_NONE);
	if (part == SLOT_NONE)
		return;
	record->unretired[part] = false;
	if (life == STUCK && is_retired(record)) {
		record->life = RETIRED;
		record->turn = ++world->turn;
	}
}

static void check_result(const struct record *record, const struct task_result *result,
			 const uint64_t *words)
{
	bool     ok = true;
	uint32_t row;

	for (row = 0; row < record->key_count; row++) {
		const uint32_t part = row / OP_KEYS_MAX;
		const bool     expected =
			!record->doubted[part] && row_ok(record, part, row % OP_KEYS_MAX);

		KVS_ASSERT_CMP(bits_test(words, row), ==, expected);
		ok &= expected;
	}
	KVS_ASSERT_CMP(result->task_id, ==, record->id);
	KVS_ASSERT_CMP(result->ok, ==, ok);
	KVS_ASSERT_CMP(result->retired, ==, is_retired(record));
	KVS_ASSERT_CMP(result->moved_bytes, ==, record->moved_bytes);
}

static void take(struct world *world, const struct prop_op *op)
{
	struct record *const record = pick(world, FINISHED, op->arg[0]);
	uint64_t             words[KEYS_MAX / 64];
	struct task_result   result;
	uint32_t             slot;

	if (!record)
		return;
	slot = tasks_find(&world->tasks, record->kind, record->id);
	KVS_ASSERT(slot != SLOT_NONE);
	KVS_ASSERT_CMP(tasks_find(&world->tasks, (record->kind + 1) % TASK_KIND_COUNT, record->id),
		       ==, SLOT_NONE);
	tasks_take(&world->tasks, slot, &result, words);
	check_result(record, &result, words);
	KVS_ASSERT_CMP(tasks_find(&world->tasks, record->kind, record->id), ==, SLOT_NONE);
	record->life = is_retired(record) ? NONE : STUCK;
}

/* The oldest of a kind in a life that waits for its caller. */
static struct record *oldest(struct world *world, enum task_kind kind, enum life life)
{
	struct record *found = NULL;
	uint32_t       i;

	for (i = 0; i < LIVE_MAX; i++) {
		struct record *const record = &world->records[i];

		if (record->life == life && record->kind == kind &&
		    (!found || record->turn < found->turn))
			found = record;
	}
	return found;
}

static void tell(struct world *world, enum task_kind kind)
{
	struct record *const record = oldest(world, kind, RETIRED);

	KVS_ASSERT_CMP(tasks_tell(&world->tasks, kind), ==, record ? record->id : 0);
	if (record)
		record->life = NONE;
}

static void check_waiting(struct world *world, enum task_kind kind)
{
	const struct record *const first = oldest(world, kind, FINISHED);
	uint32_t                   ready = 0;
	uint32_t                   i;

	for (i = 0; i < LIVE_MAX; i++) {
		const struct record *const record = &world->records[i];

		ready += record->kind == kind &&
			 (record->life == FINISHED || record->life == RETIRED);
	}
	KVS_ASSERT_CMP(tasks_ready(&world->tasks, kind), ==, ready);
	KVS_ASSERT_CMP(world->tasks.finished[kind].head, ==,
		       first ? tasks_find(&world->tasks, kind, first->id) : SLOT_NONE);
}

enum { START_STORE, START_LOOKUP, START_LOAD, ANSWER, NOTICE_EARLY, NOTICE, TAKE, TELL, FIND };

static const struct prop_kind kinds[] = { { "START_STORE", 6 }, { "START_LOOKUP", 6 },
					  { "START_LOAD", 6 },  { "ANSWER", 24 },
					  { "NOTICE_EARLY", 3 }, { "NOTICE", 8 },
					  { "TAKE", 14 },       { "TELL", 6 },
					  { "FIND", 3 } };

static void find(struct world *world, const struct prop_op *op)
{
	const struct record *const record = &world->records[op->arg[0] % LIVE_MAX];
	const uint64_t             id = op->arg[1] % 2 ? record->id : op->arg[1];
	uint32_t                   kind;

	if (record->life == FINISHED && id == record->id)
		return;
	for (kind = 0; kind < TASK_KIND_COUNT; kind++) {
		const uint32_t slot = tasks_find(&world->tasks, kind, id);

		KVS_ASSERT(slot == SLOT_NONE || tasks_id(&world->tasks, slot) == id);
	}
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	uint32_t            kind;

	switch (op->kind) {
	case START_STORE:
	case START_LOOKUP:
	case START_LOAD:
		start(world, op->kind - START_STORE + TASK_STORE, op);
		break;
	case ANSWER:
		answer(world, op);
		break;
	case NOTICE_EARLY:
		notice(world, op->arg[0] % 2 ? FINISHED : PENDING, op);
		break;
	case NOTICE:
		notice(world, STUCK, op);
		break;
	case TAKE:
		take(world, op);
		break;
	case TELL:
		tell(world, op->arg[0] % TASK_KIND_COUNT);
		break;
	case FIND:
		find(world, op);
		break;
	default:
		KVS_PANIC("no step %u", op->kind);
	}
	tasks_audit(&world->tasks);
	for (kind = 0; kind < TASK_KIND_COUNT; kind++)
		check_waiting(world, kind);
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	tasks_close(&world->tasks);
	free(world);
}

PROP_MAIN("tasks", B2_3_every_result_comes_once_and_every_row_to_its_task, 30, 400, world_close)
