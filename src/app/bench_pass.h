/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass of a bench over a store: put, or get, each of so many objects, in order.
 *
 * A store with submit and reap has one lane kept full; any other is given batches.  The *window* is
 * the memory that rows move through: twice as many blocks as rows under way, used in turns, so that
 * what was touched last is not touched next.
 *
 * Threads  One.  The window is registered with at most one store at a time.
 */
#ifndef APP_BENCH_PASS_H
#define APP_BENCH_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include <kvstrata/store.h>

#include "app/bench_watch.h"
#include "arena/arena.h"
#include "metrics/metrics.h"

#define BENCH_DEPTH_MAX 4096u

/* What is remembered of a block's row; the store holds key and span until it answers. */
struct bench_slot {
	struct kvs_key key;
	uint64_t       taken_ns;
};

struct bench_window {
	struct arena      *arena;
	struct arena_part  blocks;
	uint64_t           bytes;      /* of an object */
	uint32_t           depth;      /* rows under way, at most */
	uint32_t           slot_count; /* 2 * depth; slot i has block i */
	struct bench_slot *slots;
	struct kvs_io     *rows;       /* the store has not taken yet */
	uint32_t          *idle;       /* a ring of the slots without a row */
	bool               retained;   /* a store may still read and write all of it */
	struct histogram   latency_ns;
};

/* Blocks full of bytes that are no pattern.  Close it also after a failure. */
int  bench_window_open(struct bench_window *window, uint64_t bytes, uint32_t depth,
		       struct kvs_error *err);
void bench_window_close(struct bench_window *window);

/*
 * Open what spec names for objects of the window, and register the window's memory.  Closing waits
 * for the store; one that does not come to rest keeps the memory for the life of the process.
 */
int  bench_store_open(const char *spec, struct bench_window *window, struct kvs_store **ret_store,
		      struct kvs_error *err);
void bench_store_close(struct kvs_store *store, struct bench_window *window);

/* The key of an object; another generation has other keys. */
struct kvs_key bench_pass_key(uint64_t generation, uint64_t number);

struct bench_pass {
	struct kvs_store    *store;
	struct bench_window *window;
	struct bench_watch  *watch;
	uint64_t             objects;
	uint64_t             generation; /* another one has other keys */
	bool                 is_put;
	bool                 may_refuse; /* puts that find no space are counted, and no error */
};

struct bench_pass_figures {
	double   seconds;
	double   cpu_s;       /* of the whole process */
	double   p50_us;      /* from the call that took a row until its answer */
	double   p99_us;
	uint64_t moved_bytes; /* of objects that came out as done */
	uint64_t refused;     /* for want of space */
};

/* Errors of the store, -EIO for an object that did not move, -EINTR. */
int bench_pass(const struct bench_pass *pass, struct bench_pass_figures *ret_figures,
	       struct kvs_error *err);

#endif
