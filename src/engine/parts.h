/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of the engine over groups: groups.c walks a pass in runs of tokens,
 * groups_rows.c looks at one row.
 */
#ifndef ENGINE_PARTS_H
#define ENGINE_PARTS_H

#include "engine/groups.h"

/* A row of a group: where it lies, and the state that says what it must be. */
struct engine_row {
	uint32_t group;
	uint32_t position;
	uint32_t block; /* 0: a hole */
	uint32_t index; /* in the block */
	uint64_t state;
};

/* The row of a token in a group, or the checkpoint behind it. */
struct engine_row engine_row_at(const struct group_engine *engine, const struct engine_pass *pass,
				uint32_t g, uint32_t position, uint64_t state);

/* Count what is wrong, and remember the first of it. */
void engine_check_row(struct group_engine *engine, const struct engine_pass *pass,
		      const struct engine_row *row);
void engine_write_row(struct group_engine *engine, const struct engine_pass *pass,
		      const struct engine_row *row);

/* All groups' rows of a token, in their order; counts those that it checks. */
void engine_check_token(struct group_engine *engine, const struct engine_pass *pass,
			uint32_t position, uint64_t state);
void engine_write_token(struct group_engine *engine, const struct engine_pass *pass,
			uint32_t position, uint64_t state);

#endif
