/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matching over a flat list of opaque keys, of which a bitmap says what was found.
 *
 * The same question as match_joint() asks, without an index and without tokens.  The prompt is a row of
 * chunks; each group has a key a chunk, or `copies` of them where every rank keeps its own.  A group
 * needs all its keys before a boundary (FLAT_ALL), or those of the last `window` chunks, fewer near the
 * start.  The boundary is the greatest that all groups support; what a restore there does not use need
 * not be kept.
 *
 * One group and FLAT_ALL is the plain prefix: the run of found keys from the first.
 *
 * Bits    (chunk * groups + group) * copies + copy: the keys of a chunk lie together.  Keys that come in
 *         another order are placed by flat_positions().
 * Limits  GROUPS_MAX groups, COLUMNS_MAX keys a chunk, FLAT_KEYS_MAX keys.
 */
#ifndef MATCH_FLAT_H
#define MATCH_FLAT_H

#include <stdint.h>

#include "base/err.h"
#include "match/groups.h"

#define FLAT_ALL      UINT32_MAX
#define FLAT_KEYS_MAX TOKENS_MAX

struct flat {
	struct groups groups; /* a chunk is a page, a key a block of one token */
};

/**
 * Check and work out the groups of a list; windows[g] is in chunks, or FLAT_ALL.
 *
 * Errors  KVS_E_INVALID: no groups, too many, no copies, or more keys a chunk than COLUMNS_MAX.
 */
int flat_make(const uint32_t *windows, uint32_t group_count, uint32_t copies, struct flat *ret_flat,
	      struct kvs_error *err);

/* Keys of one chunk. */
static inline uint32_t flat_keys(const struct flat *flat)
{
	return flat->groups.columns;
}

/**
 * The bits of keys that come in any order, each with the number of its group: those of one group in the
 * order of their chunks, the copies of a chunk one after another.
 *
 * Errors  KVS_E_INVALID: a group that is none, or groups that do not have equally many whole chunks; the
 *         positions are then meaningless.
 */
int flat_positions(const struct flat *flat, const uint32_t *group_of_key, uint32_t key_count,
		   uint32_t *ret_positions, uint32_t *ret_chunk_count, struct kvs_error *err);

/* The greatest boundary that all groups support, in chunks; at most FLAT_KEYS_MAX keys are asked. */
uint32_t flat_match(const struct flat *flat, const uint64_t *found, uint32_t chunk_count);

/* Set the bits that a restore at a boundary uses, of chunk_count chunks; clear all others. */
void flat_keep(const struct flat *flat, uint32_t boundary, uint32_t chunk_count, uint64_t *ret_keep);

#endif
