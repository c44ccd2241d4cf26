/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of edges as text, one "FROM -> TO on EVENT" a line, as rooms print theirs for their
 * documents.
 */
#ifndef LIB_EDGES_H
#define LIB_EDGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than any table takes. */
#define EDGES_BYTES 4096u

/* Whether a printed table has an edge from this state on this event. */
bool edges_has(const char *table, const char *from, const char *on);

/* Panics unless the document's part between "```edges" and "```" is what is printed. */
void edges_expect_document(const char *path, void (*print)(char *buffer, size_t buffer_bytes));

/* Panics unless that part holds lines of the table only, in its order; how many. */
uint32_t edges_expect_part(const char *path, void (*print)(char *buffer, size_t buffer_bytes));

/* Panics unless a buffer that is too short gets the beginning, and nothing behind it is touched. */
void edges_expect_cut(void (*print)(char *buffer, size_t buffer_bytes));

#endif
