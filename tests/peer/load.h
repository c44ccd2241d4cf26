/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load on a strata store, and the books that its answers must agree with: what was acknowledged is
 * there with its own bytes, was removed, or was counted as evicted.
 */
#ifndef PEER_LOAD_H
#define PEER_LOAD_H

#include "rig.h"

#define LOAD_BLOCK 65536u
#define LOAD_KEYS 2048u
#define LOAD_BATCH 16u

struct load {
	struct kvs_store *store;
	const char       *spec;
	bool              lanes;              /* submit and reap */
	bool              present[LOAD_KEYS]; /* put, and not known to be gone */
	uint64_t          put, refused, removed; /* since the store was opened */
	uint64_t          objects_then;       /* there when it was opened */
	uint8_t          *blocks;
};

/* spec is held until load_close(). */
void load_open(struct load *load, const char *spec, bool lanes);
void load_close(struct load *load);
void load_reopen(struct load *load); /* and check */

/* Keys from .. to - 1; refused ones are counted, any other failure fails the test. */
void load_put(struct load *load, uint32_t from, uint32_t to);
void load_remove(struct load *load, uint32_t from, uint32_t to);

/* Get every key: what the books and the store say is the same. */
void load_check(struct load *load);
struct kvs_store_info load_info(const struct load *load);

/* All of it: put twice the capacity, remove, open again, go on.  Leaves the store open. */
void load_run(struct load *load, const char *spec, bool lanes);

#endif
