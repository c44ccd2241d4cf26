/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Host, some adapters over crates, and controllers between them, all real.
 *
 * Objects are numbered: keys of named_block.h, CRATE_BYTES bytes each that follow from the number.  What
 * awaits something sleeps on it, and fails by name after DEPOT_WAIT_NS, far beyond what any machine
 * needs.  At the end every lock, pin and reservation must be home, of the Host and of every store.
 */
#ifndef LIB_DEPOT_H
#define LIB_DEPOT_H

#include "crate.h"
#include "ctrl/policy.h"
#include "ctrl/prefetch_ctrl.h"
#include "ctrl/store_ctrl.h"
#include "os/os.h"

#define DEPOT_CRATES 3u
#define DEPOT_PAGE 4096u
#define DEPOT_WAIT_NS UINT64_C(60000000000)
#define DEPOT_HEARD_MAX 4096u

struct depot {
	/* Set before depot_open(). */
	uint32_t                          crate_count; /* attached, with the numbers 0, 1, ... */
	uint32_t                          pages;       /* of the Host; an object takes 2 */
	const struct kvs_store_policy    *store_policy;    /* NULL: no store controller */
	const struct kvs_prefetch_policy *prefetch_policy; /* NULL: no prefetch controller */
	struct ctrl_limits                store_limits, prefetch_limits;
	struct kvs_store                 *stores[DEPOT_CRATES]; /* instead of a crate; the adapter's then */

	struct crate          crates[DEPOT_CRATES];
	struct adapter       *adapters[DEPOT_CRATES];
	void                 *memory;
	struct kvs_span       field;
	struct host          *host;
	host_client           client; /* writes, and reads */
	struct store_ctrl    *store;
	struct prefetch_ctrl *prefetch;

	struct os_mutex lock;  /* protects all below */
	struct os_cond  moved;
	uint64_t        done[DEPOT_HEARD_MAX]; /* request ids, as they were told */
	uint32_t        done_count;
};

/* Two crates attached, 1,024 pages, default policies, limits that no small test meets. */
void depot_init(struct depot *depot);
void depot_open(struct depot *depot);
/* Opens the gates, closes all, asserts locks-home. */
void depot_close(struct depot *depot);

/* A time that no test comes to see. */
uint64_t depot_late(void);

struct kvs_key depot_key(uint32_t number);

/* --- the Host --------------------------------------------------------------------------------- */

/* Write numbers from, from + 1, ...: one batch, reserved, filled and finished. */
void depot_write(struct depot *depot, uint32_t from, uint32_t count);
/* The same with a key's group and any size. */
void depot_write_as(struct depot *depot, uint32_t number, uint32_t group, uint64_t bytes);
bool depot_has(const struct depot *depot, uint32_t number);
/* Lock once for the client; asserted. */
void depot_lock(struct depot *depot, uint32_t number);
void depot_unlock(struct depot *depot, uint32_t number, uint32_t locks);
/* It is locked by the client, and has the bytes of its number. */
bool depot_is_read(const struct depot *depot, uint32_t number);
void depot_remove(struct depot *depot, uint32_t number);
/* If it is there and nobody holds it. */
void depot_remove_any(struct depot *depot, uint32_t number);
struct host_usage depot_usage(const struct depot *depot);

/* --- stores ----------------------------------------------------------------------------------- */

/* In crates[crate]. */
void depot_place(struct depot *depot, uint32_t crate, uint32_t from, uint32_t count);
bool depot_stored(struct depot *depot, uint32_t crate, uint32_t number);
/* Nothing of it is locked at any adapter. */
bool depot_stores_unlocked(const struct depot *depot);
/* Everything that was heard went its way. */
void depot_flush(struct depot *depot);
uint64_t depot_store_counter(const struct depot *depot, enum store_ctrl_counter counter);
/* Until a counter is so high; until so many keys wait, an adapter each; until so many tasks are left. */
void depot_await_counter(struct depot *depot, enum store_ctrl_counter counter, uint64_t value);
void depot_await_waiting(struct depot *depot, uint32_t keys);
void depot_await_tasks(struct depot *depot, uint32_t tasks);

/* The op of an adapter that did not retire has retired after all; ids count from 1. */
void depot_notice(struct depot *depot, uint32_t crate, uint64_t op_id);

/* --- prefetch --------------------------------------------------------------------------------- */

#define DEPOT_REQUEST_KEYS 64u

struct depot_ask {
	uint32_t    from, chunks;
	const struct flat *flat;   /* NULL: one group, plain prefix; key i of the bits is from + i */
	uint32_t    locks;         /* 0: 1 */
	bool        retain;
	uint64_t    deadline_ns;   /* 0: none */
	host_client reader;        /* 0: the client */
};

/* What Host has is locked first, as a manager does. */
uint64_t depot_ask(struct depot *depot, const struct depot_ask *ask);
/* A plain prefix. */
uint64_t depot_prefetch(struct depot *depot, uint32_t from, uint32_t count);
/* The result, once it is there; locked bits of up to 64 keys. */
struct prefetch_result depot_take(struct depot *depot, uint64_t request_id, uint64_t *ret_locked);
/* It was told as done already. */
bool depot_is_done(struct depot *depot, uint64_t request_id);
void depot_await_done(struct depot *depot, uint64_t request_id);
/* Unlock what a result says; `locks` each. */
void depot_give_back(struct depot *depot, uint32_t from, uint64_t locked, uint32_t locks);
void depot_idle(struct depot *depot);
/* Until a call is inside a crate; false when the request was done before. */
bool depot_await_inside(struct depot *depot, uint32_t crate, uint64_t request_id);
/* Until so many objects are resident; until so many requests wait, or drain. */
void depot_await_objects(struct depot *depot, uint32_t count);
void depot_await_queued(struct depot *depot, uint32_t count);
void depot_await_draining(struct depot *depot, uint32_t count);
/* What prefetch_ctrl_found() says, as soon as it does. */
uint32_t depot_await_found(struct depot *depot, uint64_t request_id);
struct prefetch_ctrl_stats depot_prefetch_stats(const struct depot *depot);

#endif
