/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata store inspect`: what a strata file holds, without reading a payload. */
#include "app/cmd_store_view.h"

struct settings {
	bool json;
};

static const struct conf_option options[] = {
	{ OPTION(settings, json), .type = CONF_BOOL,
	  .help = "print one JSON object, with every segment" },
};

static int inspect(const char *path, const struct settings *set, struct kvs_error *err)
{
	struct store_view view;
	int               rc = store_view_open(&view, path, err);

	if (rc < 0)
		return rc;
	if (set->json)
		rc = store_view_print_json(&view, err);
	else
		store_view_print(&view, path);
	store_view_close(&view);
	return rc < 0 ? rc : app_flush(err);
}

static int run(int argc, char **argv)
{
	struct settings  set = { 0 };
	struct kvs_error err;
	const char      *path;
	struct conf     *conf;
	int status = cmd_store_configure(&store_inspect_command, argc, argv, &set, &path, &conf);

	if (status != APP_DONE)
		return status;
	if (inspect(path, &set, &err) < 0)
		status = app_fail(store_inspect_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command store_inspect_command = {
	.name = "store inspect",
	.usage = "PATH [FLAGS]",
	.summary = "tells what a store holds, what it has written, how its segments age",
	.text = "Tells the sizes of the store on PATH, what of it is live, dead and free, which namespaces\n"
		"have how much, what was put and what the drive had to write for it, and what an open\n"
		"found: segments that were being written when a process ended, torn records, damage.\n"
		"\n"
		"Segments are listed by age, the oldest first, with the part of each that is live; more than\n"
		"32 in ten groups.  Room is made by cleaning the oldest: of what is live in it, the part that\n"
		"is in use is written again, and the rest is gone.\n"
		"\n"
		"It reads heads and summaries, no payload, and writes nothing.  A process that uses the\n"
		"store is not disturbed; what it writes just then may be missing.\n",
	.examples = "  kvstrata store inspect /var/tmp/kv\n"
		    "  kvstrata store inspect /dev/nvme1n1 --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct settings),
	.run = run,
};
