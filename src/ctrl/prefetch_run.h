/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One prefetch request from its queue to its end: which facts lead where, and what is done on the
 * way.
 *
 *   QUEUED  it waits; nothing of it is anywhere but the locks its reader holds
 *   LOOKUP  adapters were asked, and hold locked what they found
 *   LOAD    objects are staged, and loads under way
 *   DRAIN   it has its result, and waits for I/O that is late
 *   OVER    nothing of it is left but that result
 *
 * Facts are told with prefetch_run_looked_up(), _loaded() and _retired(); what follows from them is
 * done by `hands`, before the call returns.  The result stands as soon as the state is DRAIN or
 * OVER.
 *
 * Ledgers   found[i] has bit n while adapter n holds keys[i] locked for this run; `staged` a bit
 *           while the Host holds a reservation of it; `have` a bit while the reader holds
 *           lock_count locks.  Whoever gives one back clears the bit, so that none is given back
 *           twice, and OVER asserts that no lock of a store and no reservation is left.
 *
 * Pure: no thread, no clock, no allocation after open; what it reaches, it reaches through `hands`.
 */
#ifndef CTRL_PREFETCH_RUN_H
#define CTRL_PREFETCH_RUN_H

#include "ctrl/prefetch_ctrl.h"

/* What was asked, copied: constant while it lives. */
struct prefetch_ask {
	uint64_t        request_id; /* also the tag of what is staged for it */
	host_client     reader;
	struct flat     flat;
	uint32_t        chunk_count, key_count, lock_count;
	bool            retain;
	uint64_t        deadline_ns;
	uint64_t        need_bytes; /* of all keys that are not held */
	struct kvs_key *keys;
	uint64_t       *bytes;
	uint64_t       *held;
};

/* What a run does in the world.  None of it waits for storage, and none calls back. */
struct prefetch_hands {
	/* One bit a key that is resident. */
	void (*look)(void *arg, const struct kvs_key *keys, uint32_t count, uint64_t *ret_words);
	/* For the reader, lock_count each; rc 0 where it holds them now. */
	void (*lock)(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys,
		     uint32_t count, int *ret_rc);
	void (*unlock)(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys,
		       uint32_t count);
	/* Stage: room for all that want it, or for none; rows as host_reserve() has them. */
	void (*reserve)(void *arg, const struct prefetch_ask *ask, bool temporary,
			const struct kvs_key *keys, const uint64_t *bytes, uint32_t count,
			struct kvs_span *ret_spans, int *ret_rc);
	/* What was staged is resident and the reader's, or, where rc is not 0, still staged. */
	void (*publish)(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys,
			uint32_t count, int *ret_rc);
	void (*discard)(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys,
			uint32_t count);
	/* Of the adapter of a number: 0, or a refusal. */
	int (*lookup)(void *arg, uint32_t adapter, const struct kvs_key *keys, uint32_t count,
		      uint64_t *ret_task_id);
	int (*load)(void *arg, uint32_t adapter, const struct kvs_key *keys,
		    const struct kvs_span *spans, uint32_t count, uint64_t *ret_task_id);
	void (*unlock_store)(void *arg, uint32_t adapter, const struct kvs_key *keys,
			     uint32_t count);
};

/* What runs share; arrays of request_keys, for one call at a time. */
struct prefetch_tools {
	const struct prefetch_hands      *hands;
	void                             *arg;
	const struct kvs_prefetch_policy *policy;
	struct prefetch_ctrl_stats       *stats;      /* what the run has to count is counted there */
	struct kvs_adapter_info           infos[KVS_ADAPTERS_MAX]; /* of those that stay */
	uint32_t                          info_count;

	uint32_t        *index; /* which key of the request a row is */
	struct kvs_key  *keys;
	uint64_t        *found;
	uint64_t        *words;
	uint8_t         *from;
	struct kvs_span *spans;
	int             *rc;
};

enum run_state { RUN_QUEUED, RUN_LOOKUP, RUN_LOAD, RUN_DRAIN, RUN_OVER, RUN_STATE_COUNT };

enum run_event {
	RUN_START,   /* it is taken out of the queue */
	RUN_FOUND,   /* every lookup has been answered */
	RUN_LOADED,  /* every load has ended */
	RUN_GIVE_UP, /* deadline, cancel or stop */
	RUN_QUIET,   /* nothing is under way, and nothing in doubt */
	RUN_EVENT_COUNT
};

/* With one adapter; an id of 0 names no task. */
struct run_tasks {
	uint64_t lookup_id; /* not answered */
	uint64_t load_id;   /* not ended, or in doubt */
	bool     doubt;     /* it ended unretired */
	uint32_t lock_count; /* keys that it holds locked for this run */
};

struct prefetch_run {
	enum run_state             state;
	const struct prefetch_ask *ask;
	struct run_tasks           tasks[KVS_ADAPTERS_MAX];
	uint32_t                   lookups, loads, doubts; /* sums over them */
	uint32_t                   found_boundary;
	bool                       found_known;
	uint32_t                   boundary; /* what is aimed at */
	enum prefetch_end          end;      /* what cut it */
	uint64_t                   bytes;    /* of the Host: what it may take, from LOAD on what it has */
	struct prefetch_result     result;   /* from DRAIN on */

	/* Bits, one a key. */
	uint64_t *have;   /* locked for the reader; from DRAIN on: what the result says */
	uint64_t *loaded; /* of them, by this run */
	uint64_t *asked;  /* of adapters */
	uint64_t *usable; /* planned, and not refused by the Host */
	uint64_t *keep;   /* used at the boundary */
	uint64_t *staged;
	/* Values, one a key. */
	uint64_t        *found;
	uint8_t         *from;
	struct kvs_span *spans; /* of the staged */
};

/* For up to request_keys keys: 0, or -ENOMEM. */
int  prefetch_run_open(struct prefetch_run *run, uint32_t request_keys);
void prefetch_run_close(struct prefetch_run *run);
int  prefetch_tools_open(struct prefetch_tools *tools, uint32_t request_keys);
void prefetch_tools_close(struct prefetch_tools *tools);

/* Take up a request, QUEUED; the ask stays until the run is OVER.  The one before is OVER. */
void prefetch_run_begin(struct prefetch_run *run, const struct prefetch_ask *ask);

/* QUEUED only: ask those that stay for what Host has not. */
void prefetch_run_start(struct prefetch_run *run, struct prefetch_tools *tools);

/* Before it has its result: for END_DEADLINE with what has come, else with nothing. */
void prefetch_run_give_up(struct prefetch_run *run, struct prefetch_tools *tools,
			  enum prefetch_end why);

/* The lookup at an adapter was answered: one bit a key that was asked. */
void prefetch_run_looked_up(struct prefetch_run *run, struct prefetch_tools *tools,
			    uint32_t adapter, const uint64_t *words);

/* The load at an adapter ended: one bit a key of it; unretired ones keep what is not set. */
void prefetch_run_loaded(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t adapter,
			 const uint64_t *words, bool retired);

/* The load that was in doubt has retired. */
void prefetch_run_retired(struct prefetch_run *run, struct prefetch_tools *tools,
			  uint32_t adapter);

/* The adapter leaves: what it found for a run that still looks is given back. */
void prefetch_run_leave(struct prefetch_run *run, struct prefetch_tools *tools, uint32_t adapter);

/* Whether the run has something at an adapter: a task, a doubt, or locks. */
bool prefetch_run_uses(const struct prefetch_run *run, uint32_t adapter);

static inline bool prefetch_run_has_result(const struct prefetch_run *run)
{
	return run->state == RUN_DRAIN || run->state == RUN_OVER;
}

/*
 * Every edge there is, a line each, cut at the buffer's end: docs/design/controllers.md shows them.
 */
void prefetch_run_edges_print(char *buffer, size_t buffer_bytes);

/* O(keys): sums, and what each state may hold. */
void prefetch_run_audit(const struct prefetch_run *run);

#endif
