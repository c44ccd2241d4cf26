/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata bench NAME`: the table of benches, and what they share. */
#include "app/bench.h"

#include <stdlib.h>

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

static int run(int argc, char **argv)
{
	return app_refuse_part(&bench_command, "bench", argc, argv);
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
