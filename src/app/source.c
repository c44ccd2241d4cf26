/* SPDX-License-Identifier: Apache-2.0 */
#include "app/source.h"

#include <errno.h>
#include <stdlib.h>

#include "app/source_kind.h"
#include "base/prng.h"

#define ROOM_FIRST 256u

void *source_page_room(void *array, size_t item_bytes, uint32_t *room, uint32_t count,
		       struct kvs_error *err)
{
	uint32_t wanted = *room ? *room : ROOM_FIRST;
	void    *grown;

	if (count <= *room)
		return array;
	while (wanted < count)
		wanted *= 2;
	grown = realloc(array, wanted * item_bytes);
	if (grown)
		*room = wanted;
	else
		err_set(err, -ENOMEM, "hash_ids: no memory for a request of %u blocks", count);
	return grown;
}

int source_open(const char *trace, uint64_t seed, uint64_t count, struct source **ret_source,
		struct kvs_error *err)
{
	if (trace)
		return source_open_trace(trace, ret_source, err);
	return source_open_generated(seed, count, ret_source, err);
}

int source_next(struct source *source, struct source_request *ret_request, struct kvs_error *err)
{
	return source->kind->next(source, ret_request, err);
}

bool source_ready(struct source *source)
{
	return !source->kind->ready || source->kind->ready(source);
}

int source_fd(const struct source *source)
{
	return source->kind->fd ? source->kind->fd(source) : -1;
}

double source_progress(const struct source *source)
{
	return source->kind->progress(source);
}

void source_close(struct source *source)
{
	if (source)
		source->kind->close(source);
}

void source_page_tokens(uint64_t page_id, uint32_t count, int32_t *ret_tokens)
{
	const uint64_t base = mix64(page_id);
	uint32_t       i;

	for (i = 0; i < count; i++)
		ret_tokens[i] = (int32_t)(mix64(base + i) >> 33);
}
