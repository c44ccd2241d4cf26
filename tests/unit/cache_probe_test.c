/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: what a prompt would get, the boundary worth promoting, and tails with their copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cache_box.h"

static const struct group_spec one_full[BOX_GROUPS] = { BOX_FULL(4, 1) };
static const struct group_spec full_and_state[BOX_GROUPS] = { BOX_FULL(4, 1), BOX_STATE(4, 1) };
static const struct group_spec full_and_window10[BOX_GROUPS] = { BOX_FULL(4, 1),
								 BOX_WINDOW(10, 4, 1) };

/* Group by group: pages that are published, as bits; and what a probe of them all says. */
static struct cache_probe probe_of(struct box *box, const uint32_t *pages, uint32_t page_count)
{
	struct box_request request;
	uint32_t           g, page;

	for (g = 0; g < box->group_count; g++) {
		for (page = 0; page < page_count; page++) {
			if (pages[g] >> page & 1)
				box_put(box, g, page, page + 1);
		}
	}
	box_request(box, &request);
	return *box_probe(box, &request, page_count);
}

/* --- the joint boundary ----------------------------------------------------------------------- */

static void the_boundary_is_one_that_all_groups_support(void **state)
{
	static const struct group_spec window10[BOX_GROUPS] = { BOX_WINDOW(10, 4, 1) };
	static const struct group_spec windows[BOX_GROUPS] = { BOX_FULL(4, 1), BOX_WINDOW(10, 4, 1),
							       BOX_WINDOW(10, 4, 1) };
	static const struct group_spec fulls[BOX_GROUPS] = { BOX_FULL(4, 1), BOX_FULL(4, 1) };
	static const struct {
		const struct group_spec *specs;
		uint32_t                 pages[3];
		uint32_t                 page_count, tokens;
	} cases[] = {
		{ full_and_window10, { 0x3, 0x0 }, 2, 0 },
		{ full_and_window10, { 0xf, 0x1c }, 5, 0 },
		{ full_and_window10, { 0xf, 0x1e }, 5, 16 },
		{ full_and_window10, { 0x1f, 0x0e }, 5, 16 },
		{ windows, { 0x1f, 0x0e, 0x0e }, 5, 16 },
		{ windows, { 0xff, 0x77, 0x3b }, 8, 8 },
		{ fulls, { 0x7, 0x3 }, 3, 8 },
		{ one_full, { 0x3 }, 3, 8 },
		{ window10, { 0x1c }, 5, 20 },
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		struct box         box;
		struct cache_probe probe;

		box_open(&box, 4, 32, 0, cases[i].specs);
		probe = probe_of(&box, cases[i].pages, cases[i].page_count);
		assert_int_equal(probe.device_tokens, cases[i].tokens);
		assert_int_equal(probe.host_tokens, cases[i].tokens);
		box_close(&box);
	}
}

static void what_the_boundary_cuts_off_is_not_touched(void **state)
{
	const uint32_t        pages[] = { 0xf, 0x7 };
	const struct demand   demands[] = { demand_dense(1, 0), demand_dense(1, 0) };
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;
	struct cell_view      before, after;

	(void)state;
	box_open(&box, 4, 16, 0, full_and_window10);
	probe_of(&box, pages, 4);
	before = box_view(&box, STRATUM_DEVICE, 0, 3);
	box_request(&box, &request);
	assert_int_equal(box_probe(&box, &request, 4)->device_tokens, 12);
	assert_int_equal(box_admit(&box, &request, demands, true, NULL, &admitted), 0);
	after = box_view(&box, STRATUM_DEVICE, 0, 3);
	assert_int_equal(after.epoch, before.epoch);
	assert_false(after.was_acquired);
	assert_true(box_view(&box, STRATUM_DEVICE, 0, 2).was_acquired);
	cache_free(box.cache, request.tables);
	box_close(&box);
}

static void a_hit_in_a_window_leaves_holes_before_it(void **state)
{
	static const struct group_spec window10[BOX_GROUPS] = { BOX_WINDOW(10, 4, 1) };
	const uint32_t                 pages[] = { 0xe };
	const struct demand            none = demand_dense(0, 0);
	struct box                     box;
	struct box_request             request;
	struct cache_admitted          admitted;

	(void)state;
	box_open(&box, 4, 16, 0, window10);
	probe_of(&box, pages, 4);
	box_request(&box, &request);
	box_probe(&box, &request, 4);
	assert_int_equal(box_admit(&box, &request, &none, true, NULL, &admitted), 0);
	assert_int_equal(request.tables[0].count, 4);
	assert_int_equal(request.tables[0].reclaimed, 1);
	assert_int_equal(request.tables[0].available, 0);
	assert_int_equal(request.slots[0][0], BLOCK_NULL);
	assert_int_equal(request.slots[0][1], box_find(&box, STRATUM_DEVICE, 0, 1));
	assert_int_equal(pool_unbound(cache_pool(box.cache, STRATUM_DEVICE)), 13);
	cache_free(box.cache, request.tables);
	box_close(&box);
}

/* --- promotion -------------------------------------------------------------------------------- */

static void full_history_beyond_the_boundary_is_worth_promoting(void **state)
{
	static const struct group_spec fulls[BOX_GROUPS] = { BOX_FULL(4, 1), BOX_FULL(4, 1),
							     BOX_STATE(4, 1) };
	static const struct group_spec window10[BOX_GROUPS] = { BOX_WINDOW(10, 4, 1) };
	static const struct {
		const struct group_spec *specs;
		uint32_t                 pages[3];
		uint32_t                 tokens, closed, promotion;
	} cases[] = {
		{ full_and_state, { 0xff, 0x08 }, 16, 32, 32 },
		{ fulls, { 0xff, 0x3f, 0x08 }, 16, 24, 24 },
		{ full_and_window10, { 0xf, 0xff }, 16, 16, 0 },
		{ window10, { 0xe }, 16, 0, 0 },
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		struct box         box;
		struct cache_probe probe;

		box_open(&box, 4, 32, 0, cases[i].specs);
		probe = probe_of(&box, cases[i].pages, 8);
		assert_int_equal(probe.device_tokens, cases[i].tokens);
		assert_int_equal(probe.device_closed, cases[i].closed);
		assert_int_equal(probe.promotion_tokens, cases[i].promotion);
		box_close(&box);
	}
}

/* Pages on Device and on Host, group by group. */
static void host_takes_part_in_promotion(void **state)
{
	static const struct {
		uint32_t device[2], host[2];
		uint32_t device_tokens, host_tokens, promotion;
	} cases[] = {
		{ { 0xff, 0x08 }, { 0x00, 0x00 }, 16, 16, 32 }, /* Device's stays */
		{ { 0x0f, 0x08 }, { 0xf0, 0x00 }, 16, 16, 32 }, /* Host's history makes one */
		{ { 0x0f, 0x08 }, { 0xf0, 0x80 }, 16, 32, 0 },  /* and its checkpoint a hit */
	};
	uint32_t i, g, page;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		struct box         box;
		struct box_request request;

		box_open(&box, 4, 32, 32, full_and_state);
		for (g = 0; g < 2; g++) {
			for (page = 0; page < 8; page++) {
				if (cases[i].host[g] >> page & 1)
					box_put_host(&box, g, page, page + 1);
			}
		}
		probe_of(&box, cases[i].device, 8);
		box_request(&box, &request);
		box_probe(&box, &request, 8);
		assert_int_equal(request.probe.device_tokens, cases[i].device_tokens);
		assert_int_equal(request.probe.host_tokens, cases[i].host_tokens);
		assert_int_equal(request.probe.promotion_tokens, cases[i].promotion);
		box_close(&box);
	}
}

/* Device's history is longer than its last checkpoint: Host has to bring the checkpoint only. */
static void host_brings_only_what_device_lacks(void **state)
{
	const uint32_t        device[] = { 0xff, 0x08 };
	const struct demand   demands[] = { demand_dense(1, 0), demand_dense(1, 0) };
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;

	(void)state;
	box_open(&box, 4, 32, 32, full_and_state);
	box_put_host(&box, 0, 0, 8);
	box_put_host(&box, 1, 7, 8);
	probe_of(&box, device, 8);
	box_request(&box, &request);
	box_probe(&box, &request, 8);
	assert_int_equal(request.probe.device_tokens, 16);
	assert_int_equal(request.probe.host_tokens, 32);
	assert_int_equal(box_admit(&box, &request, demands, true, NULL, &admitted), 0);
	assert_int_equal(admitted.load_count, 1);
	assert_int_equal(admitted.copy_count, 0);
	assert_int_equal(admitted.moves[0].group, 1);
	assert_int_equal(admitted.moves[0].position, 7);
	assert_int_equal(admitted.moves[0].target, request.slots[1][7]);
	assert_int_equal(admitted.moves[0].source, box_find(&box, STRATUM_HOST, 1, 7));
	cache_free(box.cache, request.tables);
	cache_moved(box.cache, &admitted.moves[0]);
	assert_true(box_view(&box, STRATUM_HOST, 1, 7).was_acquired);
	box_close(&box);
}

/* --- tails ------------------------------------------------------------------------------------ */

/* Publish a prompt of 22 tokens as a request does that ends: pages of 8, and a tail of 6. */
static const uint32_t tail_tokens = 22;

static struct tail publish_tail(struct box *box)
{
	const struct tail  tail = { tail_tokens, box_hash(1000) };
	struct box_request request;

	box_request(box, &request);
	assert_int_equal(box_take(box, &request, tail_tokens), 0);
	box_advance(box, &request, 0, 2, tail_tokens, CELL_CHUNK);
	assert_int_equal(cache_publish_tail(box->cache, request.tables, &box->space, &tail,
					    tail_tokens, request.epoch, CELL_ENDPOINT, &box->err),
			 0);
	cache_free(box->cache, request.tables);
	cache_audit(box->cache);
	return tail;
}

static void probe_tail(struct box *box, struct box_request *request, uint32_t pages,
		       const struct tail *tails, uint32_t tail_count)
{
	const struct cache_prompt prompt = { &box->space, box->hashes, pages, tails, tail_count };

	box_request(box, request);
	assert_int_equal(cache_probe(box->cache, &prompt, PROBE_ALL, &request->probe, &box->err), 0);
}

static const struct group_spec three_kinds[BOX_GROUPS] = { BOX_FULL(4, 2), BOX_WINDOW(6, 4, 1),
							   BOX_STATE(8, 1) };

static void a_tail_is_copied_because_the_request_writes_behind_it(void **state)
{
	const struct demand   demands[] = { demand_dense(3, 0), demand_dense(3, 0),
					    demand_dense(3, 0) };
	/* Group, position, tokens: blocks of the tail's page, those before it are shared. */
	static const uint32_t rows[][3] = { { 0, 4, 4 }, { 0, 5, 2 }, { 1, 4, 4 }, { 1, 5, 2 },
					    { 2, 2, 6 } };
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;
	struct tail           tail;
	uint32_t              i;

	(void)state;
	box_open(&box, 8, 24, 0, three_kinds);
	tail = publish_tail(&box);
	probe_tail(&box, &request, 2, &tail, 1);
	assert_int_equal(request.probe.device_tokens, tail_tokens);
	assert_int_equal(cache_probe_hits(box.cache, &request.probe, 1, STRATUM_DEVICE), 2);
	assert_int_equal(box_admit(&box, &request, demands, true, NULL, &admitted), 0);
	assert_int_equal(admitted.load_count, 0);
	assert_int_equal(admitted.copy_count, ARRAY_COUNT(rows));
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		const struct cache_move *const move = &admitted.moves[i];
		struct cell_view               view;

		assert_int_equal(move->group, rows[i][0]);
		assert_int_equal(move->position, rows[i][1]);
		assert_int_equal(move->tokens, rows[i][2]);
		assert_false(move->from_host);
		assert_int_equal(move->target, request.slots[move->group][move->position]);
		assert_int_not_equal(move->source, move->target);
		assert_true(cache_view(box.cache, STRATUM_DEVICE, move->group, move->source, &view));
		assert_false(view.idle); /* until the fence of the copy */
		assert_false(cache_view(box.cache, STRATUM_DEVICE, move->group, move->target, &view));
	}
	/* 22 + 3 tokens: the copies have room for 2, so each group takes one block more, and only that
	 * one is to be zeroed. */
	assert_int_equal(admitted.fresh_count[0], 1);
	assert_int_equal(admitted.fresh[0], request.slots[0][6]);
	assert_int_equal(request.tables[0].available, 3);
	assert_int_equal(admitted.fresh_count[2], 1);
	for (i = 0; i < admitted.copy_count; i++)
		cache_moved(box.cache, &admitted.moves[i]);
	/* The request completes the page that began with the tail. */
	box_advance(&box, &request, 2, 3, 25, CELL_CHUNK);
	assert_int_equal(box_find(&box, STRATUM_DEVICE, 0, 2), request.slots[0][4]);
	cache_free(box.cache, request.tables);
	probe_tail(&box, &request, 2, &tail, 1);
	assert_int_equal(request.probe.device_tokens, tail_tokens); /* for others it is still there */
	box_close(&box);
}

static void a_request_may_end_before_its_copies_do(void **state)
{
	const struct demand   demand = demand_dense(1, 0);
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;
	struct tail           tail;
	const struct pool    *pool;

	(void)state;
	box_open(&box, 8, 4, 0, (struct group_spec[BOX_GROUPS]){ BOX_FULL(8, 1) });
	pool = cache_pool(box.cache, STRATUM_DEVICE);
	tail = publish_tail(&box);
	probe_tail(&box, &request, 2, &tail, 1);
	assert_int_equal(box_admit(&box, &request, &demand, true, NULL, &admitted), 0);
	assert_int_equal(admitted.copy_count, 1);
	cache_free(box.cache, request.tables);
	assert_int_equal(pool_refs(pool, 0, admitted.moves[0].target), 1);
	assert_int_equal(pool_refs(pool, 0, admitted.moves[0].source), 2);
	assert_false(cache_clear_device(box.cache));
	cache_moved(box.cache, &admitted.moves[0]);
	assert_int_equal(pool_unbound(pool), 1);
	assert_true(cache_clear_device(box.cache));
	box_close(&box);
}

/* The copy is charged like any block, and its source is no room for it. */
static void a_tail_whose_copy_does_not_fit_is_refused(void **state)
{
	const struct demand   none = demand_dense(0, 0);
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;
	struct tail           tail;

	(void)state;
	box_open(&box, 8, 3, 0, (struct group_spec[BOX_GROUPS]){ BOX_FULL(8, 1) });
	tail = publish_tail(&box);
	probe_tail(&box, &request, 2, &tail, 1);
	assert_int_equal(request.probe.device_tokens, tail_tokens);
	assert_int_equal(box_admit(&box, &request, &none, true, NULL, &admitted), KVS_E_FULL);
	assert_int_equal(cache_clear_device(box.cache), true);
	box_close(&box);
}

/* On Host only: loads into blocks of the request's own, no copies. */
static void a_tail_on_host_is_loaded_into_private_blocks(void **state)
{
	const struct tail     tail = { 14, box_hash(1000) };
	struct cell_name      name = { NULL, &tail.hash, 0, 0 };
	const struct demand   none = demand_dense(0, 0);
	struct box            box;
	struct box_request    request;
	struct cache_admitted admitted;
	struct cell_view      view;
	uint32_t              i;

	(void)state;
	box_open(&box, 8, 8, 8, (struct group_spec[BOX_GROUPS]){ BOX_FULL(4, 1) });
	name.space = &box.space;
	box_put(&box, 0, 0, 1);
	for (; name.offset < 2; name.offset++) {
		const uint32_t block = cache_host_acquire(box.cache, 0);

		cache_host_publish(box.cache, &name, block, CELL_ENDPOINT);
	}
	probe_tail(&box, &request, 2, &tail, 1);
	assert_int_equal(request.probe.device_tokens, 8);
	assert_int_equal(request.probe.host_tokens, 14);
	assert_int_equal(box_admit(&box, &request, &none, true, NULL, &admitted), 0);
	assert_int_equal(admitted.load_count, 2);
	assert_int_equal(admitted.copy_count, 0);
	assert_int_equal(admitted.moves[0].tokens, 4);
	assert_int_equal(admitted.moves[1].tokens, 2);
	assert_int_equal(request.tables[0].available, 2);
	for (i = 0; i < 2; i++) {
		assert_true(admitted.moves[i].from_host);
		assert_false(cache_view(box.cache, STRATUM_DEVICE, 0, admitted.moves[i].target, &view));
		cache_moved(box.cache, &admitted.moves[i]);
	}
	cache_free(box.cache, request.tables);
	box_close(&box);
}

static void the_longest_legal_boundary_wins_tail_or_page(void **state)
{
	struct box         box;
	struct box_request request;
	struct tail        tails[2];

	(void)state;
	box_open(&box, 8, 32, 0, (struct group_spec[BOX_GROUPS]){ BOX_FULL(4, 1) });
	tails[1] = publish_tail(&box);
	tails[0] = (struct tail){ 23, box_hash(2000) }; /* nobody has it */
	probe_tail(&box, &request, 2, tails, 2);
	assert_int_equal(request.probe.device_tokens, 22);
	box_put(&box, 0, 2, 3);
	probe_tail(&box, &request, 3, tails, 2);
	assert_int_equal(request.probe.device_tokens, 24);
	/* A tail says nothing about the pages before it. */
	assert_true(cache_clear_device(box.cache));
	tails[1] = publish_tail(&box);
	{
		const struct cache_prompt other = { &box.space, &box.hashes[5], 2, &tails[1], 1 };

		assert_int_equal(cache_probe(box.cache, &other, PROBE_ALL, &request.probe, NULL), 0);
		assert_int_equal(request.probe.device_tokens, 0);
	}
	box_close(&box);
}

static void a_prompt_that_cannot_be_meant_is_refused(void **state)
{
	const struct tail       tails[] = { { 5, box_hash(1) }, { 6, box_hash(2) } };
	const struct tail       whole = { 8, box_hash(1) }, far = { 13, box_hash(1) };
	struct box              box;
	struct cache_probe      probe = { .version = 99 };
	struct cache_prompt     prompts[4];
	static const char *const words[] = { "page_count: 33", "tails[0].tokens: 8",
					     "tails[0].tokens: 13", "tails[1].tokens: 6 after 5" };
	uint32_t                i;

	(void)state;
	box_open(&box, 4, 4, 0, one_full);
	prompts[0] = (struct cache_prompt){ &box.space, box.hashes, BOX_PAGES + 1, NULL, 0 };
	prompts[1] = (struct cache_prompt){ &box.space, box.hashes, 2, &whole, 1 };
	prompts[2] = (struct cache_prompt){ &box.space, box.hashes, 2, &far, 1 };
	prompts[3] = (struct cache_prompt){ &box.space, box.hashes, 2, tails, 2 };
	for (i = 0; i < ARRAY_COUNT(prompts); i++) {
		assert_int_equal(cache_probe(box.cache, &prompts[i], PROBE_ALL, &probe, &box.err),
				 KVS_E_INVALID);
		assert_non_null(strstr(box.err.message, words[i]));
		assert_int_equal(probe.version, 99);
	}
	box_close(&box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_boundary_is_one_that_all_groups_support),
		cmocka_unit_test(what_the_boundary_cuts_off_is_not_touched),
		cmocka_unit_test(a_hit_in_a_window_leaves_holes_before_it),
		cmocka_unit_test(full_history_beyond_the_boundary_is_worth_promoting),
		cmocka_unit_test(host_takes_part_in_promotion),
		cmocka_unit_test(host_brings_only_what_device_lacks),
		cmocka_unit_test(a_tail_is_copied_because_the_request_writes_behind_it),
		cmocka_unit_test(a_request_may_end_before_its_copies_do),
		cmocka_unit_test(a_tail_whose_copy_does_not_fit_is_refused),
		cmocka_unit_test(a_tail_on_host_is_loaded_into_private_blocks),
		cmocka_unit_test(the_longest_legal_boundary_wins_tail_or_page),
		cmocka_unit_test(a_prompt_that_cannot_be_meant_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
