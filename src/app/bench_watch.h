/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch over a bench that lasts: how far it is, for a terminal, and whether to go on.
 *
 * Work is counted in bytes, of either side.
 */
#ifndef APP_BENCH_WATCH_H
#define APP_BENCH_WATCH_H

#include "app/progress.h"
#include "base/err.h"

struct bench_watch {
	struct progress progress;
	uint64_t        total_bytes; /* of the whole bench */
	uint64_t        done_bytes;
};

/* From now on the first Ctrl-C is only noted. */
void bench_watch_start(struct bench_watch *watch, const char *title, uint64_t total_bytes);

/* bytes more are done; 0 where only time passed.  -EINTR, with its sentence, after Ctrl-C. */
int bench_watch_tick(struct bench_watch *watch, uint64_t bytes, struct kvs_error *err);

void bench_watch_end(struct bench_watch *watch);

#endif
