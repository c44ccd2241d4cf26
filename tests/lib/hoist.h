/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transfer manager with a real cache, a store that is a list of names, and the test in the place
 * of executor and scheduler.
 *
 * Prompt 0 is the box's: page n is hash n.  Prompt p shares the first HOIST_SHARED pages with it
 * and has hashes 100 p + n behind them.  hoist_audit() accounts for every reference on every Host
 * block: the index's own, the tickets', and those that the test took.
 */
#ifndef LIB_HOIST_H
#define LIB_HOIST_H

#include "cache_box.h"
#include "transfer/transfer.h"

#define HOIST_PAGE 4u /* tokens */
#define HOIST_SHARED 2u
#define HOIST_PROMPTS 4u
#define HOIST_NAMES 256u
#define HOIST_FACTS 32u
#define HOIST_BLOCK_BYTES 4096u

struct hoist_options {
	const struct group_spec      *specs; /* as box_open() takes them */
	const struct transfer_limits *limits;
	uint32_t                      host_parents;
	uint32_t                      owners; /* 0: alone; else group 0 is dealt out over them */
	uint32_t                      rank;
};

struct hoist {
	struct box                box;
	struct arena             *arena;
	struct arena_part         part;
	struct hostmap            hostmap;
	struct owner              owner;
	struct transfer          *transfer;
	int32_t                   tokens[HOIST_PROMPTS][BOX_PAGES * HOIST_PAGE];
	struct prompt             prompts[HOIST_PROMPTS];
	struct prefix_hash        hashes[HOIST_PROMPTS][BOX_PAGES];
	struct kvs_key            names[HOIST_NAMES]; /* what the store has */
	uint32_t                  name_count;
	struct tick               tick;               /* the next one: clock, pressure, permits */
	struct fact               facts[HOIST_FACTS];
	struct retirement_notice  notices[HOIST_FACTS];
	/* Of the last read. */
	struct lease              lease;
	struct shortfall          shortfall;
	struct cache_block        pins[64]; /* the test's */
	uint32_t                  pin_count;
};

/*
 * Ample: 4 tickets, 32 references, keys_max 16, puts of 4, 8 candidates, 8 negatives, 16 of
 * history, deadline 1,000, hold 500, no marks.
 */
extern const struct transfer_limits hoist_limits;
/* One full group; a full one and a state, P = q = HOIST_PAGE. */
extern const struct group_spec hoist_full[BOX_GROUPS];
extern const struct group_spec hoist_full_state[BOX_GROUPS];

void hoist_open(struct hoist *hoist, const struct hoist_options *options);
/* Host of 24 parents. */
void hoist_open_plain(struct hoist *hoist, const struct group_spec *specs,
		      const struct transfer_limits *limits);
/*
 * The same with a full group and a state; the store has four pages of prompts 0 and 1, all
 * checkpoints.
 */
void hoist_open_stored(struct hoist *hoist, const struct transfer_limits *limits);
void hoist_close(struct hoist *hoist);
void hoist_audit(struct hoist *hoist);

/* --- contents --------------------------------------------------------------------------------- */

struct cell_name hoist_name(const struct hoist *hoist, uint32_t prompt, uint32_t group,
			    uint32_t page);
struct kvs_key   hoist_key(const struct hoist *hoist, uint32_t prompt, uint32_t group,
			   uint32_t page);
/* The hash of a tail of prompt 0. */
struct prefix_hash hoist_tail(const struct hoist *hoist, uint32_t tokens);
struct kvs_key     hoist_tail_key(const struct hoist *hoist, uint32_t group, uint32_t tokens);

/* The store has pages [first, end) of a group, or loses them. */
void hoist_store(struct hoist *hoist, uint32_t prompt, uint32_t group, uint32_t first,
		 uint32_t end);
void hoist_unstore(struct hoist *hoist, uint32_t prompt, uint32_t group, uint32_t first,
		   uint32_t end);
void hoist_store_key(struct hoist *hoist, const struct kvs_key *key);
bool hoist_stored(const struct hoist *hoist, const struct kvs_key *key);
/* Host publishes a page, as the tier does, and the manager is told. */
void hoist_publish(struct hoist *hoist, uint32_t prompt, uint32_t group, uint32_t page);
void hoist_publish_name(struct hoist *hoist, const struct cell_name *name);
uint32_t hoist_find(const struct hoist *hoist, uint32_t prompt, uint32_t group, uint32_t page);
/* Take every Host block of a group that can be had; what is published goes. */
uint32_t hoist_pin_all(struct hoist *hoist, uint32_t group);
void     hoist_unpin_all(struct hoist *hoist);

/* --- rounds ----------------------------------------------------------------------------------- */

/* A read of so many tokens in this round. */
enum read_outcome hoist_read(struct hoist *hoist, uint32_t prompt, uint32_t tokens);
/* It must get under way. */
struct lease hoist_ask(struct hoist *hoist, uint32_t prompt, uint32_t tokens);
void         hoist_offer(struct hoist *hoist, uint32_t prompt, uint32_t group, uint32_t page);

/* The next tick brings this. */
void hoist_fact(struct hoist *hoist, const struct fact *fact);
void hoist_notice(struct hoist *hoist, uint64_t op_id);
/* What the store says of an op; a PUT is stored. */
struct fact hoist_answer(struct hoist *hoist, const struct op *op);
/* Begin and tick, with what was queued, then audit. */
void hoist_tick(struct hoist *hoist);
/* A tick with the store's answer to the last op. */
void hoist_serve(struct hoist *hoist);
void hoist_tick_of(struct hoist *hoist, struct fact fact);

/* A read as far as its GET. */
struct op hoist_get(struct hoist *hoist, uint32_t prompt, uint32_t tokens);

uint32_t  hoist_op_count(const struct hoist *hoist);
struct op hoist_last_op(const struct hoist *hoist);
/* The one wake of the round. */
struct transfer_wake hoist_wake(const struct hoist *hoist);

/* --- expectations, which panic -------------------------------------------------------------- */

/* The one wake of the round. */
void hoist_expect_wake(const struct hoist *hoist, struct lease lease, enum read_outcome outcome);
/* Nothing is held and nothing waits: what every story must come to. */
void hoist_expect_home(const struct hoist *hoist);
/* The last op of the round. */
void     hoist_expect_cancel(const struct hoist *hoist, uint64_t op_id);
uint64_t hoist_counter(const struct hoist *hoist, enum transfer_counter counter);
uint64_t hoist_drops(const struct hoist *hoist, enum backup_drop reason);

#define HOIST_FULL 0u
#define HOIST_STATE 1u

#endif
