/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store interface: what an author of a storage backend implements.
 *
 * A backend is a small table of synchronous batch calls, run by executor workers.
 *
 * Retirement   comes first.  A call reports in *ret_retired whether anything may still touch the
 *              spans it was given after it returned.  True is a proof, not a guess: false is the
 *              default, and a false claim of true corrupts an engine's memory.  It is a fact of its
 *              own, apart from success.
 * Results      are per key.  A miss, a wrong length and an object already there are results
 *              (facts); the return value of a call is an error only when the whole call did not
 *              happen.
 * Buffers      belong to the caller and are used in place.
 * Threads      Calls may come from several workers at once unless describe() says otherwise.
 */
#ifndef KVSTRATA_STORE_H
#define KVSTRATA_STORE_H

#include <stdbool.h>

#include <kvstrata/kvstrata.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the store knows of one key after a call. */
enum kvs_result {
	KVS_RESULT_UNKNOWN = 0, /* not tried, or nothing came of it: no evidence about the object */
	KVS_RESULT_DONE, /* get: exact bytes, verified; put: newly written; exists: found; removed */
	KVS_RESULT_EXISTS,  /* put: already there, nothing moved; a success */
	KVS_RESULT_MISSING, /* get, exists, remove: no such object */
	KVS_RESULT_CORRUPT, /* get: present but wrong in length, identity or checksum; never data */
	KVS_RESULT_NO_SPACE, /* put: refused for capacity; a later offer may succeed */
	KVS_RESULT_FAILED    /* the medium or the peer failed */
};

struct kvs_store_limits {
	uint64_t capacity_bytes;  /* hard limit; 0 when unknown */
	uint64_t used_bytes;      /* of it, metadata included */
	uint64_t object_count;    /* objects present */
	uint64_t evicted_objects; /* since open */
	uint64_t corrupt_objects; /* found wrong and set aside since open */
	uint64_t memory_bytes;    /* index and buffers the store keeps in memory */
	bool     failures_retire; /* a failed or malformed call has stopped touching spans */
	bool     persistent;      /* objects outlive a clean close */
	bool     verified;        /* every get is checked; false only where a test switched it off */
	bool     direct;          /* payload goes past the page cache (O_DIRECT), as far as files can */
};

struct kvs_store;

/**
 * The table of a backend.  Each batch call takes count >= 1 keys and writes count results.
 *
 * Errors   exists, get, put and remove return 0 when result[] is filled, or a negative code when
 *          nothing was done; then every result is UNKNOWN and *ret_retired still tells the truth
 *          about the spans.  KVS_E_INVALID: a span is empty, larger than the block size of the
 *          open, or not aligned as the store needs it.
 */
struct kvs_store_ops {
	const char *name;

	/* Joins nothing and frees everything; the caller's workers have already stopped. */
	void (*close)(struct kvs_store *store);

	void (*describe)(struct kvs_store *store, struct kvs_store_limits *ret_limits);

	/* Touches no payload.  A hit counts as a use for the eviction order. */
	int (*exists)(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result);

	/* Exactly span[i].bytes each, verified; a shorter or longer object is CORRUPT. */
	int (*get)(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		   uint32_t count, enum kvs_result *result, bool *ret_retired);

	/*
	 * Create-only: an object that exists stays as it is and the result is EXISTS.  While
	 * another call writes the key, the result is UNKNOWN: it is not stored yet, and that write
	 * may fail.
	 */
	int (*put)(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		   uint32_t count, enum kvs_result *result, bool *ret_retired);

	int (*remove)(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result);
};

/* The head of every backend's own struct. */
struct kvs_store {
	const struct kvs_store_ops *ops;
};

#ifdef __cplusplus
}
#endif

#endif
