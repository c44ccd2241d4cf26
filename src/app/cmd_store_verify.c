/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata store verify`: reads all there is and compares every checksum.
 *
 * Damage is printed as it is found, so that nothing has to be kept, and the JSON is written the same
 * way: the list first, the figures behind it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "app/cmd_store.h"
#include "app/key_text.h"
#include "app/progress.h"
#include "base/units.h"

struct settings {
	bool json;
};

static const struct conf_option options[] = {
	{ OPTION(settings, json), .type = CONF_BOOL, .help = "print one JSON object" },
};

struct verify {
	const struct settings *set;
	struct strata_report   report;
	struct progress        progress;
	uint64_t               objects;    /* seen, damaged ones too */
	uint64_t               bytes;      /* of payload */
	uint64_t               damage;
	uint64_t               structures; /* of the damage */
	uint64_t               elsewhere;  /* damage that only the open met: nobody can say where */
	double                 seconds;
	int                    rc;         /* of the output */
	bool                   in_use;
	struct os_lock_holder  holder;
};

/* --- as it goes ------------------------------------------------------------------------------- */

static void print_damage(const struct strata_finding *finding)
{
	char key[KEY_TEXT_BYTES];

	printf("damage ");
	if (finding->segment != STRATA_NO_SEGMENT)
		printf("in segment %" PRIu32 " ", finding->segment);
	printf("at %" PRIu64 ": %s\n", finding->offset, finding->damage);
	if (finding->key)
		printf("  %s, %" PRIu64 " bytes\n", key_text(finding->key, key), finding->bytes);
}

/* What is wrong is one of our own sentences: nothing in it needs quoting. */
static void print_damage_json(const struct strata_finding *finding, bool first)
{
	char key[KEY_TEXT_BYTES];

	printf("%s\n    {\"segment\": ", first ? "" : ",");
	if (finding->segment == STRATA_NO_SEGMENT)
		printf("null");
	else
		printf("%" PRIu32, finding->segment);
	printf(", \"offset\": %" PRIu64 ", \"key\": ", finding->offset);
	if (finding->key)
		printf("\"%s\"", key_text(finding->key, key));
	else
		printf("null");
	printf(", \"bytes\": %" PRIu64 ", \"what\": \"%s\"}", finding->bytes, finding->damage);
}

static void tell(struct verify *verify, const struct strata_finding *finding)
{
	progress_clear(&verify->progress);
	if (verify->set->json)
		print_damage_json(finding, verify->damage == 0);
	else
		print_damage(finding);
	verify->rc = app_printed();
	verify->damage++;
	verify->structures += !finding->key;
}

static void tick(struct verify *verify)
{
	const uint64_t live_bytes = verify->report.live_bytes;

	if (!verify->progress.shown)
		return;
	progress_update(&verify->progress,
			(double)verify->bytes / (double)(live_bytes ? live_bytes : 1),
			verify->bytes >> 20, os_now_ns());
}

/* A list that nobody reads any more need not be made. */
static bool see(void *ctx, const struct strata_finding *finding)
{
	struct verify *const verify = ctx;

	if (finding->key) {
		verify->objects++;
		verify->bytes += finding->bytes;
	}
	if (finding->damage)
		tell(verify, finding);
	tick(verify);
	return !os_interrupted() && verify->rc == 0;
}

/* --- the report ------------------------------------------------------------------------------- */

static double rate(const struct verify *verify)
{
	return verify->seconds > 0 ? (double)verify->bytes / verify->seconds : 0;
}

static void print_recovery(const struct verify *verify)
{
	const struct strata_report *const report = &verify->report;
	char                              holder[CMD_STORE_HOLDER_BYTES];

	if (verify->in_use) {
		printf("in use by %s: what it writes meanwhile was not looked at\n",
		       cmd_store_holder(&verify->holder, holder));
	}
	if (verify->elsewhere > 0) {
		printf("damage: %" PRIu64 " structures or pieces that could not be read at open\n",
		       verify->elsewhere);
	}
	if (report->segments_unsealed > 0) {
		printf("segments without a summary: %" PRIu32 ", as %s\n",
		       report->segments_unsealed,
		       verify->in_use ? "they are written" : "after a crash");
		printf("records in them that are no data: %" PRIu64 " torn, %" PRIu64
		       " stale, %" PRIu64 " foreign\n",
		       report->torn_records, report->stale_records, report->foreign_records);
	}
}

static void print(const struct verify *verify, const char *path)
{
	char objects[UNITS_TEXT_BYTES], size[UNITS_TEXT_BYTES], speed[UNITS_TEXT_BYTES];
	char damage[UNITS_TEXT_BYTES], shown[CMD_STORE_PATH_BYTES];

	print_recovery(verify);
	printf("%s%s: %s objects, %s of payload, read in %.2f s at %s/s; damage: %s\n",
	       os_interrupted() ? "interrupted; so far " : "", cmd_store_path(path, shown),
	       units_format_count(verify->objects, objects), units_format_size(verify->bytes, size),
	       verify->seconds, units_format_size((uint64_t)rate(verify), speed),
	       verify->damage + verify->elsewhere
		       ? units_format_count(verify->damage + verify->elsewhere, damage)
		       : "none");
}

static void print_json(const struct verify *verify)
{
	const struct strata_report *const report = &verify->report;

	printf("%s],\n  \"damage_count\": %" PRIu64 ",\n  \"objects\": %" PRIu64
	       ",\n  \"payload_bytes\": %" PRIu64
	       ",\n  \"seconds\": %.6f,\n  \"interrupted\": %s,\n  \"in_use\": %s,\n",
	       verify->damage ? "\n  " : "", verify->damage + verify->elsewhere, verify->objects,
	       verify->bytes, verify->seconds,
	       os_interrupted() ? "true" : "false", verify->in_use ? "true" : "false");
	printf("  \"recovery\": {\"unsealed_segments\": %" PRIu32 ", \"torn_records\": %" PRIu64
	       ", \"stale_records\": %" PRIu64 ", \"foreign_records\": %" PRIu64
	       ", \"damaged_structures\": %" PRIu64 "}\n}\n",
	       report->segments_unsealed, report->torn_records, report->stale_records,
	       report->foreign_records, report->damaged_structures);
}

/* --- the command ------------------------------------------------------------------------------ */

static int walk(struct verify *verify, struct kvs_store *store)
{
	const uint64_t begin_ns = os_now_ns();
	int            rc;

	strata_inspect(store, &verify->report);
	if (verify->set->json)
		printf("{\n  \"damage\": [");
	progress_start(&verify->progress, "verifying", "MiB", true, begin_ns);
	rc = strata_walk(store, true, see, verify);
	progress_finish(&verify->progress);
	verify->seconds = (double)(os_now_ns() - begin_ns) / 1e9;
	/* Beside a process that writes, a page may have been read while it was written. */
	if (!verify->in_use && !os_interrupted() &&
	    verify->report.damaged_structures > verify->structures)
		verify->elsewhere = verify->report.damaged_structures - verify->structures;
	return rc;
}

static int judge(const struct verify *verify, const char *path, struct kvs_error *err)
{
	const uint64_t damage = verify->damage + verify->elsewhere;

	if (damage > 0) {
		return err_set(err, KVS_E_PROTO, "\"%.128s\" is damaged: %" PRIu64 " found", path,
			       damage);
	}
	if (os_interrupted())
		return err_set(err, KVS_E_CLOSED, "interrupted; the rest was not read");
	return 0;
}

static int verify_store(const char *path, const struct settings *set, struct kvs_error *err)
{
	struct verify     verify = { .set = set };
	struct kvs_store *store;
	int               rc;

	os_interrupt_catch();
	verify.in_use = cmd_store_in_use(path, &verify.holder);
	rc = cmd_store_look(path, &store, err);
	if (rc < 0)
		return rc;
	rc = walk(&verify, store);
	(void)strata_close(store);
	if (rc < 0)
		return err_set(err, rc, "%s", kvs_strerror(rc));
	if (set->json)
		print_json(&verify);
	else
		print(&verify, path);
	rc = verify.rc < 0 ? app_refuse_output(verify.rc, err) : app_flush(err);
	return rc < 0 ? rc : judge(&verify, path, err);
}

static int run(int argc, char **argv)
{
	struct settings  set = { 0 };
	struct kvs_error err;
	const char      *path;
	struct conf     *conf;
	int status = cmd_store_configure(&store_verify_command, argc, argv, &set, &path, &conf);

	if (status != APP_DONE)
		return status;
	if (verify_store(path, &set, &err) < 0)
		status = app_fail(store_verify_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command store_verify_command = {
	.name = "store verify",
	.usage = "PATH [FLAGS]",
	.summary = "reads everything and compares every checksum",
	.text = "Reads all payload and all structures of the store on PATH and compares their checksums.\n"
		"Each piece of damage is printed with its segment, its offset in the file, its key and what\n"
		"is wrong; then one line with what was read.  Any damage makes it exit with 1.\n"
		"\n"
		"A segment that was being written when a process ended has no summary, and the last records\n"
		"in it may be torn: they are told, and are no damage.  They are no data either: no get ever\n"
		"returns a byte whose checksum is wrong.\n"
		"\n"
		"Nothing is written, and a process that uses the store is not disturbed.  When the store is\n"
		"opened for writing the next time, damaged structures are made anew from what is whole, and\n"
		"a damaged object is given up when it is asked for.\n"
		"\n"
		"Ctrl-C ends it with what was seen so far, and exit status 1; a second one ends it at once.\n",
	.examples = "  kvstrata store verify /var/tmp/kv\n"
		    "  kvstrata store verify /dev/nvme1n1 --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct settings),
	.run = run,
};
