/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests, and their life as a table of edges.
 *
 *   BOOTSTRAPPING  waits for its peer                       tokens, maybe a Ready hold
 *   SUBMITTED      waits for its first chunk                tokens, maybe a Ready hold
 *   PREFETCHING    waits for storage                        tokens and a lease
 *   PREFILLING     part of its prompt is computed           place, tables
 *   PREFILL_DONE   all of it is, or is being                place, tables
 *   DECODING                                                place, tables
 *   RETRACTED      gave its blocks up, comes back           tokens, maybe an image
 *   FINISHED       until the next plan has told             nothing
 *
 * What a state owns goes when a request leaves for one that does not own it: request_step() sees to
 * it, and nobody else gives back a lease, a place, a table or an image.  edges[] in request.c is
 * the whole life, and request_step() the only place that assigns a state.
 *
 * What is taken from storage before an admission is in `struct admission`; it moves along through
 * BOOTSTRAPPING, SUBMITTED and PREFETCHING.
 *
 * Threads  The cache thread only.
 */
#ifndef SCHED_REQUEST_H
#define SCHED_REQUEST_H

#include "coord/table.h"
#include "key/prompt.h"
#include "sched/explain.h"
#include "sched/sched.h"

enum request_state {
	REQUEST_FREE,
	REQUEST_BOOTSTRAPPING,
	REQUEST_SUBMITTED,
	REQUEST_PREFETCHING,
	REQUEST_PREFILLING,
	REQUEST_PREFILL_DONE,
	REQUEST_DECODING,
	REQUEST_RETRACTED,
	REQUEST_FINISHED,
	REQUEST_STATE_COUNT
};

enum request_event {
	REQUEST_ON_SUBMIT,
	REQUEST_ON_SUBMIT_PEER,  /* a peer is to come first */
	REQUEST_ON_BOOTSTRAPPED, /* it is there */
	REQUEST_ON_ASK,          /* storage was asked */
	REQUEST_ON_RESUME,       /* the wait is over, the peer is there or none is needed */
	REQUEST_ON_RESUME_PEER,  /* the wait is over, that for the peer is not */
	REQUEST_ON_CHUNK,        /* a chunk was planned that is not the last */
	REQUEST_ON_LAST_CHUNK,
	REQUEST_ON_PREFILLED,    /* a peer computed the prompt */
	REQUEST_ON_DECODE,
	REQUEST_ON_RETRACT,      /* its prefix and its image go to Host */
	REQUEST_ON_RELEASE,      /* its blocks go, it begins anew */
	REQUEST_ON_RESTART,      /* the same in the midst of its prompt; nobody computes it elsewhere again */
	REQUEST_ON_FINISH,       /* complete: publishes */
	REQUEST_ON_ABORT,        /* publishes nothing */
	REQUEST_ON_ERASE,        /* the plan has told its end */
	REQUEST_EVENT_COUNT
};

/* Where a request goes on when its wait for storage is over. */
enum continuation { CONTINUE_SUBMITTED, CONTINUE_BOOTSTRAPPING };

/* Of a request that has no blocks yet. */
struct admission {
	struct lease      lease;            /* id 0: none */
	struct prompt     prompt;           /* what the read borrows */
	bool              storage_prepared; /* storage was considered; never again */
	enum continuation continuation;     /* in PREFETCHING */
	enum read_outcome outcome;          /* of the read; READ_ASKED: not considered, or not over */
	struct shortfall  shortfall;
	uint64_t          asked_ns;
	uint64_t          wait_ns;
};

struct request {
	char                        id[SCHED_ID_BYTES]; /* padded with zeros: a map's key */
	enum request_state          state;
	struct admission            admission;
	/* What it is. */
	int32_t                    *tokens;
	uint32_t                    token_count; /* known ones; the last one sampled has no cache yet */
	uint32_t                    max_new_tokens;
	const struct prompt_extras *extras;
	uint64_t                    logits_from;
	struct prefix_hash         *hashes;
	uint32_t                    hashed;      /* pages */
	/* With a place. */
	uint32_t                    place;       /* 0: none */
	struct table               *tables;      /* one a group */
	uint64_t                    epoch;
	bool                        remote;      /* a peer computes the prompt */
	uint32_t                    prefill;     /* tokens to compute before the next is sampled */
	uint32_t                    computed;    /* that have their cache once what is planned has run */
	uint32_t                    published;   /* pages */
	uint32_t                    promotion;   /* boundary to publish once; 0: none */
	uint32_t                    tail;        /* tokens of the last chunk, reserved; 0: none */
	uint32_t                    reserve;     /* room of the next decode step; 0: as usual */
	uint32_t                    pending;     /* forwards whose tokens have not come */
	uint64_t                    fence;       /* the last load that fills a block it reads; 0: none */
	/* Retraction. */
	uint32_t                    snapshot;    /* SLOT_NONE */
	uint32_t                    retractions;
	/* What is told of it. */
	bool                        admitted;    /* ever */
	enum sched_end              end;
	struct explanation          explanation;
};

/*
 * Take the edge for this event: its action, then what the new state does not own is given back.  A
 * missing edge is a panic.
 */
void request_step(struct sched *sched, struct request *request, enum request_event on);

bool request_can(const struct request *request, enum request_event on);

const char *request_state_name(enum request_state state);
const char *request_event_name(enum request_event event);

/* The table as text, one "FROM -> TO on EVENT" a line, for docs/design/scheduler.md. */
void request_edges_print(char *buffer, size_t buffer_bytes);

/* Owns a place and tables. */
bool request_computes(enum request_state state);
/* Owns what was taken from storage. */
bool request_prepares(enum request_state state);

#endif
