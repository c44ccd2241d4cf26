/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the evict room: what every policy is made of.
 *
 * A policy is a handful of functions over at most two queues of slots in each part, oldest at the
 * head.  The table in evict.c checks presence, parts and counts; a policy decides places only.
 */
#ifndef EVICT_POLICY_H
#define EVICT_POLICY_H

#include "evict/evict.h"
#include "evict/ghost.h"
#include "evict/names.h"

#define EVICT_QUEUES 2

struct evict_note {
	uint8_t queue; /* which queue of its part the slot is in */
	uint8_t uses;  /* since insertion, as far as the policy counts them */
};

struct evict_part {
	struct list queues[EVICT_QUEUES];
	uint32_t    target; /* arc: slots that the first queue should have */
	uint32_t    size;   /* arc: slots when it was last full */
	bool        full;   /* arc: was asked for a slot since the last one came */
};

struct evict_policy {
	/* NULL: nothing beyond links and notes is needed. */
	int (*prepare)(struct evict *evict);
	void (*insert)(struct evict *evict, uint32_t slot, uint64_t hash);
	/* NULL: uses change nothing. */
	void (*touch)(struct evict *evict, uint32_t slot);
	/* NULL: what a request used together changes nothing. */
	void (*settle)(struct evict *evict, const uint32_t *slots, uint32_t count);
	/* Of the part.  Unlinks what it returns. */
	uint32_t (*victim)(struct evict *evict, uint32_t part, evict_may *may, void *ctx);
	/* NULL: to the tail of its queue. */
	void (*renew)(struct evict *evict, uint32_t slot);
	/* NULL: nothing is remembered. */
	void (*expel)(struct evict *evict, uint32_t slot);
	/* NULL: the table sees all there is. */
	void (*audit)(const struct evict *evict);
};

/* As many as two bits hold, as s3fifo's paper has it: more uses than that buy nothing. */
#define EVICT_USES_MAX 3

struct evict {
	const struct evict_policy *policy;
	uint32_t                   capacity;
	uint32_t                   known; /* links and notes below it are initialised */
	uint32_t                   count;
	uint32_t                   part_count;
	struct link               *links;
	struct evict_note         *notes;
	uint16_t                  *parts_of; /* by slot; NULL while there is one part: most pay nothing */
	uint64_t                  *hashes;   /* s3fifo, arc: what each slot holds */
	struct ghost               ghost;    /* s3fifo; of all parts */
	struct names               names;    /* arc; two queues a part */
	struct evict_part          parts[];
};

static inline uint32_t evict_part_of(const struct evict *evict, uint32_t slot)
{
	return evict->parts_of ? evict->parts_of[slot] : 0;
}

extern const struct evict_policy evict_lru, evict_fifo, evict_lru_leaf, evict_s3fifo,
	evict_host_order, evict_arc, evict_none;

/* NULL: there is none of that name. */
const struct evict_policy *evict_policy_of(const char *name);

/*
 * Put an unlinked slot at the tail of a queue of its part; take a linked one out; take it out and
 * put it at a tail.
 */
void evict_push(struct evict *evict, uint32_t slot, uint8_t queue);
void evict_unlink(struct evict *evict, uint32_t slot);
void evict_move(struct evict *evict, uint32_t slot, uint8_t queue);

void evict_note_use(struct evict *evict, uint32_t slot);

/* Unlink and return the first slot of a queue that may go; SLOT_NONE when none may. */
uint32_t evict_first(struct evict *evict, uint32_t part, uint8_t queue, evict_may *may, void *ctx);

/* What the policies of one queue (number 0) have in common. */
void     evict_line_insert(struct evict *evict, uint32_t slot, uint64_t hash);
void     evict_line_touch(struct evict *evict, uint32_t slot);
uint32_t evict_line_victim(struct evict *evict, uint32_t part, evict_may *may, void *ctx);

#endif
