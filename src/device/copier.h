/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy engine: moves whole blocks between Device and Host, and says when it is safe to read them.
 *
 * Work is submitted in batches, each with the caller's ticket number, to one of two streams.  A
 * stream runs its batches one after the other in the order of their submission, each as a whole: first the
 * zeros, then the pairs, then the clones.  When all of a batch is done its *fence* is passed:
 * poll() reports its ticket, once, in the order of the stream.  Nothing that a batch writes may be
 * read, and nothing that it reads may be written, before poll() has reported it or wait() has said
 * that the stream is idle; only a later batch of the same stream may rely on it earlier, and so may
 * whoever else is ordered behind the stream.  That a store is done with a Host block is no fence.
 *
 *   LOAD  Host to Device.  Zeros make fresh blocks blank before they are used: a block that is loaded
 *         or cloned into is no fresh block, and no batch writes a Device block twice (asserted).  A
 *         clone copies a Device block into another one, each field whole: its valid part need not be
 *         the front of a field.  It sees what the batch loaded.
 *   SAVE  Device to Host.  What the caller computed before submit() is saved.
 *
 * There is no failed copy: an engine that cannot copy ends the process.
 *
 * Open     Device buffers, Host region and layout are bound at open, and every table is there then:
 *          the first batch finds everything the thousandth finds.  A batch's own rows are copied into
 *          the engine's tables at submit(), and stay there until its fence.
 * Limits   ticket_max tickets of a stream that are submitted and not polled, row_max zeros, pairs and clones
 *          of a stream that are not behind their fence.  A full one refuses, which is counted.
 *          Tables that large are there from open: numbers past the two maxima, or for which there is
 *          too little memory, are refused before anything is made.
 * Threads  One caller; what an engine runs on is its own.
 */
#ifndef DEVICE_COPIER_H
#define DEVICE_COPIER_H

#include "arena/arena.h"
#include "device/layout.h"

enum copier_stream { COPIER_LOAD, COPIER_SAVE };
#define COPIER_STREAMS 2

/* Far more fences than anybody waits for. */
#define COPIER_TICKETS_MAX (1u << 20)
/* Each block of a terabyte, 4 KiB a block, in one stream. */
#define COPIER_ROWS_MAX (1u << 28)

/* Block numbers are those of the group, from 1, on either side. */
struct copier_block {
	uint32_t group;
	uint32_t block; /* on the Device */
};

struct copier_pair {
	uint32_t group;
	uint32_t device_block;
	uint32_t host_block;
};

struct copier_clone {
	uint32_t group;
	uint32_t source; /* both on the Device */
	uint32_t target;
};

/* What comes behind one fence.  Empty is fine: its fence is passed when it is its turn. */
struct copier_batch {
	uint64_t                   ticket; /* the caller's; any value */
	const struct copier_block *zeros;  /* LOAD only */
	uint32_t                   zero_count;
	const struct copier_pair  *pairs;
	uint32_t                   pair_count;
	const struct copier_clone *clones; /* LOAD only */
	uint32_t                   clone_count;
};

struct copier_done {
	enum copier_stream stream;
	uint64_t           ticket;
};

struct copier_options {
	const struct layout     *layout;  /* held until close */
	void *const             *buffers; /* the layout's Device buffers, in its order */
	const struct arena_part *host;    /* each block of it is one parent; held until close */
	uint32_t                 ticket_max; /* 1 to COPIER_TICKETS_MAX */
	uint32_t                 row_max;    /* 1 to COPIER_ROWS_MAX */
};

/* Of one stream, from open. */
struct copier_stats {
	uint64_t submitted;   /* tickets */
	uint64_t refused;     /* by a full table */
	uint64_t pairs;
	uint64_t pair_bytes;
	uint64_t zero_bytes;
	uint64_t clone_bytes;
	uint64_t copies;      /* calls that moved pairs: adjacent blocks may share one */
	uint64_t busy_ns;
};

/* How an engine moves a group's blocks. */
enum copier_way {
	COPIER_DIRECT, /* a block is one piece, and blocks that touch on both sides move together */
	COPIER_GATHER  /* a block is gathered from its pieces, or scattered to them, in one pass */
};

struct copier;

/* An engine.  Batches that reach it have been checked for all that copier_submit() asserts. */
struct copier_ops {
	const char *name;
	/* False when a table is full; nothing changed then. */
	bool (*submit)(struct copier *copier, enum copier_stream stream,
		       const struct copier_batch *batch);
	/* The stream's oldest ticket that is behind its fence and was not reported. */
	bool (*poll)(struct copier *copier, enum copier_stream stream, uint64_t *ret_ticket);
	/* Until all that was submitted to the stream is behind its fence; false after timeout_ns. */
	bool (*wait)(struct copier *copier, enum copier_stream stream, uint64_t timeout_ns);
	void (*stats)(struct copier *copier, enum copier_stream stream,
		      struct copier_stats *ret_stats);
	/* Waits for all that was submitted. */
	void (*close)(struct copier *copier);
	void (*audit)(struct copier *copier);
};

/* A piece of the layout where it really is. */
struct copier_piece {
	uint8_t *device; /* virtual block 0 */
	uint64_t stride;
	uint64_t bytes;
	uint64_t host_offset;
};

/* What every engine has, first in its own struct. */
struct copier {
	const struct copier_ops *ops;
	const struct layout     *layout;
	const struct arena_part *host;
	struct hostmap           hostmap; /* of the Host region */
	struct copier_piece     *pieces;  /* as in the layout */
	enum copier_way          way[HOSTMAP_GROUPS_MAX];
	uint64_t                *written; /* a bit a Device block: written by the batch being checked */
	uint64_t                 first_bit[HOSTMAP_GROUPS_MAX];
	uint32_t                 row_max;
	uint64_t                 refused[COPIER_STREAMS];
};

/* --- for callers ------------------------------------------------------------------------------ */

/*
 * 0, or KVS_E_FULL: nothing happens, and no fence follows.
 *
 * The batch is the caller's own work and not input.  Asserted: every group and block exists, no more than
 * row_max zeros, pairs and clones together, none but pairs on SAVE, no Device block is written twice by a
 * LOAD, no clone of a block into itself.  Not looked at: that a SAVE names a Host block once; its bytes
 * would be those of any of its pairs.
 */
int copier_submit(struct copier *copier, enum copier_stream stream,
		  const struct copier_batch *batch);

/* A ticket behind its fence, SAVE before LOAD; false when there is none. */
bool copier_poll(struct copier *copier, struct copier_done *ret_done);

/*
 * For the end, and for callers without anything else to do.  Reports nothing: poll() still does.
 * CPU_STEPPED: wait() runs nothing; step first.
 */
bool copier_wait(struct copier *copier, enum copier_stream stream, uint64_t timeout_ns);

void copier_stats(struct copier *copier, enum copier_stream stream, struct copier_stats *ret_stats);

/* Waits for all copies: afterwards nobody touches Device or Host memory.  NULL is fine. */
void copier_close(struct copier *copier);

void copier_audit(struct copier *copier);

/* --- for engines ------------------------------------------------------------------------------ */

/**
 * Check what an engine is opened with, before anything is made.
 *
 * engine_bytes  what its own tables take, beside those of copier_bind().
 * Errors  KVS_E_INVALID  ticket_max, row_max, or a Host part whose blocks hold no parent;
 *         -ENOMEM        the tables would take more memory than is to be had.
 */
int copier_check(const struct copier_options *options, uint64_t engine_bytes,
		 struct kvs_error *err);

/**
 * Bind everything that a copy needs, once it was checked; undone by copier_unbind(), also after an
 * error.
 *
 * Errors  -ENOMEM
 */
int  copier_bind(struct copier *copier, const struct copier_ops *ops,
		 const struct copier_options *options, struct kvs_error *err);
void copier_unbind(struct copier *copier);

static inline const struct copier_piece *copier_pieces(const struct copier *copier, uint32_t group)
{
	return copier->pieces + copier->layout->group[group].first_piece;
}

/* Where a Host block begins. */
static inline uint8_t *copier_host(const struct copier *copier, uint32_t group, uint32_t block)
{
	return hostmap_span(&copier->hostmap, copier->host, group, block).ptr;
}

#endif
