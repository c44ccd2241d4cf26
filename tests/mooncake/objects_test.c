/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in the cluster: who sees them, who does not, and what is no object of ours. */
#include "mooring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "key/label.h"
#include "redis.h"

#define MIB (1u << 20)
#define PREFIX "kvs"

static void start(struct cluster *cluster)
{
	if (!cluster_is_installed())
		skip();
	cluster_start(cluster, &(struct cluster_options){ .providers = 1 });
}

static void expect_there(struct mooring *mooring, uint32_t first, uint32_t count)
{
	mooring_batch(mooring, first, count, 4096);
	assert_int_equal(mooring_get(mooring), 0);
	mooring_expect(mooring, KVS_RESULT_DONE);
	mooring_expect_payloads(mooring);
	mooring_rest(mooring);
}

static void expect_gone(struct mooring *mooring, uint32_t first, uint32_t count)
{
	mooring_batch(mooring, first, count, 4096);
	assert_int_equal(mooring_get(mooring), 0);
	assert_true(mooring->retired);
	mooring_expect(mooring, KVS_RESULT_MISSING);
	mooring_expect_rest(mooring);
}

/* --- life --------------------------------------------------------------------------------------- */

static void A8_3_objects_outlive_the_store_that_wrote_them(void **state)
{
	struct cluster cluster;
	struct mooring mooring;

	(void)state;
	start(&cluster);
	mooring_open(&mooring, &cluster, NULL, 65536, 2 * MIB);
	mooring_round_trip(&mooring, 0, 64, 4096);
	mooring_close(&mooring);
	mooring_open(&mooring, &cluster, NULL, 65536, 2 * MIB);
	expect_there(&mooring, 0, 64);
	mooring_close(&mooring);
	cluster_stop(&cluster);
}

/* Puts, says so, and waits for its end. */
static void write_until_killed(const struct cluster *cluster, int told)
{
	struct mooring *const mooring = malloc(sizeof(*mooring));

	mooring_open(mooring, cluster, NULL, 65536, 2 * MIB);
	mooring_round_trip(mooring, 0, 64, 4096);
	if (write(told, "w", 1) == 1)
		pause();
	_exit(1);
}

static void A8_3_objects_outlive_a_writer_that_is_killed(void **state)
{
	struct cluster cluster;
	struct mooring mooring;
	int            ends[2];
	char           byte;
	pid_t          writer;

	(void)state;
	if (mooring_is_library()) {
		print_message("# a process that has the client library must not fork\n");
		skip();
	}
	start(&cluster);
	assert_int_equal(pipe(ends), 0);
	writer = fork();
	if (writer == 0)
		write_until_killed(&cluster, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	kill(writer, SIGKILL);
	assert_int_equal(waitpid(writer, NULL, 0), writer);

	mooring_open(&mooring, &cluster, NULL, 65536, 2 * MIB);
	expect_there(&mooring, 0, 64);
	mooring_close(&mooring);
	cluster_stop(&cluster);
}

static void a_removed_object_is_gone(void **state)
{
	struct cluster cluster;
	struct mooring mooring;

	(void)state;
	start(&cluster);
	mooring_open(&mooring, &cluster, NULL, 65536, 2 * MIB);
	mooring_round_trip(&mooring, 0, 4, 4096);
	mooring_batch(&mooring, 1, 2, 4096);
	assert_int_equal(mooring.store->ops->remove(mooring.store, mooring.keys, 2, mooring.results),
			 0);
	mooring_expect(&mooring, KVS_RESULT_DONE);
	assert_int_equal(mooring.store->ops->remove(mooring.store, mooring.keys, 2, mooring.results),
			 0);
	mooring_expect(&mooring, KVS_RESULT_MISSING);
	expect_gone(&mooring, 1, 2);
	expect_there(&mooring, 0, 1);
	expect_there(&mooring, 3, 1);
	mooring_close(&mooring);
	cluster_stop(&cluster);
}

/* --- namespaces, prefixes, tenants --------------------------------------------------------------- */

static void in_namespace(struct mooring *mooring, uint8_t letter)
{
	uint32_t i;

	for (i = 0; i < mooring->count; i++)
		memset(&mooring->keys[i].space, letter, sizeof(mooring->keys[i].space));
}

static void a_purge_leaves_another_namespace(void **state)
{
	struct cluster cluster;
	struct mooring mooring;
	uint64_t       removed = 0;
	uint8_t        letter;

	(void)state;
	start(&cluster);
	mooring_open(&mooring, &cluster, NULL, 65536, 2 * MIB);
	mooring_batch(&mooring, 0, 20, 4096);
	for (letter = 1; letter <= 2; letter++) {
		in_namespace(&mooring, letter);
		assert_int_equal(mooring_put(&mooring), 0);
		mooring_expect(&mooring, KVS_RESULT_DONE);
	}
	assert_int_equal(cluster_gauge(&cluster, "master_key_count"), 40);
	in_namespace(&mooring, 1);
	assert_int_equal(mooring.store->ops->purge(mooring.store, &mooring.keys[0].space, &removed), 0);
	assert_int_equal(removed, 20);
	assert_int_equal(mooring_get(&mooring), 0);
	mooring_expect(&mooring, KVS_RESULT_MISSING);
	in_namespace(&mooring, 2);
	assert_int_equal(mooring_get(&mooring), 0);
	mooring_expect(&mooring, KVS_RESULT_DONE);
	mooring_expect_payloads(&mooring);
	mooring_rest(&mooring);
	mooring_close(&mooring);
	cluster_stop(&cluster);
}

/* The purge of all that is ours is of our prefix, and its dot is no wildcard. */
static void a_purge_leaves_another_prefix(void **state)
{
	struct cluster cluster;
	struct mooring mine, other;
	uint64_t       removed = 0;

	(void)state;
	start(&cluster);
	mooring_open(&mine, &cluster, "prefix=a.b", 65536, 2 * MIB);
	mooring_open(&other, &cluster, "prefix=axb", 65536, 2 * MIB);
	mooring_round_trip(&mine, 0, 10, 4096);
	expect_gone(&other, 0, 10);
	mooring_round_trip(&other, 0, 10, 4096);
	assert_int_equal(mine.store->ops->purge(mine.store, NULL, &removed), 0);
	assert_int_equal(removed, 10);
	expect_gone(&mine, 0, 10);
	expect_there(&other, 0, 10);
	mooring_close(&mine);
	mooring_close(&other);
	cluster_stop(&cluster);
}

/* The master takes tenants that it was told of. */
static void start_with_tenants(struct cluster *cluster)
{
	const char policy[] = "{\"version\": 1, \"tenants\": [{\"name\": \"one\", \"quota\": 33554432}, "
			      "{\"name\": \"two\", \"quota\": 33554432}]}";
	char       path[] = "/tmp/kvstrata-tenants-XXXXXX", flag[96];
	const int  fd = mkstemp(path);

	assert_int_equal(write(fd, policy, strlen(policy)), strlen(policy));
	close(fd);
	snprintf(flag, sizeof(flag), "--tenant_quota_connector_uri=%s", path);
	cluster_start(cluster, &(struct cluster_options){
				       .providers = 1,
				       .flags = { "--enable_multi_tenants=true", flag } });
	unlink(path);
}

static void A9_4_tenants_do_not_see_each_other(void **state)
{
	struct cluster cluster;
	struct mooring mine, other;

	(void)state;
	if (!cluster_is_installed())
		skip();
	if (mooring_is_library()) {
		print_message("# the client library has the default tenant alone\n");
		skip();
	}
	start_with_tenants(&cluster);
	mooring_open(&mine, &cluster, "tenant_id=one", 65536, 2 * MIB);
	mooring_open(&other, &cluster, "tenant_id=two", 65536, 2 * MIB);
	mooring_round_trip(&mine, 0, 16, 4096);
	expect_gone(&other, 0, 16);
	mooring_batch(&other, 0, 16, 4096);
	assert_int_equal(mooring_exists(&other), 0);
	mooring_expect(&other, KVS_RESULT_MISSING);
	/* Under the same names it has objects of its own. */
	mooring_batch(&other, 0, 16, 8192);
	assert_int_equal(mooring_put(&other), 0);
	mooring_expect(&other, KVS_RESULT_DONE);
	assert_int_equal(mooring_get(&other), 0);
	mooring_expect(&other, KVS_RESULT_DONE);
	mooring_expect_payloads(&other);
	mooring_rest(&other);
	expect_there(&mine, 0, 16);
	mooring_close(&mine);
	mooring_close(&other);
	cluster_stop(&cluster);
}

/* --- what is no object of ours ------------------------------------------------------------------- */

static void scribe(const struct cluster *cluster, const char *verb, uint32_t number, const char *bytes)
{
	const struct kvs_key key = key_of(number);
	char                 python[512], master[32], name[LABEL_TEXT_MAX];
	char *const          words[] = { python, SCRIBE_PATH, master, (char *)verb, name,
					 (char *)bytes, NULL };

	cluster_path("bin/python", python);
	snprintf(master, sizeof(master), "127.0.0.1:%s", cluster->port);
	label_text(PREFIX, &key, name);
	assert_true(run_program(words));
}

static void expect_no_data(struct mooring *mooring, uint32_t number, uint32_t bytes,
			   enum kvs_result result)
{
	mooring_batch(mooring, number, 1, bytes);
	assert_int_equal(mooring_exists(mooring), 0);
	mooring_expect(mooring, KVS_RESULT_DONE);
	assert_int_equal(mooring_get(mooring), 0);
	assert_true(mooring->retired);
	mooring_expect(mooring, result);
	mooring_rest(mooring);
}

static void expect_corrupt(struct mooring *mooring, uint32_t number, uint32_t bytes)
{
	expect_no_data(mooring, number, bytes, KVS_RESULT_CORRUPT);
}

/* The client's code for what is longer than the room does not prove what became of the room. */
static void expect_too_long(struct mooring *mooring, uint32_t number, uint32_t bytes)
{
	/* Without an agent to kill it would be in doubt for ever. */
	if (!mooring_is_library())
		expect_no_data(mooring, number, bytes, KVS_RESULT_FAILED);
}

static void X1_what_another_wrote_under_our_name_is_corrupt(void **state)
{
	const char *const changes[] = { "damage", "shorten", "lengthen" };
	struct cluster    cluster;
	struct mooring    mooring;
	struct kvs_store_info info;
	uint32_t          i;

	(void)state;
	start(&cluster);
	mooring_open(&mooring, &cluster, "prefix=" PREFIX, 65536, 2 * MIB);
	scribe(&cluster, "put", 1, "4184"); /* as long as ours with its seal */
	expect_corrupt(&mooring, 1, 4096);
	scribe(&cluster, "put", 2, "4096");
	expect_corrupt(&mooring, 2, 4096);
	scribe(&cluster, "put", 3, "100000");
	expect_too_long(&mooring, 3, 4096);
	scribe(&cluster, "put", 4, "1");
	expect_corrupt(&mooring, 4, 4096);
	for (i = 0; i < 3; i++) {
		mooring_round_trip(&mooring, 10 + i, 1, 4096);
		scribe(&cluster, changes[i], 10 + i, "0");
		expect_corrupt(&mooring, 10 + i, 4096);
	}
	mooring.store->ops->describe(mooring.store, &info);
	assert_int_equal(info.corrupt_objects, 6);
	mooring_close(&mooring);
	cluster_stop(&cluster);
}

static void a_wrong_length_of_the_callers_destroys_nothing(void **state)
{
	struct cluster cluster;
	struct mooring mooring;

	(void)state;
	start(&cluster);
	mooring_open(&mooring, &cluster, NULL, 65536, 2 * MIB);
	mooring_round_trip(&mooring, 1, 1, 8192);
	expect_corrupt(&mooring, 1, 16384);
	expect_corrupt(&mooring, 1, 8191);
	expect_too_long(&mooring, 1, 4096);
	/* That cost an agent, and the next call takes another. */
	mooring_batch(&mooring, 1, 1, 8192);
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
		cmocka_unit_test(A8_3_objects_outlive_the_store_that_wrote_them),
		cmocka_unit_test(A8_3_objects_outlive_a_writer_that_is_killed),
		cmocka_unit_test(a_removed_object_is_gone),
		cmocka_unit_test(a_purge_leaves_another_namespace),
		cmocka_unit_test(a_purge_leaves_another_prefix),
		cmocka_unit_test(A9_4_tenants_do_not_see_each_other),
		cmocka_unit_test(X1_what_another_wrote_under_our_name_is_corrupt),
		cmocka_unit_test(a_wrong_length_of_the_callers_destroys_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
