/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How reads and backups end, in words that people see.
 *
 * An outcome says why a wait ended; it promises nothing of what is there: READY may be followed by
 * a shorter hit, and a deadline by a full one.
 */
#ifndef TRANSFER_OUTCOME_H
#define TRANSFER_OUTCOME_H

#include <stdint.h>

#define READ_OUTCOMES(X) \
	X(READ_ASKED, "asked")             /* under way: no end yet */ \
	X(READ_READY, "ready")             /* what came is held for the request */ \
	X(READ_LOCAL, "local")             /* others published what it waited for */ \
	X(READ_COVERED, "covered")         /* the local hit is all that may be restored */ \
	X(READ_SHORT, "short")             /* an extension would be below the minimum */ \
	X(READ_LOOKAHEAD, "lookahead")     /* no boundary lies within the lookahead */ \
	X(READ_KEYS, "keys")               /* no boundary fits into the keys of one query */ \
	X(READ_CREDITS, "credits")         /* no boundary fits into the Host credits; no op credit */ \
	X(READ_NEGATIVE, "negative")       /* every boundary needs an object known to be missing */ \
	X(READ_NEVER_STORED, "never_stored") /* the store lacks an object that nobody here put */ \
	X(READ_EVICTED, "evicted")         /* it lacks one that was put from here, or that it just had */ \
	X(READ_LOST, "lost")               /* Device or Host evicted meanwhile what it builds on */ \
	X(READ_CORRUPT, "corrupt")         /* an object was not what was kept */ \
	X(READ_HOST_ROOM, "host_room")     /* Host has no room, whatever it might evict */ \
	X(READ_DEADLINE, "deadline")       /* the soft deadline passed first */ \
	X(READ_PRESSURE, "pressure")       /* the gate is closed */ \
	X(READ_FROZEN, "frozen")           /* storage is not permitted now */ \
	X(READ_MAINTENANCE, "maintenance") /* a clear or a change of weights is wanted */ \
	X(READ_COOLDOWN, "cooldown")       /* the executor waits out an outage of the store */ \
	X(READ_REFUSED, "refused")         /* the executor took no more */ \
	X(READ_BACKEND, "backend")         /* the store failed */ \
	X(READ_QUARANTINE, "quarantine")   /* bytes are in doubt: no new storage work */

enum read_outcome {
#define READ_OUTCOME(name, text) name,
	READ_OUTCOMES(READ_OUTCOME)
#undef READ_OUTCOME
	READ_OUTCOME_COUNT
};

/* Why a published block never reached the store. */
#define BACKUP_DROPS(X) \
	X(BACKUP_PRESSURE, "pressure") /* the gate closed, or was closed */ \
	X(BACKUP_OVERFLOW, "overflow") /* the queue was full: its oldest went */ \
	X(BACKUP_GONE, "gone")         /* evicted from Host before its turn */ \
	X(BACKUP_DISABLED, "disabled") /* the write half of the credits is zero */ \
	X(BACKUP_CLEANUP, "cleanup")   /* discarded by a freeze, an intent, a stop */ \
	X(BACKUP_NO_SPACE, "no_space") /* the store refused for capacity; may be offered again */ \
	X(BACKUP_FAILED, "failed")     /* the store or the executor failed */

enum backup_drop {
#define BACKUP_DROP(name, text) name,
	BACKUP_DROPS(BACKUP_DROP)
#undef BACKUP_DROP
	BACKUP_DROP_COUNT
};

#define SHORTFALL_NONE UINT32_MAX

/* Where what can be had ends: the first block that a longer boundary would have needed. */
struct shortfall {
	enum read_outcome cause; /* why it ends there; READ_READY: the longest boundary was had */
	uint32_t          group; /* SHORTFALL_NONE: it is no block, but a limit or an event */
	uint32_t          position; /* block of the group, from the start of the prompt */
	uint32_t          tokens;   /* the boundary that could be had */
	uint32_t          wanted_tokens; /* the longest one */
};

const char *read_outcome_name(enum read_outcome outcome);
const char *backup_drop_name(enum backup_drop drop);

#endif
