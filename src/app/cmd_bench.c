/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata bench NAME`: the table of benches, and what they share. */
#include "app/bench.h"

#include <stdlib.h>
#include <string.h>

#include "conf/nearest.h"

static const struct app_command *const benches[] = {
	&bench_exec_command,
	&bench_open_command,
	&bench_resp_command,
	&bench_store_command,
	NULL,
};

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_median(double *figures, uint32_t count)
{
	KVS_ASSERT_CMP(count, >, 0);
	qsort(figures, count, sizeof(*figures), compare);
	return count % 2 ? figures[count / 2]
			 : (figures[count / 2 - 1] + figures[count / 2]) / 2;
}

/* Reached only where no bench was named. */
static int run(int argc, char **argv)
{
	struct nearest   nearest;
	struct kvs_error err;
	size_t           i;

	if (argc < 2) {
		err_set(&err, KVS_E_INVALID,
			"needs the name of a bench; kvstrata bench --help lists them");
		return app_fail(bench_command.name, &err);
	}
	nearest_init(&nearest, argv[1]);
	for (i = 0; benches[i]; i++)
		nearest_offer(&nearest, benches[i]->name + strlen(bench_command.name) + 1);
	if (nearest.best[0]) {
		err_set(&err, KVS_E_INVALID, "\"%.64s\" is not a bench; did you mean %s?", argv[1],
			nearest.best);
	} else {
		err_set(&err, KVS_E_INVALID,
			"\"%.64s\" is not a bench; kvstrata bench --help lists them", argv[1]);
	}
	return app_fail(bench_command.name, &err);
}

const struct app_command bench_command = {
	.name = "bench",
	.usage = "NAME [FLAGS]",
	.summary = "measures a part of the system on this machine",
	.example = "kvstrata bench exec",
	.text = "Measures one part of the system, several times, and prints medians.\n"
		"`kvstrata bench NAME --help` explains each.\n",
	.examples = "  kvstrata bench exec\n"
		    "  kvstrata bench exec --json\n"
		    "  kvstrata bench resp --bytes 64KiB\n"
		    "  kvstrata bench store --path /mnt/nvme\n",
	.parts = benches,
	.run = run,
};
