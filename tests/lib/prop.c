/* SPDX-License-Identifier: Apache-2.0 */
/* Generate, run in a child, shrink, print. */
#include "prop.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"

#define SEED_DEFAULT UINT64_C(0x6b767374726174)

static uint64_t seed_of_run(void)
{
	const char *const text = getenv("KVSTRATA_SEED");
	char             *end;
	uint64_t          seed;

	if (!text)
		return SEED_DEFAULT;
	seed = strtoull(text, &end, 0);
	if (end == text || *end) {
		fprintf(stderr, "KVSTRATA_SEED: '%s' is not an integer\n", text);
		exit(2);
	}
	return seed;
}

static uint32_t draw_kind(const struct prop *prop, struct prng *prng)
{
	uint64_t total = 0, at;
	uint32_t kind;

	for (kind = 0; kind < prop->kind_count; kind++)
		total += prop->kinds[kind].weight;
	at = prng_below(prng, total);
	for (kind = 0; at >= prop->kinds[kind].weight; kind++)
		at -= prop->kinds[kind].weight;
	return kind;
}

static void generate(const struct prop *prop, uint64_t seed, struct prop_op *ret_ops)
{
	struct prng prng;
	uint32_t    i;

	prng_seed(&prng, seed);
	for (i = 0; i < prop->op_count; i++) {
		ret_ops[i].kind = draw_kind(prop, &prng);
		ret_ops[i].arg[0] = (uint32_t)prng_u64(&prng);
		ret_ops[i].arg[1] = (uint32_t)prng_u64(&prng);
	}
}

static _Noreturn void run_in_child(const struct prop *prop, const struct prop_op *ops,
				   uint32_t count, bool loud)
{
	const struct rlimit no_core = { 0, 0 };
	const int           nowhere = loud ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
	void               *world;
	uint32_t            i;

	if (nowhere >= 0)
		dup2(nowhere, STDERR_FILENO);
	setrlimit(RLIMIT_CORE, &no_core);
	world = prop->open();
	for (i = 0; i < count; i++)
		prop->step(world, &ops[i]);
	prop->close(world);
	_exit(0);
}

bool prop_replay(const struct prop *prop, const struct prop_op *ops, uint32_t count, bool loud)
{
	int   status = -1;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
		run_in_child(prop, ops, count, loud);
	KVS_ASSERT(child > 0 && waitpid(child, &status, 0) == child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The list without `length` operations from `at`; kept when it still fails. */
static bool delete_if_failing(const struct prop *prop, struct prop_op *ops, uint32_t *count,
			      uint32_t at, uint32_t length)
{
	struct prop_op *const shorter = malloc(*count * sizeof(*ops));
	const uint32_t        left = *count - length;
	bool                  fails;

	KVS_ASSERT(shorter);
	memcpy(shorter, ops, at * sizeof(*ops));
	memcpy(shorter + at, ops + at + length, (left - at) * sizeof(*ops));
	fails = !prop_replay(prop, shorter, left, false);
	if (fails) {
		memcpy(ops, shorter, left * sizeof(*ops));
		*count = left;
	}
	free(shorter);
	return fails;
}

/* One pass of deletions of one length; true when any was kept. */
static bool delete_chunks(const struct prop *prop, struct prop_op *ops, uint32_t *count,
			  uint32_t length)
{
	bool     any = false;
	uint32_t at = 0;

	while (at + length <= *count) {
		if (delete_if_failing(prop, ops, count, at, length))
			any = true;
		else
			at += length;
	}
	return any;
}

uint32_t prop_shrink(const struct prop *prop, struct prop_op *ops, uint32_t count)
{
	uint32_t length;

	for (length = count / 2; length > 1; length /= 2)
		delete_chunks(prop, ops, &count, length);
	/* Again, because what one deletion frees another can use. */
	while (delete_chunks(prop, ops, &count, 1))
		;
	return count;
}

static void report(const struct prop *prop, uint64_t seed, const struct prop_op *ops,
		   uint32_t count)
{
	uint32_t i;

	fprintf(stderr, "%s: KVSTRATA_SEED=0x%" PRIx64 " fails; %u operations are enough:\n",
		prop->name, seed, count);
	for (i = 0; i < count; i++) {
		fprintf(stderr, "\t{ %s, { %u, %u } },\n", prop->kinds[ops[i].kind].name,
			ops[i].arg[0], ops[i].arg[1]);
	}
	prop_replay(prop, ops, count, true);
}

bool prop_run(const struct prop *prop)
{
	struct prop_op *const ops = malloc(prop->op_count * sizeof(*ops));
	const uint64_t        seed = seed_of_run();
	bool                  passed = true;
	uint32_t              i, count;

	KVS_ASSERT(ops);
	/* A comment of TAP. */
	printf("# %s: KVSTRATA_SEED=0x%" PRIx64 ", %u lists of %u operations\n", prop->name, seed,
	       prop->list_count, prop->op_count);
	for (i = 0; i < prop->list_count && passed; i++) {
		generate(prop, mix64(seed + i), ops);
		passed = prop_replay(prop, ops, prop->op_count, false);
	}
	if (!passed) {
		count = prop_shrink(prop, ops, prop->op_count);
		report(prop, seed, ops, count);
	}
	free(ops);
	return passed;
}
