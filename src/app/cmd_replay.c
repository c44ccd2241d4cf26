/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata replay`: what a tiered KV cache would do for this traffic, with real bytes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "app/replay.h"
#include "evict/evict.h"
#include "os/os.h"

static const struct conf_option options[] = {
	{ OPTION(replay_settings, trace), .type = CONF_TEXT, .metavar = "FILE",
	  .help = "requests to replay, one JSON object a line; without it, generated conversations" },
	{ OPTION(replay_settings, groups), .type = CONF_TEXT, .metavar = "GROUPS", .list = true,
	  .fallback = "full",
	  .help = "cache groups of the model: full,window:4096:block=128,state; see docs/replay.md" },
	{ OPTION(replay_settings, store), .type = CONF_TEXT, .metavar = "SPEC",
	  .fallback = "mem:1GiB",
	  .help = "none, mem:4GiB, strata:PATH?capacity=8GiB, resp:, mooncake:; see docs/stores.md" },
	{ OPTION(replay_settings, block_bytes), .type = CONF_SIZE, .metavar = "SIZE",
	  .fallback = "64KiB", .min = 4096, .max = 64 << 20, .multiple = 4096,
	  .help = "one block: the KV cache of 512 tokens in all groups" },
	{ OPTION(replay_settings, device_blocks), .type = CONF_COUNT, .metavar = "N",
	  .fallback = "256", .min = 1, .max = 1 << 28,
	  .help = "blocks of the Device stratum; the longest prompt must fit" },
	{ OPTION(replay_settings, host_blocks), .type = CONF_COUNT, .metavar = "N",
	  .fallback = "512", .min = 1, .max = 1 << 28, .help = "blocks of the Host stratum" },
	{ OPTION(replay_settings, policy), .type = CONF_CHOICE, .metavar = "NAME",
	  .fallback = "lru", .choices = evict_giving_names,
	  .help = "who leaves a full Store" },
	{ OPTION(replay_settings, speed), .type = CONF_NUMBER, .metavar = "N", .fallback = "max",
	  .min = 0.001, .max = 1e6, .word = "max", .word_value = 0,
	  .help = "how many times faster than the trace's clock; max waits for nothing but the store" },
	{ OPTION(replay_settings, concurrency), .type = CONF_COUNT, .metavar = "N", .fallback = "4",
	  .min = 1, .max = 1024, .help = "requests in the engine at once" },
	{ OPTION(replay_settings, chunk_tokens), .type = CONF_COUNT, .metavar = "N",
	  .fallback = "131072", .min = SOURCE_PAGE_TOKENS, .max = TOKENS_MAX,
	  .help = "prompt tokens that one forward computes, of all requests" },
	{ OPTION(replay_settings, deadline), .type = CONF_DURATION, .metavar = "TIME",
	  .fallback = "500ms", .word = "none", .word_value = UINT64_MAX,
	  .help = "how long a request waits for the store before it computes instead; or none" },
	{ OPTION(replay_settings, ready_hold), .type = CONF_DURATION, .metavar = "TIME",
	  .fallback = "2s", .word = "none", .word_value = UINT64_MAX,
	  .help = "how long what was read is held for a request that waits for Device room; or none" },
	{ OPTION(replay_settings, min_extension), .type = CONF_COUNT, .metavar = "TOKENS",
	  .fallback = "512", .min = 1, .max = TOKENS_MAX,
	  .help = "tokens beyond the local hit for which the store is worth asking" },
	{ OPTION(replay_settings, op_credits), .type = CONF_COUNT, .metavar = "N", .fallback = "64",
	  .min = 1, .max = 4096, .help = "storage operations under way, held or in doubt at once" },
	{ OPTION(replay_settings, host_credits), .type = CONF_COUNT, .metavar = "BLOCKS",
	  .fallback = "auto", .min = 1, .max = 1 << 28, .word = "auto", .word_value = 0,
	  .help = "Host blocks that storage operations may hold; auto is 3/4 of the Host" },
	{ OPTION(replay_settings, watermarks), .type = CONF_TEXT, .metavar = "MARKS", .list = true,
	  .fallback = "none",
	  .help = "close the gate under pressure: jobs=48/32,bytes=1GiB/512MiB,age=2s/1s" },
	{ OPTION(replay_settings, prefill_tokens_per_s), .type = CONF_NUMBER, .metavar = "N",
	  .fallback = "8000", .min = 1, .max = 1e9,
	  .help = "speed of the model whose time to first token is modelled" },
	{ OPTION(replay_settings, limit), .type = CONF_COUNT, .metavar = "REQUESTS",
	  .fallback = "all", .word = "all", .word_value = 0, .min = 1,
	  .help = "stop after so many requests; all is 3,000 without a trace" },
	{ OPTION(replay_settings, seed), .type = CONF_COUNT, .metavar = "N", .fallback = "1",
	  .help = "of the generated conversations" },
	{ OPTION(replay_settings, explain), .type = CONF_COUNT, .metavar = "NUMBER",
	  .fallback = "none", .word = "none", .word_value = EXPLAIN_NONE,
	  .help = "say why this request hit what it did; requests count from 0" },
	{ OPTION(replay_settings, metrics), .type = CONF_TEXT, .metavar = "FILE",
	  .help = "write the figures as Prometheus text, too" },
	{ OPTION(replay_settings, json), .type = CONF_BOOL, .help = "print one JSON object" },
};

static int fail_wrong(const struct replay *replay)
{
	const struct engine_fault *const fault = &replay->engine.first;
	struct kvs_error                 err;

	err_set(&err, KVS_E_PROTO,
		"wrong bytes: %" PRIu64 "; the first in request %" PRIu64
		", token %u of its prompt, group %u \"%s\"",
		replay->engine.wrong_bytes, fault->request, fault->position, fault->group,
		replay->shape.names[fault->group]);
	return app_fail(replay_command.name, &err);
}

/* Behind the report, which has no line for it. */
static int check_explained(const struct replay *replay, struct kvs_error *err)
{
	const struct replay_settings *const set = replay->set;

	/* Who interrupts a run knows that it did not come to the end. */
	if (set->explain == EXPLAIN_NONE || replay->totals.explained[0] || replay->totals.interrupted)
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "--explain: %" PRIu64
		       " was not served; requests count from 0, and there were %" PRIu64,
		       set->explain, replay->totals.requests);
}

static int report(const struct replay *replay, struct kvs_error *err)
{
	const struct replay_settings *const set = replay->set;
	int                                 rc = 0;

	if (set->json)
		rc = replay_print_json(replay, err);
	else
		replay_print(replay);
	if (rc == 0)
		rc = app_flush(err);
	if (rc == 0 && set->metrics)
		rc = replay_write_metrics(replay, set->metrics, err);
	return rc < 0 ? rc : check_explained(replay, err);
}

static int replay_trace(const struct replay_settings *set)
{
	/* What is in doubt at the end stays reachable for the life of the process. */
	static struct replay replay;
	struct kvs_error     err;
	int                  status = APP_DONE;
	int                  rc;

	/* Whoever interrupts the opening gets an empty report. */
	os_interrupt_catch();
	rc = replay_open(&replay, set, &err);
	if (rc < 0)
		return app_fail(replay_command.name, &err);
	rc = replay_run(&replay, &err);
	if (rc == 0)
		rc = report(&replay, &err);
	if (rc < 0)
		status = app_fail(replay_command.name, &err);
	else if (replay.engine.wrong > 0)
		status = fail_wrong(&replay);
	rc = replay_close(&replay);
	if (rc < 0 && status == APP_DONE) {
		err_set(&err, rc, "store: %s", kvs_strerror(rc));
		status = app_fail(replay_command.name, &err);
	}
	return status;
}

/* The file that a spec like strata:PATH?key=value names; "" for a store without one. */
static void store_file(const char *spec, char *ret_path, size_t bytes)
{
	const char *const colon = strchr(spec, ':');

	snprintf(ret_path, bytes, "%s", colon ? colon + 1 : "");
	ret_path[strcspn(ret_path, "?")] = '\0';
}

/* Before an hour of replay, not behind it. */
static int check_writable(const char *path, struct kvs_error *err)
{
	FILE *const file = fopen(path, "a");

	if (!file)
		return err_set(err, -errno, "metrics: cannot open %.120s: %s", path, strerror(errno));
	fclose(file);
	return 0;
}

static int check_outputs(const struct replay_settings *set, struct kvs_error *err)
{
	char path[4096];
	int  rc = app_check_output("metrics", set->metrics, set->trace, err);

	store_file(set->store, path, sizeof(path));
	if (rc == 0)
		rc = app_check_output("metrics", set->metrics, path, err);
	if (rc == 0 && set->metrics)
		rc = check_writable(set->metrics, err);
	if (rc == 0 && set->explain != EXPLAIN_NONE && set->limit > 0 && set->explain >= set->limit) {
		rc = err_set(err, KVS_E_INVALID,
			     "--explain: %" PRIu64
			     " is not served; requests count from 0, and --limit ends before it",
			     set->explain);
	}
	return rc;
}

static int run(int argc, char **argv)
{
	struct replay_settings set = { 0 };
	struct kvs_error       err;
	struct conf           *conf;
	int                    status = app_configure(&replay_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	if (app_check_trace(&replay_command, conf, set.trace, &err) < 0 ||
	    check_outputs(&set, &err) < 0)
		status = app_fail(replay_command.name, &err);
	else
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
		"first token that a model of the given speed would have had, and for each request that did\n"
		"not restore all it might one reason.  A wrong byte makes it exit with 1.\n"
		"\n"
		"Ctrl-C ends it with the report so far; a second one ends it at once.\n",
	.examples =
		"  kvstrata replay\n"
		"  kvstrata replay --trace trace.jsonl --store none\n"
		"  kvstrata replay --trace trace.jsonl --store 'strata:/var/tmp/kv?capacity=8GiB' --limit 600\n"
		"  kvstrata replay --trace trace.jsonl --speed 10 --deadline 20ms --json\n"
		"  kvstrata replay --groups full:share=1/4,window:4096:share=3/4,state --explain 17\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct replay_settings),
	.run = run,
};
