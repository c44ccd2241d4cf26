/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transfer manager under random reads, facts, drops, deadlines, offers, evictions and notices.
 *
 * The model knows which ops are out, which blocks each has, who waits, and what every fact may publish.
 * After each step: every reference on every Host block is accounted for, blocks under I/O belong to one op
 * and lie still, nothing is published from a detached or unretired op, nobody is woken twice.  At the end
 * everything is answered, and everything must be home.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "prop.h"
#include "mono_transfer_rig.h"

#define HOST_BLOCKS 14u
#define KEYS 24u
#define OPS_MAX 5u
#define LEASES_MAX 512u

static const struct mono_transfer_limits limits = { .op_credits = OPS_MAX,
						    .host_credits = 12,
						    .keys_max = 6,
						    .put_keys_max = 3,
						    .backup_queue = 5,
						    .deadline_ns = 40,
						    .hold_ns = 30 };

enum phase { GONE, OUT, ANSWERED, STUCK };

/* An op that the store may touch, with what it was given. */
struct flight {
	enum phase  phase;
	struct op   op;
	uint64_t    lease_id; /* 0: a put, or nobody waits any more */
	uint32_t    numbers[RIG_KEYS_MAX];
	uint32_t    blocks[RIG_KEYS_MAX];
	struct fact fact;
};

struct lease {
	uint64_t id;
	bool     waiting;
	bool     held; /* the request has not let go */
};

struct world {
	struct rig    rig;
	struct flight flights[OPS_MAX];
	struct lease  leases[LEASES_MAX];
	uint32_t      lease_count;
	uint32_t      absorbed;  /* ops of this round that the model has seen */
	uint64_t      last_id;
	uint64_t      read_count;
	uint64_t      left_waiting; /* leases dropped before their wake */
};

static uint32_t stuck_count(const struct world *world)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++)
		count += world->flights[i].phase == STUCK;
	return count;
}

/* The op that a lease waits for; NULL when it waits for none. */
static struct flight *flight_of(struct world *world, uint64_t lease_id)
{
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++) {
		struct flight *const flight = &world->flights[i];

		if (flight->lease_id == lease_id &&
		    (flight->phase == OUT || flight->phase == ANSWERED))
			return flight;
	}
	return NULL;
}

/* --- after every step ------------------------------------------------------------- */

/* Sources lie under their keys; destinations have no key, and no other op has them. */
static void check_blocks(struct world *world, const struct flight *flight, uint32_t *owners)
{
	struct stratum *const host = &world->rig.coord.host;
	uint32_t              i;

	if (!flight->op.spans)
		return;
	for (i = 0; i < flight->op.key_count; i++) {
		const uint32_t block = flight->blocks[i];

		if (flight->op.kind == OP_PUT) {
			KVS_ASSERT_CMP(rig_find(&world->rig, flight->numbers[i]), ==, block);
			continue;
		}
		KVS_ASSERT(!stratum_published(host, block));
		KVS_ASSERT_CMP(stratum_refs(host, block), ==, 1);
		KVS_ASSERT_CMP(++owners[block], ==, 1);
	}
}

static void check(struct world *world)
{
	uint32_t owners[HOST_BLOCKS] = { 0 };
	uint32_t i;

	rig_audit(&world->rig);
	for (i = 0; i < OPS_MAX; i++) {
		if (world->flights[i].phase != GONE)
			check_blocks(world, &world->flights[i], owners);
	}
	KVS_ASSERT_CMP(world->rig.transfer.quarantined, ==, stuck_count(world));
	for (i = 0; i < world->lease_count; i++) {
		KVS_ASSERT_CMP(world->leases[i].waiting, ==,
			       flight_of(world, world->leases[i].id) != NULL);
	}
}

/* --- outputs ------------------------------------------------------------- */

static struct flight *free_flight(struct world *world)
{
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++) {
		if (world->flights[i].phase == GONE)
			return &world->flights[i];
	}
	KVS_PANIC("more ops are out than there are credits");
}

static uint64_t lease_of(const struct world *world, uint64_t op_id)
{
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++) {
		if (world->rig.transfer.tickets[i].op.op_id == op_id)
			return world->rig.transfer.tickets[i].lease_id;
	}
	KVS_PANIC("no ticket sent this op");
}

static void take_off(struct world *world, const struct op *op)
{
	struct flight *const flight = free_flight(world);
	uint32_t             i, block;

	*flight = (struct flight){ .phase = OUT, .op = *op,
				   .lease_id = lease_of(world, op->op_id) };
	KVS_ASSERT_CMP(op->key_count, >, 0);
	for (i = 0; i < op->key_count; i++) {
		flight->numbers[i] = op->keys[i].offset;
		for (block = 0; op->spans && block < HOST_BLOCKS; block++) {
			if (arena_block(&world->rig.part, block).ptr == op->spans[i].ptr)
				flight->blocks[i] = block;
		}
	}
}

/* What came out since the last look. */
static void absorb(struct world *world, bool may_start)
{
	const struct mono_transfer_outputs *const out = &world->rig.transfer.out;

	for (; world->absorbed < out->op_count; world->absorbed++) {
		const struct op *const op = &out->ops[world->absorbed];

		if (op->kind == OP_CANCEL) {
			KVS_ASSERT_CMP(op->key_count, ==, 0);
			KVS_ASSERT(op->op_id <= world->last_id);
			continue;
		}
		KVS_ASSERT(may_start);
		KVS_ASSERT_CMP(op->op_id, >, world->last_id);
		world->last_id = op->op_id;
		take_off(world, op);
	}
}

static struct lease *find_lease(struct world *world, uint64_t lease_id)
{
	uint32_t i;

	for (i = 0; i < world->lease_count; i++) {
		if (world->leases[i].id == lease_id)
			return &world->leases[i];
	}
	KVS_PANIC("a wake for a lease that never was");
}

/* Nobody waits for this flight any more: the executor was asked to forget it. */
static void orphan(struct world *world, struct flight *flight)
{
	const struct mono_transfer_outputs *const out = &world->rig.transfer.out;
	bool                                      cancelled = false;
	uint32_t                                  i;

	for (i = 0; i < out->op_count; i++)
		cancelled |= out->ops[i].kind == OP_CANCEL && out->ops[i].op_id == flight->op.op_id;
	KVS_ASSERT(cancelled);
	flight->lease_id = 0;
}

static void drop(struct world *world, struct lease *lease)
{
	struct flight *const flight = flight_of(world, lease->id);

	world->left_waiting += lease->waiting;
	lease->held = false;
	lease->waiting = false;
	mono_transfer_drop_lease(&world->rig.transfer, lease->id);
	if (flight)
		orphan(world, flight);
	absorb(world, false);
}

/* --- a round ------------------------------------------------------------- */

/* What a wake says must be what became of its op. */
static void check_wake(struct world *world, const struct mono_transfer_wake *wake)
{
	struct lease *const  lease = find_lease(world, wake->lease_id);
	struct flight *const flight = flight_of(world, wake->lease_id);

	KVS_ASSERT(lease->held && lease->waiting && flight);
	KVS_ASSERT_CMP(wake->request, ==, lease - world->leases);
	lease->waiting = false;
	if (wake->outcome == MONO_TRANSFER_DEADLINE)
		orphan(world, flight);
	else if (flight->op.kind == OP_GET && !flight->fact.retired)
		KVS_ASSERT_CMP(wake->outcome, ==, MONO_TRANSFER_QUARANTINE);
	else if (flight->op.kind == OP_GET) {
		KVS_ASSERT_CMP(wake->outcome == MONO_TRANSFER_READY, ==,
			       flight->fact.ok.words[0] != 0);
	} else {
		KVS_ASSERT_CMP(wake->outcome, !=, MONO_TRANSFER_READY);
	}
}

/* The answered ops are over: what they may have published, in ret_may. */
static void land(struct world *world, bool ret_may[KEYS])
{
	uint32_t i, row;

	for (i = 0; i < OPS_MAX; i++) {
		struct flight *const flight = &world->flights[i];
		const bool           get = flight->op.kind == OP_GET;

		if (flight->phase != ANSWERED)
			continue;
		for (row = 0; row < flight->op.key_count; row++) {
			if (!get || !flight->lease_id || !flight->fact.retired ||
			    !bits_test(flight->fact.ok.words, row))
				continue;
			ret_may[flight->numbers[row]] = true;
			KVS_ASSERT_CMP(rig_find(&world->rig, flight->numbers[row]), !=, SLOT_NONE);
		}
		flight->phase = flight->fact.retired || !flight->op.spans ? GONE : STUCK;
	}
}

static void tick(struct world *world, uint32_t elapsed_ns, struct lease *dropped)
{
	struct mono_transfer *const transfer = &world->rig.transfer;
	const bool                  may_start = stuck_count(world) == 0;
	struct fact                 facts[OPS_MAX];
	bool                        before[KEYS], may[KEYS] = { false };
	uint32_t                    fact_count = 0;
	uint32_t                    i;

	for (i = 0; i < KEYS; i++)
		before[i] = rig_find(&world->rig, i) != SLOT_NONE;
	for (i = 0; i < OPS_MAX; i++) {
		if (world->flights[i].phase == ANSWERED)
			facts[fact_count++] = world->flights[i].fact;
	}
	world->rig.now_ns += elapsed_ns;
	world->absorbed = 0;
	mono_transfer_begin(transfer, world->rig.now_ns);
	if (dropped)
		drop(world, dropped);
	mono_transfer_tick(transfer, facts, fact_count);
	for (i = 0; i < transfer->out.wake_count; i++)
		check_wake(world, &transfer->out.wakes[i]);
	land(world, may);
	absorb(world, may_start);
	for (i = 0; i < KEYS; i++)
		KVS_ASSERT(before[i] || may[i] || rig_find(&world->rig, i) == SLOT_NONE);
	/* As the scheduler does: only a READY lease is kept. */
	for (i = 0; i < transfer->out.wake_count; i++) {
		if (transfer->out.wakes[i].outcome != MONO_TRANSFER_READY)
			drop(world, find_lease(world, transfer->out.wakes[i].lease_id));
	}
}

/* --- operations ------------------------------------------------------------- */

static void read_keys(struct world *world, uint32_t first, uint32_t count)
{
	struct kvs_key             keys[KEYS];
	uint64_t                   lease_id;
	enum mono_transfer_outcome reason;
	bool                       read;
	uint32_t                   i;

	/* The caller asks beyond its local prefix. */
	while (first < KEYS && rig_find(&world->rig, first) != SLOT_NONE)
		first++;
	count = first + count < KEYS ? count : KEYS - first;
	if (count == 0 || world->lease_count == LEASES_MAX)
		return;
	for (i = 0; i < count; i++)
		keys[i] = key_of(first + i);
	read = mono_transfer_read(&world->rig.transfer, world->lease_count, keys, count, &lease_id,
				  &reason);
	world->read_count++;
	KVS_ASSERT_CMP(!read && reason == MONO_TRANSFER_QUARANTINE, ==, stuck_count(world) > 0);
	if (read) {
		world->leases[world->lease_count++] =
			(struct lease){ .id = lease_id, .waiting = true, .held = true };
	}
	absorb(world, read);
}

/* The from-th of what is in a phase, counted round; NULL when nothing is. */
static struct flight *pick_flight(struct world *world, enum phase phase, uint32_t from)
{
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++) {
		struct flight *const flight = &world->flights[(from + i) % OPS_MAX];

		if (flight->phase == phase)
			return flight;
	}
	return NULL;
}

static struct lease *pick_lease(struct world *world, uint32_t from)
{
	uint32_t i;

	for (i = 0; i < world->lease_count; i++) {
		struct lease *const lease = &world->leases[(from + i) % world->lease_count];

		if (lease->held)
			return lease;
	}
	return NULL;
}

enum {
	READ, WHOLE, PARTIAL, REFUSED, UNRETIRED,
	TICK, DROP, OFFER, PUBLISH, EVICT, NOTICE, DISCARD
};

static const struct prop_kind kinds[] = {
	{ "READ", 20 }, { "WHOLE", 16 },   { "PARTIAL", 8 }, { "REFUSED", 3 }, { "UNRETIRED", 1 },
	{ "TICK", 24 }, { "DROP", 6 },     { "OFFER", 10 },  { "PUBLISH", 6 }, { "EVICT", 4 },
	{ "NOTICE", 3 }, { "DISCARD", 1 }
};

static void answer(struct world *world, const struct prop_op *op)
{
	struct flight *const flight = pick_flight(world, OUT, op->arg[0]);

	if (!flight)
		return;
	flight->phase = ANSWERED;
	if (op->kind == REFUSED) {
		flight->fact = rig_refused(&flight->op, OP_REASON_QUEUE);
	} else {
		flight->fact = rig_fact(&flight->op, op->kind == WHOLE ? RIG_ALL_ROWS : op->arg[1],
					op->kind != UNRETIRED);
	}
}

static void notice(struct world *world, uint32_t from)
{
	struct flight *const     flight = pick_flight(world, STUCK, from);
	struct retirement_notice stale = { .op_id = world->last_id + 1 };

	KVS_ASSERT_CMP(mono_transfer_notice(&world->rig.transfer, &stale), ==, KVS_E_STALE);
	if (!flight)
		return;
	stale.op_id = flight->op.op_id;
	KVS_ASSERT(mono_transfer_notice(&world->rig.transfer, &stale) == 0);
	flight->phase = GONE;
}

static void offer(struct world *world, uint32_t number)
{
	const struct kvs_key key = key_of(number);

	mono_transfer_offer(&world->rig.transfer, &key);
}

/* Room for a while, as an admission or a copy takes it. */
static void evict(struct world *world, uint32_t count)
{
	uint32_t blocks[HOST_BLOCKS];
	uint32_t got = 0;

	while (got < count && (blocks[got] = stratum_acquire(&world->rig.coord.host)) != SLOT_NONE)
		got++;
	while (got > 0)
		stratum_unpin(&world->rig.coord.host, blocks[--got]);
}

static void step_local(struct world *world, const struct prop_op *op)
{
	struct lease *lease = pick_lease(world, op->arg[0]);

	switch (op->kind) {
	case DROP:
		if (lease)
			drop(world, lease);
		break;
	case OFFER:
		offer(world, op->arg[0] % KEYS);
		break;
	case PUBLISH:
		if (stratum_room(&world->rig.coord.host) > 0)
			rig_publish(&world->rig, op->arg[0] % KEYS);
		break;
	case EVICT:
		evict(world, op->arg[0] % HOST_BLOCKS);
		break;
	case NOTICE:
		notice(world, op->arg[0]);
		break;
	default:
		mono_transfer_discard_backups(&world->rig.transfer);
	}
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	if (op->kind == READ) {
		read_keys(world, op->arg[0] % KEYS, 1 + op->arg[1] % 8);
	} else if (op->kind <= UNRETIRED) {
		answer(world, op);
	} else if (op->kind == TICK) {
		tick(world, op->arg[0] % 20,
		     op->arg[1] % 4 == 0 ? pick_lease(world, op->arg[1] / 4) : NULL);
	} else {
		step_local(world, op);
	}
	check(world);
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	rig_open(&world->rig, &limits, HOST_BLOCKS);
	return world;
}

/* Answer everything; a tick may start what waited for credits, so until nothing is left. */
static void settle(struct world *world)
{
	const struct prop_op whole = { .kind = WHOLE };
	uint32_t             i;

	do {
		for (i = 0; i < OPS_MAX; i++) {
			notice(world, 0);
			answer(world, &whole);
		}
		tick(world, (uint32_t)(limits.deadline_ns + limits.hold_ns), NULL);
		check(world);
	} while (world->rig.transfer.slots.busy_count > 0 || world->rig.transfer.backups.count > 0);
}

static void world_close(void *arg)
{
	struct world *const               world = arg;
	const struct mono_transfer *const transfer = &world->rig.transfer;
	uint64_t                          outcomes = 0;
	uint32_t                          i;

	settle(world);
	KVS_ASSERT_CMP(transfer->host_refs, ==, 0);
	KVS_ASSERT_CMP(stratum_room(&world->rig.coord.host), ==, HOST_BLOCKS);
	for (i = 0; i < world->lease_count; i++)
		KVS_ASSERT(!world->leases[i].waiting);
	for (i = 0; i < MONO_TRANSFER_OUTCOME_COUNT; i++)
		outcomes += transfer->outcomes[i];
	KVS_ASSERT_CMP(outcomes + world->left_waiting, ==, world->read_count);
	rig_close(&world->rig);
	free(world);
}

PROP_MAIN("mono_transfer", whatever_comes_every_reference_goes_home, 200, 600, world_close)
