/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_marks.h. */
#include "app/replay_marks.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "conf/items.h"

static int refuse(const char *item, struct kvs_error *err, const char *rule)
{
	return err_set(err, KVS_E_INVALID, "watermarks: \"%s\": %s", item, rule);
}

struct observation {
	const char *name;
	int (*read)(const char *text, uint64_t *ret_value);
	uint64_t    max;
};

static const struct observation observations[] = { { "jobs", units_count, UINT32_MAX },
						   { "bytes", units_size, UINT64_MAX },
						   { "age", units_duration, UINT64_MAX } };

#define OBSERVATIONS ARRAY_COUNT(observations)

struct reading {
	uint64_t high[OBSERVATIONS], low[OBSERVATIONS];
};

/* "HIGH/LOW" of one observation; value is cut in place. */
static int read_pair(struct reading *reading, size_t i, const char *item, char *value,
		     struct kvs_error *err)
{
	char *const slash = strchr(value, '/');
	uint64_t    high, low;

	if (reading->high[i] > 0)
		return refuse(item, err, "is given twice");
	if (slash)
		*slash = '\0';
	if (!slash || observations[i].read(value, &high) < 0 ||
	    observations[i].read(slash + 1, &low) < 0 || high > observations[i].max)
		return refuse(item, err, "use jobs=48/32, bytes=1GiB/512MiB or age=2s/1s");
	if (high == 0 || low >= high) {
		return refuse(item, err,
			      "use HIGH/LOW, a high mark above 0 and a low one below it");
	}
	reading->high[i] = high;
	reading->low[i] = low;
	return 0;
}

static int add_item(void *ctx, const char *item, struct kvs_error *err)
{
	char        copy[ITEMS_BYTES];
	char       *value = copy;
	const char *name;
	size_t      i;

	snprintf(copy, sizeof(copy), "%s", item);
	name = strsep(&value, "=");
	for (i = 0; i < OBSERVATIONS; i++) {
		if (value && strcmp(name, observations[i].name) == 0)
			return read_pair(ctx, i, item, value, err);
	}
	return refuse(item, err, "use jobs=48/32, bytes=1GiB/512MiB or age=2s/1s");
}

int replay_marks_parse(const char *text, struct watermarks *ret_marks, struct kvs_error *err)
{
	struct reading reading = { { 0 }, { 0 } };
	int            rc = 0;

	if (strcmp(text, "none") != 0)
		rc = items_each("watermarks", text, add_item, &reading, err);
	if (rc < 0)
		return rc;
	*ret_marks = (struct watermarks){ .jobs_high = (uint32_t)reading.high[0],
					  .jobs_low = (uint32_t)reading.low[0],
					  .bytes_high = reading.high[1],
					  .bytes_low = reading.low[1],
					  .age_high_ns = reading.high[2],
					  .age_low_ns = reading.low[2] };
	return 0;
}
