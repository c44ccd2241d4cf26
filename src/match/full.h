/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matcher of a full-attention group: a prefix is restorable as far as every page of it is
 * there.
 *
 * A flat list of opaque keys is the one-group case of the same question.  Hints are assumptions of
 * existence (from a store's answer to a QUERY): with them a plan can be made, but they never
 * establish a hit.
 */
#ifndef MATCH_FULL_H
#define MATCH_FULL_H

#include <stdint.h>

#include "match/index.h"

/*
 * Where the run of held keys that starts at `begin` ends: an absolute position in [begin, end].  A
 * key counts when the stratum holds it, or when hints is not NULL and bit (i - begin) is set.
 */
uint32_t match_full(const struct prefix_index *index, enum stratum_id stratum,
		    const struct kvs_key *keys, uint32_t begin, uint32_t end,
		    const uint64_t *hints);

#endif
