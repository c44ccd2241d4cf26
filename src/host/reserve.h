/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of a writer have in common. */
#ifndef HOST_RESERVE_H
#define HOST_RESERVE_H

#include "host/rows.h"

#define PURSE_MAX 64u

/*
 * Places of one size that a call took ahead, so that a batch asks the space a few times only; what
 * it does not need goes back at its end.
 */
struct purse {
	uint32_t pages;
	uint32_t count;
	uint32_t places[PURSE_MAX];
};

struct write {
	struct host       *host;
	struct host_writer writer;
	unsigned           flags;   /* of host_reserve() */
	const uint64_t    *bytes;   /* of host_reserve() */
	host_client        reader;  /* of host_finish_locked() */
	uint32_t           locks;   /* of host_finish_locked() */
	struct kvs_span   *spans;   /* of both */
	int               *rc;
	struct purse       purse;
	uint32_t           left;    /* rows that may still want a place */
	uint32_t           budget;  /* objects that the visit may still evict */
	uint64_t           now_ns;
};

/* Rows with rc 0 only: drop what the writer stages. */
void reserve_undo(struct visit *visit, const struct group *group, void *call);

#endif
