/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Door B: bytes by key, for engines that have their own block hashes and want no scheduler.
 *
 * Write: reserve, fill in place, finish; the stores get it in the background.  Read: submit a
 * prefetch early, wait late, read in place, release.  From any thread.
 *
 *   kvs_reserve_write -> fill -> kvs_finish_write
 *   kvs_prefetch_submit -> ... -> kvs_prefetch_wait, kvs_prefetch_spans -> read -> kvs_prefetch_release
 *
 * Objects    are written once.  A key that is being written does not exist for readers; when two
 *            write one key, the first to finish is kept and the other's bytes are dropped: both
 *            succeed.
 * Clients    own what they hold: reservations, locks, prefetches.  Closing a client gives all of it
 *            back.
 * Handles    of clients and prefetches are numbers that are never used again: one that is used
 *            after its close, or after kvs_close(), is answered with KVS_E_STALE or KVS_E_CLOSED.
 *            A kvs keeps a few bytes for that after its close.  Calls that run while kvs_close()
 *            does are the caller's mistake.
 * Rows       of a batch answer for themselves in ret_rc: 0, KVS_E_MISSING, KVS_E_EXISTS,
 *            KVS_E_LOCKED, KVS_E_FULL, ...; a call that fails as a whole has looked at no row.
 *            KVS_E_CLOSED of a row: its client was closed in the middle of the call.
 * Pointers   err may be NULL everywhere, as may ret_number of kvs_store_add(), both counts of
 *            kvs_clear(), the text of kvs_metrics() with no room, and the spans of
 *            kvs_prefetch_spans() with none; every other one is needed: KVS_E_INVALID.
 * Expiry     A reservation ends write_ttl_ns after its call began, a lock read_ttl_ns after the
 *            call or the load that took it: a prefetch's locks on what Host had count from its
 *            submission, and can expire before its result is there.  The memory is another's
 *            then: who still writes into it writes into another's object, who still reads spans of
 *            kvs_lock() or of a prefetch reads another's bytes.
 * Threads    Any, with 160 KiB of stack for a call on a batch.  Nothing here waits for storage but
 *            kvs_prefetch_wait(), kvs_flush(), kvs_store_remove() and kvs_close(), which say for
 *            how long, and kvs_store_add(): it opens its store, and waits for another thread's
 *            kvs_store_add() or kvs_store_remove() as long as that takes.
 */
#ifndef KVSTRATA_MANAGER_H
#define KVSTRATA_MANAGER_H

#include <stdbool.h>

#include <kvstrata/base.h>
#include <kvstrata/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVS_BATCH_MAX    4096u  /* keys of one call that writes, locks or removes */
#define KVS_PREFETCH_MAX 65536u /* keys of one prefetch, where prefetch_keys allows it */
#define KVS_FOREVER      UINT64_MAX

/*
 * Behind each field its default, which KVS_OPTIONS_INIT sets.  A configuration file has the same
 * names; sizes there are "4GiB", durations "250ms" or "never" (KVS_FOREVER), stores a list.
 */
struct kvs_options {
	size_t      struct_size;             /* exactly this version's: kvs_open() takes no other */
	uint64_t    host_bytes;              /* of Host memory for objects, their trailers included; 1 GiB */
	uint64_t    object_bytes;            /* the largest; some stores take as much for each; 16 MiB */
	uint32_t    objects;                 /* in Host, staged ones too; 0: one for each 32 KiB of it */
	uint32_t    clients;                 /* open at once; 64 */
	const char *host_policy;             /* which object goes first; "lru" */
	double      high, low;               /* watermarks of Host, as parts of it; 0.95, 0.90 */
	uint64_t    write_ttl_ns;            /* of a reservation; 600 s */
	uint64_t    read_ttl_ns;             /* of a lock; 300 s */
	bool        isolate;                 /* namespaces are tenants with quotas; false */
	uint64_t    quota_bytes;             /* of a tenant without one of its own; 0: none */
	const char *stores[KVS_ADAPTERS_MAX]; /* specs, in order, NULL behind the last; none */
	const char *store_evict_policy;      /* for stores that evict; "lru" */
	const char *store_policy;            /* "default", "skip-host", "plugin:./libNAME.so" */
	const char *prefetch_policy;         /* "default", "retain", "plugin:./libNAME.so" */
	uint32_t    store_in_flight;         /* tasks a store; 8 */
	uint64_t    store_in_flight_bytes;   /* a store; 0: no limit; 256 MiB */
	uint32_t    store_queue;             /* keys that wait, a store; 65536 */
	uint32_t    prefetch_in_flight;      /* requests; 8 */
	uint64_t    prefetch_in_flight_bytes; /* of Host reserved by them; 0: no limit; 0 */
	uint32_t    prefetches;              /* not yet released, all clients; 64 */
	uint32_t    prefetch_keys;           /* of one; 4096 */
	uint64_t    prefetch_deadline_ns;    /* where a prefetch has none; 0: none */
	uint32_t    query_workers, get_workers, put_workers; /* threads a store; 1, 2, 1 */
	uint64_t    close_timeout_ns;        /* how long kvs_close() waits for storage; 5 s */
};

/* clang-format off: a line is as many fields as belong together. */
#define KVS_OPTIONS_INIT \
	{ \
		sizeof(struct kvs_options), \
		UINT64_C(1) << 30, UINT64_C(16) << 20, 0, 64,   /* Host: bytes, of an object; counts */ \
		"lru", 0.95, 0.90,                              /* its policy, watermarks */ \
		UINT64_C(600000000000), UINT64_C(300000000000), /* TTLs */ \
		false, 0,                                       /* tenants */ \
		{ NULL }, "lru", "default", "default",          /* stores, policies */ \
		8, UINT64_C(256) << 20, 65536,                  /* store_... */ \
		8, 0, 64, 4096, 0,                              /* prefetch... */ \
		1, 2, 1, UINT64_C(5000000000)                   /* threads, close */ \
	}
/* clang-format on */

/*
 * The same for callers without a preprocessor: at most struct_size bytes, which becomes the field.
 */
KVS_PUBLIC void kvs_options_init(struct kvs_options *options, size_t struct_size);

struct kvs;

/**
 * Open Host memory, stores and controllers.
 *
 * Owner   *ret_kvs is the caller's until kvs_close(); strings of options are copied.
 * Errors  KVS_E_INVALID, KVS_E_BUSY, KVS_E_PROTO, -errno: one sentence that names field, value and
 *         rule; nothing is left open.
 */
KVS_PUBLIC int kvs_open(const struct kvs_options *options, struct kvs **ret_kvs,
			struct kvs_error *err);

/* The same with options of a JSON file; what it does not name has its default. */
KVS_PUBLIC int kvs_open_json(const char *path, struct kvs **ret_kvs, struct kvs_error *err);

/**
 * Stop controllers, close clients and stores.  NULL is fine; a second close is KVS_E_CLOSED.  What
 * waits for a store is not put any more: kvs_flush() first.  It may take 100 ms a store longer than
 * close_timeout_ns.  Once a store was attached, or its attaching failed after it was open, the
 * host_bytes of memory stay mapped until the process ends, because late I/O may still land in them:
 * opening again takes as much again.
 *
 * Errors  KVS_E_QUARANTINE: I/O of a store has not retired within close_timeout_ns.  Host, its
 *         controllers' threads, and the store stay for the life of the process, too; clients and
 *         their handles are closed.
 */
KVS_PUBLIC int kvs_close(struct kvs *kvs);

/* --- clients ---------------------------------------------------------------------------------- */

typedef uint64_t kvs_client; /* 0 names none */

/* KVS_E_FULL: `clients` are open. */
KVS_PUBLIC int kvs_client_open(struct kvs *kvs, kvs_client *ret_client, struct kvs_error *err);

/* Give back all it holds: prefetches are cancelled, reservations discarded, locks released. */
KVS_PUBLIC int kvs_client_close(struct kvs *kvs, kvs_client client);

/*
 * An eventfd that becomes readable when a prefetch of this client is done; the client's until its
 * close.  Reading it clears it, as a look at every prefetch that is done does not.  Negative: a
 * code.
 */
KVS_PUBLIC int kvs_client_fd(struct kvs *kvs, kvs_client client);

/* --- writing ---------------------------------------------------------------------------------- */

/*
 * Here and in kvs_ask struct_size is the caller's sizeof, as the INIT macros set it; 0: this
 * version's.  Fields behind a smaller one are 0; a greater one is KVS_E_INVALID.
 */
struct kvs_write {
	size_t          struct_size;
	uint64_t        bytes;      /* of every object, where bytes_each is NULL; 0: object_bytes */
	const uint64_t *bytes_each; /* one a key */
	bool            temporary;  /* never put to a store; gone when its last reader is */
	bool            whole;      /* room for all that want it, or none; either way others may go for it */
};

#define KVS_WRITE_INIT { sizeof(struct kvs_write), 0, NULL, false, false }

/**
 * Reserve memory for count objects, to be filled in place.  write NULL: all of object_bytes.
 *
 * Shape   ret_spans[i] is page-aligned; zeroed where ret_rc[i] is not 0.
 * Errors  KVS_E_INVALID, KVS_E_CLOSED, KVS_E_STALE.
 * Rows    KVS_E_EXISTS   resident already, perhaps `temporary`: nothing to do;
 *         KVS_E_BUSY     this client writes it already, or it was removed while somebody reads it;
 *         KVS_E_INVALID  0 bytes, or more than object_bytes;
 *         KVS_E_FULL     no room that could be made, or the tenant's quota.
 */
KVS_PUBLIC int kvs_reserve_write(struct kvs *kvs, kvs_client client, const struct kvs_key *keys,
				 uint32_t count, const struct kvs_write *write,
				 struct kvs_span *ret_spans, int *ret_rc, struct kvs_error *err);

/**
 * Publish.
 *
 * Errors  KVS_E_INVALID, KVS_E_CLOSED, KVS_E_STALE.
 * Rows    0              readers find it: these bytes, or those of whoever finished it first;
 *         KVS_E_STALE    nothing to finish any more, and this call saw it: it expired, it was
 *                        removed by force, or the key is resident, whoever wrote it;
 *         KVS_E_MISSING  nothing to finish: never reserved, or gone before this call, expired ones
 *                        that others dropped and finished ones that were evicted included.
 *
 * A row whose object is resident and `temporary` is 0, and drops these bytes: they are not put to a
 * store, and the key goes with the last reader of the temporary one.
 */
KVS_PUBLIC int kvs_finish_write(struct kvs *kvs, kvs_client client, const struct kvs_key *keys,
				uint32_t count, int *ret_rc, struct kvs_error *err);

/* Drop what was reserved: nobody ever sees it.  Rows as above. */
KVS_PUBLIC int kvs_discard_write(struct kvs *kvs, kvs_client client, const struct kvs_key *keys,
				 uint32_t count, int *ret_rc, struct kvs_error *err);

/* --- reading ---------------------------------------------------------------------------------- */

/* Every key before the boundary is needed. */
#define KVS_FULL_ATTENTION UINT32_MAX

struct kvs_ask {
	size_t          struct_size;
	uint64_t        bytes;       /* of every object, where bytes_each is NULL; 0: object_bytes */
	const uint64_t *bytes_each;  /* one a key: exactly what was written, or a store does not give it */
	/*
	 * Keys come chunk by chunk; of a chunk, group by group, `copies` of each group (one a
	 * rank).  windows[g]: how many chunks before the boundary group g needs.  NULL, 0: one
	 * group that needs all.
	 */
	const uint32_t *windows;
	uint32_t        group_count; /* at most 16 */
	uint32_t        copies;      /* 0: 1; groups times copies: at most 64 */
	uint32_t        readers;     /* who each release once; 0: 1 */
	bool            retain;      /* what is loaded stays in Host, whatever the policy says */
	bool            skip_store;  /* look in Host only */
	uint64_t        timeout_ns;  /* from now; 0: prefetch_deadline_ns; KVS_FOREVER: none */
};

#define KVS_ASK_INIT { sizeof(struct kvs_ask), 0, NULL, NULL, 0, 0, 0, false, false, 0 }

typedef uint64_t kvs_prefetch; /* 0 names none */

struct kvs_prefetch_info {
	size_t   struct_size; /* the caller's sizeof: fields behind it are not written */
	int64_t  request_id; /* of the stores' work; -1: none was needed */
	uint32_t host_hits;  /* keys before the first that Host lacked at submission */
	uint32_t key_count;
	uint64_t submit_ns;  /* monotonic */
	bool     done;
};

/**
 * Ask for objects.  Returns at once: what Host has is locked, the rest is looked for in the stores,
 * loaded, and locked, too.  The prefetch is this client's, but any thread may have the handle.
 *
 * Shape   ask NULL: objects of object_bytes, one group that needs all, one reader, no deadline of
 *         its own.  Keys of one prefetch differ: what is named twice and has to be loaded cannot
 *         be loaded twice, and the prefix may end there.
 * Errors  KVS_E_INVALID, KVS_E_CLOSED, KVS_E_STALE, KVS_E_FULL: `prefetches` are not yet released, or
 *         were, and their cancel is not yet done or their I/O still runs.
 */
KVS_PUBLIC int kvs_prefetch_submit(struct kvs *kvs, kvs_client client, const struct kvs_key *keys,
				   uint32_t count, const struct kvs_ask *ask,
				   kvs_prefetch *ret_prefetch, struct kvs_error *err);

KVS_PUBLIC int kvs_prefetch_info(struct kvs *kvs, kvs_prefetch prefetch,
				 struct kvs_prefetch_info *ret_info);

/*
 * How many chunks can be used: 0, once, when it is done; -EAGAIN before; KVS_E_STALE after.  One
 * group and one copy: a chunk is a key.
 */
KVS_PUBLIC int kvs_prefetch_poll(struct kvs *kvs, kvs_prefetch prefetch, uint32_t *ret_chunks);

/* The same, waiting; -ETIMEDOUT when timeout_ns passed first: it goes on. */
KVS_PUBLIC int kvs_prefetch_wait(struct kvs *kvs, kvs_prefetch prefetch, uint64_t timeout_ns,
				 uint32_t *ret_chunks);

/**
 * Where the objects are: one span a key of the chunks that can be used, zeroed for those that a
 * restore there does not use (behind a window).  Valid until the release, or until read_ttl_ns has
 * passed (see Expiry).  As often as you like.  *ret_count is written unless the code is -EAGAIN,
 * KVS_E_STALE or KVS_E_CLOSED.
 *
 * Errors  -EAGAIN        not done;
 *         KVS_E_FULL     span_max is less than *ret_count, which is written;
 *         KVS_E_MISSING  read_ttl_ns has passed: nothing of it may be read any more;
 *         KVS_E_STALE, KVS_E_CLOSED.
 */
KVS_PUBLIC int kvs_prefetch_spans(struct kvs *kvs, kvs_prefetch prefetch, struct kvs_span *ret_spans,
				  uint32_t span_max, uint32_t *ret_count);

/*
 * Call use() with the spans and release once, whatever it returns; that is returned.  Where there
 * are no spans, as kvs_prefetch_spans() tells, use() is not called, and what does not change
 * (KVS_E_MISSING) releases, too.  Locks stay until use() returns, whoever releases or closes the
 * client meanwhile; read_ttl_ns goes on.
 */
KVS_PUBLIC int kvs_prefetch_read(struct kvs *kvs, kvs_prefetch prefetch,
				 int (*use)(void *arg, const struct kvs_span *spans, uint32_t count),
				 void *arg);

/*
 * One reader is done.  The last gives back the locks and ends the handle; before the result was
 * there, it is a cancel for all.  KVS_E_STALE: it is no prefetch any more.
 */
KVS_PUBLIC int kvs_prefetch_release(struct kvs *kvs, kvs_prefetch prefetch);

/*
 * Without a prefetch: lock what is in Host, read in place, unlock, within read_ttl_ns.  It is no use
 * for the eviction order: kvs_touch() is.  Rows: KVS_E_MISSING, KVS_E_FULL; KVS_E_STALE of an
 * unlock: no lock of this client, or it expired.
 */
KVS_PUBLIC int kvs_lock(struct kvs *kvs, kvs_client client, const struct kvs_key *keys,
			uint32_t count, struct kvs_span *ret_spans, int *ret_rc,
			struct kvs_error *err);
KVS_PUBLIC int kvs_unlock(struct kvs *kvs, kvs_client client, const struct kvs_key *keys,
			  uint32_t count, int *ret_rc, struct kvs_error *err);

/* --- upkeep ----------------------------------------------------------------------------------- */

/*
 * A use each, for the eviction order, of what is in Host.  A release of a prefetch is one by
 * itself.  KVS_E_INVALID, KVS_E_CLOSED; keys that Host does not have are passed over.
 */
KVS_PUBLIC int kvs_touch(struct kvs *kvs, const struct kvs_key *keys, uint32_t count);

/*
 * Remove from Host; stores keep what they have.  Rows: KVS_E_MISSING, KVS_E_LOCKED: it has a reader, a
 * writer or an operation; with force: it is being loaded, and stays.  With force
 * nobody finds it any more, and its bytes are free when its readers and operations are done; who
 * still writes it loses the reservation at once, and must have stopped writing.
 */
KVS_PUBLIC int kvs_remove(struct kvs *kvs, const struct kvs_key *keys, uint32_t count, bool force,
			  int *ret_rc, struct kvs_error *err);
/* The same for a namespace, NULL for all; how many went and how many stayed. */
KVS_PUBLIC int kvs_clear(struct kvs *kvs, const struct kvs_namespace *space, bool force,
			 uint64_t *ret_removed, uint64_t *ret_left);

/*
 * A tenant's bytes of Host at most, staged ones included; 0: no limit for it, quota_bytes
 * notwithstanding.  A tenant that was given one is remembered until kvs_close().
 *
 * KVS_E_INVALID, KVS_E_CLOSED; KVS_E_UNSUPPORTED without `isolate`; KVS_E_FULL: 1024 tenants have
 * objects or a quota of their own.
 */
KVS_PUBLIC int kvs_quota(struct kvs *kvs, const struct kvs_namespace *tenant, uint64_t bytes,
			 struct kvs_error *err);

/*
 * Wait until what was finished before is stored, failed or gone; -ETIMEDOUT when timeout_ns passed
 * first.
 */
KVS_PUBLIC int kvs_flush(struct kvs *kvs, uint64_t timeout_ns);

/*
 * Attach a store: errors as kvs_open()'s; KVS_E_FULL: KVS_ADAPTERS_MAX are.  Detach the one of that
 * number, which may then be another's; what waits for it is not put any more.  -ETIMEDOUT while its
 * I/O runs, then call again; KVS_E_STALE: it is none's.
 */
KVS_PUBLIC int kvs_store_add(struct kvs *kvs, const char *spec, uint32_t *ret_number,
			     struct kvs_error *err);
KVS_PUBLIC int kvs_store_remove(struct kvs *kvs, uint32_t number, uint64_t timeout_ns,
				struct kvs_error *err);

/*
 * Figures of now, and counts since kvs_open(): taken one after the other, so that they need not add
 * up.  `staged` is reserved and not yet finished; `pins` are holds of operations of stores.
 */
struct kvs_status {
	size_t   struct_size; /* the caller's sizeof: fields behind it are not written */
	uint64_t host_bytes, host_used_bytes, host_staged_bytes; /* used: trailers and staged included */
	uint64_t objects, staged, temporary, locks, pins, clients, prefetches;
	uint64_t hits, misses;    /* keys looked for in Host, by the store controller's operations, too */
	uint64_t evicted;         /* objects, to make room */
	uint64_t refused;         /* rows: no room, record, lock, quota or tenant */
	uint64_t stored_keys, stored_bytes;
	uint64_t store_failures;  /* keys of puts that failed, could not begin, or had no room to wait */
	uint64_t store_waiting;   /* keys, of all stores */
	uint64_t loaded_keys, loaded_bytes, load_failures; /* by prefetches */
	uint64_t loads_in_flight; /* prefetches that look, load, or wait for the end of what they began */
	uint32_t stores;
	bool     healthy;     /* no store in cooldown or quarantine */
};

/* KVS_E_CLOSED; KVS_E_INVALID: struct_size has no room for itself. */
KVS_PUBLIC int kvs_status(struct kvs *kvs, struct kvs_status *ret_status);

/*
 * Prometheus text of all there is to count; how many bytes it takes, as snprintf() tells.
 * KVS_E_CLOSED, KVS_E_INVALID, -ENOMEM: it is gathered in memory of its own.
 */
KVS_PUBLIC int kvs_metrics(struct kvs *kvs, char *ret_text, size_t room);

#ifdef __cplusplus
}
#endif

#endif
