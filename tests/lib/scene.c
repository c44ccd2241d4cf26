/* SPDX-License-Identifier: Apache-2.0 */
/* See scene.h. */
#include "scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void scene_open(const struct scene *scene, struct prompt *prompt)
{
	static const char *const names[] = { "a", "b", "c" };
	struct group_spec        specs[SCENE_GROUPS] = { 0 };
	uint32_t                 count, g;

	for (count = 0; count < SCENE_GROUPS && scene->group[count].used; count++) {
		specs[count] = (struct group_spec){ .name = names[count],
						    .kind = scene->group[count].kind,
						    .block_tokens = scene->group[count].block_tokens,
						    .window_tokens = scene->group[count].window_tokens,
						    .packing = 1 };
	}
	prompt_open(prompt, specs, count, scene->page_tokens, scene->page_count);
	for (g = 0; g < count; g++) {
		if (scene->group[g].device)
			prompt_hold(prompt, STRATUM_DEVICE, g, scene->group[g].device);
		if (scene->group[g].host)
			prompt_hold(prompt, STRATUM_HOST, g, scene->group[g].host);
	}
}

void scene_play_in(const struct scene *scene, uint32_t held_in)
{
	struct prompt prompt;
	struct view   view;
	struct joint  joint;
	char          used[PROMPT_PAGES_MAX * COLUMNS_MAX + 1];
	uint32_t      g;

	scene_open(scene, &prompt);
	view = prompt_view(&prompt, held_in, scene->held_pages);
	joint = match_joint(&view, scene->page_count);
	assert_int_equal(joint.pages, scene->pages);
	assert_int_equal(joint.closed_pages, scene->closed_pages);
	assert_true(match_legal(&view, (uint64_t)joint.pages * scene->page_tokens));
	for (g = 0; g < prompt.pages.groups.count; g++) {
		prompt_draw(&view, g, joint.pages, used);
		assert_string_equal(used, scene->group[g].used);
	}
	prompt_close(&prompt);
}

void scene_play(struct scene scene)
{
	scene_play_in(&scene, HELD_DEVICE | HELD_HOST);
}
