/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of a request's tables: taken, claimed from a hit, named and given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE

/* P = q = 4, 8 parents. */
static const struct lab_model history = { 4, 8, 0, { LAB_FULL(4, 1) } };
/* A window of 10 needs three blocks before a boundary. */
static const struct lab_model window = { 4, 8, 0, { LAB_WINDOW(4, 10, 1) } };

/* --- taking blocks ---------------------------------------------------------------------------- */

struct taking {
	const char *name;
	uint32_t    tokens[2], reserve;
	uint32_t    blocks, available;
};

static const struct taking takings[] = {
	{ "nothing", { 0, 0 }, 0, 0, 0 },
	{ "a whole block", { 4, 0 }, 0, 1, 0 },
	{ "part of a block", { 3, 0 }, 0, 1, 1 },
	{ "the rest of a block takes none", { 3, 1 }, 0, 1, 0 },
	{ "the rest of a block and two more", { 2, 7 }, 0, 3, 3 },
	{ "room that is not used yet", { 0, 1 }, 8, 3, 11 },
};

static void run_taking(const struct lab_model *model, const struct taking *row)
{
	struct lab_step    step = lab_tokens(row->tokens[0]);
	struct lab_request request;
	struct lab         lab;

	lab_open(&lab, model);
	lab_begin(&lab, &request);
	assert_int_equal(request.tables[0].count, 0);
	assert_int_equal(request.tables[0].available, 0);
	lab_admit(&lab, &request, &step);
	step.demands[0] = demand_dense(row->tokens[1], row->reserve);
	lab_admit(&lab, &request, &step);
	assert_int_equal(request.tables[0].count, row->blocks);
	assert_int_equal(request.tables[0].available, row->available);
	assert_int_equal(lab_empty(&lab, DEVICE), 8 - row->blocks);
	lab_free(&lab, &request);
	assert_int_equal(lab_empty(&lab, DEVICE), 8);
	lab_close(&lab);
}

static void room_in_the_last_block_is_used_before_a_block_is_taken(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(takings); i++) {
		print_message("# %s\n", takings[i].name);
		run_taking(&history, &takings[i]);
		run_taking(&window, &takings[i]);
	}
}

static void reserved_room_is_used_without_a_block(void **state)
{
	struct lab_step     step = lab_tokens(0);
	struct lab_request  request;
	struct kvs_error    err;
	struct lab          lab;
	struct table *const table = &request.tables[0];

	(void)state;
	lab_open(&lab, &history);
	lab_begin(&lab, &request);
	step.demands[0] = demand_dense(1, 8);
	lab_admit(&lab, &request, &step);
	step.demands[0] = demand_dense(8, 0);
	assert_int_equal(cache_blocks_needed(lab.cache, table, 0, &step.demands[0]), 0);
	assert_int_equal(table_consume(table, &lab.groups->group[0], 8, &err), 0);
	assert_int_equal(table->available, 3);
	assert_int_equal(lab_empty(&lab, DEVICE), 5);
	assert_int_equal(table_consume(table, &lab.groups->group[0], 4, &err), KVS_E_INVALID);
	assert_int_equal(table->available, 3);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* --- claiming a hit --------------------------------------------------------------------------- */

static void a_claim_shares_the_blocks_of_the_hit(void **state)
{
	struct lab_request request;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &history);
	lab_fill(&lab, DEVICE, 0, "x");
	lab_claim(&lab, &request, 4, 0);
	lab_expect_table(&lab, &request, 0, "x");
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 0), 2);
	assert_int_equal(request.tables[0].available, 0);
	assert_int_equal(lab_empty(&lab, DEVICE), 7);
	lab_free(&lab, &request);
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 0), 1);
	lab_close(&lab);
}

static void a_claim_of_nothing_leaves_empty_tables(void **state)
{
	struct lab_request request;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &history);
	lab_claim(&lab, &request, 4, 0);
	assert_int_equal(lab.probe.device_tokens, 0);
	lab_expect_table(&lab, &request, 0, "");
	assert_int_equal(lab_empty(&lab, DEVICE), 8);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* Even if there is nothing to claim. */
static void a_hit_is_claimed_into_empty_tables_only(void **state)
{
	struct lab_step    step = lab_tokens(4);
	struct lab_request request;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &history);
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	step = lab_probed(4);
	lab_probe(&lab, 4);
	lab_refuse(&lab, &request, &step, KVS_E_INVALID);
	lab_fill(&lab, DEVICE, 0, "x");
	lab_probe(&lab, 4);
	lab_refuse(&lab, &request, &step, KVS_E_INVALID);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void a_claim_of_a_window_leaves_holes(void **state)
{
	struct lab_request request;
	struct lab         lab;
	uint32_t           i;

	(void)state;
	lab_open(&lab, &window);
	lab_fill(&lab, DEVICE, 0, ".xxx");
	lab_claim(&lab, &request, 4, 0);
	lab_expect_table(&lab, &request, 0, ".xxx");
	assert_int_equal(request.tables[0].reclaimed, 1);
	for (i = 1; i < 4; i++)
		assert_int_equal(lab_refs(&lab, DEVICE, 0, i), 2);
	assert_int_equal(lab_empty(&lab, DEVICE), 5);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void a_probe_pins_nothing_and_a_claim_does(void **state)
{
	struct lab_request request;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &window);
	lab_fill(&lab, DEVICE, 0, "x");
	lab_probe(&lab, 1);
	assert_int_equal(lab_hits(&lab, 0, DEVICE), 1);
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 0), 1);
	lab_claim(&lab, &request, 1, 0);
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 0), 2);
	assert_int_equal(lab_empty(&lab, DEVICE), 7);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* --- naming blocks ---------------------------------------------------------------------------- */

static void open_with(struct lab *lab, struct lab_request *request, const struct lab_model *model,
		      uint32_t tokens)
{
	const struct lab_step step = lab_tokens(tokens);

	lab_open(lab, model);
	lab_begin(lab, request);
	lab_admit(lab, request, &step);
}

static void published_pages_are_hit(void **state)
{
	const struct lab_model *const models[] = { &history, &window };
	struct lab_request            request;
	struct lab                    lab;
	size_t                        i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(models); i++) {
		open_with(&lab, &request, models[i], 8);
		lab_publish(&lab, &request, 0, 2, CELL_CHUNK);
		assert_int_equal(lab_block(&lab, DEVICE, 0, 0), request.slots[0][0]);
		assert_int_equal(lab_block(&lab, DEVICE, 0, 1), request.slots[0][1]);
		lab_probe(&lab, 2);
		assert_int_equal(lab.probe.device_tokens, 8);
		lab_free(&lab, &request);
		lab_close(&lab);
	}
}

/* 6 tokens are one page and a bit; of one page twice nothing more; of none nothing. */
static void only_named_pages_are_published_and_once(void **state)
{
	struct lab_request request;
	struct lab         lab;

	(void)state;
	open_with(&lab, &request, &history, 6);
	lab_publish(&lab, &request, 0, 0, CELL_CHUNK);
	lab_expect_held(&lab, DEVICE, 0, "");
	lab_publish(&lab, &request, 0, 1, CELL_CHUNK);
	lab_publish(&lab, &request, 0, 1, CELL_CHUNK);
	lab_expect_held(&lab, DEVICE, 0, "x");
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 0), 2);
	assert_int_equal(lab.inserted, 1);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void what_was_published_stays_when_the_request_goes(void **state)
{
	struct lab_request request;
	struct lab         lab;

	(void)state;
	open_with(&lab, &request, &history, 6);
	lab_publish(&lab, &request, 0, 1, CELL_CHUNK);
	lab_free(&lab, &request);
	assert_int_equal(lab_empty(&lab, DEVICE), 7);
	lab_probe(&lab, 1);
	assert_int_equal(lab.probe.device_tokens, 4);
	lab_close(&lab);
}

static void a_second_request_shares_the_prefix_of_the_first(void **state)
{
	struct lab_model   model = history;
	struct lab_request request;
	struct lab         lab;

	(void)state;
	model.device = 16;
	lab_open(&lab, &model);
	lab_run(&lab, 8, CELL_CHUNK);
	assert_int_equal(lab_empty(&lab, DEVICE), 14);
	lab_claim(&lab, &request, 2, 0);
	assert_int_equal(lab_hits(&lab, 0, DEVICE), 2);
	assert_int_equal(lab_empty(&lab, DEVICE), 14);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void a_namespace_is_part_of_a_name(void **state)
{
	struct lab lab;
	uint32_t   first;

	(void)state;
	lab_open(&lab, &history);
	lab.space.byte[15] = 1;
	lab_fill(&lab, DEVICE, 0, "x");
	first = lab_block(&lab, DEVICE, 0, 0);
	lab.space.byte[15] = 2;
	lab_expect_held(&lab, DEVICE, 0, "");
	lab_probe(&lab, 1);
	assert_int_equal(lab.probe.device_tokens, 0);
	lab_fill(&lab, DEVICE, 0, "x");
	assert_int_not_equal(lab_block(&lab, DEVICE, 0, 0), first);
	assert_int_equal(lab_published(&lab, DEVICE, 0), 2);
	lab.space.byte[15] = 1;
	assert_int_equal(lab_block(&lab, DEVICE, 0, 0), first);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_in_the_last_block_is_used_before_a_block_is_taken),
		cmocka_unit_test(reserved_room_is_used_without_a_block),
		cmocka_unit_test(a_claim_shares_the_blocks_of_the_hit),
		cmocka_unit_test(a_claim_of_nothing_leaves_empty_tables),
		cmocka_unit_test(a_hit_is_claimed_into_empty_tables_only),
		cmocka_unit_test(a_claim_of_a_window_leaves_holes),
		cmocka_unit_test(a_probe_pins_nothing_and_a_claim_does),
		cmocka_unit_test(published_pages_are_hit),
		cmocka_unit_test(only_named_pages_are_published_and_once),
		cmocka_unit_test(what_was_published_stays_when_the_request_goes),
		cmocka_unit_test(a_second_request_shares_the_prefix_of_the_first),
		cmocka_unit_test(a_namespace_is_part_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
