/* SPDX-License-Identifier: Apache-2.0 */
/* See names.h. */
#include "evict/names.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

int names_open(struct names *names, uint32_t capacity, uint32_t queue_count)
{
	uint32_t queue;

	*names = (struct names){ .queue_count = queue_count };
	names->links = malloc(capacity * sizeof(*names->links));
	names->queues = calloc(queue_count, sizeof(*names->queues));
	if (!names->links || !names->queues || ghost_open(&names->ghost, capacity) < 0) {
		names_close(names);
		return -ENOMEM;
	}
	for (queue = 0; queue < queue_count; queue++)
		list_init(&names->queues[queue]);
	return 0;
}

void names_close(struct names *names)
{
	ghost_close(&names->ghost);
	free(names->links);
	free(names->queues);
	*names = (struct names){ 0 };
}

/* Out of its queue, which is returned, and its chain. */
static uint32_t empty(struct names *names, uint32_t cell)
{
	const uint32_t queue = names->ghost.cells[cell].mark - 1;

	list_remove(&names->queues[queue], names->links, cell);
	ghost_drop(&names->ghost, cell);
	return queue;
}

static uint32_t set_free(struct names *names, uint32_t cell)
{
	const uint32_t queue = empty(names, cell);

	names->ghost.cells[cell].next = names->free_first;
	names->free_first = cell + 1;
	return queue;
}

static uint32_t under_hand(struct names *names)
{
	const uint32_t cell = names->hand;

	empty(names, cell);
	names->hand = cell + 1 == names->ghost.capacity ? 0 : cell + 1;
	return cell;
}

static uint32_t take_cell(struct names *names)
{
	uint32_t cell = names->free_first;

	if (cell) {
		names->free_first = names->ghost.cells[cell - 1].next;
		return cell - 1;
	}
	if (names->known == names->ghost.capacity)
		return under_hand(names);
	cell = names->known++;
	names->links[cell] = (struct link){ .prev = cell, .next = cell };
	return cell;
}

void names_add(struct names *names, uint32_t queue, uint64_t hash)
{
	uint32_t cell;

	KVS_ASSERT_CMP(queue, <, names->queue_count);
	names_take(names, hash);
	cell = take_cell(names);
	ghost_put(&names->ghost, cell, hash, queue + 1);
	list_push_tail(&names->queues[queue], names->links, cell);
}

uint32_t names_take(struct names *names, uint64_t hash)
{
	const uint32_t cell = ghost_find(&names->ghost, hash);

	return cell == SLOT_NONE ? SLOT_NONE : set_free(names, cell);
}

void names_forget(struct names *names, uint32_t queue)
{
	if (names->queues[queue].head != SLOT_NONE)
		set_free(names, names->queues[queue].head);
}

uint32_t names_count(const struct names *names, uint32_t queue)
{
	return names->queues[queue].count;
}

size_t names_bytes(const struct names *names)
{
	return ghost_bytes(&names->ghost) + names->ghost.capacity * sizeof(*names->links) +
	       names->queue_count * sizeof(*names->queues);
}

void names_audit(const struct names *names)
{
	uint32_t in_queues = 0, marked = 0;
	uint32_t queue, cell;

	ghost_audit(&names->ghost);
	for (queue = 0; queue < names->queue_count; queue++) {
		const struct list *const list = &names->queues[queue];

		list_audit(list, names->links, names->known);
		in_queues += list->count;
		for (cell = list->head; cell != SLOT_NONE; cell = names->links[cell].next)
			KVS_ASSERT_CMP(names->ghost.cells[cell].mark, ==, queue + 1);
	}
	for (cell = 0; cell < names->known; cell++)
		marked += names->ghost.cells[cell].mark != 0;
	KVS_ASSERT_CMP(in_queues, ==, marked);
}
