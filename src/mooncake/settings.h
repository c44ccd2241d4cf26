/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Mooncake store is opened with, every field checked: store/mooncake_settings.c reads it from
 * a spec, a configuration file and the environment.
 */
#ifndef MOONCAKE_SETTINGS_H
#define MOONCAKE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "key/label.h"

#define MOONCAKE_TEXT_MAX 256u
#define MOONCAKE_PATH_MAX 512u
#define MOONCAKE_LANES_MAX 16u

/* How the client of the SDK is reached. */
enum mooncake_way_kind {
	MOONCAKE_AGENT,  /* processes of their own, which can be killed */
	MOONCAKE_LIBRARY /* the client library, loaded into this process, on threads of its own */
};

struct mooncake_settings {
	/* What the SDK's setup() takes; "" where it has a default of its own. */
	char     local_hostname[MOONCAKE_TEXT_MAX];
	char     metadata_server[MOONCAKE_TEXT_MAX];
	char     master[MOONCAKE_TEXT_MAX]; /* HOST:PORT */
	char     protocol[32];
	char     device[MOONCAKE_TEXT_MAX];
	char     tenant[MOONCAKE_TEXT_MAX]; /* "default" or, with agents only, another */
	uint64_t segment_bytes;             /* this process's share of the pool; 0: a pure client */
	uint64_t local_buffer_bytes;
	uint64_t replica_count;             /* copies of each object; at least 1 */

	enum mooncake_way_kind way;
	char     library[MOONCAKE_PATH_MAX]; /* of way LIBRARY */
	char     python[MOONCAKE_PATH_MAX];  /* of way AGENT: an interpreter that has the wheel */
	char     agent[MOONCAKE_PATH_MAX];   /* the script; "": looked for, see agent.h */
	char     log[MOONCAKE_PATH_MAX];     /* what agents say; "": nowhere */

	/* How many gets and puts run at once, a lane each; one more lane is for all other calls. */
	uint64_t lanes;
	uint64_t timeout_ns;         /* a call that takes longer hangs */
	uint64_t connect_timeout_ns; /* for setup and the first answer */
	uint64_t reap_timeout_ns;    /* how long a call waits for the end of the agent it had killed */
	bool     required;           /* open() fails where the master is away; else it comes later */
	bool     verified;           /* objects carry a seal, see key/label.h */
	char     prefix[LABEL_PREFIX_MAX + 1];

	uint64_t lease_ns;  /* the master's: what a probe finds is kept from eviction so long */
	uint64_t probe_max; /* objects that probes may keep at a time */
	char     metrics[MOONCAKE_TEXT_MAX]; /* HOST:PORT of the master's HTTP interface; "": none */
};

#endif
