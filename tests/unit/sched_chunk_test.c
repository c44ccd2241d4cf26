/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks: where they are cut, what they demand of each group, and how long a request may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "sched/chunk.h"

#define FULL(q, k) { .name = "full", .kind = GROUP_FULL, .block_tokens = (q), .packing = (k) }
#define WINDOW(q, k, w) \
	{ .name = "window", .kind = GROUP_WINDOW, .block_tokens = (q), .window_tokens = (w), .packing = (k) }
#define STATE(title, q, k) \
	{ .name = (title), .kind = GROUP_STATE, .block_tokens = (q), .packing = (k) }

static struct groups groups_of(const struct group_spec *specs, uint32_t count, uint32_t page_tokens)
{
	struct groups groups;

	assert_int_equal(groups_make(specs, count, page_tokens, &groups, NULL), 0);
	return groups;
}

/* --- alignment -------------------------------------------------------------------------------- */

struct cut {
	uint32_t first, unscheduled, budget, promotion, size;
};

static void expect_cuts(const struct cut *cuts, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct cut *const cut = &cuts[i];
		const struct chunk_ask  ask = { cut->first, cut->unscheduled, cut->budget, 4,
						cut->promotion };

		if (chunk_align(&ask) != cut->size)
			fail_msg("case %u: %u, not %u", i, chunk_align(&ask), cut->size);
	}
}

static void a_chunk_is_cut_at_the_promotion_boundary(void **state)
{
	static const struct cut cuts[] = {
		{ 16, 24, 24, 32, 16 }, /* stops there */
		{ 16, 24, 8, 32, 8 },   /* the budget falls short: it waits for a later one */
		{ 24, 16, 16, 32, 8 },  /* which stops there */
		{ 24, 4, 16, 32, 4 },   /* the prompt ends before */
		{ 32, 16, 10, 32, 8 },  /* reached: whole pages */
	};

	(void)state;
	expect_cuts(cuts, ARRAY_COUNT(cuts));
}

static void a_chunk_ends_at_a_page_or_with_the_prompt(void **state)
{
	static const struct cut cuts[] = {
		{ 0, 12, 6, 0, 4 }, { 4, 8, 6, 0, 4 }, { 8, 4, 6, 0, 4 },
		{ 0, 12, 3, 0, 0 },  /* not a page: not now */
		{ 0, 3, 3, 0, 3 },   /* but an end fits */
		{ 6, 20, 20, 0, 20 },
		{ 6, 20, 19, 0, 2 }, /* from within a page up to its end, and no further */
		{ 6, 20, 2, 0, 2 },
		{ 6, 20, 1, 0, 0 },
		{ 6, 1, 1, 0, 1 },
		{ 7, 9, 8, 12, 1 },
		{ 0, 5, 0, 0, 0 },
	};

	(void)state;
	expect_cuts(cuts, ARRAY_COUNT(cuts));
}

static void a_tail_behind_the_last_boundary_is_split_off(void **state)
{
	static const struct {
		uint32_t first, unscheduled, size, tail;
	} cases[] = {
		{ 0, 10, 10, 2 }, { 8, 3, 3, 0 }, { 8, 4, 4, 0 }, { 8, 5, 5, 1 },
		{ 6, 3, 3, 1 },   { 6, 1, 1, 0 }, { 6, 2, 2, 0 }, { 0, 14, 10, 0 },
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		const struct chunk_ask ask = { .first = cases[i].first, .unscheduled = cases[i].unscheduled,
					       .budget = 64, .page_tokens = 4 };

		if (chunk_final_tail(&ask, cases[i].size) != cases[i].tail)
			fail_msg("case %u: %u", i, chunk_final_tail(&ask, cases[i].size));
	}
}

/* --- demands ---------------------------------------------------------------------------------- */

/* 0: full, 1: window of 4, 2: state; pages of 4, blocks of 2, 2 and 4. */
static const struct group_spec mixed_specs[] = { FULL(2, 1), WINDOW(2, 1, 4), STATE("state", 4, 1) };

static void expect_demands(struct chunk_shape shape, const struct demand *expected)
{
	const struct groups groups = groups_of(mixed_specs, ARRAY_COUNT(mixed_specs), 4);
	struct demand       demands[GROUPS_MAX];
	uint32_t            g;

	chunk_demands(&groups, &shape, demands);
	for (g = 0; g < groups.count; g++) {
		if (demands[g].tokens != expected[g].tokens || demands[g].reserve != expected[g].reserve ||
		    demands[g].first_slot != expected[g].first_slot) {
			fail_msg("group %u: %u, %u, %u", g, demands[g].tokens, demands[g].reserve,
				 demands[g].first_slot);
		}
	}
}

static void a_chunk_takes_dense_room_and_one_checkpoint(void **state)
{
	const struct chunk_shape middle = { .local = true, .begin = 4, .tokens = 8, .reserve = 3, .hit = 4,
					    .prompt = 16 };
	const struct chunk_shape last = { .local = true, .begin = 12, .tokens = 4, .reserve = 3, .hit = 12,
					  .prompt = 16, .completes = true };
	const struct demand      middles[] = { demand_dense(8, 0), demand_dense(8, 0),
					       demand_sparse(12, 0, 2) };
	const struct demand      lasts[] = { demand_dense(4, 3), demand_dense(4, 3),
					     demand_sparse(16, 0, 3) };

	(void)state;
	expect_demands(middle, middles);
	expect_demands(last, lasts);
}

static void a_body_reserves_its_tail_and_a_state_nothing_else(void **state)
{
	const struct chunk_shape body = { .local = true, .begin = 0, .tokens = 8, .reserve = 5, .tail = 2,
					  .prompt = 10 };
	const struct demand      expected[] = { demand_dense(8, 5), demand_dense(8, 5),
						demand_sparse(8, 2, 1) };

	(void)state;
	expect_demands(body, expected);
}

static void a_step_takes_dense_room_in_all_groups(void **state)
{
	const struct chunk_shape step = { .local = true, .decode = true, .begin = 16, .tokens = 2,
					  .reserve = 3, .prompt = 16 };
	const struct demand      expected[] = { demand_dense(2, 3), demand_dense(2, 3),
						demand_dense(2, 3) };

	(void)state;
	expect_demands(step, expected);
}

static void a_peers_prompt_lands_where_it_is_needed(void **state)
{
	const struct chunk_shape far = { .begin = 8, .tokens = 8, .reserve = 1, .hit = 8, .prompt = 16 };
	const struct chunk_shape near = { .begin = 16, .tokens = 1, .reserve = 1, .hit = 16, .prompt = 17 };
	const struct chunk_shape odd = { .tokens = 15, .reserve = 1, .prompt = 15 };
	const struct chunk_shape brief = { .tokens = 3, .reserve = 1, .prompt = 3 };
	/* A query at 16 attends to 13, 14 and 15. */
	const struct demand      fars[] = { demand_dense(8, 1), demand_sparse(16, 1, 6),
					    demand_sparse(16, 0, 3) };
	const struct demand      nears[] = { demand_dense(1, 1), demand_sparse(17, 1, 8),
					     demand_sparse(17, 0, 4) };
	const struct demand      odds[] = { demand_dense(15, 1), demand_sparse(15, 1, 6),
					    demand_sparse(15, 0, 3) };
	const struct demand      briefs[] = { demand_dense(3, 1), demand_sparse(3, 1, 0),
					      demand_sparse(3, 0, 0) };

	(void)state;
	expect_demands(far, fars);
	expect_demands(near, nears);
	expect_demands(odd, odds);
	expect_demands(brief, briefs);
}

/* --- limits ----------------------------------------------------------------------------------- */

static uint32_t limit_of(const struct group_spec *specs, uint32_t count, uint32_t page_tokens,
			 struct chunk_limits limits)
{
	const struct groups groups = groups_of(specs, count, page_tokens);

	limits.groups = &groups;
	return chunk_request_limit(&limits);
}

static const struct chunk_limits usual = { .prefix_cache = true, .chunk_tokens = 64, .decode_tokens = 1,
					   .parents = 8 };

static void full_groups_limit_by_their_own_blocks(void **state)
{
	static const struct group_spec even[] = { FULL(2, 1), { .name = "b", .kind = GROUP_FULL,
								 .block_tokens = 2, .packing = 1 } };
	static const struct group_spec odd[] = { FULL(2, 1), { .name = "b", .kind = GROUP_FULL,
								.block_tokens = 1, .packing = 1 } };
	struct chunk_limits            overlap = usual;

	(void)state;
	overlap.overlap_depth = 1;
	assert_int_equal(limit_of(even, 2, 2, usual), 8);
	assert_int_equal(limit_of(odd, 2, 2, usual), 5);
	assert_int_equal(limit_of(even, 2, 2, overlap), 7);
	/* A rank that decodes nothing plans nothing ahead. */
	overlap.prefill_role = true;
	assert_int_equal(limit_of(even, 2, 2, overlap), 8);
}

static void a_state_limits_by_its_checkpoints_and_tail(void **state)
{
	static const struct group_spec wide[] = { STATE("state", 4, 1) };
	static const struct group_spec fine[] = { STATE("state", 1, 1) };
	struct chunk_limits            limits = usual;

	(void)state;
	limits.chunk_tokens = 8;
	limits.parents = 2;
	assert_int_equal(limit_of(wide, 1, 4, limits), 9);
	limits.parents = 3;
	assert_int_equal(limit_of(fine, 1, 4, limits), 7);
	/* A chunk of one page has no room for a tail. */
	limits.chunk_tokens = 4;
	assert_int_equal(limit_of(fine, 1, 4, limits), TOKENS_MAX - 1);
	limits.chunk_tokens = 8;
	/* Without checkpoints for others there is no tail of its own. */
	limits.prefix_cache = false;
	assert_int_equal(limit_of(fine, 1, 4, limits), TOKENS_MAX - 1);
	limits.prefix_cache = true;
	limits.decode_role = true;
	assert_int_equal(limit_of(fine, 1, 4, limits), TOKENS_MAX - 1);
	limits.parents = 1;
	assert_int_equal(limit_of(fine, 1, 4, limits), 0);
}

static void a_step_of_many_tokens_needs_room_for_its_states(void **state)
{
	static const struct group_spec fine[] = { STATE("state", 1, 1) };
	struct chunk_limits            limits = usual;

	(void)state;
	limits.prefix_cache = false;
	limits.decode_tokens = 4;
	limits.overlap_depth = 1;
	/* The step before, of which one token was right, the one that runs, and the one that is planned. */
	limits.parents = 11;
	assert_int_equal(limit_of(fine, 1, 4, limits), 0);
	limits.parents = 12;
	assert_int_equal(limit_of(fine, 1, 4, limits), TOKENS_MAX - 8);
}

/* No more than a table holds, and no more than a window of 4, a chunk of 4 and a step reach over. */
static void a_window_limits_by_its_chunks(void **state)
{
	static const struct group_spec specs[] = { WINDOW(2, 1, 4) };
	const struct groups            groups = groups_of(specs, 1, 2);
	static const struct {
		uint32_t tokens, parents;
	} cases[] = {
		{ 0, 1 }, { 1, 1 }, { 2, 1 }, { 3, 2 }, { 8, 4 }, { 9, 5 }, { 10, 5 }, { 1000, 5 },
	};
	struct chunk_limits limits = usual;
	uint32_t            i;

	(void)state;
	limits.groups = &groups;
	limits.chunk_tokens = 4;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		if (chunk_parents(&limits, cases[i].tokens) != cases[i].parents) {
			fail_msg("%u tokens: %u parents", cases[i].tokens,
				 (unsigned int)chunk_parents(&limits, cases[i].tokens));
		}
	}
}

static void a_peers_window_limits_by_where_it_lands(void **state)
{
	static const struct group_spec specs[] = { WINDOW(2, 2, 4) };
	struct chunk_limits            limits = usual;

	(void)state;
	limits.decode_role = true;
	limits.parents = 2;
	assert_int_equal(limit_of(specs, 1, 4, limits), 8);
	/* What lands is 5 blocks at most, but what comes back from a retraction is computed in chunks. */
	limits.parents = 3;
	assert_int_equal(limit_of(specs, 1, 4, limits), 12);
	limits.chunk_tokens = 7;
	assert_int_equal(limit_of(specs, 1, 4, limits), 12);
	/* Its 6 blocks may begin within a parent and end within another. */
	limits.parents = 4;
	assert_int_equal(limit_of(specs, 1, 4, limits), TOKENS_MAX - 1);
}

/* A model of one full group and three states in pages of 128. */
static void four_groups_of_a_large_model(void **state)
{
	static const struct group_spec specs[] = { FULL(128, 12), STATE("a", 128, 1), STATE("b", 128, 1),
						   STATE("c", 128, 1) };
	struct chunk_limits            limits = usual;

	(void)state;
	limits.chunk_tokens = 8192;
	limits.parents = 284;
	assert_int_equal(limit_of(specs, 4, 128, limits), 422400);
	limits.parents = 95;
	assert_true(limit_of(specs, 4, 128, limits) >= 131072);
	limits.parents = 94;
	assert_true(limit_of(specs, 4, 128, limits) < 131072);
}

/* A binary search finds the limit only where more tokens never need less. */
static void a_longer_request_never_needs_less(void **state)
{
	static const struct group_spec specs[] = { FULL(8, 3), WINDOW(4, 2, 37), STATE("state", 2, 2) };
	const struct groups            groups = groups_of(specs, 3, 8);
	uint32_t                       variant;

	(void)state;
	for (variant = 0; variant < 32; variant++) {
		const struct chunk_limits limits = {
			.groups = &groups, .decode_role = variant % 3 == 1, .prefill_role = variant % 3 == 2,
			.prefix_cache = variant & 4, .chunk_tokens = variant & 8 ? 8 : 21, .decode_tokens = 3,
			.overlap_depth = variant >> 4,
		};
		uint64_t before = 0;
		uint32_t tokens;

		for (tokens = 0; tokens < 200; tokens++) {
			const uint64_t parents = chunk_parents(&limits, tokens);

			assert_true(parents >= before);
			before = parents;
		}
	}
}

/* --- what the limit promises ------------------------------------------------------------------ */

/* Blocks that a table holds: all its slots but holes and what expired. */
static uint32_t live(const struct table *table)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = table->reclaimed; i < table->count; i++)
		count += table->slots[i] != BLOCK_NULL;
	return count;
}

struct life {
	const struct groups *groups;
	struct table         tables[GROUPS_MAX];
	uint32_t             slots[GROUPS_MAX][128];
	uint32_t             peak[GROUPS_MAX]; /* blocks held at once */
};

static void reclaim(struct table *table, const struct group *group, uint32_t computed)
{
	const uint32_t end = table_expired(table, group, computed);

	for (; table->reclaimed < end; table->reclaimed++)
		table->slots[table->reclaimed] = BLOCK_NULL;
}

static void take(struct life *life, const struct chunk_shape *shape, uint32_t computed)
{
	struct demand demands[GROUPS_MAX];
	uint32_t      g, i;

	chunk_demands(life->groups, shape, demands);
	for (g = 0; g < life->groups->count; g++) {
		struct table *const table = &life->tables[g];
		struct growth       growth;

		reclaim(table, &life->groups->group[g], computed);
		assert_int_equal(table_plan(table, &life->groups->group[g], &demands[g], &growth, NULL), 0);
		table_push_holes(table, growth.begin - table->count);
		for (i = 0; i < growth.blocks; i++)
			table_push(table, 1);
		table->available = growth.available;
		table_audit(table, &life->groups->group[g]);
		if (live(table) > life->peak[g])
			life->peak[g] = live(table);
	}
}

static void consume_tail(struct life *life, uint32_t tail)
{
	uint32_t g;

	for (g = 0; g < life->groups->count; g++)
		assert_int_equal(table_consume(&life->tables[g], &life->groups->group[g], tail, NULL), 0);
}

/* The first chunk may have to share its forward with others. */
static void prefill(struct life *life, const struct chunk_limits *limits, uint32_t first_budget,
		    uint32_t prompt)
{
	uint32_t budget = first_budget;
	uint32_t done = 0;

	for (; done < prompt; budget = limits->chunk_tokens) {
		struct chunk_ask   ask = { done, prompt - done, budget, life->groups->page_tokens, 0 };
		const uint32_t     size = chunk_align(&ask);
		const uint32_t     tail = limits->prefix_cache ? chunk_final_tail(&ask, size) : 0;
		struct chunk_shape shape = { .local = true, .begin = done, .tokens = size - tail,
					     .reserve = tail + limits->decode_tokens, .tail = tail,
					     .hit = done, .prompt = prompt,
					     .completes = done + size == prompt };

		assert_true(size > 0);
		take(life, &shape, done);
		if (tail > 0)
			consume_tail(life, tail);
		done += size;
	}
}

static void decode(struct life *life, const struct chunk_limits *limits, uint32_t prompt, uint32_t tokens)
{
	const uint32_t step = limits->decode_tokens;
	uint32_t       end;

	for (end = prompt; end + step <= tokens; end += step) {
		const struct chunk_shape shape = { .local = true, .decode = true, .begin = end,
						   .tokens = step, .prompt = prompt };

		take(life, &shape, end);
	}
}

/* Every prompt length of a request of `tokens` lives within what the limit counted for it. */
static void live_within(const struct chunk_limits *limits, uint32_t first_budget, uint32_t tokens)
{
	uint32_t prompt;

	for (prompt = 1; prompt + limits->decode_tokens <= tokens; prompt++) {
		struct life life = { .groups = limits->groups };
		uint64_t    parents = 0;
		uint32_t    g;

		for (g = 0; g < limits->groups->count; g++)
			table_init(&life.tables[g], life.slots[g], ARRAY_COUNT(life.slots[g]));
		prefill(&life, limits, first_budget, prompt);
		decode(&life, limits, prompt, tokens);
		for (g = 0; g < limits->groups->count; g++) {
			const uint32_t packing = limits->groups->group[g].spec.packing;

			parents += (life.peak[g] + packing - 1) / packing;
		}
		if (parents > chunk_parents(limits, tokens)) {
			fail_msg("%u of %u tokens: %u parents, more than %u", prompt, tokens,
				 (unsigned int)parents, (unsigned int)chunk_parents(limits, tokens));
		}
	}
}

static void what_the_limit_counts_is_enough(void **state)
{
	static const struct group_spec specs[] = { FULL(4, 1), WINDOW(2, 1, 7), STATE("state", 2, 1) };
	const struct groups            groups = groups_of(specs, 3, 4);
	uint32_t                       variant, tokens;

	(void)state;
	for (variant = 0; variant < 8; variant++) {
		const struct chunk_limits limits = { .groups = &groups, .prefix_cache = variant & 1,
						     .chunk_tokens = variant & 2 ? 8 : 11,
						     .decode_tokens = variant & 4 ? 3 : 1 };

		for (tokens = 2; tokens < 60; tokens++) {
			live_within(&limits, limits.chunk_tokens, tokens);
			live_within(&limits, 5, tokens);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chunk_is_cut_at_the_promotion_boundary),
		cmocka_unit_test(a_chunk_ends_at_a_page_or_with_the_prompt),
		cmocka_unit_test(a_tail_behind_the_last_boundary_is_split_off),
		cmocka_unit_test(a_chunk_takes_dense_room_and_one_checkpoint),
		cmocka_unit_test(a_body_reserves_its_tail_and_a_state_nothing_else),
		cmocka_unit_test(a_step_takes_dense_room_in_all_groups),
		cmocka_unit_test(a_peers_prompt_lands_where_it_is_needed),
		cmocka_unit_test(full_groups_limit_by_their_own_blocks),
		cmocka_unit_test(a_state_limits_by_its_checkpoints_and_tail),
		cmocka_unit_test(a_step_of_many_tokens_needs_room_for_its_states),
		cmocka_unit_test(a_window_limits_by_its_chunks),
		cmocka_unit_test(a_peers_window_limits_by_where_it_lands),
		cmocka_unit_test(four_groups_of_a_large_model),
		cmocka_unit_test(a_longer_request_never_needs_less),
		cmocka_unit_test(what_the_limit_counts_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
