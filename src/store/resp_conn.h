/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to a Redis server: connected, secured, logged in, its database selected.
 *
 * It moves bytes and waits in open and in the calls that take a deadline only.  One thread at a time.
 */
#ifndef STORE_RESP_CONN_H
#define STORE_RESP_CONN_H

#include <sys/types.h>
#include <sys/uio.h>

#include "os/os.h"
#include "os/tls.h"
#include "store/resp_settings.h"

struct resp_conn {
	int         fd; /* negative when closed */
	struct tls *tls;
};

/**
 * Connect within settings->connect_timeout_ns; that the name is resolved comes on top, and nothing
 * but the resolver bounds it.  authority: NULL without TLS.
 *
 * Errors  -errno and KVS_E_* as they came; the sentence names the setting that does not fit.
 */
int  resp_conn_open(struct resp_conn *conn, const struct resp_settings *settings,
		    struct tls_authority *authority, struct kvs_error *err);
void resp_conn_close(struct resp_conn *conn);

/* Open, and the server has neither spoken unasked nor hung up. */
bool resp_conn_is_quiet(struct resp_conn *conn);

/* As os_socket_readv() and os_socket_writev(). */
ssize_t resp_conn_readv(struct resp_conn *conn, const struct iovec *parts, int count);
ssize_t resp_conn_writev(struct resp_conn *conn, const struct iovec *parts, int count);

/* All of the bytes, or an error; some bytes, or an error. */
int     resp_conn_send(struct resp_conn *conn, const void *bytes, size_t count,
		       uint64_t deadline_ns);
ssize_t resp_conn_receive(struct resp_conn *conn, void *bytes, size_t room, uint64_t deadline_ns);

#endif
