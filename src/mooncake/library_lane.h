/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane of the library: a hand, and all that a call of the SDK is given while it is out.
 *
 * Names, addresses and sizes are copied in, codes are copied out: a call that hangs outlives its
 * caller.  Payload is the caller's, and in doubt until its call has been proven over.
 */
#ifndef MOONCAKE_LIBRARY_LANE_H
#define MOONCAKE_LIBRARY_LANE_H

#include "key/label.h"
#include "mooncake/hand.h"
#include "mooncake/library_sdk.h"
#include "mooncake/way.h"

#define LANE_TEXT_BYTES (MOONCAKE_NAMES_MAX * 2 * (size_t)LABEL_TEXT_MAX)

struct library;

struct library_lane {
	struct hand       hand; /* first */
	struct library   *library;
	const struct sdk *sdk;
	void             *client;
	size_t            replicas;

	/* What was asked for, in this memory, and what was answered. */
	struct mooncake_call call;
	int                  rc;
	bool                 retired; /* by the codes alone */

	/* As the SDK takes them. */
	const char     *names[MOONCAKE_NAMES_MAX];
	void           *buffers[MOONCAKE_NAMES_MAX];
	size_t          sizes[MOONCAKE_NAMES_MAX];
	int             answers[MOONCAKE_NAMES_MAX];
	int64_t         codes[MOONCAKE_NAMES_MAX];
	struct kvs_span spans[MOONCAKE_NAMES_MAX];
	char            text[LANE_TEXT_BYTES];
};

/* The hand is held. */
void library_lane_fill(struct library_lane *lane, const struct mooncake_call *call);

/* The hand's work: rc 0 and codes; KVS_E_PROTO for an answer that is none. */
void library_lane_work(struct hand *hand);

/* One of its codes can only be the master's. */
bool library_lane_heard(const struct library_lane *lane);

#endif
