/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets of copies between Device and Host, over all groups of a cache.
 *
 * The mover decides what is copied and knows when it may be used; the copies themselves are the
 * device engine's.  A *ticket* is one batch of copies with an id, a *row* of it one block's bytes:
 *
 *   SAVE   Device to Host, of blocks with a name.  The name is published on Host when the copy is
 *          acknowledged, never before, and the Device source is given back at the same moment: a
 *          save waits for no store
 *   STASH  Device to Host, of blocks without a name: a retracted request's own (snapshot.h).  Nothing
 *          is ever published
 *   LOAD   what an admission brings to Device: blocks of Host, and private copies of a tail's blocks
 *          of Device
 *   BACK   what a stash saved, from private blocks of Host into the request's new ones
 *
 * A row holds a reference on its source and on its target until its ticket is acknowledged, whatever
 * becomes of the request meanwhile.
 *
 * Fence     A loaded prefix is published on Device at admission, before its bytes are there.  Whoever
 *           reads a block of a load, its own request or another that hit it, must be ordered behind that
 *           ticket: mover_fence() tells which.  The engine copies out of Device only what was ordered
 *           before: a save's source may be the target of a load under way.
 * Ids       One 64-bit counter for all kinds, from 1, strictly increasing, never used again; 0 is no
 *           ticket.  There is no failed copy: a completion means that the bytes are there, on every owner.
 *           Completions of ids that are unknown or done are ignored and counted.
 * Host full A candidate for which Host has no place stays in the queue, in its order, and is asked for
 *           again at the next drain: what holds the places are copies and requests that end.  Only
 *           overflow of the queue loses candidates, the oldest first.
 * Limits    Fixed at open; nothing allocates after.  Loads cannot lack rows: each holds a Device block.
 * Threads   The cache thread only.  Pure: no clock, no I/O.
 */
#ifndef TIER_MOVER_H
#define TIER_MOVER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slots.h"
#include "coord/cache.h"
#include "tier/candidates.h"

/* Of saves, and of loads.  Far more than there are requests. */
#define MOVER_TICKETS_MAX (1u << 20)
/*
 * Of saves and loads together; loads have one for each block of Device.  So many blocks of 8 KiB
 * are half a TiB of Device, and the tables of so many rows take 7.5 GiB.
 */
#define MOVER_ROWS_MAX (1u << 26)

enum ticket_kind { TICKET_SAVE, TICKET_STASH, TICKET_LOAD, TICKET_BACK };
#define TICKET_KINDS 4u

static inline bool ticket_is_load(enum ticket_kind kind)
{
	return kind == TICKET_LOAD || kind == TICKET_BACK;
}

enum copy_path { COPY_DEVICE_TO_HOST, COPY_HOST_TO_DEVICE, COPY_DEVICE_TO_DEVICE };

struct mover_row {
	struct candidate name;     /* SAVE */
	uint32_t         group;    /* with target, the key of the map of loads' targets */
	uint32_t         target;
	uint32_t         source;
	uint32_t         position; /* all but SAVE: block of the group from the start of the prompt */
	uint32_t         tokens;   /* valid ones; SAVE: all of a block, whatever a tail uses of it */
	uint32_t         ticket_slot;
	enum copy_path   path;
	enum cell_kind   kind;     /* SAVE */
};

static_assert(offsetof(struct mover_row, target) ==
		      offsetof(struct mover_row, group) + sizeof(uint32_t),
	      "group and target are a key of a map: nothing between them");

struct mover_ticket {
	uint64_t         id; /* 0: being filled */
	enum ticket_kind kind;
	uint64_t         request; /* the caller's word for who it is for; SAVE: 0 */
	struct list      rows;
};

struct mover_counts {
	uint64_t tickets[TICKET_KINDS]; /* that got an id */
	uint64_t rows[TICKET_KINDS];    /* of them */
	uint64_t published;  /* rows of saves acknowledged */
	uint64_t on_host;    /* candidates dropped: Host has the name */
	uint64_t in_flight;  /* dropped: the name is in a ticket already, of this drain or an earlier one */
	uint64_t gone;       /* dropped: Device no longer has the name */
	uint64_t waited;     /* times that a candidate stayed queued for want of a place, a row or a ticket */
	uint64_t unsaved;    /* cells of prefixes that would have waited, and there is no queue */
	uint64_t ignored;    /* completions */
};

struct mover {
	struct cache        *cache;
	struct candidates   *candidates; /* NULL: only prefixes are saved */
	struct mover_ticket *tickets;
	struct slots         slots;
	struct map           ids;
	struct mover_row    *rows;
	struct link         *links;      /* of a row: in its ticket, or in free */
	struct list          free;
	struct map           names;      /* of rows of saves: what is in flight */
	struct map           targets;    /* of rows of loads */
	struct cache_block  *sources;    /* [save_row_max] */
	uint64_t             last_id;
	uint32_t             save_ticket_max, save_row_max, load_ticket_max; /* of the options */
	uint32_t             row_max;    /* save_row_max, and one for each block of Device */
	uint32_t             saving_tickets, saving_rows, loading_tickets;   /* in use */
	struct mover_counts  counts;
};

struct mover_options {
	struct cache      *cache;
	struct candidates *candidates;      /* NULL: none */
	/* 1 to MOVER_TICKETS_MAX, and MOVER_ROWS_MAX less the blocks of Device. */
	uint32_t           save_ticket_max; /* saves and stashes in flight together */
	uint32_t           save_row_max;    /* rows of them together */
	uint32_t           load_ticket_max; /* loads of both kinds in flight together */
};

/* Errors: KVS_E_INVALID  a limit out of range; -ENOMEM.  The sentence names the field. */
int    mover_open(struct mover *mover, const struct mover_options *options, struct kvs_error *err);
void   mover_close(struct mover *mover); /* accepts a zeroed one; asserts that nothing is in flight */
size_t mover_bytes(const struct mover *mover); /* memory in use */

/* --- saves ------------------------------------------------------------------------------------ */

/*
 * Look at every candidate once, oldest first, and make one ticket of those that Device has, Host lacks
 * and a place was found for.  Returns its id; 0: nothing to copy.
 */
uint64_t mover_drain(struct mover *mover);

/*
 * The same at once for every cell of these pages that Device has, group by group, past the queue.  Those
 * without a place become candidates; without a queue they are unsaved, and counted.
 */
uint64_t mover_save_prefix(struct mover *mover, const struct kvs_namespace *space,
			   const struct prefix_hash *hashes, uint32_t page_count);

/* A ticket for a save or a stash is free; a save whose rows do not all fit takes those that do. */
bool mover_can_save(const struct mover *mover);
/* That, and so many rows: a stash has all of its rows or is none. */
bool mover_can_stash(const struct mover *mover, uint32_t row_count);
/*
 * Copy Device blocks (source) to private Host blocks (target); row_count is 1 or more.  Takes over a
 * reference on either side of every row.  Asserts mover_can_stash().
 */
uint64_t mover_stash(struct mover *mover, uint64_t request, const struct cache_move *moves,
		     uint32_t row_count);

/*
 * The Device blocks that saves and stashes hold, for cache_can_admit(): would it fit once these are
 * done?  The list is inside the mover, good until the next call.
 */
const struct cache_block *mover_sources(struct mover *mover, uint32_t *ret_count);

/* --- loads ------------------------------------------------------------------------------------ */

/* A load ticket is free: to be asked before the admission, which cannot be taken back. */
bool mover_can_load(const struct mover *mover);
/*
 * Make a ticket of an admission's rows, in their order, whose references it takes over.  Returns its
 * id; 0 for no rows.  Asserts mover_can_load().
 */
uint64_t mover_load(struct mover *mover, uint64_t request, const struct cache_move *moves,
		    uint32_t row_count);

/* The same for blocks of a stash: Host (source) to Device (target). */
uint64_t mover_bring_back(struct mover *mover, uint64_t request, const struct cache_move *moves,
			  uint32_t row_count);

/* The load that fills a Device block; 0: none does. */
uint64_t mover_fence(const struct mover *mover, uint32_t group, uint32_t block);

/* --- completion ------------------------------------------------------------------------------- */

/* The ticket of an id, to look at its rows; NULL for one that is unknown or done. */
const struct mover_ticket *mover_find(const struct mover *mover, uint64_t id);

#define MOVER_ROWS(mover, ticket, row) \
	for ((row) = (ticket)->rows.head; (row) != SLOT_NONE; (row) = (mover)->links[row].next)

/*
 * All owners have done this ticket's copies: publish the names of a save, give back both sides of
 * every row.  False, and nothing changed, for an id that is unknown or done.
 */
bool mover_done(struct mover *mover, uint64_t id);

/*
 * Drop every cell of both strata, and the candidates.  False, and nothing changed, while a ticket
 * is in flight or a cell is held: a copy that ends behind a clear could bring back what was dropped.
 * cache_clear_device() may run beside copies: their rows hold what they touch.
 */
bool mover_clear(struct mover *mover);

static inline uint32_t mover_saving(const struct mover *mover)
{
	return mover->saving_tickets;
}

static inline uint32_t mover_loading(const struct mover *mover)
{
	return mover->loading_tickets;
}

/*
 * O(n): what rows copy from and to is held; no target on Host is published; ids are below the counter and
 * found; the names in flight and the targets of loads are those of the tickets' rows.
 */
void mover_audit(const struct mover *mover);

#endif
