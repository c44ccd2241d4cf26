/* SPDX-License-Identifier: Apache-2.0 */
/* A shard's tables: open, close, sums, audit. */
#ifndef HOST_SHARD_H
#define HOST_SHARD_H

#include "host/parts.h"
#include "host/tables.h"

struct shard_size {
	const char *policy;
	uint32_t    record_max;
	uint32_t    claim_max;
	uint32_t    client_max;
	uint32_t    part_count; /* of the order: a tenant each */
};

/* What shard_open() takes of the tables. */
size_t shard_table_bytes(const struct shard_size *size);

/* 0, or -ENOMEM. */
int  shard_open(struct shard *shard, const struct shard_size *size, struct tables *tables);
void shard_close(struct shard *shard); /* a zeroed one, too */

/* Memory beside the tables. */
size_t shard_bytes(const struct shard *shard);

/* Add the shard's counts to a sum; its mutex is taken. */
void shard_sum(struct shard *shard, struct host_usage *usage);

/*
 * O(all); its mutex is taken.  Pages of its places, and bytes of each tenant where bytes is not
 * NULL, are added.
 */
void shard_audit(struct shard *shard, uint64_t *pages, uint64_t *bytes);

#endif
