/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to share: a batch leases some, uses them alone, and gives them back.
 *
 * A connection is opened when it is leased and not open, and looked at before it is used again: one
 * that the server closed in the meantime is opened anew, so that a restarted server costs nothing.
 * After a connect that failed, later ones fail at once with the same code until a back-off is over;
 * it doubles up to a second, is forgotten with the first success, and belongs to the server: all
 * pools of a store share it.
 *
 * Waiting  for a lease ends, because whoever holds one is bounded by its time-outs, and by the
 *          resolver's while it connects to a name.
 */
#ifndef STORE_RESP_POOL_H
#define STORE_RESP_POOL_H

#include "store/resp_stream.h"

/* What pools share: the server as it was last seen. */
struct resp_server {
	const struct resp_settings *settings;
	struct tls_authority       *authority; /* NULL without TLS */
	struct os_mutex             mutex;     /* guards all below */
	uint64_t                    retry_ns;  /* no connect before */
	uint64_t                    back_off_ns;
	int                         code; /* of the last failure */
	bool                        reached; /* a connection has been open */
};

struct resp_pool {
	struct resp_server *server;
	struct resp_stream *streams;
	uint32_t            count;
	struct os_mutex     mutex; /* guards idle and idle_count; taken alone */
	struct os_cond      returned;
	struct resp_stream *idle[RESP_CONNECTIONS_MAX]; /* the last one returned is leased first */
	uint32_t            idle_count;
};

struct resp_lease {
	struct resp_stream *streams[RESP_CONNECTIONS_MAX];
	uint32_t            count;
};

/* Never has a connection been open; from any thread. */
bool resp_server_is_unreached(struct resp_server *server);

void resp_server_init(struct resp_server *server, const struct resp_settings *settings,
		      struct tls_authority *authority);
void resp_server_fini(struct resp_server *server);

/* server and counts are held until fini.  -ENOMEM. */
int  resp_pool_init(struct resp_pool *pool, struct resp_server *server, uint32_t count,
		    struct resp_counts *counts);
/* Nothing is leased.  A zeroed pool is fine. */
void resp_pool_fini(struct resp_pool *pool);

/**
 * Between one and `wanted` open streams with nothing in flight.
 *
 * Errors  -errno or KVS_E_* when none can be had open; nothing is leased, and err may be NULL.
 */
int  resp_pool_lease(struct resp_pool *pool, uint32_t wanted, struct resp_lease *ret_lease,
		     struct kvs_error *err);
/* Nothing is in flight; streams may be closed. */
void resp_pool_return(struct resp_pool *pool, const struct resp_lease *lease);

#endif
