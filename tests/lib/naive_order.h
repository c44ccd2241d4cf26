/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each policy of src/evict in arrays: an order is a plain list, a move deletes and appends, a ghost
 * is searched from end to end.  Twenty slots make a ghost of eighteen names, and room for 21 of
 * arc's.  An order of several parts is as many orders, with the one ghost or room for names.
 */
#ifndef LIB_NAIVE_ORDER_H
#define LIB_NAIVE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define NAIVE_SLOTS 20u
#define NAIVE_PARTS 3u
#define NAIVE_GHOST 18u
#define NAIVE_CELLS (NAIVE_SLOTS + 1)

struct naive_queue {
	uint32_t slots[NAIVE_SLOTS];
	uint32_t count;
};

/* Queue 0 is of the unused, small, recent or the only one; 1 is of the used, main or frequent. */
struct naive_part {
	struct naive_queue queues[2];
	uint32_t           target, size; /* arc */
	bool               full;         /* arc */
};

/* What arc remembers: a name and whose it is. */
struct naive_cell {
	uint64_t name; /* 0: none */
	uint64_t age;  /* the lower, the older */
	uint32_t part;
	uint32_t queue;
};

struct naive_order {
	const char       *policy;
	struct naive_part parts[NAIVE_PARTS];
	bool              present[NAIVE_SLOTS];
	uint32_t          part_of[NAIVE_SLOTS];
	uint32_t          uses[NAIVE_SLOTS];
	uint64_t          names[NAIVE_SLOTS];
	uint64_t          ghost[NAIVE_GHOST]; /* newest first; 0: taken or never filled */
	struct naive_cell cells[NAIVE_CELLS];
	uint32_t          freed[NAIVE_CELLS]; /* the last to be freed is filled first */
	uint32_t          freed_count, filled, hand;
	uint64_t          now;
};

/* The calls of evict.h.  pins has a bit for each slot that may not go. */
void     naive_order_insert(struct naive_order *order, uint32_t part, uint32_t slot, uint64_t name);
void     naive_order_touch(struct naive_order *order, uint32_t slot);
void     naive_order_remove(struct naive_order *order, uint32_t slot);
uint32_t naive_order_heat(const struct naive_order *order, uint32_t slot);
void     naive_order_renew(struct naive_order *order, uint32_t slot);
void     naive_order_expel(struct naive_order *order, uint32_t slot);
void     naive_order_settle(struct naive_order *order, const uint32_t *slots, uint32_t count);
uint32_t naive_order_victim(struct naive_order *order, uint32_t part, uint32_t pins);

/* --- for naive_order.c and naive_arc.c ------------------------------------------------------- */

bool     naive_is(const struct naive_order *order, const char *policy);
uint32_t naive_count(const struct naive_part *part);
bool     naive_is_in(const struct naive_order *order, uint32_t queue, uint32_t slot);

/* Whether the newcomer goes to the frequent queue. */
bool naive_arc_insert(struct naive_order *order, uint32_t part, uint64_t name);
/* Which queue of the part pays first; the slot that goes. */
uint32_t naive_arc_payer(struct naive_part *part);
void     naive_arc_remember(struct naive_order *order, uint32_t slot);

#endif
