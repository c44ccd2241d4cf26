/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay: requests through the whole system with real bytes, the reference engine checking each.
 *
 * One thread is engine and scheduler; the executor's workers are the only others.  The replayer
 * stands where a model server stands: it submits prompts, runs the plans, and reports.
 */
#ifndef APP_REPLAY_H
#define APP_REPLAY_H

#include "app/source.h"
#include "arena/arena.h"
#include "device/device.h"
#include "engine/engine.h"
#include "exec/exec.h"
#include "metrics/metrics.h"
#include "mono_sched/sched.h"

/* The command's settings: fields, flags and JSON keys share their names. */
struct replay_settings {
	const char *trace;
	uint64_t    block_bytes;
	uint64_t    device_blocks;
	uint64_t    host_blocks;
	const char *store;
	const char *policy;
	double      speed; /* of the trace's clock; 0: as fast as it goes */
	uint64_t    concurrency;
	uint64_t    deadline; /* ns; UINT64_MAX: none */
	double      prefill_tokens_per_s;
	uint64_t    limit; /* requests; 0: all of a trace, 3,000 generated ones */
	uint64_t    seed;
	const char *metrics;
	bool        json;
};

/* Everything a report says that no room counts by itself. */
struct replay_totals {
	uint64_t         requests;
	uint64_t         blocks;
	uint64_t         tokens;
	uint64_t         origin_blocks[MONO_ORIGIN_COUNT];
	uint64_t         origin_tokens[MONO_ORIGIN_COUNT];
	uint64_t         too_long;      /* requests that did not fit the Device */
	uint64_t         elapsed_ns;
	bool             interrupted;
	struct histogram restore_ns;    /* from QUERY to READY, of the reads that brought something */
	struct histogram ttft_store_ns; /* modelled: the wait, and the prefill of what was not restored */
	struct histogram ttft_local_ns; /* the same without the store: its pages computed, no wait */
	struct histogram ttft_none_ns;  /* everything computed */
};

struct replay {
	const struct replay_settings *set;
	struct source                *source;
	struct arena                 *arena;
	struct arena_part             host;
	struct device                 device;
	struct kvs_store             *store; /* NULL: none */
	struct exec                  *exec;  /* NULL without a store */
	struct mono_sched            *sched;
	struct engine                 engine;
	struct replay_totals          totals;
	uint32_t                      concurrency;
	uint32_t                      page_max;
	uint32_t                      backlog_max; /* waiting puts that hold requests back at full speed */
	uint64_t                     *page_ids;    /* concurrency rows of page_max */
	void                        **blocks;      /* page_max */
	int32_t                      *tokens;      /* page_max pages: of the prompt being submitted */
	struct fact                  *facts;       /* op credits */
	struct source_request         next;        /* read ahead, not yet submitted */
	bool                          has_next;
	uint64_t                      pages_in;    /* of the prompts that are in the engine */
	bool                          starved;     /* the source is a pipe with nothing in it yet */
	bool                          ended;       /* the source has no more, or the run shall stop */
	uint64_t                      start_ns;
	uint64_t                      busy_ns;     /* the last round that did something */
};

/* Errors: KVS_E_INVALID for settings (field, value, rule), others for what could not be opened. */
int  replay_open(struct replay *replay, const struct replay_settings *set, struct kvs_error *err);
/* KVS_E_QUARANTINE: some I/O of the store is not known to be over; what it may touch stays as it is. */
int  replay_close(struct replay *replay);

/*
 * To the end of the source, or of patience.  KVS_E_INVALID: a malformed line; the rest of the
 * system has come to rest.
 */
int replay_run(struct replay *replay, struct kvs_error *err);

/* The report on stdout: one page for people, or one JSON object. */
void replay_print(const struct replay *replay);
int  replay_print_json(const struct replay *replay, struct kvs_error *err);
/* The same figures as Prometheus text. */
int  replay_write_metrics(const struct replay *replay, const char *path, struct kvs_error *err);

#endif
