/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations against a search of all boundaries, on caches of a handful of Host parents: random groups,
 * packings, windows and tails, any pattern of what Device, Host and the store hold.
 *
 * The boundary is the longest whose missing blocks fit into credits and Host; the rows are exactly those; and
 * Host holds afterwards what the search says, so that nothing else was evicted.  After each operation cache
 * and reservations are audited and every reference on a Host block has an owner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/prng.h"
#include "naive_reserve.h"
#include "prop.h"

#define PROMPT_PAGES 6u
#define READS 3u
#define PINS 6u
/* Pages of another prompt, which only take up room. */
#define OTHER_PAGES 12u

struct read {
	bool                     live;
	struct cache_reservation reservation;
	struct cache_row         rows[NAIVE_ROWS];
};

struct pin {
	uint32_t group, block;
};

struct world {
	struct box      box;
	struct reserver reserver;
	uint32_t        tail_tokens[NAIVE_TAIL_MAX]; /* longest first */
	uint32_t        tail_count;
	struct read     reads[READS];
	struct pin      pins[PINS];
	uint32_t        pin_count;
};

/* --- the world -------------------------------------------------------------------------------- */

static void make_specs(struct prng *prng, uint32_t page_tokens, struct group_spec *specs)
{
	static const char *const names[] = { "a", "b", "c" };
	const uint32_t           count = 1 + (uint32_t)prng_below(prng, 3);
	uint32_t                 i;

	for (i = 0; i < count; i++) {
		specs[i] = (struct group_spec){ .name = names[i],
						.kind = (enum group_kind)prng_below(prng, 3) };
		specs[i].block_tokens = page_tokens >> prng_below(prng, 2);
		specs[i].window_tokens =
			specs[i].kind == GROUP_WINDOW ? 1 + (uint32_t)prng_below(prng, 9) : 0;
		specs[i].packing = 1 + (uint32_t)prng_below(prng, NAIVE_PACKING);
	}
}

static void open_cache(struct world *world, uint64_t seed)
{
	struct group_spec specs[BOX_GROUPS] = { { 0 } };
	struct prng       prng;
	uint32_t          page_tokens, tokens;

	prng_seed(&prng, seed);
	page_tokens = prng_chance(&prng, 1, 2) ? 2 : 4;
	make_specs(&prng, page_tokens, specs);
	box_open(&world->box, page_tokens, 2 + (uint32_t)prng_below(&prng, 10),
		 1 + (uint32_t)prng_below(&prng, NAIVE_PARENTS), specs);
	KVS_ASSERT(reserver_open(&world->reserver, world->box.cache, NAIVE_TAIL_MAX, NULL) == 0);
	world->tail_count = 0;
	for (tokens = (PROMPT_PAGES + 1) * page_tokens; --tokens > 0;) {
		if (tokens % page_tokens > 0 && world->tail_count < NAIVE_TAIL_MAX &&
		    prng_chance(&prng, 1, 4))
			world->tail_tokens[world->tail_count++] = tokens;
	}
}

static void close_cache(struct world *world)
{
	uint32_t i;

	for (i = 0; i < READS; i++)
		cache_reservation_release(world->box.cache, &world->reads[i].reservation);
	while (world->pin_count > 0) {
		const struct pin *const pin = &world->pins[--world->pin_count];

		cache_unpin(world->box.cache, STRATUM_HOST, pin->group, pin->block);
	}
	reserver_close(&world->reserver);
	box_close(&world->box);
	memset(world->reads, 0, sizeof(world->reads));
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	open_cache(world, 1);
	return world;
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	close_cache(world);
	free(world);
}

/* --- what others do --------------------------------------------------------------------------- */

static uint32_t pick_page(const struct world *world, uint32_t arg)
{
	const uint32_t page = arg % (PROMPT_PAGES + world->tail_count + 2);

	if (page < PROMPT_PAGES)
		return page;
	if (page < PROMPT_PAGES + world->tail_count)
		return NAIVE_TAILS + page - PROMPT_PAGES;
	return OTHER_PAGES + page - PROMPT_PAGES - world->tail_count;
}

static void store(struct world *world, const struct prop_op *op)
{
	const struct groups *const groups = cache_groups(world->box.cache);
	const uint32_t             g = op->arg[0] % groups->count;
	const struct cell_name     name = { &world->box.space,
					    &world->box.hashes[pick_page(world, op->arg[1])], g,
					    op->arg[0] / 16 % groups->group[g].page_blocks };
	const uint32_t             block = cache_host_acquire(world->box.cache, g);

	if (block != BLOCK_NULL)
		cache_host_publish(world->box.cache, &name, block, CELL_CHUNK);
}

/* Hold a block of Host, published or not. */
static void pin(struct world *world, const struct prop_op *op)
{
	const uint32_t g = op->arg[0] % world->box.group_count;
	const uint32_t page = pick_page(world, op->arg[1]);
	struct pin    *pin;

	if (world->pin_count == PINS)
		return;
	pin = &world->pins[world->pin_count];
	pin->group = g;
	pin->block = box_find(&world->box, STRATUM_HOST, g, page);
	if (pin->block != BLOCK_NULL)
		cache_pin(world->box.cache, STRATUM_HOST, g, pin->block);
	else if (op->arg[0] / 8 % 4 == 0)
		pin->block = cache_host_acquire(world->box.cache, g);
	world->pin_count += pin->block != BLOCK_NULL;
}

static void unpin(struct world *world)
{
	const struct pin *pin;

	if (world->pin_count == 0)
		return;
	pin = &world->pins[--world->pin_count];
	cache_unpin(world->box.cache, STRATUM_HOST, pin->group, pin->block);
}

/* --- a reservation ---------------------------------------------------------------------------- */

struct question {
	struct naive_prompt      naive;
	struct tail              tails[NAIVE_TAIL_MAX];
	uint64_t                 page_hints[1];
	uint64_t                 tail_hints[NAIVE_TAIL_MAX];
	struct cache_reserve_ask ask;
};

/* A store that has much of the prompt, or little. */
static void make_hints(const struct world *world, struct prng *prng, struct question *question)
{
	const uint32_t columns = cache_groups(world->box.cache)->columns;
	const uint64_t chance = 1 + prng_below(prng, 12);
	uint32_t       page, column, i;

	for (page = 0; page < PROMPT_PAGES; page++) {
		for (column = 0; column < columns; column++) {
			if (!prng_chance(prng, chance < 8 ? 7 : 4, 8))
				continue;
			question->naive.hinted[page][column] = true;
			bits_set(question->page_hints, page * columns + column);
		}
	}
	for (i = 0; i < question->naive.tail_count; i++) {
		for (column = 0; column < columns; column++) {
			if (!prng_chance(prng, 6, 8))
				continue;
			question->naive.hinted[NAIVE_TAILS + question->naive.tail_page[i]][column] = true;
			bits_set(&question->tail_hints[i], column);
		}
	}
}

static void make_question(const struct world *world, const struct prop_op *op,
			  struct question *question)
{
	const uint32_t             page_tokens = cache_groups(world->box.cache)->page_tokens;
	struct naive_prompt *const naive = &question->naive;
	struct prng                prng;
	uint32_t                   i;

	memset(question, 0, sizeof(*question));
	prng_seed(&prng, op->arg[1]);
	naive->page_count = op->arg[0] / 4 % (PROMPT_PAGES + 1);
	naive->credits = (uint32_t)prng_below(&prng, 20);
	naive->row_max = prng_chance(&prng, 1, 8) ? (uint32_t)prng_below(&prng, 6) : NAIVE_ROWS;
	for (i = 0; i < world->tail_count; i++) {
		const uint32_t n = naive->tail_count;

		if (world->tail_tokens[i] / page_tokens > naive->page_count)
			continue;
		naive->tail_tokens[n] = world->tail_tokens[i];
		naive->tail_page[n] = i;
		question->tails[n] = (struct tail){ world->tail_tokens[i],
							  world->box.hashes[NAIVE_TAILS + i] };
		naive->tail_count++;
	}
	make_hints(world, &prng, question);
	question->ask = (struct cache_reserve_ask){
		.prompt = { &world->box.space, world->box.hashes, naive->page_count, question->tails,
			    naive->tail_count },
		.page_hints = question->page_hints,
		.tail_hints = question->tail_hints,
		.credits = naive->credits,
	};
}

static void check_rows(const struct world *world, const struct cache_reservation *reservation,
		       const struct naive_reserve *naive)
{
	uint32_t i;

	KVS_ASSERT_CMP(reservation->row_count, ==, naive->row_count);
	for (i = 0; i < naive->row_count; i++) {
		const struct cache_row *const row = &reservation->rows[i];

		KVS_ASSERT_CMP(row->group, ==, naive->rows[i].group);
		KVS_ASSERT_CMP(row->position, ==, naive->rows[i].position);
		KVS_ASSERT(memcmp(&row->hash, &world->box.hashes[naive->rows[i].page],
				  sizeof(row->hash)) == 0);
		KVS_ASSERT_CMP(row->of_tail, ==, naive->rows[i].page >= NAIVE_TAILS);
		KVS_ASSERT_CMP(row->block, !=, BLOCK_NULL);
	}
}

static bool holds(const struct naive_reserve *naive, const struct naive_cell *cell)
{
	uint32_t i;

	for (i = 0; i < NAIVE_PARENTS * NAIVE_PACKING; i++) {
		const struct naive_cell *const other = &naive->host[i / NAIVE_PACKING][i % NAIVE_PACKING];

		if (other->used && other->published && other->group == cell->group &&
		    other->page == cell->page && other->offset == cell->offset)
			return other->refs == cell->refs && other->epoch == cell->epoch;
	}
	return false;
}

/* Of published cells one holds what the other holds, references and all. */
static void check_host(const struct naive_reserve *a, const struct naive_reserve *b)
{
	uint32_t i;

	for (i = 0; i < NAIVE_PARENTS * NAIVE_PACKING; i++) {
		const struct naive_cell *const cell = &a->host[i / NAIVE_PACKING][i % NAIVE_PACKING];

		if (cell->used && cell->published)
			KVS_ASSERT(holds(b, cell));
	}
}

static void reserve(struct world *world, struct read *read, const struct prop_op *op)
{
	struct cache_reservation *const reservation = &read->reservation;
	struct question                 question;
	struct naive_reserve            naive, after;
	enum reserve_answer             answer;

	make_question(world, op, &question);
	naive_look(&world->box, &naive);
	naive_reserve(&naive, &question.naive);
	*reservation = (struct cache_reservation){ .rows = read->rows, .row_max = question.naive.row_max };
	KVS_ASSERT(cache_reserve(&world->reserver, &question.ask, reservation, &answer, NULL) == 0);
	KVS_ASSERT_CMP(answer, ==, naive.answer);
	KVS_ASSERT_CMP(reservation->tokens, ==, naive.tokens);
	KVS_ASSERT_CMP(reservation->local_tokens, ==, naive.local_tokens);
	KVS_ASSERT_CMP(reservation->shortened_by, ==, naive.shortened_by);
	if (answer == RESERVE_ROWS)
		KVS_ASSERT_CMP(reservation->warm_count, ==, naive.warm_count);
	check_rows(world, reservation, &naive);
	naive_look(&world->box, &after);
	check_host(&naive, &after);
	check_host(&after, &naive);
	read->live = answer == RESERVE_ROWS;
}

/* The GET retires: attached, with some rows whole, or detached. */
static void retire(struct world *world, struct read *read, const struct prop_op *op)
{
	struct cache_reservation *const reservation = &read->reservation;
	const uint64_t                  whole = op->arg[1] % 3 ? UINT64_MAX : mix64(op->arg[1]);
	uint32_t                        i;

	if (reservation->published || op->arg[0] / 4 % 5 == 0) {
		cache_reservation_release(world->box.cache, reservation);
		read->live = false;
		return;
	}
	KVS_ASSERT_CMP(cache_reservation_publish(world->box.cache, reservation, &whole,
						 op->arg[0] / 4 % 2), ==,
		       bits_count(&whole, reservation->row_count));
	for (i = 0; i < reservation->row_count; i++) {
		const struct cell_name name = cache_row_name(reservation, i);

		if (whole >> i & 1)
			KVS_ASSERT(cache_find(world->box.cache, STRATUM_HOST, &name) != BLOCK_NULL);
	}
}

/* --- steps ------------------------------------------------------------------------------------ */

static uint32_t count_owners(const struct world *world, uint32_t group, uint32_t block)
{
	struct cell_view view;
	uint32_t         owners = cache_view(world->box.cache, STRATUM_HOST, group, block, &view);
	uint32_t         i, row;

	for (i = 0; i < world->pin_count; i++)
		owners += world->pins[i].group == group && world->pins[i].block == block;
	for (i = 0; i < READS; i++) {
		const struct read *const read = &world->reads[i];

		for (row = 0; row < read->reservation.row_count; row++)
			owners += read->rows[row].group == group && read->rows[row].block == block;
	}
	return owners;
}

static void account(const struct world *world)
{
	const struct pool *const pool = cache_pool(world->box.cache, STRATUM_HOST);
	uint32_t                 parent, slot, g, i;

	cache_audit(world->box.cache);
	for (i = 0; i < READS; i++)
		cache_reservation_audit(world->box.cache, &world->reads[i].reservation);
	for (parent = 1; parent <= pool_parent_count(pool); parent++) {
		if (!pool_bound(pool, parent, &g))
			continue;
		for (slot = 0; slot < pool_packing(pool, g); slot++) {
			const uint32_t block = 1 + (parent - 1) * pool_packing(pool, g) + slot;

			if (pool_refs(pool, g, block) > 0)
				KVS_ASSERT_CMP(pool_refs(pool, g, block), ==, count_owners(world, g, block));
		}
	}
}

enum { REOPEN, DEVICE, STORE, PIN, UNPIN, RESERVE, RETIRE };

static const struct prop_kind kinds[] = {
	{ "REOPEN", 3 }, { "DEVICE", 30 },  { "STORE", 40 },  { "PIN", 10 },
	{ "UNPIN", 9 },  { "RESERVE", 60 }, { "RETIRE", 40 },
};

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	struct read *const  read = &world->reads[op->arg[0] % READS];

	if (op->kind == REOPEN) {
		close_cache(world);
		open_cache(world, op->arg[0]);
	} else if (op->kind == DEVICE) {
		box_put_page(&world->box, op->arg[0] % world->box.group_count,
			     pick_page(world, op->arg[1]), CELL_CHUNK, 0);
	} else if (op->kind == STORE) {
		store(world, op);
	} else if (op->kind == PIN) {
		pin(world, op);
	} else if (op->kind == UNPIN) {
		unpin(world);
	} else if (op->kind == RESERVE && !read->live) {
		reserve(world, read, op);
	} else if (op->kind == RETIRE && read->live) {
		retire(world, read, op);
	}
	account(world);
}

PROP_MAIN("reserve", a_reservation_is_what_a_search_of_all_boundaries_finds, 600, 300, world_close)
