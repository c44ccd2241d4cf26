/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of clients.
 *
 * A close takes the handle away first, then ends the client's prefetches: one that is submitted
 * meanwhile either finds no handle or is found (see prefetch.c).  Only then is the descriptor
 * closed, so that nobody signals another's.
 */
#include "manager/parts.h"

#include <errno.h>
#include <stdlib.h>

int manager_clients_open(struct manager *manager, struct kvs_error *err)
{
	const uint32_t count = manager->options.clients;
	uint32_t       i;

	manager->clients = calloc(count, sizeof(*manager->clients));
	if (!manager->clients || slots_open(&manager->client_slots, count) < 0)
		return err_set(err, -ENOMEM, "clients: no memory for %u", count);
	for (i = 0; i < count; i++)
		manager->clients[i].fd = -1;
	return 0;
}

void manager_clients_free(struct manager *manager)
{
	slots_close(&manager->client_slots);
	free(manager->clients);
}

static struct client *client_at(struct manager *manager, kvs_client handle)
{
	const uint64_t slot = handle & HANDLE_SLOT_MASK;

	return handle && slot < manager->options.clients ? &manager->clients[slot] : NULL;
}

host_client manager_host_client(struct manager *manager, kvs_client handle)
{
	struct client *const client = client_at(manager, handle);
	host_client          host;

	if (!client || atomic_load(&client->handle) != handle)
		return 0;
	host = atomic_load(&client->host);
	return atomic_load(&client->handle) == handle ? host : 0;
}

/* With a slot and its descriptor. */
static int enter(struct manager *manager, uint32_t slot, int fd, kvs_client *ret_client)
{
	struct client *const client = &manager->clients[slot];
	host_client          host;
	const int            rc = host_client_open(manager->host, 0, &host);

	if (rc < 0)
		return rc;
	os_mutex_lock(&manager->lock);
	client->fd = fd;
	*ret_client = handle_of(++client->turn, slot);
	os_mutex_unlock(&manager->lock);
	atomic_store(&client->host, host);
	atomic_store(&client->handle, *ret_client);
	return 0;
}

static void give_back(struct manager *manager, uint32_t slot)
{
	os_mutex_lock(&manager->lock);
	slots_release(&manager->client_slots, slot);
	os_mutex_unlock(&manager->lock);
}

int manager_client_open(struct manager *manager, kvs_client *ret_client)
{
	uint32_t slot;
	int      fd, rc;

	os_mutex_lock(&manager->lock);
	slot = slots_acquire(&manager->client_slots);
	os_mutex_unlock(&manager->lock);
	if (slot == SLOT_NONE)
		return KVS_E_FULL;
	fd = os_eventfd();
	rc = fd < 0 ? fd : enter(manager, slot, fd, ret_client);
	if (rc < 0) {
		os_close(fd);
		give_back(manager, slot);
	}
	return rc;
}

int manager_client_close(struct manager *manager, kvs_client handle)
{
	struct client *const client = client_at(manager, handle);
	kvs_client           expected = handle;
	int                  fd;

	/* Of two who close it one succeeds. */
	if (!client || !atomic_compare_exchange_strong(&client->handle, &expected, 0))
		return KVS_E_STALE;
	manager_prefetches_end(manager, handle);
	(void)host_client_close(manager->host, atomic_load(&client->host), os_now_ns());
	os_mutex_lock(&manager->lock);
	fd = client->fd;
	client->fd = -1;
	slots_release(&manager->client_slots, (uint32_t)(handle & HANDLE_SLOT_MASK));
	os_mutex_unlock(&manager->lock);
	os_close(fd);
	return 0;
}

int manager_client_fd(struct manager *manager, kvs_client handle)
{
	struct client *const client = client_at(manager, handle);
	int                  fd = KVS_E_STALE;

	os_mutex_lock(&manager->lock);
	if (client && atomic_load(&client->handle) == handle)
		fd = client->fd;
	os_mutex_unlock(&manager->lock);
	return fd;
}

void manager_clients_end(struct manager *manager)
{
	uint32_t i;

	manager_prefetches_end(manager, 0);
	for (i = 0; i < manager->client_slots.count; i++) {
		const kvs_client handle = atomic_load(&manager->clients[i].handle);

		if (handle)
			(void)manager_client_close(manager, handle);
	}
}

uint32_t manager_clients_count(struct manager *manager)
{
	uint32_t count;

	os_mutex_lock(&manager->lock);
	count = manager->client_slots.busy_count;
	os_mutex_unlock(&manager->lock);
	return count;
}
