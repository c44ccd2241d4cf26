/* SPDX-License-Identifier: Apache-2.0 */
/* What the client library in this process does to it, and what its failures do not prove. */
#include "mooring.h"

#include <signal.h>
#include <string.h>

#define MIB (1u << 20)

static void start(struct cluster *cluster, struct mooring *mooring, const char *options)
{
	if (!cluster_is_installed())
		skip();
	cluster_start(cluster, &(struct cluster_options){ .providers = 1, .ttl_s = 600 });
	mooring_open(mooring, cluster, options, MIB, 32 * MIB);
}

/* The library blocks signals of whoever creates its client. */
static void the_openers_signals_are_left_alone(void **state)
{
	struct cluster cluster;
	struct mooring mooring;
	sigset_t       before, after;

	(void)state;
	sigprocmask(SIG_SETMASK, NULL, &before);
	start(&cluster, &mooring, NULL);
	sigprocmask(SIG_SETMASK, NULL, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	mooring_round_trip(&mooring, 0, 16, 65536);
	mooring_close(&mooring);
	cluster_stop(&cluster);
}

/* Nobody can kill a thread: the doubt stands, and so does the store, when the process ends. */
static void A10_1_a_code_that_proves_nothing_is_never_taken_back(void **state)
{
	struct cluster cluster;
	struct mooring mooring;

	(void)state;
	start(&cluster, &mooring, NULL);
	mooring_round_trip(&mooring, 0, 16, MIB - 4096);
	cluster_kill_provider(&cluster, 0);
	mooring_batch(&mooring, 0, 16, MIB - 4096);
	assert_int_equal(mooring_get(&mooring), 0);
	mooring_expect(&mooring, KVS_RESULT_FAILED);
	assert_false(mooring.retired);
	assert_false(mooring.store->ops->settled(mooring.store));
	assert_int_equal(mooring.store->ops->close(mooring.store), KVS_E_QUARANTINE);
	cluster_stop(&cluster);
}

/* A call that the master keeps waiting is left at the limit; its lane comes back with its answer. */
static void a_hung_lookup_is_left_and_its_lane_comes_back(void **state)
{
	struct cluster cluster;
	struct mooring mooring;

	(void)state;
	start(&cluster, &mooring, "timeout=500ms");
	mooring_round_trip(&mooring, 0, 4, 65536);
	cluster_pause(cluster.master);
	mooring_batch(&mooring, 100, 4, 65536);
	assert_int_equal(mooring_exists(&mooring), 0);
	mooring_expect(&mooring, KVS_RESULT_FAILED);
	cluster_resume(cluster.master);
	mooring_await_well(&mooring, 1000);
	assert_true(mooring.store->ops->settled(mooring.store));
	mooring_close(&mooring);
	cluster_stop(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_openers_signals_are_left_alone),
		cmocka_unit_test(a_hung_lookup_is_left_and_its_lane_comes_back),
		cmocka_unit_test(A10_1_a_code_that_proves_nothing_is_never_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
