/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An adapter from inside, and how facts and notices of its executor find back to their tasks.  Private
 * to the room.
 *
 * Threads  With the adapter's lock, all of them.
 */
#ifndef ADAPTER_ROUTE_H
#define ADAPTER_ROUTE_H

#include "adapter/adapter.h"
#include "os/os.h"

struct adapter {
	struct exec *exec;
	int          fds[TASK_KIND_COUNT];

	struct os_mutex      lock; /* protects all below; taken before the executor's */
	struct tasks         tasks;
	struct adapter_stats stats;
	struct histogram     throughput[TASK_KIND_COUNT];
	bool                 closing;
};

/* The fact of an op that waits for it, from the executor or of one that was refused. */
void route_fact(struct adapter *adapter, const struct fact *fact);

/* An op retired after all; KVS_E_STALE when no such op is unretired. */
int route_notice(struct adapter *adapter, const struct retirement_notice *notice);

/* All that the executor has. */
void route_all(struct adapter *adapter);

#endif
