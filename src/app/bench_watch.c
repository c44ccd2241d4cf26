/* SPDX-License-Identifier: Apache-2.0 */
/* Progress in MiB, and the end that a user asks for. */
#include "app/bench_watch.h"

#include <errno.h>

#include "os/os.h"

void bench_watch_start(struct bench_watch *watch, const char *title, uint64_t total_bytes)
{
	*watch = (struct bench_watch){ .total_bytes = total_bytes };
	progress_start(&watch->progress, title, "MiB", true, os_now_ns());
	os_interrupt_catch();
}

int bench_watch_tick(struct bench_watch *watch, uint64_t bytes, struct kvs_error *err)
{
	watch->done_bytes += bytes;
	if (watch->progress.shown) {
		progress_update(&watch->progress,
				(double)watch->done_bytes / (double)watch->total_bytes,
				watch->done_bytes >> 20, os_now_ns());
	}
	if (!os_interrupted())
		return 0;
	return err_set(err, -EINTR, "interrupted; the files are removed, and nothing is reported");
}

void bench_watch_end(struct bench_watch *watch)
{
	progress_finish(&watch->progress);
}
