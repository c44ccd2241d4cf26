/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transfer manager under random reads, facts, drops, deadlines, pressure, freezes, offers, evictions
 * and notices, beside a ledger (waybill.h).  At the end everything is answered, and everything must be home.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/bits.h"
#include "prop.h"
#include "waybill.h"

static const struct group_spec specs[BOX_GROUPS] = { BOX_FULL(HOIST_PAGE, 2), BOX_STATE(HOIST_PAGE, 1) };

enum {
	READ, WHOLE, PARTIAL, FAULT, REFUSED, UNRETIRED, TICK, DROP, OFFER, PUBLISH, EVICT, NOTICE, PRESSURE,
	FREEZE, INTENT, CLEAR
};

static const struct prop_kind kinds[] = {
	{ "READ", 24 },    { "WHOLE", 18 },  { "PARTIAL", 6 }, { "FAULT", 4 },     { "REFUSED", 3 },
	{ "UNRETIRED", 1 }, { "TICK", 26 },  { "DROP", 5 },    { "OFFER", 10 },    { "PUBLISH", 8 },
	{ "EVICT", 4 },    { "NOTICE", 3 },  { "PRESSURE", 3 }, { "FREEZE", 2 },   { "INTENT", 2 },
	{ "CLEAR", 1 }
};

static void read_prompt(struct waybill *world, uint32_t prompt, uint32_t tokens)
{
	struct hoist *const hoist = &world->hoist;
	const uint32_t      stuck = waybill_count(world, STUCK);
	enum read_outcome   outcome;

	if (world->claim_count == WAYBILL_CLAIMS)
		return;
	outcome = hoist_read(hoist, prompt, tokens);
	world->reads++;
	KVS_ASSERT(outcome != READ_PRESSURE || world->closed);
	KVS_ASSERT(outcome != READ_MAINTENANCE || world->intent);
	KVS_ASSERT(outcome != READ_FROZEN || !hoist->tick.permits.storage);
	KVS_ASSERT(outcome != READ_QUARANTINE || stuck > 0);
	KVS_ASSERT(outcome != READ_NEGATIVE || world->negative_count > 0);
	if (outcome == READ_ASKED) {
		KVS_ASSERT_CMP(stuck, ==, 0);
		world->claims[world->claim_count++] =
			(struct claim){ .lease = hoist->lease,
					.waiting = true,
					.until_ns = hoist->tick.now_ns + waybill_limits.deadline_ns };
	}
	waybill_absorb(world);
}

static struct flight *pick_flight(struct waybill *world, enum phase phase, uint32_t from)
{
	uint32_t i;

	for (i = 0; i < WAYBILL_OPS; i++) {
		struct flight *const flight = &world->flights[(from + i) % WAYBILL_OPS];

		if (flight->phase == phase)
			return flight;
	}
	return NULL;
}

static void answer(struct waybill *world, const struct prop_op *op)
{
	struct flight *const flight = pick_flight(world, OUT, op->arg[0]);
	struct fact         *fact;
	uint64_t             all;

	if (!flight)
		return;
	fact = &flight->fact;
	flight->phase = ANSWERED;
	if (op->kind == REFUSED) {
		fact_refused(fact, &flight->op, (enum op_reason)(op->arg[1] % OP_REASON_COUNT));
		return;
	}
	fact_init(fact, &flight->op);
	all = UINT64_MAX >> (64 - flight->op.key_count);
	fact->ok.words[0] = all;
	fact->retired = op->kind != UNRETIRED;
	if (op->kind != WHOLE)
		fact->ok.words[0] &= op->arg[1] | op->arg[1] << 9;
	if (op->kind == FAULT && flight->op.kind == OP_GET) {
		fact->object_fault.words[0] = all & ~fact->ok.words[0];
		fact->reason = OP_REASON_CORRUPT;
	}
}

static void notice(struct waybill *world, uint32_t from, uint32_t elapsed_ns)
{
	struct flight *const flight = pick_flight(world, STUCK, from);
	bool                 noticed[WAYBILL_OPS] = { false };

	if (flight) {
		noticed[flight - world->flights] = true;
		hoist_notice(&world->hoist, flight->op.op_id);
	}
	waybill_tick(world, elapsed_ns, noticed);
}

static void evict(struct waybill *world, uint32_t count)
{
	struct cache *const cache = world->hoist.box.cache;
	uint32_t            blocks[16];
	uint32_t            got = 0;

	while (got < count && (blocks[got] = cache_host_acquire(cache, HOIST_FULL)) != BLOCK_NULL)
		got++;
	while (got > 0)
		cache_unpin(cache, STRATUM_HOST, HOIST_FULL, blocks[--got]);
}

static void publish(struct waybill *world, uint32_t prompt, uint32_t group, uint32_t page)
{
	struct cache *const    cache = world->hoist.box.cache;
	const struct cell_name name = hoist_name(&world->hoist, prompt, group, page);
	const uint32_t         block = cache_host_acquire(cache, group);

	if (block == BLOCK_NULL)
		return;
	cache_host_publish(cache, &name, block, CELL_CHUNK);
	transfer_published(world->hoist.transfer, &name);
}

static void step_local(struct waybill *world, const struct prop_op *op)
{
	struct hoist *const hoist = &world->hoist;
	const uint32_t      prompt = op->arg[0] % HOIST_PROMPTS;
	const uint32_t      page = op->arg[0] / 8 % WAYBILL_PAGES;

	switch (op->kind) {
	case DROP:
		if (world->claim_count > 0)
			waybill_drop(world, world->claim_count - 1 - op->arg[0] % world->claim_count % 8);
		break;
	case OFFER:
		world->offers++;
		hoist_offer(hoist, prompt, op->arg[1] % WAYBILL_GROUPS, page);
		break;
	case PUBLISH:
		publish(world, prompt, op->arg[1] % WAYBILL_GROUPS, page);
		break;
	case EVICT:
		evict(world, op->arg[0] % 16);
		break;
	case PRESSURE:
		hoist->tick.pressure.queued_jobs = op->arg[0] % 10;
		break;
	case CLEAR:
		KVS_ASSERT_CMP(transfer_is_quiet(hoist->transfer), ==,
			       transfer_load(hoist->transfer).tickets == 0);
		if (transfer_clear(hoist->transfer))
			world->negative_count = 0;
		break;
	default:
		world->intent_new = op->arg[0] % 3 == 0 && (world->intent_new || !world->intent);
		world->intent = op->arg[0] % 3 == 0;
		transfer_set_intent(hoist->transfer, world->intent);
	}
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct waybill *const world = arg;
	bool                none[WAYBILL_OPS] = { false };

	if (op->kind == READ) {
		read_prompt(world, op->arg[0] % HOIST_PROMPTS, 1 + op->arg[1] % (WAYBILL_PAGES * HOIST_PAGE));
	} else if (op->kind <= UNRETIRED) {
		answer(world, op);
	} else if (op->kind == TICK) {
		waybill_tick(world, op->arg[0] % 20, none);
	} else if (op->kind == NOTICE) {
		notice(world, op->arg[0], op->arg[1] % 20);
	} else if (op->kind == FREEZE) {
		world->hoist.tick.permits.storage = op->arg[0] % 3 > 0;
		waybill_tick(world, 0, none);
	} else {
		step_local(world, op);
	}
	waybill_check(world);
}

static void *world_open(void)
{
	struct waybill *const        world = calloc(1, sizeof(*world));
	const struct hoist_options options = { .specs = specs, .limits = &waybill_limits, .host_parents = 9 };

	KVS_ASSERT(world);
	hoist_open(&world->hoist, &options);
	return world;
}

/* Answer everything; a tick may start what waited for credits, so until nothing is left. */
static void settle(struct waybill *world)
{
	const struct prop_op whole = { .kind = WHOLE };
	uint32_t             i;

	world->hoist.tick.permits.storage = true;
	world->hoist.tick.pressure.queued_jobs = 0;
	world->intent = world->intent_new = false;
	transfer_set_intent(world->hoist.transfer, false);
	do {
		for (i = 0; i < WAYBILL_OPS; i++) {
			answer(world, &whole);
			notice(world, 0, (uint32_t)waybill_limits.deadline_ns);
			waybill_check(world);
		}
	} while (transfer_load(world->hoist.transfer).tickets > 0 ||
		 transfer_load(world->hoist.transfer).backups > 0);
}

static void world_close(void *arg)
{
	struct waybill *const          world = arg;
	const struct transfer_counts counts = transfer_counts(world->hoist.transfer);
	uint64_t                     outcomes = 0, drops = 0;
	uint32_t                     i;

	settle(world);
	hoist_expect_home(&world->hoist);
	for (i = 0; i < world->claim_count; i++)
		KVS_ASSERT(!world->claims[i].waiting);
	for (i = 0; i < READ_OUTCOME_COUNT; i++)
		outcomes += transfer_counts(world->hoist.transfer).outcomes[i];
	KVS_ASSERT_CMP(outcomes + world->left_waiting, ==, world->reads);
	for (i = 0; i <= BACKUP_CLEANUP; i++)
		drops += transfer_counts(world->hoist.transfer).drops[i];
	drops += hoist_counter(&world->hoist, TRANSFER_COALESCED);
	KVS_ASSERT_CMP(drops + world->put_rows, ==, world->offers);
	KVS_ASSERT_CMP(counts.drops[BACKUP_PRESSURE], ==, counts.counters[TRANSFER_PRESSURE_DROPS]);
	hoist_close(&world->hoist);
	free(world);
}

PROP_MAIN("transfer", whatever_comes_every_reference_goes_home, 100, 500, world_close)
