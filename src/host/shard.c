/* SPDX-License-Identifier: Apache-2.0 */
#include "host/shard.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

/* Half as full as a map may be: what is added at 3/4 passes eight buckets, at 3/8 two. */
static uint32_t map_capacity(const struct shard_size *size)
{
	return 2 * size->record_max;
}

size_t shard_table_bytes(const struct shard_size *size)
{
	return tables_round(size->record_max * sizeof(struct record)) +
	       tables_round(map_bucket_bytes(map_capacity(size)));
}

int shard_open(struct shard *shard, const struct shard_size *size, struct tables *tables)
{
	*shard = (struct shard){ .capacity = size->record_max, .free = SLOT_NONE };
	os_mutex_init(&shard->mutex);
	list_init(&shard->writes);
	list_init(&shard->loads);
	shard->records = tables_take(tables, size->record_max * sizeof(struct record));
	map_open_in(&shard->map, tables_take(tables, map_bucket_bytes(map_capacity(size))),
		    map_capacity(size), &shard->records->key, sizeof(*shard->records),
		    sizeof(struct kvs_key));
	if (claims_open(&shard->claims, size->claim_max, size->client_max) < 0)
		return -ENOMEM;
	return evict_open_parts(size->policy, size->record_max, size->part_count, &shard->order,
				NULL);
}

void shard_close(struct shard *shard)
{
	if (shard->capacity == 0)
		return;
	evict_close(shard->order);
	claims_close(&shard->claims);
	map_close(&shard->map);
	os_mutex_fini(&shard->mutex);
}

size_t shard_bytes(const struct shard *shard)
{
	return sizeof(*shard) + claims_bytes(&shard->claims) + evict_bytes(shard->order);
}

void shard_sum(struct shard *shard, struct host_usage *usage)
{
	uint32_t i;

	os_mutex_lock(&shard->mutex);
	usage->staged_bytes += shard->staged_pages << SPACE_PAGE_BITS;
	usage->objects += shard->objects;
	usage->staged += shard->staged;
	usage->doomed += shard->doomed;
	usage->temporary += shard->temporary;
	usage->locks += shard->locks;
	usage->pins += shard->pins;
	for (i = 0; i < HOST_COUNTER_COUNT; i++)
		usage->counters[i] += shard->counters[i];
	os_mutex_unlock(&shard->mutex);
}
