/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A quarantine that an agent's death ends.
 *
 * The calls do not wait for the end of the agents they have killed, so that facts of what hung come
 * unretired.  The executor takes nothing more until the notice, and everything after it: no restart.
 */
#include "helm.h"

#include <stdlib.h>

static void start(struct cluster *cluster, struct helm *helm)
{
	if (!cluster_is_installed())
		skip();
	cluster_start(cluster, &(struct cluster_options){ .providers = 1, .ttl_s = 600 });
	helm_open(helm, cluster, "timeout=2s&reap_timeout=0ms");
	helm_name(helm, 0, 0, HELM_ROWS);
	helm_await_ok(helm, 0, OP_PUT);
}

static void await_fact(struct helm *helm, uint64_t op_id, struct fact *ret_fact)
{
	struct pressure pressure;

	while (exec_poll(helm->exec, ret_fact, 1, &pressure) == 0)
		(void)exec_wait(helm->exec, UINT64_MAX);
	assert_int_equal(ret_fact->op_id, op_id);
}

static void await_notice(struct helm *helm, uint64_t op_id)
{
	struct retirement_notice notice;

	while (exec_poll_notices(helm->exec, &notice, 1) == 0)
		(void)exec_wait(helm->exec, UINT64_MAX);
	assert_int_equal(notice.op_id, op_id);
	assert_int_equal(exec_notice(helm->exec, &notice), 0);
}

static void end_quarantine(struct helm *helm, uint64_t op_id)
{
	helm_name(helm, 2, 1000, 1);
	assert_int_equal(helm_submit(helm, 2, OP_PUT), KVS_E_QUARANTINE);
	await_notice(helm, op_id);
}

static void X2_a_quarantine_ends_with_the_agent_that_hung(void **state)
{
	struct helm *const helm = calloc(1, sizeof(*helm));
	struct cluster     cluster;
	struct fact        fact;

	(void)state;
	start(&cluster, helm);
	cluster_pause(cluster.providers[0]);
	helm_name(helm, 1, 0, HELM_ROWS);
	assert_int_equal(helm_submit(helm, 1, OP_GET), 0);
	await_fact(helm, helm->slots[1].op.op_id, &fact);
	assert_int_equal(bits_count(fact.ok.words, HELM_ROWS), 0);
	assert_int_equal(bits_count(fact.object_fault.words, HELM_ROWS), 0);
	if (fact.retired)
		print_message("# the agent was gone before anybody looked: no quarantine this time\n");
	else
		end_quarantine(helm, fact.op_id);

	/* Its memory is free again, and nothing lands there: what it is filled with stays. */
	helm->slots[1].busy = false;
	cluster_resume(cluster.providers[0]);
	helm_name(helm, 1, 0, HELM_ROWS);
	helm_await_ok(helm, 1, OP_GET);
	helm_name(helm, 2, 1000, HELM_ROWS);
	helm_await_ok(helm, 2, OP_PUT);
	helm_await_ok(helm, 2, OP_GET);
	helm_close(helm);
	cluster_stop(&cluster);
	free(helm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X2_a_quarantine_ends_with_the_agent_that_hung),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
