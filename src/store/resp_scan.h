/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a server, page by page. */
#ifndef STORE_RESP_SCAN_H
#define STORE_RESP_SCAN_H

#include "store/resp_pool.h"

/* A longer answer to one SCAN is refused. */
#define RESP_PAGE_KEYS_MAX 65535u

struct resp_page {
	uint64_t        cursor; /* in: where it begins; out: where the next does, 0 at the end */
	uint32_t        skip;   /* keys of the page to pass over */
	struct kvs_key *keys;
	uint32_t        key_max;
	uint32_t        count;  /* out */
	bool            more;   /* out: the page has keys for which there was no room */
};

/* One SCAN for keys of a namespace, NULL for all.  -EACCES: the server refused; -errno, KVS_E_PROTO. */
int resp_scan(struct resp_pool *pool, const struct kvs_namespace *space, struct resp_page *page);

#endif
