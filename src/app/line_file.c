/* SPDX-License-Identifier: Apache-2.0 */
#include "app/line_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "os/os.h"

#define BUFFER_BYTES_FIRST ((size_t)256 * 1024)

/* Make room behind the bytes that are left: move them to the front, and double a full buffer. */
static int make_room(struct line_file *lines)
{
	char *grown;

	if (lines->from > 0) {
		memmove(lines->buffer, lines->buffer + lines->from, lines->to - lines->from);
		lines->to -= lines->from;
		lines->from = 0;
	}
	if (lines->to < lines->buffer_bytes)
		return 0;
	if (lines->buffer_bytes > lines->line_bytes_max)
		return KVS_E_FULL;
	grown = realloc(lines->buffer, lines->buffer_bytes * 2);
	if (!grown)
		return -ENOMEM;
	lines->buffer = grown;
	lines->buffer_bytes *= 2;
	return 0;
}

static int fill(struct line_file *lines)
{
	int    rc = make_room(lines);
	size_t done;

	if (rc < 0)
		return rc;
	rc = os_stream_read(lines->fd, lines->buffer + lines->to, lines->buffer_bytes - lines->to,
			    &done);
	if (rc < 0)
		return rc;
	lines->to += done;
	lines->ended = done == 0;
	return 0;
}

/* A directory opens, and refuses to be read: said at open, where a file that is missing is said too. */
int line_file_open(struct line_file *lines, const char *path, size_t line_bytes_max)
{
	char   nothing;
	size_t done;
	int    rc;

	*lines = (struct line_file){ .fd = os_file_open(path, 0),
				     .line_bytes_max = line_bytes_max,
				     .buffer_bytes = BUFFER_BYTES_FIRST };
	if (lines->fd < 0)
		return lines->fd;
	if (os_file_size(lines->fd, &lines->file_bytes) < 0)
		lines->file_bytes = 0;
	rc = os_stream_read(lines->fd, &nothing, 0, &done);
	lines->buffer = rc == 0 ? malloc(lines->buffer_bytes) : NULL;
	if (rc == 0 && !lines->buffer)
		rc = -ENOMEM;
	if (rc < 0)
		line_file_close(lines);
	return rc;
}

void line_file_close(struct line_file *lines)
{
	os_close(lines->fd);
	free(lines->buffer);
	*lines = (struct line_file){ .fd = -1 };
}

bool line_file_ready(struct line_file *lines)
{
	while (!lines->ended && !memchr(lines->buffer + lines->from, '\n', lines->to - lines->from)) {
		if (!os_stream_ready(lines->fd))
			return false;
		/* What is wrong with the line or the file is line_file_next()'s to say. */
		if (fill(lines) < 0)
			return true;
	}
	return true;
}

static int hand_out(struct line_file *lines, size_t bytes, size_t newline, const char **ret_line,
		    size_t *ret_bytes)
{
	lines->line++;
	if (bytes > lines->line_bytes_max)
		return KVS_E_FULL;
	*ret_line = lines->buffer + lines->from;
	*ret_bytes = bytes;
	lines->from += bytes + newline;
	lines->taken_bytes += bytes + newline;
	return 1;
}

int line_file_next(struct line_file *lines, const char **ret_line, size_t *ret_bytes)
{
	size_t looked_at = 0;

	for (;;) {
		const char  *start = lines->buffer + lines->from;
		const size_t left = lines->to - lines->from;
		const char  *newline = memchr(start + looked_at, '\n', left - looked_at);
		int          rc;

		if (newline)
			return hand_out(lines, (size_t)(newline - start), 1, ret_line, ret_bytes);
		if (lines->ended)
			return left == 0 ? 0 : hand_out(lines, left, 0, ret_line, ret_bytes);
		looked_at = left;
		rc = fill(lines);
		if (rc == KVS_E_FULL)
			lines->line++;
		if (rc < 0)
			return rc;
	}
}
