/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See flat.h.  A chunk is a page of `copies` tokens and a key a block of one, so that what was found is
 * to the matcher a bitmap of hints over an index in which nothing counts.
 */
#include "match/flat.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "match/joint.h"

static const char *const group_names[] = { "0", "1", "2",  "3",  "4",  "5",  "6",  "7",
					   "8", "9", "10", "11", "12", "13", "14", "15" };

static_assert(ARRAY_COUNT(group_names) == GROUPS_MAX, "every group has a name");

/*
 * A window of tokens ends with the one behind the boundary, so that w keys before it are a window of
 * w + 1.  One that reaches back past any list is as good as one that just does.
 */
static uint32_t window_tokens(uint32_t chunks, uint32_t copies)
{
	const uint64_t keys = (uint64_t)chunks * copies;

	return (keys < FLAT_KEYS_MAX ? (uint32_t)keys : FLAT_KEYS_MAX) + 1;
}

int flat_make(const uint32_t *windows, uint32_t group_count, uint32_t copies, struct flat *ret_flat,
	      struct kvs_error *err)
{
	struct group_spec specs[GROUPS_MAX];
	uint32_t          g;

	if (group_count == 0 || group_count > GROUPS_MAX) {
		return err_set(err, KVS_E_INVALID, "groups: %u is out of range; use 1 to %u",
			       group_count, GROUPS_MAX);
	}
	if (copies == 0 || copies > COLUMNS_MAX / group_count) {
		return err_set(err, KVS_E_INVALID,
			       "copies: %u is out of range; with %u groups use 1 to %u", copies,
			       group_count, COLUMNS_MAX / group_count);
	}
	for (g = 0; g < group_count; g++) {
		specs[g] = (struct group_spec){ .name = group_names[g], .kind = GROUP_FULL,
						.block_tokens = 1, .packing = 1 };
		if (windows[g] == FLAT_ALL)
			continue;
		specs[g].kind = GROUP_WINDOW;
		specs[g].window_tokens = window_tokens(windows[g], copies);
	}
	return groups_make(specs, group_count, copies, &ret_flat->groups, err);
}

int flat_positions(const struct flat *flat, const uint32_t *group_of_key, uint32_t key_count,
		   uint32_t *ret_positions, uint32_t *ret_chunk_count, struct kvs_error *err)
{
	const uint32_t copies = flat->groups.page_tokens;
	const uint32_t group_keys = key_count / flat->groups.count;
	uint32_t       seen[GROUPS_MAX] = { 0 };
	uint32_t       i;

	if (key_count % flat_keys(flat) != 0) {
		return err_set(err, KVS_E_INVALID, "keys: %u is not a multiple of the %u of a chunk",
			       key_count, flat_keys(flat));
	}
	for (i = 0; i < key_count; i++) {
		const uint32_t g = group_of_key[i];
		uint32_t       chunk;

		if (g >= flat->groups.count) {
			return err_set(err, KVS_E_INVALID,
				       "key %u: group: %u is not below the number of groups, %u", i, g,
				       flat->groups.count);
		}
		if (seen[g] == group_keys) {
			return err_set(err, KVS_E_INVALID,
				       "key %u: group: %u has more keys than others", i, g);
		}
		chunk = seen[g] / copies;
		ret_positions[i] = chunk * flat_keys(flat) + g * copies + seen[g] % copies;
		seen[g]++;
	}
	*ret_chunk_count = group_keys / copies;
	return 0;
}

uint32_t flat_match(const struct flat *flat, const uint64_t *found, uint32_t chunk_count)
{
	const struct pages nothing = { .groups = flat->groups };
	const struct view  view = { .pages = &nothing, .page_count = chunk_count, .hints = found };

	KVS_ASSERT_CMP((uint64_t)chunk_count * flat_keys(flat), <=, FLAT_KEYS_MAX);
	return match_joint(&view, chunk_count).pages;
}

/* The bits of [begin, end). */
static void set_range(uint64_t *words, size_t begin, size_t end)
{
	size_t bit;

	for (bit = begin; bit < end; bit++)
		bits_set(words, bit);
}

void flat_keep(const struct flat *flat, uint32_t boundary, uint32_t chunk_count, uint64_t *ret_keep)
{
	const uint32_t copies = flat->groups.page_tokens;
	const size_t   keys = flat_keys(flat);
	uint32_t       g, chunk;

	KVS_ASSERT_CMP(boundary, <=, chunk_count);
	memset(ret_keep, 0, bits_words(chunk_count * keys) * sizeof(*ret_keep));
	for (g = 0; g < flat->groups.count; g++) {
		const uint32_t first = group_first_needed(&flat->groups.group[g], boundary * copies);

		for (chunk = first / copies; chunk < boundary; chunk++) {
			const size_t bit = chunk * keys + (size_t)g * copies;

			set_range(ret_keep, bit, bit + copies);
		}
	}
}
