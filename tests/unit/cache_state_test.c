/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrent states and windows in a cache: one checkpoint at a boundary, holes before it, what of them
 * is kept, what is published, and tables that are sparse from the start.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE
#define HOST   STRATUM_HOST

/* A window of 5 with blocks of 4 behaves as a state does: it needs the block before the boundary. */
#define AS_STATE(k) LAB_WINDOW(4, 5, k)

/* --- a hit ------------------------------------------------------------------------------------ */

struct hit {
	const char      *name;
	struct lab_model model;
	uint32_t         pages;
	const char      *device[3]; /* by group */
	const char      *host[3];
	uint64_t         device_tokens, host_tokens;
	uint32_t         hits[3]; /* of both strata */
	const char      *table[3];
};

static const struct hit hits[] = {
	{ "a snapshot behind holes", { 4, 16, 0, { AS_STATE(1) } }, 4,
	  { "...x" }, { "" }, 16, 16, { 1 }, { "...x" } },
	{ "a state of three pages", { 4, 16, 0, { LAB_STATE(4, 1) } }, 3,
	  { "..x" }, { "" }, 12, 12, { 1 }, { "..x" } },
	{ "history, a window and a snapshot under one pool",
	  { 4, 16, 0, { LAB_FULL(4, 1), LAB_WINDOW(4, 9, 1), AS_STATE(1) } }, 4,
	  { "xxxx", "..xx", "...x" }, { "", "", "" }, 16, 16, { 4, 2, 1 },
	  { "xxxx", "..xx", "...x" } },
	{ "Host has the snapshot only", { 4, 16, 16, { LAB_FULL(4, 1), AS_STATE(1) } }, 4,
	  { "x", "x" }, { ".xxx", "...x" }, 4, 16, { 4, 1 }, { "xxxx", "...x" } },
};

static void run_hit(const struct hit *hit)
{
	struct lab_request request;
	struct lab_rows    rows;
	struct lab         lab;
	uint32_t           g;

	lab_open(&lab, &hit->model);
	for (g = 0; g < lab.group_count; g++) {
		lab_fill(&lab, DEVICE, g, hit->device[g]);
		lab_fill(&lab, HOST, g, hit->host[g]);
	}
	rows = lab_claim(&lab, &request, hit->pages, 0);
	assert_int_equal(lab.probe.device_tokens, hit->device_tokens);
	assert_int_equal(lab.probe.host_tokens, hit->host_tokens);
	for (g = 0; g < lab.group_count; g++) {
		const struct table *const table = &request.tables[g];

		lab_expect_table(&lab, &request, g, hit->table[g]);
		assert_int_equal(table->reclaimed, table->count - hit->hits[g]);
	}
	lab_moved(&lab, &rows);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void a_hit_is_one_snapshot_behind_holes(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(hits); i++) {
		print_message("# %s\n", hits[i].name);
		run_hit(&hits[i]);
	}
}

/* --- retention -------------------------------------------------------------------------------- */

static void only_the_last_state_block_is_kept(void **state)
{
	const struct group_spec kinds[] = { LAB_WINDOW(4, 2, 1), LAB_STATE(4, 1) };
	const struct lab_step   step = lab_tokens(16);
	struct lab_model        model = { 4, 4, 0, { { 0 } } };
	struct lab_request      request;
	struct lab              lab;
	size_t                  i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(kinds); i++) {
		model.groups[0] = kinds[i];
		lab_open(&lab, &model);
		lab_begin(&lab, &request);
		lab_admit(&lab, &request, &step);
		assert_int_equal(lab_empty(&lab, DEVICE), 0);
		lab_reclaim(&lab, &request, 16);
		lab_expect_table(&lab, &request, 0, "...x");
		assert_int_equal(request.tables[0].reclaimed, 3);
		assert_int_equal(lab_empty(&lab, DEVICE), 3);
		lab_free(&lab, &request);
		lab_close(&lab);
	}
}

/* --- publication ------------------------------------------------------------------------------ */

struct publication {
	const char       *name;
	struct group_spec second; /* beside FULL; P = q = 4 */
	uint32_t          tokens; /* of the table */
	uint32_t          pages, new_begin;
	enum cell_kind    kind;
	uint64_t          computed;
	const char       *full, *held;
};

/* A window of 9 needs two blocks of 4 before a boundary. */
static const struct publication publications[] = {
	{ "a state publishes the boundary of a chunk only", LAB_STATE(4, 1), 12, 3, 0, CELL_CHUNK, 12,
	  "xxx", "..x" },
	{ "and an aligned endpoint", LAB_STATE(4, 1), 12, 3, 0, CELL_ENDPOINT, 12, "xxx", "..x" },
	{ "but no boundary that it went past", LAB_STATE(4, 1), 10, 2, 0, CELL_CHUNK, 10, "xx", "" },
	{ "and nothing when it is not known how far it is", LAB_STATE(4, 1), 12, 3, 0, CELL_CHUNK,
	  COMPUTED_NONE, "xxx", "" },
	{ "a window publishes older pages of its lookback too", LAB_WINDOW(4, 9, 1), 16, 4, 3,
	  CELL_CHUNK, 16, "...x", "..xx" },
	{ "and whole pages before an unaligned end", LAB_WINDOW(4, 9, 1), 14, 3, 0, CELL_ENDPOINT, 14,
	  "xxx", ".xx" },
	{ "but nothing when it is not known how far it is", LAB_WINDOW(4, 9, 1), 12, 3, 0, CELL_CHUNK,
	  COMPUTED_NONE, "xxx", "" },
	{ "a window of one publishes nothing", LAB_WINDOW(4, 1, 1), 12, 3, 0, CELL_CHUNK, 12, "xxx", "" },
	{ "without new pages nothing is", LAB_STATE(4, 1), 12, 3, 3, CELL_NONE, 12, "", "" },
};

static void expect_kinds(const struct lab *lab, uint32_t group, const char *picture,
			 enum cell_kind kind)
{
	uint32_t i;

	for (i = 0; picture[i]; i++) {
		if (picture[i] == 'x') {
			assert_int_equal(lab_view(lab, DEVICE, group, i).kind, kind);
			assert_int_equal(lab_view(lab, DEVICE, group, i).position, i);
		}
	}
}

static void run_publication(const struct publication *row)
{
	struct lab_model   model = { 4, 16, 0, { LAB_FULL(4, 1) } };
	struct lab_step    step = lab_tokens(row->tokens);
	struct lab_request request;
	struct lab         lab;

	model.groups[1] = row->second;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	lab_complete(&lab, &step, row->pages, row->new_begin, row->kind, row->computed);
	lab_advance(&lab, &request, &step);
	lab_expect_held(&lab, DEVICE, 0, row->full);
	lab_expect_held(&lab, DEVICE, 1, row->held);
	assert_int_equal(lab.inserted,
			 lab_published(&lab, DEVICE, 0) + lab_published(&lab, DEVICE, 1));
	expect_kinds(&lab, 0, row->full, row->kind);
	expect_kinds(&lab, 1, row->held, row->kind);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void states_and_windows_publish_what_a_boundary_needs(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(publications); i++) {
		print_message("# %s\n", publications[i].name);
		run_publication(&publications[i]);
	}
}

/* The lookback of a new boundary names older pages again: their kind rises, and never falls. */
static void a_kind_only_rises(void **state)
{
	static const struct lab_model model = { 4, 16, 0, { LAB_WINDOW(4, 9, 1) } };
	static const enum cell_kind   kinds[] = { CELL_CHUNK, CELL_ENDPOINT, CELL_CHUNK };
	static const enum cell_kind   seen[] = { CELL_CHUNK, CELL_ENDPOINT, CELL_ENDPOINT, CELL_CHUNK };
	struct lab_step               step = lab_tokens(16);
	struct lab_request            request;
	struct lab                    lab;
	uint32_t                      i;

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	for (i = 0; i < 3; i++) { /* boundaries of 2, 3 and 4 pages */
		lab_complete(&lab, &step, i + 2, i + 1, kinds[i], 4 * (i + 2));
		lab_advance(&lab, &request, &step);
	}
	for (i = 0; i < 4; i++)
		assert_int_equal(lab_view(&lab, DEVICE, 0, i).kind, seen[i]);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* P = 8: of a page of four blocks of 2 tokens, a window of 5 needs the last two. */
static void a_page_publishes_only_the_blocks_that_are_needed(void **state)
{
	static const struct lab_model model = { 8, 16, 0, { LAB_FULL(8, 1), LAB_WINDOW(2, 5, 1) } };
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_run(&lab, 8, CELL_CHUNK);
	lab_expect_held(&lab, DEVICE, 0, "x");
	lab_expect_held(&lab, DEVICE, 1, "..xx");
	lab_claim(&lab, &request, 1, 0);
	assert_int_equal(lab.probe.device_tokens, 8);
	assert_int_equal(lab_pins(&lab, DEVICE), 3);
	lab_expect_table(&lab, &request, 1, "..xx");
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* --- a decoding rank -------------------------------------------------------------------------- */

static const struct lab_model decode_model = { 2, 5, 0, { LAB_FULL(2, 2), LAB_STATE(2, 1) } };

static struct lab_step decode_step(void)
{
	struct lab_step step = lab_tokens(0);

	step.demands[0] = demand_dense(8, 1);
	step.demands[1] = demand_sparse(8, 1, 3);
	return step;
}

static void only_the_requested_suffix_of_a_state_gets_blocks(void **state)
{
	const struct lab_step step = decode_step();
	struct cache_admitted admitted;
	struct lab_request    request;
	struct lab            lab;

	(void)state;
	lab_open(&lab, &decode_model);
	lab_begin(&lab, &request);
	admitted = lab_admit(&lab, &request, &step);
	lab_expect_table(&lab, &request, 0, "xxxxx");
	lab_expect_table(&lab, &request, 1, "...xx");
	assert_int_equal(request.tables[0].available, 2);
	assert_int_equal(request.tables[1].available, 2);
	assert_int_equal(request.tables[1].reclaimed, 3);
	assert_int_equal(admitted.fresh_count[0], 5);
	assert_int_equal(admitted.fresh_count[1], 2);
	assert_int_equal(lab_empty(&lab, DEVICE), 0);
	lab_free(&lab, &request);
	assert_int_equal(lab_empty(&lab, DEVICE), 5);
	lab_close(&lab);
}

static void a_sparse_admission_that_does_not_fit_changes_nothing(void **state)
{
	const struct lab_step step = decode_step();
	struct lab_model      model = decode_model;
	struct lab_request    request;
	struct lab            lab;

	(void)state;
	model.device = 4;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	lab_refuse(&lab, &request, &step, KVS_E_FULL);
	lab_expect_table(&lab, &request, 0, "");
	lab_expect_table(&lab, &request, 1, "");
	assert_int_equal(lab_empty(&lab, DEVICE), 4);
	lab_close(&lab);
}

/* Its states come from the rank that computed the prompt. */
static void history_alone_determines_what_a_decoding_rank_restores(void **state)
{
	struct lab_step    step = lab_probed(0);
	struct lab_request request;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &decode_model);
	lab_fill(&lab, DEVICE, 0, "xxx");
	lab_probe(&lab, 3);
	assert_int_equal(lab.probe.device_tokens, 0);
	lab_probe_decode(&lab, 3);
	assert_int_equal(lab.probe.device_tokens, 6);
	assert_int_equal(lab.probe.host_tokens, 6);
	lab_begin(&lab, &request);
	step.demands[1] = demand_sparse(8, 0, 3);
	lab_admit(&lab, &request, &step);
	lab_expect_table(&lab, &request, 0, "xxx");
	lab_expect_table(&lab, &request, 1, "...x");
	assert_int_equal(request.tables[1].reclaimed, 3);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* --- long chunks ------------------------------------------------------------------------------ */

/* Chunks end at 8, 16 and 24; the state of each end is all that a chunk needs. */
static void old_states_are_reclaimed_across_the_holes_between_them(void **state)
{
	static const struct lab_model model = { 2, 2, 0, { LAB_STATE(2, 1) } };
	static const char *const      tables[] = { "...x", "...x...x", ".......x...x" };
	static const uint32_t         frontiers[] = { 3, 3, 7 };
	struct lab_step               step = lab_tokens(0);
	struct lab_request            request;
	struct lab                    lab;
	uint32_t                      i;

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	for (i = 0; i < 3; i++) {
		step.demands[0] = demand_sparse(8 * (i + 1), 0, 4 * i + 3);
		step.completed.computed = 8 * (uint64_t)i;
		lab_admit(&lab, &request, &step);
		lab_expect_table(&lab, &request, 0, tables[i]);
		assert_int_equal(request.tables[0].reclaimed, frontiers[i]);
	}
	lab_free(&lab, &request);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hit_is_one_snapshot_behind_holes),
		cmocka_unit_test(only_the_last_state_block_is_kept),
		cmocka_unit_test(states_and_windows_publish_what_a_boundary_needs),
		cmocka_unit_test(a_kind_only_rises),
		cmocka_unit_test(a_page_publishes_only_the_blocks_that_are_needed),
		cmocka_unit_test(only_the_requested_suffix_of_a_state_gets_blocks),
		cmocka_unit_test(a_sparse_admission_that_does_not_fit_changes_nothing),
		cmocka_unit_test(history_alone_determines_what_a_decoding_rank_restores),
		cmocka_unit_test(old_states_are_reclaimed_across_the_holes_between_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
