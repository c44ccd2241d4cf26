/* SPDX-License-Identifier: Apache-2.0 */
/* What a store is told that cannot be, and a cluster that is not there when it opens. */
#include "mooring.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MIB (1u << 20)

static void start(struct cluster *cluster)
{
	if (!cluster_is_installed())
		skip();
	cluster_start(cluster, &(struct cluster_options){ .providers = 1 });
}

/* Opening fails, with a sentence that has these words; nothing of it is left. */
static int refused(const char *spec, const char *words)
{
	struct kvs_store *store = NULL;
	struct kvs_error  err = { 0 };
	const int         rc = store_open(spec, 65536, "lru", &store, &err);
	pid_t             left;

	if (rc == 0)
		fail_msg("%s: opened", spec);
	assert_null(store);
	assert_int_equal(err.code, rc);
	if (!strstr(err.message, words) || strchr(err.message, '\n'))
		fail_msg("%s: %s", spec, err.message);
	assert_int_equal(agents_find(getpid(), &left, 1), 0);
	return rc;
}

static int refused_with(const struct cluster *cluster, const char *options, const char *words)
{
	char spec[MOORING_SPEC_MAX];

	mooring_spec(cluster, options, spec);
	return refused(spec, words);
}

static void what_cannot_be_is_refused_by_field(void **state)
{
	struct cluster cluster;

	(void)state;
	start(&cluster);
	assert_int_equal(refused_with(&cluster, "protocol=pigeon", "protocol"), KVS_E_INVALID);
	assert_int_equal(refused_with(&cluster, "global_segment_size=much", "global_segment_size"),
			 KVS_E_INVALID);
	assert_int_equal(refused_with(&cluster, "global_segment_size=1", "global_segment_size"),
			 KVS_E_INVALID);
	assert_int_equal(refused_with(&cluster, "timeout=soon", "timeout"), KVS_E_INVALID);
	assert_int_equal(refused_with(&cluster, "lanes=0", "lanes"), KVS_E_INVALID);
	assert_int_equal(refused_with(&cluster, "prefix=a*b", "prefix"), KVS_E_INVALID);
	assert_int_equal(refused_with(&cluster, "colour=red", "colour"), KVS_E_INVALID);
	/* None of it troubled the cluster. */
	assert_int_equal(cluster_gauge(&cluster, "master_key_count"), 0);
	cluster_stop(&cluster);
}

static void an_interpreter_without_the_wheel_is_named(void **state)
{
	char spec[MOORING_SPEC_MAX];

	(void)state;
	if (!cluster_is_installed())
		skip();
	/* Without the environment's packages. */
	snprintf(spec, sizeof(spec), "mooncake:127.0.0.1:1?python=/usr/bin/python3&agent=%s", AGENT_PATH);
	refused(spec, "127.0.0.1:1");
	snprintf(spec, sizeof(spec), "mooncake:127.0.0.1:1?python=/no/python&agent=%s", AGENT_PATH);
	assert_int_equal(refused(spec, "python"), KVS_E_INVALID);
}

static void a_master_that_is_away_is_an_error_at_open(void **state)
{
	struct cluster cluster;

	(void)state;
	start(&cluster);
	cluster_kill_master(&cluster);
	assert_true(refused_with(&cluster, "connect_timeout=3s", "master") < 0);
	cluster_stop(&cluster);
}

/* It takes the connection and never answers: the limit ends that. */
static void a_master_that_stands_still_is_an_error_at_open(void **state)
{
	struct cluster cluster;

	(void)state;
	start(&cluster);
	cluster_pause(cluster.master);
	assert_true(refused_with(&cluster, "connect_timeout=2s", "") < 0);
	cluster_resume(cluster.master);
	cluster_stop(&cluster);
}

static void a_lazy_store_finds_a_master_that_comes_later(void **state)
{
	struct kvs_store_info info;
	struct cluster        cluster;
	struct mooring        mooring;

	(void)state;
	start(&cluster);
	cluster_kill_master(&cluster);
	mooring_open(&mooring, &cluster, "connect=lazy&connect_timeout=1s", 65536, 2 * MIB);
	mooring.store->ops->describe(mooring.store, &info);
	assert_true(info.away);
	cluster_start_master(&cluster);
	mooring_await_well(&mooring, 1);
	mooring.store->ops->describe(mooring.store, &info);
	assert_false(info.away);
	mooring_round_trip(&mooring, 100, 16, 65536);
	mooring_close(&mooring);
	cluster_stop(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_is_refused_by_field),
		cmocka_unit_test(an_interpreter_without_the_wheel_is_named),
		cmocka_unit_test(a_master_that_is_away_is_an_error_at_open),
		cmocka_unit_test(a_master_that_stands_still_is_an_error_at_open),
		cmocka_unit_test(a_lazy_store_finds_a_master_that_comes_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
