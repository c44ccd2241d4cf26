/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adapter, its executor and their threads against a list of what was asked for.
 *
 * Results come when they come, so the model does not say when; it says that each comes once, what it
 * may say and what it must, how many locks are held when all is quiet, and that none is left after
 * a close at whatever point.  Keys and spans are freed when a submission returns and payload when
 * its task retired, so that a sanitizer sees whoever is late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapter/adapter.h"
#include "named_block.h"
#include "os/os.h"
#include "prop.h"
#include "crate.h"

#define NUMBERS 48u      /* of short tasks */
#define LONG_KEYS 1100u  /* of long ones: two ops */
#define ASKED_MAX 32u
#define OP_MAX 5u
#define FOREVER_NS UINT64_MAX

struct asked {
	bool           live;
	bool           stuck; /* taken, unretired */
	enum task_kind kind;
	uint64_t       id;
	uint32_t       number, count; /* objects number .. number + count - 1 */
	uint8_t        sure[LONG_KEYS]; /* was there for sure when it was asked for */
	uint64_t (*bytes)[CRATE_BYTES / 8];
};

struct world {
	struct crate    crate;
	struct adapter *adapter;
	int             epoll_fd;
	struct asked    asked[ASKED_MAX];
	bool            offered[CRATE_KEYS]; /* some store had it */
	bool            sure[CRATE_KEYS];    /* some store that had it said ok */
	uint32_t        held[CRATE_KEYS];
	bool            faults;              /* there were some: a refusal may be anywhere */
	uint64_t        last_id;
};

static const struct adapter_options options = {
	.exec = { .limits = { .outstanding_max = 64,
			      .queue_max = 64,
			      .lock_max = 8192,
			      .cooldown_min_ns = 1,
			      .cooldown_max_ns = 1 },
		  .workers = { 1, 2, 2 } },
	.op_max = { OP_MAX, OP_MAX, OP_MAX }
};

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));
	int                 kind;

	KVS_ASSERT(world);
	crate_init(&world->crate, true);
	KVS_ASSERT(adapter_open(&world->crate.store, &options, &world->adapter, NULL) == 0);
	world->epoll_fd = os_epoll();
	for (kind = 0; kind < TASK_KIND_COUNT; kind++)
		KVS_ASSERT(os_epoll_add(world->epoll_fd, adapter_fd(world->adapter, kind), 0) == 0);
	return world;
}

/* --- submitting ---------------------------------------------------------- */

static uint32_t ops_of(const struct asked *asked)
{
	return (asked->count + OP_KEYS_MAX - 1) / OP_KEYS_MAX;
}

static uint32_t ops_busy(const struct world *world, enum task_kind kind)
{
	uint32_t busy = 0;
	uint32_t i;

	for (i = 0; i < ASKED_MAX; i++) {
		if (world->asked[i].live && world->asked[i].kind == kind)
			busy += ops_of(&world->asked[i]);
	}
	return busy;
}

static int submit(struct world *world, struct asked *asked)
{
	struct kvs_key *const  keys = calloc(asked->count, sizeof(*keys));
	struct kvs_span *const spans = calloc(asked->count, sizeof(*spans));
	uint32_t               i;
	int                    rc;

	KVS_ASSERT(keys && spans && asked->bytes);
	for (i = 0; i < asked->count; i++) {
		const uint32_t number = asked->number + i;

		keys[i] = key_of(number);
		spans[i] = (struct kvs_span){ asked->bytes[i], CRATE_BYTES, CRATE_BYTES };
		if (asked->kind == TASK_STORE)
			fill(asked->bytes[i], number, CRATE_BYTES);
		asked->sure[i] = world->sure[number];
	}
	if (asked->kind == TASK_STORE)
		rc = adapter_submit_store(world->adapter, keys, spans, asked->count, &asked->id);
	else if (asked->kind == TASK_LOAD)
		rc = adapter_submit_load(world->adapter, keys, spans, asked->count, &asked->id);
	else
		rc = adapter_submit_lookup(world->adapter, keys, asked->count, &asked->id);
	free(keys);
	free(spans);
	return rc;
}

static void ask(struct world *world, enum task_kind kind, const struct prop_op *op)
{
	struct asked *asked = world->asked;
	bool          room;

	while (asked->live)
		asked++;
	*asked = (struct asked){ .live = false, .kind = kind };
	asked->count = op->arg[1] % 16 == 0 ? LONG_KEYS : 1 + op->arg[1] % 6;
	asked->number = op->arg[0] % (NUMBERS - 6);
	asked->bytes = calloc(asked->count, sizeof(*asked->bytes));
	room = ops_busy(world, kind) + ops_of(asked) <= OP_MAX;
	KVS_ASSERT_CMP(submit(world, asked), ==, room ? 0 : KVS_E_FULL);
	if (!room) {
		free(asked->bytes);
		asked->bytes = NULL;
		return;
	}
	asked->live = true;
	KVS_ASSERT_CMP(asked->id, >, world->last_id);
	world->last_id = asked->id;
	if (kind == TASK_STORE)
		memset(&world->offered[asked->number], true, asked->count);
}

/* --- results ------------------------------------------------------------- */

static bool is_blank(const uint64_t *words)
{
	static const uint64_t blank[CRATE_BYTES / 8];

	return memcmp(words, blank, CRATE_BYTES) == 0;
}

static void check_row(const struct world *world, const struct asked *asked, uint32_t row, bool set)
{
	const uint32_t number = asked->number + row;

	if (set)
		KVS_ASSERT(world->offered[number]);
	else
		KVS_ASSERT(world->faults || !asked->sure[row]);
	if (asked->kind == TASK_LOAD && set)
		KVS_ASSERT(is_filled(asked->bytes[row], number, CRATE_BYTES));
}

/* The id stays: it is asked for again, and must not answer. */
static void end(struct asked *asked, bool retired)
{
	asked->stuck = !retired;
	asked->live = !retired;
	if (!retired)
		return;
	free(asked->bytes);
	asked->bytes = NULL;
}

static bool take_stored(struct world *world)
{
	struct task_result result;
	struct asked      *asked = world->asked;

	if (adapter_pop_stored(world->adapter, &result, 1) == 0)
		return false;
	while (!asked->live || asked->id != result.task_id)
		asked++;
	KVS_ASSERT(asked < world->asked + ASKED_MAX);
	KVS_ASSERT(asked->kind == TASK_STORE && !asked->stuck);
	KVS_ASSERT(result.ok || world->faults);
	KVS_ASSERT(result.ok ? result.moved_bytes <= (uint64_t)asked->count * CRATE_BYTES :
			       result.moved_bytes == 0);
	if (result.ok)
		memset(&world->sure[asked->number], true, asked->count);
	end(asked, result.retired);
	return true;
}

/* Also of tasks that are no lookup or load, and of those that were taken: they never answer. */
static bool take_queried(struct world *world, struct asked *asked)
{
	uint64_t words[LONG_KEYS / 64 + 1] = { 0 };
	bool     looked_up, loaded, retired = true;
	uint32_t row;

	looked_up = adapter_query_lookup(world->adapter, asked->id, words);
	loaded = adapter_query_load(world->adapter, asked->id, words, &retired);
	if (!looked_up && !loaded)
		return false;
	KVS_ASSERT(asked->live && !asked->stuck);
	KVS_ASSERT_CMP(asked->kind, ==, looked_up ? TASK_LOOKUP : TASK_LOAD);
	KVS_ASSERT(looked_up != loaded);
	for (row = 0; row < asked->count; row++) {
		const bool set = bits_test(words, row);

		check_row(world, asked, row, set);
		world->held[asked->number + row] += looked_up && set;
		if (loaded && retired && !set)
			KVS_ASSERT(is_blank(asked->bytes[row]));
	}
	end(asked, retired);
	return true;
}

static bool take_any(struct world *world)
{
	bool     took = take_stored(world);
	uint32_t i;

	for (i = 0; i < ASKED_MAX; i++)
		took |= take_queried(world, &world->asked[i]);
	return took;
}

static bool all_taken(const struct world *world)
{
	uint32_t i;

	for (i = 0; i < ASKED_MAX; i++) {
		if (world->asked[i].live && !world->asked[i].stuck)
			return false;
	}
	return true;
}

static void take_all(struct world *world)
{
	uint64_t tag;

	crate_open(&world->crate);
	while (!all_taken(world)) {
		if (!take_any(world))
			os_epoll_wait(world->epoll_fd, &tag, 1, FOREVER_NS);
	}
	KVS_ASSERT(!take_any(world));
	KVS_ASSERT_CMP(os_epoll_wait(world->epoll_fd, &tag, 1, 0), ==, 0);
}

/* When everything was taken, all is known. */
static void settle(struct world *world)
{
	struct adapter_stats stats;
	uint64_t             held = 0;
	uint32_t             i;

	take_all(world);
	for (i = 0; i < CRATE_KEYS; i++)
		held += world->held[i];
	adapter_stats(world->adapter, &stats);
	KVS_ASSERT_CMP(stats.exec.locks_held, ==, held);
	for (i = 0; i < TASK_KIND_COUNT; i++) {
		KVS_ASSERT_CMP(stats.finished[i], ==, stats.submitted[i]);
		KVS_ASSERT_CMP(stats.ready[i], ==, 0);
	}
}

/* --- locks, faults and notices ------------------------------------------- */

/* A lock that the model has; others are those of results that nobody took yet. */
static void unlock(struct world *world, const struct prop_op *op)
{
	uint32_t i;

	for (i = 0; i < NUMBERS; i++) {
		const uint32_t       number = (op->arg[0] + i) % NUMBERS;
		const struct kvs_key key = key_of(number);

		if (world->held[number] == 0)
			continue;
		adapter_unlock(world->adapter, &key, 1);
		world->held[number]--;
		return;
	}
}

static void set_fate(struct world *world, uint32_t number, enum crate_fate fate)
{
	os_mutex_lock(&world->crate.lock);
	world->crate.fate[number] = (uint8_t)fate;
	os_mutex_unlock(&world->crate.lock);
}

static void fault(struct world *world, const struct prop_op *op)
{
	static const enum crate_fate fates[] = { CRATE_FAILS, CRATE_NO_SPACE, CRATE_BREAKS,
						 CRATE_CLINGS };

	/* Before the fault itself: what it hits may be taken at once. */
	world->faults = true;
	set_fate(world, op->arg[0] % NUMBERS, fates[op->arg[1] % ARRAY_COUNT(fates)]);
}

static void mend(struct world *world)
{
	uint32_t i;

	for (i = 0; i < NUMBERS; i++)
		set_fate(world, i, CRATE_FINE);
}

/* Every op of a stuck task that needs it; then the task is told, once. */
static void notice(struct world *world, struct asked *asked)
{
	const uint64_t id = asked->id;
	uint64_t       told = 0;
	uint32_t       i, count = 0;

	KVS_ASSERT_CMP(adapter_pop_retired(world->adapter, asked->kind, &told, 1), ==, 0);
	for (i = 0; i < ops_of(asked); i++) {
		const struct retirement_notice said = { .op_id = id + i };

		count += adapter_notice(world->adapter, &said) == 0;
	}
	KVS_ASSERT_CMP(count, >, 0);
	KVS_ASSERT_CMP(adapter_pop_retired(world->adapter, asked->kind, &told, 1), ==, 1);
	KVS_ASSERT_CMP(told, ==, id);
	KVS_ASSERT_CMP(adapter_pop_retired(world->adapter, asked->kind, &told, 1), ==, 0);
	end(asked, true);
}

static bool notice_all(struct world *world)
{
	bool     any = false;
	uint32_t i;

	for (i = 0; i < ASKED_MAX; i++) {
		if (!world->asked[i].stuck)
			continue;
		any = true;
		notice(world, &world->asked[i]);
	}
	return any;
}

/* --- steps --------------------------------------------------------------- */

enum { STORE, LOOKUP, LOAD, TAKE, UNLOCK, FAULT, MEND, NOTICE, SHUT, OPEN, SETTLE };

static const struct prop_kind kinds[] = { { "STORE", 20 }, { "LOOKUP", 14 }, { "LOAD", 14 },
					  { "TAKE", 30 },  { "UNLOCK", 12 }, { "FAULT", 2 },
					  { "MEND", 2 },   { "NOTICE", 6 },  { "SHUT", 3 },
					  { "OPEN", 4 },   { "SETTLE", 4 } };

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	switch (op->kind) {
	case STORE:
		ask(world, TASK_STORE, op);
		break;
	case LOOKUP:
		ask(world, TASK_LOOKUP, op);
		break;
	case LOAD:
		ask(world, TASK_LOAD, op);
		break;
	case TAKE:
		take_any(world);
		break;
	case UNLOCK:
		unlock(world, op);
		break;
	case FAULT:
		fault(world, op);
		break;
	case MEND:
		mend(world);
		break;
	case NOTICE:
		notice_all(world);
		break;
	case SHUT:
		crate_shut(&world->crate);
		break;
	case OPEN:
		crate_open(&world->crate);
		break;
	case SETTLE:
		settle(world);
		break;
	default:
		KVS_PANIC("no step %u", op->kind);
	}
	adapter_audit(world->adapter);
}

/*
 * At whatever point.  Something unretired refuses it, with every lock given back already; then what
 * is left is taken, noticed and closed again.
 */
static void world_close(void *arg)
{
	struct world *const world = arg;
	uint32_t            i;
	int                 rc;

	crate_open(&world->crate);
	rc = adapter_close(world->adapter, FOREVER_NS);
	if (rc < 0) {
		KVS_ASSERT_CMP(rc, ==, KVS_E_QUARANTINE);
		world->faults = true; /* what waited was refused */
		take_all(world);
		KVS_ASSERT(notice_all(world));
		KVS_ASSERT_CMP(adapter_close(world->adapter, FOREVER_NS), ==, 0);
	}
	KVS_ASSERT(world->crate.closed);
	KVS_ASSERT_CMP(crate_locked(&world->crate), ==, 0);
	for (i = 0; i < ASKED_MAX; i++)
		free(world->asked[i].bytes);
	os_close(world->epoll_fd);
	crate_fini(&world->crate);
	free(world);
}

PROP_MAIN("adapter", B2_3_every_result_once_and_no_lock_left_whatever_happens, 40, 250, world_close)
