/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that makes calls which may hang, and a caller that waits for it, but not for ever.
 *
 *        take           give          has worked          back
 *   HOME ----> HELD --------> OUT -----------------> HELD -----> HOME
 *     |                        | the caller has waited long enough
 *     | send                   v       has worked
 *     +--------------------> LOST ------------------------------> HOME
 *
 * Memory   What the work reads and writes belongs to whoever holds the hand while it is HELD, and to the
 *          hand while it is OUT or LOST: never a caller's own, which may go before the hand is home.
 * Threads  All but hand_start() and hand_stop() want the lock held.  One caller at a time: only a hand
 *          that is HOME or LOST is asked for.
 */
#ifndef MOONCAKE_HAND_H
#define MOONCAKE_HAND_H

#include "os/os.h"

enum hand_state { HAND_HOME, HAND_HELD, HAND_OUT, HAND_LOST };

struct hand {
	/* The owner's, set before start. */
	struct os_mutex *lock;                 /* guards the rest, of all hands of an owner */
	void           (*work)(struct hand *); /* without the lock */
	bool           (*home)(struct hand *); /* with it, after each work; true: work once more */
	void           (*gone)(struct hand *); /* of a hand that was left: the last it does; may free it */

	enum hand_state  state;
	bool             ending;
	bool             left;
	struct os_cond   moved;
	pthread_t        thread;
};

int  hand_start(struct hand *hand, const char *name); /* -errno: there is no hand */
/* It ends once it is home, which this waits for. */
void hand_stop(struct hand *hand);

bool hand_take(struct hand *hand); /* false: it is lost */
void hand_give(struct hand *hand); /* to work; it is held */
/* True: it has come back and is held again; false: it is lost. */
bool hand_wait(struct hand *hand, uint64_t timeout_ns);
void hand_back(struct hand *hand); /* it is held no longer */

/* From home to work, with nobody who waits. */
void hand_send(struct hand *hand);

/* At home, held or not, before timeout_ns. */
bool hand_is_home_by(struct hand *hand, uint64_t timeout_ns);

/* Nobody asks for it or stops it from now on: it ends alone, once home() wants no more work. */
void hand_leave(struct hand *hand);

#endif
