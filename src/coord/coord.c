/* SPDX-License-Identifier: Apache-2.0 */
/* See coord.h. */
#include "coord/coord.h"

#include <errno.h>

#include "match/full.h"

int coord_open(struct coord *coord, const struct coord_options *options, struct kvs_error *err)
{
	int rc;

	*coord = (struct coord){ 0 };
	if (index_open(&coord->index, options->device_blocks + options->host_blocks) < 0)
		return err_set(err, -ENOMEM, "no memory for the prefix index");
	rc = stratum_open(&coord->device, STRATUM_DEVICE, &coord->index, options->device_blocks,
			  options->device_policy, err);
	if (rc == 0) {
		rc = stratum_open(&coord->host, STRATUM_HOST, &coord->index, options->host_blocks,
				  options->host_policy, err);
	}
	if (rc < 0)
		coord_close(coord);
	return rc;
}

void coord_close(struct coord *coord)
{
	stratum_close(&coord->host);
	stratum_close(&coord->device);
	index_close(&coord->index);
}

struct coord_probe coord_probe(const struct coord *coord, const struct kvs_key *keys,
			       uint32_t key_count)
{
	struct coord_probe probe;

	probe.device_end = match_full(&coord->index, STRATUM_DEVICE, keys, 0, key_count, NULL);
	probe.host_end = match_full(&coord->index, STRATUM_HOST, keys, probe.device_end, key_count,
				    NULL);
	return probe;
}

void coord_touch(struct coord *coord, const struct kvs_key *keys, uint32_t key_count)
{
	uint32_t i;

	for (i = 0; i < key_count; i++) {
		stratum_touch(&coord->device, &keys[i]);
		stratum_touch(&coord->host, &keys[i]);
	}
}

int coord_admit(struct coord *coord, const struct kvs_key *keys, uint32_t key_count,
		uint32_t page_count, uint32_t *table, uint32_t *sources,
		struct coord_probe *ret_hit)
{
	const struct coord_probe hit = coord_probe(coord, keys, key_count);
	uint32_t                 idle_hits = 0;
	uint32_t                 i;

	KVS_ASSERT_CMP(key_count, <=, page_count);
	/* The hits themselves must not count as room: pinning them takes them out of it. */
	for (i = 0; i < hit.device_end; i++) {
		table[i] = stratum_find(&coord->device, &keys[i]);
		idle_hits += stratum_refs(&coord->device, table[i]) == 1;
	}
	if (stratum_room(&coord->device) - idle_hits < page_count - hit.device_end)
		return KVS_E_FULL;

	coord_touch(coord, keys, hit.host_end);
	for (i = 0; i < hit.device_end; i++)
		stratum_pin(&coord->device, table[i]);
	for (i = hit.device_end; i < hit.host_end; i++) {
		sources[i] = stratum_find(&coord->host, &keys[i]);
		stratum_pin(&coord->host, sources[i]);
	}
	for (i = hit.device_end; i < page_count; i++) {
		table[i] = stratum_acquire(&coord->device);
		KVS_ASSERT_CMP(table[i], !=, SLOT_NONE);
	}
	*ret_hit = hit;
	return 0;
}

static void settle(struct stratum *stratum, const struct kvs_key *keys, uint32_t key_count,
		   uint32_t *scratch)
{
	uint32_t held = 0;
	uint32_t i;

	for (i = 0; i < key_count; i++) {
		const uint32_t block = stratum_find(stratum, &keys[i]);

		if (block != SLOT_NONE)
			scratch[held++] = block;
	}
	evict_settle(stratum->order, scratch, held);
}

void coord_settle(struct coord *coord, const struct kvs_key *keys, uint32_t key_count,
		  uint32_t *scratch)
{
	settle(&coord->device, keys, key_count, scratch);
	settle(&coord->host, keys, key_count, scratch);
}

void coord_audit(struct coord *coord)
{
	index_audit(&coord->index);
	stratum_audit(&coord->device);
	stratum_audit(&coord->host);
}
