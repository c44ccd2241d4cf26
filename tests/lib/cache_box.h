/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small cache with pages that have numbers: page n of a prompt is hash n, whatever its tokens are.
 *
 * A box is opened over groups in a short notation; requests in it hold their tables.  What a test does
 * not ask about has to succeed, and every block has been given back when the box closes.
 */
#ifndef CACHE_BOX_H
#define CACHE_BOX_H

#include "coord/cache.h"

#define BOX_GROUPS 4u
#define BOX_SLOTS 64u
#define BOX_PAGES 32u

/* Groups: block tokens q and packing K; windows of W tokens. */
#define BOX_FULL(q, k) { .name = "full", .kind = GROUP_FULL, .block_tokens = (q), .packing = (k) }
#define BOX_WINDOW(w, q, k) \
	{ .name = "window", .kind = GROUP_WINDOW, .block_tokens = (q), .window_tokens = (w), \
	  .packing = (k) }
#define BOX_STATE(q, k) \
	{ .name = "state", .kind = GROUP_STATE, .block_tokens = (q), .packing = (k) }

struct box {
	struct cache        *cache;
	struct group_spec    specs[BOX_GROUPS];
	char                 names[BOX_GROUPS][16]; /* "full0", "window1": each its own */
	uint32_t             group_count;
	struct kvs_namespace space;
	struct prefix_hash   hashes[BOX_PAGES];
	struct kvs_error     err;
	uint32_t             inserted, removed; /* cells, as the sink was told */
};

struct box_request {
	struct table       tables[BOX_GROUPS];
	uint32_t           slots[BOX_GROUPS][BOX_SLOTS];
	struct cache_probe probe;
	uint64_t           epoch;
};

/* Up to BOX_GROUPS groups; the first one without block tokens ends them. */
void box_open(struct box *box, uint32_t page_tokens, uint32_t device_parents,
	      uint32_t host_parents, const struct group_spec *specs);
void box_close(struct box *box);

/* A hash that no page has: of a tail, or of another prompt. */
struct prefix_hash box_hash(uint32_t number);

/* Empty tables; no epoch yet. */
void box_request(const struct box *box, struct box_request *request);

/*
 * Publish one page of one group, held by the index alone, with this epoch (0: a new one).  Takes free
 * blocks or evicts for them as an admission does.  Returns the epoch.
 */
uint64_t box_put_page(struct box *box, uint32_t group, uint32_t page, enum cell_kind kind,
		      uint64_t epoch);
/* Several pages [first, end) of one group and one epoch. */
uint64_t box_put(struct box *box, uint32_t group, uint32_t first, uint32_t end);
/* The same on Host. */
void box_put_host(struct box *box, uint32_t group, uint32_t first, uint32_t end);

/* The first block of a page; BLOCK_NULL where it is not held. */
uint32_t box_find(const struct box *box, enum stratum_id stratum, uint32_t group, uint32_t page);
/* What it is published as; it must be. */
struct cell_view box_view(const struct box *box, enum stratum_id stratum, uint32_t group,
			  uint32_t page);

/* Probe this many pages for a request. */
const struct cache_probe *box_probe(struct box *box, struct box_request *request, uint32_t pages);

/* Admit with these demands, the request's last probe or none, and what completed, or NULL. */
int box_admit(struct box *box, struct box_request *request, const struct demand *demands,
	      bool with_probe, const struct cache_completed *completed,
	      struct cache_admitted *ret_admitted);
/* A dense demand of so many tokens for each group, nothing completed. */
int box_take(struct box *box, struct box_request *request, uint32_t tokens);

/* Pages [begin, end) complete at `computed`. */
struct cache_completed box_completed(const struct box *box, uint32_t begin, uint32_t end,
				     uint64_t computed, enum cell_kind kind);
void box_advance(struct box *box, struct box_request *request, uint32_t begin, uint32_t end,
		 uint64_t computed, enum cell_kind kind);

#endif
