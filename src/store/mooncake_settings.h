/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Mooncake store was told, read once and checked in full.
 *
 *   mooncake:HOST[:PORT]?OPTIONS   mooncake?config=FILE   mooncake, with MOONCAKE_MASTER set
 *
 * What Mooncake's users know is read from all their places, see mooncake_source.h; what is ours is
 * an option only.  Sizes are Mooncake's ("4gb", "512 MB", "1.5g") or ours ("4GiB"), all binary.
 *
 * Segment   global_segment_size is shared by `ranks` processes of this machine, each share rounded
 *           down to whole MOONCAKE_SEGMENT_UNIT: less than one is refused by every master, and what
 *           is not whole by one with the cachelib allocator, both with -600.  By default it is 0,
 *           unlike the SDK's: objects in the segment of an engine go when the engine goes.
 */
#ifndef STORE_MOONCAKE_SETTINGS_H
#define STORE_MOONCAKE_SETTINGS_H

#include <kvstrata/store.h>

#include "base/err.h"
#include "mooncake/settings.h"

#define MOONCAKE_SEGMENT_UNIT (UINT64_C(16) << 20)
#define MOONCAKE_RANKS_MAX 1024u
#define MOONCAKE_REPLICAS_MAX 64u
#define MOONCAKE_PROBES_MAX (1u << 20)

extern const char *const mooncake_options[];

int mooncake_settings_read(const struct kvs_store_config *config,
			   struct mooncake_settings *ret_settings, struct kvs_error *err);

/* A size as Mooncake's users write it; KVS_E_INVALID leaves *ret as it is. */
int mooncake_size(const char *text, uint64_t *ret_bytes);

#endif
