/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's command: one seed, or many. */
#include "soak.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"sim: run the storage system in a simulated world\n"
	"\n"
	"  --seed N       one history; decimal or 0x hexadecimal\n"
	"  --seeds COUNT  that many, from --first on\n"
	"  --first N      the first seed of many (1)\n"
	"  --steps N      events before the faults stop (2000)\n"
	"  --twice        run each seed twice; both histories must be equal\n"
	"  --trace        print the history\n"
	"  --state FILE   keep there how far the run came, and go on from there\n"
	"  --fresh        with --state: from the beginning\n"
	"\n"
	"Ends with 0, with 1 where an invariant broke, with 2 for bad arguments.\n";

struct arguments {
	uint64_t first;
	uint64_t count;
	uint64_t steps;
	bool     twice;
	bool     trace;
	bool     fresh;
	const char *state; /* NULL: none */
};

_Noreturn static void refuse(const char *option, const char *rule)
{
	fprintf(stderr, "%s: %s; see --help\n", option, rule);
	exit(2);
}

static uint64_t number(const char *option, const char *text)
{
	char    *end;
	uint64_t value;

	if (!text)
		refuse(option, "needs a number");
	errno = 0;
	value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno)
		refuse(option, "is not a number");
	return value;
}

static struct arguments parse(char **argv)
{
	struct arguments arguments = { .first = 1, .count = 1, .steps = SIM_STEPS };

	for (argv++; *argv; argv++) {
		const char *const option = *argv;

		if (strcmp(option, "--help") == 0) {
			fputs(help, stdout);
			exit(0);
		} else if (strcmp(option, "--twice") == 0) {
			arguments.twice = true;
		} else if (strcmp(option, "--trace") == 0) {
			arguments.trace = true;
		} else if (strcmp(option, "--fresh") == 0) {
			arguments.fresh = true;
		} else if (strcmp(option, "--state") == 0) {
			if (!*++argv)
				refuse(option, "needs a file");
			arguments.state = *argv;
		} else if (strcmp(option, "--seed") == 0 || strcmp(option, "--first") == 0) {
			arguments.first = number(option, *++argv);
		} else if (strcmp(option, "--seeds") == 0) {
			arguments.count = number(option, *++argv);
		} else if (strcmp(option, "--steps") == 0) {
			arguments.steps = number(option, *++argv);
		} else {
			refuse(option, "is not an option");
		}
	}
	if (arguments.count == 0)
		refuse("--seeds", "0 runs nothing");
	return arguments;
}

static uint64_t run(uint64_t seed, const struct arguments *arguments, struct covers *covers)
{
	const uint64_t hash = sim_run(seed, arguments->steps, arguments->trace, covers);
	uint64_t       again;

	if (!arguments->twice)
		return hash;
	again = sim_run(seed, arguments->steps, false, covers);
	if (again != hash) {
		fprintf(stderr,
			"invariant determinism: seed 0x%" PRIx64 " had histories %016" PRIx64
			" and %016" PRIx64 "\n",
			seed, hash, again);
		exit(1);
	}
	return hash;
}

static void print_covers(const struct covers *covers)
{
	fputs("covered:", stdout);
#define COVER(name) printf(" " #name "=%" PRIu64, covers->name);
	COVERS(COVER)
#undef COVER
	puts("");
}

static void print_seeds(const struct arguments *arguments)
{
	printf("seed 0x%" PRIx64, arguments->first);
	if (arguments->count > 1)
		printf(" and %" PRIu64 " more", arguments->count - 1);
	puts("");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const struct arguments arguments = parse(argv);
	struct soak            soak = { .path = arguments.state, .first = arguments.first,
					.steps = arguments.steps };

	(void)argc;
	print_seeds(&arguments);
	soak_open(&soak, arguments.fresh);
	for (; soak.done < arguments.count; soak_note(&soak, arguments.count)) {
		const uint64_t seed = arguments.first + soak.done;

		soak.hash = mix64(soak.hash ^ run(seed, &arguments, &soak.covers));
		soak.done++;
	}
	soak_close(&soak, arguments.count);
	print_covers(&soak.covers);
	printf("seed 0x%" PRIx64 ": history %016" PRIx64 "\n",
	       arguments.first + arguments.count - 1, soak.hash);
	return 0;
}
