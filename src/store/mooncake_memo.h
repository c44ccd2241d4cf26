/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Mooncake store remembers of its cluster: mooncake/probes.h under a lock, fed by batches.
 *
 * A failure empties it.  Whatever was known may be gone with a master or a provider, and what is
 * told from memory alone must not look like a store that is well again.
 */
#ifndef STORE_MOONCAKE_MEMO_H
#define STORE_MOONCAKE_MEMO_H

#include "store/mooncake_batch.h"

struct mooncake_memo_info {
	uint64_t memory_bytes;
	uint64_t skipped; /* lookups that were not asked for, since open */
};

/* Rows of a lookup: answered from memory, left UNKNOWN, or asked for. */
void mooncake_memo_look(struct mooncake *mooncake, const struct mooncake_batch *piece,
			struct mooncake_asked *ret_asked);

/* Rows of a put: those that are there are EXISTS, the others are asked for. */
void mooncake_memo_offer(struct mooncake *mooncake, const struct mooncake_batch *piece,
			 struct mooncake_asked *ret_asked);

/* What came of those asked for; begin_ns: before the call, for a lease is as old as that. */
void mooncake_memo_learn(struct mooncake *mooncake, const struct mooncake_batch *piece,
			 const struct mooncake_asked *asked, uint64_t begin_ns);

void mooncake_memo_clear(struct mooncake *mooncake);

/* A put was refused for room. */
void mooncake_memo_refused(struct mooncake *mooncake, uint64_t now_ns);

void mooncake_memo_describe(struct mooncake *mooncake, struct mooncake_memo_info *ret_info);

#endif
