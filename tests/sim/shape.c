/* SPDX-License-Identifier: Apache-2.0 */
/* See shape.h. */
#include "shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/rows.h"

#define SCRIBBLE UINT64_C(0xbad0000000000000)

int shape_make(struct shape *shape, struct kvs_error *err)
{
	uint32_t g;

	shape->part_count = 0;
	for (g = 0; g < shape->group_count; g++) {
		shape->first_part[g] = shape->part_count;
		shape->part_count += shape_replicas(shape, g);
		KVS_ASSERT_CMP(shape_block_bytes(shape, g) * shape->specs[g].packing, <=,
			       PARENT_BYTES);
	}
	KVS_ASSERT_CMP(shape->part_count, <=, GROUPS_MAX);
	return groups_make(shape->specs, shape->group_count, PAGE_TOKENS, &shape->groups, err);
}

void shape_hostmap(const struct shape *shape, uint32_t host_parents, struct hostmap *ret_hostmap)
{
	struct hostmap_group groups[GROUPS];
	uint32_t             g;

	for (g = 0; g < shape->group_count; g++) {
		groups[g] = (struct hostmap_group){
			.packing = shape->specs[g].packing / shape->owners[g].cycle,
			.block_bytes = shape_block_bytes(shape, g)
		};
	}
	KVS_ASSERT(hostmap_make(groups, shape->group_count, host_parents, ret_hostmap, NULL) == 0);
}

/* --- what must lie in a block ----------------------------------------------------------------- */

static uint64_t word_of(const struct shape *shape, const struct content *content, uint32_t token,
			uint32_t layer)
{
	const struct oracle *const oracle = oracle_get();
	const uint32_t             part = shape_part(shape, content->group, content->replica);
	uint64_t state = oracle->state[content->version][content->prefix.page][token];

	if (shape->specs[content->group].kind == GROUP_STATE)
		state = rows_checkpoint(state, oracle_before(content->prefix.page) + token + 1);
	return rows_word(state, (uint64_t)part * ROWS_LAYERS_MAX + layer);
}

static void put_word(const struct shape *shape, const struct content *content, uint8_t *bytes,
		     uint32_t row, uint32_t token)
{
	uint32_t layer;

	for (layer = 0; layer < shape->layers[content->group]; layer++) {
		const uint64_t word = word_of(shape, content, token, layer);

		memcpy(bytes + layer * shape_field_bytes(shape, content->group) + 8 * row, &word,
		       sizeof(word));
	}
}

void shape_fill_token(const struct shape *shape, const struct content *content, uint32_t token,
		      void *bytes)
{
	const struct group_spec *const spec = &shape->specs[content->group];

	put_word(shape, content, bytes,
		 spec->kind == GROUP_STATE ? 0 : token % spec->block_tokens, token);
}

void shape_fill(const struct shape *shape, const struct content *content, void *bytes)
{
	const struct group_spec *const spec = &shape->specs[content->group];
	const uint32_t                 first = content->offset * spec->block_tokens;
	uint32_t                       i;

	if (spec->kind == GROUP_STATE) {
		put_word(shape, content, bytes, 0, content->prefix.count - 1);
		return;
	}
	for (i = 0; i < spec->block_tokens && first + i < content->prefix.count; i++)
		put_word(shape, content, bytes, i, first + i);
}

/* Whether it is a word of this page and part, and of which token. */
static bool is_word_of(const struct shape *shape, const struct content *content, uint64_t word,
		       uint32_t *ret_token)
{
	uint32_t i;

	for (i = 0; i < LAYERS * PAGE_TOKENS; i++) {
		if (word_of(shape, content, i / LAYERS, i % LAYERS) != word)
			continue;
		*ret_token = i / LAYERS;
		return true;
	}
	return false;
}

static bool find_in_page(const struct shape *shape, uint64_t word, struct content *at,
			 uint32_t *ret_token)
{
	for (at->group = 0; at->group < shape->group_count; at->group++) {
		for (at->replica = 0; at->replica < shape_replicas(shape, at->group); at->replica++) {
			if (is_word_of(shape, at, word, ret_token))
				return true;
		}
	}
	return false;
}

/* Only for a report: whose word is it? */
static bool find_word(const struct shape *shape, uint64_t word, struct content *ret_content,
		      uint32_t *ret_token)
{
	struct content *const at = ret_content;

	for (at->version = 0; at->version < VERSIONS; at->version++) {
		for (at->prefix.page = 2; at->prefix.page < PAGE_END; at->prefix.page++) {
			if (find_in_page(shape, word, at, ret_token))
				return true;
		}
	}
	return false;
}

static const char *describe(const struct shape *shape, const struct content *content, uint32_t token,
			    uint64_t word)
{
	static char    sentence[200];
	struct content from;
	uint32_t       at;
	const int      head = snprintf(sentence, sizeof(sentence),
				       "token %u of page %u, group %u, replica %u, weights %u ", token,
				       content->prefix.page, content->group, content->replica,
				       content->version);
	char *const    rest = sentence + head;
	const size_t   room = sizeof(sentence) - (size_t)head;

	if ((word & SCRIBBLE) == SCRIBBLE && (word & ~SCRIBBLE) < 1u << 20) {
		snprintf(rest, room, "was overwritten by op %" PRIu64, word & ~SCRIBBLE);
	} else if (find_word(shape, word, &from, &at)) {
		snprintf(rest, room, "holds token %u of page %u, group %u, replica %u, weights %u", at,
			 from.prefix.page, from.group, from.replica, from.version);
	} else {
		snprintf(rest, room, "holds %016" PRIx64 ", which nobody wrote", word);
	}
	return sentence;
}

static const char *check_word(const struct shape *shape, const struct content *content,
			      const uint8_t *bytes, uint32_t row, uint32_t token)
{
	uint32_t layer;
	uint64_t word;

	for (layer = 0; layer < shape->layers[content->group]; layer++) {
		memcpy(&word, bytes + layer * shape_field_bytes(shape, content->group) + 8 * row,
		       sizeof(word));
		if (word != word_of(shape, content, token, layer))
			return describe(shape, content, token, word);
	}
	return NULL;
}

const char *shape_check(const struct shape *shape, const struct content *content, const void *bytes)
{
	const struct group_spec *const spec = &shape->specs[content->group];
	const uint32_t                 first = content->offset * spec->block_tokens;
	const uint32_t                 count = content->prefix.count;
	uint32_t                       i;

	if (first >= count)
		return "a block behind the end of its prefix has a name";
	if (spec->kind == GROUP_STATE) {
		if (first + spec->block_tokens < count)
			return "a state has a name that is not the end of its prefix";
		return check_word(shape, content, bytes, 0, count - 1);
	}
	for (i = first; i < count && i < first + spec->block_tokens; i++) {
		const char *const wrong = check_word(shape, content, bytes, i - first, i);

		if (wrong)
			return wrong;
	}
	return NULL;
}

void shape_scribble(uint64_t op_id, void *bytes, size_t byte_count)
{
	const uint64_t word = SCRIBBLE | op_id;
	size_t         i;

	for (i = 0; i + sizeof(word) <= byte_count; i += sizeof(word))
		memcpy((uint8_t *)bytes + i, &word, sizeof(word));
}
