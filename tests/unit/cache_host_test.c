/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Host adds to a cache: a prefix that goes on where Device's ends, blocks to load, and which
 * of its blocks go when it is full.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE
#define HOST   STRATUM_HOST

/* --- a prefix goes on in Host ----------------------------------------------------------------- */

struct extension {
	const char      *name;
	struct lab_model model;
	uint32_t         pages; /* of the prompt */
	const char      *device[3]; /* by group */
	const char      *host[3];
	uint64_t         device_tokens, host_tokens;
	uint32_t         host_hits[3];
	const char      *table[3];
	uint32_t         pinned;
};

#define FULL_AND_WINDOW(w) \
	{ .page_tokens = 2, .device = 32, .host = 32, \
	  .groups = { LAB_FULL(2, 1), LAB_WINDOW(2, w, 1) } }
#define TWO_WINDOWS \
	{ .page_tokens = 2, .device = 32, .host = 32, \
	  .groups = { LAB_FULL(2, 1), LAB_WINDOW(2, 6, 1), LAB_WINDOW(2, 2, 1) } }

/* A window of 4 needs two blocks of 2 tokens, one of 6 three, one of 2 one, and one of 1 none. */
static const struct extension extensions[] = {
	{ "a window that needs nothing is all holes", FULL_AND_WINDOW(1), 3,
	  { "", "" }, { "xxx", "" }, 0, 6, { 3, 0 }, { "xxx", "..." }, 3 },
	{ "both groups are there", FULL_AND_WINDOW(4), 4,
	  { "x", "x" }, { ".xxx", "..xx" }, 2, 8, { 3, 2 }, { "xxxx", "..xx" }, 5 },
	{ "the window lacks its end", FULL_AND_WINDOW(4), 4,
	  { "x", "x" }, { ".xxx", ".xx" }, 2, 6, { 2, 2 }, { "xxx", ".xx" }, 4 },
	{ "history has a gap", FULL_AND_WINDOW(4), 4,
	  { "x", "x" }, { ".x.x", ".xxx" }, 2, 4, { 1, 1 }, { "xx", "xx" }, 2 },
	{ "Host is empty", FULL_AND_WINDOW(4), 4,
	  { "x", "x" }, { "", "" }, 2, 2, { 0, 0 }, { "x", "x" }, 0 },
	{ "Host holds what Device holds", FULL_AND_WINDOW(4), 4,
	  { "xx", "xx" }, { "xx", "xx" }, 4, 4, { 0, 0 }, { "xx", "xx" }, 0 },
	{ "boundaries 7 and 6 fall before 4 holds", FULL_AND_WINDOW(4), 8,
	  { "", "" }, { "xxxxxxx", "..xx.x.x" }, 0, 8, { 4, 2 }, { "xxxx", "..xx" }, 6 },
	{ "two windows go on together", TWO_WINDOWS, 5,
	  { "x", "x", "x" }, { ".xxxx", "..xxx", "....x" }, 2, 10, { 4, 3, 1 },
	  { "xxxxx", "..xxx", "....x" }, 8 },
	{ "two windows rule each other out", TWO_WINDOWS, 5,
	  { "x", "x", "x" }, { ".xxxx", "..xxx", "...x" }, 2, 2, { 0, 0, 0 },
	  { "x", "x", "x" }, 0 },
};

static void open_extension(struct lab *lab, const struct extension *extension)
{
	uint32_t g;

	lab_open(lab, &extension->model);
	for (g = 0; g < lab->group_count; g++) {
		lab_fill(lab, DEVICE, g, extension->device[g]);
		lab_fill(lab, HOST, g, extension->host[g]);
	}
}

/* Rows go group by group, in order of slots: from the block of that name to the table's. */
static void expect_loads(const struct lab *lab, const struct lab_request *request,
			 const struct lab_rows *rows, const struct extension *extension)
{
	uint32_t i, last[3] = { 0 }, count[3] = { 0 };

	for (i = 0; i < rows->count; i++) {
		const struct cache_move *const row = &rows->row[i];

		assert_true(row->from_host);
		assert_true(i == 0 || rows->row[i - 1].group <= row->group);
		assert_true(count[row->group] == 0 || last[row->group] < row->position);
		assert_int_equal(row->source, lab_block(lab, HOST, row->group, row->position));
		assert_int_equal(row->target, request->slots[row->group][row->position]);
		assert_int_equal(lab_slot_refs(lab, request, row->group, row->position), 2);
		assert_int_equal(row->tokens, 2);
		last[row->group] = row->position;
		count[row->group]++;
	}
	for (i = 0; i < lab->group_count; i++)
		assert_int_equal(count[i], extension->host_hits[i]);
}

static void run_extension(const struct extension *extension)
{
	const struct lab_step step = lab_probed(0);
	struct lab            lab;
	struct lab_request    request;
	struct cache_admitted admitted;
	struct lab_rows       rows;
	uint32_t              g;

	open_extension(&lab, extension);
	lab_probe(&lab, extension->pages);
	assert_int_equal(lab.probe.device_tokens, extension->device_tokens);
	assert_int_equal(lab.probe.host_tokens, extension->host_tokens);
	for (g = 0; g < lab.group_count; g++)
		assert_int_equal(lab_hits(&lab, g, HOST), extension->host_hits[g]);
	assert_int_equal(lab_pins(&lab, HOST), 0);

	lab_begin(&lab, &request);
	admitted = lab_admit(&lab, &request, &step);
	rows = lab_rows_of(&admitted);
	assert_int_equal(admitted.device_tokens, extension->device_tokens);
	assert_int_equal(admitted.host_tokens, extension->host_tokens);
	assert_int_equal(admitted.load_count, extension->pinned);
	assert_int_equal(admitted.copy_count, 0);
	assert_int_equal(lab_pins(&lab, HOST), extension->pinned);
	for (g = 0; g < lab.group_count; g++) {
		lab_expect_table(&lab, &request, g, extension->table[g]);
		assert_int_equal(admitted.fresh_count[g], 0);
		assert_int_equal(request.tables[g].available, 0);
	}
	expect_loads(&lab, &request, &rows, extension);

	lab_free(&lab, &request);
	assert_int_equal(lab_pins(&lab, HOST), extension->pinned);
	lab_moved(&lab, &rows);
	assert_int_equal(lab_pins(&lab, HOST), 0);
	lab_close(&lab);
}

static void a_prefix_goes_on_in_host_as_far_as_all_groups_do(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(extensions); i++) {
		print_message("# %s\n", extensions[i].name);
		run_extension(&extensions[i]);
	}
}

/*
 * Device holds history to 32 tokens and a checkpoint at 16; all that Host has to add is the checkpoint
 * at 32, whatever else it holds.
 */
static void A3_4_host_adds_only_what_device_lacks(void **state)
{
	static const struct lab_model model = { 4, 32, 32, { LAB_FULL(4, 1), LAB_STATE(4, 1) } };
	const struct lab_step         step = lab_probed(0);
	struct cache_admitted         admitted;
	struct lab_request            request;
	struct lab_rows               rows;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, "xxxxxxxx");
	lab_fill(&lab, DEVICE, 1, "...x");
	lab_fill(&lab, HOST, 0, "....xxxx");
	lab_fill(&lab, HOST, 1, ".....x.x");
	lab_probe(&lab, 8);
	assert_int_equal(lab.probe.device_tokens, 16);
	assert_int_equal(lab.probe.host_tokens, 32);
	assert_int_equal(lab_hits(&lab, 0, DEVICE), 8);
	assert_int_equal(lab_hits(&lab, 0, HOST), 0);
	assert_int_equal(lab_hits(&lab, 1, HOST), 1);
	lab_begin(&lab, &request);
	admitted = lab_admit(&lab, &request, &step);
	rows = lab_rows_of(&admitted);
	assert_int_equal(admitted.load_count, 1);
	assert_int_equal(rows.row[0].group, 1);
	assert_int_equal(rows.row[0].position, 7);
	lab_expect_table(&lab, &request, 0, "xxxxxxxx");
	lab_expect_table(&lab, &request, 1, ".......x");
	lab_free(&lab, &request);
	lab_moved(&lab, &rows);
	lab_close(&lab);
}

/* --- loads ------------------------------------------------------------------------------------ */

static const struct lab_model one_group = { 4, 4, 4, { LAB_FULL(4, 1) } };

/* Host's blocks need room on Device, one each, as fresh ones do; Device's hits need none. */
static void a_host_hit_costs_a_block_of_device(void **state)
{
	struct lab_request request;
	struct lab_step    step = lab_probed(5);
	struct lab_rows    rows;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &one_group);
	lab_fill(&lab, DEVICE, 0, "x");
	lab_fill(&lab, HOST, 0, ".xx");
	lab_probe(&lab, 3);
	assert_int_equal(lab.probe.host_tokens, 12);
	lab_begin(&lab, &request);
	lab_refuse(&lab, &request, &step, KVS_E_FULL); /* 2 loads and 2 fresh ones in 3 parents */
	step = lab_probed(4);
	{
		const struct cache_admitted admitted = lab_admit(&lab, &request, &step);

		rows = lab_rows_of(&admitted);
		assert_int_equal(admitted.load_count, 2);
		assert_int_equal(admitted.fresh_count[0], 1);
		assert_int_equal(admitted.fresh[0], request.slots[0][3]);
	}
	assert_int_equal(lab_empty(&lab, DEVICE), 0);
	lab_moved(&lab, &rows);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* A request that is gone leaves its copies under way: they still write into the targets. */
static void a_load_keeps_source_and_target_until_its_fence(void **state)
{
	struct lab_request request;
	struct lab_rows    rows;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &one_group);
	lab_fill(&lab, HOST, 0, "xx");
	rows = lab_claim(&lab, &request, 2, 0);
	assert_int_equal(rows.count, 2);
	lab_free(&lab, &request);
	assert_int_equal(lab_empty(&lab, DEVICE), 2);
	assert_int_equal(lab_refs(&lab, HOST, 0, 0), 2);
	lab_moved(&lab, &rows);
	assert_int_equal(lab_empty(&lab, DEVICE), 4);
	assert_int_equal(lab_refs(&lab, HOST, 0, 0), 1);
	lab_close(&lab);
}

static void a_loaded_extension_is_published_before_its_copy_ends(void **state)
{
	struct lab_request first, second;
	struct lab_rows    rows, none;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &one_group);
	lab_fill(&lab, HOST, 0, "xx");
	rows = lab_claim(&lab, &first, 2, 0);
	lab_publish(&lab, &first, 0, 2, CELL_CHUNK);
	lab_expect_held(&lab, DEVICE, 0, "xx");
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 1), 3); /* the index, the table, the row */
	none = lab_claim(&lab, &second, 2, 0);
	assert_int_equal(none.count, 0);
	assert_int_equal(lab.probe.device_tokens, 8);
	assert_int_equal(second.slots[0][1], first.slots[0][1]);
	lab_free(&lab, &second);
	lab_free(&lab, &first);
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 1), 2);
	lab_moved(&lab, &rows);
	assert_int_equal(lab_pins(&lab, DEVICE), 0);
	lab_close(&lab);
}

/* Both strata learn that the request used them: one epoch, and acquired. */
static void a_load_is_a_use_of_the_source(void **state)
{
	struct cell_view   view;
	struct lab_request request;
	struct lab_rows    rows;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &one_group);
	lab_fill(&lab, HOST, 0, "xx");
	view = lab_view(&lab, HOST, 0, 1);
	assert_int_equal(view.epoch, 2);
	assert_false(view.was_acquired);
	assert_int_equal(view.position, UINT32_MAX);
	rows = lab_claim(&lab, &request, 2, 0);
	assert_int_equal(request.epoch, 3);
	view = lab_view(&lab, HOST, 0, 1);
	assert_int_equal(view.epoch, 3);
	assert_true(view.was_acquired);
	lab_moved(&lab, &rows);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* --- publishing on Host ----------------------------------------------------------------------- */

static uint32_t take(struct lab *lab, uint32_t group)
{
	const uint32_t block = cache_host_acquire(lab->cache, group);

	lab_audit(lab);
	return block;
}

static uint32_t publish(struct lab *lab, uint32_t group, uint32_t position, uint32_t block)
{
	const struct cell_name name = lab_name(lab, group, position);
	const uint32_t         bears = cache_host_publish(lab->cache, &name, block, CELL_ENDPOINT);

	lab_audit(lab);
	return bears;
}

/* Nothing is visible before; the copy that fills the block may still be under way. */
static void host_is_published_at_the_acknowledgement_with_a_new_epoch(void **state)
{
	struct lab lab;
	uint32_t   block;

	(void)state;
	lab_open(&lab, &one_group);
	block = take(&lab, 0);
	lab_probe(&lab, 1);
	assert_int_equal(lab.probe.host_tokens, 0);
	assert_int_equal(cache_clock(lab.cache), 0);
	assert_int_equal(publish(&lab, 0, 0, block), block);
	assert_int_equal(cache_clock(lab.cache), 1);
	assert_int_equal(lab_view(&lab, HOST, 0, 0).epoch, 1);
	assert_int_equal(lab_view(&lab, HOST, 0, 0).kind, CELL_ENDPOINT);
	assert_true(lab_view(&lab, HOST, 0, 0).idle);
	lab_probe(&lab, 1);
	assert_int_equal(lab.probe.host_tokens, 4);
	assert_int_equal(lab.inserted, 0); /* the sink hears of Device only */
	lab_close(&lab);
}

static void a_name_that_host_has_keeps_its_block(void **state)
{
	struct lab lab;
	uint32_t   first, second;

	(void)state;
	lab_open(&lab, &one_group);
	first = take(&lab, 0);
	second = take(&lab, 0);
	assert_int_equal(publish(&lab, 0, 0, first), first);
	assert_int_equal(publish(&lab, 0, 0, second), first);
	assert_int_equal(lab_block(&lab, HOST, 0, 0), first);
	assert_int_equal(lab_refs(&lab, HOST, 0, 0), 1);
	assert_int_equal(lab_view(&lab, HOST, 0, 0).epoch, 2); /* it was published again */
	assert_int_equal(lab_empty(&lab, HOST), 3);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prefix_goes_on_in_host_as_far_as_all_groups_do),
		cmocka_unit_test(A3_4_host_adds_only_what_device_lacks),
		cmocka_unit_test(a_host_hit_costs_a_block_of_device),
		cmocka_unit_test(a_load_keeps_source_and_target_until_its_fence),
		cmocka_unit_test(a_loaded_extension_is_published_before_its_copy_ends),
		cmocka_unit_test(a_load_is_a_use_of_the_source),
		cmocka_unit_test(host_is_published_at_the_acknowledgement_with_a_new_epoch),
		cmocka_unit_test(a_name_that_host_has_keeps_its_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
