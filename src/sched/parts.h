/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef SCHED_PARTS_H
#define SCHED_PARTS_H

#include "base/ring.h"
#include "sched/chunk.h"
#include "sched/request.h"

/* Why the last first chunk or later one was not planned. */
enum planned {
	PLANNED,          /* it is in the batch */
	PLAN_LATER,       /* for want of budget, a place, a load ticket, or of an image under way */
	PLAN_NO_ROOM,     /* Device has none */
};

/* The forward that is being built. */
struct forward {
	uint32_t budget;     /* tokens left */
	uint32_t row_count;
	uint32_t prefills;
	enum batch_kind kind; /* of the last row; a DECODE rank's are all of one */
	bool     closed;     /* to first chunks: nobody overtakes the one that has to wait */
	bool     stopped;    /* but for tails, whose room is theirs: they alone may make some */
	bool     no_room;    /* an admission failed for want of Device's blocks */
	bool     behind_saves; /* ... and it would not once the saves are done */
	uint32_t blocked;    /* the first such request; SLOT_NONE */
};

struct sched {
	struct sched_options options;
	struct kvs_namespace space;
	struct cache        *cache;
	struct candidates    candidates;  /* Host only */
	struct mover         mover;
	struct snapshots     snapshots;   /* snapshot_max of 0: not open */
	struct tails         tails;       /* without a store */
	struct tail         *tail_list;   /* of the prompt at hand */
	uint32_t             tail_max;
	struct transfer     *transfer;    /* NULL without a store */
	struct owner         owner;
	bool                 has_state;
	bool                 streaming;   /* what Device gains is saved at once */
	bool                 delivered;   /* the outputs were in a plan */
	struct candidate    *saved;       /* names of the ticket at hand */
	uint32_t             request_limit;
	uint64_t             now_ns;

	struct request *requests;         /* [request_max] */
	int32_t        *tokens;           /* [request_max][request_tokens_max] */
	struct prefix_hash *hashes;       /* [request_max][page_max] */
	uint32_t        page_max;
	struct slots    slots;
	struct map      ids;
	struct link    *links;            /* of lists */
	struct list     lists[REQUEST_STATE_COUNT];
	struct link    *unprepared_links;
	struct list     unprepared;       /* storage was not considered yet, in order of submission */
	uint32_t        barrier;          /* served before recovery; SLOT_NONE */
	bool            cramped;          /* somebody alone found no room: how blocks lie is in the way */
	bool            draining;         /* no SUBMITTED is admitted until those that compute have ended */

	/* Places of the batch. */
	struct ring     places;           /* free ones, in order of their return */
	struct table   *tables;           /* [batch_max][group_count] */
	uint32_t       *table_slots[GROUPS_MAX]; /* [batch_max][slot_max] */
	uint32_t        slot_max[GROUPS_MAX];
	uint32_t        table_tokens;     /* that a table has slots for */

	/* The plan. */
	struct batcher      batcher;
	uint32_t           *heap;         /* [request_max] candidates, see order.c */
	uint32_t            heap_count;
	struct forward      forward;
	uint64_t           *copies;
	uint32_t            copy_count;
	struct sched_result *ended;       /* [request_max] */
	uint32_t            ended_count;
	struct explain_counts counts;
	struct sched_plan   plan;
};

static inline uint32_t request_slot(const struct sched *sched, const struct request *request)
{
	return (uint32_t)(request - sched->requests);
}

static inline const struct groups *groups_of(const struct sched *sched)
{
	return cache_groups(sched->cache);
}

/* submit.c; NULL: no live request has the id. */
struct request *request_find(const struct sched *sched, const char *id);
/* Hash the full pages that are known and were not hashed yet. */
void request_hash(const struct sched *sched, struct request *request);
struct prompt request_prompt(const struct sched *sched, const struct request *request);

/*
 * place.c: a place in the batch, and its tables.  Lent first, empty, for an admission that may be
 * refused; false: none is free.
 */
bool place_lend(struct sched *sched, struct request *request);
void place_take(struct sched *sched, struct request *request);
void place_give_back(struct sched *sched, struct request *request);
void place_audit(const struct sched *sched);

/* publish.c: what a request has completed gets its names. */
struct cache_completed completed_of(const struct sched *sched, struct request *request,
				    uint64_t computed);
void completed_note(struct request *request, const struct cache_completed *completed);
/* For an admission that may put named blocks into slots: the fence of what the request reads. */
uint64_t fence_of(const struct sched *sched, const struct request *request);
void finish_publish(struct sched *sched, struct request *request);

/* order.c: candidates of a forward. */
void     order_fill(struct sched *sched);
uint32_t order_pop(struct sched *sched); /* SLOT_NONE when there is none */

/* Tokens of its prompt that may be restored. */
uint32_t     request_bound(const struct sched *sched, const struct request *request);

/* admit.c, forward.c: a row for a request. */
enum planned admit_first(struct sched *sched, struct request *request);
enum planned forward_chunk(struct sched *sched, struct request *request);
enum planned forward_decode(struct sched *sched, struct request *request);
void         forward_build(struct sched *sched);
/* A peer's prompt has its blocks: its row. */
void         forward_remote(struct sched *sched, struct request *request, uint32_t begin);
/* A chunk has its blocks: its row, and the request's next state. */
void         forward_prefilled(struct sched *sched, struct request *request, uint32_t begin,
			       uint32_t token_count);
/* Remember that it found no room, and whether it would without the saves. */
void         forward_no_room(struct sched *sched, const struct request *request,
			     const struct cache_admission *admission);
/* How many tokens of the prompt next; 0: later.  *ret_tail: those behind, for another forward. */
uint32_t     forward_size(const struct sched *sched, const struct request *request, uint32_t first,
			  uint32_t promotion, uint32_t *ret_tail);
/*
 * Tokens that have their cache for sure.  Of what is known, a decoding request lacks one step's:
 * the drafts of a longer step may have been refused, and the last one sampled has none.
 */
uint32_t     forward_computed(const struct sched *sched, const struct request *request);
/* Tokens of room that a prompt's end leaves for the first decode step. */
uint32_t     forward_decode_room(const struct sched *sched);

/* retract.c */
void retract_image(struct sched *sched, struct request *request);
void retract_release(struct sched *sched, struct request *request);
void retract_drop_image(struct sched *sched, struct request *request);
void retract_for_room(struct sched *sched);

/* prepare.c, storage.c: storage.  Without a store all but the tails do nothing. */
int  storage_open(struct sched *sched, struct kvs_error *err);
void storage_close(struct sched *sched);
size_t storage_bytes(const struct sched *sched);
/* Before anything that may have outputs. */
void storage_begin(struct sched *sched);
void storage_tick(struct sched *sched, const struct tick *tick);
void storage_wake(struct sched *sched);
void storage_prepare(struct sched *sched, const struct tick *tick);
void storage_outputs(struct sched *sched);
/* It is not considered any more, if it was not yet. */
void storage_forget(struct sched *sched, struct request *request);
void storage_drop_lease(struct sched *sched, struct request *request);
void storage_published(struct sched *sched, const struct cell_name *name);
void storage_offer(struct sched *sched, const struct cell_name *name);
bool storage_fetched(const struct sched *sched, const struct request *request, uint32_t group,
		     uint32_t block);
/* The blocks that its read brought are still held for it. */
bool storage_is_held(const struct sched *sched, const struct request *request);
const struct tails *storage_tails(const struct sched *sched);
void storage_record_tail(struct sched *sched, const struct prefix_hash *prior, uint32_t token_count,
			 const struct prefix_hash *hash);

void                 storage_set_intent(struct sched *sched, bool intent);
const char          *storage_in_the_way(const struct sched *sched); /* NULL: nothing */
void                 storage_clear(struct sched *sched);
struct transfer_load storage_load(const struct sched *sched);
uint64_t             storage_wake_ns(const struct sched *sched);
void                 storage_audit(const struct sched *sched);

/* why.c: the explanation of a first admission. */
void why_admitted(struct sched *sched, struct request *request,
		  const struct cache_admitted *admitted, uint32_t bound);

/* plan.c */
void plan_copy(struct sched *sched, uint64_t ticket); /* 0: none */

#endif
