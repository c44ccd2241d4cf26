/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the evict room: what every policy is made of.
 *
 * A policy is a handful of functions over at most two queues of slots, oldest at the head.  The
 * table in evict.c checks presence and counts; a policy decides places only.
 */
#ifndef EVICT_POLICY_H
#define EVICT_POLICY_H

#include "evict/evict.h"
#include "evict/ghost.h"

#define EVICT_QUEUES 2

struct evict_note {
	uint8_t queue; /* which queue the slot is in */
	uint8_t uses;  /* since insertion, as far as the policy counts them */
};

struct evict_policy {
	/* NULL: nothing beyond links and notes is needed. */
	int (*prepare)(struct evict *evict);
	void (*insert)(struct evict *evict, uint32_t slot, uint64_t hash);
	/* NULL: uses change nothing. */
	void (*touch)(struct evict *evict, uint32_t slot);
	/* NULL: what a request used together changes nothing. */
	void (*settle)(struct evict *evict, const uint32_t *slots, uint32_t count);
	/* Unlinks what it returns. */
	uint32_t (*victim)(struct evict *evict, evict_may *may, void *ctx);
	/* NULL: to the tail of its queue. */
	void (*renew)(struct evict *evict, uint32_t slot);
	/* NULL: nothing is remembered. */
	void (*expel)(struct evict *evict, uint32_t slot);
};

/* Two bits a slot, as s3fifo's paper has it: more uses than that buy nothing. */
#define EVICT_USES_MAX 3

struct evict {
	const struct evict_policy *policy;
	uint32_t                   capacity;
	uint32_t                   known; /* links and notes below it are initialised */
	uint32_t                   count;
	struct link               *links;
	struct evict_note         *notes;
	struct list                queues[EVICT_QUEUES];
	uint64_t                  *hashes; /* s3fifo: what each slot holds */
	struct ghost               ghost;  /* s3fifo */
};

extern const struct evict_policy evict_lru, evict_fifo, evict_lru_leaf, evict_s3fifo,
	evict_host_order;

/* Put an unlinked slot at the tail of a queue; take a linked one out; take it out and put it at a tail. */
void evict_push(struct evict *evict, uint32_t slot, uint8_t queue);
void evict_unlink(struct evict *evict, uint32_t slot);
void evict_move(struct evict *evict, uint32_t slot, uint8_t queue);

void evict_note_use(struct evict *evict, uint32_t slot);

/* Unlink and return the first slot of a queue that may go; SLOT_NONE when none may. */
uint32_t evict_first(struct evict *evict, uint8_t queue, evict_may *may, void *ctx);

/* What the policies of one queue (number 0) have in common. */
void     evict_line_insert(struct evict *evict, uint32_t slot, uint64_t hash);
void     evict_line_touch(struct evict *evict, uint32_t slot);
uint32_t evict_line_victim(struct evict *evict, evict_may *may, void *ctx);

#endif
