/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is a client.
 *
 * An id is a slot and a number that grows with each client of the slot.  Whoever works for a client
 * looks at its id with a shard's mutex held; a close takes the id away first and then visits every
 * shard, so that what was begun before is found there, and nothing begins behind its back.
 *
 * Threads  Any.
 */
#ifndef HOST_CLIENTS_H
#define HOST_CLIENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slots.h"
#include "os/os.h"

#define CLIENT_SLOT_BITS 12

struct clients_entry {
	_Atomic uint64_t id; /* 0: none, or closing */
	uint64_t         turn;
	unsigned         flags;
	_Atomic bool     has_staged;
};

struct clients {
	struct os_mutex       mutex;
	struct slots          slots;
	struct clients_entry *entries;
};

int  clients_open(struct clients *clients, uint32_t client_max); /* 0, or -ENOMEM */
void clients_close(struct clients *clients);

int clients_enter(struct clients *clients, unsigned flags, uint64_t *ret_id);
/* From now on it is none; its slot stays taken until clients_leave().  False: it was none. */
bool clients_retire(struct clients *clients, uint64_t id);
void clients_leave(struct clients *clients, uint64_t id);

static inline uint32_t client_slot(uint64_t id)
{
	return (uint32_t)(id & ((1u << CLIENT_SLOT_BITS) - 1));
}

static inline bool clients_is(const struct clients *clients, uint64_t id)
{
	/* Relaxed: a shard's mutex orders it against the close, see above. */
	return id != 0 && client_slot(id) < clients->slots.count &&
	       atomic_load_explicit(&clients->entries[client_slot(id)].id, memory_order_relaxed) ==
		       id;
}

/* Of one that is: flags do not change while it is. */
static inline unsigned clients_flags(const struct clients *clients, uint64_t id)
{
	return clients->entries[client_slot(id)].flags;
}

/* A client stages; whether it ever did.  With the mutex held of the shard that is meant. */
static inline void clients_stage(struct clients *clients, uint64_t id)
{
	_Atomic bool *const has_staged = &clients->entries[client_slot(id)].has_staged;

	if (!atomic_load_explicit(has_staged, memory_order_relaxed))
		atomic_store_explicit(has_staged, true, memory_order_relaxed);
}

static inline bool clients_has_staged(const struct clients *clients, uint32_t slot)
{
	return atomic_load_explicit(&clients->entries[slot].has_staged, memory_order_relaxed);
}

uint32_t clients_count(struct clients *clients);

#endif
