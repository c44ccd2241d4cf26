/* SPDX-License-Identifier: Apache-2.0 */
/* Open to close, and sums. */
#include "host/host.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "host/options.h"
#include "host/shard.h"

/*
 * A shard's part of a table.  Keys spread by their hash, so that a shard gets more than its share
 * now and then: by less than six times the root of it.
 */
static uint32_t part_of(uint32_t count, uint32_t shard_count)
{
	const uint32_t share = (count + shard_count - 1) / shard_count;
	uint32_t       root = 1;

	if (shard_count == 1)
		return count;
	while (root * root < share)
		root++;
	return share + 6 * root + 8;
}

static uint64_t mark_of(const struct host *host, double part)
{
	return (uint64_t)((double)host->space.page_count * part);
}

static void set(struct host *host, const struct host_options *options)
{
	uint32_t i;

	host->write_ttl_ns = options->write_ttl_ns;
	host->read_ttl_ns = options->read_ttl_ns;
	host->high_pages = mark_of(host, options->high);
	host->low_pages = mark_of(host, options->low);
	host->isolate = options->isolate;
	host->pressed = options->pressed;
	host->pressed_arg = options->pressed_arg;
	host->listener_count = options->listener_count;
	for (i = 0; i < options->listener_count; i++) {
		host->listeners[i] = options->listeners[i];
		host->heard |= options->listeners[i].events;
	}
	atomic_store(&host->sequence, 1);
	atomic_store(&host->short_pages, UINT32_MAX);
}

static struct shard_size size_of(const struct host_options *options)
{
	return (struct shard_size){
		.policy = options->policy,
		.record_max = part_of(options->object_max, options->shard_count),
		.claim_max = part_of(options->lock_max, options->shard_count),
		.client_max = options->client_max,
		.part_count = options->isolate ? HOST_TENANTS_MAX : 1,
	};
}

static int open_space(struct host *host, const struct host_options *options)
{
	const struct shard_size size = size_of(options);
	const size_t page_bytes = host_space_page_bytes(options->fields, options->field_count);

	if (tables_open(&host->tables, tables_round(page_bytes) +
					       options->shard_count * shard_table_bytes(&size)) < 0)
		return -ENOMEM;
	return host_space_open(&host->space, options->fields, options->field_count,
			       tables_take(&host->tables, page_bytes));
}

static int open_shards(struct host *host, const struct host_options *options)
{
	const struct shard_size size = size_of(options);
	uint32_t                i;

	host->shards = aligned_alloc(_Alignof(struct shard),
				     options->shard_count * sizeof(*host->shards));
	if (!host->shards)
		return -ENOMEM;
	for (i = 0; i < options->shard_count; i++)
		host->shards[i].capacity = 0;
	host->shard_count = options->shard_count;
	for (i = 0; i < options->shard_count; i++) {
		if (shard_open(&host->shards[i], &size, &host->tables) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int open_whole(struct host *host, const struct host_options *options)
{
	if (open_space(host, options) < 0 ||
	    tenants_open(&host->tenants, HOST_TENANTS_MAX, options->quota_bytes) < 0 ||
	    clients_open(&host->clients, options->client_max) < 0)
		return -ENOMEM;
	set(host, options);
	return open_shards(host, options);
}

static void close_whole(struct host *host)
{
	uint32_t i;

	for (i = 0; i < host->shard_count; i++)
		shard_close(&host->shards[i]);
	free(host->shards);
	clients_close(&host->clients);
	tenants_close(&host->tenants);
	host_space_close(&host->space);
	tables_close(&host->tables);
	os_mutex_fini(&host->space_lock);
	free(host);
}

int host_open(const struct host_options *options, struct host **ret_host, struct kvs_error *err)
{
	struct host *host;

	if (options_check(options, err) < 0)
		return KVS_E_INVALID;
	host = calloc(1, sizeof(*host));
	if (host) {
		os_mutex_init(&host->space_lock);
		if (open_whole(host, options) == 0) {
			*ret_host = host;
			return 0;
		}
		close_whole(host);
	}
	return err_set(err, -ENOMEM, "object_max: no memory for tables of %u objects",
		       options->object_max);
}

void host_close(struct host *host)
{
	uint32_t i;

	if (!host)
		return;
	KVS_ASSERT_CMP(clients_count(&host->clients), ==, 0);
	for (i = 0; i < host->shard_count; i++)
		KVS_ASSERT_CMP(host->shards[i].pins, ==, 0);
	close_whole(host);
}

void host_usage(struct host *host, struct host_usage *ret_usage)
{
	uint32_t i;

	*ret_usage = (struct host_usage){
		.bytes = host->space.page_count << SPACE_PAGE_BITS,
		.clients = clients_count(&host->clients),
	};
	for (i = 0; i < host->shard_count; i++)
		shard_sum(&host->shards[i], ret_usage);
	ret_usage->used_bytes = atomic_load_explicit(&host->used_pages, memory_order_relaxed)
				<< SPACE_PAGE_BITS;
}

size_t host_bytes(const struct host *host)
{
	size_t   bytes = sizeof(*host) + host->tables.mapped_bytes;
	uint32_t i;

	bytes += tenants_bytes(&host->tenants);
	bytes += host->clients.slots.count * sizeof(*host->clients.entries);
	for (i = 0; i < host->shard_count; i++)
		bytes += shard_bytes(&host->shards[i]);
	return bytes;
}
