/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a tail is legal, what of it comes from where, and which of several is taken.
 *
 * P = 8 and q = 4 unless a row says else.  Pictures are of page 0 and of the tail in place of page 1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE
#define HOST   STRATUM_HOST

#define MODEL(...) { 8, 16, 16, { __VA_ARGS__ } }
#define F    LAB_FULL(4, 1)
#define S(w) LAB_WINDOW(4, w, 1)
#define M    LAB_STATE(4, 1)

/* --- legality --------------------------------------------------------------------------------- */

struct tail_row {
	const char      *name;
	struct lab_model model;
	uint32_t         tail;      /* tokens */
	const char      *device[2]; /* by group */
	const char      *host[2];
	uint64_t         device_tokens, host_tokens;
	uint32_t         copies, loads, fresh;
	const char      *table[2];
	uint32_t         available;
};

/* A query at 14 attends to 9 .. 13 in a window of 6, and to 7 .. 13 in one of 8. */
static const struct tail_row rows[] = {
	{ "history", MODEL(F), 14, { "xxxx" }, { "" }, 14, 14, 2, 0, 0, { "xxxx" }, 2 },
	{ "history without the tail's end", MODEL(F), 14, { "xxx" }, { "" }, 8, 8, 0, 0, 0, { "xx" }, 0 },
	{ "history with a gap in the tail", MODEL(F), 14, { "xx.x" }, { "" }, 8, 8, 0, 0, 0, { "xx" }, 0 },
	{ "history with a gap before it", MODEL(F), 14, { "x.xx" }, { "" }, 0, 0, 0, 0, 0, { "" }, 0 },
	{ "a tail of whole blocks", MODEL(F), 12, { "xxx" }, { "" }, 12, 12, 1, 0, 0, { "xxx" }, 0 },
	{ "a tail in the first page", MODEL(F), 3, { "x" }, { "" }, 3, 3, 1, 0, 0, { "x" }, 1 },
	{ "a block as large as a page", MODEL(LAB_FULL(8, 1)), 14, { "xx" }, { "" }, 14, 14, 1, 0, 0,
	  { "xx" }, 2 },
	{ "the window is all in the tail", MODEL(F, S(6)), 14, { "xxxx", "..xx" }, { "", "" }, 14, 14,
	  4, 0, 0, { "xxxx", "..xx" }, 2 },
	{ "the window lacks a block of the tail", MODEL(F, S(6)), 14, { "xxxx", "xx.x" }, { "", "" }, 8,
	  8, 0, 0, 0, { "xx", "xx" }, 0 },
	{ "the window reaches before the tail", MODEL(F, S(8)), 14, { "xxxx", ".xxx" }, { "", "" }, 14,
	  14, 4, 0, 0, { "xxxx", ".xxx" }, 2 },
	{ "the window lacks a block before the tail", MODEL(F, S(8)), 14, { "xxxx", "x.xx" },
	  { "", "" }, 0, 0, 0, 0, 0, { "", "" }, 0 },
	{ "a window of one needs nothing, but a block to write on", MODEL(F, S(1)), 14,
	  { "xxxx", "" }, { "", "" }, 14, 14, 2, 0, 1, { "xxxx", "...x" }, 2 },
	{ "a state at the tail's end", MODEL(F, M), 14, { "xxxx", "...x" }, { "", "" }, 14, 14, 3, 0, 0,
	  { "xxxx", "...x" }, 2 },
	{ "a state at the page's end only", MODEL(F, M), 14, { "xxxx", ".x" }, { "", "" }, 8, 8, 0, 0, 0,
	  { "xx", ".x" }, 0 },
	{ "Host has the tail", MODEL(F), 14, { "xx" }, { "..xx" }, 8, 14, 0, 2, 0, { "xxxx" }, 2 },
	{ "Host has its end", MODEL(F), 14, { "xxx" }, { "...x" }, 8, 14, 1, 1, 0, { "xxxx" }, 2 },
	{ "Host has all of it too", MODEL(F), 14, { "xxxx" }, { "xxxx" }, 14, 14, 2, 0, 0, { "xxxx" }, 2 },
	{ "Host has the state of it", MODEL(F, M), 14, { "xxxx", ".x" }, { "", "...x" }, 8, 14, 2, 1, 0,
	  { "xxxx", "...x" }, 2 },
};

static void expect_moves(const struct lab *lab, const struct tail_row *row,
			 const struct lab_rows *moves)
{
	uint32_t i;

	for (i = 0; i < moves->count; i++) {
		const struct cache_move *const move = &moves->row[i];
		const struct group *const      group = &lab->groups->group[move->group];
		const uint32_t                 q = group->spec.block_tokens;
		const uint32_t                 rest = row->tail - move->position * q;

		assert_int_equal(move->tokens, rest < q ? rest : q);
		assert_int_equal(move->source, lab_block(lab, move->from_host ? HOST : DEVICE,
							 move->group, move->position));
	}
}

static void run_tail(const struct tail_row *row)
{
	const struct lab_step step = lab_probed(0);
	struct cache_admitted admitted;
	struct lab_request    request;
	struct tail           tail;
	struct lab_rows       moves;
	struct lab            lab;
	uint32_t              fresh = 0;
	uint32_t              g;

	lab_open(&lab, &row->model);
	tail = lab_tail(&lab, row->tail);
	for (g = 0; g < lab.group_count; g++) {
		lab_fill(&lab, DEVICE, g, row->device[g]);
		lab_fill(&lab, HOST, g, row->host[g]);
	}
	lab_probe_tails(&lab, row->tail / 8, &tail, 1);
	assert_int_equal(lab.probe.device_tokens, row->device_tokens);
	assert_int_equal(lab.probe.host_tokens, row->host_tokens);
	lab_begin(&lab, &request);
	admitted = lab_admit(&lab, &request, &step);
	moves = lab_rows_of(&admitted);
	assert_int_equal(admitted.copy_count, row->copies);
	assert_int_equal(admitted.load_count, row->loads);
	for (g = 0; g < lab.group_count; g++) {
		lab_expect_table(&lab, &request, g, row->table[g]);
		assert_int_equal(request.tables[g].available, row->available);
		fresh += admitted.fresh_count[g];
	}
	assert_int_equal(fresh, row->fresh);
	expect_moves(&lab, row, &moves);
	lab_moved(&lab, &moves);
	lab_free(&lab, &request);
	assert_int_equal(lab_pins(&lab, DEVICE) + lab_pins(&lab, HOST), 0);
	lab_close(&lab);
}

static void a_tail_is_restored_where_every_group_can(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		print_message("# %s\n", rows[i].name);
		run_tail(&rows[i]);
	}
}

/* --- candidates ------------------------------------------------------------------------------- */

static void the_longest_tail_that_is_there_is_taken(void **state)
{
	static const struct lab_model model = MODEL(F);
	struct tail                   tails[3];
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	tails[2] = lab_tail(&lab, 9);
	lab_fill(&lab, DEVICE, 0, "xxx");
	tails[1] = lab_tail(&lab, 11);
	lab_fill(&lab, DEVICE, 0, "..x");
	tails[0] = lab_tail(&lab, 13);
	lab_probe_tails(&lab, 1, tails, 3);
	assert_int_equal(lab.probe.host_tokens, 11);
	lab_probe_tails(&lab, 1, &tails[2], 1);
	assert_int_equal(lab.probe.host_tokens, 9);
	lab_probe_tails(&lab, 1, tails, 1);
	assert_int_equal(lab.probe.host_tokens, 8);
	lab_close(&lab);
}

/* The page that the tail stands for is named in the prompt too, and held in part. */
static void a_tail_may_lie_inside_the_prompt(void **state)
{
	static const struct lab_model model = MODEL(F);
	const struct lab_step         step = lab_probed(10);
	struct cache_admitted         admitted;
	struct lab_request            request;
	struct lab_rows               moves;
	struct tail                   tail;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	tail = lab_tail(&lab, 14);
	lab_fill(&lab, DEVICE, 0, "xxxx");
	lab_prompt(&lab, 0, 0);
	lab_fill(&lab, DEVICE, 0, "..x.xx");
	lab_probe_tails(&lab, 3, &tail, 1);
	assert_int_equal(lab.probe.host_tokens, 14);
	lab_begin(&lab, &request);
	admitted = lab_admit(&lab, &request, &step);
	moves = lab_rows_of(&admitted);
	lab_tail(&lab, 14);
	assert_int_equal(moves.row[0].source, lab_block(&lab, DEVICE, 0, 2));
	lab_expect_table(&lab, &request, 0, "xxxxxx");
	lab_moved(&lab, &moves);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* Device alone ends in a tail; with Host's page it goes on, and nothing of the tail is used. */
static void a_page_of_host_beyond_devices_tail_wins(void **state)
{
	static const struct lab_model model = MODEL(F);
	const struct lab_step         step = lab_probed(0);
	struct cache_admitted         admitted;
	struct lab_request            request;
	struct lab_rows               moves;
	struct tail                   tail;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	tail = lab_tail(&lab, 14);
	lab_fill(&lab, DEVICE, 0, "xxxx");
	lab_prompt(&lab, 0, 0);
	lab_fill(&lab, HOST, 0, "..xx");
	lab_probe_tails(&lab, 2, &tail, 1);
	assert_int_equal(lab.probe.device_tokens, 14);
	assert_int_equal(lab.probe.host_tokens, 16);
	assert_int_equal(lab.probe.tail_entry, SLOT_NONE);
	lab_begin(&lab, &request);
	admitted = lab_admit(&lab, &request, &step);
	moves = lab_rows_of(&admitted);
	assert_int_equal(admitted.load_count, 2);
	assert_int_equal(admitted.copy_count, 0);
	assert_int_equal(moves.row[1].tokens, 4);
	assert_int_equal(request.tables[0].available, 0);
	lab_moved(&lab, &moves);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* As many pages as a prompt may have, and a tail in the page behind them. */
static void a_tail_may_lie_behind_the_longest_prompt(void **state)
{
	static const struct lab_model model = { 8, 32, 0, { LAB_FULL(8, 1) } };
	struct tail                   tail;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	tail = lab_tail(&lab, 8 * LAB_PAGES + 3);
	lab_fill(&lab, DEVICE, 0, "xxxxxxxxxxxxxxxxxxxxxxxxx");
	lab_probe_tails(&lab, LAB_PAGES, &tail, 1);
	assert_int_equal(lab.probe.host_tokens, 8 * LAB_PAGES + 3);
	assert_int_equal(lab_hits(&lab, 0, DEVICE), LAB_PAGES + 1);
	lab_close(&lab);
}

static void a_page_boundary_beyond_a_tail_wins(void **state)
{
	static const struct lab_model model = MODEL(F);
	struct tail                   tail;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	tail = lab_tail(&lab, 14);
	lab_fill(&lab, DEVICE, 0, "xxxx");
	lab_prompt(&lab, 0, 0);
	lab_fill(&lab, DEVICE, 0, "..xx");
	lab_probe_tails(&lab, 2, &tail, 1);
	assert_int_equal(lab.probe.host_tokens, 16);
	assert_int_equal(lab.probe.tail_entry, SLOT_NONE);
	lab_close(&lab);
}

static void a_decoding_rank_restores_no_tail(void **state)
{
	static const struct lab_model model = MODEL(F);
	struct cache_prompt           prompt = { .page_count = 1, .tail_count = 1 };
	struct tail                   tail;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	tail = lab_tail(&lab, 14);
	lab_fill(&lab, DEVICE, 0, "xxxx");
	prompt.space = &lab.space;
	prompt.hashes = lab.hashes;
	prompt.tails = &tail;
	assert_int_equal(cache_probe(lab.cache, &prompt, PROBE_DECODE, &lab.probe, NULL), 0);
	assert_int_equal(lab.probe.device_tokens, 8);
	lab_close(&lab);
}

/* Somebody remembers a tail; nobody holds it. */
static void A3_10_a_hint_alone_is_no_hit(void **state)
{
	static const struct lab_model model = MODEL(F);
	struct tail                   tail;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	tail = lab_tail(&lab, 14);
	lab_fill(&lab, DEVICE, 0, "xx");
	lab_probe_tails(&lab, 1, &tail, 1);
	assert_int_equal(lab.probe.device_tokens, 8);
	assert_int_equal(lab.probe.host_tokens, 8);
	assert_int_equal(lab_hits(&lab, 0, DEVICE), 2);
	lab_close(&lab);
}

static void a_prompt_that_cannot_be_meant_is_refused(void **state)
{
	static const struct lab_model model = MODEL(F);
	static const struct {
		uint32_t    pages, tails[2];
		const char *words;
	} wrong[] = {
		{ LAB_PAGES + 1, { 14, 3 }, "page_count: 25, at most 24" },
		{ 1, { 8, 3 }, "tails[0].tokens: 8, must not be a multiple of 8" },
		{ 1, { 0, 0 }, "tails[0].tokens: 0" },
		{ 1, { 17, 3 }, "tails[0].tokens: 17, further than one page behind 1 pages" },
		{ 1, { 12, 14 }, "tails[1].tokens: 14 after 12" },
		{ 1, { 14, 14 }, "tails[1].tokens: 14 after 14" },
	};
	struct tail         tails[2] = { 0 };
	struct cache_prompt prompt = { .tails = tails, .tail_count = 2 };
	struct cache_probe  probe = { .version = 99 };
	struct kvs_error    err;
	struct lab          lab;
	size_t              i;

	(void)state;
	lab_open(&lab, &model);
	prompt.space = &lab.space;
	prompt.hashes = lab.hashes;
	for (i = 0; i < ARRAY_COUNT(wrong); i++) {
		prompt.page_count = wrong[i].pages;
		tails[0].tokens = wrong[i].tails[0];
		tails[1].tokens = wrong[i].tails[1];
		assert_int_equal(cache_probe(lab.cache, &prompt, PROBE_ALL, &probe, &err),
				 KVS_E_INVALID);
		assert_non_null(strstr(err.message, wrong[i].words));
		assert_int_equal(probe.version, 99);
	}
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tail_is_restored_where_every_group_can),
		cmocka_unit_test(the_longest_tail_that_is_there_is_taken),
		cmocka_unit_test(a_tail_may_lie_inside_the_prompt),
		cmocka_unit_test(a_page_of_host_beyond_devices_tail_wins),
		cmocka_unit_test(a_tail_may_lie_behind_the_longest_prompt),
		cmocka_unit_test(a_page_boundary_beyond_a_tail_wins),
		cmocka_unit_test(a_decoding_rank_restores_no_tail),
		cmocka_unit_test(A3_10_a_hint_alone_is_no_hit),
		cmocka_unit_test(a_prompt_that_cannot_be_meant_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
