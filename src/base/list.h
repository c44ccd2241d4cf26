/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive doubly linked lists over slot numbers.
 *
 * The links live in one array, indexed by slot, that the owner allocates; a list is its head, tail
 * and length.  Slot numbers instead of pointers halve the memory and make order independent of
 * addresses.  A slot is in at most one list of an array of links at a time; list_is_linked() tells.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define SLOT_NONE UINT32_MAX

struct link {
	uint32_t prev; /* towards the head; SLOT_NONE at the head; the slot itself when unlinked */
	uint32_t next; /* towards the tail; SLOT_NONE at the tail; the slot itself when unlinked */
};

struct list {
	uint32_t head;
	uint32_t tail;
	uint32_t count;
};

/* Make every one of count links unlinked; make a list empty. */
void list_links_init(struct link *links, uint32_t count);
void list_init(struct list *list);

static inline bool list_is_linked(const struct link *links, uint32_t slot);

void               list_push_head(struct list *list, struct link *links, uint32_t slot);
static inline void list_push_tail(struct list *list, struct link *links, uint32_t slot);
static inline void list_remove(struct list *list, struct link *links, uint32_t slot);

/* Remove and return the head; SLOT_NONE when empty. */
uint32_t list_pop_head(struct list *list, struct link *links);

/* O(n): every link agrees with its neighbours and the count is right.  Panics otherwise. */
void list_audit(const struct list *list, const struct link *links, uint32_t slot_count);

/* --- inline definitions ----------------------------------------------------------------------- */

/* A linked slot never names itself, so a link to itself is the mark of "in no list". */
static inline bool list_is_linked(const struct link *links, uint32_t slot)
{
	return links[slot].next != slot;
}

static inline void list_push_tail(struct list *list, struct link *links, uint32_t slot)
{
	KVS_ASSERT(!list_is_linked(links, slot));
	links[slot] = (struct link){ .prev = list->tail, .next = SLOT_NONE };
	if (list->tail == SLOT_NONE)
		list->head = slot;
	else
		links[list->tail].next = slot;
	list->tail = slot;
	list->count++;
}

static inline void list_remove(struct list *list, struct link *links, uint32_t slot)
{
	const struct link link = links[slot];

	KVS_ASSERT(list_is_linked(links, slot));
	KVS_ASSERT_CMP(list->count, >, 0);
	if (link.prev == SLOT_NONE)
		list->head = link.next;
	else
		links[link.prev].next = link.next;
	if (link.next == SLOT_NONE)
		list->tail = link.prev;
	else
		links[link.next].prev = link.prev;
	links[slot] = (struct link){ .prev = slot, .next = slot };
	list->count--;
}

#endif
