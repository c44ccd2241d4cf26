/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who submits and polls never waits for the cluster.
 *
 * The master stands still, so a call under way ends only after it goes on; that is done after all that
 * must not wait.  A submission that waited would have come back with the ops before it answered.
 */
#include "helm.h"

#include <stdlib.h>

/* Longer than this takes on any machine; no test waits for it. */
#define OPTIONS "timeout=300s"

static void start(struct cluster *cluster, struct helm *helm)
{
	if (!cluster_is_installed())
		skip();
	cluster_start(cluster, &(struct cluster_options){ .providers = 1, .ttl_s = 600 });
	helm_open(helm, cluster, OPTIONS);
	helm_name(helm, 0, 0, 8);
	helm_await_ok(helm, 0, OP_PUT);
	helm_await_ok(helm, 0, OP_GET);
	helm_await_ok(helm, 0, OP_QUERY);
}

static bool nothing_is_queued(void *arg)
{
	struct helm *const helm = arg;
	struct pressure    pressure;

	assert_int_equal(exec_poll(helm->exec, NULL, 0, &pressure), 0);
	return pressure.queued_jobs == 0;
}

static void submit_and_poll_return_while_the_master_stands_still(void **state)
{
	const enum op_kind kinds[] = { OP_QUERY, OP_GET, OP_PUT };
	struct helm *const helm = calloc(1, sizeof(*helm));
	struct cluster     cluster;
	struct exec_stats  stats;
	uint32_t           slot;

	(void)state;
	start(&cluster, helm);
	cluster_pause(cluster.master);
	for (slot = 0; slot < 3; slot++) {
		helm_name(helm, slot, 1000 * (slot + 1), 4);
		assert_int_equal(helm_submit(helm, slot, kinds[slot]), 0);
	}
	/* A worker of each class is inside its call. */
	assert_true(cluster_await(nothing_is_queued, helm));
	for (slot = 3; slot < 6; slot++) {
		helm_name(helm, slot, 1000 * (slot + 1), 4);
		assert_int_equal(helm_submit(helm, slot, kinds[slot - 3]), 0);
		assert_int_equal(helm_poll(helm), 0);
	}
	exec_cancel(helm->exec, helm->slots[5].op.op_id);
	assert_int_equal(helm_poll(helm), 1);
	assert_int_equal(helm->slots[5].fact.reason, OP_REASON_CANCELLED);
	exec_stats(helm->exec, &stats);
	assert_int_equal(stats.outstanding, 5);
	assert_int_equal(helm_poll(helm), 0);

	cluster_resume(cluster.master);
	for (slot = 0; slot < 5; slot++)
		helm_await(helm, slot);
	helm_name(helm, 0, 0, 8);
	helm_await_ok(helm, 0, OP_GET);
	helm_close(helm);
	cluster_stop(&cluster);
	free(helm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(submit_and_poll_return_while_the_master_stands_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
