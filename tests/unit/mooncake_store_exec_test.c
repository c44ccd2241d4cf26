/* SPDX-License-Identifier: Apache-2.0 */
/* The Mooncake store below a real executor: what its answers mean for health, quarantine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/exec.h"
#include "named_block.h"
#include "wharf.h"

#define FOREVER_NS UINT64_MAX
#define ROWS 6u

static const struct exec_options options = {
	.limits = { .outstanding_max = 16, .queue_max = 16, .lock_max = 16 },
	.workers = { 1, 1, 1 }
};

struct site {
	struct wharf   *wharf;
	struct exec    *exec;
	struct kvs_key  keys[ROWS];
	struct kvs_span spans[ROWS];
	uint64_t        op_id;
};

static void site_open(struct site *site, struct wharf *wharf)
{
	struct kvs_error err;
	uint32_t         i;

	*site = (struct site){ .wharf = wharf };
	for (i = 0; i < ROWS; i++) {
		site->keys[i] = key_of(i);
		site->spans[i] = wharf_span(wharf, i, 4096);
		fill(site->spans[i].ptr, i, 4096);
	}
	assert_int_equal(exec_open(wharf->store, &options, &site->exec, &err), 0);
}

static void site_close(struct site *site)
{
	assert_int_equal(exec_close(site->exec, FOREVER_NS), 0);
	assert_true(site->wharf->byway.closed);
	site->wharf->store = NULL;
}

static struct fact collect(struct site *site)
{
	struct pressure pressure;
	struct fact     fact;

	while (exec_poll(site->exec, &fact, 1, &pressure) == 0)
		(void)exec_wait(site->exec, FOREVER_NS);
	return fact;
}

static int submit(struct site *site, enum op_kind kind, uint32_t count)
{
	const bool moves = kind == OP_GET || kind == OP_PUT;
	struct op  op = { .op_id = ++site->op_id, .kind = kind, .key_count = count,
			  .keys = site->keys, .spans = moves ? site->spans : NULL };

	op_own_all(&op);
	return exec_submit(site->exec, &op);
}

static struct fact run(struct site *site, enum op_kind kind, uint32_t count)
{
	assert_int_equal(submit(site, kind, count), 0);
	return collect(site);
}

static enum health_state health(struct site *site)
{
	struct exec_stats stats;

	exec_stats(site->exec, &stats);
	return stats.health;
}

/* The byway ends the program when a name comes twice. */
static void equal_keys_of_a_batch_reach_the_way_once(void **state)
{
	struct wharf *const wharf = *state;
	struct site         site;
	struct fact         fact;
	uint32_t            i;

	site_open(&site, wharf);
	for (i = 0; i < ROWS; i++) {
		site.keys[i] = key_of(i % 2);
		fill(site.spans[i].ptr, i % 2, 4096);
	}
	fact = run(&site, OP_PUT, ROWS);
	assert_int_equal(bits_count(fact.ok.words, ROWS), ROWS);
	assert_int_equal(wharf->byway.rows[MOONCAKE_PUT], 2);
	memset(wharf->memory, 0, (size_t)WHARF_SPANS * WHARF_BLOCK);
	fact = run(&site, OP_GET, ROWS);
	assert_true(fact.retired);
	assert_int_equal(bits_count(fact.ok.words, ROWS), ROWS);
	assert_int_equal(wharf->byway.rows[MOONCAKE_GET], 2);
	for (i = 0; i < ROWS; i++)
		assert_true(is_filled(site.spans[i].ptr, i % 2, 4096));
	fact = run(&site, OP_QUERY, ROWS);
	assert_int_equal(bits_count(fact.ok.words, ROWS), ROWS);
	site_close(&site);
}

/* A miss is an answer; so is a refusal for room, and the row is offered again later. */
static void A10_1_misses_and_refusals_are_no_outage(void **state)
{
	struct wharf *const wharf = *state;
	struct site         site;
	struct fact         fact;

	site_open(&site, wharf);
	fact = run(&site, OP_GET, 2);
	assert_true(fact.retired);
	assert_int_equal(fact.reason, OP_REASON_MISS);
	assert_int_equal(bits_count(fact.object_fault.words, 2), 2);
	wharf->cluster.object_max = 1;
	fact = run(&site, OP_PUT, 2);
	assert_true(fact.retired);
	assert_int_equal(fact.reason, OP_REASON_NO_SPACE);
	assert_int_equal(bits_count(fact.ok.words, 2), 1);
	assert_int_equal(health(&site), HEALTH_UP);
	wharf->cluster.object_max = 2;
	fact = run(&site, OP_PUT, 2);
	assert_int_equal(bits_count(fact.ok.words, 2), 2);
	site_close(&site);
}

static void a_pool_without_storage_brings_the_cooldown(void **state)
{
	struct wharf *const wharf = *state;
	struct site         site;
	struct fact         fact;

	wharf->segments = "";
	wharf->cluster.object_max = 0;
	site_open(&site, wharf);
	fact = run(&site, OP_PUT, 1);
	assert_true(fact.retired);
	assert_int_equal(fact.reason, OP_REASON_BACKEND);
	assert_int_not_equal(health(&site), HEALTH_UP);
	site_close(&site);
}

static void a_failed_get_that_retired_is_an_outage_and_no_quarantine(void **state)
{
	struct wharf *const wharf = *state;
	struct site         site;
	struct fact         fact;

	wharf->byway.reaps = true;
	site_open(&site, wharf);
	byway_make_odd(&wharf->byway, &site.keys[0], -800);
	fact = run(&site, OP_GET, 1);
	assert_true(fact.retired);
	assert_int_equal(fact.reason, OP_REASON_BACKEND);
	assert_int_equal(bits_count(fact.object_fault.words, 1), 0);
	assert_int_not_equal(health(&site), HEALTH_UP);
	site_close(&site);
}

/* One generic negative code: nothing more is taken, and nothing is closed, until the way has settled. */
static void A10_1_what_proves_nothing_is_a_quarantine(void **state)
{
	struct wharf *const wharf = *state;
	struct site         site;
	struct fact         fact;

	wharf->byway.settled = false;
	site_open(&site, wharf);
	byway_make_odd(&wharf->byway, &site.keys[1], -800);
	fact = run(&site, OP_GET, 2);
	assert_false(fact.retired);
	assert_int_equal(submit(&site, OP_QUERY, 1), KVS_E_QUARANTINE);
	assert_int_equal(exec_close(site.exec, 1), KVS_E_QUARANTINE);
	assert_false(wharf->byway.closed);
	wharf->byway.settled = true;
	site_close(&site);
}

/* Where the master has never answered, the executor begins in cooldown. */
static void a_store_that_is_away_begins_in_cooldown(void **state)
{
	struct wharf *const wharf = *state;
	struct site         site;

	wharf->byway.info.reached = false;
	site_open(&site, wharf);
	assert_int_not_equal(health(&site), HEALTH_UP);
	site_close(&site);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, wharf_setup, wharf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(equal_keys_of_a_batch_reach_the_way_once),
		TEST(A10_1_misses_and_refusals_are_no_outage),
		TEST(a_pool_without_storage_brings_the_cooldown),
		TEST(a_failed_get_that_retired_is_an_outage_and_no_quarantine),
		TEST(A10_1_what_proves_nothing_is_a_quarantine),
		TEST(a_store_that_is_away_begins_in_cooldown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
