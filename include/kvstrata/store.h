/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store interface: what an author of a storage backend implements.
 *
 * A backend is one table of functions.  Executor workers call it; engines, schedulers and
 * controllers never do.  Most backends are synchronous: get and put return when they are done.  One
 * that is asynchronous by nature implements submit and reap instead and keeps its queue full.
 *
 * Retirement   comes first.  Every call that is given spans says whether anything may still touch
 *              them after it returned.  True is a proof, not a guess: false is the default, and a
 *              false claim of true lets late bytes land in somebody else's block.  It is a fact of
 *              its own, apart from success: a failed read may have retired, and a successful one
 *              may not.
 * Results      are per key.  A miss, a wrong length and an object already there are results; the
 *              return value of a call is an error only when the whole call did not happen, and then
 *              every result is UNKNOWN.
 * Buffers      belong to the caller and are used in place.  A span's room counts the bytes that may
 *              be touched at its address: behind the payload lies a trailer, the store's to use
 *              during the call for a checksum and an identity.  Payload is never written by a put.
 * Duplicates   never reach a backend: the executor folds equal keys of a batch.
 * Threads      Calls come from several workers at once, unless describe() says one_thread.  close()
 *              comes last and alone.
 * Identity     A get hands out bytes only if they are the whole object of exactly that key; what
 *              can be checked is checked on every read.
 */
#ifndef KVSTRATA_STORE_H
#define KVSTRATA_STORE_H

#include <stdbool.h>

#include <kvstrata/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The shape of the table below.  A plugin of another number is refused, with both numbers named. */
#define KVS_STORE_ABI 4u

/* What the store knows of one key after a call. */
enum kvs_result {
	KVS_RESULT_UNKNOWN = 0, /* not tried, or nothing came of it: no evidence about the object */
	KVS_RESULT_DONE,        /* get: exact bytes, verified; put: written; exists: found; removed */
	KVS_RESULT_EXISTS,      /* put: already there, nothing moved; a success */
	KVS_RESULT_MISSING,     /* get, exists, lock, remove: no such object */
	KVS_RESULT_CORRUPT,     /* get: there, but wrong in length, identity or checksum */
	KVS_RESULT_NO_SPACE,    /* put: refused for capacity; a later offer may succeed */
	KVS_RESULT_FAILED       /* the medium or the peer failed: evidence of an outage */
};

/* What survives.  Each includes the one before. */
enum kvs_durability {
	KVS_DURABILITY_NONE,    /* objects go with the process */
	KVS_DURABILITY_PROCESS, /* they survive the end of the process, however it ends */
	KVS_DURABILITY_PUT      /* an acknowledged put survives power loss */
};

/* What the death of a process that does the store's I/O proves about its spans. */
enum kvs_death { KVS_DEATH_NOTHING, KVS_DEATH_COPY, KVS_DEATH_DEVICE };

struct kvs_store_info {
	uint64_t            capacity_bytes;  /* hard limit; 0 when unknown */
	uint64_t            used_bytes;      /* of it, metadata included */
	uint64_t            object_count;    /* present */
	uint64_t            evicted_objects; /* since open */
	uint64_t            corrupt_objects; /* found wrong since open */
	uint64_t            memory_bytes;    /* index and buffers kept in memory */
	uint64_t            written_bytes;   /* to the medium, ever, all counted; 0 when unknown */
	uint64_t            moved_objects;   /* written again to make room, since open */
	uint64_t            refused_budget;  /* puts past the daily write budget, since open */
	uint64_t            refused_admission; /* first offers, where the second counts, since open */
	uint64_t            refused_full;    /* puts for which nothing could make room, since open */
	enum kvs_durability durability;
	enum kvs_death      death_retires;
	bool                failures_retire; /* a failed or malformed call has left its spans */
	bool                verified;        /* every get is checked against a checksum */
	bool                direct;          /* payload goes past the page cache */
	bool                locks;           /* lock() keeps objects from eviction; else advisory */
	bool                one_thread;      /* calls must not overlap; not together with submit() */
	/*
	 * The peer has not been reached since open.  Told for the executor, which asks once at open
	 * and then begins in cooldown, with the first probe allowed at once; outages that come
	 * later show in results.
	 */
	bool                away;
	char                note[128];       /* one sentence a user should know; "" for none */
};

/* One "key=value" of a store's spec, as the user wrote it. */
struct kvs_store_option {
	const char *key;
	const char *value;
};

/* What a store is opened with; the caller's, valid during open(). */
struct kvs_store_config {
	size_t                         struct_size;
	const char                    *place;  /* what follows "KIND:", without the options */
	const struct kvs_store_option *options; /* keys are those of the table, each once */
	uint32_t                       option_count;
	uint64_t                       block_bytes;   /* the largest payload; a multiple of 4 KiB */
	uint64_t                       trailer_bytes; /* room behind each payload, at least */
	const char                    *evict_policy;  /* for stores that evict: lru, fifo, ...; none: never */
};

/* Memory that spans will come from; what it points to is the caller's, valid during the call. */
struct kvs_memory {
	const struct kvs_span *slices;      /* of at most 1 GiB each */
	uint32_t               slice_count;
	/* The memfd whose bytes they are, in order, from its start; -1: none. */
	int                    fd;
};

/* One row for submit(): a get or a put of one key. */
struct kvs_io {
	uint64_t              cookie; /* comes back with the completion */
	bool                  is_put;
	const struct kvs_key *key;    /* held, with the span, until the completion */
	struct kvs_span       span;
};

struct kvs_io_done {
	uint64_t        cookie;
	enum kvs_result result;
	bool            retired;
};

/* The head of every backend's own struct. */
struct kvs_store {
	const struct kvs_store_ops *ops;
};

/**
 * The table of a backend.  A batch call takes count >= 1 distinct keys and writes count results.
 *
 * Errors   A batch call returns 0 when result[] is filled, or a negative code when nothing was done:
 *          then every result is UNKNOWN, and *ret_retired still tells the truth about the spans.
 *          KVS_E_INVALID: a span is empty, larger than block_bytes, or not aligned as the store
 *          needs it.
 */
struct kvs_store_ops {
	uint32_t           abi;     /* KVS_STORE_ABI */
	const char        *name;    /* the KIND of a spec */
	const char *const *options; /* keys it understands, NULL-terminated; NULL: open() checks */

	/**
	 * Open what config names.
	 *
	 * Owner   *ret_store is the executor's until close().
	 * Errors  KVS_E_INVALID, KVS_E_BUSY, KVS_E_PROTO or -errno with one sentence in err that
	 *         names the field, its value and the rule; nothing is left open or created.
	 */
	int (*open)(const struct kvs_store_config *config, struct kvs_store **ret_store,
		    struct kvs_error *err);

	/*
	 * Free everything and return 0; or KVS_E_QUARANTINE when I/O of the store may still touch
	 * spans: then nothing was freed, and the store stays until the process ends.  Nobody bounds
	 * this call: it waits for I/O of its own no longer than a user would for the end of a
	 * process.
	 */
	int (*close)(struct kvs_store *store);

	/* From any thread, at any time between open and close; never waits for I/O. */
	void (*describe)(struct kvs_store *store, struct kvs_store_info *ret_info);

	/* Touches no payload.  A hit counts as a use for the eviction order. */
	int (*exists)(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result);

	/*
	 * Exactly span[i].bytes each, verified; a shorter or longer object is CORRUPT.  A wrong
	 * length of the caller's destroys nothing: the object stays, and its own length is DONE.
	 */
	int (*get)(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		   uint32_t count, enum kvs_result *result, bool *ret_retired);

	/*
	 * Create-only: an object that exists stays as it is and the result is EXISTS.  While
	 * another call writes the key, the result is UNKNOWN: it is not stored yet, and that write
	 * may fail.
	 */
	int (*put)(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		   uint32_t count, enum kvs_result *result, bool *ret_retired);

	/* Locked objects are removed too: the owner of the namespace asks for it. */
	int (*remove)(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result);

	/*
	 * Administrative: may take long, and no op waits for it.  List up to key_max keys of a
	 * namespace (NULL: all) from *cursor, 0 at first and 0 again at the end; objects that come
	 * and go meanwhile may be missed or told twice.  NULL where a store cannot.
	 */
	int (*list)(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *cursor,
		    struct kvs_key *keys, uint32_t key_max, uint32_t *ret_count);

	/* Remove every object of a namespace; how many.  NULL where a store cannot. */
	int (*purge)(struct kvs_store *store, const struct kvs_namespace *space,
		     uint64_t *ret_count);

	/*
	 * Optional, both or neither.  lock() is exists() that also keeps each object found from
	 * eviction until one unlock() for it; locks count.  Without them the executor counts, and
	 * its locks are advisory.  unlock() of a key that is gone is no error.
	 */
	int (*lock)(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		    enum kvs_result *result);
	void (*unlock)(struct kvs_store *store, const struct kvs_key *key, uint32_t count);

	/*
	 * Optional.  Memory that spans will come from, told once before the first batch; it stays
	 * mapped, and its descriptor open, until close() succeeded.  A failure is not fatal: the
	 * store works unregistered, as far as it can, and says so in its note.
	 */
	int (*register_memory)(struct kvs_store *store, const struct kvs_memory *memory);

	/*
	 * Optional: the proof that comes later, asked for while something is in doubt.  True when
	 * nothing that calls which had returned before this one left unretired can touch memory
	 * any more.  A reap() that failed left so what it had not answered.  Never waits.  A store
	 * without it never proves anything late.
	 */
	bool (*settled)(struct kvs_store *store);

	/*
	 * Optional, both or neither, and not in a store of one_thread: its other calls would wait
	 * with reap().  Instead of get and put, which may then be NULL.  Each worker
	 * is a lane of its own, 0 .. 63, and calls both for its lane only.  submit() takes the
	 * first of count rows, as many as its queue has room for, and returns how many; each row
	 * taken is answered exactly once by reap(), in any order.  A lane with no row unanswered
	 * has room for one at least: rows of which it takes none then have failed, and so have
	 * those of a call that returns a negative code.  reap() waits at most timeout_ns
	 * when nothing is there, and returns how many completions it wrote.
	 */
	int (*submit)(struct kvs_store *store, uint32_t lane, const struct kvs_io *io,
		      uint32_t count);
	int (*reap)(struct kvs_store *store, uint32_t lane, struct kvs_io_done *ret_done,
		    uint32_t done_max, uint64_t timeout_ns);
};

/*
 * A backend of its own in a shared object: loaded on first use by
 * "plugin:./libshelf.so?key=value".  The object exports one function.
 */
typedef const struct kvs_store_ops *kvs_store_plugin_entry(void);
#define KVS_STORE_PLUGIN_SYMBOL "kvs_store_plugin"

#define KVS_STORE_PLUGIN(table) \
	KVS_PLUGIN_ENTRY const struct kvs_store_ops *kvs_store_plugin(void); \
	const struct kvs_store_ops *kvs_store_plugin(void) \
	{ \
		return &(table); \
	}

#ifdef __cplusplus
}
#endif

#endif
