/* SPDX-License-Identifier: Apache-2.0 */
#include "host/shard.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

static int open_lists(struct shard *shard, uint32_t client_max)
{
	uint32_t i;

	shard->writer_links = malloc(shard->capacity * sizeof(*shard->writer_links));
	shard->write_links = malloc(shard->capacity * sizeof(*shard->write_links));
	shard->writers = malloc(client_max * sizeof(*shard->writers));
	if (!shard->writer_links || !shard->write_links || !shard->writers)
		return -ENOMEM;
	list_init(&shard->writes);
	for (i = 0; i < client_max; i++)
		list_init(&shard->writers[i]);
	return 0;
}

int shard_open(struct shard *shard, const char *policy, uint32_t record_max, uint32_t claim_max,
	       uint32_t client_max)
{
	*shard = (struct shard){ .capacity = record_max, .free = SLOT_NONE };
	os_mutex_init(&shard->mutex);
	shard->records = aligned_alloc(_Alignof(struct record), record_max * sizeof(struct record));
	if (!shard->records || open_lists(shard, client_max) < 0 ||
	    map_open(&shard->map, record_max, &shard->records->key, sizeof(*shard->records),
		     sizeof(struct kvs_key)) < 0 ||
	    claims_open(&shard->claims, claim_max, client_max) < 0)
		return -ENOMEM;
	return evict_open(policy, record_max, &shard->order, NULL);
}

void shard_close(struct shard *shard)
{
	if (shard->capacity == 0)
		return;
	evict_close(shard->order);
	claims_close(&shard->claims);
	map_close(&shard->map);
	free(shard->writers);
	free(shard->write_links);
	free(shard->writer_links);
	free(shard->records);
	os_mutex_fini(&shard->mutex);
}

size_t shard_bytes(const struct shard *shard, uint32_t client_max)
{
	return sizeof(*shard) +
	       shard->capacity * (sizeof(*shard->records) + sizeof(*shard->writer_links) +
				  sizeof(*shard->write_links)) +
	       client_max * sizeof(*shard->writers) + map_bytes(&shard->map) +
	       claims_bytes(&shard->claims) + evict_bytes(shard->order);
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
