/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store for tests of what lies above one: numbered objects, each with a fate, and a gate.
 *
 * A closed gate holds its callers inside the store, so that "every worker is blocked" is a state and
 * not a matter of time.  The shelf is the test's own: after the executor closed it, what became of
 * its locks can still be read.
 */
#ifndef LIB_SHELF_H
#define LIB_SHELF_H

#include <stdbool.h>
#include <stdint.h>

#include <kvstrata/store.h>

#include "os/os.h"

#define SHELF_KEYS 4096u
#define SHELF_BYTES 64u /* of each object */

enum shelf_fate {
	SHELF_FINE,
	SHELF_FAILS,    /* its row is FAILED */
	SHELF_NO_SPACE, /* its put is refused */
	SHELF_BREAKS,   /* the call that has it fails as a whole */
	SHELF_CLINGS    /* a get or put that has it fails its row and does not retire */
};

struct shelf {
	struct kvs_store store;
	struct os_mutex  lock;
	struct os_cond   moved;
	bool             shut;   /* the gate, for exists, lock, get and put */
	uint32_t         inside; /* callers at the gate */
	bool             closed;
	uint32_t         calls;
	uint8_t          fate[SHELF_KEYS];
	bool             present[SHELF_KEYS];
	uint32_t         locks[SHELF_KEYS];
	uint8_t          bytes[SHELF_KEYS][SHELF_BYTES];
};

/* Objects have the keys of named_block.h.  With locks of its own, or for the executor to count. */
void shelf_init(struct shelf *shelf, bool locks);
void shelf_fini(struct shelf *shelf);

/* Present, with the bytes of its number. */
void shelf_place(struct shelf *shelf, uint32_t number);

void shelf_shut(struct shelf *shelf);
void shelf_open(struct shelf *shelf);
void shelf_wait_inside(struct shelf *shelf, uint32_t count);

/* Locks that the store keeps for its user. */
uint64_t shelf_locked(struct shelf *shelf);

#endif
