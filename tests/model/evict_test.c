/* SPDX-License-Identifier: Apache-2.0 */
/* Each policy against arrays, in orders of one part and of several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "evict/evict.h"
#include "naive_order.h"
#include "prop.h"

#define NAMES 48u /* few enough that names come back while remembered, and after */

struct world {
	struct evict      *evict;
	struct naive_order order;
};

/* One property a policy and number of parts; open() takes no argument. */
static const char *policy;
static uint32_t    part_count;

/* Whatever the policy: who counts on a victim that may go must get one. */
static bool any_may_go(const struct world *w, uint32_t part, uint32_t pins)
{
	uint32_t slot;

	for (slot = 0; slot < NAIVE_SLOTS; slot++) {
		if (w->order.present[slot] && w->order.part_of[slot] == part && !(pins >> slot & 1))
			return true;
	}
	return false;
}

static bool may_go(void *ctx, uint32_t slot)
{
	return !(*(uint32_t *)ctx >> slot & 1);
}

static bool take_victim(struct world *w, uint32_t part, uint32_t pins)
{
	evict_may *const may = pins ? may_go : NULL;
	const bool       any = any_may_go(w, part, pins);
	const uint32_t   expected = naive_order_victim(&w->order, part, pins);
	const uint32_t   slot = part_count == 1 ? evict_victim(w->evict, may, &pins)
						: evict_victim_part(w->evict, part, may, &pins);

	KVS_ASSERT_CMP(slot, ==, expected);
	KVS_ASSERT_CMP(slot != SLOT_NONE, ==, any && strcmp(policy, "none") != 0);
	if (slot != SLOT_NONE)
		naive_order_remove(&w->order, slot);
	return slot != SLOT_NONE;
}

static void settle_some(struct world *w, uint64_t seed)
{
	uint32_t    chain[NAIVE_SLOTS];
	uint32_t    count, i;
	struct prng prng;

	prng_seed(&prng, seed);
	count = (uint32_t)prng_below(&prng, NAIVE_SLOTS);
	for (i = 0; i < count; i++) {
		chain[i] = prng_chance(&prng, 1, 10) ? SLOT_NONE
						     : (uint32_t)prng_below(&prng, NAIVE_SLOTS);
	}
	evict_settle(w->evict, chain, count);
	naive_order_settle(&w->order, chain, count);
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
		naive_order_touch(&w->order, slot);
	} else if (kind == REMOVE) {
		evict_remove(w->evict, slot);
		naive_order_remove(&w->order, slot);
	} else if (kind == RENEW) {
		evict_renew(w->evict, slot);
		naive_order_renew(&w->order, slot);
	} else if (kind == EXPEL) {
		evict_expel(w->evict, slot);
		naive_order_expel(&w->order, slot);
	}
}

static void insert(struct world *w, uint32_t part, uint32_t slot, uint64_t name)
{
	if (part_count == 1)
		evict_insert(w->evict, slot, name);
	else
		evict_insert_part(w->evict, part, slot, name);
	naive_order_insert(&w->order, part, slot, name);
}

static void compare(struct world *w, uint32_t slot)
{
	uint32_t count = 0, part;

	evict_audit(w->evict);
	for (part = 0; part < part_count; part++) {
		KVS_ASSERT_CMP(evict_part_count(w->evict, part), ==, naive_count(&w->order.parts[part]));
		count += naive_count(&w->order.parts[part]);
	}
	KVS_ASSERT_CMP(evict_count(w->evict), ==, count);
	KVS_ASSERT_CMP(evict_present(w->evict, slot), ==, w->order.present[slot]);
	if (w->order.present[slot])
		KVS_ASSERT_CMP(evict_heat(w->evict, slot), ==, naive_order_heat(&w->order, slot));
}

static void step(void *world, const struct prop_op *op)
{
	struct world  *w = world;
	const uint32_t slot = op->arg[0] % NAIVE_SLOTS;
	const uint64_t name = 1 + op->arg[1] % NAMES;
	const uint32_t part = op->arg[1] / NAMES % part_count;

	if (w->order.present[slot]) {
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

	KVS_ASSERT(w && evict_open_parts(policy, NAIVE_SLOTS, part_count, &w->evict, NULL) == 0);
	w->order.policy = policy;
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
	run_all(NAIVE_PARTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_equals_its_model),
		cmocka_unit_test(every_policy_equals_a_model_for_each_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
