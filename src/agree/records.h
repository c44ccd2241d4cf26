/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is under way, by its id: ops or copies, and which owners have reported each.
 *
 * A round is checked before anything of it counts.  What it says is noted beside the record, in
 * `now`; the records that it spoke of are in a list, so that both taking it in and forgetting it
 * again cost what the round says and no more.
 */
#ifndef AGREE_RECORDS_H
#define AGREE_RECORDS_H

#include "base/map.h"
#include "base/slots.h"
#include "op/op.h"

/* Sets of owners: a bit a rank. */
struct record_round {
	uint64_t reported;
	uint64_t doubted;    /* of them, those that said unretired */
	uint64_t taken_back; /* whose notice came */
};

struct record {
	uint64_t            id; /* the map's key */
	uint64_t            reported;
	uint64_t            doubted; /* owners that said unretired, and have not taken it back */
	struct record_round now;     /* all clear between rounds */
	bool                touched; /* in the list of this round */
	enum op_kind        kind;    /* of an op */
	uint32_t            key_count;
};

struct records {
	struct record *record;
	struct slots   slots;
	struct map     ids;
	uint64_t       last_id; /* ids grow */
	uint32_t      *touched; /* slots, each once */
	uint32_t       touched_count;
};

/* 0, or -ENOMEM; max 0 is a table that nothing is ever put into.  Close after an error, too. */
int    records_open(struct records *records, uint32_t max);
void   records_close(struct records *records);
size_t records_bytes(const struct records *records);

/* A record of nothing but its id.  Asserts room, and that ids grow. */
struct record *records_add(struct records *records, uint64_t id);
void           records_end(struct records *records, struct record *record);

/* NULL when nothing under way has this id. */
struct record *records_find(struct records *records, uint64_t id);

/* The round speaks of this record. */
void records_touch(struct records *records, struct record *record);

/* Bring the touched records into the order of their ids. */
void records_sort(struct records *records);

/* Forget what the round said. */
void records_forget(struct records *records);

/* O(n), between rounds: owners is the set of all. */
void records_audit(const struct records *records, uint64_t owners);

#endif
