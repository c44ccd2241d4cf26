/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that loses power: a file in memory, seen through os_io_hook, that remembers what a sync has
 * not yet made durable.
 *
 * Every sector of 512 bytes keeps the versions that were written since the last sync.  After a crash
 * each sector has one of them, or what it had before all of them: writes are dropped, torn and
 * reordered as a cache in a disk may do it.  What the store reads before the crash is always the
 * newest version.
 *
 * Crash    At a chosen write, which lands like any other; from then on everything fails with -EIO.
 * Limits   One at a time in a process, one thread.
 */
#ifndef CRASH_DEVICE_H
#define CRASH_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"
#include "os/hook.h"

#define SECTOR 512u
#define SECTOR_VERSIONS 4u

struct sector {
	uint8_t  count;                 /* of versions since the last sync */
	uint32_t write[SECTOR_VERSIONS]; /* which write each came from */
};

/* Called with each transfer and sync before it is done, while the device is up. */
typedef void device_sees(void *ctx, const struct os_io *io);
/* Called once, in the middle of the write at which the power goes. */
typedef void device_falls(void *ctx);

struct device {
	int            fd;
	char           path[32];
	uint64_t       bytes_max;    /* nothing may lie beyond */
	uint64_t       durable_size; /* of the file */
	uint64_t       size;
	uint8_t       *durable;
	uint8_t       *versions;     /* SECTOR_VERSIONS each */
	struct sector *sectors;
	uint32_t      *dirty;        /* sectors with versions */
	uint32_t       dirty_count;
	uint32_t       write_count;  /* since the last sync or crash */
	uint64_t       writes_left;  /* until the crash; 0: none is to come */
	uint64_t       calls_left;   /* until one call fails with -EIO; 0: none does */
	bool           crashed;
	bool           failed;       /* one call did */
	struct prng    prng;
	device_sees   *sees;
	device_falls  *falls;
	void          *ctx;
};

void device_open(struct device *device, uint64_t bytes_max, uint64_t seed, device_sees *sees,
		 device_falls *falls, void *ctx);
void device_close(struct device *device);

/* Power fails now, wherever the device is, and comes back: the file is what the disk kept. */
void device_restart(struct device *device);

/* An empty file again. */
void device_clear(struct device *device);

#endif
