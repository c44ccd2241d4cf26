/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster for tests in Python: stage PROVIDERS SEGMENT_MIB.
 *
 * It says "PORT METRICS_PORT", then answers each line of standard input with one of its own, and ends
 * with the end of its input:
 *
 *   restart        kill the master and start it again, with its providers: "ok"
 *   metric NAME    a number of the master's: that
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster.h"

static void answer(struct cluster *cluster, char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (strcmp(line, "restart") == 0) {
		cluster_kill_master(cluster);
		cluster_start_master(cluster);
		printf("ok\n");
	} else if (strncmp(line, "metric ", 7) == 0) {
		printf("%llu\n", (unsigned long long)cluster_gauge(cluster, line + 7));
	} else {
		printf("what?\n");
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct cluster cluster;
	char           line[128];

	if (argc != 3)
		return 2;
	cluster_start(&cluster, &(struct cluster_options){
					.providers = (uint32_t)strtoul(argv[1], NULL, 10),
					.segment_mib = (uint32_t)strtoul(argv[2], NULL, 10) });
	printf("%s %s\n", cluster.port, cluster.metrics);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		answer(&cluster, line);
	cluster_stop(&cluster);
	return 0;
}
