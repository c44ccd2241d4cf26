/* SPDX-License-Identifier: Apache-2.0 */
#include "base/list.h"

void list_links_init(struct link *links, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		links[i] = (struct link){ .prev = i, .next = i };
}

void list_init(struct list *list)
{
	*list = (struct list){ .head = SLOT_NONE, .tail = SLOT_NONE };
}

void list_push_head(struct list *list, struct link *links, uint32_t slot)
{
	KVS_ASSERT(!list_is_linked(links, slot));
	links[slot] = (struct link){ .prev = SLOT_NONE, .next = list->head };
	if (list->head == SLOT_NONE)
		list->tail = slot;
	else
		links[list->head].prev = slot;
	list->head = slot;
	list->count++;
}

uint32_t list_pop_head(struct list *list, struct link *links)
{
	const uint32_t slot = list->head;

	if (slot != SLOT_NONE)
		list_remove(list, links, slot);
	return slot;
}

void list_audit(const struct list *list, const struct link *links, uint32_t slot_count)
{
	uint32_t prev = SLOT_NONE;
	uint32_t seen = 0;
	uint32_t slot;

	for (slot = list->head; slot != SLOT_NONE; slot = links[slot].next) {
		KVS_ASSERT_CMP(slot, <, slot_count);
		KVS_ASSERT_CMP(links[slot].prev, ==, prev);
		KVS_ASSERT_CMP(++seen, <=, list->count);
		prev = slot;
	}
	KVS_ASSERT_CMP(list->tail, ==, prev);
	KVS_ASSERT_CMP(list->count, ==, seen);
}
