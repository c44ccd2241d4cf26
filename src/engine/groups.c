/* SPDX-License-Identifier: Apache-2.0 */
/* See groups.h.  One walk over the tokens: what is before `begin` is checked, the rest written. */
#include "engine/groups.h"

#include <string.h>

#include "engine/rows.h"

void group_engine_init(struct group_engine *engine, const struct engine_group *groups,
		       uint32_t count)
{
	uint32_t g;

	KVS_ASSERT_CMP(count, >=, 1);
	KVS_ASSERT_CMP(count, <=, GROUPS_MAX);
	*engine = (struct group_engine){ .count = count };
	for (g = 0; g < count; g++) {
		KVS_ASSERT_CMP(groups[g].block_tokens, >=, 1);
		KVS_ASSERT_CMP(groups[g].layers, >=, 1);
		KVS_ASSERT_CMP(groups[g].layers, <=, ROWS_LAYERS_MAX);
		KVS_ASSERT((groups[g].kind == GROUP_WINDOW) == (groups[g].window_tokens > 0));
		engine->group[g] = groups[g];
	}
}

/* --- one row ---------------------------------------------------------------------------------- */

/* A row of a group: where it lies, and what it must be. */
struct row {
	uint32_t group;
	uint32_t position;
	uint32_t block; /* 0: a hole */
	uint32_t index; /* in the block */
	uint64_t state;
};

static uint8_t *word_of(const struct engine_group *group, const struct row *row, uint32_t layer)
{
	const struct engine_plane *const plane = &group->planes[layer];

	return plane->first + row->block * plane->stride + (size_t)row->index * 8;
}

static uint64_t expected(const struct row *row, uint32_t layer)
{
	return rows_word(row->state, (uint64_t)row->group * ROWS_LAYERS_MAX + layer);
}

static void note(struct group_engine *engine, const struct engine_pass *pass, const struct row *row,
		 uint32_t layer)
{
	if (engine->wrong++ > 0)
		return;
	engine->first = (struct engine_fault){ .request = pass->request, .group = row->group,
					       .position = row->position, .layer = layer,
					       .hole = row->block == 0 };
}

static void check_row(struct group_engine *engine, const struct engine_pass *pass,
		      const struct row *row)
{
	const struct engine_group *const group = &engine->group[row->group];
	uint32_t                         layer;

	if (row->block == 0) {
		note(engine, pass, row, 0);
		return;
	}
	for (layer = 0; layer < group->layers; layer++) {
		const uint64_t word = expected(row, layer);

		if (memcmp(word_of(group, row, layer), &word, sizeof(word)) != 0) {
			note(engine, pass, row, layer);
			return;
		}
	}
}

static void write_row(struct group_engine *engine, const struct engine_pass *pass,
		      const struct row *row)
{
	const struct engine_group *const group = &engine->group[row->group];
	uint32_t                         layer;

	if (row->block == 0) {
		note(engine, pass, row, 0);
		return;
	}
	for (layer = 0; layer < group->layers; layer++) {
		const uint64_t word = expected(row, layer);

		memcpy(word_of(group, row, layer), &word, sizeof(word));
	}
}

/* --- a pass ----------------------------------------------------------------------------------- */

/* The row of a token in a group, or the checkpoint behind it. */
static struct row row_at(const struct group_engine *engine, const struct engine_pass *pass, uint32_t g,
			 uint32_t position, uint64_t state)
{
	const struct engine_group *const group = &engine->group[g];
	const struct engine_table *const table = &pass->tables[g];
	const uint32_t                   slot = position / group->block_tokens;
	struct row                       row = { .group = g, .position = position, .state = state };

	if (slot < table->count)
		row.block = table->slots[slot];
	if (group->kind == GROUP_STATE)
		row.state = rows_checkpoint(state, (uint64_t)position + 1);
	else
		row.index = position % group->block_tokens;
	return row;
}

/* Does the first token of the pass attend to an earlier one?  A state attends through its checkpoint. */
static bool sees(const struct engine_group *group, const struct engine_pass *pass, uint32_t position)
{
	switch (group->kind) {
	case GROUP_FULL:
		return true;
	case GROUP_WINDOW:
		return (uint64_t)position + group->window_tokens > pass->begin;
	case GROUP_STATE:
		return position + 1 == pass->begin;
	}
	return false;
}

static void check_token(struct group_engine *engine, const struct engine_pass *pass, uint32_t position,
			uint64_t state)
{
	uint32_t g;

	for (g = 0; g < engine->count; g++) {
		const struct row row = row_at(engine, pass, g, position, state);

		if (!sees(&engine->group[g], pass, position))
			continue;
		check_row(engine, pass, &row);
		if (engine->group[g].kind == GROUP_STATE)
			engine->checkpoints_checked++;
		else
			engine->rows_checked++;
	}
}

static void write_token(struct group_engine *engine, const struct engine_pass *pass, uint32_t position,
			uint64_t state)
{
	uint32_t g;

	for (g = 0; g < engine->count; g++) {
		const struct row row = row_at(engine, pass, g, position, state);

		if (engine->group[g].kind != GROUP_STATE || position + 1 == pass->end)
			write_row(engine, pass, &row);
	}
}

bool group_engine_forward(struct group_engine *engine, const struct engine_pass *pass)
{
	const uint64_t wrong = engine->wrong;
	uint64_t       state = 0;
	uint32_t       i;

	KVS_ASSERT_CMP(pass->begin, <=, pass->end);
	for (i = 0; i < pass->end; i++) {
		state = rows_next(state, pass->tokens[i]);
		if (i < pass->begin)
			check_token(engine, pass, i, state);
		else
			write_token(engine, pass, i, state);
	}
	return engine->wrong == wrong;
}
