/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a replay counts by itself: where prompts came from, why they did not come from further up,
 * and how long that would have taken a model.
 *
 * A *page* is 512 tokens of a prompt; the last one may be partial.  It has the origin of its tokens
 * when all of them were restored, and is recomputed otherwise.  Each request is a full hit or has
 * exactly one reason (sched/explain.h), so the reasons sum up to the requests less the full hits.
 */
#ifndef APP_REPLAY_TOTALS_H
#define APP_REPLAY_TOTALS_H

#include "metrics/metrics.h"
#include "sched/sched.h"

enum replay_origin { ORIGIN_DEVICE, ORIGIN_HOST, ORIGIN_STORE, ORIGIN_RECOMPUTED, ORIGIN_COUNT };

#define EXPLAINED_BYTES 512u

struct replay_totals {
	uint64_t         requests;
	uint64_t         blocks;
	uint64_t         tokens;
	uint64_t         origin_blocks[ORIGIN_COUNT];
	uint64_t         origin_tokens[ORIGIN_COUNT];
	uint64_t         full_hits;
	uint64_t         reasons[MISS_REASON_COUNT]; /* those of storage are counted below alone */
	uint64_t         reads[READ_OUTCOME_COUNT];
	uint64_t         too_long;      /* requests that did not fit the Device */
	uint64_t         failed;        /* requests that the scheduler gave up before they were admitted */
	uint64_t         waited;        /* requests that waited for the store, */
	uint64_t         in_vain;       /* and got nothing from it */
	uint64_t         elapsed_ns;
	bool             interrupted;
	char             explained[EXPLAINED_BYTES]; /* of the request that --explain names; "": not seen */
	struct histogram restore_ns;    /* from QUERY to READY, of the reads that brought something */
	struct histogram ttft_store_ns; /* modelled: the wait, and the prefill of what was not restored */
	struct histogram ttft_local_ns; /* the same without the store: its pages computed, no wait */
	struct histogram ttft_none_ns;  /* everything computed */
};

extern const char *const replay_origin_names[ORIGIN_COUNT];

/* One that was admitted, or failed before. */
void replay_totals_add(struct replay_totals *totals, const struct sched_result *result,
		       uint32_t token_count, double prefill_tokens_per_s);
/* One that no Device of this size can hold: computed elsewhere, the same time with every store. */
void replay_totals_add_too_long(struct replay_totals *totals, uint64_t token_count,
				double prefill_tokens_per_s);

/* Requests that are no full hits: what the reasons sum up to. */
static inline uint64_t replay_totals_misses(const struct replay_totals *totals)
{
	return totals->requests - totals->full_hits;
}

#endif
