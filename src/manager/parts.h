/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the manager: its structs, and which lock guards what.
 *
 * Lock order: `stores_lock`, `figures_lock`; and a prefetch's lock, then `lock`.  Host, controllers
 * and adapters are called with any of them held; none of them calls back with a lock of its own.
 */
#ifndef MANAGER_PARTS_H
#define MANAGER_PARTS_H

#include <stdatomic.h>

#include "arena/arena.h"
#include "base/bits.h"
#include "base/slots.h"
#include "ctrl/policy.h"
#include "ctrl/prefetch_ctrl.h"
#include "ctrl/store_ctrl.h"
#include "manager/manager.h"
#include "manager/options.h"
#include "os/os.h"

/* A handle is a turn of its slot, which never comes again, and the slot: 48 and 16 bits. */
#define HANDLE_SLOT_BITS 16
#define HANDLE_SLOT_MASK ((UINT64_C(1) << HANDLE_SLOT_BITS) - 1)

static inline uint64_t handle_of(uint64_t turn, uint32_t slot)
{
	return turn << HANDLE_SLOT_BITS | slot;
}

/*
 * A user's client.  Whoever wants its Host client reads handle, host and handle again: a slot
 * changes hands only through a handle of 0.
 */
struct client {
	_Atomic kvs_client  handle; /* 0: closed or closing */
	_Atomic host_client host;
	uint64_t            turn;   /* guarded by `lock`, as is the descriptor */
	int                 fd;
};

enum prefetch_state {
	PREFETCH_FREE,
	PREFETCH_LOADING, /* the controller has it */
	PREFETCH_DONE,    /* its result is here and was not told yet */
	PREFETCH_TOLD
};

/* A prefetch: its lock guards all but the first two. */
struct prefetch {
	struct manager     *manager;
	uint64_t            turn;    /* guarded by the manager's lock */
	struct os_mutex     lock;
	struct os_cond      changed; /* done, or no prefetch any more */
	bool                taken;   /* its slot is */
	kvs_prefetch        handle;  /* 0: none */
	enum prefetch_state state;
	kvs_client          owner;
	host_client         reader;  /* who holds the locks in Host */
	bool                has_request;
	uint64_t            request_id;
	struct flat         flat;
	uint32_t            key_count;
	uint32_t            chunk_count;
	uint32_t            boundary;  /* chunks that can be used; from DONE on */
	uint32_t            host_hits;
	uint32_t            readers;   /* who have not released yet */
	uint32_t            users;     /* calls that read the spans now, without the lock */
	bool                has_spans;
	uint64_t            submit_ns;
	struct kvs_key     *keys;  /* prefetch_keys of each */
	uint64_t           *bytes;
	struct kvs_span    *spans; /* of the keys before the boundary, once they were asked for */
	uint64_t           *used;  /* bits: locked in Host; from DONE on those of a restore at the boundary */
};

/* Rows of one call of Host over a prefetch: what a stack carries easily. */
#define PREFETCH_ROWS 512u

enum store_state { STORE_NONE, STORE_ATTACHED, STORE_LEAVING };

struct store {
	enum store_state  state;   /* written with `figures_lock` held, too */
	struct adapter   *adapter; /* not NULL: attached or leaving */
	const char       *name;    /* of its kind */
};

struct manager {
	struct kvs_options options; /* its strings are not kept, but for the next */
	char               evict_policy[32];

	const struct kvs_store_policy    *store_policy;
	const struct kvs_prefetch_policy *prefetch_policy;

	struct arena         *arena;
	struct kvs_span      *slices; /* of the arena: what executors register */
	struct host          *host;
	struct store_ctrl    *store_ctrl;
	struct prefetch_ctrl *prefetch_ctrl;
	bool                  stopped; /* the controllers are gone, or left behind */

	struct os_mutex  lock; /* guards both slots and the descriptors */
	struct slots     client_slots;
	struct client   *clients;
	struct slots     prefetch_slots;
	struct prefetch *prefetches;
	struct kvs_key  *keys; /* of all prefetches, as are the next */
	uint64_t        *bytes;
	struct kvs_span *spans;
	uint64_t        *words;

	struct os_mutex  stores_lock; /* one at a time attaches or detaches; held across I/O */
	struct os_mutex  figures_lock; /* held by who looks at stores; one that leaves waits */
	struct store     stores[KVS_ADAPTERS_MAX];
	_Atomic uint32_t store_count; /* attached */

	pthread_t    upkeep;
	bool         has_upkeep;
	int          wake_fd;
	_Atomic bool stopping;

	struct manager *left; /* another one that was left behind */
};

/* clients.c: of a client's handle; 0 when it is none. */
host_client manager_host_client(struct manager *manager, kvs_client client);
int         manager_clients_open(struct manager *manager, struct kvs_error *err);
/* Every client and prefetch that is left. */
void        manager_clients_end(struct manager *manager);
void        manager_clients_free(struct manager *manager);
uint32_t    manager_clients_count(struct manager *manager);

/* prefetch.c */
int  manager_prefetches_open(struct manager *manager, struct kvs_error *err);
void manager_prefetches_free(struct manager *manager);
uint32_t manager_prefetches_count(struct manager *manager);
/* End those of a client; 0: all. */
void manager_prefetches_end(struct manager *manager, kvs_client owner);

void manager_prefetches_audit(struct manager *manager);

/*
 * What a handle names, locked, with its result if there is one; NULL when it names nothing that
 * lives.
 */
struct prefetch *prefetch_enter(struct manager *manager, kvs_prefetch handle);
void             prefetch_leave(struct prefetch *prefetch);
/* The only one that changes its state; whoever waits or sleeps for it is told. */
void             prefetch_become(struct prefetch *prefetch, enum prefetch_state state);
/* The handle ends; what Host keeps for it goes when its last user leaves. */
void             prefetch_drop(struct prefetch *prefetch);
/* Look for its result; when it is here, whoever waits or sleeps is told. */
void             prefetch_settle(struct prefetch *prefetch);
/* The next run of set bits at or after *begin, of at most PREFETCH_ROWS; false: none. */
bool             prefetch_run(const uint64_t *words, uint32_t key_count, uint32_t *begin,
			      uint32_t *ret_count);

/* stores.c */
/* The attached, with figures_lock held by the caller. */
void manager_stores_each(struct manager *manager,
			 void (*visit)(void *arg, uint32_t number, const struct store *store), void *arg);
int manager_stores_open(struct manager *manager, struct kvs_error *err);
/* KVS_E_QUARANTINE: one or more stay. */
int manager_stores_close(struct manager *manager, uint64_t deadline_ns);

/* upkeep.c */
int  manager_upkeep_start(struct manager *manager, struct kvs_error *err);
void manager_upkeep_stop(struct manager *manager);
void manager_upkeep_press(void *manager); /* Host's hook */

/* What is left of a time from now on. */
static inline uint64_t until(uint64_t deadline_ns)
{
	const uint64_t now_ns = os_now_ns();

	return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

#endif
