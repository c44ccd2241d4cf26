/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster does what tests ask of it, by the master's own word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cluster.h"
#include "hail.h"

static void start(struct cluster *cluster, const struct cluster_options *options)
{
	if (!cluster_is_installed())
		skip();
	cluster_start(cluster, options);
}

static void a_cluster_has_the_segments_of_its_providers(void **state)
{
	struct cluster cluster;

	(void)state;
	start(&cluster, &(struct cluster_options){ .providers = 2, .segment_mib = 32 });
	assert_int_equal(cluster_segments(&cluster), 2);
	assert_int_equal(cluster_gauge(&cluster, "master_total_capacity_bytes"), 64 << 20);
	assert_int_equal(cluster_gauge(&cluster, "master_key_count"), 0);
	cluster_stop(&cluster);
}

static void a_cluster_may_have_no_provider(void **state)
{
	struct cluster cluster;

	(void)state;
	start(&cluster, &(struct cluster_options){ 0 });
	assert_int_equal(cluster_segments(&cluster), 0);
	cluster_stop(&cluster);
}

static void providers_come_back_to_a_new_master(void **state)
{
	struct cluster cluster;
	char           text[64];

	(void)state;
	start(&cluster, &(struct cluster_options){ .providers = 1 });
	cluster_kill_master(&cluster);
	assert_false(hail(cluster.metrics, "/health", text, sizeof(text)));
	cluster_start_master(&cluster);
	assert_int_equal(cluster_segments(&cluster), 1);
	cluster_stop(&cluster);
}

static void the_master_forgets_a_provider_that_is_gone(void **state)
{
	struct cluster cluster;

	(void)state;
	start(&cluster, &(struct cluster_options){ .providers = 1, .ttl_s = 2 });
	cluster_kill_provider(&cluster, 0);
	cluster_await_segments(&cluster, 0);
	cluster_start_provider(&cluster, 0);
	cluster_await_segments(&cluster, 1);
	cluster_stop(&cluster);
}

static void a_paused_master_is_silent_until_it_goes_on(void **state)
{
	struct cluster cluster;
	char           text[64];

	(void)state;
	start(&cluster, &(struct cluster_options){ .providers = 1 });
	cluster_pause(cluster.master);
	assert_false(hail(cluster.metrics, "/health", text, sizeof(text)));
	cluster_resume(cluster.master);
	cluster_await_segments(&cluster, 1);
	cluster_stop(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cluster_has_the_segments_of_its_providers),
		cmocka_unit_test(a_cluster_may_have_no_provider),
		cmocka_unit_test(providers_come_back_to_a_new_master),
		cmocka_unit_test(the_master_forgets_a_provider_that_is_gone),
		cmocka_unit_test(a_paused_master_is_silent_until_it_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
