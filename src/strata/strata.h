/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strata file: a log-structured store in one file or on one raw block device.
 *
 * Path         Puts that start together take places side by side in the open segment and go out with
 *              one page of headers; a get reads payload into the caller's block and compares its
 *              checksum.  No payload is copied.
 * Lanes        submit() and reap() drive one io_uring a lane, kept full across batches.  get() and
 *              put() do the same with pread and pwrite; where the kernel has no io_uring, so do
 *              lanes.
 * Capacity     A segment at a time is cleaned to make room: what the eviction policy calls hot is
 *              written again, at most half of it, and the rest is gone.  Locked objects stay, unless the
 *              device lost them.
 * Durability   docs/design/strata-format.md, "What survives".
 * Limits       Memory: 32 bytes an object, the map and the order beside it, a bit a record, a few
 *              drafts of summaries; after open only a lane's first call
 *              allocates, 512 KiB of headers and a ring, and the administrative calls.
 * Threads      Any, but for submit and reap: a lane is one thread's.
 */
#ifndef STRATA_STRATA_H
#define STRATA_STRATA_H

#include <kvstrata/store.h>

#include "base/err.h"

enum strata_durability { STRATA_NONE, STRATA_SEGMENT, STRATA_PUT };

struct strata_settings {
	const char            *path;
	uint64_t               capacity_bytes;     /* 0: the file's own */
	uint64_t               segment_bytes;      /* 0: the file's own, or one that suits */
	uint64_t               block_bytes;        /* the largest payload that will come */
	uint64_t               objects_max;        /* 0: as many as blocks of block_bytes fit, four times */
	const char            *evict_policy;       /* one of evict_giving_names */
	enum strata_durability durability;
	uint64_t               write_budget_bytes; /* a day, all writes; 0: no limit */
	uint64_t               corrupt_every;      /* for tests: a wrong byte in every Nth get */
	bool                   admit_second;       /* take a key when it is offered again */
	bool                   verify;             /* off: for tests */
	bool                   plain_io;           /* no io_uring */
	bool                   read_only;          /* no lock; another may be writing */
	bool                   only_empty;         /* format: nothing but an empty file or device */
	bool                   preallocate;        /* format: give a file all its disk space at once */
};

struct strata;

/**
 * Open, and format what is empty.
 *
 * Errors  KVS_E_INVALID  a size, by field;
 *         KVS_E_BUSY     somebody else has it open; the sentence names him;
 *         KVS_E_PROTO    no strata file, another version, damaged, or of another geometry: it stays
 *                        as it was;
 *         -errno         it cannot be opened, created, read; or memory is short.
 */
int strata_open(const struct strata_settings *settings, const struct kvs_store_ops *ops,
		struct kvs_store **ret_store, struct kvs_error *err);

/**
 * Write a new, empty store over whatever the file or device holds.
 *
 * Errors  As above, and:
 *         -EEXIST             it is not empty, and only_empty was asked for;
 *         -ENOSPC, -EDQUOT    preallocate: the sentence has needed and available bytes.  When that is
 *                             found beforehand, the file stays as it was; else it is left empty;
 *         -EOPNOTSUPP         preallocate: its file system cannot.
 */
int strata_format(const struct strata_settings *settings, struct kvs_error *err);

/* The functions of kvs_store_ops, where their promises are. */
int  strata_close(struct kvs_store *store);
void strata_describe(struct kvs_store *store, struct kvs_store_info *ret_info);
int  strata_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		   enum kvs_result *result);
int  strata_get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		uint32_t count, enum kvs_result *result, bool *ret_retired);
int  strata_put(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		uint32_t count, enum kvs_result *result, bool *ret_retired);
int  strata_remove(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		   enum kvs_result *result);
int  strata_list(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *cursor,
		 struct kvs_key *keys, uint32_t key_max, uint32_t *ret_count);
int  strata_purge(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *ret_count);
int  strata_lock(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		 enum kvs_result *result);
void strata_unlock(struct kvs_store *store, const struct kvs_key *key, uint32_t count);
int  strata_register(struct kvs_store *store, const struct kvs_memory *memory);
int  strata_submit(struct kvs_store *store, uint32_t lane, const struct kvs_io *io, uint32_t count);
int  strata_reap(struct kvs_store *store, uint32_t lane, struct kvs_io_done *ret_done,
		 uint32_t done_max, uint64_t timeout_ns);

/* --- for `kvstrata store` --------------------------------------------------------------------- */

struct strata_report {
	uint8_t  id[16];
	uint32_t version;
	uint64_t capacity_bytes;
	uint64_t segment_bytes;
	uint32_t segment_count;
	uint32_t segments_free;
	uint32_t segments_unsealed; /* as they were found */
	uint64_t live_bytes;        /* payload of objects */
	uint64_t dead_bytes;        /* of records that count no more, and headers, of segments in use */
	uint64_t object_count;
	uint64_t epoch;
	uint64_t put_bytes;         /* payload of puts, ever */
	uint64_t written_bytes;     /* all writes, ever */
	uint64_t day_bytes;         /* and on the day it was last written to */
	uint32_t day;
	uint64_t torn_records;      /* found by recovery: skipped */
	uint64_t stale_records;
	uint64_t foreign_records;
	uint64_t damaged_structures; /* heads, tallies, summaries that do not check */
};

void strata_inspect(struct kvs_store *store, struct strata_report *ret_report);

/* A segment, for its age; false behind the last. */
struct strata_segment_report {
	const char *state;
	uint64_t    sequence;
	uint64_t    live_bytes;
	uint32_t    live_count, record_count;
};
bool strata_inspect_segment(struct kvs_store *store, uint32_t segment,
			    struct strata_segment_report *ret_report);

/* Damage that lies in no segment. */
#define STRATA_NO_SEGMENT UINT32_MAX

/* One object, or piece of damage, as a walk comes by it. */
struct strata_finding {
	const struct kvs_key *key;    /* NULL: a structure */
	uint64_t              bytes;  /* of payload */
	uint32_t              segment;
	uint64_t              offset; /* in the file */
	const char           *damage; /* NULL: none was found */
};
/* False: stop. */
typedef bool strata_see(void *ctx, const struct strata_finding *finding);

/**
 * Walk all objects, segment by segment, in the order they lie; with `verify` every payload and header
 * is read and its checksum compared, and so is every superblock, head, tally and summary.
 *
 * Errors  -ENOMEM; damage is a finding, also where the device does not give the bytes.
 */
int strata_walk(struct kvs_store *store, bool verify, strata_see *see, void *ctx);

/* O(n), while nothing runs. */
void strata_audit(struct kvs_store *store);

#endif
