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
#include "ctrl/store_ctrl.h"
#include "os/os.h"

#define DEPOT_CRATES 3u
#define DEPOT_PAGE 4096u
#define DEPOT_WAIT_NS UINT64_C(60000000000)

struct depot {
	/* Set before depot_open(). */
	uint32_t                          crate_count; /* attached, with the numbers 0, 1, ... */
	uint32_t                          pages;       /* of the Host; an object takes 2 */
	const struct kvs_store_policy    *store_policy;    /* NULL: no store controller */
	struct ctrl_limits                store_limits;

	struct crate          crates[DEPOT_CRATES];
	struct adapter       *adapters[DEPOT_CRATES];
	void                 *memory;
	struct kvs_span       field;
	struct host          *host;
	host_client           client; /* writes, and reads */
	struct store_ctrl    *store;

	struct os_mutex lock;  /* protects all below */
	struct os_cond  moved;
	uint64_t        removed; /* HOST_REMOVED keys heard */
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

#endif
