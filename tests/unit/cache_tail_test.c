/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tails: prefixes that end inside a page.  Who restores one gets copies of its blocks, for it will write
 * behind the tail and others may read it.
 *
 * P = 8 and q = 4 throughout: 14 tokens are slots 0 and 1 of page 0, and 2 and 3 of the tail, of which
 * the last holds 2 tokens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE
#define HOST   STRATUM_HOST

static const struct lab_model history = { 8, 16, 0, { LAB_FULL(4, 1) } };

/* Page 0 and a tail of 14 tokens on Device, in one group. */
static struct tail open_tail(struct lab *lab, uint32_t parents)
{
	struct lab_model model = history;
	struct tail      tail;

	model.device = parents;
	lab_open(lab, &model);
	tail = lab_tail(lab, 14);
	lab_fill(lab, DEVICE, 0, "xxxx");
	return tail;
}

/* A new request that restores the tail, or what of it is there, and takes so many tokens more. */
static struct cache_admitted claim(struct lab *lab, struct lab_request *request,
				   const struct tail *tail, uint32_t tokens)
{
	const struct lab_step step = lab_probed(tokens);

	lab_begin(lab, request);
	lab_probe_tails(lab, 1, tail, 1);
	return lab_admit(lab, request, &step);
}

/* --- copy on write ---------------------------------------------------------------------------- */

static void expect_copy(const struct lab *lab, const struct lab_request *request,
			const struct cache_move *row, uint32_t position, uint32_t tokens)
{
	assert_int_equal(row->position, position);
	assert_int_equal(row->tokens, tokens);
	assert_int_equal(row->source, lab_block(lab, DEVICE, row->group, position));
	assert_int_equal(row->target, request->slots[row->group][position]);
	assert_int_not_equal(row->source, row->target);
	assert_int_equal(lab_refs(lab, DEVICE, row->group, position), 2);      /* index, row */
	assert_int_equal(lab_slot_refs(lab, request, row->group, position), 2); /* table, row */
}

/* From 14 tokens to 20: two copies, of which the last has room for 2 tokens, and one fresh block. */
static void A3_10_a_partial_block_takes_the_copy_on_write_path(void **state)
{
	struct cache_admitted admitted;
	struct lab_request    request;
	struct tail           tail;
	struct lab_rows       rows;
	struct lab            lab;

	(void)state;
	tail = open_tail(&lab, 16);
	admitted = claim(&lab, &request, &tail, 6);
	rows = lab_rows_of(&admitted);
	assert_int_equal(admitted.device_tokens, 14);
	assert_int_equal(admitted.host_tokens, 14);
	lab_expect_table(&lab, &request, 0, "xxxxx");
	assert_int_equal(request.tables[0].available, 0);
	assert_int_equal(admitted.load_count, 0);
	assert_int_equal(admitted.copy_count, 2);
	expect_copy(&lab, &request, &rows.row[0], 2, 4); /* a full block is copied too */
	expect_copy(&lab, &request, &rows.row[1], 3, 2);
	assert_int_equal(request.slots[0][1], lab_block(&lab, DEVICE, 0, 1)); /* page 0 is shared */
	assert_int_equal(admitted.fresh_count[0], 1); /* what is copied is not zeroed */
	assert_int_equal(admitted.fresh[0], request.slots[0][4]);

	lab_moved(&lab, &rows);
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 3), 1);
	assert_int_equal(lab_slot_refs(&lab, &request, 0, 3), 1);
	lab_free(&lab, &request);
	assert_int_equal(lab_empty(&lab, DEVICE), 12);
	lab_close(&lab);
}

/* 4 blocks are there and stay; 2 copies and 1 block for 3 more tokens make 7. */
static void a_private_copy_is_charged_as_a_fresh_block(void **state)
{
	const struct lab_step step = lab_probed(3);
	struct cache_admitted admitted;
	struct lab_request    request;
	struct tail           tail;
	struct lab_rows       rows;
	struct lab            lab;

	(void)state;
	tail = open_tail(&lab, 6);
	lab_begin(&lab, &request);
	lab_probe_tails(&lab, 1, &tail, 1);
	lab_refuse(&lab, &request, &step, KVS_E_FULL);
	admitted = claim(&lab, &request, &tail, 2); /* the copy has room for 2 */
	rows = lab_rows_of(&admitted);
	assert_int_equal(admitted.fresh_count[0], 0);
	assert_int_equal(lab_empty(&lab, DEVICE), 0);
	assert_int_equal(request.tables[0].available, 0);
	lab_moved(&lab, &rows);
	lab_free(&lab, &request);
	lab_close(&lab);

	tail = open_tail(&lab, 7);
	admitted = claim(&lab, &request, &tail, 3);
	rows = lab_rows_of(&admitted);
	assert_int_equal(lab_empty(&lab, DEVICE), 0);
	lab_moved(&lab, &rows);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void the_source_of_a_copy_is_not_evicted_until_its_fence(void **state)
{
	const struct lab_step step = lab_tokens(8);
	struct cache_block    released[2] = { 0 };
	struct lab_request    request, other;
	struct cache_admitted admitted;
	struct tail           tail;
	struct lab_rows       rows;
	struct lab            lab;

	(void)state;
	tail = open_tail(&lab, 6);
	admitted = claim(&lab, &request, &tail, 0);
	rows = lab_rows_of(&admitted);
	released[0].block = rows.row[0].source;
	released[1].block = rows.row[1].source;
	lab_begin(&lab, &other);
	lab_refuse(&lab, &other, &step, KVS_E_FULL);
	assert_false(lab_can_admit(&lab, &other, &step, released, 1));
	assert_true(lab_can_admit(&lab, &other, &step, released, 2));
	lab_moved(&lab, &rows);
	lab_admit(&lab, &other, &step);
	lab_expect_held(&lab, DEVICE, 0, "xx");
	lab_free(&lab, &other);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void a_copy_outlives_its_request(void **state)
{
	struct lab_step       step = lab_tokens(8);
	struct cache_block    released[2] = { 0 };
	struct cache_admitted admitted;
	struct lab_request    request;
	struct tail           tail;
	struct lab_rows       rows;
	struct lab            lab;
	uint32_t              i;

	(void)state;
	tail = open_tail(&lab, 6);
	admitted = claim(&lab, &request, &tail, 0);
	rows = lab_rows_of(&admitted);
	lab_free(&lab, &request);
	assert_int_equal(lab_empty(&lab, DEVICE), 0);
	assert_int_equal(lab_pins(&lab, DEVICE), 2);
	for (i = 0; i < 2; i++)
		released[i].block = rows.row[i].target; /* no name, and nobody's but the rows' */
	lab_begin(&lab, &request);
	assert_true(lab_can_admit(&lab, &request, &step, NULL, 0));  /* for page 0's blocks */
	step = lab_tokens(16);
	assert_false(lab_can_admit(&lab, &request, &step, NULL, 0));
	assert_false(lab_can_admit(&lab, &request, &step, released, 1));
	assert_true(lab_can_admit(&lab, &request, &step, released, 2));
	lab_moved(&lab, &rows);
	assert_int_equal(lab_empty(&lab, DEVICE), 2);
	assert_int_equal(lab_pins(&lab, DEVICE), 0);
	lab_expect_held(&lab, DEVICE, 0, "xxxx");
	lab_close(&lab);
}

static void two_requests_have_copies_of_their_own(void **state)
{
	const struct lab_step step = lab_tokens(8);
	struct cache_block    released[4] = { 0 };
	struct cache_admitted admitted;
	struct lab_request    first, second, other;
	struct tail           tail;
	struct lab_rows       rows[2];
	struct lab            lab;
	uint32_t              i;

	(void)state;
	tail = open_tail(&lab, 8);
	admitted = claim(&lab, &first, &tail, 0);
	rows[0] = lab_rows_of(&admitted);
	admitted = claim(&lab, &second, &tail, 0);
	rows[1] = lab_rows_of(&admitted);
	assert_int_equal(rows[0].row[1].source, rows[1].row[1].source);
	assert_int_not_equal(rows[0].row[1].target, rows[1].row[1].target);
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 3), 3);
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 0), 3);
	for (i = 0; i < 4; i++)
		released[i].block = rows[i / 2].row[i % 2].source;
	lab_begin(&lab, &other);
	assert_false(lab_can_admit(&lab, &other, &step, released, 3)); /* one of two is not enough */
	assert_true(lab_can_admit(&lab, &other, &step, released, 4));
	lab_moved(&lab, &rows[0]);
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 3), 2);
	lab_moved(&lab, &rows[1]);
	lab_free(&lab, &first);
	lab_free(&lab, &second);
	lab_close(&lab);
}

/* The page that the request completes has its own name and its own blocks; the tail stays beside it. */
static void a_completed_page_does_not_take_the_tails_name(void **state)
{
	struct lab_step       step = lab_tokens(0);
	struct cache_admitted admitted;
	struct lab_request    request;
	struct tail           tail;
	struct lab_rows       rows;
	struct lab            lab;

	(void)state;
	tail = open_tail(&lab, 16);
	admitted = claim(&lab, &request, &tail, 2);
	rows = lab_rows_of(&admitted);
	lab_moved(&lab, &rows);
	lab_prompt(&lab, 0, 0);
	lab_complete(&lab, &step, 2, 1, CELL_CHUNK, 16);
	lab_advance(&lab, &request, &step);
	lab_expect_held(&lab, DEVICE, 0, "xxxx");
	assert_int_equal(lab_block(&lab, DEVICE, 0, 3), request.slots[0][3]);
	lab_tail(&lab, 14);
	lab_expect_held(&lab, DEVICE, 0, "xxxx");
	assert_int_not_equal(lab_block(&lab, DEVICE, 0, 3), request.slots[0][3]);
	assert_int_equal(lab_published(&lab, DEVICE, 0), 6);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* A checkpoint of a tail is copied as well; a sparse chunk may go on in its slot or behind it. */
static void a_sparse_chunk_goes_on_behind_a_tails_copy(void **state)
{
	static const struct lab_model model = { 8, 16, 0, { LAB_FULL(4, 1), LAB_STATE(4, 1) } };
	struct lab_step               step = lab_probed(2);
	struct cache_admitted         admitted;
	struct lab_request            request;
	struct tail                   tail;
	struct lab_rows               rows;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	tail = lab_tail(&lab, 14);
	lab_fill(&lab, DEVICE, 0, "xxxx");
	lab_fill(&lab, DEVICE, 1, "...x");
	lab_begin(&lab, &request);
	lab_probe_tails(&lab, 1, &tail, 1);
	step.demands[1] = demand_sparse(16, 0, 3);
	admitted = lab_admit(&lab, &request, &step);
	rows = lab_rows_of(&admitted);
	assert_int_equal(admitted.copy_count, 3);
	assert_int_equal(admitted.fresh_count[1], 0);
	lab_expect_table(&lab, &request, 1, "...x");
	assert_int_equal(request.tables[1].available, 0);
	step = lab_tokens(8);
	step.demands[1] = demand_sparse(24, 0, 5);
	admitted = lab_admit(&lab, &request, &step);
	assert_int_equal(admitted.fresh_count[1], 1);
	lab_expect_table(&lab, &request, 0, "xxxxxx");
	lab_expect_table(&lab, &request, 1, "...x.x");
	lab_moved(&lab, &rows);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* --- shortening ------------------------------------------------------------------------------- */

/* Of blocks of one epoch the end of history goes first: that of the tail. */
static void a_tail_that_lost_a_block_falls_back_to_the_page_boundary(void **state)
{
	const struct lab_step step = lab_tokens(4);
	struct cache_admitted admitted;
	struct lab_request    request, other;
	struct tail           tail;
	struct lab            lab;

	(void)state;
	tail = open_tail(&lab, 4);
	lab_begin(&lab, &other);
	lab_admit(&lab, &other, &step);
	lab_expect_held(&lab, DEVICE, 0, "xxx");
	admitted = claim(&lab, &request, &tail, 0);
	assert_int_equal(admitted.host_tokens, 8);
	assert_int_equal(admitted.copy_count, 0);
	lab_expect_table(&lab, &request, 0, "xx");
	assert_int_equal(request.tables[0].available, 0);
	lab_free(&lab, &other);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void a_tail_that_is_lost_after_the_probe_is_stale(void **state)
{
	const struct lab_step take = lab_tokens(4), step = lab_probed(0);
	struct lab_request    request, other;
	struct tail           tail;
	struct lab            lab;

	(void)state;
	tail = open_tail(&lab, 6);
	lab_probe_tails(&lab, 1, &tail, 1);
	assert_int_equal(lab.probe.host_tokens, 14);
	lab_begin(&lab, &other);
	lab_admit(&lab, &other, &take);
	lab_admit(&lab, &other, &take);
	lab_admit(&lab, &other, &take);
	lab_begin(&lab, &request);
	lab_refuse(&lab, &request, &step, KVS_E_STALE);
	lab_free(&lab, &other);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A3_10_a_partial_block_takes_the_copy_on_write_path),
		cmocka_unit_test(a_private_copy_is_charged_as_a_fresh_block),
		cmocka_unit_test(the_source_of_a_copy_is_not_evicted_until_its_fence),
		cmocka_unit_test(a_copy_outlives_its_request),
		cmocka_unit_test(two_requests_have_copies_of_their_own),
		cmocka_unit_test(a_completed_page_does_not_take_the_tails_name),
		cmocka_unit_test(a_sparse_chunk_goes_on_behind_a_tails_copy),
		cmocka_unit_test(a_tail_that_lost_a_block_falls_back_to_the_page_boundary),
		cmocka_unit_test(a_tail_that_is_lost_after_the_probe_is_stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
