/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SDK's client in processes of their own, one a lane: see docs/design/mooncake-agent.md.
 *
 *   worker --call--> lane --frame--> kvstrata-mooncake-agent --> client of the SDK --> the cluster
 *                                       maps the same memory
 *
 * A *keeper*, the way's own thread, starts agents, watches for their end and starts them again, with
 * longer and longer pauses.  A call that hangs past the limit, or whose codes prove nothing, has its
 * agent killed; when that has been reaped within reap_timeout_ns the call returns retired, and a later
 * end is told by settled().
 *
 * Trust     The end of an agent proves something only if it was confined (os/jail.h) and moves payload
 *           with socket copies alone, protocol tcp; otherwise death_retires is NOTHING, and what is in
 *           doubt stays so.
 * Script    settings.agent; else KVSTRATA_MOONCAKE_AGENT in the environment; else
 *           kvstrata-mooncake-agent beside the running program; else on the PATH.
 * Memory    Spans must lie in registered memory that has a descriptor: others are KVS_E_INVALID.
 */
#ifndef MOONCAKE_AGENT_H
#define MOONCAKE_AGENT_H

#include "mooncake/way.h"

/**
 * Start the keeper, and wait until the lookups' agent has heard from the master.
 *
 * Errors  KVS_E_INVALID, -errno  no interpreter, no script, no wheel, or the SDK refused the settings;
 *         -ETIMEDOUT             not within connect_timeout_ns.  Where `required` is not set, only
 *                                what cannot heal by itself is an error.
 */
int mooncake_agent_open(const struct mooncake_settings *settings, struct mooncake_way **ret_way,
			struct kvs_error *err);

#endif
