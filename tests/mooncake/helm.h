/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor at a cluster, as an owner of blocks has one: ops in slots, each with keys and memory of
 * its own.
 *
 * A payload's bytes follow from its key's number and replica.  A fact is checked when it comes: right
 * bytes where it says ok, nothing touched in rows of others, and retired always, for the store waits
 * long enough for the end of its agents.
 */
#ifndef MOONCAKE_HELM_H
#define MOONCAKE_HELM_H

#include "exec/exec.h"
#include "mooring.h"

#define HELM_SLOTS 6u
#define HELM_ROWS 32u
#define HELM_BYTES 65536u /* of each payload */

struct helm_slot {
	struct op       op;
	struct fact     fact;
	bool            busy;
	struct kvs_key  keys[HELM_ROWS];
	struct kvs_span spans[HELM_ROWS];
};

struct helm {
	struct mooring   mooring; /* its memory */
	struct exec     *exec;
	uint64_t         last_id;
	struct helm_slot slots[HELM_SLOTS];
};

/* Options are the store's, as those of mooring_spec(). */
void helm_open(struct helm *helm, const struct cluster *cluster, const char *options);
void helm_close(struct helm *helm);

/* Keys of first .. first + count - 1 into an idle slot. */
struct helm_slot *helm_name(struct helm *helm, uint32_t slot, uint32_t first, uint32_t count);
/* Rows i with i % 2 == owner are this owner's; all are until then. */
void helm_own_every_second(struct helm_slot *slot, uint32_t owner);
/* All rows are of this replica. */
void helm_replicate(struct helm_slot *slot, uint16_t replica);

/* The code of exec_submit(); the slot is busy when it is 0. */
int helm_submit(struct helm *helm, uint32_t slot, enum op_kind kind);

/* Facts that wait; returns how many came. */
uint32_t helm_poll(struct helm *helm);
/* Until the slot's fact has come. */
const struct fact *helm_await(struct helm *helm, uint32_t slot);
/* The op again and again until every row is ok. */
void helm_await_ok(struct helm *helm, uint32_t slot, enum op_kind kind);

#endif
