/* SPDX-License-Identifier: Apache-2.0 */
#include "app/line_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

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
	const int rc = make_room(lines);
	size_t    got;

	if (rc < 0)
		return rc;
	errno = 0;
	got = fread(lines->buffer + lines->to, 1, lines->buffer_bytes - lines->to, lines->file);
	lines->to += got;
	if (ferror(lines->file))
		return errno ? -errno : -EIO;
	lines->ended = feof(lines->file);
	return 0;
}

static uint64_t size_of(FILE *file)
{
	off_t bytes;

	if (fseeko(file, 0, SEEK_END) < 0)
		return 0;
	bytes = ftello(file);
	rewind(file);
	return bytes > 0 ? (uint64_t)bytes : 0;
}

int line_file_open(struct line_file *lines, const char *path, size_t line_bytes_max)
{
	int rc;

	*lines = (struct line_file){ .line_bytes_max = line_bytes_max,
				     .buffer_bytes = BUFFER_BYTES_FIRST };
	lines->file = fopen(path, "re");
	if (!lines->file)
		return -errno;
	lines->file_bytes = size_of(lines->file);
	lines->buffer = malloc(lines->buffer_bytes);
	rc = lines->buffer ? fill(lines) : -ENOMEM;
	if (rc < 0)
		line_file_close(lines);
	return rc;
}

void line_file_close(struct line_file *lines)
{
	if (lines->file)
		fclose(lines->file);
	free(lines->buffer);
	*lines = (struct line_file){ 0 };
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
