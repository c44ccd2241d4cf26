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

bool list_is_linked(const struct link *links, uint32_t slot);

void list_push_head(struct list *list, struct link *links, uint32_t slot);
void list_push_tail(struct list *list, struct link *links, uint32_t slot);
void list_remove(struct list *list, struct link *links, uint32_t slot);

/* Remove and return the head; SLOT_NONE when empty. */
uint32_t list_pop_head(struct list *list, struct link *links);

/* O(n): every link agrees with its neighbours and the count is right.  Panics otherwise. */
void list_audit(const struct list *list, const struct link *links, uint32_t slot_count);

#endif
