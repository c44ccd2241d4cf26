/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache coordinator: the blocks of all groups on Device and on Host, and who may have them.
 *
 * It joins four ideas: the prefix index (which block of which page is published where), the
 * matchers (how far a prompt can be restored), a pool for each stratum, and an eviction order for
 * each.  It knows no request: what it knows of one are the tables that the caller passes.
 *
 * The life of a request:
 *   cache_probe()     how far do Device and Host hold this prompt?       reads only
 *   cache_admit()     claim the hit, give up what expired, take blocks   all or nothing
 *   cache_admit() ... each further chunk and decode step, without a probe
 *   cache_advance()   a step that needs no block: publish and reclaim only
 *   cache_free()      give everything back; what is published stays
 *
 * A block of a stratum is in exactly one state:
 *   free       in its pool
 *   private    held by a table, a copy or a caller, under no name
 *   published  a cell of the index; the index holds one reference of its own.  With that one alone
 *              the block is *idle* and may be evicted
 *
 * Copies    Admission reports rows of bytes to move, never moves them.  A *load* brings a block from
 *           Host; a *copy* makes a private block of a tail's, because the request will write behind
 *           the tail and others may read it.  Each row holds a reference on its source and on its
 *           target, which the caller gives back with cache_moved() after the fence of the copy, even
 *           if the request is long gone.  Targets of rows are not among the blocks to zero.
 * Tails     A tail is a page of less than P tokens under a hash of its own.  Its blocks are sources
 *           only: all blocks of the tail page are copied, full ones too, for the request will publish
 *           these positions under the name of the page it completes, and a block has one name.
 * Epochs    One 64-bit clock.  A request's first successful admission draws a new epoch, and the
 *           request brings it along in all later calls; so does every block published on Host.
 *           Neither a probe nor a refusal moves the clock or touches anything.
 * Limits    All fixed at open; nothing allocates after.
 * Threads   The cache thread only.  Pure: no clock, no I/O.
 */
#ifndef COORD_CACHE_H
#define COORD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "coord/table.h"
#include "key/key.h"
#include "match/boundary.h"
#include "match/groups.h"
#include "match/pages.h"
#include "pool/pool.h"

struct cache;

/* Why a cell is worth keeping; a cell only ever rises. */
enum cell_kind { CELL_NONE, CELL_CHUNK, CELL_ENDPOINT, CELL_PROMOTED };

/* A cell by name: block `offset` (0 .. P/q - 1) of a group in the page of that hash. */
struct cell_name {
	const struct kvs_namespace *space;
	const struct prefix_hash   *hash;
	uint32_t                    group;
	uint32_t                    offset;
};

/*
 * Told of every cell that Device gains or loses, in the order in which it happens; must not call
 * the cache.
 */
struct cache_sink {
	void (*inserted)(void *ctx, const struct cell_name *name, uint32_t block);
	void (*removed)(void *ctx, const struct cell_name *name, uint32_t block);
	void *ctx;
};

struct cache_options {
	const struct group_spec *groups;
	uint32_t                 group_count;
	uint32_t                 page_tokens;    /* P */
	uint32_t                 device_parents;
	uint32_t                 host_parents;   /* 0: no Host */
	uint32_t                 prompt_pages;   /* longest prompt that is probed, in pages */
	struct cache_sink        sink;           /* NULL functions: nobody listens */
};

/**
 * Open a cache.
 *
 * Owner   Copies all but the groups' names, which must outlive it.
 * Errors  KVS_E_INVALID  what groups_make() or pool_open() refuse, prompt_pages 0; -ENOMEM.
 */
int  cache_open(const struct cache_options *options, struct cache **ret_cache,
		struct kvs_error *err);
void cache_close(struct cache *cache); /* NULL is fine; asserts that no table or row holds a block */

size_t               cache_bytes(const struct cache *cache); /* memory in use, all of it */
const struct groups *cache_groups(const struct cache *cache);
const struct pages  *cache_pages(const struct cache *cache);
uint32_t             cache_prompt_pages(const struct cache *cache);
/* NULL where there is no Host. */
const struct pool   *cache_pool(const struct cache *cache, enum stratum_id stratum);
uint64_t             cache_clock(const struct cache *cache);

/* --- probe ------------------------------------------------------------------------------------ */

struct cache_prompt {
	const struct kvs_namespace *space;
	const struct prefix_hash   *hashes;     /* of the pages that may be restored */
	uint32_t                    page_count;
	const struct tail          *tails;      /* longest first; each within page_count + 1 pages */
	uint32_t                    tail_count;
};

enum probe_mode {
	PROBE_ALL,
	/* For a decoding rank: Device only, no tails, and STATE groups ask for nothing and get holes. */
	PROBE_DECODE,
};

/*
 * What a prompt would get.  Good until anything changes: cache_admit() refuses a stale one with
 * KVS_E_STALE.
 */
struct cache_probe {
	uint64_t device_tokens;    /* what Device alone restores; absolute */
	uint64_t host_tokens;      /* with Host's help; device_tokens when that extends nothing */
	uint64_t device_closed;    /* tokens up to which the FULL groups alone would reach; 0: none */
	uint64_t host_closed;
	uint64_t promotion_tokens; /* boundary worth publishing once for all groups; 0: none */
	/* For cache_admit(). */
	uint64_t        version;
	enum probe_mode mode;
	uint32_t        tail_entry; /* of the tail that host_tokens ends in; SLOT_NONE */
	uint32_t        page_count;
};

/**
 * How far Device, and Device and Host together, can restore a prompt.  Changes nothing.
 *
 * A position counts for the Host boundary when Device or Host holds it, so a Device history that is
 * longer than its last checkpoint is used.  The pages' entries are kept inside the cache: the last
 * probe is the one that can be admitted.
 *
 * Errors  KVS_E_INVALID  page_count past prompt_pages; a tail that is a page boundary, lies past the
 *                        prompt or is out of order.
 */
int cache_probe(struct cache *cache, const struct cache_prompt *prompt, enum probe_mode mode,
		struct cache_probe *ret_probe, struct kvs_error *err);

/* How many positions of a group the probe would take from a stratum. */
uint32_t cache_probe_hits(const struct cache *cache, const struct cache_probe *probe,
			  uint32_t group, enum stratum_id stratum);

/* --- admission -------------------------------------------------------------------------------- */

#define COMPUTED_NONE UINT64_MAX

/*
 * What a request has completed: pages to publish, and tokens whose cache exists.
 *
 *   FULL     publishes every new page
 *   WINDOW   the L blocks before the last page boundary, even those of older pages
 *   STATE    the one block before it, when `computed` is that boundary exactly
 * Without new pages nothing is published.  With COMPUTED_NONE nothing is reclaimed, and only FULL
 * groups publish.
 */
struct cache_completed {
	const struct kvs_namespace *space;
	const struct prefix_hash   *hashes;     /* of all completed pages, from the first one on */
	uint32_t                    page_count;
	uint32_t                    new_begin;  /* pages from here on are new; page_count: none */
	enum cell_kind              kind;       /* of the new pages; CELL_NONE exactly when there are none */
	uint64_t                    computed;   /* COMPUTED_NONE, or at least the tokens of the pages */
};

struct cache_admission {
	struct table               *tables;    /* one a group, in order of the groups */
	const struct demand        *demands;   /* one a group */
	const struct cache_probe   *probe;     /* the hit to claim, into empty tables; or NULL */
	struct cache_completed      completed; /* zeroed but for computed = COMPUTED_NONE: nothing */
	uint64_t                    epoch;     /* 0: first admission, draw a new one */
};

/* One block's bytes to move to Device. */
struct cache_move {
	uint32_t group;
	uint32_t position; /* slot of the table */
	uint32_t source;   /* a load's is Host's, a copy's is Device's */
	uint32_t target;   /* Device's */
	uint32_t tokens;   /* valid ones; q but in a tail's last block */
	bool     from_host;
};

struct cache_admitted {
	uint64_t device_tokens; /* of the probe, 0 without one */
	uint64_t host_tokens;
	uint64_t promotion_tokens;
	uint64_t epoch;
	/*
	 * Lists inside the cache, good until the next admission.  Rows are group by group, in order of
	 * slots: loads, then copies.  fresh: new blocks of each group, one group after the other.
	 */
	const struct cache_move *moves;
	uint32_t                 load_count;
	uint32_t                 copy_count;
	const uint32_t          *fresh;
	uint32_t                 fresh_count[GROUPS_MAX];
};

/**
 * Admit a chunk: claim the probe's hit, publish what completed, reclaim what expired, evict the
 * fewest blocks that make room, and take the blocks.
 *
 * Shape   A table is longer by the holes and blocks of its demand, and has its available tokens.
 *         Publishing may put another block into a slot: the one that already bears the name.
 * Errors  KVS_E_FULL     no set of evictions makes room;
 *         KVS_E_STALE    the cache changed since the probe, or it is not the last one;
 *         KVS_E_INVALID  tables not empty with a probe, an epoch that was never drawn, counts that
 *                        do not fit: the sentence names group and field.
 *         After any of them nothing has changed, the probe included.
 */
int cache_admit(struct cache *cache, const struct cache_admission *admission,
		struct cache_admitted *ret_admitted, struct kvs_error *err);

/* A block of Device with one reference that will go: that of a copy under way. */
struct cache_block {
	uint32_t group;
	uint32_t block;
};

/* Would this admission succeed once these references are gone?  Changes nothing; false for bad input too. */
bool cache_can_admit(struct cache *cache, const struct cache_admission *admission,
		     const struct cache_block *released, uint32_t released_count);

/* The copy of a row has passed its fence: both its references go. */
void cache_moved(struct cache *cache, const struct cache_move *move);

/* --- between admissions ----------------------------------------------------------------------- */

/**
 * Publish what completed and reclaim what expired; take nothing.
 *
 * Errors  KVS_E_INVALID  as cache_admit(), `computed` past the tables' end; nothing changed.
 */
int cache_advance(struct cache *cache, struct table *tables, const struct cache_completed *completed,
		  uint64_t epoch, struct kvs_error *err);

/**
 * Publish exactly these pages in all groups, holes left out: a loaded extension.
 *
 * hashes are of pages first_page .. first_page + page_count - 1; a page_count of 0 does nothing.  Here as
 * in all publication: a block that bears another name, or a name that is another position's, is left as
 * it is.
 * Errors  KVS_E_INVALID  pages outside of a table, no kind, an epoch never drawn; nothing changed.
 */
int cache_publish(struct cache *cache, struct table *tables, const struct kvs_namespace *space,
		  const struct prefix_hash *hashes, uint32_t first_page, uint32_t page_count,
		  uint64_t epoch, enum cell_kind kind, struct kvs_error *err);

/**
 * Publish the last, partial page of a request that will write no more: call it right before
 * cache_free().  A STATE group publishes when `computed` is the tail's end exactly.  A block that bears
 * another name already keeps it, and the tail lacks it.
 *
 * Errors  KVS_E_INVALID  as cache_publish(); tail->tokens a page boundary, or past `computed`.
 */
int cache_publish_tail(struct cache *cache, struct table *tables,
		       const struct kvs_namespace *space, const struct tail *tail,
		       uint64_t computed, uint64_t epoch, enum cell_kind kind, struct kvs_error *err);

/*
 * Turn the expired slots into holes.  Blocks without a name are free then, others stay published.  No
 * request computes more than TOKENS_MAX tokens: past that, COMPUTED_NONE included, nothing expires.
 */
void cache_reclaim(struct cache *cache, struct table *tables, uint64_t computed);

/* Give back every block, from the last slot to the first, and make the tables empty. */
void cache_free(struct cache *cache, struct table *tables);

/* --- cells and Host --------------------------------------------------------------------------- */

/* The block of a cell, BLOCK_NULL where a stratum does not hold it.  Pins nothing. */
uint32_t cache_find(const struct cache *cache, enum stratum_id stratum,
		    const struct cell_name *name);

/* What a cell's block is published as; false for a block without a name, and for one that is none. */
struct cell_view {
	uint32_t       cell; /* of cache_pages() */
	uint64_t       epoch;
	uint32_t       position; /* block of its group from the start of the prompt; UINT32_MAX on Host */
	enum cell_kind kind;
	bool           was_acquired;
	bool           idle;
};
bool cache_view(const struct cache *cache, enum stratum_id stratum, uint32_t group, uint32_t block,
		struct cell_view *ret_view);

/* One reference more or less on a held block; the count that is left. */
uint32_t cache_pin(struct cache *cache, enum stratum_id stratum, uint32_t group, uint32_t block);
uint32_t cache_unpin(struct cache *cache, enum stratum_id stratum, uint32_t group, uint32_t block);

/*
 * A private Host block of a group with one reference, the caller's: a free one; or that of the group's
 * least valuable idle cell; or one of the least valuable parent all whose blocks are idle.  BLOCK_NULL
 * when there is none, or no Host.  Value: was it ever acquired, epoch, group, parent, slot.
 */
uint32_t cache_host_acquire(struct cache *cache, uint32_t group);

/*
 * Publish a private Host block under its name; the caller's reference goes.  For the tier, at the
 * acknowledgement of the copy that filled it, never before.  Draws an epoch.  Where Host has the name
 * already, the block is dropped.  Returns the block that bears the name.
 */
uint32_t cache_host_publish(struct cache *cache, const struct cell_name *name, uint32_t block,
			    enum cell_kind kind);

/* --- clearing --------------------------------------------------------------------------------- */

/*
 * Drop every cell of Device; false and nothing changed while any is held by more than the index.  Private
 * blocks do not matter, nor what Host does.
 */
bool cache_clear_device(struct cache *cache);
/*
 * Drop every cell of both strata; false and nothing changed while any is held by more, or while anybody
 * holds a block of Host: a reservation until its GET has retired, a hold, quarantine, a save, an image.
 */
bool cache_clear(struct cache *cache);

/* --- capacity, in parents unless told otherwise; O(n), for decisions that are rare ------------- */

uint32_t cache_total(const struct cache *cache, enum stratum_id stratum);
/* Unbound, or bound with every block idle. */
uint32_t cache_available(const struct cache *cache);
/* Host: unbound ones only. */
uint32_t cache_host_free(const struct cache *cache);
/* Sum over groups of ceil(blocks / K). */
uint64_t cache_parents_needed(const struct cache *cache, const uint32_t *blocks);
/* Blocks of a group that could be taken without eviction. */
uint64_t cache_group_room(const struct cache *cache, uint32_t group);
/* Blocks that a demand needs beyond the table's room; UINT32_MAX for one that table_plan() refuses. */
uint32_t cache_blocks_needed(const struct cache *cache, const struct table *table, uint32_t group,
			     const struct demand *demand);
/* Distinct parents that the tables of these requests lie in. */
uint32_t cache_active(struct cache *cache, struct table *const *requests, uint32_t request_count);
/* Parents that would be empty or idle once these tables let go. */
uint32_t cache_releasable(struct cache *cache, struct table *const *requests,
			  uint32_t request_count);
/*
 * Blocks of a table that a reclaim at `computed` would make takable: those that only the index holds
 * besides, and those without a name that nobody else holds.  `streaming`: blocks are saved to Host as soon
 * as they have a name; then those without one do not count, for their copy is still to come.  `computed`
 * past TOKENS_MAX: none, as cache_reclaim() says.
 */
uint32_t cache_slide_credit(const struct cache *cache, const struct table *table, uint32_t group,
			    uint64_t computed, bool streaming);

/* O(n): pools, index, orders and marks agree. */
void cache_audit(const struct cache *cache);

#endif
