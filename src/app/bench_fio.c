/* SPDX-License-Identifier: Apache-2.0 */
/* fio's JSON is found behind what it may say before; its clock of whole milliseconds is what it has. */
#include "app/bench_fio.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "os/os.h"

/* A report of one group is a quarter of it. */
#define REPORT_BYTES 65536u
#define ARGUMENTS_MAX 24u
#define ARGUMENT_BYTES 128u

/* How long Ctrl-C may go unseen. */
#define LOOK_NS UINT64_C(100000000)

struct arguments {
	char  text[ARGUMENTS_MAX][ARGUMENT_BYTES];
	char  filename[4200];
	char *argv[ARGUMENTS_MAX + 2];
	int   count;
};

static void add(struct arguments *arguments, const char *name, uint64_t value)
{
	const int i = arguments->count++;

	KVS_ASSERT_CMP(i, <, ARGUMENTS_MAX);
	snprintf(arguments->text[i], ARGUMENT_BYTES, "--%s=%" PRIu64, name, value);
	arguments->argv[i] = arguments->text[i];
}

static void add_word(struct arguments *arguments, const char *word)
{
	const int i = arguments->count++;

	KVS_ASSERT_CMP(i, <, ARGUMENTS_MAX);
	snprintf(arguments->text[i], ARGUMENT_BYTES, "%s", word);
	arguments->argv[i] = arguments->text[i];
}

/* A colon would end the name for fio. */
static void add_file(struct arguments *arguments, const char *path)
{
	size_t length = (size_t)snprintf(arguments->filename, sizeof(arguments->filename),
					 "--filename=");

	for (; *path && length < sizeof(arguments->filename) - 2; path++) {
		if (*path == ':' || *path == '\\')
			arguments->filename[length++] = '\\';
		arguments->filename[length++] = *path;
	}
	arguments->filename[length] = '\0';
	arguments->argv[arguments->count++] = arguments->filename;
}

/* What it says until it ends, cut off where there is no room. */
static int read_all(struct os_process *process, char *ret_text, size_t room,
		    struct bench_watch *watch, struct kvs_error *err)
{
	size_t used = 0;
	int    rc = 0;

	while (rc == 0 && used < room - 1) {
		ssize_t done;

		rc = watch ? bench_watch_tick(watch, 0, err) : 0;
		if (rc < 0 || !os_wait_readable(&process->output, 1, LOOK_NS))
			continue;
		done = os_process_read(process, ret_text + used, room - 1 - used);
		if (done <= 0)
			break;
		used += (size_t)done;
	}
	ret_text[used] = '\0';
	return rc;
}

static int run(char *const argv[], char *ret_text, size_t room, struct bench_watch *watch,
	       struct kvs_error *err)
{
	struct os_process process;
	int               rc = os_process_start(argv, &process);

	if (rc < 0)
		return err_set(err, rc, "fio: cannot be run: %s", kvs_strerror(rc));
	rc = read_all(&process, ret_text, room, watch, err);
	if (rc < 0 || strlen(ret_text) == room - 1)
		os_process_kill(&process);
	else if (os_process_wait(&process) != 0)
		rc = err_set(err, -EIO, "fio: failed: %.160s", text_printable(ret_text));
	/* Ctrl-C reaches it, too: then it ends early, as a failure or not. */
	return watch && os_interrupted() ? bench_watch_tick(watch, 0, err) : rc;
}

bool bench_fio_find(char *ret_version, size_t room)
{
	char *argv[] = { "fio", "--version", NULL };

	if (run(argv, ret_version, room, NULL, NULL) < 0)
		return false;
	ret_version[strcspn(ret_version, "\n")] = '\0';
	return true;
}

static void make_arguments(struct arguments *arguments, const struct bench_fio_load *load)
{
	*arguments = (struct arguments){ .count = 0 };
	add_word(arguments, "fio");
	add_word(arguments, "--name=ceiling");
	add_word(arguments, load->is_put ? "--rw=write" : "--rw=read");
	if (!load->is_put)
		add_word(arguments, "--readonly");
	add_word(arguments, "--ioengine=io_uring");
	add_word(arguments, "--fixedbufs=1");
	add_word(arguments, "--registerfiles=1");
	add_word(arguments, "--direct=1");
	add_word(arguments, "--scramble_buffers=0");
	add_word(arguments, "--group_reporting");
	add_word(arguments, "--output-format=json");
	add_word(arguments, "--eta=never");
	add(arguments, "bs", load->bytes);
	add(arguments, "iodepth", load->depth);
	add(arguments, "numjobs", load->jobs);
	add(arguments, "size", load->moved / load->jobs);
	add(arguments, "offset", load->offset);
	add(arguments, "offset_increment", load->moved / load->jobs);
	add_file(arguments, load->path);
}

static double number(json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static int read_report(const char *text, const struct bench_fio_load *load,
		       struct bench_fio_figures *ret_figures, struct kvs_error *err)
{
	const char *const begin = strchr(text, '{');
	json_t *const     report = json_loads(begin ? begin : "", JSON_DISABLE_EOF_CHECK, NULL);
	json_t *const     job = json_array_get(json_object_get(report, "jobs"), 0);
	json_t *const     side = json_object_get(job, load->is_put ? "write" : "read");
	json_t *const     latency = json_object_get(json_object_get(side, "clat_ns"), "percentile");
	const double      runtime_ms = number(side, "runtime");
	const bool        whole = number(side, "io_bytes") == (double)load->moved;

	if (whole) {
		*ret_figures = (struct bench_fio_figures){
			.seconds = (runtime_ms > 1 ? runtime_ms : 1) / 1e3,
			.cpu_s = (number(job, "usr_cpu") + number(job, "sys_cpu")) / 100 *
				 number(job, "job_runtime") / 1e3,
			.p50_us = number(latency, "50.000000") / 1e3,
			.p99_us = number(latency, "99.000000") / 1e3,
		};
	}
	json_decref(report);
	return whole ? 0 : err_set(err, KVS_E_PROTO, "fio: its report is not of %" PRIu64 " bytes",
				   load->moved);
}

int bench_fio_prepare(const struct bench_fio_load *load, struct bench_watch *watch,
		      struct kvs_error *err)
{
	struct bench_fio_load write = *load;
	static char           text[REPORT_BYTES];
	struct arguments      arguments;
	int                   rc;

	write.is_put = true;
	write.jobs = 1;
	write.depth = 32;
	make_arguments(&arguments, &write);
	add_word(&arguments, "--fallocate=native");
	rc = run(arguments.argv, text, sizeof(text), watch, err);
	return rc < 0 ? rc : bench_watch_tick(watch, load->moved, err);
}

int bench_fio_measure(const struct bench_fio_load *load, struct bench_watch *watch,
		      struct bench_fio_figures *ret_figures, struct kvs_error *err)
{
	static char      text[REPORT_BYTES];
	struct arguments arguments;
	int              rc;

	make_arguments(&arguments, load);
	/* The file's extents stay as they are. */
	add_word(&arguments, "--fallocate=none");
	add_word(&arguments, "--overwrite=1");
	rc = run(arguments.argv, text, sizeof(text), watch, err);
	if (rc == 0)
		rc = bench_watch_tick(watch, load->moved, err);
	return rc < 0 ? rc : read_report(text, load, ret_figures, err);
}

int bench_fio_choose(struct bench_fio_load *load, struct bench_watch *watch, struct kvs_error *err)
{
	static const uint32_t    depths[] = { 32, 128 };
	struct bench_fio_load    best = { .depth = 0 };
	struct bench_fio_figures figures;
	double                   best_seconds = 0;
	uint32_t                 i;

	for (i = 0; i < BENCH_FIO_CHOICES; i++) {
		int rc;

		load->depth = depths[i % 2];
		load->jobs = i / 2 + 1;
		rc = bench_fio_measure(load, watch, &figures, err);
		if (rc == -EINTR)
			return rc;
		if (rc < 0 || (best.depth && figures.seconds >= best_seconds))
			continue;
		best = *load;
		best_seconds = figures.seconds;
	}
	if (!best.depth)
		return -EIO;
	*load = best;
	return 0;
}
