/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata replay`: what a tiered KV cache would do for this traffic, with real bytes. */
#include <stdio.h>

#include "app/app.h"
#include "app/replay.h"
#include "evict/evict.h"
#include "os/os.h"

#define OPTION(field) .name = #field, .offset = offsetof(struct replay_settings, field)

static const struct conf_option options[] = {
	{ OPTION(trace), .type = CONF_TEXT, .metavar = "FILE",
	  .help = "requests to replay, one JSON object a line; without it, generated conversations" },
	{ OPTION(store), .type = CONF_TEXT, .metavar = "SPEC", .fallback = "mem:1GiB",
	  .help = "none, mem:4GiB or strata:PATH?capacity=8GiB" },
	{ OPTION(block_bytes), .type = CONF_SIZE, .metavar = "SIZE", .fallback = "64KiB",
	  .min = 4096, .max = 64 << 20, .multiple = 4096,
	  .help = "one block: the KV cache of 512 tokens" },
	{ OPTION(device_blocks), .type = CONF_COUNT, .metavar = "N", .fallback = "256", .min = 1,
	  .max = 1 << 28, .help = "blocks of the Device stratum; the longest prompt must fit" },
	{ OPTION(host_blocks), .type = CONF_COUNT, .metavar = "N", .fallback = "1024", .min = 1,
	  .max = 1 << 28, .help = "blocks of the Host stratum" },
	{ OPTION(policy), .type = CONF_CHOICE, .fallback = "lru", .choices = evict_names,
	  .metavar = "NAME", .help = "who leaves a full Host or Store" },
	{ OPTION(speed), .type = CONF_NUMBER, .metavar = "N", .fallback = "max", .min = 0.001,
	  .max = 1e6, .word = "max", .word_value = 0,
	  .help = "how many times faster than the trace's clock; max waits for nothing but the store" },
	{ OPTION(concurrency), .type = CONF_COUNT, .metavar = "N", .fallback = "4", .min = 1,
	  .max = 1024, .help = "requests in the engine at once" },
	{ OPTION(deadline), .type = CONF_DURATION, .metavar = "TIME", .fallback = "500ms",
	  .word = "none", .word_value = UINT64_MAX,
	  .help = "how long a request waits for the store before it computes instead" },
	{ OPTION(prefill_tokens_per_s), .type = CONF_NUMBER, .metavar = "N", .fallback = "8000",
	  .min = 1, .max = 1e9,
	  .help = "speed of the model whose time to first token is modelled" },
	{ OPTION(limit), .type = CONF_COUNT, .metavar = "REQUESTS", .fallback = "all",
	  .word = "all", .word_value = 0, .min = 1,
	  .help = "stop after so many requests; all is 600 without a trace" },
	{ OPTION(seed), .type = CONF_COUNT, .metavar = "N", .fallback = "1",
	  .help = "of the generated conversations" },
	{ OPTION(metrics), .type = CONF_TEXT, .metavar = "FILE",
	  .help = "write the figures as Prometheus text, too" },
	{ OPTION(json), .type = CONF_BOOL, .help = "print one JSON object" },
};

/* What is the user's to mend exits with 2; what the machine refused, with 1. */
static int fail(const struct kvs_error *err, int code)
{
	return app_fail(replay_command.name, err, code == KVS_E_INVALID ? APP_USAGE : APP_FAILED);
}

static int fail_wrong(const struct replay *replay)
{
	const struct engine *const engine = &replay->engine;
	struct kvs_error           err;

	err_set(&err, KVS_E_PROTO,
		"wrong bytes: %llu; the first in request %llu, block %u of its prompt",
		(unsigned long long)engine->wrong_bytes, (unsigned long long)engine->wrong_request,
		engine->wrong_page);
	return app_fail(replay_command.name, &err, APP_FAILED);
}

static int report(const struct replay *replay, struct kvs_error *err)
{
	const struct replay_settings *const set = replay->set;
	int                                 rc = 0;

	if (set->json)
		rc = replay_print_json(replay, err);
	else
		replay_print(replay);
	if (rc == 0 && set->metrics)
		rc = replay_write_metrics(replay, set->metrics, err);
	return rc;
}

static int replay_trace(const struct replay_settings *set)
{
	struct replay    replay;
	struct kvs_error err;
	int              status = APP_DONE;
	int              rc = replay_open(&replay, set, &err);

	if (rc < 0)
		return fail(&err, rc);
	os_interrupt_catch();
	rc = replay_run(&replay, &err);
	if (rc == 0)
		rc = report(&replay, &err);
	if (rc < 0)
		status = fail(&err, rc);
	else if (replay.engine.wrong_seen)
		status = fail_wrong(&replay);
	rc = replay_close(&replay);
	if (rc < 0 && status == APP_DONE) {
		err_set(&err, rc, "store: %s", kvs_strerror(rc));
		status = fail(&err, rc);
	}
	return status;
}

static int run(int argc, char **argv)
{
	struct replay_settings set = { 0 };
	struct conf           *conf;
	int                    status = app_configure(&replay_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	status = replay_trace(&set);
	conf_close(conf);
	return status;
}

const struct app_command replay_command = {
	.name = "replay",
	.usage = "[FLAGS]",
	.summary = "runs requests through all strata with real bytes and checks every one",
	.example = "kvstrata replay --trace trace.jsonl --store 'strata:/var/tmp/kv?capacity=8GiB'",
	.text = "Replays requests through the whole system: prefix hashes, Device and Host hits, reads\n"
		"from the store, copies to the Device, a reference engine that checks every restored row\n"
		"and computes the rest, and the way back down to the store.  Prints where each block of\n"
		"the prompts came from, what moved and how fast, how long restores took, the time to\n"
		"first token that a model of the given speed would have had, and why requests went on\n"
		"without the store.  A wrong byte makes it exit with 1.\n"
		"\n"
		"Ctrl-C ends it with the report so far; a second one ends it at once.\n",
	.examples =
		"  kvstrata replay\n"
		"  kvstrata replay --trace trace.jsonl --store none\n"
		"  kvstrata replay --trace trace.jsonl --store 'strata:/var/tmp/kv?capacity=8GiB' --limit 600\n"
		"  kvstrata replay --trace trace.jsonl --speed 10 --deadline 20ms --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct replay_settings),
	.run = run,
};
