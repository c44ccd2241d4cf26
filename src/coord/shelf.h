/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of one stratum and what each is published as: a pool, an eviction order, and a mark a
 * block.
 *
 * A *place* is a block's memory: slot of a parent, counted over all parents with room for the
 * smallest blocks in each.  A parent serves one group at a time, so at any time a place is at most
 * one block, whichever group's; the block's number and group lead to it and a mark leads back.
 *
 * The shelf keeps one rule for everybody: a published block is idle, that is in the order as
 * evictable, exactly while the index is its only owner.  So every reference to a block of the cache
 * is taken and given back here.
 */
#ifndef COORD_SHELF_H
#define COORD_SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coord/order.h"
#include "match/pages.h"
#include "pool/pool.h"

#define POSITION_NONE UINT32_MAX

struct shelf_mark {
	uint32_t cell;         /* SLOT_NONE: not published */
	uint32_t position;     /* block of the group from the start of a prompt; POSITION_NONE */
	uint8_t  kind;         /* enum cell_kind */
	uint8_t  was_acquired; /* a request was served with it */
	uint8_t  group;
};

/* What the blocks of a stratum are worth: class and rank for the order. */
typedef uint32_t (*shelf_class)(const struct groups *groups, const struct shelf_mark *mark);
typedef uint64_t (*shelf_rank)(const struct groups *groups, const struct shelf_mark *mark);

struct shelf {
	enum stratum_id    id;
	struct pool       *pool;
	struct pages      *pages;        /* shared */
	struct order       order;
	struct shelf_mark *marks;        /* of a place */
	uint32_t           place_max;    /* places of a parent: groups->packing_max */
	uint32_t           place_count;
	uint32_t           published;    /* blocks that are */
	shelf_class        class_of;
	shelf_rank         rank_of;
};

/* Errors: as pool_open(); -ENOMEM. */
int    shelf_open(struct shelf *shelf, enum stratum_id id, struct pages *pages,
		  uint32_t parent_count, struct kvs_error *err);
void   shelf_close(struct shelf *shelf);
size_t shelf_bytes(const struct shelf *shelf); /* memory in use, its pool's too; a zeroed one has none */

uint32_t shelf_place(const struct shelf *shelf, uint32_t group, uint32_t block);
/* Places count from 0, parents from 1. */
uint32_t shelf_parent(const struct shelf *shelf, uint32_t place);
/* Does the stratum have such a group, and the group such a block?  A zeroed shelf has none. */
bool shelf_has(const struct shelf *shelf, uint32_t group, uint32_t block);
/* The block of a place that is published. */
uint32_t shelf_block(const struct shelf *shelf, uint32_t place);

/* Is the place a block of the group that anybody holds? */
bool shelf_held(const struct shelf *shelf, uint32_t group, uint32_t place);
bool shelf_published(const struct shelf *shelf, uint32_t group, uint32_t block);

/* The count of references that is left. */
uint32_t shelf_pin(struct shelf *shelf, uint32_t group, uint32_t block);
uint32_t shelf_unpin(struct shelf *shelf, uint32_t group, uint32_t block);

/*
 * Publish a private block of a page's column; the index takes a reference of its own.  The stratum must
 * not hold the cell (asserted).
 */
void shelf_publish(struct shelf *shelf, const struct kvs_namespace *space,
		   const struct prefix_hash *hash, uint32_t column, uint32_t block,
		   const struct shelf_mark *mark, uint64_t epoch);

/* A published block was used: another epoch; its kind only rises and an acquisition stays. */
void shelf_touch(struct shelf *shelf, uint32_t group, uint32_t block, uint64_t epoch, uint8_t kind,
		 bool acquired);

/* Take the name from an idle block, which is free then. */
void shelf_evict(struct shelf *shelf, uint32_t place);

void shelf_audit(const struct shelf *shelf);

#endif
