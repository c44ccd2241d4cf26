/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_shape.h. */
#include "app/replay_shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/source.h"
#include "base/units.h"
#include "conf/items.h"

#define PAGE SOURCE_PAGE_TOKENS
/* Of a block: storage moves whole pages of memory. */
#define BLOCK_MULTIPLE 4096u
/* Enough for any real share, and no product overflows. */
#define SHARE_MAX 4096u
#define STATE_SHARE 16u

/* What an item says; share_of 0: nothing. */
struct item {
	const char *text;
	uint64_t    block, window, share, share_of;
	enum group_kind kind;
	bool        has_block;
};

struct reading {
	struct replay_shape *shape;
	struct item          items[GROUPS_MAX];
	char                 texts[GROUPS_MAX][ITEMS_BYTES];
};

static int refuse(const struct item *item, struct kvs_error *err, const char *rule)
{
	return err_set(err, KVS_E_INVALID, "groups: \"%s\": %s", item->text, rule);
}

/* --- words ------------------------------------------------------------------------------------ */

static int read_block(struct item *item, const char *value, struct kvs_error *err)
{
	if (item->has_block || units_count(value, &item->block) < 0 || item->block == 0 ||
	    item->block > PAGE || PAGE % item->block != 0) {
		return refuse(item, err,
			      "block= is given once, a divisor of the 512 tokens of a page");
	}
	item->has_block = true;
	return 0;
}

static int read_share(struct item *item, char *value, struct kvs_error *err)
{
	char *const slash = strchr(value, '/');

	if (slash)
		*slash = '\0';
	if (item->share_of > 0 || !slash || units_count(value, &item->share) < 0 ||
	    units_count(slash + 1, &item->share_of) < 0 || item->share == 0 ||
	    item->share > item->share_of || item->share_of > SHARE_MAX)
		return refuse(item, err, "share= is given once, as A/B, from 1/4096 to 1/1");
	return 0;
}

static int read_word(struct item *item, char *word, struct kvs_error *err)
{
	if (strncmp(word, "block=", 6) == 0)
		return read_block(item, word + 6, err);
	if (strncmp(word, "share=", 6) == 0)
		return read_share(item, word + 6, err);
	return refuse(item, err,
		      "behind the kind stand block=TOKENS and share=A/B, with colons between");
}

static int read_kind(struct item *item, const char *kind, char **rest, struct kvs_error *err)
{
	const char *window;

	if (strcmp(kind, "full") == 0) {
		item->kind = GROUP_FULL;
		return 0;
	}
	if (strcmp(kind, "state") == 0) {
		item->kind = GROUP_STATE;
		return 0;
	}
	if (strcmp(kind, "window") != 0)
		return refuse(item, err, "a group is full, window:TOKENS or state");
	item->kind = GROUP_WINDOW;
	window = strsep(rest, ":");
	if (!window || units_count(window, &item->window) < 0 || item->window == 0 ||
	    item->window > TOKENS_MAX)
		return refuse(item, err, "a window is window:TOKENS, from 1 to 2147483647");
	return 0;
}

static int add_item(void *ctx, const char *text, struct kvs_error *err)
{
	struct reading *const reading = ctx;
	const uint32_t        number = reading->shape->count;
	struct item          *item;
	char                  copy[ITEMS_BYTES];
	char                 *rest = copy;
	char                 *word;
	int                   rc;

	if (number == GROUPS_MAX)
		return err_set(err, KVS_E_INVALID, "groups: more than %u", GROUPS_MAX);
	item = &reading->items[number];
	snprintf(reading->texts[number], ITEMS_BYTES, "%s", text);
	snprintf(copy, sizeof(copy), "%s", text);
	*item = (struct item){ .text = reading->texts[number], .block = PAGE };
	rc = read_kind(item, strsep(&rest, ":"), &rest, err);
	while (rc == 0 && (word = strsep(&rest, ":")))
		rc = read_word(item, word, err);
	reading->shape->count += rc == 0;
	return rc;
}

/* --- sizes ------------------------------------------------------------------------------------ */

static uint32_t sharers(const struct reading *reading)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < reading->shape->count; i++)
		count += reading->items[i].kind != GROUP_STATE;
	return count;
}

/* A share that nobody chose is rounded to what a block may have. */
static uint64_t default_bytes(const struct item *item, uint64_t parent_bytes, uint32_t count)
{
	uint64_t bytes = parent_bytes / STATE_SHARE;

	if (item->kind != GROUP_STATE)
		bytes = parent_bytes * item->block / PAGE / count;
	bytes -= bytes % BLOCK_MULTIPLE;
	return bytes > 0 ? bytes : BLOCK_MULTIPLE;
}

static int size_block(const struct item *item, uint64_t parent_bytes, uint32_t count,
		      uint64_t *ret_bytes, struct kvs_error *err)
{
	const uint64_t tokens = item->kind == GROUP_STATE ? PAGE : item->block;
	const uint64_t whole = parent_bytes * tokens * item->share;
	uint64_t       bytes = default_bytes(item, parent_bytes, count);

	if (item->share_of > 0) {
		bytes = whole / PAGE / item->share_of;
		if (bytes == 0 || bytes % BLOCK_MULTIPLE != 0 ||
		    bytes * PAGE * item->share_of != whole) {
			return refuse(item, err,
				      "this share of block_bytes is no multiple of 4 KiB");
		}
	}
	*ret_bytes = bytes;
	return 0;
}

/* As many blocks in a parent as fit and divide it: then all of a group's lie a stride apart. */
static uint32_t pack(uint64_t parent_bytes, uint64_t block_bytes)
{
	uint64_t packing = parent_bytes / block_bytes;

	while (parent_bytes % packing != 0)
		packing--;
	return (uint32_t)packing;
}

static void name_group(struct replay_shape *shape, uint32_t g, enum group_kind kind)
{
	static const char *const kinds[] = { [GROUP_FULL] = "full",
					     [GROUP_WINDOW] = "window",
					     [GROUP_STATE] = "state" };
	uint32_t                 same = 0;
	uint32_t                 i;

	for (i = 0; i < g; i++)
		same += shape->specs[i].kind == kind;
	if (same == 0)
		snprintf(shape->names[g], SHAPE_NAME_BYTES, "%s", kinds[kind]);
	else
		snprintf(shape->names[g], SHAPE_NAME_BYTES, "%s%u", kinds[kind], same + 1);
}

static int shape_group(struct replay_shape *shape, const struct reading *reading, uint32_t g,
		       struct kvs_error *err)
{
	const struct item *const item = &reading->items[g];
	const uint64_t row_tokens = item->kind == GROUP_STATE ? 1 : item->block;
	uint64_t       bytes = 0;
	const int      rc = size_block(item, shape->parent_bytes, sharers(reading), &bytes, err);

	if (rc < 0)
		return rc;
	name_group(shape, g, item->kind);
	shape->block_bytes[g] = bytes;
	shape->layers[g] = (uint32_t)(bytes / 8 / row_tokens);
	shape->specs[g] = (struct group_spec){ .name = shape->names[g],
					       .kind = item->kind,
					       .block_tokens = (uint32_t)item->block,
					       .window_tokens = (uint32_t)item->window,
					       .packing = pack(shape->parent_bytes, bytes) };
	if (bytes > shape->object_bytes)
		shape->object_bytes = bytes;
	return 0;
}

int replay_shape_parse(struct replay_shape *shape, const char *text, uint64_t parent_bytes,
		       struct kvs_error *err)
{
	struct reading reading = { .shape = shape };
	struct groups  groups;
	uint32_t       g;
	int            rc;

	*shape = (struct replay_shape){ .parent_bytes = parent_bytes };
	rc = items_each("groups", text, add_item, &reading, err);
	for (g = 0; rc == 0 && g < shape->count; g++)
		rc = shape_group(shape, &reading, g, err);
	if (rc < 0)
		return rc;
	rc = groups_make(shape->specs, shape->count, PAGE, &groups, err);
	if (rc < 0)
		err_prefix(err, "groups");
	return rc;
}

/* --- what fits -------------------------------------------------------------------------------- */

uint64_t replay_shape_parents(const struct replay_shape *shape, uint64_t pages)
{
	uint64_t parents = 0;
	uint32_t g;

	for (g = 0; g < shape->count; g++) {
		const struct group_spec *const spec = &shape->specs[g];
		const uint64_t                 blocks = pages * (PAGE / spec->block_tokens);

		parents += (blocks + spec->packing - 1) / spec->packing;
	}
	return parents;
}

uint64_t replay_shape_pages(const struct replay_shape *shape, uint64_t parents)
{
	uint64_t pages = UINT64_MAX;
	uint32_t g;

	for (g = 0; g < shape->count; g++) {
		const struct group_spec *const spec = &shape->specs[g];
		const uint64_t fit = parents * spec->packing / (PAGE / spec->block_tokens);

		if (spec->kind == GROUP_FULL && fit < pages)
			pages = fit;
	}
	return pages;
}

char *replay_shape_text(const struct replay_shape *shape, char *buffer)
{
	size_t   used;
	uint32_t g;

	used = (size_t)snprintf(buffer, SHAPE_TEXT_BYTES, "reference engine, %u-token pages", PAGE);
	for (g = 0; g < shape->count; g++) {
		const struct group_spec *const spec = &shape->specs[g];

		used += (size_t)snprintf(buffer + used, SHAPE_TEXT_BYTES - used,
					 "; %s %u, %u tokens, %" PRIu64 " bytes", spec->name,
					 spec->window_tokens, spec->block_tokens,
					 shape->block_bytes[g]);
		KVS_ASSERT_CMP(used, <, SHAPE_TEXT_BYTES);
	}
	return buffer;
}
