/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch on its way through a lane: cut into calls, named, answered row by row.
 *
 * Rows that need no answer are left out of the call.  Whatever becomes of it, each row of the batch
 * has a result: FAILED where no answer came, for whichever reason; the way tells which in its note.
 *
 * Threads  The worker's; waits for a lane and for its call.
 */
#ifndef STORE_MOONCAKE_BATCH_H
#define STORE_MOONCAKE_BATCH_H

#include "base/bits.h"
#include "mooncake/way.h"
#include "store/mooncake.h"

struct mooncake_batch {
	enum mooncake_verb     verb;
	const struct kvs_key  *key;
	const struct kvs_span *span; /* NULL for what has no payload */
	uint32_t               count;
	enum kvs_result       *result;
};

/* Rows of a piece that the cluster is asked for. */
struct mooncake_asked {
	uint64_t words[MOONCAKE_NAMES_MAX / 64];
};

typedef int mooncake_piece(struct mooncake *mooncake, const struct mooncake_batch *piece,
			   bool *ret_retired);

/**
 * Run a batch in pieces of at most MOONCAKE_NAMES_MAX rows.
 *
 * Errors  What the first piece refuses, with nothing done and every result UNKNOWN.
 */
int mooncake_batch_cut(struct mooncake *mooncake, const struct mooncake_batch *batch,
		       mooncake_piece *run, bool *ret_retired);

/**
 * One call for the rows of a piece that are asked for; each of them gets its result.
 *
 * Errors  KVS_E_INVALID  the way cannot use the spans: nothing was done.
 */
int mooncake_batch_call(struct mooncake *mooncake, const struct mooncake_batch *piece,
			const struct mooncake_asked *asked, bool *ret_retired);

/* All of them. */
void mooncake_batch_ask_all(const struct mooncake_batch *piece, struct mooncake_asked *ret_asked);

/* Bytes of the object whose payload the span holds. */
uint64_t mooncake_object_bytes(const struct mooncake *mooncake, const struct kvs_span *span);

#endif
