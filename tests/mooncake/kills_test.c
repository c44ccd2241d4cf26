/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agents that are killed at any moment of a load: kills [COUNT [SEED]].
 *
 * Every op has exactly one fact, and it is retired; no byte is wrong; and afterwards all is well.
 */
#include "helm.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/prng.h"

#define OBJECTS 512u
#define AGENTS_MAX 16u

static uint32_t kill_count = 12;
static uint64_t seed = 1;

struct load {
	struct cluster cluster;
	struct helm    helm;
	struct prng    prng;
	uint64_t       submitted, facts, ok_rows, kills;
};

/* Some op over some objects, in any idle slot. */
static void submit(struct load *load)
{
	const enum op_kind kinds[] = { OP_QUERY, OP_GET, OP_GET, OP_PUT, OP_PUT };
	uint32_t           slot;

	for (slot = 0; slot < HELM_SLOTS && load->helm.slots[slot].busy; slot++)
		;
	if (slot == HELM_SLOTS)
		return;
	helm_name(&load->helm, slot, (uint32_t)prng_below(&load->prng, OBJECTS),
		  1 + (uint32_t)prng_below(&load->prng, HELM_ROWS));
	load->submitted += helm_submit(&load->helm, slot, kinds[prng_below(&load->prng, 5)]) == 0;
}

static void poll_facts(struct load *load)
{
	uint32_t slot;
	bool     busy[HELM_SLOTS];

	for (slot = 0; slot < HELM_SLOTS; slot++)
		busy[slot] = load->helm.slots[slot].busy;
	load->facts += helm_poll(&load->helm);
	for (slot = 0; slot < HELM_SLOTS; slot++) {
		const struct helm_slot *const s = &load->helm.slots[slot];

		if (busy[slot] && !s->busy)
			load->ok_rows += bits_count(s->fact.ok.words, s->op.key_count);
	}
}

static void kill_one(struct load *load)
{
	pid_t          pids[AGENTS_MAX];
	const uint32_t count = agents_find(getpid(), pids, AGENTS_MAX);

	if (count == 0)
		return;
	kill(pids[prng_below(&load->prng, count)], SIGKILL);
	load->kills++;
}

static void A10_1_agents_killed_at_any_moment_cost_no_fact_and_no_byte(void **state)
{
	struct load *const load = calloc(1, sizeof(*load));
	uint64_t           until = 0;

	(void)state;
	if (!cluster_is_installed())
		skip();
	prng_seed(&load->prng, seed);
	print_message("# seed %llu\n", (unsigned long long)seed);
	cluster_start(&load->cluster, &(struct cluster_options){ .providers = 1 });
	helm_open(&load->helm, &load->cluster, "lanes=2&reap_timeout=60s");
	/* Between two kills some rows move, so that none is spent on agents that only start. */
	while (load->kills < kill_count) {
		submit(load);
		exec_wait(load->helm.exec, UINT64_C(1000000));
		poll_facts(load);
		if (load->ok_rows >= until) {
			kill_one(load);
			until = load->ok_rows + 1 + prng_below(&load->prng, 200);
		}
	}
	while (load->facts < load->submitted) {
		exec_wait(load->helm.exec, UINT64_C(1000000000));
		poll_facts(load);
	}
	helm_name(&load->helm, 0, 100000, HELM_ROWS);
	helm_await_ok(&load->helm, 0, OP_PUT);
	helm_await_ok(&load->helm, 0, OP_GET);
	helm_close(&load->helm);
	cluster_stop(&load->cluster);
	free(load);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A10_1_agents_killed_at_any_moment_cost_no_fact_and_no_byte),
	};

	if (argc > 1)
		kill_count = (uint32_t)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
