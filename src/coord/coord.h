/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache coordinator: both strata of blocks under one prefix index.
 *
 * Answers "how much of this prompt is here?" (probe), makes room and hands out blocks for a request
 * (admit), and counts uses.  A use of a page is a use in every stratum that holds it, so that a
 * page hot on the Device does not grow cold on the Host.
 *
 * Threads  The cache thread only.  Pure: no clock, no thread, no allocation after open.
 */
#ifndef COORD_COORD_H
#define COORD_COORD_H

#include "coord/stratum.h"

struct coord_options {
	uint32_t    device_blocks;
	uint32_t    host_blocks;
	const char *device_policy; /* one of evict_giving_names */
	const char *host_policy;
};

struct coord {
	struct prefix_index index;
	struct stratum      device;
	struct stratum      host;
};

/* Both ends are absolute page counts: Device holds [0, device_end), Host supplies [device_end, host_end). */
struct coord_probe {
	uint32_t device_end;
	uint32_t host_end;
};

int  coord_open(struct coord *coord, const struct coord_options *options, struct kvs_error *err);
void coord_close(struct coord *coord);

/* Reserves nothing and counts no use. */
struct coord_probe coord_probe(const struct coord *coord, const struct kvs_key *keys,
			       uint32_t key_count);

/**
 * Take the blocks of a request: pin what the Device holds, take fresh Device blocks for the rest of
 * its table, and pin the Host blocks that will be copied in.
 *
 * Shape   table[0 .. page_count) are Device blocks, one reference each; sources[i] for i in
 *         [device_end, host_end) are Host blocks, one reference each.
 * Owner   The caller, through stratum_unpin().
 * Errors  KVS_E_FULL  the Device has too little room now; nothing taken, nothing touched.
 */
int coord_admit(struct coord *coord, const struct kvs_key *keys, uint32_t key_count,
		uint32_t page_count, uint32_t *table, uint32_t *sources,
		struct coord_probe *ret_hit);

/* A use of each of these pages in every stratum that holds it. */
void coord_touch(struct coord *coord, const struct kvs_key *keys, uint32_t key_count);

/* A request used or published these pages, prefix first: settle both orders.  scratch holds key_count. */
void coord_settle(struct coord *coord, const struct kvs_key *keys, uint32_t key_count,
		  uint32_t *scratch);

void coord_audit(struct coord *coord);

#endif
