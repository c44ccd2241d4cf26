/* SPDX-License-Identifier: Apache-2.0 */
/* The stores that the suite runs on: one row here, and its name in meson.build. */
#include <string.h>

#include "base/err.h"
#include "stand.h"

/* Nothing here is told by time; lookups are from memory for half a lease. */
#define LONG_TIMES "&timeout=10m&connect_timeout=10m&reap_timeout=1m&lease=60m&metrics=off"

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
	/* More gets than any other promise makes. */
	{ .name = "fault-late", .spec = "fault:@/plan.json", .keeps = true, .late = 4001,
	  .plan = "{\"inner\": \"mem:256KiB\", \"faults\": [{\"kind\": \"late_write\", \"op\": \"get\", "
		  "\"after\": 4000, \"count\": 1, \"ms\": 20}]}" },
	{ .name = "shelf", .spec = "plugin:" SHELF_PATH, .keeps = true },
	{ .name = "mooncake-library", .keeps = true, .repeats = true, .cave = true,
	  .spec = "mooncake:#?way=library&library=" MOONCAKE_STUB_PATH LONG_TIMES },
	{ .name = "mooncake-agent", .keeps = true, .repeats = true, .troupe = true,
	  .spec = "mooncake:#?agent=" AGENT_PATH LONG_TIMES },
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
