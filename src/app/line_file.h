/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text file, line by line, in bounded memory.
 *
 * Works on pipes too.  A line lies in one buffer that grows to the longest line, at most
 * line_bytes_max; a NUL byte is a byte like any other.  A last line without a newline counts.
 */
#ifndef APP_LINE_FILE_H
#define APP_LINE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct line_file {
	FILE    *file;
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
void line_file_close(struct line_file *lines); /* accepts a zeroed struct */

/**
 * The next line without its newline, valid until the next call.
 *
 * 1 and a line; 0 at the end; KVS_E_FULL when the line is longer than line_bytes_max (line is its
 * number); -errno when reading failed; -ENOMEM.
 */
int line_file_next(struct line_file *lines, const char **ret_line, size_t *ret_bytes);

#endif
