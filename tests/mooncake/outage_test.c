/* SPDX-License-Identifier: Apache-2.0 */
/* Masters and providers that die, hang and come back, below a store that stays open. */
#include "mooring.h"

#include <string.h>

#include "os/os.h"

#define MIB (1u << 20)

static void start(struct cluster *cluster, struct mooring *mooring,
		  const struct cluster_options *cluster_options, const char *options)
{
	if (!cluster_is_installed())
		skip();
	cluster_start(cluster, cluster_options);
	mooring_open(mooring, cluster, options, MIB, 32 * MIB);
}

static void stop(struct cluster *cluster, struct mooring *mooring)
{
	mooring_close(mooring);
	cluster_stop(cluster);
}

/* The call did not happen, or no row of it is a success or a miss that somebody could believe. */
static void expect_ordinary_failure(const struct mooring *mooring, int rc)
{
	uint32_t i;

	if (rc < 0)
		return;
	for (i = 0; i < mooring->count; i++) {
		assert_true(mooring->results[i] == KVS_RESULT_FAILED ||
			    mooring->results[i] == KVS_RESULT_UNKNOWN);
	}
}

static void A9_4_ops_fail_while_the_master_is_away_and_work_when_it_is_back(void **state)
{
	struct cluster cluster;
	struct mooring mooring;
	uint32_t       round;

	(void)state;
	start(&cluster, &mooring, &(struct cluster_options){ .providers = 1 }, "timeout=20s");
	mooring_round_trip(&mooring, 0, 16, 4096);
	for (round = 1; round <= 2; round++) {
		cluster_kill_master(&cluster);
		mooring_batch(&mooring, 0, 16, 4096);
		expect_ordinary_failure(&mooring, mooring_get(&mooring));
		assert_true(mooring.retired);
		mooring_batch(&mooring, 1000 * round, 16, 4096);
		expect_ordinary_failure(&mooring, mooring_put(&mooring));
		assert_true(mooring.retired);
		expect_ordinary_failure(&mooring, mooring_exists(&mooring));
		mooring_rest(&mooring);
		cluster_start_master(&cluster);
		mooring_await_well(&mooring, 2000 * round);
		mooring_round_trip(&mooring, 3000 * round, 16, 4096);
	}
	stop(&cluster, &mooring);
}

/* A new master gives the same memory away again: what it forgot must not come back as other bytes. */
static void X1_a_new_masters_objects_are_the_right_ones(void **state)
{
	struct cluster cluster;
	struct mooring mooring;
	uint32_t       i;

	(void)state;
	start(&cluster, &mooring, &(struct cluster_options){ .providers = 1 }, NULL);
	mooring_round_trip(&mooring, 0, 256, 65536);
	cluster_kill_master(&cluster);
	cluster_start_master(&cluster);
	mooring_await_well(&mooring, 10000);
	mooring_round_trip(&mooring, 20000, 256, 65536);
	mooring_batch(&mooring, 0, 256, 65536);
	assert_int_equal(mooring_get(&mooring), 0);
	mooring_expect_payloads(&mooring);
	for (i = 0; i < 256; i++)
		assert_true(mooring.results[i] != KVS_RESULT_DONE);
	mooring_rest(&mooring);
	stop(&cluster, &mooring);
}

/* --- providers ---------------------------------------------------------------------------------- */

struct killer {
	struct cluster *cluster;
	struct mooring *mooring;
	pthread_t       thread;
};

/* As soon as bytes of the get under way have come. */
static void *kill_in_the_middle(void *arg)
{
	struct killer *const         killer = arg;
	const volatile uint8_t *const first = killer->mooring->slice.ptr;

	while (*first == 0xa5)
		sched_yield();
	cluster_kill_provider(killer->cluster, 0);
	return NULL;
}

static void a_provider_that_dies_amid_a_get_costs_a_failure_and_no_byte(void **state)
{
	struct cluster cluster;
	struct mooring mooring;
	struct killer  killer = { &cluster, &mooring, 0 };

	(void)state;
	start(&cluster, &mooring,
	      &(struct cluster_options){ .providers = 1, .ttl_s = 5, .segment_mib = 64 }, NULL);
	mooring_round_trip(&mooring, 0, 28, MIB - 4096);
	/* The first byte of the first payload tells when; it is not the pattern. */
	assert_true((uint8_t)word_of(0, 0) != 0xa5);
	mooring_batch(&mooring, 0, 28, MIB - 4096);
	mooring_rest(&mooring);
	assert_int_equal(pthread_create(&killer.thread, NULL, kill_in_the_middle, &killer), 0);
	(void)mooring_get(&mooring);
	pthread_join(killer.thread, NULL);
	assert_true(mooring.retired);
	mooring_expect_payloads(&mooring);
	assert_int_equal(mooring_count(&mooring, KVS_RESULT_CORRUPT), 0);
	mooring_rest(&mooring);

	cluster_await_segments(&cluster, 0);
	cluster_start_provider(&cluster, 0);
	cluster_await_segments(&cluster, 1);
	mooring_await_well(&mooring, 5000);
	mooring_round_trip(&mooring, 6000, 16, 65536);
	stop(&cluster, &mooring);
}

static void a_pool_without_a_provider_is_no_full_pool(void **state)
{
	struct cluster        cluster;
	struct mooring        mooring;
	struct kvs_store_info info;

	(void)state;
	start(&cluster, &mooring, &(struct cluster_options){ 0 }, NULL);
	mooring_batch(&mooring, 0, 4, 4096);
	assert_int_equal(mooring_put(&mooring), 0);
	assert_true(mooring.retired);
	mooring_expect(&mooring, KVS_RESULT_FAILED);
	mooring.store->ops->describe(mooring.store, &info);
	assert_non_null(strstr(info.note, "provider"));
	assert_int_equal(info.refused_full, 0);
	/* What is not there is missing all the same. */
	assert_int_equal(mooring_get(&mooring), 0);
	mooring_expect(&mooring, KVS_RESULT_MISSING);
	mooring_rest(&mooring);

	cluster_start_provider(&cluster, 0);
	cluster_await_segments(&cluster, 1);
	mooring_await_well(&mooring, 100);
	stop(&cluster, &mooring);
}

static void a_provider_that_stands_still_is_left_at_the_deadline(void **state)
{
	struct cluster        cluster;
	struct mooring        mooring;
	struct kvs_store_info info;
	uint8_t              *memory;

	(void)state;
	/* The master keeps it: only the deadline ends a call. */
	start(&cluster, &mooring, &(struct cluster_options){ .providers = 1, .ttl_s = 600 },
	      "timeout=1500ms&reap_timeout=60s");
	mooring_round_trip(&mooring, 0, 16, MIB - 4096);
	cluster_pause(cluster.providers[0]);
	mooring_batch(&mooring, 0, 16, MIB - 4096);
	expect_ordinary_failure(&mooring, mooring_get(&mooring));
	mooring.store->ops->describe(mooring.store, &info);
	assert_int_equal(info.death_retires, KVS_DEATH_COPY);
	/* Its agent is dead and reaped: the call did not end before. */
	assert_true(mooring.retired);
	mooring_batch(&mooring, 1000, 16, MIB - 4096);
	expect_ordinary_failure(&mooring, mooring_put(&mooring));
	assert_true(mooring.retired);

	/* What the provider still had to send goes nowhere. */
	memory = mooring.slice.ptr;
	memset(memory, 0x5b, mooring.slice.bytes);
	cluster_resume(cluster.providers[0]);
	mooring_batch(&mooring, 0, 1, 4096);
	assert_true(cluster_segments(&cluster) == 1);
	while (mooring_exists(&mooring) != 0)
		;
	assert_true(memory[0] == 0x5b && memcmp(memory, memory + 1, mooring.slice.bytes - 1) == 0);
	mooring_rest(&mooring);
	mooring_await_well(&mooring, 5000);
	mooring_batch(&mooring, 0, 16, MIB - 4096);
	assert_int_equal(mooring_get(&mooring), 0);
	mooring_expect(&mooring, KVS_RESULT_DONE);
	mooring_expect_payloads(&mooring);
	mooring_rest(&mooring);
	stop(&cluster, &mooring);
}

static bool has_settled(void *arg)
{
	const struct mooring *const mooring = arg;

	return mooring->store->ops->settled(mooring->store);
}

/* Who does not wait for the agent's end is told of it later, and nothing lands after that. */
static void X2_what_was_in_doubt_is_settled_by_the_end_of_its_agent(void **state)
{
	struct cluster cluster;
	struct mooring mooring;

	(void)state;
	start(&cluster, &mooring, &(struct cluster_options){ .providers = 1, .ttl_s = 600 },
	      "timeout=1500ms&reap_timeout=0ms");
	mooring_round_trip(&mooring, 0, 16, MIB - 4096);
	cluster_pause(cluster.providers[0]);
	mooring_batch(&mooring, 0, 16, MIB - 4096);
	expect_ordinary_failure(&mooring, mooring_get(&mooring));
	assert_true(cluster_await(has_settled, &mooring));
	mooring_rest(&mooring);
	cluster_resume(cluster.providers[0]);
	mooring_await_well(&mooring, 5000);
	mooring_round_trip(&mooring, 6000, 16, 65536);
	mooring_expect_rest(&mooring);
	stop(&cluster, &mooring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A9_4_ops_fail_while_the_master_is_away_and_work_when_it_is_back),
		cmocka_unit_test(X1_a_new_masters_objects_are_the_right_ones),
		cmocka_unit_test(a_provider_that_dies_amid_a_get_costs_a_failure_and_no_byte),
		cmocka_unit_test(a_pool_without_a_provider_is_no_full_pool),
		cmocka_unit_test(a_provider_that_stands_still_is_left_at_the_deadline),
		cmocka_unit_test(X2_what_was_in_doubt_is_settled_by_the_end_of_its_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
