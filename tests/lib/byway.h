/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A way to a Mooncake cluster of the test's own, for what lies above ways.
 *
 * The cluster is a table of names and values that answers as the SDK does: a put of what is there
 * is 0, a value that does not fit a get is -600, a put that finds no room -200.  A byway ends the
 * program when its user breaks a rule: names that come twice in a call, two calls at once on a lane,
 * moves on the lane of lookups.
 *
 * Threads  Any; a closed gate holds callers inside, as a state and not a matter of time.
 */
#ifndef LIB_BYWAY_H
#define LIB_BYWAY_H

#include <stdatomic.h>

#include "mooncake/way.h"
#include "os/os.h"

#define BYWAY_OBJECTS 2048u
#define BYWAY_ODD_MAX 8u

struct byway_cluster {
	struct os_mutex mutex; /* guards all of this, and the byways of it */
	struct os_cond  moved;
	struct byway_object {
		char     name[LABEL_TEXT_MAX]; /* "": free */
		uint8_t *bytes;
		size_t   count;
	} object[BYWAY_OBJECTS];
	uint32_t object_count;
	uint32_t object_max; /* more are refused */
};

struct byway {
	struct mooncake_way      way;
	struct byway_cluster    *cluster;
	struct mooncake_way_info info;   /* as it is described */
	bool                     reaps;  /* what proves nothing has its agent killed, and retires */
	bool                     shut;   /* the gate, for gets and puts */
	bool                     shut_lookups;
	int                      rc;     /* of each call, with nothing done: the lane is down */
	bool                     clings; /* and such a call has not retired */
	_Atomic bool             settled;
	_Atomic uint32_t         down; /* a lane's number and 1; 0: none is */
	int                      register_rc, close_rc;
	/* Names that get this code and nothing else. */
	struct {
		char    name[LABEL_TEXT_MAX];
		int64_t code;
	} odd[BYWAY_ODD_MAX];
	uint32_t odd_count;

	/* What happened. */
	uint32_t inside; /* callers at the gate */
	bool     busy[1 + MOONCAKE_LANES_MAX];
	uint32_t last_lane;
	uint32_t calls[MOONCAKE_VERB_COUNT];
	uint32_t rows[MOONCAKE_VERB_COUNT];
	uint32_t rows_most; /* of one call */
	uint64_t got_bytes_max; /* the largest room of a get */
	struct kvs_memory memory; /* as it was told last */
	char     expression[2 * LABEL_TEXT_MAX]; /* of the last purge */
	bool     closed;
};

void byway_cluster_init(struct byway_cluster *cluster);
void byway_cluster_fini(struct byway_cluster *cluster);
void byway_init(struct byway *byway, struct byway_cluster *cluster);

/* Of a store on it: two lanes, verified, prefix kvs, a minute for everything. */
void byway_settings(struct mooncake_settings *ret_settings);

struct byway_object *byway_find(struct byway_cluster *cluster, const struct kvs_key *key);
void byway_make_odd(struct byway *byway, const struct kvs_key *key, int64_t code);

void byway_shut(struct byway *byway, bool moves, bool lookups);
void byway_wait_inside(struct byway *byway, uint32_t count);

#endif
