/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health against the history of its outages.
 *
 * The model keeps every call ever begun and decides from the whole list: who is a probe, which
 * outage a result tells of, and when the next one may ask.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "exec/health.h"
#include "prop.h"

#define CALLS_MAX 16u
#define MIN_NS 8u
#define MAX_NS 100u

struct call {
	bool     open;
	bool     probe;
	uint64_t epoch;
};

struct world {
	struct health health;
	struct call   calls[CALLS_MAX];
	uint64_t      now_ns;
	uint64_t      outages;
	uint64_t      failed_probes; /* in a row, of the present outage */
	uint64_t      retry_ns;
	bool          down;
};

static const struct call *probe_of(const struct world *world)
{
	uint32_t i;

	for (i = 0; i < CALLS_MAX; i++) {
		if (world->calls[i].open && world->calls[i].probe)
			return &world->calls[i];
	}
	return NULL;
}

static void begin(struct world *world, uint32_t place)
{
	struct call *const call = &world->calls[place];
	const bool expected = !world->down || (!probe_of(world) && world->now_ns >= world->retry_ns);

	if (call->open)
		return;
	KVS_ASSERT_CMP(health_admit(&world->health, world->now_ns), ==, expected);
	if (expected) {
		*call = (struct call){ .open = true, .probe = world->down,
				       .epoch = world->health.epoch };
	}
}

/* Nobody is a probe any more once its question has an answer. */
static void forget_probe(struct world *world)
{
	uint32_t i;

	for (i = 0; i < CALLS_MAX; i++)
		world->calls[i].probe = false;
}

static void end_well(struct world *world, struct call *call)
{
	health_success(&world->health, call->epoch);
	if (probe_of(world) && call->epoch == world->outages) {
		world->down = false;
		forget_probe(world);
	}
}

static uint64_t cooldown(const struct world *world)
{
	uint64_t ns = MIN_NS;
	uint64_t i;

	for (i = 0; i < world->failed_probes && ns < MAX_NS; i++)
		ns *= 2;
	return ns < MAX_NS ? ns : MAX_NS;
}

static void end_badly(struct world *world, struct call *call)
{
	const bool probing = probe_of(world) != NULL;

	health_failure(&world->health, call->epoch, world->now_ns);
	if (call->epoch < world->outages || (world->down && !probing))
		return;
	world->failed_probes = probing ? world->failed_probes + 1 : 0;
	world->outages++;
	world->down = true;
	world->retry_ns = world->now_ns + cooldown(world);
	forget_probe(world);
}

/* The probe found no store to ask. */
static void give_up(struct world *world)
{
	const bool probing = probe_of(world) != NULL;

	health_unprobe(&world->health, world->now_ns);
	if (probing) {
		world->retry_ns = world->now_ns;
		forget_probe(world);
	}
}

static void compare(const struct world *world)
{
	const enum health_state expected = !world->down ? HEALTH_UP
					   : probe_of(world) ? HEALTH_PROBING : HEALTH_DOWN;

	KVS_ASSERT_CMP(world->health.state, ==, expected);
	KVS_ASSERT_CMP(world->health.epoch, ==, world->outages);
	KVS_ASSERT_CMP(world->health.outages, ==, world->outages);
	if (expected == HEALTH_DOWN)
		KVS_ASSERT_CMP(world->health.retry_ns, ==, world->retry_ns);
}

enum { PASS, BEGIN, SUCCEED, FAIL, UNPROBE };

static const struct prop_kind kinds[] = {
	{ "PASS", 30 }, { "BEGIN", 40 }, { "SUCCEED", 20 }, { "FAIL", 15 }, { "UNPROBE", 3 }
};

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	struct call *const  call = &world->calls[op->arg[0] % CALLS_MAX];

	if (op->kind == PASS) {
		world->now_ns += op->arg[0] % (2 * MIN_NS);
	} else if (op->kind == BEGIN) {
		begin(world, op->arg[0] % CALLS_MAX);
	} else if (op->kind == UNPROBE) {
		give_up(world);
	} else if (call->open) {
		if (op->kind == SUCCEED)
			end_well(world, call);
		else
			end_badly(world, call);
		/* A probe without an answer would leave nobody to ask: see exec/core. */
		if (call->probe)
			give_up(world);
		*call = (struct call){ 0 };
	}
	compare(world);
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	health_init(&world->health, MIN_NS, MAX_NS);
	return world;
}

PROP_MAIN("health", health_follows_its_outages, 60, 500, free)
