/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both controllers share: limits, and adapters that come and go.
 *
 * A controller is one thread in an event loop: it sleeps on eventfds (its own, and those of each
 * adapter), takes what is done, submits what is next.  Other threads hand it values through bounded
 * queues.
 *
 * Adapters are attached under a number and detached in two steps: from ..._detach() on nothing new
 * goes to the adapter; once what is in flight there is over and its buffers are free,
 * ..._detached() says so and the adapter may be closed.  An adapter with bytes in doubt stays
 * detaching.
 *
 *   ..._attach()    0; KVS_E_INVALID: no such number, or no adapter; KVS_E_BUSY: the number is
 *                   taken, a detaching adapter keeps it; KVS_E_CLOSED: closing; -errno: it cannot
 *                   be watched.  The name is the caller's, as long as the adapter is attached.
 *   ..._detach()    A number without an adapter is none to detach.
 *   ..._detached()  Waits until the number is free; false at deadline_ns (a time).
 *
 * An adapter has op_max of its own: for stores as many as in_flight_max, for lookups and loads as
 * many as all requests under way have thousands (OP_KEYS_MAX) of keys, and a lock_max for all their
 * keys.  What it refuses waits (stores) or counts as not found or failed (lookups, loads).
 */
#ifndef CTRL_CTRL_H
#define CTRL_CTRL_H

#include "adapter/adapter.h"
#include "host/host.h"

#include <kvstrata/policy.h>

#define CTRL_IN_FLIGHT_MAX 1024u
#define CTRL_QUEUE_MAX     1048576u
#define CTRL_KEYS_MAX      65536u /* of one prefetch */

struct ctrl_limits {
	uint32_t in_flight_max;   /* tasks an adapter (store); requests (prefetch); at least 1 */
	uint64_t in_flight_bytes; /* payload an adapter (store), Host bytes (prefetch); 0: no limit */
	uint32_t queue_max;       /* keys an adapter (store); requests (prefetch), those under way and results
				   * that nobody took included; at least 1 */
	uint32_t request_keys;    /* of one prefetch request; up to CTRL_KEYS_MAX */
};

#endif
