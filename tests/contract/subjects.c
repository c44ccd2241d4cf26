/* SPDX-License-Identifier: Apache-2.0 */
/* The stores that the suite runs on: one row here, and its name in meson.build. */
#include <string.h>

#include "base/err.h"
#include "stand.h"

/* What keeps a fixed number holds 16 blocks of 16 KiB or a few more; the shelf 64. */
const struct subject subjects[] = {
	{ .name = "mem", .spec = "mem:256KiB", .keeps = true },
	{ .name = "nil", .spec = "nil:" },
	{ .name = "nil-miss", .spec = "nil:?hit=0" },
	{ .name = "strata", .spec = "strata:@/store?capacity=640KiB", .keeps = true },
	{ .name = "strata-lanes", .spec = "strata:@/store?capacity=640KiB", .keeps = true,
	  .lanes = true },
	{ .name = "strata-plain", .spec = "strata:@/store?capacity=640KiB&io=plain", .keeps = true,
	  .lanes = true },
	{ .name = "fault", .spec = "fault:@/plan.json", .keeps = true,
	  .plan = "{\"inner\": \"mem:256KiB\", \"faults\": []}" },
	{ .name = "shelf", .spec = "plugin:" SHELF_PATH, .keeps = true },
	{ .name = "resp", .spec = "resp:unix:@/socket", .keeps = true, .redis = true },
	{ .name = NULL },
};

const struct subject *subject_find(const char *name)
{
	const struct subject *subject = subjects;

	while (subject->name && strcmp(subject->name, name) != 0)
		subject++;
	return subject->name ? subject : NULL;
}
