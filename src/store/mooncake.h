/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects in a Mooncake Store cluster, through the SDK's client.
 *
 *   worker --batch--> keys as text, seals --call--> lane of a way (mooncake/way.h) --> the client
 *
 * Retirement   is what the way says of each call, and nothing here changes it: codes only say what
 *              became of objects.
 * Objects      payload, then the seal of key/label.h in the room behind it; payload alone with
 *              format=raw.  A get may fill the whole room, so that a longer object shows by its
 *              length.  A row without room for the seal is not moved, and the note says so; a Host
 *              of part_bytes has it behind every block (arena/hostmap.h).
 * Probes       A lookup keeps what it finds from eviction for a while: mooncake/probes.h bounds
 *              that.  A failure forgets all that was found: the master may know less then.
 * Not had      list; locks; which of two puts was first: the second is DONE, too, unless a probe of
 *              ours found the object lately.
 */
#ifndef STORE_MOONCAKE_H
#define STORE_MOONCAKE_H

#include <stdatomic.h>

#include <kvstrata/store.h>

#include "base/err.h"
#include "mooncake/probes.h"
#include "store/mooncake_fetch.h"
#include "store/mooncake_lanes.h"
#include "store/mooncake_provider.h"

/* Relaxed: each a count by itself. */
struct mooncake_counts {
	_Atomic uint64_t corrupt_objects;
	_Atomic uint64_t refused_full;
	_Atomic uint64_t roomless; /* rows without room for a seal */
};

struct mooncake {
	struct kvs_store         store;
	struct mooncake_settings settings;
	uint64_t                 block_bytes;
	struct mooncake_way     *way;
	struct mooncake_lanes    lanes;
	struct os_mutex          probes_mutex; /* guards the next; taken alone */
	struct probes           *probes;
	struct mooncake_provider provider;
	struct mooncake_curl     curl;
	struct mooncake_counts   counts;
	atomic_bool              unregistered; /* memory was told, and not taken */
};

/**
 * A store on a way that is open.
 *
 * Owner   The way is the store's on success, and stays the caller's on failure.
 * Errors  -ENOMEM.
 */
int mooncake_open_on(struct mooncake_way *way, const struct mooncake_settings *settings,
		     uint64_t block_bytes, struct kvs_store **ret_store, struct kvs_error *err);

#endif
