/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows on their way through a lane of a strata store: objects of named_block.h, QUARRY_BLOCK bytes each.
 *
 * Threads  One ferry is one thread's.  What is wrong panics, so that any thread may say so.
 */
#ifndef LIB_FERRY_H
#define LIB_FERRY_H

#include "quarry.h"

#define FERRY_ROWS 600u /* more than a lane takes */
#define FERRY_FOREVER_NS UINT64_MAX

struct ferry {
	struct kvs_io   io[FERRY_ROWS];
	struct kvs_key  keys[FERRY_ROWS];
	enum kvs_result result[FERRY_ROWS];
	uint32_t        answered[FERRY_ROWS]; /* how often */
	uint64_t       *words;
};

struct ferry *ferry_open(void);
void          ferry_close(struct ferry *ferry);

/* A row's memory; row i moves the object of that number, and its cookie is i. */
uint64_t *ferry_words(const struct ferry *ferry, uint32_t i);
void      ferry_load(struct ferry *ferry, uint32_t i, uint32_t number, bool is_put);

/* How many answers came; each was retired. */
uint32_t ferry_reap(struct kvs_store *store, uint32_t lane, struct ferry *ferry, uint64_t timeout_ns);

/*
 * The first count rows, as many at a time as the lane takes.  Each is answered once, and DONE is right.
 */
void ferry_cross(struct kvs_store *store, uint32_t lane, struct ferry *ferry, uint32_t count);

/* One, in row 0 and on lane 0. */
enum kvs_result ferry_one(struct kvs_store *store, struct ferry *ferry, uint32_t number, bool is_put);

#endif
