/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A box, a store that has some of its prompt, and one reservation.
 *
 * A errand asks with what has been hinted so far; it audits the cache and the reservation behind every ask
 * and when it closes.
 */
#ifndef ERRAND_H
#define ERRAND_H

#include "cache_box.h"
#include "coord/reserve.h"

#define ERRAND_ROWS 64u
#define ERRAND_TAILS 2u
#define ERRAND_CREDITS 64u

struct errand {
	struct box               box;
	struct reserver          reserver;
	struct cache_row         rows[ERRAND_ROWS];
	struct cache_reservation reservation;
	uint64_t                 page_hints[8];
	uint64_t                 tail_hints[ERRAND_TAILS];
	struct tail              tails[ERRAND_TAILS];
	uint32_t                 tail_count;
};

void errand_open(struct errand *errand, uint32_t page_tokens, uint32_t device_parents,
		uint32_t host_parents, const struct group_spec *specs);
/* Releases the reservation. */
void errand_close(struct errand *errand);

/* The store has all blocks of pages [first, end) of a group. */
void errand_hint(struct errand *errand, uint32_t group, uint32_t first, uint32_t end);
/* A further tail, shorter than the last one, of which the store has these columns. */
void errand_tail(struct errand *errand, uint32_t tokens, uint64_t columns);

/* Reserve for so many pages and all tails; whatever was reserved before is forgotten. */
enum reserve_answer errand_ask(struct errand *errand, uint32_t pages, uint32_t credits);

/* Publish the first rows, or as bits say. */
uint32_t errand_publish(struct errand *errand, uint64_t whole, bool hold);

/* How far Device and Host restore a prompt of so many pages now. */
uint32_t errand_local(struct errand *errand, uint32_t pages);

/* Blocks of Host that anybody holds; those that are published; those of them that are idle. */
struct errand_host {
	uint32_t held, published, idle;
};
struct errand_host errand_host(const struct errand *errand);

#endif
