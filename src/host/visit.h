/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A visit: one holding of a shard's mutex, with what it leaves to do at its end.
 *
 * Places that become free are collected and given to the space together; notices get their numbers
 * in the order in which they were taken down.
 *
 * Threads  The visitor's.  At most one visit a thread at a time.
 */
#ifndef HOST_VISIT_H
#define HOST_VISIT_H

#include "host/notices.h"
#include "host/parts.h"

#define VISIT_FREED_MAX 64u

/* Of each kind, writes and locks: what a visit drops on the side because its time is over. */
#define VISIT_EXPIRED_MAX 64u
/* Evicted by a visit beyond one a row: places that do not fit free more than one. */
#define VISIT_EVICTED_MAX 64u
/*
 * Notices of a row at most: its reader's lock is over, takes a temporary object along, and what was
 * loaded is published.
 */
#define VISIT_ROW_NOTICES 3u
/* Notices of a visit beyond those: a lock that expires may take a temporary object along. */
#define VISIT_ASIDE_MAX (2 * VISIT_EXPIRED_MAX + VISIT_EVICTED_MAX)

struct freed {
	uint32_t place, pages;
};

struct visit {
	struct host    *host;
	struct shard   *shard;
	struct notices *notices;
	uint32_t        part;   /* of the order, that gave the last victim; TENANT_NONE */
	uint64_t     runner_up; /* bytes of the tenant that was second when the part was chosen */
	uint32_t     freed_count;
	struct freed freed[VISIT_FREED_MAX];
};

/* Before a visit of up to `more` notices: tell what there is when they would not fit behind it. */
void visit_make_room(struct host *host, struct notices *notices, uint32_t more);

/* now_ns 0: the caller was told no time. */
void visit_begin(struct visit *visit, struct host *host, uint32_t shard, uint64_t now_ns,
		 struct notices *notices);
void visit_end(struct visit *visit);

/* The space takes back what was collected so far. */
void visit_give(struct visit *visit);

static inline void visit_free(struct visit *visit, uint32_t place, uint32_t pages)
{
	if (visit->freed_count == VISIT_FREED_MAX)
		visit_give(visit);
	visit->freed[visit->freed_count++] = (struct freed){ place, pages };
}

static inline void visit_note(struct visit *visit, enum host_event event, const struct kvs_key *key)
{
	struct notices *const notices = visit->notices;

	if (!(visit->host->heard & 1u << event))
		return;
	KVS_ASSERT_CMP(notices->count, <, NOTICES_MAX);
	notices->event[notices->count] = (uint8_t)event;
	notices->key[notices->count++] = *key;
}

static inline void visit_count(struct visit *visit, enum host_counter counter)
{
	visit->shard->counters[counter]++;
}

/* --- the space, with its lock ----------------------------------------------------------------- */

/* As host_space_take(); not asked when it is known to be in vain. */
uint32_t space_of_host_take(struct host *host, uint32_t pages, uint32_t count,
			    uint32_t *ret_places);
/* As host_space_search(). */
uint32_t space_of_host_search(struct host *host, uint32_t pages);
void     space_of_host_give(struct host *host, const struct freed *freed, uint32_t count);

#endif
