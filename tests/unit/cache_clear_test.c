/* SPDX-License-Identifier: Apache-2.0 */
/* How names go: all at once by a clear, or one by one where a block is needed; and what they bind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "death.h"
#include "lab.h"

#define DEVICE STRATUM_DEVICE
#define HOST   STRATUM_HOST

/* --- clearing --------------------------------------------------------------------------------- */

static const struct lab_model two_strata = { 4, 8, 8, { LAB_FULL(4, 1) } };

static void expect_tokens(struct lab *lab, uint64_t device_tokens, uint64_t host_tokens)
{
	lab_probe(lab, 2);
	assert_int_equal(lab->probe.device_tokens, device_tokens);
	assert_int_equal(lab->probe.host_tokens, host_tokens);
}

static void clearing_device_leaves_host(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab, &two_strata);
	lab_fill(&lab, DEVICE, 0, "xx");
	lab_fill(&lab, HOST, 0, "x");
	expect_tokens(&lab, 8, 8);
	assert_true(cache_clear_device(lab.cache));
	expect_tokens(&lab, 0, 4);
	assert_int_equal(lab.removed, 2);
	assert_int_equal(lab_empty(&lab, DEVICE), 8);
	assert_int_equal(lab_empty(&lab, HOST), 7);
	lab_close(&lab);
}

static void clearing_all_leaves_nothing(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab, &two_strata);
	lab_fill(&lab, DEVICE, 0, "xx");
	lab_fill(&lab, HOST, 0, "xx");
	assert_true(cache_clear(lab.cache));
	expect_tokens(&lab, 0, 0);
	assert_int_equal(lab_empty(&lab, DEVICE), 8);
	assert_int_equal(lab_empty(&lab, HOST), 8);
	assert_true(cache_clear(lab.cache));
	lab_close(&lab);
}

/* A clear is refused whole: one held block keeps all the others too. */
static void expect_refused_while_pinned(struct lab *lab, enum stratum_id stratum,
					bool (*clear)(struct cache *cache))
{
	const uint32_t block = lab_block(lab, stratum, 0, 0);
	uint64_t       digest;

	assert_int_equal(cache_pin(lab->cache, stratum, 0, block), 2);
	digest = lab_digest(lab);
	assert_false(clear(lab->cache));
	lab_audit(lab);
	assert_int_equal(lab_digest(lab), digest);
	assert_int_equal(cache_unpin(lab->cache, stratum, 0, block), 1);
}

static void a_clear_with_a_held_block_is_refused_whole(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab, &two_strata);
	lab_fill(&lab, DEVICE, 0, "xx");
	lab_fill(&lab, HOST, 0, "xx");
	expect_refused_while_pinned(&lab, DEVICE, cache_clear_device);
	expect_tokens(&lab, 8, 8);
	expect_refused_while_pinned(&lab, DEVICE, cache_clear);
	expect_refused_while_pinned(&lab, HOST, cache_clear);
	assert_true(cache_clear_device(lab.cache));
	assert_true(cache_clear(lab.cache));
	expect_tokens(&lab, 0, 0);
	lab_close(&lab);
}

/* Device alone may be cleared while Host is read. */
static void clearing_device_does_not_ask_host(void **state)
{
	struct lab lab;
	uint32_t   block;

	(void)state;
	lab_open(&lab, &two_strata);
	lab_fill(&lab, DEVICE, 0, "x");
	lab_fill(&lab, HOST, 0, "x");
	block = lab_block(&lab, HOST, 0, 0);
	cache_pin(lab.cache, HOST, 0, block);
	assert_true(cache_clear_device(lab.cache));
	expect_tokens(&lab, 0, 4);
	cache_unpin(lab.cache, HOST, 0, block);
	lab_close(&lab);
}

static void a_private_block_of_device_does_not_hinder_a_clear(void **state)
{
	const struct lab_step step = lab_tokens(4);
	struct lab_request    request;
	struct lab            lab;

	(void)state;
	lab_open(&lab, &two_strata);
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	lab_prompt(&lab, 1, 0);
	lab_fill(&lab, DEVICE, 0, "x");
	assert_true(cache_clear(lab.cache));
	lab_expect_table(&lab, &request, 0, "x");
	assert_int_equal(lab_empty(&lab, DEVICE), 7);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* It is the target of a copy or of a read, and will be published when that has ended. */
static void a_private_block_of_host_hinders_a_full_clear_alone(void **state)
{
	struct lab lab;
	uint32_t   block;
	uint64_t   digest;

	(void)state;
	lab_open(&lab, &two_strata);
	lab_fill(&lab, DEVICE, 0, "xx");
	lab_fill(&lab, HOST, 0, "xx");
	block = cache_host_acquire(lab.cache, 0);
	digest = lab_digest(&lab);
	assert_false(cache_clear(lab.cache));
	lab_audit(&lab);
	assert_int_equal(lab_digest(&lab), digest);
	assert_true(cache_clear_device(lab.cache));
	assert_int_equal(cache_unpin(lab.cache, HOST, 0, block), 0);
	assert_true(cache_clear(lab.cache));
	lab_close(&lab);
}

/* --- names and parents ------------------------------------------------------------------------ */

/* One parent of two blocks. */
static const struct lab_model one_parent = { 4, 1, 0, { LAB_FULL(4, 2) } };

static void a_name_alone_keeps_its_block(void **state)
{
	struct lab lab;

	(void)state;
	lab_open(&lab, &one_parent);
	lab_fill(&lab, DEVICE, 0, "x");
	assert_int_equal(pool_used(cache_pool(lab.cache, DEVICE), 1), 1);
	assert_true(lab_view(&lab, DEVICE, 0, 0).idle);
	assert_int_equal(cache_available(lab.cache), 1);
	lab_close(&lab);
}

static void a_block_without_a_name_is_not_evicted(void **state)
{
	struct lab_step    step = lab_tokens(4);
	struct lab_request first, second;
	struct lab         lab;

	(void)state;
	lab_open(&lab, &one_parent);
	lab_begin(&lab, &first);
	lab_admit(&lab, &first, &step);
	assert_int_equal(cache_available(lab.cache), 0);
	lab_begin(&lab, &second);
	step = lab_tokens(8);
	lab_refuse(&lab, &second, &step, KVS_E_FULL);
	lab_free(&lab, &first);
	lab_admit(&lab, &second, &step);
	lab_free(&lab, &second);
	lab_close(&lab);
}

/* Prompts 0 and 1 have a page each; the first is the older. */
static void fill_two_prompts(struct lab *lab)
{
	lab_prompt(lab, 0, 0);
	lab_fill(lab, DEVICE, 0, "x");
	lab_prompt(lab, 1, 0);
	lab_fill(lab, DEVICE, 0, "x");
}

static void the_sibling_of_an_evicted_block_stays(void **state)
{
	const struct lab_step step = lab_tokens(4);
	struct lab_request    request;
	struct lab            lab;
	uint32_t              sibling;

	(void)state;
	lab_open(&lab, &one_parent);
	fill_two_prompts(&lab);
	sibling = lab_block(&lab, DEVICE, 0, 0);
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	assert_int_equal(lab_block(&lab, DEVICE, 0, 0), sibling);
	lab_prompt(&lab, 0, 0);
	lab_expect_held(&lab, DEVICE, 0, "");
	assert_int_equal(lab.removed, 1);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void a_parent_is_rebound_when_all_its_names_are_gone(void **state)
{
	static const struct lab_model model = { 4, 1, 0, { LAB_FULL(4, 2), LAB_FULL(4, 8) } };
	struct lab_step               step = lab_tokens(0);
	struct lab_request            request;
	struct lab                    lab;
	uint32_t                      group = UINT32_MAX;

	(void)state;
	lab_open(&lab, &model);
	fill_two_prompts(&lab);
	lab_begin(&lab, &request);
	step.demands[0].tokens = 4;
	lab_admit(&lab, &request, &step);
	lab_free(&lab, &request);
	assert_true(pool_bound(cache_pool(lab.cache, DEVICE), 1, &group));
	assert_int_equal(group, 0);
	lab_expect_held(&lab, DEVICE, 0, "x"); /* prompt 1's */

	lab_begin(&lab, &request);
	step = lab_tokens(0);
	step.demands[1].tokens = 32;
	lab_admit(&lab, &request, &step);
	assert_true(pool_bound(cache_pool(lab.cache, DEVICE), 1, &group));
	assert_int_equal(group, 1);
	lab_expect_table(&lab, &request, 1, "xxxxxxxx");
	lab_expect_held(&lab, DEVICE, 0, "");
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* Two parents of two blocks: the third table gives its block back and shares the first one's. */
static void a_name_that_is_given_again_only_gets_a_new_epoch(void **state)
{
	struct lab_model model = one_parent;
	struct lab       lab;
	uint32_t         block;
	uint64_t         epoch;

	(void)state;
	model.device = 2;
	lab_open(&lab, &model);
	fill_two_prompts(&lab);
	lab_prompt(&lab, 0, 0);
	block = lab_block(&lab, DEVICE, 0, 0);
	assert_int_equal(lab_view(&lab, DEVICE, 0, 0).epoch, 1);
	epoch = lab_run(&lab, 4, CELL_ENDPOINT);
	assert_int_equal(epoch, 3);
	assert_int_equal(lab_block(&lab, DEVICE, 0, 0), block);
	assert_int_equal(lab_view(&lab, DEVICE, 0, 0).epoch, 3);
	assert_int_equal(lab_view(&lab, DEVICE, 0, 0).kind, CELL_ENDPOINT);
	assert_int_equal(lab_published(&lab, DEVICE, 0), 2);
	assert_int_equal(pool_used(cache_pool(lab.cache, DEVICE), 1), 2);
	assert_int_equal(lab_empty(&lab, DEVICE), 1);
	assert_int_equal(lab.inserted, 2);
	lab_close(&lab);
}

/* --- mistakes --------------------------------------------------------------------------------- */

static struct cache_move row;

static void close_it(void *lab)
{
	cache_close(((struct lab *)lab)->cache);
}

static void move_twice(void *lab)
{
	cache_moved(((struct lab *)lab)->cache, &row);
	cache_moved(((struct lab *)lab)->cache, &row);
}

static void publish_without_a_kind(void *lab)
{
	const struct cell_name name = lab_name(lab, 0, 1);
	struct cache *const    cache = ((struct lab *)lab)->cache;

	cache_host_publish(cache, &name, cache_host_acquire(cache, 0), CELL_NONE);
}

/* A table that holds a block, then only a row that does. */
static void mistakes_are_panics(void **state)
{
	void (*const mistakes[])(void *) = { close_it, move_twice, publish_without_a_kind };
	struct lab_request request;
	struct lab_rows    rows;
	struct lab         lab;
	size_t             i;

	(void)state;
	lab_open(&lab, &two_strata);
	lab_fill(&lab, HOST, 0, "x");
	rows = lab_claim(&lab, &request, 1, 0);
	row = rows.row[0];
	assert_true(death_panics(close_it, &lab, NULL, 0));
	lab_free(&lab, &request);
	for (i = 0; i < ARRAY_COUNT(mistakes); i++)
		assert_true(death_panics(mistakes[i], &lab, NULL, 0));
	lab_moved(&lab, &rows);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clearing_device_leaves_host),
		cmocka_unit_test(clearing_all_leaves_nothing),
		cmocka_unit_test(a_clear_with_a_held_block_is_refused_whole),
		cmocka_unit_test(clearing_device_does_not_ask_host),
		cmocka_unit_test(a_private_block_of_device_does_not_hinder_a_clear),
		cmocka_unit_test(a_private_block_of_host_hinders_a_full_clear_alone),
		cmocka_unit_test(a_name_alone_keeps_its_block),
		cmocka_unit_test(a_block_without_a_name_is_not_evicted),
		cmocka_unit_test(the_sibling_of_an_evicted_block_stays),
		cmocka_unit_test(a_parent_is_rebound_when_all_its_names_are_gone),
		cmocka_unit_test(a_name_that_is_given_again_only_gets_a_new_epoch),
		cmocka_unit_test(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
