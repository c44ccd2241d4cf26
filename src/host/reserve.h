/* SPDX-License-Identifier: Apache-2.0 */
/* A reservation on its way, and what its short and its long way have in common. */
#ifndef HOST_RESERVE_H
#define HOST_RESERVE_H

#include "host/life.h"
#include "host/purse.h"
#include "host/rows.h"
#include "host/write.h"

/* Of a row that is still to be served. */
#define ROW_WAITS 1

struct reserve {
	struct host     *host;
	struct write     write;
	unsigned         flags;
	const uint64_t  *bytes;
	struct kvs_span *spans;
	uint64_t         now_ns;
	struct purse     purse;
	uint32_t         left;   /* rows that may still want a place */
	uint32_t         budget; /* objects that the visit may still evict */
};

/* One row on its way to a record. */
struct attempt {
	const struct kvs_key *key;
	uint64_t              hash;
	uint32_t              row;
	uint32_t              pages;
	uint32_t              tenant;
	uint32_t              slot;
};

static inline uint64_t reserve_bytes(const struct attempt *attempt)
{
	return (uint64_t)attempt->pages << SPACE_PAGE_BITS;
}

/* KVS_E_EXISTS or KVS_E_BUSY, else 0; first is that of the key. */
int reserve_may(const struct visit *visit, const struct reserve *call, uint32_t first);

/* What all records of a visit have in common. */
struct life_start reserve_start(const struct visit *visit, const struct reserve *call);

/* The place of the object of a tenant (TENANT_NONE: any) that goes for the sake of the call. */
bool reserve_victim(struct visit *visit, struct reserve *call, uint32_t tenant,
		    struct freed *ret_freed);

/* A record, at the cost of an object of its shard when none is left. */
bool reserve_begin(struct visit *visit, struct reserve *call, struct attempt *attempt,
		   uint32_t first, struct life_start *start);

/* With its place the row is done. */
void reserve_end(struct visit *visit, struct reserve *call, uint32_t row, uint32_t slot,
		 uint32_t place);

/*
 * Of its tenant, which gives up its own objects in this shard when it is at its quota; false: not
 * enough.
 */
bool reserve_charge(struct visit *visit, struct reserve *call, struct attempt *attempt);
void reserve_refund(struct host *host, const struct attempt *attempt);

/* The rows that still wait. */
void reserve_far(struct reserve *call, const struct kvs_key *keys, uint32_t count,
		 struct notices *notices);

#endif
