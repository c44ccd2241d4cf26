/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request computed what it might have restored: exactly one reason each.
 *
 * A *full hit* restored all that may be restored: no boundary lies between its hit and its reusable
 * bound.  Every other request has one reason, and the counts of all reasons are the requests that
 * were admitted, less the full hits.  A reason that storage gave (transfer/outcome.h) stands unless
 * the hit became full by other means.
 *
 * Pure; threads do not matter.
 */
#ifndef SCHED_EXPLAIN_H
#define SCHED_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "match/groups.h"
#include "match/pages.h"
#include "transfer/outcome.h"

#define MISS_REASONS(X) \
	X(MISS_NONE, "full")           /* it is none */ \
	X(MISS_STORAGE, "storage")     /* see the outcome of the read */ \
	X(MISS_NO_STORE, "no_store")   /* neither Device nor Host has it, and there is no store to ask */ \
	X(MISS_NO_CACHE, "no_cache")   /* the prefix cache is switched off */ \
	X(MISS_ROLE, "role")           /* a DECODE rank asks no store */ \
	X(MISS_HOLD_EXPIRED, "hold_expired") /* it was read, and its hold ran out before its admission */ \
	X(MISS_DISPLACED, "displaced")       /* it was there or read, and evicted before its admission */

enum miss_reason {
#define MISS_REASON(name, text) name,
	MISS_REASONS(MISS_REASON)
#undef MISS_REASON
	MISS_REASON_COUNT
};

struct explanation {
	enum miss_reason  reason;
	enum read_outcome read;      /* READ_ASKED: storage was not considered, or has not answered */
	struct shortfall  shortfall; /* what ended the hit, where a block did */
	uint32_t          prompt_tokens;
	uint32_t          bound_tokens; /* that might have been restored */
	uint32_t          tokens[STRATUM_COUNT]; /* restored from Device, from Host */
	uint32_t          store_tokens; /* of Host's, those that this request's own read brought */
	uint64_t          wait_ns;      /* for storage */
};

/* admitted = full + the sum of reasons; of MISS_STORAGE = the sum of reads. */
struct explain_counts {
	uint64_t admitted;
	uint64_t full;
	uint64_t reasons[MISS_REASON_COUNT]; /* MISS_NONE: 0, they are the full ones */
	uint64_t reads[READ_OUTCOME_COUNT];
};

/* A request was admitted, for the first time. */
void explain_count(struct explain_counts *counts, const struct explanation *explanation);

const char *miss_reason_name(enum miss_reason reason);
/* Of MISS_STORAGE: the end of the read that it counts under in `reads`. */
enum read_outcome explanation_read(const struct explanation *explanation);
/* The one word that reports count by: that of the reason, or of the read's outcome. */
const char *explanation_word(const struct explanation *explanation);
/*
 * One sentence for people, cut at the buffer's end: "hit 4,736 of 7,808 tokens, ended by evicted:
 * block 37 of group 0 "full" is no longer in the store".  Returns the buffer.
 */
char *explanation_print(const struct explanation *explanation, const struct groups *groups,
			char *buffer, size_t buffer_bytes);

#endif
