/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request in the scheduler: its state, its pages, and what each state owns.
 *
 *   SUBMITTED    nothing, or (prepared) the lease of a read that is READY
 *   PREFETCHING  the lease of a read under way
 *   LOADING      its Device table; a LOAD ticket holds the Host sources
 *   RUNNING      its Device table
 */
#ifndef SCHED_REQUEST_H
#define SCHED_REQUEST_H

#include "key/key.h"
#include "sched/sched.h"

enum request_state {
	REQUEST_FREE,
	REQUEST_SUBMITTED,
	REQUEST_PREFETCHING,
	REQUEST_LOADING,
	REQUEST_RUNNING
};

struct request {
	enum request_state    state;
	bool                  aborting;
	bool                  prepared;     /* the store was considered: never again */
	bool                  considered;   /* and it could have added something */
	enum transfer_outcome outcome;
	uint64_t              id;
	uint64_t              token_count;
	uint32_t              page_count;   /* blocks of its table */
	uint32_t              key_count;    /* full pages: those that have a name */
	uint32_t              reusable;     /* of them, those that may be restored */
	uint64_t              lease_id;     /* 0: none */
	uint64_t              asked_ns;
	uint64_t              wait_ns;
	struct coord_probe    hit;
	uint32_t              fetched;      /* of the restored pages, those this request's own read brought */
	struct kvs_key       *keys;
	uint32_t             *table;
	uint32_t             *sources;
};

/* page_max of each array.  0, or -ENOMEM. */
int  request_open(struct request *request, uint32_t page_max);
void request_close(struct request *request);

/* Name the pages of a prompt and reset everything else.  scratch holds page_max. */
void request_begin(struct request *request, const struct sched_options *options, uint64_t id,
		   const int32_t *tokens, uint64_t token_count, struct prefix_hash *scratch);

/* Where its pages came from; the partial last page counts with its own tokens. */
void request_result(const struct request *request, uint32_t page_tokens,
		    struct sched_result *ret_result);

#endif
