/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata store format`: a new, empty store, and what it would be written over. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/cmd_store.h"
#include "base/digest.h"
#include "base/units.h"
#include "strata/format.h"

struct settings {
	uint64_t capacity;
	uint64_t segment;
	uint64_t block_bytes;
	bool     force;
	bool     sparse;
	bool     json;
};

static const struct conf_option options[] = {
	{ OPTION(settings, capacity), .type = CONF_SIZE, .metavar = "SIZE", .min = 1,
	  .help = "what the store may take, metadata included; of a device, all there is" },
	{ OPTION(settings, segment), .type = CONF_SIZE, .metavar = "SIZE", .min = 1,
	  .help = "what is sealed and cleaned at once; without it, 32 MiB or what suits" },
	{ OPTION(settings, block_bytes), .type = CONF_SIZE, .metavar = "SIZE", .fallback = "64KiB",
	  .min = 4096, .max = 64 << 20, .multiple = 4096,
	  .help = "the largest block that will come: a segment must hold one" },
	{ OPTION(settings, force), .type = CONF_BOOL,
	  .help = "overwrite what is there; a store in use is refused all the same" },
	{ OPTION(settings, sparse), .type = CONF_BOOL,
	  .help = "do not reserve the disk space of a file now, but as it is used" },
	{ OPTION(settings, json), .type = CONF_BOOL, .help = "print one JSON object" },
};

/* --- what is there ---------------------------------------------------------------------------- */

static int read_first_superblock(const char *path, struct superblock *ret_superblock)
{
	const int fd = os_file_open(path, OS_NO_WAIT);
	const int rc = fd < 0 ? fd : os_file_read(fd, ret_superblock, sizeof(*ret_superblock), 0);

	os_close(fd);
	return rc;
}

static void describe_closed(const char *path, char *ret_text, size_t bytes)
{
	struct superblock superblock;
	struct geometry   geometry;

	snprintf(ret_text, bytes, "something that is no strata store");
	if (read_first_superblock(path, &superblock) < 0)
		return;
	switch (superblock_judge(&superblock, &geometry)) {
	case SUPERBLOCK_VALID:
		snprintf(ret_text, bytes, "a strata store that cannot be opened");
		break;
	case SUPERBLOCK_VERSION:
		snprintf(ret_text, bytes, "a strata store of version %" PRIu32, superblock.version);
		break;
	case SUPERBLOCK_DAMAGED:
		snprintf(ret_text, bytes, "a strata store with a damaged superblock");
		break;
	case SUPERBLOCK_FOREIGN:
		break;
	}
}

static void describe_content(const char *path, char *ret_text, size_t bytes)
{
	struct strata_report report;
	struct kvs_store    *store;
	char                 objects[UNITS_TEXT_BYTES];

	if (cmd_store_look(path, &store, NULL) < 0) {
		describe_closed(path, ret_text, bytes);
		return;
	}
	strata_inspect(store, &report);
	(void)strata_close(store);
	snprintf(ret_text, bytes, "a strata store of version %" PRIu32 " with %s objects",
		 report.version, units_format_count(report.object_count, objects));
}

/* --- the report ------------------------------------------------------------------------------- */

/* At least: each with a page of headers of its own.  One segment is kept free for cleaning. */
static uint64_t objects_that_fit(const struct strata_report *report, uint64_t block_bytes)
{
	const uint64_t room = report->segment_bytes / STRATA_PAGE - STRATA_RECORD_PAGE;
	const uint64_t pages = block_bytes / STRATA_PAGE + 1;
	uint64_t       count = room / pages;

	if (count > STRATA_RECORDS_MAX)
		count = STRATA_RECORDS_MAX;
	while (count * pages + summary_pages((uint32_t)count) > room)
		count--;
	return count * (report->segment_count - 1);
}

static void print(const char *path, const struct settings *set, const struct strata_report *report,
		  bool reserved)
{
	char capacity[UNITS_TEXT_BYTES], segment[UNITS_TEXT_BYTES], count[UNITS_TEXT_BYTES];
	char objects[UNITS_TEXT_BYTES], block[UNITS_TEXT_BYTES], shown[CMD_STORE_PATH_BYTES];

	printf("%s: a new, empty strata store of %s\n", cmd_store_path(path, shown),
	       units_format_size(report->capacity_bytes, capacity));
	printf("  segments   %s of %s\n", units_format_count(report->segment_count, count),
	       units_format_size(report->segment_bytes, segment));
	printf("  room       at least %s objects of %s\n",
	       units_format_count(objects_that_fit(report, set->block_bytes), objects),
	       units_format_size(set->block_bytes, block));
	printf("  disk       %s\n",
	       reserved ? "all of it is reserved" : "space is taken as it is used");
}

static void print_json(const struct settings *set, const struct strata_report *report,
		       bool reserved)
{
	char id[2 * sizeof(report->id) + 1];

	hex_encode(report->id, sizeof(report->id), id);
	printf("{\n  \"version\": %" PRIu32 ",\n  \"id\": \"%s\",\n  \"capacity_bytes\": %" PRIu64
	       ",\n  \"segment_bytes\": %" PRIu64 ",\n  \"segment_count\": %" PRIu32
	       ",\n  \"block_bytes\": %" PRIu64 ",\n  \"objects_that_fit\": %" PRIu64
	       ",\n  \"reserved\": %s\n}\n",
	       report->version, id, report->capacity_bytes, report->segment_bytes,
	       report->segment_count, set->block_bytes, objects_that_fit(report, set->block_bytes),
	       reserved ? "true" : "false");
}

/* --- the command ------------------------------------------------------------------------------ */

static bool is_device(const char *path)
{
	const int  fd = os_file_open(path, OS_NO_WAIT);
	const bool is = fd >= 0 && os_file_is_device(fd);

	os_close(fd);
	return is;
}

/* Sizes are flags here: "store.capacity: ..." is "--capacity: ...". */
static void name_flag(struct kvs_error *err)
{
	static const char *const fields[] = { "store.capacity:", "store.segment:" };
	const size_t             skip = strlen("store."), shown = strlen("--");
	size_t                   i;

	for (i = 0; i < ARRAY_COUNT(fields); i++) {
		if (strncmp(err->message, fields[i], strlen(fields[i])) != 0)
			continue;
		memmove(err->message + shown, err->message + skip, strlen(err->message + skip) + 1);
		memcpy(err->message, "--", shown);
	}
}

static int format(const char *path, const struct settings *set, struct kvs_error *err)
{
	const struct strata_settings wanted = { .path = path,
						.capacity_bytes = set->capacity,
						.segment_bytes = set->segment,
						.block_bytes = set->block_bytes,
						.evict_policy = "lru",
						.only_empty = !set->force,
						.preallocate = !set->sparse };
	const bool there = os_file_same(path, path);
	char       content[128];
	int        rc = strata_format(&wanted, err);

	if (rc == -EEXIST) {
		describe_content(path, content, sizeof(content));
		return err_set(err, rc, "\"%.100s\" holds %s; --force overwrites it", path,
			       content);
	}
	/* What a disk that is too small leaves behind is this command's own. */
	if ((rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG || rc == -EOPNOTSUPP) && !there)
		(void)os_file_remove(path);
	name_flag(err);
	return rc;
}

static int report_new(const char *path, const struct settings *set, struct kvs_error *err)
{
	const bool           reserved = !set->sparse || is_device(path);
	struct strata_report report;
	struct kvs_store    *store;
	int                  rc = cmd_store_look(path, &store, err);

	if (rc < 0)
		return rc;
	strata_inspect(store, &report);
	(void)strata_close(store);
	if (set->json)
		print_json(set, &report, reserved);
	else
		print(path, set, &report, reserved);
	return app_flush(err);
}

static int run(int argc, char **argv)
{
	struct settings  set = { 0 };
	struct kvs_error err = { 0 };
	const char      *path;
	struct conf     *conf;
	int rc, status = cmd_store_configure(&store_format_command, argc, argv, &set, &path, &conf);

	if (status != APP_DONE)
		return status;
	if (set.capacity == 0 && !is_device(path)) {
		rc = err_set(&err, KVS_E_INVALID,
			     "--capacity: is missing; how large may the file become?");
	} else {
		rc = format(path, &set, &err);
	}
	if (rc == 0)
		rc = report_new(path, &set, &err);
	if (rc < 0)
		status = app_fail(store_format_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command store_format_command = {
	.name = "store format",
	.usage = "PATH --capacity SIZE [FLAGS]",
	.summary = "makes a new, empty store on a file or block device",
	.text = "Makes a new, empty store on PATH, a file or a block device.  A store also comes to be when\n"
		"it is first opened with a capacity; this command says beforehand whether it can be, and\n"
		"gives it all its disk space, so that the disk cannot become too small for it later.\n"
		"\n"
		"A file that is not empty and a device that does not begin with zeroes are refused, with\n"
		"what they hold, unless --force is given.  A store that is open in a process, and a device\n"
		"that is mounted, are refused always.\n",
	.examples = "  kvstrata store format /var/tmp/kv --capacity 8GiB\n"
		    "  kvstrata store format /var/tmp/kv --capacity 1TiB --sparse\n"
		    "  kvstrata store format /dev/nvme1n1 --block-bytes 4MiB\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct settings),
	.run = run,
};
