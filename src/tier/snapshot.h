/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retraction: a request gives up its Device blocks and can go on later where it stood.
 *
 * What a request has computed has two parts.  Up to the last boundary at which all groups have names, it
 * is a prefix like any other: saved to Host under its names, and found again by a probe.  What is beyond
 * (the page it was in, a state that went past its boundary) has no name, and none would serve anybody
 * else: that is its *image*, the blocks of every group that a restore at exactly `computed` tokens needs,
 * copied to private blocks of Host and never published.
 *
 *   snapshot_retract()   publish, save the prefix, take the image, free the tables
 *   cache_probe(), cache_admit()   of the request's pages, without tails, as for any request
 *   snapshot_restore()   bring back the image behind the hit
 *
 * An image fits behind a hit that reaches its base: snapshot_tokens() tells.  With a shorter hit the
 * request restores less, and computes the rest; so it does when Host had no room for an image.
 *
 * State     Of a state group's two slots, the one that holds the state after `computed` tokens is in the
 *           image; the other is the one the next step writes, and holds nothing yet.
 * Zeroing   An image's targets are fresh blocks of the admission: zero them before the copies, or not at all.
 * Limits    snapshot_max images of at most block_max blocks, together at most SNAPSHOT_BLOCKS_MAX;
 *           nothing allocates after open.  An image is all or nothing.
 * Threads   The cache thread only.  Pure.
 */
#ifndef TIER_SNAPSHOT_H
#define TIER_SNAPSHOT_H

#include "tier/mover.h"

/* Of all images together.  So many numbers take 0.8 GiB, and the blocks far more of a Host. */
#define SNAPSHOT_BLOCKS_MAX (1u << 24)

struct snapshot_block {
	uint32_t group;
	uint32_t position;
	uint32_t block; /* Host's; one reference is the snapshot's */
};

struct snapshot {
	uint64_t request;
	uint64_t stash;    /* id of the ticket; 0: the image has no blocks */
	uint64_t base;     /* tokens, a page boundary: a hit must reach it */
	uint64_t computed; /* tokens, beyond it */
	uint32_t block_count;
};

struct snapshot_counts {
	uint64_t taken;
	uint64_t restored;
	uint64_t dropped;
	uint64_t no_room; /* no image: a snapshot, a ticket, its rows or a place on Host was lacking */
	uint64_t too_large;
	uint64_t incomplete; /* no image: a block that it needs is a hole */
};

struct snapshots {
	struct cache          *cache;
	struct mover          *mover;
	struct snapshot       *items;
	struct snapshot_block *blocks; /* [snapshot_max][block_max] */
	struct cache_move     *moves;  /* [block_max], scratch */
	struct slots           slots;
	uint32_t               block_max;
	struct snapshot_counts counts;
};

/* Errors: KVS_E_INVALID  a limit out of range; -ENOMEM.  The sentence names the field. */
int    snapshots_open(struct snapshots *snapshots, struct mover *mover, uint32_t snapshot_max,
		      uint32_t block_max, struct kvs_error *err);
void   snapshots_close(struct snapshots *snapshots); /* accepts a zeroed one; asserts that it is empty */
size_t snapshots_bytes(const struct snapshots *snapshots); /* memory in use */

static inline struct snapshot_block *snapshot_blocks(const struct snapshots *snapshots,
						     uint32_t                snapshot)
{
	return &snapshots->blocks[(size_t)snapshot * snapshots->block_max];
}

struct retraction {
	uint64_t               request;   /* the caller's word for it: its tickets carry it */
	struct table          *tables;
	/* All completed pages and the exact count of tokens whose cache exists, as for cache_advance(). */
	struct cache_completed completed;
	uint64_t               epoch;
};

struct retracted {
	uint64_t save_ticket;  /* of the prefix; 0: nothing had to be copied, or could be */
	uint64_t stash_ticket; /* of the image; 0: none */
	uint32_t snapshot;     /* SLOT_NONE: there is no image */
};

/**
 * Give up a request's Device blocks.  Asks the cache for the request's own boundary: an older probe is
 * stale after it.  Forwards and loads of the request are to be over before.
 *
 * Errors  KVS_E_INVALID  as cache_advance(); computed missing or below the pages; nothing changed.
 *         That there is no room on Host is none.
 */
int snapshot_retract(struct snapshots *snapshots, const struct retraction *retraction,
		     struct retracted *ret_retracted, struct kvs_error *err);

/* The stash is done: the image may be copied from. */
bool snapshot_is_ready(const struct snapshots *snapshots, uint32_t snapshot);

/* How many tokens the request would have with a hit of so many: its all, or just the hit. */
uint64_t snapshot_tokens(const struct snapshots *snapshots, uint32_t snapshot, uint64_t hit_tokens);

/**
 * Bring the image back behind a hit of hit_tokens, into blocks that the request's tables hold already,
 * and reclaim what is expired at its `computed` tokens: neither hit nor image fills that, so it must
 * never be published.  The snapshot is gone then.  *ret_ticket is the id of its copies; 0: there are
 * none.
 *
 * Errors  KVS_E_BUSY     its stash is under way;
 *         KVS_E_FULL     no load ticket is free;
 *         KVS_E_INVALID  snapshot_tokens() does not reach, or a table lacks a private block: the sentence
 *                        names group and position.
 *         After any of them nothing has changed.
 */
int snapshot_restore(struct snapshots *snapshots, uint32_t snapshot, struct table *tables,
		     uint64_t hit_tokens, uint64_t *ret_ticket, struct kvs_error *err);

/* Give up an image, even while its stash is under way. */
void snapshot_drop(struct snapshots *snapshots, uint32_t snapshot);

/*
 * mover_clear(); false, and nothing changed, while an image is kept, too.  No name leads to an
 * image: restored behind a clear, it would go on with what was to be forgotten.  Drop it first.
 */
bool snapshots_clear(struct snapshots *snapshots);

/* O(n): the blocks of images are held, private, and those that their boundary needs. */
void snapshots_audit(const struct snapshots *snapshots);

#endif
