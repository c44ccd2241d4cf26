/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each policy against arrays: an order is a plain list, a move deletes and appends, a ghost is
 * searched from end to end.  Twenty slots make a ghost of eighteen names, and room for 21 of arc's.
 * An order of several parts is a model of as many orders, with the one ghost or room for names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "evict/evict.h"
#include "prop.h"

#define SLOTS 20u
#define PARTS 3u
#define GHOST 18u
#define CELLS (SLOTS + 1)
#define NAMES 48u /* few enough that names come back while remembered, and after */

struct queue {
	uint32_t slots[SLOTS];
	uint32_t count;
};

struct part {
	struct queue queues[2]; /* unused or small or recent or the only one; used or main or frequent */
	uint32_t     target, size;
	bool         full;
};

/* What arc remembers: a name and whose it is. */
struct cell {
	uint64_t name; /* 0: none */
	uint64_t age;  /* the lower, the older */
	uint32_t part;
	uint32_t queue;
};

struct world {
	struct evict *evict;
	struct part   parts[PARTS];
	bool          present[SLOTS];
	uint32_t      part_of[SLOTS];
	uint32_t      uses[SLOTS];
	uint64_t      names[SLOTS];
	uint64_t      ghost[GHOST]; /* newest first; 0: taken or never filled */
	struct cell   cells[CELLS];
	uint32_t      freed[CELLS]; /* the last to be freed is filled first */
	uint32_t      freed_count, filled, hand;
	uint64_t      now;
};

/* One property a policy and number of parts; open() takes no argument. */
static const char *policy;
static uint32_t    part_count;

static bool is(const char *name)
{
	return strcmp(policy, name) == 0;
}

static bool drop(struct queue *queue, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < queue->count; i++) {
		if (queue->slots[i] != slot)
			continue;
		memmove(&queue->slots[i], &queue->slots[i + 1],
			(queue->count - i - 1) * sizeof(queue->slots[0]));
		queue->count--;
		return true;
	}
	return false;
}

static void leave(struct world *w, uint32_t slot)
{
	drop(&w->parts[w->part_of[slot]].queues[0], slot);
	drop(&w->parts[w->part_of[slot]].queues[1], slot);
}

static void append(struct world *w, uint32_t queue, uint32_t slot)
{
	struct queue *const to = &w->parts[w->part_of[slot]].queues[queue];

	leave(w, slot);
	to->slots[to->count++] = slot;
}

static bool is_in(const struct world *w, uint32_t queue, uint32_t slot)
{
	const struct queue *const in = &w->parts[w->part_of[slot]].queues[queue];
	uint32_t                  i;

	for (i = 0; i < in->count; i++) {
		if (in->slots[i] == slot)
			return true;
	}
	return false;
}

static bool ghost_takes(struct world *w, uint64_t name)
{
	uint32_t i;

	for (i = 0; i < GHOST; i++) {
		if (w->ghost[i] == name) {
			w->ghost[i] = 0;
			return true;
		}
	}
	return false;
}

static void ghost_remembers(struct world *w, uint64_t name)
{
	ghost_takes(w, name);
	memmove(&w->ghost[1], &w->ghost[0], (GHOST - 1) * sizeof(w->ghost[0]));
	w->ghost[0] = name;
}

/* --- arc ---------------------------------------------------------------------------------------- */

static uint32_t count_of(const struct part *part)
{
	return part->queues[0].count + part->queues[1].count;
}

static uint32_t names_of(const struct world *w, uint32_t part, uint32_t queue)
{
	uint32_t count = 0, i;

	for (i = 0; i < CELLS; i++)
		count += w->cells[i].name && w->cells[i].part == part && w->cells[i].queue == queue;
	return count;
}

static struct cell *cell_of(struct world *w, uint64_t name)
{
	uint32_t i;

	for (i = 0; i < CELLS; i++) {
		if (w->cells[i].name == name)
			return &w->cells[i];
	}
	return NULL;
}

static void free_cell(struct world *w, struct cell *cell)
{
	if (!cell)
		return;
	cell->name = 0;
	w->freed[w->freed_count++] = (uint32_t)(cell - w->cells);
}

static struct cell *oldest(struct world *w, uint32_t part, uint32_t queue)
{
	struct cell *found = NULL;
	uint32_t     i;

	for (i = 0; i < CELLS; i++) {
		struct cell *const cell = &w->cells[i];

		if (cell->name && cell->part == part && cell->queue == queue &&
		    (!found || cell->age < found->age))
			found = cell;
	}
	return found;
}

/* One that was freed, one that never was filled, or the one whose turn it is to be overwritten. */
static uint32_t next_cell(struct world *w)
{
	if (w->freed_count > 0)
		return w->freed[--w->freed_count];
	return w->filled < CELLS ? w->filled++ : w->hand++ % CELLS;
}

static void arc_remembers(struct world *w, uint32_t slot)
{
	const uint32_t part = w->part_of[slot];

	free_cell(w, cell_of(w, w->names[slot]));
	w->cells[next_cell(w)] = (struct cell){ .name = w->names[slot], .age = ++w->now,
						.part = part, .queue = is_in(w, 1, slot) };
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Whether it goes to the frequent queue. */
static bool arc_knows(struct world *w, uint32_t number, uint64_t name)
{
	struct part *const part = &w->parts[number];
	const uint32_t     recent = names_of(w, number, 0), frequent = names_of(w, number, 1);
	struct cell *const cell = cell_of(w, name);

	free_cell(w, cell);
	if (!cell || cell->part != number)
		return false;
	if (cell->queue == 0)
		part->target = smaller(part->size, part->target + larger(1, frequent / recent));
	else
		part->target -= smaller(part->target, larger(1, recent / frequent));
	return true;
}

static void arc_welcomes(struct world *w, uint32_t number)
{
	struct part *const part = &w->parts[number];
	int                i;

	for (i = 0; i < 2; i++) {
		const uint32_t first = part->queues[0].count + names_of(w, number, 0);
		const uint32_t all = first + part->queues[1].count + names_of(w, number, 1);

		if (first >= part->size)
			free_cell(w, oldest(w, number, 0));
		else if (all >= 2 * part->size)
			free_cell(w, oldest(w, number, 1));
	}
}

static bool arc_insert(struct world *w, uint32_t number, uint64_t name)
{
	struct part *const part = &w->parts[number];

	part->full = false;
	part->size = larger(part->size, count_of(part) + 1);
	if (arc_knows(w, number, name))
		return true;
	arc_welcomes(w, number);
	return false;
}

static void arc_measures(struct part *part)
{
	if (!part->full)
		part->size = count_of(part);
	part->full = true;
	part->target = smaller(part->target, part->size);
}

/* --- all ---------------------------------------------------------------------------------------- */

static uint32_t enters(struct world *w, uint32_t part, uint64_t name)
{
	if (is("s3fifo"))
		return ghost_takes(w, name);
	return is("arc") && arc_insert(w, part, name);
}

static void model_insert(struct world *w, uint32_t part, uint32_t slot, uint64_t name)
{
	const uint32_t queue = enters(w, part, name);

	w->present[slot] = true;
	w->part_of[slot] = part;
	w->uses[slot] = 0;
	w->names[slot] = name;
	append(w, queue, slot);
}

static void model_touch(struct world *w, uint32_t slot)
{
	w->uses[slot] = w->uses[slot] < 3 ? w->uses[slot] + 1 : 3;
	if (is("lru") || is("lru-leaf"))
		append(w, 0, slot);
	if (is("host-order") || is("arc"))
		append(w, 1, slot);
}

static void model_settle(struct world *w, const uint32_t *slots, uint32_t count)
{
	while (is("lru-leaf") && count-- > 0) {
		if (slots[count] < SLOTS && w->present[slots[count]])
			append(w, 0, slots[count]);
	}
}

static bool is_pinned(uint32_t pins, uint32_t slot)
{
	return pins >> slot & 1;
}

static uint32_t first_of(const struct queue *queue, uint32_t pins)
{
	uint32_t i;

	for (i = 0; i < queue->count; i++) {
		if (!is_pinned(pins, queue->slots[i]))
			return queue->slots[i];
	}
	return SLOT_NONE;
}

static uint32_t plain_victim(const struct part *part, uint32_t queue, uint32_t pins)
{
	const uint32_t slot = first_of(&part->queues[queue], pins);

	return slot == SLOT_NONE ? first_of(&part->queues[!queue], pins) : slot;
}

static uint32_t small_victim(struct world *w, const struct part *part, uint32_t pins)
{
	const struct queue before = part->queues[0];
	uint32_t           i;

	for (i = 0; i < before.count; i++) {
		const uint32_t slot = before.slots[i];

		if (is_pinned(pins, slot))
			continue;
		if (w->uses[slot] <= 1) {
			ghost_remembers(w, w->names[slot]);
			return slot;
		}
		w->uses[slot] = 0;
		append(w, 1, slot);
	}
	return SLOT_NONE;
}

/* Each round over the main queue sends who has uses left to the end, one poorer; the fourth finds none. */
static uint32_t main_victim(struct world *w, const struct part *part, uint32_t pins)
{
	const struct queue *queue = &part->queues[1];
	uint32_t            i = 0;

	while (i < queue->count) {
		const uint32_t slot = queue->slots[i];

		if (is_pinned(pins, slot)) {
			i++;
			continue;
		}
		if (w->uses[slot] == 0)
			return slot;
		w->uses[slot]--;
		append(w, 1, slot);
	}
	return SLOT_NONE;
}

/* A tenth, and one at the least. */
static bool has_its_share(const struct part *part)
{
	const uint32_t small = part->queues[0].count;

	return small >= 1 && small >= count_of(part) / 10;
}

static uint32_t s3fifo_victim(struct world *w, const struct part *part, uint32_t pins)
{
	uint32_t slot = SLOT_NONE;

	if (has_its_share(part))
		slot = small_victim(w, part, pins);
	if (slot == SLOT_NONE)
		slot = main_victim(w, part, pins);
	if (slot == SLOT_NONE)
		slot = small_victim(w, part, pins);
	return slot == SLOT_NONE ? main_victim(w, part, pins) : slot;
}

static uint32_t arc_victim(struct world *w, struct part *part, uint32_t pins)
{
	uint32_t slot;

	arc_measures(part);
	slot = plain_victim(part, part->queues[0].count <= part->target, pins);
	if (slot != SLOT_NONE)
		arc_remembers(w, slot);
	return slot;
}

static uint32_t model_victim(struct world *w, uint32_t part, uint32_t pins)
{
	if (is("none"))
		return SLOT_NONE;
	if (is("s3fifo"))
		return s3fifo_victim(w, &w->parts[part], pins);
	if (is("arc"))
		return arc_victim(w, &w->parts[part], pins);
	return plain_victim(&w->parts[part], 0, pins);
}

/* Whatever the policy: who counts on a victim that may go must get one. */
static bool any_may_go(const struct world *w, uint32_t part, uint32_t pins)
{
	uint32_t slot;

	for (slot = 0; slot < SLOTS; slot++) {
		if (w->present[slot] && w->part_of[slot] == part && !is_pinned(pins, slot))
			return true;
	}
	return false;
}

static void model_remove(struct world *w, uint32_t slot)
{
	leave(w, slot);
	w->present[slot] = false;
}

static bool may_go(void *ctx, uint32_t slot)
{
	return !is_pinned(*(uint32_t *)ctx, slot);
}

static bool take_victim(struct world *w, uint32_t part, uint32_t pins)
{
	evict_may *const may = pins ? may_go : NULL;
	const bool       any = any_may_go(w, part, pins);
	const uint32_t   expected = model_victim(w, part, pins);
	const uint32_t   slot = part_count == 1 ? evict_victim(w->evict, may, &pins)
						: evict_victim_part(w->evict, part, may, &pins);

	KVS_ASSERT_CMP(slot, ==, expected);
	KVS_ASSERT_CMP(slot != SLOT_NONE, ==, any && !is("none"));
	if (slot != SLOT_NONE)
		model_remove(w, slot);
	return slot != SLOT_NONE;
}

/* Uses that a policy counts; two care for none. */
static uint32_t model_heat(const struct world *w, uint32_t slot)
{
	return is("fifo") || is("none") ? 0 : w->uses[slot];
}

/* Behind all others, as one that was never used since. */
static void model_renew(struct world *w, uint32_t slot)
{
	w->uses[slot] = 0;
	append(w, is("s3fifo") || is("host-order") || is("arc"), slot);
}

/* Remembered as a victim is: of s3fifo only what leaves the small queue. */
static void model_expel(struct world *w, uint32_t slot)
{
	if (is("s3fifo") && is_in(w, 0, slot))
		ghost_remembers(w, w->names[slot]);
	if (is("arc")) {
		arc_measures(&w->parts[w->part_of[slot]]);
		arc_remembers(w, slot);
	}
	model_remove(w, slot);
}

static void settle_some(struct world *w, uint64_t seed)
{
	uint32_t    chain[SLOTS];
	uint32_t    count, i;
	struct prng prng;

	prng_seed(&prng, seed);
	count = (uint32_t)prng_below(&prng, SLOTS);
	for (i = 0; i < count; i++) {
		chain[i] = prng_chance(&prng, 1, 10) ? SLOT_NONE
						     : (uint32_t)prng_below(&prng, SLOTS);
	}
	evict_settle(w->evict, chain, count);
	model_settle(w, chain, count);
}

enum { INSERT, TOUCH, REMOVE, SETTLE, VICTIM, DRAIN, RENEW, EXPEL };

static const struct prop_kind kinds[] = {
	[INSERT] = { "insert", 40 }, [TOUCH] = { "touch", 40 },   [REMOVE] = { "remove", 3 },
	[SETTLE] = { "settle", 10 }, [VICTIM] = { "victim", 20 }, [DRAIN] = { "drain", 1 },
	[RENEW] = { "renew", 8 },    [EXPEL] = { "expel", 8 },
};

/* What an owner does to a slot that is there. */
static void step_present(struct world *w, uint32_t kind, uint32_t slot)
{
	if (kind == TOUCH) {
		evict_touch(w->evict, slot);
		model_touch(w, slot);
	} else if (kind == REMOVE) {
		evict_remove(w->evict, slot);
		model_remove(w, slot);
	} else if (kind == RENEW) {
		evict_renew(w->evict, slot);
		model_renew(w, slot);
	} else if (kind == EXPEL) {
		evict_expel(w->evict, slot);
		model_expel(w, slot);
	}
}

static void insert(struct world *w, uint32_t part, uint32_t slot, uint64_t name)
{
	if (part_count == 1)
		evict_insert(w->evict, slot, name);
	else
		evict_insert_part(w->evict, part, slot, name);
	model_insert(w, part, slot, name);
}

static void compare(struct world *w, uint32_t slot)
{
	uint32_t count = 0, part;

	evict_audit(w->evict);
	for (part = 0; part < part_count; part++) {
		KVS_ASSERT_CMP(evict_part_count(w->evict, part), ==, count_of(&w->parts[part]));
		count += count_of(&w->parts[part]);
	}
	KVS_ASSERT_CMP(evict_count(w->evict), ==, count);
	KVS_ASSERT_CMP(evict_present(w->evict, slot), ==, w->present[slot]);
	if (w->present[slot])
		KVS_ASSERT_CMP(evict_heat(w->evict, slot), ==, model_heat(w, slot));
}

static void step(void *world, const struct prop_op *op)
{
	struct world  *w = world;
	const uint32_t slot = op->arg[0] % SLOTS;
	const uint64_t name = 1 + op->arg[1] % NAMES;
	const uint32_t part = op->arg[1] / NAMES % part_count;

	if (w->present[slot]) {
		step_present(w, op->kind, slot);
	} else if (op->kind == INSERT) {
		insert(w, part, slot, name);
	}
	if (op->kind == SETTLE)
		settle_some(w, op->arg[0]);
	if (op->kind == VICTIM)
		take_victim(w, part, op->arg[1] % 2 ? op->arg[0] : 0);
	while (op->kind == DRAIN && take_victim(w, part, 0))
		continue;
	compare(w, slot);
}

static void *open_world(void)
{
	struct world *w = calloc(1, sizeof(*w));

	KVS_ASSERT(w && evict_open_parts(policy, SLOTS, part_count, &w->evict, NULL) == 0);
	return w;
}

static void close_world(void *world)
{
	evict_close(((struct world *)world)->evict);
	free(world);
}

static void run_all(uint32_t parts)
{
	struct prop prop = { .kinds = kinds,
			     .kind_count = ARRAY_COUNT(kinds),
			     .list_count = 100,
			     .op_count = 1000,
			     .open = open_world,
			     .step = step,
			     .close = close_world };
	size_t      i;

	part_count = parts;
	for (i = 0; evict_names[i]; i++) {
		prop.name = policy = evict_names[i];
		assert_true(prop_run(&prop));
	}
}

static void every_policy_equals_its_model(void **state)
{
	(void)state;
	run_all(1);
}

static void every_policy_equals_a_model_for_each_part(void **state)
{
	(void)state;
	run_all(PARTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_equals_its_model),
		cmocka_unit_test(every_policy_equals_a_model_for_each_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
