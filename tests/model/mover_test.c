/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that start, grow, end, are retracted and come back, while copies are acknowledged in any
 * order, twice or late; against a ledger that counts owners anew after every step.
 *
 * The quay's memory tells whether a byte was seen too early or lost too soon: every block with a name
 * and every block of a request is compared with the words it must hold.  Of a drain the model says
 * which candidates must be in the ticket, which may be dropped and which must wait.  Memory is small,
 * so that eviction, a full Host and refused admissions are ordinary.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "quay.h"
#include "prop.h"

#define REQUESTS 3u
#define PROMPTS 3u
#define TOKENS 30u
#define QUEUE 12u
#define TICKETS_MAX 64u

static const struct group_spec groups[] = {
	{ .name = "full", .kind = GROUP_FULL, .block_tokens = 2, .packing = 2 },
	{ .name = "window", .kind = GROUP_WINDOW, .block_tokens = 2, .window_tokens = 5, .packing = 3 },
	{ .name = "state", .kind = GROUP_STATE, .block_tokens = 4, .packing = 1 },
};

static const struct quay_spec spec = { .groups = groups, .group_count = ARRAY_COUNT(groups),
				      .page_tokens = 4, .device_parents = 26, .host_parents = 12,
				      .candidates = QUEUE, .save_ticket_max = 3, .save_row_max = 14,
				      .load_ticket_max = 2, .snapshots = 2, .image_blocks = 14 };

enum phase { IDLE, RUNNING, RETRACTED };

struct actor {
	struct quay_request request;
	enum phase          phase;
	uint32_t            snapshot; /* RETRACTED: SLOT_NONE, or its image */
};

struct world {
	struct quay *quay;
	struct actor actors[REQUESTS];
	uint64_t     ids[TICKETS_MAX]; /* in flight, oldest first */
	uint32_t     id_count;
	uint64_t     last_id;
	uint64_t     ignored;
};

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	world->quay = quay_new(&spec);
	return world;
}

/* --- the ledger ------------------------------------------------------------------------------- */

typedef uint32_t ledger[STRATUM_COUNT][QUAY_GROUPS][QUAY_BLOCKS];

static void count_ticket(const struct world *world, uint64_t id, ledger owners)
{
	uint32_t i;

	for (i = 0; i < quay_rows(world->quay, id); i++) {
		const struct mover_row *const row = quay_row(world->quay, id, i);
		const bool                    from_host = row->path == COPY_HOST_TO_DEVICE;
		const bool                    to_host = row->path == COPY_DEVICE_TO_HOST;

		owners[from_host ? STRATUM_HOST : STRATUM_DEVICE][row->group][row->source]++;
		owners[to_host ? STRATUM_HOST : STRATUM_DEVICE][row->group][row->target]++;
	}
}

static void count_actor(const struct world *world, const struct actor *actor, ledger owners)
{
	const struct snapshots *const snapshots = &world->quay->snapshots;
	uint32_t                      g, i;

	for (g = 0; g < spec.group_count; g++) {
		for (i = 0; i < actor->request.tables[g].count; i++)
			owners[STRATUM_DEVICE][g][actor->request.slots[g][i]]++;
	}
	if (actor->phase != RETRACTED || actor->snapshot == SLOT_NONE)
		return;
	for (i = 0; i < snapshots->items[actor->snapshot].block_count; i++) {
		const struct snapshot_block *const block = &snapshot_blocks(snapshots, actor->snapshot)[i];

		owners[STRATUM_HOST][block->group][block->block]++;
	}
}

static void compare_refs(const struct world *world, ledger owners)
{
	uint32_t stratum, g, block;

	for (stratum = 0; stratum < STRATUM_COUNT; stratum++) {
		const struct pool *const pool = cache_pool(world->quay->cache, stratum);

		for (g = 0; g < spec.group_count; g++) {
			const uint32_t last = pool_parent_count(pool) * pool_packing(pool, g);

			for (block = 1; block <= last; block++) {
				uint32_t         bound;
				struct cell_view view;

				if (!pool_bound(pool, pool_parent_of(pool, g, block), &bound) || bound != g) {
					KVS_ASSERT_CMP(owners[stratum][g][block], ==, 0);
					continue;
				}
				if (cache_view(world->quay->cache, stratum, g, block, &view))
					owners[stratum][g][block]++;
				KVS_ASSERT_CMP(pool_refs(pool, g, block), ==, owners[stratum][g][block]);
			}
		}
	}
}

static void compare(const struct world *world)
{
	const struct mover *const mover = &world->quay->mover;
	ledger                    owners = { 0 };
	uint32_t                  i;

	quay_check(world->quay);
	for (i = 0; i < world->id_count; i++)
		count_ticket(world, world->ids[i], owners);
	for (i = 0; i < REQUESTS; i++)
		count_actor(world, &world->actors[i], owners);
	compare_refs(world, owners);
	KVS_ASSERT_CMP(mover_saving(mover) + mover_loading(mover), ==, world->id_count);
	KVS_ASSERT_CMP(mover->last_id, ==, world->last_id);
	KVS_ASSERT_CMP(mover->counts.ignored, ==, world->ignored);
}

/* A new ticket's id is the next. */
static void note_ticket(struct world *world, uint64_t id)
{
	if (id == 0)
		return;
	KVS_ASSERT_CMP(id, ==, world->last_id + 1);
	KVS_ASSERT_CMP(world->id_count, <, TICKETS_MAX);
	world->last_id = id;
	world->ids[world->id_count++] = id;
}

/* --- drains ----------------------------------------------------------------------------------- */

/* What is known of a candidate before a drain. */
struct told {
	struct candidate candidate;
	bool             on_host, on_device, in_flight;
};

static bool equal(const struct candidate *a, const struct candidate *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static bool in_flight(const struct world *world, const struct candidate *candidate)
{
	uint32_t i, k;

	for (i = 0; i < world->id_count; i++) {
		if (mover_find(&world->quay->mover, world->ids[i])->kind != TICKET_SAVE)
			continue;
		for (k = 0; k < quay_rows(world->quay, world->ids[i]); k++) {
			if (equal(&quay_row(world->quay, world->ids[i], k)->name, candidate))
				return true;
		}
	}
	return false;
}

static uint32_t look_at_queue(struct world *world, struct told *ret_told)
{
	struct candidates *const queue = &world->quay->candidates;
	const uint32_t           count = candidates_count(queue);
	uint32_t                 i, k;

	for (i = 0; i < count; i++) {
		struct told *const told = &ret_told[i];
		struct cell_name   name;

		memcpy(&told->candidate, ring_at(&queue->ring, i), sizeof(told->candidate));
		name = candidate_name(&told->candidate);
		told->on_host = cache_find(world->quay->cache, STRATUM_HOST, &name) != BLOCK_NULL;
		told->on_device = cache_find(world->quay->cache, STRATUM_DEVICE, &name) != BLOCK_NULL;
		told->in_flight = in_flight(world, &told->candidate);
		for (k = 0; k < i; k++)
			told->in_flight |= equal(&ret_told[k].candidate, &told->candidate);
	}
	return count;
}

/* Does the queue go on with this one?  Then it is taken off the front of `at`. */
static bool waits(struct candidates *queue, uint32_t *at, const struct candidate *candidate)
{
	if (*at == candidates_count(queue) || !equal(ring_at(&queue->ring, *at), candidate))
		return false;
	(*at)++;
	return true;
}

/*
 * In the queue's order, each is one of: the ticket's next row, dropped for a reason, still in the
 * queue.  Only a drain's own evictions make a reason come or go while it runs: what was on Host at
 * its begin may be copied or dropped.
 */
static void check_drain(struct world *world, const struct told *told, uint32_t count, uint64_t id)
{
	struct candidates *const queue = &world->quay->candidates;
	const struct mover      *mover = &world->quay->mover;
	const uint32_t           rows = quay_rows(world->quay, id);
	uint32_t                 row = 0, at = 0, i;

	for (i = 0; i < count; i++) {
		const struct told *const t = &told[i];

		if (row < rows && equal(&quay_row(world->quay, id, row)->name, &t->candidate)) {
			const struct cell_name name = candidate_name(&t->candidate);

			KVS_ASSERT(t->on_device);
			KVS_ASSERT_CMP(cache_find(world->quay->cache, STRATUM_HOST, &name), ==, BLOCK_NULL);
			row++;
		} else if (!waits(queue, &at, &t->candidate)) {
			KVS_ASSERT(t->on_host || t->in_flight || !t->on_device);
		} else if (mover_can_stash(mover, 1)) {
			KVS_ASSERT(t->on_device);
			KVS_ASSERT_CMP(cache_host_acquire(world->quay->cache, t->candidate.group), ==,
				       BLOCK_NULL);
		}
	}
	KVS_ASSERT_CMP(row, ==, rows);
	KVS_ASSERT_CMP(at, ==, candidates_count(queue));
}

static void drain(struct world *world)
{
	struct told    told[QUEUE];
	const uint32_t count = look_at_queue(world, told);
	const uint64_t id = mover_drain(&world->quay->mover);

	check_drain(world, told, count, id);
	note_ticket(world, id);
}

/* --- completions ------------------------------------------------------------------------------ */

static void complete(struct world *world, uint32_t draw)
{
	struct candidate names[32];
	uint32_t         i, name_count = 0;
	uint64_t         id;

	if (world->id_count == 0)
		return;
	draw %= world->id_count;
	id = world->ids[draw];
	if (mover_find(&world->quay->mover, id)->kind == TICKET_SAVE) {
		for (; name_count < quay_rows(world->quay, id); name_count++)
			names[name_count] = quay_row(world->quay, id, name_count)->name;
	}
	KVS_ASSERT(quay_done(world->quay, id));
	for (i = draw + 1; i < world->id_count; i++)
		world->ids[i - 1] = world->ids[i];
	world->id_count--;
	for (i = 0; i < name_count; i++) {
		const struct cell_name name = candidate_name(&names[i]);

		KVS_ASSERT_CMP(cache_find(world->quay->cache, STRATUM_HOST, &name), !=, BLOCK_NULL);
	}
}

/* An id that is done, or never was. */
static void complete_wrongly(struct world *world, uint32_t draw)
{
	const uint64_t id = draw % (world->last_id + 3);
	uint32_t       i;

	for (i = 0; i < world->id_count; i++) {
		if (world->ids[i] == id)
			return;
	}
	KVS_ASSERT(!mover_done(&world->quay->mover, id));
	world->ignored++;
}

/* --- requests --------------------------------------------------------------------------------- */

static void start(struct world *world, struct actor *actor, uint32_t draw)
{
	struct quay_request *const request = &actor->request;
	const uint32_t             end = 1 + draw / PROMPTS % (TOKENS - 1);

	if (!mover_can_load(&world->quay->mover))
		return;
	quay_prompt(world->quay, request, draw % PROMPTS, (int32_t)(draw % PROMPTS) * 1000, TOKENS);
	if (quay_start(world->quay, request, (end - 1) / spec.page_tokens, end) < 0)
		return;
	note_ticket(world, request->load_ticket);
	quay_forward(world->quay, request, end);
	quay_check_request(world->quay, request);
	actor->phase = RUNNING;
}

static void grow(struct world *world, struct actor *actor, uint32_t draw)
{
	const uint32_t end = (uint32_t)actor->request.computed + 1 + draw % 5;

	if (end > TOKENS || quay_grow(world->quay, &actor->request, end) < 0)
		return;
	quay_forward(world->quay, &actor->request, end);
	quay_check_request(world->quay, &actor->request);
}

static void end(struct world *world, struct actor *actor, bool abort)
{
	if (abort)
		cache_free(world->quay->cache, actor->request.tables);
	else
		quay_finish(world->quay, &actor->request);
	actor->phase = IDLE;
}

static void retract(struct world *world, struct actor *actor)
{
	const struct retraction retraction = { .request = actor->request.id,
					       .tables = actor->request.tables,
					       .completed = quay_completed(world->quay, &actor->request),
					       .epoch = actor->request.epoch };
	struct retracted        retracted;

	KVS_ASSERT(snapshot_retract(&world->quay->snapshots, &retraction, &retracted, NULL) == 0);
	note_ticket(world, retracted.save_ticket);
	note_ticket(world, retracted.stash_ticket);
	actor->snapshot = retracted.snapshot;
	actor->phase = RETRACTED;
}

/* With its image, or computing what the hit lacks. */
static void recover(struct world *world, struct actor *actor)
{
	struct snapshots *const    snapshots = &world->quay->snapshots;
	struct quay_request *const request = &actor->request;
	const struct quay_request  before = *request;
	const uint32_t             end = (uint32_t)before.computed;
	uint64_t                   tokens, id = 0;

	if (world->quay->mover.load_ticket_max - mover_loading(&world->quay->mover) < 2)
		return;
	quay_prompt(world->quay, request, before.id, before.tokens[0], TOKENS);
	request->computed = end;
	if (quay_start(world->quay, request, end / spec.page_tokens, end) < 0)
		return;
	note_ticket(world, request->load_ticket);
	actor->phase = RUNNING;
	tokens = actor->snapshot == SLOT_NONE ?
			 request->hit : snapshot_tokens(snapshots, actor->snapshot, request->hit);
	if (tokens == end && actor->snapshot != SLOT_NONE) {
		KVS_ASSERT(snapshot_restore(snapshots, actor->snapshot, request->tables, request->hit,
					    &id, NULL) == 0);
		note_ticket(world, id);
		request->computed = end;
		quay_copy_loads(world->quay);
	} else if (actor->snapshot != SLOT_NONE) {
		snapshot_drop(snapshots, actor->snapshot);
	}
	quay_forward(world->quay, request, end);
	quay_check_request(world->quay, request);
}

static void give_up(struct world *world, struct actor *actor)
{
	if (actor->snapshot != SLOT_NONE)
		snapshot_drop(&world->quay->snapshots, actor->snapshot);
	actor->phase = IDLE;
}

/* --- clearing --------------------------------------------------------------------------------- */

/* Does anybody besides the index hold a block with a name? */
static bool names_are_held(const struct world *world)
{
	struct cache *const       cache = world->quay->cache;
	const struct pages *const pages = cache_pages(cache);
	uint32_t                  entry, column, stratum;

	SLOTS_EACH(&pages->slots, entry) {
		for (column = 0; column < pages->groups.columns; column++) {
			const uint32_t cell = pages_cell(pages, entry, column);
			const uint32_t g = pages->groups.column_group[column];

			for (stratum = 0; stratum < STRATUM_COUNT; stratum++) {
				const uint32_t block = pages_block(pages, cell, stratum);

				if (block != BLOCK_NULL &&
				    pool_refs(cache_pool(cache, stratum), g, block) > 1)
					return true;
			}
		}
	}
	return false;
}

static void clear(struct world *world)
{
	const struct quay *const quay = world->quay;
	bool                     busy = world->id_count > 0 || names_are_held(world);
	uint32_t                 i;

	for (i = 0; i < REQUESTS; i++) {
		const struct actor *const actor = &world->actors[i];

		busy |= actor->phase == RETRACTED && actor->snapshot != SLOT_NONE;
	}
	KVS_ASSERT_CMP(snapshots_clear(&world->quay->snapshots), ==, !busy);
	if (busy)
		return;
	KVS_ASSERT_CMP(quay_cached(quay, STRATUM_DEVICE), ==, 0);
	KVS_ASSERT_CMP(quay_held(quay, STRATUM_HOST), ==, 0);
	KVS_ASSERT_CMP(candidates_count(&quay->candidates), ==, 0);
}

/* --- steps ------------------------------------------------------------------------------------ */

enum {
	START, GROW, FINISH, ABORT, RETRACT, RECOVER, GIVE_UP,
	DRAIN, COMPLETE, REPEAT, CLEAR_DEVICE, CLEAR
};

static const struct prop_kind kinds[] = { { "START", 6 },   { "GROW", 8 },     { "FINISH", 3 },
					  { "ABORT", 1 },   { "RETRACT", 3 },  { "RECOVER", 4 },
					  { "GIVE_UP", 1 }, { "DRAIN", 6 },    { "COMPLETE", 9 },
					  { "REPEAT", 1 },  { "CLEAR_DEVICE", 3 },
					  { "CLEAR", 1 } };

static void act(struct world *world, struct actor *actor, uint32_t kind, uint32_t draw)
{
	if (actor->phase == IDLE && kind == START)
		start(world, actor, draw);
	else if (actor->phase == RUNNING && kind == GROW)
		grow(world, actor, draw);
	else if (actor->phase == RUNNING && (kind == FINISH || kind == ABORT))
		end(world, actor, kind == ABORT);
	else if (actor->phase == RUNNING && kind == RETRACT)
		retract(world, actor);
	else if (actor->phase == RETRACTED && kind == RECOVER)
		recover(world, actor);
	else if (actor->phase == RETRACTED && kind == GIVE_UP)
		give_up(world, actor);
}

/* arg[0] draws the request or the ticket, arg[1] the rest; what makes no sense in this state is skipped. */
static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	if (op->kind == DRAIN)
		drain(world);
	else if (op->kind == COMPLETE)
		complete(world, op->arg[0]);
	else if (op->kind == REPEAT)
		complete_wrongly(world, op->arg[0]);
	else if (op->kind == CLEAR_DEVICE)
		cache_clear_device(world->quay->cache);
	else if (op->kind == CLEAR)
		clear(world);
	else
		act(world, &world->actors[op->arg[0] % REQUESTS], op->kind, op->arg[1]);
	compare(world);
}

static void world_close(void *arg)
{
	struct world *const world = arg;
	uint32_t            i;

	for (i = 0; i < REQUESTS; i++) {
		if (world->actors[i].phase == RUNNING)
			end(world, &world->actors[i], false);
		if (world->actors[i].phase == RETRACTED)
			give_up(world, &world->actors[i]);
	}
	while (world->id_count > 0)
		complete(world, 0);
	compare(world);
	KVS_ASSERT(snapshots_clear(&world->quay->snapshots));
	quay_free(world->quay);
	free(world);
}

PROP_MAIN("mover", copies_hold_what_they_move_and_show_it_when_it_is_there, 60, 300, world_close)
