/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay: requests through the whole system with real bytes, the reference engine checking each.
 *
 * One thread is engine and scheduler; the executor's workers are the only others.  The replayer
 * stands where a model server stands: it submits prompts, runs the plans, and reports.  A request
 * ends with its prompt: its one new token is sampled and never computed.
 */
#ifndef APP_REPLAY_H
#define APP_REPLAY_H

#include "app/replay_device.h"
#include "app/replay_totals.h"
#include "app/source.h"
#include "exec/exec.h"

/* --explain was not given. */
#define EXPLAIN_NONE UINT64_MAX

/* The command's settings: fields, flags and JSON keys share their names. */
struct replay_settings {
	const char *trace;
	const char *groups;
	uint64_t    block_bytes;
	uint64_t    device_blocks;
	uint64_t    host_blocks;
	const char *store;
	const char *policy;
	double      speed; /* of the trace's clock; 0: as fast as it goes */
	uint64_t    concurrency;
	uint64_t    chunk_tokens;
	uint64_t    deadline; /* ns; UINT64_MAX: none */
	uint64_t    ready_hold; /* ns; UINT64_MAX: none */
	uint64_t    min_extension; /* tokens */
	uint64_t    op_credits;
	uint64_t    host_credits; /* 0: three quarters of what Host holds */
	const char *watermarks;
	double      prefill_tokens_per_s;
	uint64_t    limit; /* requests; 0: all of a trace, 3,000 generated ones */
	uint64_t    seed;
	uint64_t    explain; /* a request's number; EXPLAIN_NONE */
	const char *metrics;
	bool        json;
};

/* A place for a request that the scheduler has; page_ids has page_max of them. */
struct replay_place {
	bool      used;
	uint32_t  page_count;
	uint32_t  token_count;
	uint64_t  number; /* of the request in its source */
	uint64_t *page_ids;
};

struct replay {
	const struct replay_settings *set;
	struct replay_shape           shape;
	struct source                *source;
	struct arena                 *arena;
	struct arena_part             host;
	struct hostmap                hostmap;
	struct replay_device          device;
	struct group_engine           engine;
	struct kvs_store             *store; /* NULL: none */
	struct exec                  *exec;  /* NULL without a store */
	struct agree                 *agree;
	struct sched                 *sched;
	struct replay_totals          totals;
	uint32_t                      concurrency;
	uint32_t                      page_max;
	uint32_t                      backlog_max; /* waiting puts that hold requests back at full speed */
	struct replay_place          *places;      /* concurrency */
	uint32_t                      live;        /* places in use */
	int32_t                      *tokens;      /* page_max pages: of the prompt being looked at */
	struct sched_event           *events;      /* two a place */
	uint32_t                      event_count;
	bool                          leaving;     /* requests have ended: what they leave is not saved yet */
	/* What the next round is told. */
	struct fact                  *facts;       /* op credits */
	uint32_t                      fact_count;  /* of ops that the executor refused */
	struct retirement_notice     *notices;     /* op credits */
	uint64_t                     *copies;      /* copies_max: tickets behind their fence */
	uint32_t                      copies_max;
	struct source_request         next;        /* read ahead, not yet submitted */
	bool                          has_next;
	uint64_t                      parents_in;  /* that the prompts in the engine take at most */
	bool                          starved;     /* the source is a pipe with nothing in it yet */
	bool                          ended;       /* the source has no more, or the run shall stop */
	bool                          idle;        /* the last round did nothing */
	bool                          given_up;    /* the store is: what it still has will not come back */
	uint64_t                      start_ns;
	uint64_t                      busy_ns;     /* the last round that did something */
};

/* Errors: KVS_E_INVALID for settings (field, value, rule), others for what could not be opened. */
int  replay_open(struct replay *replay, const struct replay_settings *set, struct kvs_error *err);
/*
 * KVS_E_QUARANTINE: some I/O of the store is not known to be over; what it may touch stays as it
 * is.
 */
int  replay_close(struct replay *replay);

/*
 * To the end of the source, or of patience.  KVS_E_INVALID: a malformed line; the rest of the
 * system has come to rest.
 */
int replay_run(struct replay *replay, struct kvs_error *err);

/* Submit a request, which fits, into a free place. */
void replay_submit(struct replay *replay, const struct source_request *request);
/* The scheduler's round: report, agree, plan, dispatch, copy, compute.  Whether it did anything. */
bool replay_round(struct replay *replay);
/* Bytes are in doubt, and nobody will ever say that they are not: no storage op any more. */
bool replay_quarantined(const struct replay *replay);
/* Bytes are in doubt. */
bool replay_doubts(const struct replay *replay);

/* The report on stdout: one page for people, or one JSON object. */
void replay_print(const struct replay *replay);
int  replay_print_json(const struct replay *replay, struct kvs_error *err);
/* The same figures as Prometheus text. */
int  replay_write_metrics(const struct replay *replay, const char *path, struct kvs_error *err);

#endif
