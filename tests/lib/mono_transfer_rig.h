/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transfer manager with everything it stands on, and the test in the place of executor and
 * scheduler.
 *
 * Keys are key_of(number).  rig_audit() accounts for every reference on every Host block: the
 * index's own, the tickets', and those that the test took with rig_pin().
 */
#ifndef LIB_MONO_TRANSFER_RIG_H
#define LIB_MONO_TRANSFER_RIG_H

#include "named_block.h"
#include "mono_transfer/transfer.h"

#define RIG_BLOCK_BYTES 4096u
#define RIG_HOST_MAX 64u
#define RIG_KEYS_MAX 8u

struct rig {
	struct arena        *arena;
	struct arena_part    part;
	struct coord         coord;
	struct mono_transfer transfer;
	uint64_t             now_ns;
	uint32_t             pins[RIG_HOST_MAX]; /* the test's */
};

/*
 * Ample: 4 tickets, 32 references, keys_max 8, puts of 4, 8 candidates, deadline 1,000, hold 500.
 */
extern const struct mono_transfer_limits rig_limits;

void rig_open(struct rig *rig, const struct mono_transfer_limits *limits, uint32_t host_blocks);
void rig_close(struct rig *rig);
void rig_audit(struct rig *rig);

/* An idle entry of a stratum; the block. */
uint32_t rig_publish(struct rig *rig, uint32_t number);
uint32_t rig_publish_device(struct rig *rig, uint32_t number);
/* The Host block of a key, or SLOT_NONE. */
uint32_t rig_find(const struct rig *rig, uint32_t number);

void rig_pin(struct rig *rig, uint32_t block);
void rig_unpin(struct rig *rig, uint32_t block);
/* Take every block that can be had, and keep it; returns how many. */
uint32_t rig_pin_all(struct rig *rig);

/* A round's head: begin and tick at now_ns. */
void rig_round(struct rig *rig, const struct fact *facts, uint32_t fact_count);
void rig_round_of(struct rig *rig, struct fact fact);

/* A read of keys first .. first + count - 1 that must get under way; its lease. */
uint64_t rig_read(struct rig *rig, uint32_t request, uint32_t first, uint32_t count);

/* The same as far as its GET: every key is found.  Returns the GET. */
struct op rig_get(struct rig *rig, uint32_t request, uint32_t first, uint32_t count,
		  uint64_t *ret_lease_id);

/* The last op of the round. */
struct op rig_last_op(const struct rig *rig);

/* A fact with these rows ok. */
struct fact rig_fact(const struct op *op, uint64_t ok_rows, bool retired);
struct fact rig_refused(const struct op *op, enum op_reason reason);

#define RIG_ALL_ROWS UINT64_MAX

#endif
