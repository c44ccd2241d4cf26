/* SPDX-License-Identifier: Apache-2.0 */
#include "host/clients.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "host/host.h"

static_assert(HOST_CLIENTS_MAX == 1u << CLIENT_SLOT_BITS, "an id has room for every slot");

int clients_open(struct clients *clients, uint32_t client_max)
{
	os_mutex_init(&clients->mutex);
	clients->entries = calloc(client_max, sizeof(*clients->entries));
	return clients->entries ? slots_open(&clients->slots, client_max) : -ENOMEM;
}

void clients_close(struct clients *clients)
{
	slots_close(&clients->slots);
	free(clients->entries);
	os_mutex_fini(&clients->mutex);
}

int clients_enter(struct clients *clients, unsigned flags, uint64_t *ret_id)
{
	struct clients_entry *entry;
	uint32_t              slot;

	os_mutex_lock(&clients->mutex);
	slot = slots_acquire(&clients->slots);
	if (slot != SLOT_NONE) {
		entry = &clients->entries[slot];
		entry->flags = flags;
		atomic_store_explicit(&entry->has_staged, false, memory_order_relaxed);
		*ret_id = ++entry->turn << CLIENT_SLOT_BITS | slot;
		atomic_store_explicit(&entry->id, *ret_id, memory_order_release);
	}
	os_mutex_unlock(&clients->mutex);
	return slot == SLOT_NONE ? KVS_E_FULL : 0;
}

bool clients_retire(struct clients *clients, uint64_t id)
{
	bool was;

	os_mutex_lock(&clients->mutex);
	was = clients_is(clients, id);
	if (was) {
		atomic_store_explicit(&clients->entries[client_slot(id)].id, 0,
				      memory_order_relaxed);
	}
	os_mutex_unlock(&clients->mutex);
	return was;
}

void clients_leave(struct clients *clients, uint64_t id)
{
	os_mutex_lock(&clients->mutex);
	slots_release(&clients->slots, client_slot(id));
	os_mutex_unlock(&clients->mutex);
}

uint32_t clients_count(struct clients *clients)
{
	uint32_t count;

	os_mutex_lock(&clients->mutex);
	count = clients->slots.busy_count;
	os_mutex_unlock(&clients->mutex);
	return count;
}
