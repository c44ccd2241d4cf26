/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Way AGENT over an SDK of the test's own, tests/sdk: no wheel, no master, no cluster.
 *
 * The cluster is a folder; what follows "!" in a name is what the SDK does wrong.
 */
#ifndef LIB_TROUPE_H
#define LIB_TROUPE_H

#include <sys/types.h>

#include "mooncake/agent.h"

#define TROUPE_BYTES ((size_t)1 << 20)

struct troupe {
	struct mooncake_settings settings; /* between troupe_init() and troupe_open() the test's */
	struct mooncake_way     *way;
	uint8_t                 *memory; /* TROUPE_BYTES, shared with the agents */
	int                      memory_fd;
	int                      master; /* it listens, no more */
	char                     folder[64];
};

void troupe_init(struct troupe *troupe, uint64_t lanes);
/* Opens the way, which must succeed, and registers the memory. */
void troupe_open(struct troupe *troupe);
/* Closes it, when it is open; the way's code. */
int  troupe_close(struct troupe *troupe);
void troupe_fini(struct troupe *troupe);

/* One name, with the memory at offset; its code goes to *ret_code. */
int troupe_call(struct troupe *troupe, uint32_t lane, enum mooncake_verb verb, const char *name,
		size_t offset, size_t bytes, int64_t *ret_code, bool *ret_retired);

struct mooncake_way_info troupe_describe(struct troupe *troupe);
/* Until that many lanes are up. */
void troupe_await_lanes(struct troupe *troupe, uint32_t lanes);

/* --- one agent -------------------------------------------------------------------------------- */
/* Until a caller has it. */
void  troupe_await_busy(struct troupe *troupe, uint32_t lane);
pid_t troupe_pid(struct troupe *troupe, uint32_t lane);

#endif
