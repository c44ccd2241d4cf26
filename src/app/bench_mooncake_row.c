/* SPDX-License-Identifier: Apache-2.0 */
/* One row: the SDK's client and both of our stores in turns, so often; a ratio is of one run. */
#include "app/bench_mooncake.h"

/* Of all objects of a row, and of what moves in one measurement. */
#define SET_BYTES (UINT64_C(64) << 20)
#define ROUNDS 2

/* Small objects: calls are what costs, so there are enough of them. */
#define SET_TURNS 32u

enum side { SDK, VERIFIED, RAW, SIDE_COUNT };

uint64_t bench_row_objects(const struct bench_mooncake_row *row)
{
	const uint64_t turn = (uint64_t)row->batch * row->threads;
	uint64_t       turns = SET_BYTES / row->bytes / turn;

	if (turns > SET_TURNS)
		turns = SET_TURNS;
	return turn * (turns > 0 ? turns : 1);
}

static int move(struct bench_sides *sides, enum side side, const struct bench_moves *moves,
		struct bench_speed *ret_speed, struct kvs_error *err)
{
	int rc = bench_cluster_check(sides->cluster, err);

	if (rc < 0)
		return rc;
	if (side == SDK)
		return bench_sdk_move(sides->sdk, moves, ret_speed, err);
	rc = bench_ours_move(side == RAW ? &sides->raw : &sides->verified, moves, ret_speed, err);
	if (rc < 0)
		err_prefix(err, side == RAW ? "ours, raw" : "ours");
	return rc;
}

/* Who goes first changes from run to run: so nobody profits from a machine that gets slower. */
static int measure_way(struct bench_sides *sides, const struct bench_moves *moves, uint64_t run,
		       double *ret_figures, struct kvs_error *err)
{
	struct bench_speed speeds[SIDE_COUNT];
	int                i, rc = 0;

	for (i = 0; rc == 0 && i < SIDE_COUNT; i++) {
		const enum side side = run % 2 ? SIDE_COUNT - 1 - i : i;

		rc = move(sides, side, moves, &speeds[side], err);
	}
	if (rc < 0)
		return rc;
	ret_figures[MOONCAKE_GB_S] = speeds[VERIFIED].gb_s;
	ret_figures[MOONCAKE_RAW_GB_S] = speeds[RAW].gb_s;
	ret_figures[MOONCAKE_SDK_GB_S] = speeds[SDK].gb_s;
	ret_figures[MOONCAKE_RATIO] = speeds[VERIFIED].gb_s / speeds[SDK].gb_s;
	ret_figures[MOONCAKE_RAW_RATIO] = speeds[RAW].gb_s / speeds[SDK].gb_s;
	ret_figures[MOONCAKE_CALL_US] = speeds[VERIFIED].call_us;
	ret_figures[MOONCAKE_RAW_CALL_US] = speeds[RAW].call_us;
	ret_figures[MOONCAKE_SDK_CALL_US] = speeds[SDK].call_us;
	ret_figures[MOONCAKE_AGENT_US] = speeds[RAW].call_us - speeds[SDK].call_us;
	return 0;
}

/* Puts first: they leave what the gets read. */
static int measure_both(struct bench_sides *sides, const struct bench_mooncake_row *row,
			uint64_t run, double (*ret_figures)[MOONCAKE_FIGURE_COUNT],
			struct kvs_error *err)
{
	struct bench_moves moves = { true, row->bytes, row->batch, row->threads,
				     bench_row_objects(row), ROUNDS };
	int rc = measure_way(sides, &moves, run, ret_figures[BENCH_PUT], err);

	moves.is_put = false;
	return rc == 0 ? measure_way(sides, &moves, run, ret_figures[BENCH_GET], err) : rc;
}

static int drop(struct bench_sides *sides, struct kvs_error *err)
{
	int rc = bench_sdk_drop(sides->sdk, err);

	if (rc == 0)
		rc = bench_ours_drop(&sides->verified, err);
	return rc == 0 ? bench_ours_drop(&sides->raw, err) : rc;
}

int bench_mooncake_measure(struct bench_sides *sides, uint64_t runs, struct bench_mooncake_row *row,
			   struct kvs_error *err)
{
	static double all[BENCH_WAY_COUNT][MOONCAKE_FIGURE_COUNT][BENCH_RUNS_MAX];
	double        figures[BENCH_WAY_COUNT][MOONCAKE_FIGURE_COUNT];
	uint64_t      run;
	int           way, f;
	/* Connections are made and the pool gets its memory from the kernel: that is not counted. */
	int           rc = measure_both(sides, row, 0, figures, err);

	for (run = 0; rc == 0 && run < runs; run++) {
		rc = measure_both(sides, row, run, figures, err);
		for (way = 0; rc == 0 && way < BENCH_WAY_COUNT; way++) {
			for (f = 0; f < MOONCAKE_FIGURE_COUNT; f++)
				all[way][f][run] = figures[way][f];
		}
	}
	if (rc == 0)
		rc = drop(sides, err);
	for (way = 0; rc == 0 && way < BENCH_WAY_COUNT; way++) {
		for (f = 0; f < MOONCAKE_FIGURE_COUNT; f++)
			row->figures[way][f] = bench_median(all[way][f], (uint32_t)runs);
	}
	return rc;
}
