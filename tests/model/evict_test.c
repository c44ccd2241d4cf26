/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each policy against arrays: an order is a plain list, a move deletes and appends, a ghost is
 * searched from end to end.  Twenty slots make a ghost of eighteen names.  An order of several parts
 * is a model of as many orders, with the one ghost.
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
#define NAMES 48u /* few enough that names come back while remembered, and after */

struct queue {
	uint32_t slots[SLOTS];
	uint32_t count;
};

struct part {
	struct queue queues[2]; /* unused or small or the only one; used or main */
};

struct world {
	struct evict *evict;
	struct part   parts[PARTS];
	bool          present[SLOTS];
	uint32_t      part_of[SLOTS];
	uint32_t      uses[SLOTS];
	uint64_t      names[SLOTS];
	uint64_t      ghost[GHOST]; /* newest first; 0: taken or never filled */
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

static void model_insert(struct world *w, uint32_t part, uint32_t slot, uint64_t name)
{
	w->present[slot] = true;
	w->part_of[slot] = part;
	w->uses[slot] = 0;
	w->names[slot] = name;
	append(w, is("s3fifo") && ghost_takes(w, name), slot);
}

static void model_touch(struct world *w, uint32_t slot)
{
	w->uses[slot] = w->uses[slot] < 3 ? w->uses[slot] + 1 : 3;
	if (is("lru") || is("lru-leaf"))
		append(w, 0, slot);
	if (is("host-order"))
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

static uint32_t plain_victim(const struct part *part, uint32_t pins)
{
	uint32_t q, i;

	for (q = 0; q < 2; q++) {
		for (i = 0; i < part->queues[q].count; i++) {
			if (!is_pinned(pins, part->queues[q].slots[i]))
				return part->queues[q].slots[i];
		}
	}
	return SLOT_NONE;
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

static uint32_t count_of(const struct part *part)
{
	return part->queues[0].count + part->queues[1].count;
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

static uint32_t model_victim(struct world *w, uint32_t part, uint32_t pins)
{
	if (is("s3fifo"))
		return s3fifo_victim(w, &w->parts[part], pins);
	return plain_victim(&w->parts[part], pins);
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
	KVS_ASSERT_CMP(slot != SLOT_NONE, ==, any);
	if (slot != SLOT_NONE)
		model_remove(w, slot);
	return slot != SLOT_NONE;
}

/* Uses that a policy counts; fifo cares for none. */
static uint32_t model_heat(const struct world *w, uint32_t slot)
{
	return is("fifo") ? 0 : w->uses[slot];
}

/* Behind all others, as one that was never used since. */
static void model_renew(struct world *w, uint32_t slot)
{
	w->uses[slot] = 0;
	append(w, is("s3fifo") || is("host-order"), slot);
}

/* Remembered as a victim is: only what leaves the small queue. */
static void model_expel(struct world *w, uint32_t slot)
{
	if (is("s3fifo") && is_in(w, 0, slot))
		ghost_remembers(w, w->names[slot]);
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
