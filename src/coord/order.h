/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which a stratum's published blocks are given up.
 *
 * Smallest (class, epoch, rank, place) goes first.  An item is a *place*, the number of a block's
 * memory in its pool; its class, epoch and rank are the caller's words for what it is worth.  Only
 * *idle* items can be given up; the others wait with their value until they are idle again.
 *
 * Epochs only grow, and a request touches everything it uses with one epoch.  So items of one class
 * and epoch share a *bucket*, buckets of a class stand in a list in order of epochs, and an item
 * that is touched, pinned or released moves between lists in O(1).  Only a bucket that is asked for
 * its items is sorted, and then stays so until an item is added.  Where to put a bucket of an old
 * epoch is looked for from the newest end: it costs the buckets that are newer.
 *
 * Limits   Places and classes, fixed at open; there are never more buckets than places.
 * Order    It depends on the calls alone.
 */
#ifndef COORD_ORDER_H
#define COORD_ORDER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slots.h"

/* What items of a bucket have in common: the key of the map. */
struct order_key {
	uint64_t epoch;
	uint64_t class;
};

struct order_bucket {
	struct order_key key;
	struct list      idle;
	uint32_t         item_count; /* idle or not */
	bool             sorted;     /* idle is in order of (rank, place) */
};

static_assert(sizeof(struct order_key) == 16, "keys are hashed and compared as bytes: no padding");
static_assert(offsetof(struct order_bucket, key) == 0, "a bucket begins with its key");

struct order_item {
	uint64_t rank;
	uint32_t bucket; /* SLOT_NONE: the place is not in the order */
};

struct order {
	struct order_item   *items;        /* of a place */
	struct link         *links;        /* of a place, in its bucket's idle list */
	struct order_bucket *buckets;
	struct link         *bucket_links; /* in their class's list, oldest first */
	struct list         *classes;
	struct slots         slots;        /* of buckets */
	struct map           map;          /* (epoch, class) -> bucket */
	uint32_t             last;         /* the bucket that was asked for last, or SLOT_NONE */
	uint32_t             place_count;
	uint32_t             class_count;
	uint32_t             idle_count;
};

/* 0, or -ENOMEM. */
int    order_open(struct order *order, uint32_t place_count, uint32_t class_count);
void   order_close(struct order *order);
size_t order_bytes(const struct order *order);

/* A new item, not idle. */
void order_insert(struct order *order, uint32_t place, uint32_t class, uint64_t epoch,
		  uint64_t rank);
void order_remove(struct order *order, uint32_t place);
/* Another value; idle stays idle. */
void order_move(struct order *order, uint32_t place, uint32_t class, uint64_t epoch,
		uint64_t rank);
void order_set_idle(struct order *order, uint32_t place, bool idle);

bool     order_has(const struct order *order, uint32_t place);
bool     order_is_idle(const struct order *order, uint32_t place);
uint64_t order_epoch(const struct order *order, uint32_t place);
uint64_t order_rank(const struct order *order, uint32_t place);

/* The newest epoch of all items, idle or not; 0 when there is none. */
uint64_t order_newest(const struct order *order);

/*
 * A walk over the idle items of the classes [begin, end) as if these were one, in order.  The items
 * must stay as they are meanwhile.
 */
#define ORDER_MERGE_MAX 16u

struct order_walk {
	struct order *order;
	uint32_t      begin;
	uint32_t      count;
	uint32_t      next[ORDER_MERGE_MAX]; /* place of each class that comes next, or SLOT_NONE */
};

void     order_walk_init(struct order_walk *walk, struct order *order, uint32_t begin, uint32_t end);
uint32_t order_walk_peek(const struct order_walk *walk); /* SLOT_NONE at the end */
void     order_walk_next(struct order_walk *walk);

/* Of two items of one epoch. */
static inline bool order_goes_first(const struct order *order, uint32_t a, uint32_t b)
{
	const uint64_t rank_a = order->items[a].rank, rank_b = order->items[b].rank;

	return rank_a != rank_b ? rank_a < rank_b : a < b;
}

void order_audit(const struct order *order);

#endif
