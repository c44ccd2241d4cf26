/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store holds: an entry of 32 bytes for each object, found by the print of its key, in the
 * order that an eviction policy keeps.
 *
 * An entry names no key, only its 64-bit print, seeded with the store's secret id; the checksum
 * beside it is seeded with the whole key and length.  Two keys that share a print are one to exists();
 * a get tells them apart, and its object goes.
 *
 * Life       FREE -> WRITING -> PRESENT -> FREE.  Only PRESENT entries are found and in the order.
 *            GONE entries exist during recovery only: the newest word on their key is that it is dead.
 * Limits     entry_max, fixed at open; memory is touched only as entries come into use.
 * Threads    None of its own: under the store's lock.
 */
#ifndef STRATA_CATALOG_H
#define STRATA_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "evict/evict.h"

enum entry_state { ENTRY_FREE, ENTRY_WRITING, ENTRY_PRESENT, ENTRY_GONE };

struct entry {
	uint64_t print;    /* the map's key */
	uint64_t checksum; /* of key, length and payload */
	uint32_t page;     /* of the file, where the payload begins; of a FREE one: the next */
	uint32_t pages;    /* of payload */
	uint32_t locks;
	uint16_t ordinal;  /* in its segment */
	uint8_t  state;
	uint8_t  moving;   /* cleaning is writing it elsewhere: to its place of this number, less 1 */
};

struct catalog {
	struct entry *entries;
	struct map    map;
	struct evict *order;
	uint32_t      entry_max;
	uint32_t      known;      /* entries below it were in use once */
	uint32_t      free_first; /* of those that are FREE again, a chain through page */
	uint32_t      present;    /* entries */
};

/* KVS_E_INVALID for a policy that is not known; -ENOMEM. */
int  catalog_open(struct catalog *catalog, uint32_t entry_max, const char *evict_policy,
		struct kvs_error *err);
void catalog_close(struct catalog *catalog); /* zeroed is fine */

/* A look-up of print will follow soon. */
void catalog_prefetch(const struct catalog *catalog, uint64_t print);

/* Of any state but FREE; SLOT_NONE. */
uint32_t catalog_find(const struct catalog *catalog, uint64_t print);

/* A PRESENT entry, used; SLOT_NONE. */
uint32_t catalog_use(struct catalog *catalog, uint64_t print);

/* A WRITING entry, whose print no other has; SLOT_NONE when all are taken. */
uint32_t catalog_add(struct catalog *catalog, uint64_t print);

/* WRITING to PRESENT, the youngest of its order; its place is filled in. */
void catalog_publish(struct catalog *catalog, uint32_t entry);
/* WRITING to GONE: during recovery only. */
void catalog_mark_gone(struct catalog *catalog, uint32_t entry);

/* A PRESENT entry begins anew in the order, as one that was just written. */
void catalog_renew(struct catalog *catalog, uint32_t entry);

/* How often a PRESENT entry was used since it was written or renewed, as far as the policy cares. */
uint32_t catalog_heat(const struct catalog *catalog, uint32_t entry);

/* A PRESENT entry goes to make room. */
void catalog_expel(struct catalog *catalog, uint32_t entry);

/* Out of map and order, whatever its state. */
void catalog_drop(struct catalog *catalog, uint32_t entry);

/* The PRESENT entry without locks that the policy gives up first, out of the order but not yet dropped. */
uint32_t catalog_victim(struct catalog *catalog);

uint64_t catalog_bytes(const struct catalog *catalog);

void catalog_audit(const struct catalog *catalog);

#endif
