/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests from a trace file: one JSON object a line, keys timestamp, input_length, output_length,
 * hash_ids.
 *
 * Other keys are ignored, as traces grow them; these four are checked strictly.  What is not
 * checked is that equal ids stand behind equal prefixes: that would need memory for the whole
 * trace.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "app/line_file.h"
#include "app/source_kind.h"
#include "base/text.h"

/* An id of 20 digits, a comma and a blank for each page, and as much again for the rest. */
#define LINE_BYTES_MAX ((size_t)SOURCE_PAGES_MAX * 44)

#define TOKENS_MAX ((json_int_t)SOURCE_PAGES_MAX * SOURCE_PAGE_TOKENS)

/* 278 years: nanoseconds of it fit into 63 bits. */
#define TIMESTAMP_MS_MAX ((json_int_t)1 << 43)

struct trace {
	struct source    source;
	struct line_file lines;
	char             name[80]; /* of the file, for messages: the end of a long path */
	uint64_t         request_count;
	uint64_t         timestamp_ms;
	uint64_t         blank_line; /* number of the first blank line; 0: none yet */
	uint64_t        *ids;
	uint32_t         id_room;
};

static void keep_name(struct trace *trace, const char *path)
{
	const size_t bytes = strlen(path), room = sizeof(trace->name);

	if (bytes < room)
		memcpy(trace->name, path, bytes + 1);
	else
		snprintf(trace->name, room, "...%s", path + bytes - (room - 4));
}

#define QUOTE_BYTES 32u

/* A value as the line has it, cut short. */
static const char *quote(const json_t *value, char buffer[QUOTE_BYTES])
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);

	snprintf(buffer, QUOTE_BYTES, "%.28s%s", text ? text : "?",
		 text && strlen(text) > 28 ? "..." : "");
	free(text);
	return buffer;
}

static int want_integer(const char *field, const json_t *value, json_int_t min, json_int_t max,
			uint64_t *ret, struct kvs_error *err)
{
	char buffer[QUOTE_BYTES];

	if (!json_is_integer(value) || json_integer_value(value) < min ||
	    json_integer_value(value) > max) {
		return err_set(err, KVS_E_INVALID,
			       "%s: %s is not an integer from %" PRId64 " to %" PRId64, field,
			       quote(value, buffer), (int64_t)min, (int64_t)max);
	}
	*ret = (uint64_t)json_integer_value(value);
	return 0;
}

/* NULL when the object lacks key; err says so. */
static json_t *want_key(const json_t *object, const char *key, struct kvs_error *err)
{
	json_t *value = json_object_get(object, key);

	if (!value) {
		err_set(err, KVS_E_INVALID,
			"%s: missing; a request has timestamp, input_length, output_length and"
			" hash_ids",
			key);
	}
	return value;
}

static int want_number(const json_t *object, const char *key, json_int_t min, json_int_t max,
		       uint64_t *ret, struct kvs_error *err)
{
	const json_t *value = want_key(object, key, err);

	return value ? want_integer(key, value, min, max, ret, err) : KVS_E_INVALID;
}

static int read_ids(struct trace *trace, const json_t *object, struct source_request *request,
		    struct kvs_error *err)
{
	const uint64_t expected = source_pages(request->input_tokens);
	const json_t  *array = want_key(object, "hash_ids", err);
	uint64_t      *ids;
	uint32_t       i;
	int            rc = 0;

	if (!array)
		return KVS_E_INVALID;
	if (!json_is_array(array))
		return err_set(err, KVS_E_INVALID, "hash_ids: not an array of integers");
	if (json_array_size(array) != expected) {
		return err_set(err, KVS_E_INVALID,
			       "hash_ids: %zu ids for input_length %" PRIu64 "; expected %" PRIu64
			       ", one for each %u tokens begun",
			       json_array_size(array), request->input_tokens, expected,
			       SOURCE_PAGE_TOKENS);
	}
	ids = source_page_room(trace->ids, sizeof(*ids), &trace->id_room, (uint32_t)expected, err);
	if (!ids)
		return -ENOMEM;
	trace->ids = ids;
	for (i = 0; rc == 0 && i < expected; i++) {
		rc = want_integer("hash_ids", json_array_get(array, i), 0, INT64_MAX, &ids[i],
				  err);
	}
	request->page_count = (uint32_t)expected;
	request->page_ids = ids;
	return rc;
}

static int read_request(struct trace *trace, const json_t *object, struct source_request *request,
			struct kvs_error *err)
{
	int rc;

	if (!json_is_object(object)) {
		return err_set(err, KVS_E_INVALID,
			       "not a JSON object; expected one request a line");
	}
	if ((rc = want_number(object, "timestamp", 0, TIMESTAMP_MS_MAX, &request->timestamp_ms,
				err)) < 0 ||
	    (rc = want_number(object, "input_length", 1, TOKENS_MAX, &request->input_tokens,
				err)) < 0 ||
	    (rc = want_number(object, "output_length", 0, TOKENS_MAX, &request->output_tokens,
				err)) < 0)
		return rc;
	if (request->timestamp_ms < trace->timestamp_ms) {
		return err_set(err, KVS_E_INVALID,
			       "timestamp: %" PRIu64 " after %" PRIu64 "; it must not go backwards",
			       request->timestamp_ms, trace->timestamp_ms);
	}
	return read_ids(trace, object, request, err);
}

/* jansson costs 60 ms for an hour of chat, so a parser of our own is not worth it. */
static int parse(struct trace *trace, const char *line, size_t bytes,
		 struct source_request *ret_request, struct kvs_error *err)
{
	struct source_request request = { .index = trace->request_count };
	json_error_t          where;
	json_t *object = json_loadb(line, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);
	int                   rc;

	if (!object) {
		return err_set(err, KVS_E_INVALID, "expected one JSON object: %s (column %d)",
			       text_printable(where.text), where.column);
	}
	rc = read_request(trace, object, &request, err);
	json_decref(object);
	if (rc == 0)
		*ret_request = request;
	return rc;
}

static bool is_blank(const char *line, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++) {
		if (!memchr(" \t\r", line[i], 3))
			return false;
	}
	return true;
}

/* 1 and a line, 0 at the end.  Blank lines may close a file, but not stand between requests. */
static int next_line(struct trace *trace, const char **ret_line, size_t *ret_bytes,
		     struct kvs_error *err)
{
	int rc;

	while ((rc = line_file_next(&trace->lines, ret_line, ret_bytes)) == 1) {
		if (!is_blank(*ret_line, *ret_bytes))
			break;
		if (trace->blank_line == 0)
			trace->blank_line = trace->lines.line;
	}
	if (rc == KVS_E_FULL) {
		return err_set(err, KVS_E_INVALID,
			       "%s: line %" PRIu64 ": longer than %zu bytes; expected one request a"
			       " line",
			       trace->name, trace->lines.line, LINE_BYTES_MAX);
	}
	if (rc < 0)
		return err_set(err, rc, "%s: cannot read: %s", trace->name, kvs_strerror(rc));
	if (rc == 1 && trace->blank_line) {
		return err_set(err, KVS_E_INVALID,
			       "%s: line %" PRIu64 ": empty; expected one JSON object a line",
			       trace->name, trace->blank_line);
	}
	return rc;
}

static int trace_next(struct source *source, struct source_request *ret_request,
		      struct kvs_error *err)
{
	struct trace *trace = (struct trace *)source;
	const char   *line;
	size_t        bytes;
	int           rc = next_line(trace, &line, &bytes, err);

	if (rc <= 0)
		return rc;
	rc = parse(trace, line, bytes, ret_request, err);
	if (rc < 0) {
		err_prefix(err, "%s: line %" PRIu64, trace->name, trace->lines.line);
		return rc;
	}
	trace->timestamp_ms = ret_request->timestamp_ms;
	trace->request_count++;
	return 1;
}

static bool trace_ready(struct source *source)
{
	return line_file_ready(&((struct trace *)source)->lines);
}

static int trace_fd(const struct source *source)
{
	return ((const struct trace *)source)->lines.fd;
}

static double trace_progress(const struct source *source)
{
	const struct trace *trace = (const struct trace *)source;

	if (trace->lines.file_bytes == 0)
		return 0;
	/* A file that grows while it is read would pass its own end. */
	if (trace->lines.taken_bytes >= trace->lines.file_bytes)
		return 1;
	return (double)trace->lines.taken_bytes / (double)trace->lines.file_bytes;
}

static void trace_close(struct source *source)
{
	struct trace *trace = (struct trace *)source;

	line_file_close(&trace->lines);
	free(trace->ids);
	free(trace);
}

static const struct source_kind trace_kind = { .next = trace_next,
					       .ready = trace_ready,
					       .progress = trace_progress,
					       .fd = trace_fd,
					       .close = trace_close };

int source_open_trace(const char *path, struct source **ret_source, struct kvs_error *err)
{
	struct trace *trace = calloc(1, sizeof(*trace));
	int           rc;

	if (!trace)
		return err_set(err, -ENOMEM, "trace: no memory");
	trace->source.kind = &trace_kind;
	keep_name(trace, path);
	rc = line_file_open(&trace->lines, path, LINE_BYTES_MAX);
	if (rc < 0) {
		err_set(err, rc, "%s: cannot open: %s", trace->name, kvs_strerror(rc));
		free(trace);
		return rc;
	}
	*ret_source = &trace->source;
	return 0;
}
