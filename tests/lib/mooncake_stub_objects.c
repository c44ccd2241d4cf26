/* SPDX-License-Identifier: Apache-2.0 */
/* The stub's map: see mooncake_stub.h. */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "mooncake_stub_parts.h"

#define CHAINS 1024u

#define NO_HANDLE (-200)
#define INVALID_KEY (-400)

static struct stub_object *chains[CHAINS];

/* Where the pointer to it is, or would be. */
static struct stub_object **place(const char *name)
{
	uint32_t             hash = 2166136261u;
	const char          *at;
	struct stub_object **link;

	for (at = name; *at; at++)
		hash = (hash ^ (uint8_t)*at) * 16777619u;
	link = &chains[hash % CHAINS];
	while (*link && strcmp((*link)->name, name) != 0)
		link = &(*link)->next;
	return link;
}

static void take_out(struct stub_object **link)
{
	struct stub_object *const object = *link;

	*link = object->next;
	stub.used_bytes -= object->size;
	stub.figures.objects--;
	free(object->name);
	free(object->bytes);
	free(object);
}

struct stub_object *stub_object_find(const char *name)
{
	return *place(name);
}

/* What is there stays, and that is a success. */
int stub_object_put(const char *name, const void *bytes, size_t size)
{
	struct stub_object **const link = place(name);
	struct stub_object        *object;

	if (*link)
		return 0;
	if (stub.capacity_bytes > 0 && stub.used_bytes + size > stub.capacity_bytes)
		return NO_HANDLE;
	object = calloc(1, sizeof(*object));
	if (!object)
		abort();
	object->name = strdup(name);
	object->bytes = malloc(size);
	if (!object->name || !object->bytes)
		abort();
	memcpy(object->bytes, bytes, size);
	object->size = size;
	*link = object;
	stub.used_bytes += size;
	stub.figures.objects++;
	return 0;
}

bool stub_object_remove(const char *name)
{
	struct stub_object **const link = place(name);

	if (!*link)
		return false;
	take_out(link);
	return true;
}

int64_t stub_object_purge(const char *expression)
{
	regex_t  regex;
	int64_t  count = 0;
	uint32_t i;

	if (regcomp(&regex, expression, REG_EXTENDED | REG_NOSUB) != 0)
		return INVALID_KEY;
	for (i = 0; i < CHAINS; i++) {
		struct stub_object **link = &chains[i];

		while (*link) {
			if (regexec(&regex, (*link)->name, 0, NULL, 0) != 0) {
				link = &(*link)->next;
				continue;
			}
			take_out(link);
			count++;
		}
	}
	regfree(&regex);
	return count;
}

void stub_object_clear(void)
{
	uint32_t i;

	for (i = 0; i < CHAINS; i++) {
		while (chains[i])
			take_out(&chains[i]);
	}
}
