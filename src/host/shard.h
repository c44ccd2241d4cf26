/* SPDX-License-Identifier: Apache-2.0 */
/* A shard's tables: open, close, sums, audit. */
#ifndef HOST_SHARD_H
#define HOST_SHARD_H

#include "host/parts.h"

/* 0, or -ENOMEM. */
int  shard_open(struct shard *shard, const char *policy, uint32_t record_max, uint32_t claim_max,
		uint32_t client_max);
void shard_close(struct shard *shard); /* a zeroed one, too */

size_t shard_bytes(const struct shard *shard, uint32_t client_max);

/* Add the shard's counts to a sum; its mutex is taken. */
void shard_sum(struct shard *shard, struct host_usage *usage);

/*
 * O(all); its mutex is taken.  Pages of its places, and bytes of each tenant where bytes is not
 * NULL, are added.
 */
void shard_audit(struct shard *shard, uint32_t client_max, uint64_t *pages, uint64_t *bytes);

#endif
