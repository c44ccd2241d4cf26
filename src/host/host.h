/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host objects: bytes by key in Host memory, from any thread.
 *
 * An object is written once, then read.  Its writer reserves it, fills it in place and finishes it;
 * from then on readers lock it, read it in place and unlock it.
 *
 *   absent --reserve--> STAGED --finish--> RESIDENT --evict, remove--> absent
 *                       STAGED --discard, expiry, client closed--> absent, never seen by a reader
 *                                          RESIDENT --forced out--> DOOMED
 *   DOOMED --last lock and pin given back--> absent
 *
 * Staged    A key that is being written does not exist for readers.  Each writer stages its own
 *           bytes: the first to finish makes the key resident, a later one drops its bytes and
 *           succeeds.  What a writer leaves behind is discarded, never published.
 * Locks     are a client's claims, counted, each client's its own: closing the client gives them
 *           back, and one that has expired cannot be given back by mistake for another's.  Pins are
 *           claims of operations: they never expire.  An object with a lock or a pin is not
 *           evicted, and its bytes are not reused.
 * Expiry    of a reservation or a lock is one fact, the end of a write or a read another.  A
 *           reservation that expired can no longer be finished; a client that still writes then
 *           writes into memory that is not its own, so write_ttl_ns is longer than any write can
 *           take.  What is over is dropped by the next call with a time that comes to its shard.
 * Room      is made when it is asked for: a reservation that does not fit evicts, in the policy's
 *           order, until it does.  host_relieve() does the same ahead of need, between two
 *           watermarks.
 * Tenants   are namespaces.  With quotas, a tenant at its quota gives up its own objects; when
 *           memory itself is short, the tenant that holds the most gives.  A quota is never
 *           exceeded, staged bytes included.
 * Batches   are atomic a key, not as a whole.  Keys of a batch are served in any order; a key that
 *           a batch names twice is two requests.
 * Listeners hear of a batch after it, outside all locks, in one call an event; what a batch of more
 *           than 512 keys has to tell may need several.  Each key of a notice carries the number
 *           that was drawn under the lock of the key's shard: by these numbers changes of one key
 *           have one order, in which the calls of several threads may not come.
 * Limits    everything in host_options; HOST_KEYS_MAX keys a batch.  Nothing allocates after open,
 *           which brings in all memory of the tables.
 * Threads   Any, but open and close.  A shard has one mutex; at most one shard's is held, and then
 *           one of three others, of the space, the tenants and the clients.  Time is an argument:
 *           nanoseconds of one monotonic clock.
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvstrata/base.h>

#include "base/err.h"

#define HOST_KEYS_MAX     4096u
#define HOST_CLIENTS_MAX  4096u
#define HOST_TENANTS_MAX  1024u
#define HOST_SHARDS_MAX   256u
#define HOST_OBJECTS_MAX  (1u << 26)
#define HOST_LOCKS_MAX    128u /* of one client on one object, at a time */
#define HOST_LISTENERS_MAX 8u

/* Never: for a TTL. */
#define HOST_FOREVER UINT64_MAX

enum host_event {
	HOST_RESERVED, /* staged; nobody tells when it is dropped */
	HOST_WRITTEN,  /* finished by its writer, not temporary: what a store controller puts */
	HOST_LOADED,   /* finished by a load, or temporary */
	HOST_LOCKED,
	HOST_UNLOCKED,
	HOST_TOUCHED,
	HOST_REMOVED, /* resident no more: evicted, removed, cleared, or a temporary one's last lock gone */
	HOST_EVENT_COUNT
};

/* Valid during the call. */
struct host_notice {
	enum host_event       event;
	const struct kvs_key *keys;
	const uint64_t       *sequences; /* one a key, see above */
	uint32_t              count;
};

/* Returns soon, and calls nothing of this room: it takes the notice down and signals. */
struct host_listener {
	uint32_t events; /* bit HOST_...: which to hear */
	void (*notify)(void *arg, const struct host_notice *notice);
	void *arg;
};

struct host_options {
	const struct kvs_span *fields; /* the memory, each on a page and of whole pages; copied */
	uint32_t               field_count;
	/*
	 * Objects, staged and doomed ones included, and pairs of a client and an object it has
	 * locked. Each shard has its part of both, and a little more because keys spread unevenly.
	 */
	uint32_t               object_max;
	uint32_t               lock_max;
	uint32_t               client_max;
	uint32_t               shard_count; /* a power of two */
	const char            *policy;      /* one of evict_names */
	uint64_t               write_ttl_ns, read_ttl_ns;
	double                 high, low;   /* watermarks: parts of all bytes, 0 < low <= high <= 1 */
	bool                   isolate;     /* tenants apart, as quotas need it */
	uint64_t               quota_bytes; /* of a tenant without one of its own; 0: none */
	struct host_listener   listeners[HOST_LISTENERS_MAX];
	uint32_t               listener_count;
	void (*pressed)(void *arg); /* used bytes went past `high`; returns soon; NULL: nobody asks */
	void *pressed_arg;
};

#define HOST_COUNTERS(X) \
	X(HOST_HITS, "hits")                         /* rows of host_lock(): what readers ask for */ \
	X(HOST_MISSES, "misses") \
	X(HOST_FINISHED, "finished") \
	X(HOST_DROPPED_TWINS, "dropped_twins")       /* finished after another writer of the key */ \
	X(HOST_DISCARDED, "discarded")               /* by their writer */ \
	X(HOST_UNDONE, "undone")                     /* staged for HOST_WHOLE, which another row failed */ \
	X(HOST_FORCED_WRITES, "forced_writes")       /* staged, forced out, or finished when doomed */ \
	X(HOST_ABANDONED, "abandoned")               /* staged by a client that closed */ \
	X(HOST_EXPIRED_WRITES, "expired_writes") \
	X(HOST_EXPIRED_LOCKS, "expired_locks") \
	X(HOST_EVICTED, "evicted") \
	X(HOST_EVICTED_BYTES, "evicted_bytes") \
	X(HOST_REFUSED_BYTES, "refused_bytes")       /* rows for which no room could be made */ \
	X(HOST_REFUSED_OBJECTS, "refused_objects")   /* no record left, nor one that may go */ \
	X(HOST_REFUSED_LOCKS, "refused_locks") \
	X(HOST_REFUSED_QUOTA, "refused_quota") \
	X(HOST_REFUSED_TENANTS, "refused_tenants")

enum host_counter {
#define HOST_COUNTER(name, text) name,
	HOST_COUNTERS(HOST_COUNTER)
#undef HOST_COUNTER
	HOST_COUNTER_COUNT
};

struct host_usage {
	uint64_t bytes;        /* of all fields */
	uint64_t used_bytes;   /* in whole pages, trailers included */
	uint64_t staged_bytes; /* of them */
	uint32_t objects;      /* resident */
	uint32_t staged;
	uint32_t doomed;
	uint32_t temporary;    /* of the resident */
	uint64_t locks;        /* counts summed up */
	uint64_t pins;
	uint32_t clients;
	uint64_t counters[HOST_COUNTER_COUNT];
};

struct host;

/**
 * Open over memory that outlives it.
 *
 * Errors  KVS_E_INVALID (field, value, rule; an unknown policy lists the known), -ENOMEM.
 */
int host_open(const struct host_options *options, struct host **ret_host, struct kvs_error *err);

/* All clients are closed and no pin is left: asserted.  NULL is fine. */
void host_close(struct host *host);

/* --- clients ---------------------------------------------------------------------------------- */

/*
 * Names a client; 0 names none.  Never used again after its close: what comes with it is
 * KVS_E_CLOSED.
 */
typedef uint64_t host_client;

enum host_client_flag {
	/* Reservations and locks do not expire: for one whose own bound ends them. */
	HOST_NO_TTL = 1 << 0
};

/* KVS_E_INVALID: an unknown flag; KVS_E_FULL: client_max are open. */
int host_client_open(struct host *host, unsigned flags, host_client *ret_client);

/*
 * Discard what it staged and give back its locks.  Other threads of its may still call, and get
 * KVS_E_CLOSED, for the call or for those rows that came too late.  KVS_E_CLOSED: it is none.
 */
int host_client_close(struct host *host, host_client client, uint64_t now_ns);

/* --- writing ---------------------------------------------------------------------------------- */

/* Who stages.  Two tags of one client are two writers, who do not see each other. */
struct host_writer {
	host_client client;
	uint64_t    tag;
};

enum host_reserve_flag {
	HOST_TEMPORARY = 1 << 0, /* gone with its last lock; never told as HOST_WRITTEN */
	HOST_WHOLE = 1 << 1      /* room for all rows that want it, or for none */
};

/**
 * Stage count objects of bytes[i].
 *
 * Shape   ret_spans[i] is the memory to fill, with room for a trailer behind it; zeroed where rc[i]
 *         is not 0.
 * Errors  The call: KVS_E_INVALID (count, flags), KVS_E_CLOSED: no row was looked at.  A
 *         row: 0;
 *         KVS_E_EXISTS   resident already, if only as a temporary object, which stays one: who
 *                        wants it to last reserves again once it is gone;
 *         KVS_E_BUSY     this writer stages it, or the key is still doomed;
 *         KVS_E_INVALID  0 bytes, or more than one field holds;
 *         KVS_E_FULL     no room, no record, or the quota; with HOST_WHOLE for all rows that wanted
 *                        room, when one of them finds none;
 *         KVS_E_CLOSED   the client was closed meanwhile.
 */
int host_reserve(struct host *host, struct host_writer writer, const struct kvs_key *keys,
		 const uint64_t *bytes, uint32_t count, unsigned flags, uint64_t now_ns,
		 struct kvs_span *ret_spans, int *ret_rc);

/*
 * Publish what the writer staged.  A row: 0, also where another writer was first: what is there
 * stays, and when it is temporary and this writer's is not, it is temporary no more and told as
 * HOST_WRITTEN.  KVS_E_MISSING:
 * neither resident nor staged by this writer; KVS_E_STALE: resident, but this writer stages
 * nothing; or its reservation expired, or the key is doomed, and what it staged is dropped.
 */
int host_finish(struct host *host, struct host_writer writer, const struct kvs_key *keys,
		uint32_t count, uint64_t now_ns, int *ret_rc);

/*
 * The same and lock_count locks for `reader` in one step, so that nothing comes between: told as
 * HOST_LOADED.  A twin that was there first is locked, and its span returned, instead: told as
 * HOST_LOCKED, and temporary no more when what the writer staged is not.  lock_count 0 publishes
 * unlocked and returns no span; a temporary object is then gone at once.  Also KVS_E_FULL: no lock
 * left; the row stays staged.
 */
int host_finish_locked(struct host *host, struct host_writer writer, host_client reader,
		       uint32_t lock_count, const struct kvs_key *keys, uint32_t count,
		       uint64_t now_ns, struct kvs_span *ret_spans, int *ret_rc);

/* Drop what the writer staged; no reader ever saw it.  Rows as for host_finish(). */
int host_discard(struct host *host, struct host_writer writer, const struct kvs_key *keys,
		 uint32_t count, int *ret_rc);

/* --- reading ---------------------------------------------------------------------------------- */

/**
 * Lock what is resident, lock_count times a row.  No use in the policy's sense: host_touch() is.
 *
 * Errors  The call: KVS_E_INVALID (count; lock_count 0 or past HOST_LOCKS_MAX), KVS_E_CLOSED.  A
 *         row: 0; KVS_E_MISSING; KVS_E_FULL: lock_max, or more than HOST_LOCKS_MAX of this client.
 */
int host_lock(struct host *host, host_client client, uint32_t lock_count,
	      const struct kvs_key *keys, uint32_t count, uint64_t now_ns,
	      struct kvs_span *ret_spans, int *ret_rc);

/*
 * Give back lock_count locks a row.  A row: 0; KVS_E_MISSING: no such object; KVS_E_STALE: the
 * client holds fewer (none is taken then).
 */
int host_unlock(struct host *host, host_client client, uint32_t lock_count,
		const struct kvs_key *keys, uint32_t count, uint64_t now_ns, int *ret_rc);

/*
 * The spans of what the client holds locked, no lock taken.  A row: 0, KVS_E_MISSING, KVS_E_STALE:
 * not locked.
 */
int host_spans(struct host *host, host_client client, const struct kvs_key *keys, uint32_t count,
	       uint64_t now_ns, struct kvs_span *ret_spans, int *ret_rc);

/* Which are resident: one bit a key.  Nothing is taken, nothing promised. */
int host_lookup(struct host *host, const struct kvs_key *keys, uint32_t count,
		uint64_t *ret_words);

/* A use each, for the policy: what is not resident is skipped. */
int host_touch(struct host *host, const struct kvs_key *keys, uint32_t count);

/* --- operations ------------------------------------------------------------------------------- */

/* An operation's claim on a resident object: names it, whatever becomes of its key. */
struct host_pin {
	uint32_t shard;
	uint32_t record;
};

/* A row: 0, or KVS_E_MISSING. */
int  host_pin(struct host *host, const struct kvs_key *keys, uint32_t count,
	      struct host_pin *ret_pins, struct kvs_span *ret_spans, int *ret_rc);
void host_unpin(struct host *host, const struct host_pin *pins, uint32_t count);

/* --- removing --------------------------------------------------------------------------------- */

/*
 * Remove resident objects.  A row: 0; KVS_E_MISSING; KVS_E_LOCKED: locked, pinned, or staged by a
 * writer.  With force, locked and pinned ones are doomed: their key is free of readers at once,
 * their bytes when the last lock and pin are given back; and what clients staged, under a key or
 * beside it, is dropped, so that its writers find KVS_E_STALE or KVS_E_MISSING.  What a client of
 * HOST_NO_TTL stages is under I/O and stays.
 */
int host_remove(struct host *host, const struct kvs_key *keys, uint32_t count, bool force,
		int *ret_rc);

/* The same for every object of a namespace (NULL: all); how many went, and how many stayed. */
void host_clear(struct host *host, const struct kvs_namespace *space, bool force,
		uint64_t *ret_removed, uint64_t *ret_left);

/* --- upkeep ----------------------------------------------------------------------------------- */

/* Drop reservations and locks whose time is over.  Calls do so for their own shard anyway. */
void host_expire(struct host *host, uint64_t now_ns);

/*
 * Once more than `high` is used: evict down to `low`, at most object_max objects a call; how many
 * went.  Calls go on until `low` is reached, also below `high`.  Never those that are staged,
 * locked or pinned: what of them becomes idle before `low` is reached goes in a later call.
 */
uint32_t host_relieve(struct host *host, uint64_t now_ns, uint32_t object_max);

/*
 * KVS_E_UNSUPPORTED: not isolated; KVS_E_FULL: HOST_TENANTS_MAX.  A quota below what is used evicts
 * what it can.
 */
int host_quota(struct host *host, const struct kvs_namespace *tenant, uint64_t quota_bytes,
	       uint64_t now_ns);
/* Bytes of a tenant, and its quota (0: none); false when it is unknown. */
bool host_tenant(struct host *host, const struct kvs_namespace *tenant, uint64_t *ret_bytes,
		 uint64_t *ret_quota);

void   host_usage(struct host *host, struct host_usage *ret_usage);
size_t host_bytes(const struct host *host); /* memory of tables, the struct included */

/* O(all): shards, space, lists, sums; takes every lock in turn: exact when nobody else calls. */
void host_audit(struct host *host);

#endif
