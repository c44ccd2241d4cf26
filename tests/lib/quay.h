/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache, its mover and toy memory: requests compute words that name their prefix, and copies move
 * them when a test says so.
 *
 * A token's word follows from all tokens up to it, so a block that is stale, misplaced or not yet
 * copied shows at once.  A state block has one word, that of the last token it has seen.
 *
 * Late    Copies are made as late as a device may: at the acknowledgement, so that whatever a ticket
 *         should have held and did not is overwritten by then; loads before the next forward or save
 *         that is ordered behind them.
 */
#ifndef LIB_QUAY_H
#define LIB_QUAY_H

#include <string.h>

#include "tier/snapshot.h"

#define QUAY_GROUPS 4u
#define QUAY_TOKENS 64u
#define QUAY_PAGES 32u
#define QUAY_BLOCK_TOKENS 8u
#define QUAY_BLOCKS 256u
#define QUAY_KNOWN 128u
#define QUAY_TICKETS 4096u

struct quay_spec {
	const struct group_spec *groups;
	uint32_t                 group_count;
	uint32_t                 page_tokens;
	uint32_t                 device_parents;
	uint32_t                 host_parents;
	uint32_t                 candidates;      /* 0: 64, and so for all below */
	uint32_t                 save_ticket_max; /* 4 */
	uint32_t                 save_row_max;    /* 64 */
	uint32_t                 load_ticket_max; /* 4 */
	uint32_t                 snapshots;       /* 2 */
	uint32_t                 image_blocks;    /* 32 */
	bool                     quiet;           /* Device's new cells become no candidates */
};

/* A page that some request has: what its blocks must hold. */
struct quay_page {
	struct prefix_hash hash;
	uint64_t           words[QUAY_BLOCK_TOKENS * 4]; /* of its tokens */
};

typedef uint64_t quay_memory[QUAY_GROUPS][QUAY_BLOCKS][QUAY_BLOCK_TOKENS];

struct quay {
	struct quay_spec      spec;
	struct candidates    candidates;
	struct cache        *cache;
	struct mover         mover;
	struct snapshots     snapshots;
	struct kvs_namespace space;
	quay_memory           device, host;
	struct quay_page      known[QUAY_KNOWN];
	uint32_t             known_count;
	uint64_t             copied[QUAY_TICKETS / 64]; /* tickets whose bytes have been moved */
};

struct quay_request {
	uint64_t           id;
	uint32_t           token_count;
	int32_t            tokens[QUAY_TOKENS]; /* those it will generate, too */
	struct prefix_hash hashes[QUAY_PAGES];
	uint64_t           words[QUAY_TOKENS];  /* of each token */
	struct table       tables[QUAY_GROUPS];
	uint32_t           slots[QUAY_GROUPS][QUAY_TOKENS];
	uint64_t           hit;                /* of the last admission with a probe */
	uint64_t           computed;
	uint32_t           published;          /* pages */
	uint64_t           epoch;              /* 0: not admitted */
	uint64_t           load_ticket;        /* of the last start; 0: none */
};

struct quay *quay_new(const struct quay_spec *spec);
void        quay_free(struct quay *quay); /* nothing may be in flight */

/* Tokens first, first + 1, ...; nothing computed. */
void quay_prompt(struct quay *quay, struct quay_request *request, uint64_t id, int32_t first,
		uint32_t count);

/*
 * Probe up to probe_pages pages, admit the tokens behind the hit up to `end`, make the ticket of the
 * loads and publish what they bring.  Computes nothing yet.  The code of cache_admit().
 */
int quay_start(struct quay *quay, struct quay_request *request, uint32_t probe_pages, uint32_t end);
/* Room for the tokens up to `end`, publishing what was completed before. */
int quay_grow(struct quay *quay, struct quay_request *request, uint32_t end);
/* Compute tokens up to `end`: asserts that each has a block. */
void quay_forward(struct quay *quay, struct quay_request *request, uint32_t end);
void quay_publish(struct quay *quay, struct quay_request *request);
/* Start, forward. */
void quay_run(struct quay *quay, struct quay_request *request, uint32_t probe_pages, uint32_t end);
/* Publish, and give all back. */
void quay_finish(struct quay *quay, struct quay_request *request);
/* The completed pages as quay_publish() names them. */
struct cache_completed quay_completed(const struct quay *quay, const struct quay_request *request);

/* Move a ticket's bytes, if that has not been done. */
void quay_copy(struct quay *quay, uint64_t id);
/* Of all loads: what a forward waits for. */
void quay_copy_loads(struct quay *quay);
/* Move them and acknowledge; what mover_done() says. */
bool quay_done(struct quay *quay, uint64_t id);

/* Rows of a ticket; 0 for one that is not. */
uint32_t                quay_rows(const struct quay *quay, uint64_t id);
/* The i-th. */
const struct mover_row *quay_row(const struct quay *quay, uint64_t id, uint32_t i);

/* Blocks with a name in a stratum, and blocks held by anybody. */
uint32_t quay_cached(const struct quay *quay, enum stratum_id stratum);
uint32_t quay_held(const struct quay *quay, enum stratum_id stratum);
/* Blocks that somebody besides the index holds. */
uint32_t quay_pinned(const struct quay *quay, enum stratum_id stratum);
bool     quay_has(const struct quay *quay, enum stratum_id stratum, const struct quay_request *request,
		 uint32_t group, uint32_t position);

/* All that the request would read at its next token is right. */
void quay_check_request(const struct quay *quay, const struct quay_request *request);
/* Audits, and every block with a name holds that name's bytes, unless a load to it is under way. */
void quay_check(const struct quay *quay);

#endif
