/* SPDX-License-Identifier: Apache-2.0 */
/* Every byte goes to the cluster and comes back: sizes from 1 byte to 4 MiB, batches of up to 1,024. */
#include "mooring.h"

#define MIB (1u << 20)

struct dock {
	struct cluster cluster;
	struct mooring mooring;
};

static void dock_open(struct dock *dock, const char *options, uint32_t block_bytes,
		      uint64_t memory_bytes)
{
	if (!cluster_is_installed())
		skip();
	cluster_start(&dock->cluster,
		      &(struct cluster_options){ .providers = 1, .segment_mib = 192 });
	mooring_open(&dock->mooring, &dock->cluster, options, block_bytes, memory_bytes);
}

static void dock_close(struct dock *dock)
{
	mooring_close(&dock->mooring);
	cluster_stop(&dock->cluster);
}

static void A9_4_every_size_comes_back(void **state)
{
	const uint32_t sizes[] = { 4096, 16384, 65536, MIB, 4 * MIB };
	struct dock    dock;
	uint32_t       i;

	(void)state;
	dock_open(&dock, NULL, 4 * MIB, 16 * MIB + 65536);
	for (i = 0; i < 5; i++)
		mooring_round_trip(&dock.mooring, 100 * i, 2, sizes[i]);
	dock_close(&dock);
}

static void A9_4_every_length_comes_back(void **state)
{
	const uint32_t sizes[] = { 1, 7, 8, 9, 511, 4095, 4097, 65535, MIB - 1, 4 * MIB - 1 };
	struct dock    dock;
	uint32_t       i;

	(void)state;
	dock_open(&dock, NULL, 4 * MIB, 16 * MIB + 65536);
	for (i = 0; i < 10; i++)
		mooring_round_trip(&dock.mooring, 100 * i, 2, sizes[i]);
	dock_close(&dock);
}

static void A9_4_every_batch_comes_back(void **state)
{
	const uint32_t counts[] = { 1, 2, 16, 64, 1024 };
	struct dock    dock;
	uint32_t       i;

	(void)state;
	dock_open(&dock, NULL, 65536, 80 * MIB);
	for (i = 0; i < 5; i++)
		mooring_round_trip(&dock.mooring, 10000 * i, counts[i], 4096);
	mooring_round_trip(&dock.mooring, 100000, 1024, 65536);
	dock_close(&dock);
}

static void A9_4_without_a_seal_every_length_comes_back(void **state)
{
	struct dock dock;

	(void)state;
	dock_open(&dock, "format=raw", 65536, 2 * MIB);
	mooring_round_trip(&dock.mooring, 0, 16, 4096);
	mooring_round_trip(&dock.mooring, 100, 16, 12345);
	mooring_round_trip(&dock.mooring, 200, 16, 65536);
	dock_close(&dock);
}

/* A batch in which some rows are there and some are not. */
static void rows_have_results_of_their_own(void **state)
{
	struct mooring *mooring;
	struct dock     dock;
	uint32_t        i;

	(void)state;
	dock_open(&dock, NULL, 65536, 2 * MIB);
	mooring = &dock.mooring;
	mooring_batch(mooring, 0, 8, 4096);
	assert_int_equal(mooring_put(mooring), 0);
	mooring_batch(mooring, 4, 8, 4096);
	assert_int_equal(mooring_exists(mooring), 0);
	for (i = 0; i < 8; i++) {
		assert_int_equal(mooring->results[i],
				 i < 4 ? KVS_RESULT_DONE : KVS_RESULT_MISSING);
	}
	assert_int_equal(mooring_get(mooring), 0);
	assert_true(mooring->retired);
	for (i = 0; i < 8; i++) {
		assert_int_equal(mooring->results[i],
				 i < 4 ? KVS_RESULT_DONE : KVS_RESULT_MISSING);
	}
	mooring_expect_payloads(mooring);
	assert_int_equal(mooring_put(mooring), 0);
	for (i = 0; i < 8; i++) {
		assert_true(mooring->results[i] == KVS_RESULT_DONE ||
			    (i < 4 && mooring->results[i] == KVS_RESULT_EXISTS));
	}
	mooring_round_trip(mooring, 12, 8, 4096);
	dock_close(&dock);
}

static void a_second_put_leaves_the_first_value(void **state)
{
	struct mooring *mooring;
	struct dock     dock;

	(void)state;
	dock_open(&dock, NULL, 65536, 2 * MIB);
	mooring = &dock.mooring;
	mooring_round_trip(mooring, 7, 1, 4096);
	/* Another length; the bytes would be seen by it. */
	mooring_batch(mooring, 7, 1, 8192);
	assert_int_equal(mooring_put(mooring), 0);
	assert_true(mooring->results[0] == KVS_RESULT_DONE ||
		    mooring->results[0] == KVS_RESULT_EXISTS);
	mooring_batch(mooring, 7, 1, 4096);
	assert_int_equal(mooring_get(mooring), 0);
	mooring_expect(mooring, KVS_RESULT_DONE);
	mooring_expect_payloads(mooring);
	mooring_rest(mooring);
	dock_close(&dock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A9_4_every_size_comes_back),
		cmocka_unit_test(A9_4_every_length_comes_back),
		cmocka_unit_test(A9_4_every_batch_comes_back),
		cmocka_unit_test(A9_4_without_a_seal_every_length_comes_back),
		cmocka_unit_test(rows_have_results_of_their_own),
		cmocka_unit_test(a_second_put_leaves_the_first_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
