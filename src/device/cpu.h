/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy engine of a machine without accelerator: the Device is ordinary memory.
 *
 * Each stream is a first-in first-out queue of batches and, with CPU_THREADS, a thread that empties it.  The
 * other two modes have no thread and no chance: CPU_AT_SUBMIT copies in submit() on the caller's
 * thread, so that a batch is behind its fence when submit() returns; CPU_STEPPED copies one batch
 * with each step, when a simulator or a test says so.  CPU_STEPPED: wait() runs nothing; step first.
 */
#ifndef DEVICE_CPU_H
#define DEVICE_CPU_H

#include "device/copier.h"

enum cpu_mode { CPU_THREADS, CPU_AT_SUBMIT, CPU_STEPPED };

/**
 * Open an engine; every table and thread is there when it returns.
 *
 * Errors  those of copier_check(), and nothing was made; -ENOMEM; -errno of a thread that does not
 *         start.
 */
int cpu_open(const struct copier_options *options, enum cpu_mode mode, struct copier **ret_copier,
	     struct kvs_error *err);

/* CPU_STEPPED: run the stream's oldest batch up to its fence; false when there is none. */
bool cpu_step(struct copier *copier, enum copier_stream stream);

#endif
