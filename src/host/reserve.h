/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of a writer have in common. */
#ifndef HOST_RESERVE_H
#define HOST_RESERVE_H

#include "host/rows.h"

struct write {
	struct host       *host;
	struct host_writer writer;
	unsigned           flags;   /* of host_reserve() */
	const uint64_t    *bytes;   /* of host_reserve() */
	host_client        reader;  /* of host_finish_locked() */
	uint32_t           locks;   /* of host_finish_locked() */
	struct kvs_span   *spans;   /* of both */
	int               *rc;
	uint32_t           waiting; /* rows that go the long way */
};

/* Rows with rc 0 only: drop what the writer stages. */
void reserve_undo(struct visit *visit, const struct group *group, void *call);

#endif
