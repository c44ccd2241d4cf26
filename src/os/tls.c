/* SPDX-License-Identifier: Apache-2.0 */
/* Each call empties OpenSSL's queue of errors first: codes left by the host are not ours to read. */
#include "os/tls.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "os/os.h"

struct tls_authority {
	SSL_CTX    *context;
	BIO_METHOD *socket;
};

struct tls {
	SSL *ssl;
	int  fd;
	int  code; /* of the socket's last failure */
	bool wants_write;
};

static int socket_result(BIO *bio, ssize_t done, int retry)
{
	struct tls *tls = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (done > 0)
		return (int)done;
	tls->code = (int)done;
	if (done == -EAGAIN)
		BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
	return -1;
}

static int socket_read(BIO *bio, char *bytes, int count)
{
	const struct tls  *tls = BIO_get_data(bio);
	const struct iovec part = { bytes, (size_t)count };

	return socket_result(bio, os_socket_readv(tls->fd, &part, 1), BIO_FLAGS_READ);
}

static int socket_write(BIO *bio, const char *bytes, int count)
{
	const struct tls  *tls = BIO_get_data(bio);
	const struct iovec part = { (char *)bytes, (size_t)count };

	return socket_result(bio, os_socket_writev(tls->fd, &part, 1), BIO_FLAGS_WRITE);
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

/* OpenSSL has about a hundred numbers for a whole process, and none comes back. */
static pthread_once_t index_once = PTHREAD_ONCE_INIT;
static int            socket_index;

static void take_index(void)
{
	socket_index = BIO_get_new_index();
}

static BIO_METHOD *socket_method(void)
{
	BIO_METHOD *method;

	pthread_once(&index_once, take_index);
	if (socket_index < 0)
		return NULL;
	method = BIO_meth_new(socket_index | BIO_TYPE_SOURCE_SINK, "os_socket");

	if (!method)
		return NULL;
	BIO_meth_set_read(method, socket_read);
	BIO_meth_set_write(method, socket_write);
	BIO_meth_set_ctrl(method, socket_control);
	return method;
}

static int trust(SSL_CTX *context, const char *ca_path)
{
	return ca_path ? SSL_CTX_load_verify_locations(context, ca_path, NULL)
		       : SSL_CTX_set_default_verify_paths(context);
}

int tls_authority_open(const char *ca_path, struct tls_authority **ret_authority,
		       struct kvs_error *err)
{
	struct tls_authority *authority = calloc(1, sizeof(*authority));

	if (authority) {
		authority->context = SSL_CTX_new(TLS_client_method());
		authority->socket = socket_method();
	}
	if (!authority || !authority->context || !authority->socket) {
		tls_authority_close(authority);
		return err_set(err, -ENOMEM, "no memory");
	}
	ERR_clear_error();
	SSL_CTX_set_min_proto_version(authority->context, TLS1_2_VERSION);
	SSL_CTX_set_verify(authority->context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(authority->context,
			 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (trust(authority->context, ca_path) != 1) {
		const char *reason = ERR_reason_error_string(ERR_peek_last_error());

		tls_authority_close(authority);
		return err_set(err, KVS_E_INVALID, "cannot be read as PEM certificates: %s",
			       reason ? reason : "unknown reason");
	}
	*ret_authority = authority;
	return 0;
}

void tls_authority_close(struct tls_authority *authority)
{
	if (!authority)
		return;
	SSL_CTX_free(authority->context);
	BIO_meth_free(authority->socket);
	free(authority);
}

static bool expect_name(SSL *ssl, const char *name)
{
	/* An address is matched with the certificate's addresses, and is no server name to ask for. */
	if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1)
		return true;
	ERR_clear_error();
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

/* 0 or -errno of a call that returned `done` <= 0; -EAGAIN with wants_write set. */
static int failure(struct tls *tls, int done)
{
	const int why = SSL_get_error(tls->ssl, done);

	tls->wants_write = why == SSL_ERROR_WANT_WRITE;
	switch (why) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return -ECONNRESET;
	case SSL_ERROR_SYSCALL:
		return tls->code < 0 && tls->code != -EAGAIN ? tls->code : -ECONNRESET;
	default:
		return -EPROTO;
	}
}

static int refuse_handshake(const struct tls *tls, int rc, struct kvs_error *err)
{
	const long  verdict = SSL_get_verify_result(tls->ssl);
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	if (rc == -EPROTO && verdict != X509_V_OK)
		return err_set(err, -EACCES, "%s", X509_verify_cert_error_string(verdict));
	return err_set(err, rc, "%s", rc == -EPROTO && reason ? reason : kvs_strerror(rc));
}

static int shake_hands(struct tls *tls, uint64_t deadline_ns, struct kvs_error *err)
{
	for (;;) {
		struct os_wait wait = { .fd = tls->fd };
		int            done, rc, ready;

		ERR_clear_error();
		done = SSL_connect(tls->ssl);
		if (done == 1)
			return 0;
		rc = failure(tls, done);
		if (rc != -EAGAIN)
			return refuse_handshake(tls, rc, err);
		wait.to_write = tls->wants_write;
		wait.to_read = !tls->wants_write;
		ready = os_wait(&wait, 1, deadline_ns);
		if (ready <= 0)
			return refuse_handshake(tls, ready < 0 ? ready : -ETIMEDOUT, err);
	}
}

int tls_open(struct tls_authority *authority, int fd, const char *name, uint64_t deadline_ns,
	     struct tls **ret_tls, struct kvs_error *err)
{
	struct tls *tls = calloc(1, sizeof(*tls));
	BIO        *bio = tls ? BIO_new(authority->socket) : NULL;
	int         rc;

	if (tls)
		tls->ssl = SSL_new(authority->context);
	if (!bio || !tls->ssl || !expect_name(tls->ssl, name)) {
		BIO_free(bio);
		tls_close(tls);
		return err_set(err, -ENOMEM, "no memory");
	}
	tls->fd = fd;
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	SSL_set_bio(tls->ssl, bio, bio);
	rc = shake_hands(tls, deadline_ns, err);
	if (rc < 0) {
		tls_close(tls);
		return rc;
	}
	*ret_tls = tls;
	return 0;
}

void tls_close(struct tls *tls)
{
	if (!tls)
		return;
	SSL_free(tls->ssl);
	free(tls);
}

/* A part at a time, until one stops short. */
static ssize_t move(struct tls *tls, const struct iovec *parts, int count,
		    int (*call)(SSL *ssl, void *bytes, size_t count, size_t *ret_done))
{
	ssize_t total = 0;
	int     i;

	for (i = 0; i < count; i++) {
		size_t used = 0;

		while (used < parts[i].iov_len) {
			size_t done = 0;
			int    rc;

			ERR_clear_error();
			rc = call(tls->ssl, (uint8_t *)parts[i].iov_base + used,
				  parts[i].iov_len - used, &done);
			if (rc <= 0)
				rc = failure(tls, rc);
			/* What was moved is told first; a broken stream says so again. */
			if (rc < 0)
				return total > 0 ? total : rc;
			used += done;
			total += (ssize_t)done;
		}
	}
	return total;
}

static int read_some(SSL *ssl, void *bytes, size_t count, size_t *ret_done)
{
	return SSL_read_ex(ssl, bytes, count, ret_done) ? 1 : 0;
}

static int write_some(SSL *ssl, void *bytes, size_t count, size_t *ret_done)
{
	return SSL_write_ex(ssl, bytes, count, ret_done) ? 1 : 0;
}

ssize_t tls_readv(struct tls *tls, const struct iovec *parts, int count)
{
	return move(tls, parts, count, read_some);
}

ssize_t tls_writev(struct tls *tls, const struct iovec *parts, int count)
{
	return move(tls, parts, count, write_some);
}

bool tls_is_quiet(struct tls *tls)
{
	char   byte;
	size_t done;
	int    rc;

	ERR_clear_error();
	rc = SSL_peek_ex(tls->ssl, &byte, 1, &done);
	return rc <= 0 && failure(tls, rc) == -EAGAIN;
}

bool tls_wants_write(const struct tls *tls)
{
	return tls->wants_write;
}
