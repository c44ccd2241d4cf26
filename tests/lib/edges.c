/* SPDX-License-Identifier: Apache-2.0 */
/* See edges.h. */
#include "edges.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"

bool edges_has(const char *table, const char *from, const char *on)
{
	char        line[128], want_from[32], want_on[32];
	const char *at = table;

	(void)snprintf(want_from, sizeof(want_from), "%s -> ", from);
	(void)snprintf(want_on, sizeof(want_on), " on %s", on);
	while (sscanf(at, "%127[^\n]", line) == 1) {
		const size_t length = strlen(line);

		if (strncmp(line, want_from, strlen(want_from)) == 0 &&
		    strcmp(line + length - strlen(want_on), want_on) == 0)
			return true;
		at += length + 1;
	}
	return false;
}

static void read_document(const char *path, char *ret_text, size_t text_bytes)
{
	FILE *const file = fopen(path, "r");
	size_t      used;

	KVS_ASSERT(file != NULL);
	used = fread(ret_text, 1, text_bytes - 1, file);
	KVS_ASSERT_CMP(ferror(file), ==, 0);
	KVS_ASSERT_CMP(used, <, text_bytes - 1);
	ret_text[used] = '\0';
	(void)fclose(file);
}

/* What a document shows; good until the next. */
static char *shown(const char *path)
{
	static const char fence[] = "```edges\n";
	static char       document[8 * EDGES_BYTES];
	char             *begin, *end;

	read_document(path, document, sizeof(document));
	begin = strstr(document, fence);
	KVS_ASSERT(begin != NULL);
	begin += strlen(fence);
	end = strstr(begin, "```");
	KVS_ASSERT(end != NULL);
	*end = '\0';
	return begin;
}

void edges_expect_document(const char *path, void (*print)(char *buffer, size_t buffer_bytes))
{
	const char *const document = shown(path);
	char              table[EDGES_BYTES];

	print(table, sizeof(table));
	if (strcmp(document, table) != 0)
		KVS_PANIC("%s shows\n%sand the table is\n%s", path, document, table);
}

uint32_t edges_expect_part(const char *path, void (*print)(char *buffer, size_t buffer_bytes))
{
	char        table[EDGES_BYTES];
	const char *at = table;
	uint32_t    count = 0;
	char       *rest = NULL;
	char       *line;

	print(table, sizeof(table));
	for (line = strtok_r(shown(path), "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		at = strstr(at, line);
		if (!at || at[strlen(line)] != '\n')
			KVS_PANIC("%s shows \"%s\", which is not in its place in\n%s", path, line, table);
		count++;
	}
	return count;
}

void edges_expect_cut(void (*print)(char *buffer, size_t buffer_bytes))
{
	char table[EDGES_BYTES], start[40];

	print(table, sizeof(table));
	memset(start, 'x', sizeof(start));
	print(start, sizeof(start) - 1);
	KVS_ASSERT_CMP(strlen(start), ==, sizeof(start) - 2);
	KVS_ASSERT(memcmp(start, table, sizeof(start) - 2) == 0);
	KVS_ASSERT_CMP(start[sizeof(start) - 1], ==, 'x');
}
