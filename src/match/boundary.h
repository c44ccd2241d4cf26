/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a restored prefix may end: behind a page, or inside one, behind a tail.
 *
 * Pages of a prompt are numbered, and so are its tails, which come longest first.
 */
#ifndef MATCH_BOUNDARY_H
#define MATCH_BOUNDARY_H

#include <stdint.h>

#include "key/key.h"

/* A prefix that ends inside a page. */
struct tail {
	uint32_t           tokens; /* absolute; no multiple of P */
	struct prefix_hash hash;   /* of what of its last page it has */
};

#define TAIL_NONE UINT32_MAX

struct boundary {
	uint32_t tokens;
	uint32_t pages; /* full ones before it */
	uint32_t tail;  /* number of the tail that it is; TAIL_NONE: the end of a page */
};

/* The boundaries of a prompt, the longest first. */
struct boundary_walk {
	const struct tail *tails;
	uint32_t           tail_count;
	uint32_t           page_tokens;
	uint32_t           page; /* the next end of a page */
	uint32_t           tail; /* the next tail */
};

/* None of more than `reach` tokens, nor behind more than page_count full pages and a tail. */
struct boundary_walk boundary_walk(const struct tail *tails, uint32_t tail_count, uint32_t page_tokens,
				   uint32_t page_count, uint32_t reach);

/* 0 tokens when there is no other. */
struct boundary boundary_next(struct boundary_walk *walk);

#endif
