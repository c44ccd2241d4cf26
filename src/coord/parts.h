/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the cache coordinator share; see cache.h for what it is. */
#ifndef COORD_PARTS_H
#define COORD_PARTS_H

#include "coord/cache.h"
#include "coord/shadow.h"
#include "coord/shelf.h"

struct host_parent {
	uint64_t stamp;
	uint32_t idle;
};

struct cache {
	struct pages       pages;
	struct shelf       shelves[STRATUM_COUNT]; /* Host's is zeroed where there is none */
	struct shadow      shadow;
	struct host_parent *host_parents;  /* by number, from 1 */
	uint64_t           host_stamp;
	bool               has_host;
	uint64_t           clock;          /* the last epoch that was drawn */
	uint64_t           version;        /* grows with every probe and every change of the index */
	struct cache_sink  sink;
	uint32_t           prompt_pages;
	uint32_t          *entries;        /* of the last probe's pages, and one for a tail */
	uint32_t           moving;         /* rows that were reported and wait for cache_moved() */
	/* Lists of the last admission, and room to build them; a Device has no more blocks than places. */
	struct cache_move *moves;
	uint32_t          *fresh;
	uint32_t          *taken;
};

static inline struct shelf *device_of(struct cache *cache)
{
	return &cache->shelves[STRATUM_DEVICE];
}

static inline struct shelf *host_of(struct cache *cache)
{
	return &cache->shelves[STRATUM_HOST];
}

/* --- publish.c -------------------------------------------------------------------------------- */

/* Errors as cache_advance() says; tables of these counts, the longest of which ends at this token. */
int completed_check(const struct cache *cache, const uint32_t *slot_counts, uint64_t end,
		    const struct cache_completed *completed, struct kvs_error *err);
/* Where the next token of the longest table goes. */
uint64_t tables_end(const struct cache *cache, const struct table *tables);
int epoch_check(const struct cache *cache, uint64_t epoch, struct kvs_error *err);

void completed_publish(struct cache *cache, struct table *tables,
		       const struct cache_completed *completed, uint64_t epoch);

/* --- clear.c ---------------------------------------------------------------------------------- */

/* Tell the sink that Device gained a cell, or loses it. */
void cell_tell(const struct cache *cache, uint32_t cell, uint32_t block, bool inserted);
/* Take the name from an idle block; of Device's the sink is told. */
void cell_evict(struct cache *cache, enum stratum_id stratum, uint32_t place);
/* Take every name of a stratum: all its published blocks are idle (asserted). */
void cells_drop(struct cache *cache, enum stratum_id stratum);

/* --- claim.c ---------------------------------------------------------------------------------- */

/* What a probe gives one group, counted. */
struct claim {
	uint32_t first;     /* slots below are holes */
	uint32_t end;       /* positions [first, end) are restored */
	uint32_t slots;     /* of the table afterwards */
	uint32_t available; /* tokens */
	uint32_t hits;      /* blocks of Device that are shared */
	uint32_t loads;
	uint32_t copies;
};

/* Where the block of a position comes from. */
struct claim_source {
	enum stratum_id stratum;
	uint32_t        block;
	bool            copied; /* of a tail: the table gets a block of its own */
};

/* Count what a group gets.  A decoding rank's STATE groups get holes. */
struct claim claim_count(const struct cache *cache, const struct cache_probe *probe,
			 uint32_t group);
struct claim_source claim_source(const struct cache *cache, const struct cache_probe *probe,
				 uint32_t group, uint32_t position);

/* Blocks that the claim takes besides the demand's. */
static inline uint32_t claim_blocks(const struct claim *claim)
{
	return claim->slots - claim->first - claim->hits;
}

/* --- host_room.c ------------------------------------------------------------------------------ */

/*
 * What Host could give at most, evictions included.  A parent all whose blocks are idle can serve any
 * group, another one only its own, with what is free or idle in it.
 */
struct host_room {
	uint32_t own[GROUPS_MAX]; /* blocks that only their group can have */
	uint32_t whole;           /* parents */
};

/* O(blocks). */
void host_room_look(const struct cache *cache, struct host_room *ret_room);
/* Is there a way to give whole parents to groups so that each gets as many blocks as it needs? */
bool host_room_fits(const struct cache *cache, const struct host_room *room, const uint32_t *needed);

/*
 * The same for Host as it is, without a look where groups can do with what is theirs.  False is certain;
 * true is, unless groups must share the whole parents: cache_host_acquire() may cut up more of them.
 */
bool host_has_room(struct cache *cache, const uint32_t *needed);

#endif
