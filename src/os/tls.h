/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over a connected stream socket: the client's side, by OpenSSL.
 *
 * The peer is always verified: its chain against the authorities, its certificate against the name.
 * Bytes pass through our own socket functions, because OpenSSL's would raise SIGPIPE in a process
 * that belongs to somebody else.
 */
#ifndef OS_TLS_H
#define OS_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"

/* What connections share: the authorities.  From any thread. */
struct tls_authority;

/* ca_path: a file of PEM certificates; NULL: those of the system.  The sentence says what is wrong. */
int  tls_authority_open(const char *ca_path, struct tls_authority **ret_authority,
			struct kvs_error *err);
void tls_authority_close(struct tls_authority *authority);

/* One connection, used by one thread at a time. */
struct tls;

/**
 * Shake hands on fd, which stays the caller's, and check that the peer may use `name`.
 *
 * Errors  -EACCES     the certificate does not hold; the sentence says why;
 *         -EPROTO     the peer speaks no TLS that we do;
 *         -ETIMEDOUT, -errno.
 */
int  tls_open(struct tls_authority *authority, int fd, const char *name, uint64_t deadline_ns,
	      struct tls **ret_tls, struct kvs_error *err);
void tls_close(struct tls *tls);

/*
 * As os_socket_readv() and os_socket_writev().  A read stops short only when nothing more is there,
 * in the socket or decrypted.
 */
ssize_t tls_readv(struct tls *tls, const struct iovec *parts, int count);
ssize_t tls_writev(struct tls *tls, const struct iovec *parts, int count);

/* As os_socket_is_quiet(); what only keeps the session up does not count. */
bool tls_is_quiet(struct tls *tls);

/* After -EAGAIN: the socket must take bytes before the call can go on. */
bool tls_wants_write(const struct tls *tls);

#endif
