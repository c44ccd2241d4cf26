/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and checkpoints one by one: what each must be, and the first that is not.  See groups.h. */
#include <string.h>

#include "engine/parts.h"
#include "engine/rows.h"

static uint8_t *word_of(const struct engine_group *group, const struct engine_row *row,
			uint32_t layer)
{
	const struct engine_plane *const plane = &group->planes[layer];

	return plane->first + row->block * plane->stride + (size_t)row->index * 8;
}

static uint64_t expected(const struct engine_row *row, uint32_t layer)
{
	return rows_word(row->state, (uint64_t)row->group * ROWS_LAYERS_MAX + layer);
}

static void note(struct group_engine *engine, const struct engine_pass *pass,
		 const struct engine_row *row, uint32_t layer, uint64_t bytes)
{
	engine->wrong_bytes += bytes;
	if (engine->wrong++ > 0)
		return;
	engine->first = (struct engine_fault){ .request = pass->request, .group = row->group,
					       .position = row->position, .layer = layer,
					       .hole = row->block == 0 };
}

static void note_hole(struct group_engine *engine, const struct engine_pass *pass,
		      const struct engine_row *row)
{
	note(engine, pass, row, 0, (uint64_t)engine->group[row->group].layers * 8);
}

static uint32_t differing_bytes(const uint8_t *have, uint64_t want)
{
	uint8_t  bytes[sizeof(want)];
	uint32_t count = 0;
	size_t   i;

	memcpy(bytes, &want, sizeof(bytes));
	for (i = 0; i < sizeof(bytes); i++)
		count += have[i] != bytes[i];
	return count;
}

void engine_check_row(struct group_engine *engine, const struct engine_pass *pass,
		      const struct engine_row *row)
{
	const struct engine_group *const group = &engine->group[row->group];
	uint32_t                         first = group->layers;
	uint64_t                         bytes = 0;
	uint32_t                         layer;

	if (row->block == 0) {
		note_hole(engine, pass, row);
		return;
	}
	for (layer = 0; layer < group->layers; layer++) {
		const uint32_t wrong =
			differing_bytes(word_of(group, row, layer), expected(row, layer));

		if (wrong > 0 && first == group->layers)
			first = layer;
		bytes += wrong;
	}
	if (bytes > 0)
		note(engine, pass, row, first, bytes);
}

void engine_write_row(struct group_engine *engine, const struct engine_pass *pass,
		      const struct engine_row *row)
{
	const struct engine_group *const group = &engine->group[row->group];
	uint32_t                         layer;

	if (row->block == 0) {
		note_hole(engine, pass, row);
		return;
	}
	for (layer = 0; layer < group->layers; layer++) {
		const uint64_t word = expected(row, layer);

		memcpy(word_of(group, row, layer), &word, sizeof(word));
	}
}

/* --- all groups of a token -------------------------------------------------------------------- */

struct engine_row engine_row_at(const struct group_engine *engine, const struct engine_pass *pass,
				uint32_t g, uint32_t position, uint64_t state)
{
	const struct engine_group *const group = &engine->group[g];
	const struct engine_table *const table = &pass->tables[g];
	const uint32_t                   slot = position / group->block_tokens;
	struct engine_row                row = { .group = g, .position = position, .state = state };

	if (slot < table->count)
		row.block = table->slots[slot];
	if (group->kind == GROUP_STATE)
		row.state = rows_checkpoint(state, (uint64_t)position + 1);
	else
		row.index = position % group->block_tokens;
	return row;
}

/*
 * Does the first token of the pass attend to an earlier one?  A state attends through its
 * checkpoint.
 */
static bool sees(const struct engine_group *group, const struct engine_pass *pass,
		 uint32_t position)
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

void engine_check_token(struct group_engine *engine, const struct engine_pass *pass,
			uint32_t position, uint64_t state)
{
	uint32_t g;

	for (g = 0; g < engine->count; g++) {
		const struct engine_row row = engine_row_at(engine, pass, g, position, state);

		if (!sees(&engine->group[g], pass, position))
			continue;
		engine_check_row(engine, pass, &row);
		if (engine->group[g].kind == GROUP_STATE)
			engine->checkpoints_checked++;
		else
			engine->rows_checked++;
	}
}

void engine_write_token(struct group_engine *engine, const struct engine_pass *pass,
			uint32_t position, uint64_t state)
{
	uint32_t g;

	for (g = 0; g < engine->count; g++) {
		const struct engine_row row = engine_row_at(engine, pass, g, position, state);

		if (engine->group[g].kind != GROUP_STATE || position + 1 == pass->end)
			engine_write_row(engine, pass, &row);
	}
}
