/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A way to the SDK's client: calls of it over several names, and when their bytes are at rest.
 *
 * The two ways, library.h and agent.h, have this one shape.  Both are cut into lanes, which run one
 * call at a time each; the store (store/mooncake.c) leases lanes and knows keys, seals and results.
 *
 * Outcomes  A call that returns 0 was answered: one code a name, see codes.h.  A negative return says
 *           that nothing is known of any name: the lane is down, the call hung, or the answer was none.
 *           *ret_retired is a fact of its own, with either return: nothing will touch the spans again.
 * Threads   The caller is an executor's worker or an administrator; no symbol of the SDK ever runs on
 *           its thread.  It waits at most timeout_ns and reap_timeout_ns of the settings.
 */
#ifndef MOONCAKE_WAY_H
#define MOONCAKE_WAY_H

#include <kvstrata/store.h>

#include "base/err.h"
#include "mooncake/settings.h"

/* The lane of lookups, removals and purges; 1 .. settings.lanes are for gets and puts. */
#define MOONCAKE_LOOKUPS 0u

#define MOONCAKE_NAMES_MAX 1024u

/* Behind the prefix: a name that nobody has, to ask the master for. */
#define MOONCAKE_SENTINEL ":sentinel"

enum mooncake_verb {
	MOONCAKE_EXISTS,
	MOONCAKE_GET,
	MOONCAKE_PUT,
	MOONCAKE_REMOVE, /* with force: a lease does not keep it */
	MOONCAKE_PURGE,  /* all that match names[0], a regular expression; codes[0] is how many went */
	MOONCAKE_VERB_COUNT
};

/* Calls of it have spans. */
static inline bool mooncake_moves(enum mooncake_verb verb)
{
	return verb == MOONCAKE_GET || verb == MOONCAKE_PUT;
}

/* All arrays are the caller's and are read and written during the call only, whatever becomes of it. */
struct mooncake_call {
	enum mooncake_verb     verb;
	uint32_t               count; /* 1 .. MOONCAKE_NAMES_MAX; of PURGE 1 */
	const char *const     *names; /* distinct; shorter than 2 * LABEL_TEXT_MAX */
	const struct kvs_span *spans; /* GET, PUT: bytes is what moves at most, the seal included */
	int64_t               *codes; /* written when the return is 0 */
};

struct mooncake_way_info {
	enum kvs_death death_retires;
	bool           reached;   /* the master has answered since open */
	uint32_t       lanes_up;
	uint64_t       restarts;  /* of agents, since open */
	uint64_t       kills;     /* of them for a call that hung or proved nothing */
	uint64_t       memory_bytes;
	char           note[96];  /* why lanes are down, or what was not had; "" when all is well */
};

struct mooncake_way;

struct mooncake_way_ops {
	int  (*call)(struct mooncake_way *way, uint32_t lane, const struct mooncake_call *call,
		     bool *ret_retired);
	/* Whether a call of the lane would be tried now; a hint, and at once. */
	bool (*is_up)(struct mooncake_way *way, uint32_t lane);
	/* See kvs_store_ops. */
	int  (*register_memory)(struct mooncake_way *way, const struct kvs_memory *memory);
	bool (*settled)(struct mooncake_way *way);
	void (*describe)(struct mooncake_way *way, struct mooncake_way_info *ret_info);
	/* KVS_E_QUARANTINE: something of it may still run; nothing was freed. */
	int  (*close)(struct mooncake_way *way);
};

struct mooncake_way {
	const struct mooncake_way_ops *ops;
};

#endif
