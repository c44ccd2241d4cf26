/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See groups.h.  One walk over the tokens, a run at a time: what is before `begin` is checked, the
 * rest written.  A run whose blocks are there and right goes layer by layer; any other goes row by
 * row, so that what is named first is the first in order of tokens.
 */
#include "engine/groups.h"

#include <string.h>

#include "engine/parts.h"
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

/* --- runs of tokens --------------------------------------------------------------------------- */

/* As many as blocks have, mostly: then each layer of a block is one run of memory. */
#define RUN_TOKENS 512u

/* Tokens [first, first + count) of a pass and the state behind each of them. */
struct run {
	const struct engine_pass *pass;
	uint32_t                  first;
	uint32_t                  count;
	uint64_t                  states[RUN_TOKENS];
};

/* Rows of a run that lie in one block. */
struct strip {
	const struct engine_group *group;
	uint32_t                   id;
	uint32_t                   block;
	uint32_t                   index; /* of the first row in its block */
	uint32_t                   count;
	const uint64_t            *states;
};

/* The rows of a group from token `from` of the run on, as far as their block goes. */
static struct strip strip_at(const struct group_engine *engine, const struct run *run, uint32_t g,
			     uint32_t from)
{
	const struct engine_group *const group = &engine->group[g];
	const uint32_t                   left = run->first + run->count - from;
	const struct engine_row          row = engine_row_at(engine, run->pass, g, from, 0);
	struct strip                     strip = { .group = group, .id = g, .block = row.block,
						   .index = row.index,
						   .states = run->states + (from - run->first) };

	strip.count = group->block_tokens - row.index;
	if (strip.count > left)
		strip.count = left;
	return strip;
}

static uint8_t *strip_words(const struct strip *strip, uint32_t layer)
{
	const struct engine_plane *const plane = &strip->group->planes[layer];

	return plane->first + strip->block * plane->stride + (size_t)strip->index * 8;
}

static bool strip_is_right(const struct strip *strip)
{
	uint64_t difference = 0;
	uint32_t layer, i;

	for (layer = 0; strip->block > 0 && layer < strip->group->layers; layer++) {
		const uint8_t *const words = strip_words(strip, layer);
		const uint64_t       of = (uint64_t)strip->id * ROWS_LAYERS_MAX + layer;

		for (i = 0; i < strip->count; i++) {
			uint64_t word;

			memcpy(&word, words + (size_t)i * 8, sizeof(word));
			difference |= word ^ rows_word(strip->states[i], of);
		}
	}
	return strip->block > 0 && difference == 0;
}

static void strip_write(const struct strip *strip)
{
	uint32_t layer, i;

	for (layer = 0; layer < strip->group->layers; layer++) {
		uint8_t *const words = strip_words(strip, layer);
		const uint64_t of = (uint64_t)strip->id * ROWS_LAYERS_MAX + layer;

		for (i = 0; i < strip->count; i++) {
			const uint64_t word = rows_word(strip->states[i], of);

			memcpy(words + (size_t)i * 8, &word, sizeof(word));
		}
	}
}

/*
 * The first token of the run that the pass's first token sees of a group; the run's end when none.
 */
static uint32_t first_seen(const struct engine_group *group, const struct run *run)
{
	const uint32_t end = run->first + run->count;
	const uint32_t begin = run->pass->begin;
	uint32_t       first = 0;

	if (group->kind == GROUP_WINDOW && begin >= group->window_tokens)
		first = begin - group->window_tokens + 1;
	if (first < run->first)
		first = run->first;
	return first < end ? first : end;
}

/*
 * Whether all rows of FULL and WINDOW groups that are to be checked are right; counts them if so.
 */
static bool run_is_right(struct group_engine *engine, const struct run *run)
{
	const uint32_t end = run->first + run->count;
	uint64_t       rows = 0;
	uint32_t       g, at;

	for (g = 0; g < engine->count; g++) {
		if (engine->group[g].kind == GROUP_STATE)
			continue;
		for (at = first_seen(&engine->group[g], run); at < end;) {
			const struct strip strip = strip_at(engine, run, g, at);

			if (!strip_is_right(&strip))
				return false;
			rows += strip.count;
			at += strip.count;
		}
	}
	engine->rows_checked += rows;
	return true;
}

/* No hole where the run writes a row. */
static bool run_is_whole(const struct group_engine *engine, const struct run *run)
{
	const uint32_t end = run->first + run->count;
	uint32_t       g, at;

	for (g = 0; g < engine->count; g++) {
		if (engine->group[g].kind == GROUP_STATE)
			continue;
		for (at = run->first; at < end;) {
			const struct strip strip = strip_at(engine, run, g, at);

			if (strip.block == 0)
				return false;
			at += strip.count;
		}
	}
	return true;
}

static void write_run(struct group_engine *engine, const struct run *run)
{
	const uint32_t end = run->first + run->count;
	uint32_t       g, at;

	for (g = 0; g < engine->count; g++) {
		if (engine->group[g].kind == GROUP_STATE)
			continue;
		for (at = run->first; at < end;) {
			const struct strip strip = strip_at(engine, run, g, at);

			strip_write(&strip);
			at += strip.count;
		}
	}
}

/* The checkpoints before and behind the pass, where the run has them. */
static void run_checkpoints(struct group_engine *engine, const struct run *run)
{
	const struct engine_pass *const pass = run->pass;
	const bool                      checks = run->first < pass->begin;
	const uint32_t                  end = checks ? pass->begin : pass->end;
	const uint64_t                  state = run->states[run->count - 1];
	uint32_t                        g;

	if (run->first + run->count != end)
		return;
	for (g = 0; g < engine->count; g++) {
		const struct engine_row row = engine_row_at(engine, pass, g, end - 1, state);

		if (engine->group[g].kind != GROUP_STATE)
			continue;
		if (checks) {
			engine_check_row(engine, pass, &row);
			engine->checkpoints_checked++;
		} else {
			engine_write_row(engine, pass, &row);
		}
	}
}

static void by_runs(struct group_engine *engine, const struct run *run)
{
	const bool checks = run->first < run->pass->begin;
	uint32_t   i;

	if (checks ? run_is_right(engine, run) : run_is_whole(engine, run)) {
		if (!checks)
			write_run(engine, run);
		run_checkpoints(engine, run);
		return;
	}
	for (i = 0; i < run->count; i++) {
		if (checks)
			engine_check_token(engine, run->pass, run->first + i, run->states[i]);
		else
			engine_write_token(engine, run->pass, run->first + i, run->states[i]);
	}
}

bool group_engine_forward(struct group_engine *engine, const struct engine_pass *pass)
{
	const uint64_t wrong = engine->wrong;
	struct run     run = { .pass = pass };
	uint64_t       state = 0;
	uint32_t       i;

	KVS_ASSERT_CMP(pass->begin, <=, pass->end);
	for (; run.first < pass->end; run.first += run.count) {
		const uint32_t end = run.first < pass->begin ? pass->begin : pass->end;

		run.count = end - run.first < RUN_TOKENS ? end - run.first : RUN_TOKENS;
		for (i = 0; i < run.count; i++) {
			state = rows_next(state, pass->tokens[run.first + i]);
			run.states[i] = state;
		}
		by_runs(engine, &run);
	}
	return engine->wrong == wrong;
}
