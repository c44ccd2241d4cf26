/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way in: connect, TLS, AUTH, SELECT, PING.  PING comes always, so that a server that wants a
 * password, or is still loading, says so here and not in the first answer about an object.
 */
#include "store/resp_conn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "store/resp_codec.h"

/* 512 KiB: with the kernel's first guess 1 MiB objects took three times as long. */
#define SOCKET_BUFFER_BYTES (512 * 1024)

void resp_conn_close(struct resp_conn *conn)
{
	tls_close(conn->tls);
	os_close(conn->fd);
	*conn = (struct resp_conn){ .fd = -1 };
}

bool resp_conn_is_quiet(struct resp_conn *conn)
{
	if (conn->fd < 0)
		return false;
	return conn->tls ? tls_is_quiet(conn->tls) : os_socket_is_quiet(conn->fd);
}

ssize_t resp_conn_readv(struct resp_conn *conn, const struct iovec *parts, int count)
{
	return conn->tls ? tls_readv(conn->tls, parts, count)
			 : os_socket_readv(conn->fd, parts, count);
}

ssize_t resp_conn_writev(struct resp_conn *conn, const struct iovec *parts, int count)
{
	return conn->tls ? tls_writev(conn->tls, parts, count)
			 : os_socket_writev(conn->fd, parts, count);
}

static int wait_for(struct resp_conn *conn, bool to_write, uint64_t deadline_ns)
{
	struct os_wait wait = { .fd = conn->fd, .to_write = to_write, .to_read = !to_write };
	int            ready;

	/* TLS may have to write to read, and the reverse. */
	if (conn->tls) {
		wait.to_write = tls_wants_write(conn->tls);
		wait.to_read = !wait.to_write;
	}
	ready = os_wait(&wait, 1, deadline_ns);
	if (ready < 0)
		return ready;
	return ready ? 0 : -ETIMEDOUT;
}

int resp_conn_send(struct resp_conn *conn, const void *bytes, size_t count, uint64_t deadline_ns)
{
	struct iovec part = { (void *)bytes, count };

	while (part.iov_len > 0) {
		const ssize_t done = resp_conn_writev(conn, &part, 1);
		int           rc = 0;

		if (done == -EAGAIN)
			rc = wait_for(conn, true, deadline_ns);
		else if (done < 0)
			rc = (int)done;
		if (rc < 0)
			return rc;
		if (done > 0) {
			part.iov_base = (uint8_t *)part.iov_base + done;
			part.iov_len -= (size_t)done;
		}
	}
	return 0;
}

ssize_t resp_conn_receive(struct resp_conn *conn, void *bytes, size_t room, uint64_t deadline_ns)
{
	const struct iovec part = { bytes, room };

	/* Looked at before each read: a peer that sends a little all the time must not keep us. */
	while (os_now_ns() < deadline_ns) {
		const ssize_t done = resp_conn_readv(conn, &part, 1);
		int           rc;

		if (done != -EAGAIN)
			return done;
		rc = wait_for(conn, false, deadline_ns);
		if (rc < 0)
			return rc;
	}
	return -ETIMEDOUT;
}

/* One command and the head of its reply, which is all of it. */
static int ask(struct resp_conn *conn, const struct resp_writer *command, uint64_t deadline_ns,
	       struct resp_reader *ret_reply)
{
	int event = resp_conn_send(conn, command->bytes, command->used, deadline_ns);

	resp_reader_init(ret_reply);
	while (event == RESP_MORE) {
		char          bytes[256];
		const ssize_t count = resp_conn_receive(conn, bytes, sizeof(bytes), deadline_ns);
		size_t        used;

		if (count < 0)
			return (int)count;
		event = resp_read(ret_reply, bytes, (size_t)count, &used);
		if (event >= 0 && used < (size_t)count)
			return KVS_E_PROTO;
	}
	return event == RESP_STATUS || event == RESP_ERROR || event < 0 ? event : KVS_E_PROTO;
}

static bool is_error(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

/* The first word of an error.  The rest may quote what was sent, and that may be a secret. */
static const char *first_word(struct resp_reader *reply)
{
	reply->text[strspn(reply->text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] = '\0';
	return reply->text;
}

static int broken(const struct resp_settings *settings, int rc, struct kvs_error *err)
{
	const char *const field = settings->host[0] ? "host" : "path";

	if (rc == KVS_E_PROTO) {
		return err_set(err, rc, "store.%s: %s answers no RESP%s", field, settings->place,
			       settings->tls ? "" : "; does it want tls=on?");
	}
	return err_set(err, rc, "store.%s: %s was lost at login: %s%s", field, settings->place,
		       kvs_strerror(rc), settings->tls ? "" : "; does it want tls=on?");
}

static int log_in(struct resp_conn *conn, const struct resp_settings *settings,
		  uint64_t deadline_ns, struct kvs_error *err)
{
	char               text[2 * RESP_SECRET_MAX + 64];
	struct resp_writer writer = { .bytes = text, .room = sizeof(text) };
	struct resp_reader reply;
	int                event;

	if (!settings->password[0])
		return 0;
	resp_put_array(&writer, settings->user[0] ? 3 : 2);
	resp_put_text(&writer, "AUTH");
	if (settings->user[0])
		resp_put_text(&writer, settings->user);
	resp_put_text(&writer, settings->password);
	event = ask(conn, &writer, deadline_ns, &reply);
	explicit_bzero(text, sizeof(text));
	if (event < 0)
		return broken(settings, event, err);
	if (event == RESP_STATUS)
		return 0;
	return err_set(err, -EACCES, "store.password: %s refused it for user \"%.64s\": %.32s",
		       settings->place, settings->user[0] ? settings->user : "default",
		       first_word(&reply));
}

static int select_db(struct resp_conn *conn, const struct resp_settings *settings,
		     uint64_t deadline_ns, struct kvs_error *err)
{
	char               text[64], number[24];
	struct resp_writer writer = { .bytes = text, .room = sizeof(text) };
	struct resp_reader reply;
	int                event;

	if (settings->db == 0)
		return 0;
	snprintf(number, sizeof(number), "%" PRIu64, settings->db);
	resp_put_array(&writer, 2);
	resp_put_text(&writer, "SELECT");
	resp_put_text(&writer, number);
	event = ask(conn, &writer, deadline_ns, &reply);
	if (event < 0)
		return broken(settings, event, err);
	if (event == RESP_STATUS)
		return 0;
	if (is_error(reply.text, "NOAUTH")) {
		return err_set(err, -EACCES, "store.password: is missing; %s wants one",
			       settings->place);
	}
	return err_set(err, -EACCES, "store.db: %s refused %s: %.64s", settings->place,
		       number, text_printable(reply.text));
}

static int ping(struct resp_conn *conn, const struct resp_settings *settings, uint64_t deadline_ns,
		struct kvs_error *err)
{
	char               text[32];
	struct resp_writer writer = { .bytes = text, .room = sizeof(text) };
	struct resp_reader reply;
	int                event;

	resp_put_array(&writer, 1);
	resp_put_text(&writer, "PING");
	event = ask(conn, &writer, deadline_ns, &reply);
	if (event < 0)
		return broken(settings, event, err);
	/* A user who may not PING is logged in all the same. */
	if (event == RESP_STATUS || is_error(reply.text, "NOPERM"))
		return 0;
	if (is_error(reply.text, "NOAUTH")) {
		return err_set(err, -EACCES, "store.password: is missing; %s wants one",
			       settings->place);
	}
	return err_set(err, KVS_E_BUSY, "store.%s: %s is not ready: %.64s",
		       settings->host[0] ? "host" : "path", settings->place,
		       text_printable(reply.text));
}

static int refuse_connect(const struct resp_settings *settings, int rc, struct kvs_error *err)
{
	if (!settings->host[0]) {
		return err_set(err, rc, "store.path: cannot connect to \"%s\": %s", settings->path,
			       kvs_strerror(rc));
	}
	if (rc == -EADDRNOTAVAIL || rc == -EAGAIN)
		return err_set(err, rc, "store.host: \"%.128s\" names no address", settings->host);
	return err_set(err, rc, "store.%s: cannot connect to %s: %s",
		       rc == -ECONNREFUSED ? "port" : "host", settings->place, kvs_strerror(rc));
}

static int secure(struct resp_conn *conn, const struct resp_settings *settings,
		  struct tls_authority *authority, uint64_t deadline_ns, struct kvs_error *err)
{
	int rc;

	if (!authority)
		return 0;
	rc = tls_open(authority, conn->fd, settings->tls_name, deadline_ns, &conn->tls, err);
	if (rc == -EACCES) {
		err_prefix(err, "store.tls_name: \"%.64s\" at %s", settings->tls_name,
			   settings->place);
	} else if (rc < 0) {
		err_prefix(err, "store.tls: no TLS with %s", settings->place);
	}
	return rc;
}

int resp_conn_open(struct resp_conn *conn, const struct resp_settings *settings,
		   struct tls_authority *authority, struct kvs_error *err)
{
	const uint64_t deadline_ns = os_now_ns() + settings->connect_timeout_ns;
	int            rc;

	*conn = (struct resp_conn){ .fd = settings->host[0]
			? os_socket_connect(settings->host, settings->port, deadline_ns)
			: os_socket_connect_unix(settings->path, deadline_ns) };
	if (conn->fd < 0)
		return refuse_connect(settings, conn->fd, err);
	os_socket_buffers(conn->fd, SOCKET_BUFFER_BYTES);
	rc = secure(conn, settings, authority, deadline_ns, err);
	if (rc == 0)
		rc = log_in(conn, settings, deadline_ns, err);
	if (rc == 0)
		rc = select_db(conn, settings, deadline_ns, err);
	if (rc == 0)
		rc = ping(conn, settings, deadline_ns, err);
	if (rc < 0)
		resp_conn_close(conn);
	return rc;
}
