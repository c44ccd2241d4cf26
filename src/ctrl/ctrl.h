/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both controllers share: limits, and adapters that come and go.
 *
 * A controller is one thread in an event loop: it sleeps on eventfds (its own, and one of each adapter), takes
 * what is done, submits what is next.  Other threads hand it values through bounded queues.
 *
 * Adapters are attached under a number and detached in two steps: from ..._detach() on nothing new goes to the
 * adapter; once what is in flight there is over and its buffers are free, ..._detached() says so and the adapter
 * may be closed.  An adapter with bytes in doubt stays detaching.
 */
#ifndef CTRL_CTRL_H
#define CTRL_CTRL_H

#include "adapter/adapter.h"
#include "host/host.h"

#include <kvstrata/policy.h>

#define CTRL_IN_FLIGHT_DEFAULT 8u
#define CTRL_KEYS_MAX          65536u /* of one prefetch */

struct ctrl_limits {
	uint32_t in_flight_max;   /* tasks an adapter (store); requests (prefetch); at least 1 */
	uint64_t in_flight_bytes; /* payload an adapter (store), Host bytes reserved (prefetch); 0: no limit */
	uint32_t queue_max;       /* keys an adapter (store); requests, those under way included (prefetch) */
	uint32_t request_keys;    /* of one prefetch request; up to CTRL_KEYS_MAX */
};

#endif
