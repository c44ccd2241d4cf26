/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata bench tick`: what a round of the scheduler costs beside what is under way.
 *
 * Two systems, alike but for their size, take turns: one with a few reads outstanding, one with
 * many.  A round is agree_round() of one owner and sched_next().  No thread, no store: this file
 * answers for it.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/bench.h"
#include "base/units.h"
#include "os/os.h"
#include "sched/sched.h"

#define PAGE_TOKENS 16u
#define PROMPT_PAGES 2u
/* The last token is never restored. */
#define PROMPT_TOKENS (PROMPT_PAGES * PAGE_TOKENS + 1)

#define BLOCK_BYTES 4096u
#define BURST 64u /* completions of a round */
#define FEW 10u

/* So many rounds are long beside a look at the clock; the systems take turns so often. */
#define ROUNDS 1000u
#define TURNS 20u

struct settings {
	uint64_t outstanding;
	uint64_t runs;
	bool     json;
};

enum figure { QUIET_NS, QUERIES_US, GETS_US, FIGURE_COUNT };

/* A scheduler with so many reads under way that never end. */
struct system {
	uint32_t                 outstanding;
	struct arena            *arena;
	struct arena_part        part;
	struct hostmap           hostmap;
	struct sched            *sched;
	struct agree            *agree;
	uint64_t                 now_ns;
	uint64_t                 request; /* the last one's number: of its id and its tokens */
	struct fact              facts[BURST];
	struct op                ops[BURST];
	const struct sched_plan *plan;
};

/* --- rounds ----------------------------------------------------------------------------------- */

static void round_once(struct system *system, const struct fact *facts, uint32_t fact_count)
{
	const struct agree_report  report = { .now_ns = ++system->now_ns,
					      .facts = facts,
					      .fact_count = fact_count };
	const struct agree_permits permits = { .forward = false, .storage = true };
	struct kvs_error           err;
	struct tick                tick;

	/* Whoever writes the facts himself makes no bad ones. */
	KVS_ASSERT(agree_round(system->agree, &report, permits, &tick, &err) == 0);
	sched_next(system->sched, &tick, &system->plan);
}

/* What the round submitted is under way. */
static void take_ops(struct system *system, enum op_kind kind, uint32_t count)
{
	uint32_t i;

	KVS_ASSERT_CMP(system->plan->op_count, ==, count);
	for (i = 0; i < count; i++) {
		KVS_ASSERT_CMP(system->plan->ops[i].kind, ==, kind);
		agree_expect(system->agree, &system->plan->ops[i]);
		system->ops[i] = system->plan->ops[i];
	}
}

/* All that was asked for is there, or came whole. */
static void answer(struct system *system, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		struct fact *const fact = &system->facts[i];

		fact_init(fact, &system->ops[i]);
		fact->retired = true;
		bits_fill(fact->ok.words, fact->key_count);
		if (system->ops[i].kind == OP_GET)
			fact->read_here = fact->ok;
	}
}

/* Prompts that nobody had before. */
static void submit(struct system *system, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		int32_t              tokens[PROMPT_TOKENS];
		char                 id[SCHED_ID_BYTES];
		struct sched_request request = { .id = id,
						 .tokens = tokens,
						 .token_count = PROMPT_TOKENS,
						 .max_new_tokens = 1,
						 .logits_from = LOGITS_NONE };
		struct kvs_error     err;
		uint32_t             t;

		system->request++;
		snprintf(id, sizeof(id), "%016" PRIx64, system->request);
		for (t = 0; t < PROMPT_TOKENS; t++)
			tokens[t] = (int32_t)(system->request & INT32_MAX);
		KVS_ASSERT(sched_submit(system->sched, &request, 1, &err) == 0);
	}
}

static void abort_last(struct system *system, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		char               id[SCHED_ID_BYTES];
		struct sched_event event = { .kind = SCHED_ABORT, .id = id };
		struct kvs_error   err;
		uint32_t           applied;

		snprintf(id, sizeof(id), "%016" PRIx64, system->request - i);
		KVS_ASSERT(sched_feed(system->sched, &event, 1, &applied, &err) == 0);
	}
}

/* --- measuring -------------------------------------------------------------------------------- */

static double quiet_ns(struct system *system)
{
	const uint64_t begin_ns = os_now_ns();
	uint32_t       i;

	for (i = 0; i < ROUNDS; i++)
		round_once(system, NULL, 0);
	return (double)(os_now_ns() - begin_ns) / ROUNDS;
}

static double answered_us(struct system *system)
{
	uint64_t begin_ns;

	answer(system, BURST);
	begin_ns = os_now_ns();
	round_once(system, system->facts, BURST);
	return (double)(os_now_ns() - begin_ns) / 1e3;
}

/* Reads of BURST new requests, beside those that never end. */
static void burst(struct system *system, double *ret_queries_us, double *ret_gets_us)
{
	submit(system, BURST);
	round_once(system, NULL, 0);
	take_ops(system, OP_QUERY, BURST);
	*ret_queries_us = answered_us(system);
	take_ops(system, OP_GET, BURST);
	*ret_gets_us = answered_us(system);
	KVS_ASSERT_CMP(transfer_load(sched_transfer(system->sched)).ready, ==, BURST);
	abort_last(system, BURST);
	round_once(system, NULL, 0);
}

/* The median of the turns of one run, for both systems. */
static void measure(struct system *const systems[2], double ret_figures[2][FIGURE_COUNT])
{
	double   turns[2][FIGURE_COUNT][TURNS];
	uint32_t turn, s, f;

	for (turn = 0; turn < TURNS; turn++) {
		for (s = 0; s < 2; s++) {
			turns[s][QUIET_NS][turn] = quiet_ns(systems[s]);
			burst(systems[s], &turns[s][QUERIES_US][turn], &turns[s][GETS_US][turn]);
		}
	}
	for (s = 0; s < 2; s++) {
		for (f = 0; f < FIGURE_COUNT; f++)
			ret_figures[s][f] = bench_median(turns[s][f], TURNS);
	}
}

/* --- open and close --------------------------------------------------------------------------- */

static int open_memory(struct system *system, uint32_t blocks, struct kvs_error *err)
{
	const struct hostmap_group group = { .packing = 1, .block_bytes = BLOCK_BYTES };
	int rc = arena_open(arena_part_bytes(BLOCK_BYTES, blocks), ARENA_LAZY, &system->arena, err);

	if (rc == 0)
		rc = arena_carve(system->arena, BLOCK_BYTES, blocks, &system->part, err);
	if (rc == 0)
		rc = hostmap_make(&group, 1, blocks, &system->hostmap, err);
	return rc;
}

static int open_rooms(struct system *system, uint32_t blocks, struct kvs_error *err)
{
	static const struct group_spec group = { "full", GROUP_FULL, PAGE_TOKENS, 0, 1 };
	const uint32_t                 reads = system->outstanding + BURST;
	const struct agree_options     agree = { .owners = 1, .ops_max = reads, .copies_max = 1 };
	const struct sched_options     options = {
		    .groups = &group,
		    .group_count = 1,
		    .page_tokens = PAGE_TOKENS,
		    .device_parents = 4 * BURST,
		    .host_parents = blocks,
		    .prefix_cache = true,
		    .request_max = reads,
		    .request_tokens_max = 2 * PROMPT_TOKENS,
		    .batch_max = BURST,
		    .chunk_tokens = 4 * PROMPT_TOKENS,
		    .decode_tokens = 1,
		    .save_ticket_max = 1,
		    .save_row_max = BURST,
		    .load_ticket_max = BURST,
		    .candidate_max = BURST,
		    .with_store = true,
		    .transfer = { .op_credits = reads,
				  .host_credits = PROMPT_PAGES * reads,
				  .keys_max = PROMPT_PAGES,
				  .put_keys_max = PROMPT_PAGES,
				  .backup_max = BURST,
				  .tail_hint_max = BURST,
				  .tails_max = 1,
				  .extension_min = 1,
				  .lookahead_tokens = 2 * PROMPT_TOKENS,
				  .deadline_ns = UINT64_MAX,
				  .hold_ns = UINT64_MAX },
		    .part = &system->part,
		    .hostmap = &system->hostmap,
	};
	int rc = agree_open(&agree, &system->agree, err);

	return rc < 0 ? rc : sched_open(&options, &system->sched, err);
}

/* Bring the reads under way that never end: half of them stay QUERYs, half become GETs. */
static void fill(struct system *system)
{
	uint32_t left = system->outstanding;

	while (left > 0) {
		const uint32_t count = left < BURST ? left : BURST;

		submit(system, count);
		round_once(system, NULL, 0);
		take_ops(system, OP_QUERY, count);
		answer(system, count / 2);
		round_once(system, system->facts, count / 2);
		take_ops(system, OP_GET, count / 2);
		left -= count;
	}
}

static void close_system(struct system *system)
{
	if (!system)
		return;
	sched_close(system->sched);
	agree_close(system->agree);
	arena_close(system->arena);
	free(system);
}

static int open_system(uint32_t outstanding, struct system **ret_system, struct kvs_error *err)
{
	const uint32_t       blocks = PROMPT_PAGES * (outstanding + 4 * BURST);
	struct system *const system = calloc(1, sizeof(*system));
	int                  rc;

	*ret_system = system;
	if (!system)
		return err_set(err, -ENOMEM, "no memory for the bench");
	system->outstanding = outstanding;
	rc = open_memory(system, blocks, err);
	if (rc == 0)
		rc = open_rooms(system, blocks, err);
	if (rc == 0)
		fill(system);
	return rc;
}

/* --- the report ------------------------------------------------------------------------------- */

static void print_row(const char *label, double few, double many, const char *aim)
{
	printf("  %-42s %12.1f %12.1f   %5.2f   aim: %s\n", label, few, many, many / few, aim);
}

static void print(const struct settings *set, double medians[2][FIGURE_COUNT])
{
	printf("a round of the scheduler, one owner; medians of %" PRIu64 " runs\n\n", set->runs);
	printf("  %-42s %12u %12" PRIu64 "   ratio\n", "reads outstanding", FEW, set->outstanding);
	print_row("no completion, ns", medians[0][QUIET_NS], medians[1][QUIET_NS],
		  "a ratio of at most 1.5");
	print_row("64 QUERYs answered, 64 GETs submitted, us", medians[0][QUERIES_US],
		  medians[1][QUERIES_US], "below 100 us");
	print_row("64 GETs retired, 128 blocks published, us", medians[0][GETS_US],
		  medians[1][GETS_US], "below 100 us");
}

static json_t *row(const double *medians, uint64_t outstanding)
{
	json_t *const object = json_object();

	json_object_set_new(object, "outstanding", json_integer((json_int_t)outstanding));
	json_object_set_new(object, "quiet_ns", json_real(medians[QUIET_NS]));
	json_object_set_new(object, "queries_us", json_real(medians[QUERIES_US]));
	json_object_set_new(object, "gets_us", json_real(medians[GETS_US]));
	return object;
}

static int print_json(const struct settings *set, double medians[2][FIGURE_COUNT],
		      struct kvs_error *err)
{
	json_t *const object = json_object();

	json_object_set_new(object, "runs", json_integer((json_int_t)set->runs));
	json_object_set_new(object, "completions", json_integer(BURST));
	json_object_set_new(object, "few", row(medians[0], FEW));
	json_object_set_new(object, "many", row(medians[1], set->outstanding));
	json_object_set_new(object, "quiet_ratio",
			    json_real(medians[1][QUIET_NS] / medians[0][QUIET_NS]));
	return bench_print_json(object, err);
}

static int report(const struct settings *set, struct system *const systems[2],
		  struct kvs_error *err)
{
	static double all[2][FIGURE_COUNT][BENCH_RUNS_MAX];
	double        medians[2][FIGURE_COUNT];
	uint32_t      run, s, f;

	for (run = 0; run < set->runs; run++) {
		double figures[2][FIGURE_COUNT];

		measure(systems, figures);
		for (s = 0; s < 2; s++) {
			for (f = 0; f < FIGURE_COUNT; f++)
				all[s][f][run] = figures[s][f];
		}
	}
	for (s = 0; s < 2; s++) {
		for (f = 0; f < FIGURE_COUNT; f++)
			medians[s][f] = bench_median(all[s][f], (uint32_t)set->runs);
	}
	if (set->json)
		return print_json(set, medians, err);
	print(set, medians);
	return 0;
}

static int bench_tick(const struct settings *set, struct kvs_error *err)
{
	struct system *systems[2] = { NULL, NULL };
	int            rc = open_system(FEW, &systems[0], err);

	if (rc == 0)
		rc = open_system((uint32_t)set->outstanding, &systems[1], err);
	if (rc == 0)
		rc = report(set, systems, err);
	close_system(systems[0]);
	close_system(systems[1]);
	return rc;
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct conf_option options[] = {
	{ OPTION(settings, outstanding), .type = CONF_COUNT, .metavar = "N", .fallback = "10000",
	  .min = FEW, .max = 100000, .help = "reads under way in the larger system" },
	{ OPTION(settings, runs), .type = CONF_COUNT, .metavar = "N", .fallback = "5", .min = 1,
	  .max = BENCH_RUNS_MAX, .help = "how often to measure; the medians are printed" },
	{ OPTION(settings, json), .type = CONF_BOOL, .help = "print one JSON object" },
};

static int run(int argc, char **argv)
{
	struct settings  set = { 0 };
	struct kvs_error err;
	struct conf     *conf;
	int              status = app_configure(&bench_tick_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	if (bench_tick(&set, &err) < 0)
		status = app_fail(bench_tick_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command bench_tick_command = {
	.name = "bench tick",
	.usage = "[FLAGS]",
	.summary = "a round of the scheduler, beside many reads under way",
	.text = "Measures a round of the scheduler, agreement included, with one owner.\n"
		"\n"
		"Two systems take turns, one with 10 reads under way and one with many; half of them are\n"
		"QUERYs, half GETs, and none of them ever ends.  A round without completions should cost\n"
		"the same in both: the aim is a ratio of at most 1.5.  Then 64 more reads come, and their\n"
		"64 QUERYs, then their 64 GETs of two blocks, are answered in one round each.  No forward is\n"
		"planned meanwhile, so that nothing is measured but storage.\n",
	.examples = "  kvstrata bench tick\n"
		    "  kvstrata bench tick --outstanding 100000 --runs 11\n"
		    "  kvstrata bench tick --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct settings),
	.run = run,
};
