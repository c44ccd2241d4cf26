/* SPDX-License-Identifier: Apache-2.0 */
/* A pool with no room: refused for a while, offered again; and lookups that must not make it so. */
#include "mooring.h"

#define MIB (1u << 20)
#define POOL_MIB 32u
#define OFFERS_MAX 400u

static void start(struct cluster *cluster, struct mooring *mooring, uint32_t lease_ms,
		  const char *options)
{
	if (!cluster_is_installed())
		skip();
	cluster_start(cluster, &(struct cluster_options){ .providers = 1, .segment_mib = POOL_MIB,
							  .lease_ms = lease_ms });
	mooring_open(mooring, cluster, options, MIB, 4 * MIB);
}

static enum kvs_result offer(struct mooring *mooring, uint32_t number)
{
	mooring_batch(mooring, number, 1, MIB - 4096);
	assert_int_equal(mooring_put(mooring), 0);
	assert_true(mooring->retired);
	return mooring->results[0];
}

static bool put_is_done(void *arg)
{
	struct mooring *const mooring = arg;

	assert_int_equal(mooring_put(mooring), 0);
	return mooring->results[0] == KVS_RESULT_DONE;
}

/* Everything that was put, which keeps it from eviction. */
static void look_up_all(struct mooring *mooring, uint32_t count)
{
	uint32_t i;

	mooring->count = count;
	for (i = 0; i < count; i++)
		mooring->keys[i] = key_of(i);
	assert_int_equal(mooring_exists(mooring), 0);
}

static void A10_1_a_full_pool_refuses_and_takes_it_when_leases_have_ended(void **state)
{
	struct cluster        cluster;
	struct mooring        mooring;
	struct kvs_store_info info;
	enum kvs_result       result = KVS_RESULT_DONE;
	uint32_t              i;

	(void)state;
	start(&cluster, &mooring, 4000, "probe_max=1024");
	for (i = 0; i < OFFERS_MAX && result == KVS_RESULT_DONE; i++) {
		result = offer(&mooring, i);
		look_up_all(&mooring, i + 1);
	}
	assert_int_equal(result, KVS_RESULT_NO_SPACE);
	mooring.store->ops->describe(mooring.store, &info);
	assert_true(info.refused_full >= 1);
	mooring_batch(&mooring, i - 1, 1, MIB - 4096);
	assert_true(cluster_await(put_is_done, &mooring));
	assert_int_equal(mooring_get(&mooring), 0);
	mooring_expect(&mooring, KVS_RESULT_DONE);
	mooring_expect_payloads(&mooring);
	mooring_rest(&mooring);
	mooring_close(&mooring);
	cluster_stop(&cluster);
}

/* Leases do not end here: what all lookups keep together is all that can stay. */
static void lookups_of_everything_leave_a_pool_that_evicts(void **state)
{
	struct cluster cluster;
	struct mooring mooring;
	uint32_t       i;

	(void)state;
	start(&cluster, &mooring, 3600000, "probe_max=8");
	for (i = 0; i < 4 * POOL_MIB; i++) {
		if (offer(&mooring, i) != KVS_RESULT_DONE)
			assert_true(cluster_await(put_is_done, &mooring));
		look_up_all(&mooring, i + 1);
	}
	assert_true(cluster_gauge(&cluster, "master_key_count") <= POOL_MIB);
	mooring_batch(&mooring, i - 1, 1, MIB - 4096);
	assert_int_equal(mooring_get(&mooring), 0);
	mooring_expect(&mooring, KVS_RESULT_DONE);
	mooring_expect_payloads(&mooring);
	mooring_rest(&mooring);
	mooring_close(&mooring);
	cluster_stop(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A10_1_a_full_pool_refuses_and_takes_it_when_leases_have_ended),
		cmocka_unit_test(lookups_of_everything_leave_a_pool_that_evicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
