/* SPDX-License-Identifier: Apache-2.0 */
/* One line a command, one line an answer. */
#include "app/bench_mooncake_sdk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Longer than anything that works takes: the SDK's own limits are a minute. */
#define ANSWER_NS UINT64_C(180000000000)

#define ANSWER_BYTES 128

int bench_sdk_open(struct bench_sdk *sdk, const struct bench_sdk_home *home, const char *master,
		   uint64_t clients, uint64_t memory_bytes, struct kvs_error *err)
{
	char  numbers[2][24], answer[ANSWER_BYTES];
	char *argv[] = { (char *)home->python, (char *)home->program, "client", (char *)master,
			 numbers[0], numbers[1], "kvstrata-bench-sdk", NULL };
	int   rc;

	snprintf(numbers[0], sizeof(numbers[0]), "%" PRIu64, clients);
	snprintf(numbers[1], sizeof(numbers[1]), "%" PRIu64, memory_bytes);
	rc = bench_talk_start(&sdk->talk, "the SDK's client", argv, true, err);
	return rc == 0 ? bench_talk_hear(&sdk->talk, ANSWER_NS, answer, sizeof(answer), err) : rc;
}

void bench_sdk_close(struct bench_sdk *sdk)
{
	bench_talk_end(&sdk->talk);
}

static int ask(struct bench_sdk *sdk, const char *line, char ret_answer[ANSWER_BYTES],
	       struct kvs_error *err)
{
	const int rc = bench_talk_say(&sdk->talk, line, err);

	return rc == 0 ? bench_talk_hear(&sdk->talk, ANSWER_NS, ret_answer, ANSWER_BYTES, err) : rc;
}

int bench_sdk_move(struct bench_sdk *sdk, const struct bench_moves *moves,
		   struct bench_speed *ret_speed, struct kvs_error *err)
{
	char   line[128], answer[ANSWER_BYTES], *end;
	double spent_ns, call_ns;
	int    rc;

	snprintf(line, sizeof(line), "%s %" PRIu64 " %u %u %" PRIu64 " %" PRIu64 "\n",
		 moves->is_put ? "put" : "get", moves->bytes, moves->batch, moves->threads,
		 moves->objects, moves->rounds);
	rc = ask(sdk, line, answer, err);
	if (rc < 0)
		return rc;
	spent_ns = strtod(answer, &end);
	call_ns = strtod(end, NULL);
	if (!(spent_ns > 0) || !(call_ns > 0))
		return err_set(err, KVS_E_PROTO, "the SDK's client: answered \"%s\"", answer);
	*ret_speed = (struct bench_speed){
		.gb_s = (double)(moves->rounds * moves->objects * moves->bytes) / spent_ns,
		.call_us = call_ns / 1e3,
	};
	return 0;
}

int bench_sdk_drop(struct bench_sdk *sdk, struct kvs_error *err)
{
	char answer[ANSWER_BYTES];

	return ask(sdk, "drop\n", answer, err);
}
