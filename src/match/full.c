/* SPDX-License-Identifier: Apache-2.0 */
#include "match/full.h"

#include "base/bits.h"

uint32_t match_full(const struct prefix_index *index, enum stratum_id stratum,
		    const struct kvs_key *keys, uint32_t begin, uint32_t end, const uint64_t *hints)
{
	uint32_t i;

	for (i = begin; i < end; i++) {
		if (hints && bits_test(hints, i - begin))
			continue;
		if (index_block(index, stratum, &keys[i]) == SLOT_NONE)
			break;
	}
	return i;
}
