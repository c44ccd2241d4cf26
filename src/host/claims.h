/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which client holds how many locks on which record of a shard.
 *
 * A claim is one pair of client and record.  It is in a chain of its record, in a list of its
 * client, and, when it can expire, in a list by expiry.
 *
 * Cost     Finding one is O(claims of the record), the rest O(1).
 * Limits   capacity claims; memory is touched as it comes into use.
 * Threads  None of its own: the shard's.
 */
#ifndef HOST_CLAIMS_H
#define HOST_CLAIMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct claim {
	uint64_t expiry_ns; /* HOST_FOREVER: never */
	uint32_t client;    /* its slot */
	uint32_t record;
	uint32_t count; /* at least 1 */
	uint32_t next;  /* of its record, or of the free */
};

struct claims {
	struct claim *claims;
	struct link  *client_links, *expiry_links;
	struct list  *of_client; /* by slot */
	struct list   expiring;  /* the first to expire first */
	uint32_t      capacity, client_max;
	uint32_t      known;
	uint32_t      free;
	uint32_t      count;
};

/* 0, or -ENOMEM. */
int  claims_open(struct claims *claims, uint32_t capacity, uint32_t client_max);
void claims_close(struct claims *claims);

/* In the chain that begins with `first`; SLOT_NONE. */
uint32_t claims_find(const struct claims *claims, uint32_t first, uint32_t client);

/*
 * A new one of count 0 at the head of the chain; SLOT_NONE when all are taken.  It must be counted
 * and timed.
 */
uint32_t claims_add(struct claims *claims, uint32_t *first, uint32_t record, uint32_t client);

/* Times only grow. */
void claims_time(struct claims *claims, uint32_t slot, uint64_t expiry_ns);

/* Out of all lists and of the chain. */
void claims_drop(struct claims *claims, uint32_t *first, uint32_t slot);

size_t claims_bytes(const struct claims *claims);
void   claims_audit(const struct claims *claims);

#endif
