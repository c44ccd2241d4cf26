/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text file, line by line, in bounded memory.
 *
 * Works on pipes too, and hands a line out as soon as it is there.  A line lies in one buffer that
 * grows to the longest line, at most line_bytes_max; a NUL byte is a byte like any other.  A last
 * line without a newline counts.
 */
#ifndef APP_LINE_FILE_H
#define APP_LINE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line_file {
	int      fd;
	char    *buffer;
	size_t   buffer_bytes;
	size_t   from, to;       /* bytes read and not yet handed out */
	size_t   line_bytes_max;
	uint64_t taken_bytes;    /* handed out so far */
	uint64_t file_bytes;     /* 0 when unknown: a pipe */
	uint64_t line;           /* number of the last line handed out, from 1 */
	bool     ended;
};

/* 0, or -errno: a directory is refused here already. */
int  line_file_open(struct line_file *lines, const char *path, size_t line_bytes_max);
void line_file_close(struct line_file *lines);

/* Whether line_file_next() would return at once; reads what a pipe holds, and never waits. */
bool line_file_ready(struct line_file *lines);

/**
 * The next line without its newline, valid until the next call.
 *
 * 1 and a line; 0 at the end; KVS_E_FULL when the line is longer than line_bytes_max (line is its
 * number); -errno when reading failed, -EINTR when a signal came while a pipe was empty; -ENOMEM.
 */
int line_file_next(struct line_file *lines, const char **ret_line, size_t *ret_bytes);

#endif
