/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request in the scheduler: its state, its pages, and what each state owns.
 *
 *   SUBMITTED    nothing, or (prepared) the lease of a read that is READY
 *   PREFETCHING  the lease of a read under way
 *   LOADING      its Device table; a LOAD ticket holds the Host sources
 *   RUNNING      its Device table
 */
#ifndef MONO_SCHED_REQUEST_H
#define MONO_SCHED_REQUEST_H

#include "key/key.h"
#include "mono_sched/sched.h"

enum mono_request_state {
	MONO_REQUEST_FREE,
	MONO_REQUEST_SUBMITTED,
	MONO_REQUEST_PREFETCHING,
	MONO_REQUEST_LOADING,
	MONO_REQUEST_RUNNING
};

struct mono_request {
	enum mono_request_state    state;
	bool                       aborting;
	bool                       prepared;   /* the store was considered: never again */
	bool                       considered; /* and it could have added something */
	enum mono_transfer_outcome outcome;
	uint64_t                   id;
	uint64_t                   token_count;
	uint32_t                   page_count; /* blocks of its table */
	uint32_t                   key_count;  /* full pages: those that have a name */
	uint32_t                   reusable;   /* of them, those that may be restored */
	uint64_t                   lease_id;   /* 0: none */
	uint64_t                   asked_ns;
	uint64_t                   wait_ns;
	struct coord_probe         hit;
	uint32_t                   fetched;    /* of the restored pages, those its own read brought */
	struct kvs_key            *keys;
	uint32_t                  *table;
	uint32_t                  *sources;
};

/* page_max of each array.  0, or -ENOMEM. */
int  mono_request_open(struct mono_request *request, uint32_t page_max);
void mono_request_close(struct mono_request *request);

/* Name the pages of a prompt and reset everything else.  scratch holds page_max. */
void mono_request_begin(struct mono_request *request, const struct mono_sched_options *options,
			uint64_t id, const int32_t *tokens, uint64_t token_count,
			struct prefix_hash *scratch);

/* Where its pages came from; the partial last page counts with its own tokens. */
void mono_request_result(const struct mono_request *request, uint32_t page_tokens,
			 struct mono_sched_result *ret_result);

#endif
