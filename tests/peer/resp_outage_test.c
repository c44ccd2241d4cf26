/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that dies, stalls and comes back.  After each the next operations work, nothing hangs, and
 * every span is retired.
 */
#include "rig.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/os.h"
#include "client.h"

/* No test's measure: only what a machine that is stuck would not reach. */
#define ATTEMPTS 10000000u

static struct redis redis;

static int start(void **state)
{
	(void)state;
	redis_start(&redis);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	redis_stop(&redis);
	return 0;
}

static void open_with(struct rig *rig, const char *options)
{
	redisContext *client = redis_client(&redis);
	char          spec[256];

	redis_run(client, "FLUSHALL");
	redisFree(client);
	snprintf(spec, sizeof(spec), "resp:127.0.0.1:%s?%s", redis.port, options);
	rig_open(rig, spec, 1u << 20);
}

static bool is_answered(const struct rig *rig, int rc)
{
	return rc == 0 && rig->results[0] != KVS_RESULT_FAILED;
}

/* Until one object is put, and until it is got; the first answers must be the right ones. */
static void expect_recovery(struct rig *rig, uint32_t number)
{
	uint32_t attempt;

	rig_batch(rig, number, 1, 4096);
	for (attempt = 0; attempt < ATTEMPTS && !is_answered(rig, rig_put(rig)); attempt++)
		continue;
	rig_expect(rig, KVS_RESULT_DONE);
	for (attempt = 0; attempt < ATTEMPTS && !is_answered(rig, rig_get(rig)); attempt++)
		continue;
	rig_expect(rig, KVS_RESULT_DONE);
	rig_expect_payloads(rig);
}

static void a_stopped_server_fails_in_time_and_is_used_again(void **state)
{
	struct rig rig;

	(void)state;
	open_with(&rig, "timeout=400ms&connect_timeout=400ms");
	rig_expect_well(&rig, 1);
	kill(redis.pid, SIGSTOP);
	rig_batch(&rig, 1, 4, 65536);
	assert_int_equal(rig_get(&rig), 0);
	rig_expect(&rig, KVS_RESULT_FAILED);
	/* The kernel lets clients connect to a stopped process: the login is what times out. */
	assert_int_equal(rig_get(&rig), -ETIMEDOUT);
	rig_expect(&rig, KVS_RESULT_UNKNOWN);
	kill(redis.pid, SIGCONT);
	expect_recovery(&rig, 50);
	rig_close(&rig);
}

static void an_idle_connection_that_was_closed_costs_nothing(void **state)
{
	redisContext *client = redis_client(&redis);
	struct rig    rig;

	(void)state;
	open_with(&rig, "connections=2");
	rig_expect_well(&rig, 1);
	redis_run(client, "CLIENT KILL TYPE normal SKIPME yes");
	rig_expect_well(&rig, 2);
	redisFree(client);
	rig_close(&rig);
}

static void a_restarted_server_is_used_at_once(void **state)
{
	struct rig rig;

	(void)state;
	open_with(&rig, "connections=2");
	rig_expect_well(&rig, 1);
	redis_kill(&redis);
	rig_batch(&rig, 1, 2, 4096);
	assert_int_equal(rig_get(&rig), -ECONNREFUSED);
	redis_restart(&redis);
	expect_recovery(&rig, 1);
	rig_close(&rig);
}

static void a_lazy_store_finds_its_server_by_itself(void **state)
{
	struct kvs_store_info info;
	char                  spec[128];
	struct rig            rig;

	(void)state;
	redis_kill(&redis);
	snprintf(spec, sizeof(spec), "resp:127.0.0.1:%s?connect=lazy", redis.port);
	rig_open(&rig, spec, 65536);
	rig_batch(&rig, 1, 2, 4096);
	assert_int_equal(rig_get(&rig), -ECONNREFUSED);
	assert_int_equal(rig_put(&rig), -ECONNREFUSED);
	assert_int_equal(rig.store->ops->exists(rig.store, rig.keys, 2, rig.results),
			 -ECONNREFUSED);
	rig.store->ops->describe(rig.store, &info);
	assert_true(info.away);
	redis_restart(&redis);
	expect_recovery(&rig, 1);
	rig.store->ops->describe(rig.store, &info);
	assert_false(info.away);
	/* Reached once: what comes later is an outage and shows in results. */
	redis_kill(&redis);
	assert_int_equal(rig_get(&rig), -ECONNREFUSED);
	rig.store->ops->describe(rig.store, &info);
	assert_false(info.away);
	redis_restart(&redis);
	rig_close(&rig);
}

struct load {
	struct kvs_store *store;
	uint32_t          number;
	_Atomic bool      stop;
	_Atomic uint32_t  done; /* batches that went well */
	uint32_t          wrong;
};

static bool is_failure(int rc, enum kvs_result result)
{
	return rc < 0 ? result == KVS_RESULT_UNKNOWN : result == KVS_RESULT_FAILED;
}

/* Put, get, remove, for ever; a failure is no mistake, but a wrong byte or an unretired span is. */
static void *load_run(void *arg)
{
	struct load *load = arg;
	struct rig   rig = { .store = load->store,
			     .memory = malloc((size_t)RIG_ROWS * (65536 + 192)) };

	while (!atomic_load(&load->stop)) {
		bool     retired = false, well = true;
		int      rc;
		uint32_t i;

		rig_batch(&rig, load->number, 16, 65536);
		for (i = 0; i < rig.count; i++)
			fill(rig.spans[i].ptr, rig.keys[i].offset, rig.bytes);
		rc = load->store->ops->put(load->store, rig.keys, rig.spans, rig.count, rig.results,
					   &retired);
		for (i = 0; i < rig.count; i++) {
			well &= rig.results[i] == KVS_RESULT_DONE;
			load->wrong += !retired || (!is_failure(rc, rig.results[i]) &&
						    rig.results[i] != KVS_RESULT_DONE &&
						    rig.results[i] != KVS_RESULT_EXISTS);
		}
		memset(rig.memory, 0, (size_t)rig.count * rig.bytes);
		rc = load->store->ops->get(load->store, rig.keys, rig.spans, rig.count, rig.results,
					   &retired);
		for (i = 0; i < rig.count; i++) {
			well &= rig.results[i] == KVS_RESULT_DONE;
			load->wrong += !retired || (!is_failure(rc, rig.results[i]) &&
						    rig.results[i] != KVS_RESULT_MISSING &&
						    rig.results[i] != KVS_RESULT_DONE);
			load->wrong += rig.results[i] == KVS_RESULT_DONE &&
				       !is_filled(rig.spans[i].ptr, rig.keys[i].offset, rig.bytes);
		}
		load->store->ops->remove(load->store, rig.keys, rig.count, rig.results);
		if (well)
			atomic_fetch_add(&load->done, 1);
	}
	free(rig.memory);
	return NULL;
}

/* Until the load has had some more success. */
static void wait_done(struct load *load)
{
	const uint32_t from = atomic_load(&load->done);

	while (atomic_load(&load->done) < from + 3)
		sched_yield();
}

static void under_load(const char *options, void (*disturb)(struct load *load))
{
	struct load load[2] = { { .number = 100 }, { .number = 200 } };
	pthread_t   threads[2];
	struct rig  rig;
	int         i;

	open_with(&rig, options);
	for (i = 0; i < 2; i++) {
		load[i].store = rig.store;
		assert_int_equal(os_thread_start(&threads[i], "load", load_run, &load[i]), 0);
	}
	wait_done(&load[0]);
	disturb(&load[0]);
	wait_done(&load[0]);
	wait_done(&load[1]);
	for (i = 0; i < 2; i++) {
		atomic_store(&load[i].stop, true);
		os_thread_join(threads[i]);
		assert_int_equal(load[i].wrong, 0);
	}
	rig_expect_well(&rig, 1);
	rig_close(&rig);
}

static void restart(struct load *load)
{
	int i;

	for (i = 0; i < 3; i++) {
		redis_kill(&redis);
		redis_restart(&redis);
		wait_done(load);
	}
}

static void a_server_killed_and_restarted_under_load_costs_failures_only(void **state)
{
	(void)state;
	under_load("timeout=500ms", restart);
}

static void kill_clients(struct load *load)
{
	redisContext *client = redis_client(&redis);
	int           i;

	(void)load;
	for (i = 0; i < 300; i++)
		redis_run(client, "CLIENT KILL TYPE normal SKIPME yes");
	redisFree(client);
}

static void connections_killed_under_load_cost_failures_only(void **state)
{
	(void)state;
	under_load("timeout=500ms&connections=3&pipeline=4", kill_clients);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_server_fails_in_time_and_is_used_again),
		cmocka_unit_test(an_idle_connection_that_was_closed_costs_nothing),
		cmocka_unit_test(a_restarted_server_is_used_at_once),
		cmocka_unit_test(a_lazy_store_finds_its_server_by_itself),
		cmocka_unit_test(a_server_killed_and_restarted_under_load_costs_failures_only),
		cmocka_unit_test(connections_killed_under_load_cost_failures_only),
	};

	if (!redis_is_installed()) {
		print_message("1..0 # SKIP redis-server is not installed\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, start, stop);
}
