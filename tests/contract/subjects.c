/* SPDX-License-Identifier: Apache-2.0 */
/* The stores that the suite runs on: one row here, and its name in meson.build. */
#include <string.h>

#include "base/err.h"
#include "stand.h"

/* All hold 16 blocks of 16 KiB, but the shelf, which holds 64, and Redis. */
const struct subject subjects[] = {
	{ "mem", "mem:256KiB", NULL, true, false },
	{ "nil", "nil:", NULL, false, false },
	{ "nil-miss", "nil:?hit=0", NULL, false, false },
	{ "strata", "strata:@/store?capacity=264KiB", NULL, true, false },
	{ "fault", "fault:@/plan.json", "{\"inner\": \"mem:256KiB\", \"faults\": []}", true, false },
	{ "shelf", "plugin:" SHELF_PATH, NULL, true, false },
	{ "resp", "resp:unix:@/socket", NULL, true, true },
	{ NULL, NULL, NULL, false, false },
};

const struct subject *subject_find(const char *name)
{
	const struct subject *subject = subjects;

	while (subject->name && strcmp(subject->name, name) != 0)
		subject++;
	return subject->name ? subject : NULL;
}
