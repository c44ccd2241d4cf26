/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenes of matching, drawn.
 *
 * A scene draws what each group has on Device and on Host ("-xx": positions 1 and 2), and what a restore
 * at the joint boundary uses behind the held pages: x a block, - a hole, held or not.
 */
#ifndef LIB_SCENE_H
#define LIB_SCENE_H

#include "prompt.h"

#define SCENE_GROUPS 3u

struct scene {
	uint32_t page_tokens;
	uint32_t page_count;
	uint32_t held_pages;
	uint32_t pages;        /* the answer */
	uint32_t closed_pages; /* the other half of it */
	struct {
		enum group_kind kind;
		uint32_t        block_tokens;
		uint32_t        window_tokens;
		const char     *device; /* NULL: nothing */
		const char     *host;
		const char     *used; /* NULL ends the groups */
	} group[SCENE_GROUPS];
};

#define FULL(q)      GROUP_FULL, q, 0
#define WINDOW(q, w) GROUP_WINDOW, q, w
#define STATE(q)     GROUP_STATE, q, 0

/* The scene's prompt, with all that is drawn published. */
void scene_open(const struct scene *scene, struct prompt *prompt);

/* Match what the strata hold that count, and compare with the scene's answers (asserted by cmocka). */
void scene_play_in(const struct scene *scene, uint32_t held_in);

/* The same with both strata; a scene of one use is written where it is played. */
void scene_play(struct scene scene);

#endif
