/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small asynchronous store: rows go into a tray, and come out in another order.
 *
 * It keeps objects by key number, one length for all.  Each lane has a tray of its own; reap() takes
 * out some of it, by a seeded draw.  What it answers, and when, is the test's to bend.
 */
#ifndef LIB_TRAY_H
#define LIB_TRAY_H

#include <kvstrata/store.h>

#include "base/prng.h"
#include "os/os.h"

#define TRAY_BLOCK_BYTES 512u
#define TRAY_KEYS 256u
#define TRAY_ROOM_MAX 128u
#define TRAY_LANES 8u

struct tray_lane {
	struct kvs_io rows[TRAY_ROOM_MAX];
	uint32_t      count;
};

struct tray {
	struct kvs_store store;
	struct os_mutex  lock;
	struct os_cond   moved;
	struct prng      prng;
	struct tray_lane lanes[TRAY_LANES];
	bool             kept[TRAY_KEYS];
	uint64_t         bytes[TRAY_KEYS][TRAY_BLOCK_BYTES / 8];
	uint32_t         asked[TRAY_KEYS]; /* rows */
	uint32_t         room;         /* rows a lane takes; 1 .. TRAY_ROOM_MAX, 0 breaks a promise */
	uint32_t         answer_at;    /* nothing comes out while fewer rows lie in the lane */
	uint32_t         most;         /* rows in a lane, at once, so far */
	uint32_t         failing;      /* key number whose rows FAIL; UINT32_MAX: none */
	uint32_t         doubtful;     /* key number whose rows do not retire; UINT32_MAX: none */
	int              submit_rc;    /* 0, or what submit() fails with */
	int              reap_rc;
	bool             stutters;     /* answers each row twice, and rows that nobody asked for */
	bool             one_thread;   /* says so; no executor opens that */
	bool             closed;
};

void tray_init(struct tray *tray, uint32_t room);
void tray_fini(struct tray *tray);

/* Before it is opened: it proves whatever is in doubt over as soon as it is asked. */
void tray_settle(struct tray *tray);

/* Wait until so many rows lie in some lane; change when rows come out. */
void tray_wait(struct tray *tray, uint32_t count);
void tray_answer_at(struct tray *tray, uint32_t answer_at);

#endif
