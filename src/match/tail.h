/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tails: boundaries inside a page, and where to look for them.
 *
 * Only full pages lie on the chain of a prompt, so that a prefix that ends inside a page, where an
 * earlier request ended, cannot be found by walking the chain: there are P - 1 places in each page.
 * A *hint* says of one: behind this page there was once a tail of so many tokens with this hash.
 * The table of hints is local and bounded, and nothing is asked to fill it: whoever publishes a
 * tail records it.
 *
 * A hint never makes a hit.  It only names a candidate: the prompt's own tokens must give its
 * hash, and the matcher must then find every block that its boundary needs.
 *
 * Limits   hint_max hints, fixed at open; when it is full the oldest goes.  TAILS_PER_PAGE behind
 *          one page, for the same reason; so a look-up costs at most that many hashes.
 * Order    Ages depend on the calls alone; nothing exposes hash order.
 * Threads  The cache thread only.  Nothing allocates after open.
 */
#ifndef MATCH_TAIL_H
#define MATCH_TAIL_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/slots.h"
#include "key/prompt.h"
#include "match/boundary.h"
#include "match/pages.h"

/*
 * A conversation leaves one tail a turn, and turns seldom end in one page; requests that share a
 * long prompt do.  Each hint costs a hash of less than a page when such a prompt comes.
 */
#define TAILS_PER_PAGE 8u

struct tail_hint {
	struct prefix_hash hash;
	uint32_t           token_count; /* 1 .. P - 1, behind the last full page */
	uint32_t           page;        /* which page that is; the table's own number */
};

/* The hints behind one page. */
struct tail_page {
	struct page_name name;
	struct list      hints; /* oldest first */
};

struct tails {
	uint32_t          page_tokens;
	struct tail_page *pages;
	struct slots      page_slots;
	struct map        map;     /* names of pages */
	struct tail_hint *hints;
	struct slots      slots;
	struct link      *of_page; /* links of tail_page.hints */
	struct link      *of_age;
	struct list       age;     /* all hints, oldest first */
	uint64_t          dropped_full;    /* hints that went because the table was full, */
	uint64_t          dropped_crowded; /* because there were TAILS_PER_PAGE behind their page */
};

/* Errors: KVS_E_INVALID  no hints or more than 31 bits count, or such a page; -ENOMEM. */
int    tails_open(struct tails *tails, uint32_t hint_max, uint32_t page_tokens, struct kvs_error *err);
void   tails_close(struct tails *tails);
size_t tails_bytes(const struct tails *tails); /* memory in use */

/*
 * Remember a tail, as the newest.  prior is the hash of the last full page before it, NULL when
 * there is none; token_count is less than a page (asserted).
 */
void tails_record(struct tails *tails, const struct kvs_namespace *space,
		  const struct prefix_hash *prior, uint32_t token_count,
		  const struct prefix_hash *hash);

/* The hints behind a page, newest first; returns how many. */
uint32_t tails_behind(const struct tails *tails, const struct kvs_namespace *space,
		      const struct prefix_hash *prior, struct tail_hint ret_hints[TAILS_PER_PAGE]);

/* Forget all, as when the cache is cleared.  The counters stay. */
void tails_clear(struct tails *tails);

/* --- the candidates of a prompt --------------------------------------------------------------- */

struct tail_search {
	const struct kvs_namespace *space;
	const struct prompt        *prompt;
	const struct prefix_hash   *hashes;   /* of its full pages before the bound */
	uint32_t                    bound;    /* the exact reusable bound, a candidate itself; in tokens */
	uint32_t                    reach;    /* nothing behind it, nor behind the bound */
	uint32_t                    above;    /* nothing at it or before: what is had already */
	uint32_t                    page_max; /* page boundaries to look behind, last one first */
};

/*
 * The tails of a prompt that are worth asking for: its bound, unless that is a page boundary, and
 * each hint that its own tokens confirm.  Longest first, each boundary once, at most tail_max of
 * them.
 */
uint32_t tails_find(const struct tails *tails, const struct tail_search *search,
		    struct tail *ret_tails, uint32_t tail_max);

/*
 * Hints, pages, both orders and the map agree.  Quadratic at worst, when each hint is behind a
 * page of its own.
 */
void tails_audit(const struct tails *tails);

#endif
