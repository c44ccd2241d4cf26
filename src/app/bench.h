/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Benches: each is a command of its own, `kvstrata bench NAME`, in bench_NAME.c; the table in
 * cmd_bench.c lists them.
 *
 * A figure is the median of several runs.  Each bench prints a table for people, or with --json what
 * a machine wants; none has a time limit, and none fails because a figure is low.
 */
#ifndef APP_BENCH_H
#define APP_BENCH_H

#include <jansson.h>

#include "app/app.h"

/* A bound on --runs, so that figures of all runs fit beside each other. */
#define BENCH_RUNS_MAX 101

/* Of --bytes: how many sizes a list may have, and the largest. */
#define BENCH_SIZES_MAX 8u
#define BENCH_BYTES_MAX (UINT64_C(64) << 20)

extern const struct app_command bench_copy_command;
extern const struct app_command bench_exec_command;
extern const struct app_command bench_manager_command;
extern const struct app_command bench_match_command;
extern const struct app_command bench_mooncake_command;
extern const struct app_command bench_open_command;
extern const struct app_command bench_resp_command;
extern const struct app_command bench_store_command;
extern const struct app_command bench_tick_command;

/* Write a report, which it takes over (NULL: no memory); -EIO. */
int bench_print_json(json_t *report, struct kvs_error *err);

/**
 * Whether a flag asks for no more memory than is to be had; before any of it is touched.
 *
 * flag    "--set", and its value as a user would write it.
 * Errors  KVS_E_INVALID  needed and available bytes.
 */
int bench_check_memory(const char *flag, const char *value, uint64_t need_bytes,
		       struct kvs_error *err);

/* The middle one of count figures, which it sorts; count >= 1. */
double bench_median(double *figures, uint32_t count);

/**
 * Read the sizes of --bytes, "64KiB,1MiB": at most BENCH_SIZES_MAX.
 *
 * Errors  KVS_E_INVALID  one is no size, no multiple of 4 KiB from there to BENCH_BYTES_MAX, given
 *                        twice, or one too many.
 */
int bench_read_sizes(const char *list, uint64_t *ret_sizes, uint32_t *ret_count,
		     struct kvs_error *err);

#endif
