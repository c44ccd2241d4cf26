/* SPDX-License-Identifier: Apache-2.0 */
/* The stores that the suite runs on: one row here, and its name in meson.build. */
#include <string.h>

#include "base/err.h"
#include "stand.h"

/* All hold 16 blocks of 16 KiB, but the shelf, which holds 64. */
const struct subject subjects[] = {
	{ "mem", "mem:256KiB", NULL, true },
	{ "nil", "nil:", NULL, false },
	{ "nil-miss", "nil:?hit=0", NULL, false },
	{ "strata", "strata:@/store?capacity=264KiB", NULL, true },
	{ "fault", "fault:@/plan.json", "{\"inner\": \"mem:256KiB\", \"faults\": []}", true },
	{ "shelf", "plugin:" SHELF_PATH, NULL, true },
	{ NULL, NULL, NULL, false },
};

const struct subject *subject_find(const char *name)
{
	const struct subject *subject = subjects;

	while (subject->name && strcmp(subject->name, name) != 0)
		subject++;
	return subject->name ? subject : NULL;
}
