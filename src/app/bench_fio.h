/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fio, run and read: the ceiling of a file store, on the same file system.
 *
 * It reads or writes one file from the front to the end with io_uring, registered buffers and files
 * and O_DIRECT, and looks at no byte of it: no checksum, no scrambling of what it writes.
 */
#ifndef APP_BENCH_FIO_H
#define APP_BENCH_FIO_H

#include <stdbool.h>

#include "app/bench_watch.h"

struct bench_fio_load {
	const char *path;
	uint64_t    bytes;   /* of one transfer */
	uint64_t    moved;   /* of all; an even number of transfers */
	uint64_t    offset;  /* of the file, where they begin */
	bool        is_put;
	uint32_t    depth;   /* of each job's queue */
	uint32_t    jobs;    /* 1 or 2, each with its half of them */
};

struct bench_fio_figures {
	double seconds;
	double cpu_s;  /* of the jobs, without fio's own start */
	double p50_us; /* from submission to completion */
	double p99_us;
};

/* Whether there is one, and what it calls itself. */
bool bench_fio_find(char *ret_version, size_t room);

/* Allocate load's file and write it once. */
int bench_fio_prepare(const struct bench_fio_load *load, struct bench_watch *watch,
		      struct kvs_error *err);

int bench_fio_measure(const struct bench_fio_load *load, struct bench_watch *watch,
		      struct bench_fio_figures *ret_figures, struct kvs_error *err);

/*
 * Try queues of 32 and 128 and one and two jobs, and set the faster of them in load.  One that fio
 * cannot run, for want of lockable memory, is left out; -EIO when all are.
 */
int bench_fio_choose(struct bench_fio_load *load, struct bench_watch *watch, struct kvs_error *err);
#define BENCH_FIO_CHOICES 4u

#endif
