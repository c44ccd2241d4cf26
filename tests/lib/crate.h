/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store for tests of what lies above one: numbered objects, each with a fate, and a gate.
 *
 * A closed gate holds its callers inside the store, so that "every worker is blocked" is a state and
 * not a matter of time.  The crate is the test's own: after the executor closed it, what became of
 * its locks can still be read.
 */
#ifndef LIB_CRATE_H
#define LIB_CRATE_H

#include <stdbool.h>
#include <stdint.h>

#include <kvstrata/store.h>

#include "os/os.h"

#define CRATE_KEYS 4096u
#define CRATE_BYTES 64u /* of each object */

enum crate_fate {
	CRATE_FINE,
	CRATE_FAILS,    /* its row is FAILED */
	CRATE_NO_SPACE, /* its put is refused */
	CRATE_BREAKS,   /* the call that has it fails as a whole */
	CRATE_CLINGS    /* a get or put that has it fails its row and does not retire */
};

struct crate {
	struct kvs_store store;
	struct os_mutex  lock;
	struct os_cond   moved;
	bool             shut;   /* the gate, for exists, lock, get and put */
	bool             shut_moves; /* for get and put alone */
	uint32_t         inside; /* callers at the gate */
	bool             closed;
	uint32_t         calls;
	uint8_t          fate[CRATE_KEYS];
	bool             present[CRATE_KEYS];
	uint32_t         locks[CRATE_KEYS];
	uint8_t          bytes[CRATE_KEYS][CRATE_BYTES];
};

/* Objects have the keys of named_block.h.  With locks of its own, or for the executor to count. */
void crate_init(struct crate *crate, bool locks);
void crate_fini(struct crate *crate);

/* Present, with the bytes of its number. */
void crate_place(struct crate *crate, uint32_t number);

void crate_shut(struct crate *crate);
void crate_shut_moves(struct crate *crate);
void crate_open(struct crate *crate);
void crate_wait_inside(struct crate *crate, uint32_t count);

/* Locks that the store keeps for its user. */
uint64_t crate_locked(struct crate *crate);

#endif
