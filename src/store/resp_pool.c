/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting happens outside the lock: the streams are the lease's own by then. */
#include "store/resp_pool.h"

#include <errno.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)
#define BACK_OFF_MIN (10 * MS)
#define BACK_OFF_MAX (1000 * MS)

/* Only a bound on one sleep: a lost signal costs this much. */
#define WAIT_NS (100 * MS)

void resp_server_init(struct resp_server *server, const struct resp_settings *settings,
		      struct tls_authority *authority)
{
	*server = (struct resp_server){ .settings = settings, .authority = authority };
	os_mutex_init(&server->mutex);
}

void resp_server_fini(struct resp_server *server)
{
	os_mutex_fini(&server->mutex);
}

bool resp_server_is_unreached(struct resp_server *server)
{
	bool reached;

	os_mutex_lock(&server->mutex);
	reached = server->reached;
	os_mutex_unlock(&server->mutex);
	return !reached;
}

/* The code of the last failure while it is too early to try again; else 0. */
static int server_is_away(struct resp_server *server)
{
	int code = 0;

	os_mutex_lock(&server->mutex);
	if (os_now_ns() < server->retry_ns)
		code = server->code;
	os_mutex_unlock(&server->mutex);
	return code;
}

static void server_note(struct resp_server *server, int code)
{
	os_mutex_lock(&server->mutex);
	server->code = code;
	server->back_off_ns *= 2;
	if (server->back_off_ns < BACK_OFF_MIN)
		server->back_off_ns = BACK_OFF_MIN;
	if (server->back_off_ns > BACK_OFF_MAX)
		server->back_off_ns = BACK_OFF_MAX;
	if (code == 0)
		server->back_off_ns = 0;
	server->retry_ns = os_now_ns() + server->back_off_ns;
	server->reached |= code == 0;
	os_mutex_unlock(&server->mutex);
}

int resp_pool_init(struct resp_pool *pool, struct resp_server *server, uint32_t count,
		   struct resp_counts *counts)
{
	*pool = (struct resp_pool){ .server = server };
	os_mutex_init(&pool->mutex);
	os_cond_init(&pool->returned);
	pool->streams = calloc(count, sizeof(*pool->streams));
	if (!pool->streams)
		return -ENOMEM;
	for (; pool->count < count; pool->count++) {
		struct resp_stream *stream = &pool->streams[pool->count];

		if (resp_stream_init(stream, server->settings, counts) < 0)
			return -ENOMEM;
		pool->idle[pool->idle_count++] = stream;
	}
	return 0;
}

void resp_pool_fini(struct resp_pool *pool)
{
	uint32_t i;

	if (!pool->server)
		return;
	KVS_ASSERT_CMP(pool->idle_count, ==, pool->count);
	for (i = 0; i < pool->count; i++)
		resp_stream_fini(&pool->streams[i]);
	free(pool->streams);
	os_cond_fini(&pool->returned);
	os_mutex_fini(&pool->mutex);
}

static int stream_open(struct resp_pool *pool, struct resp_stream *stream, struct kvs_error *err)
{
	int rc;

	KVS_ASSERT(stream->pending == 0);
	if (resp_conn_is_quiet(&stream->conn))
		return 0;
	resp_conn_close(&stream->conn);
	rc = server_is_away(pool->server);
	if (rc < 0)
		return err_set(err, rc, "%s", kvs_strerror(rc));
	rc = resp_conn_open(&stream->conn, pool->server->settings, pool->server->authority, err);
	server_note(pool->server, rc);
	if (rc == 0)
		resp_stream_reset(stream);
	return rc;
}

static void take(struct resp_pool *pool, uint32_t wanted, struct resp_lease *ret_lease)
{
	ret_lease->count = 0;
	os_mutex_lock(&pool->mutex);
	while (pool->idle_count == 0)
		os_cond_wait(&pool->returned, &pool->mutex, WAIT_NS);
	while (pool->idle_count > 0 && ret_lease->count < wanted)
		ret_lease->streams[ret_lease->count++] = pool->idle[--pool->idle_count];
	os_mutex_unlock(&pool->mutex);
}

/* The last one leased is the least used: returned first, it is leased last again. */
void resp_pool_return(struct resp_pool *pool, const struct resp_lease *lease)
{
	uint32_t i;

	os_mutex_lock(&pool->mutex);
	for (i = lease->count; i > 0; i--) {
		KVS_ASSERT(lease->streams[i - 1]->pending == 0);
		pool->idle[pool->idle_count++] = lease->streams[i - 1];
	}
	KVS_ASSERT_CMP(pool->idle_count, <=, pool->count);
	os_cond_broadcast(&pool->returned);
	os_mutex_unlock(&pool->mutex);
}

int resp_pool_lease(struct resp_pool *pool, uint32_t wanted, struct resp_lease *ret_lease,
		    struct kvs_error *err)
{
	struct resp_lease taken, closed = { .count = 0 };
	int               rc = 0;
	uint32_t          i;

	KVS_ASSERT(wanted > 0);
	take(pool, wanted, &taken);
	ret_lease->count = 0;
	for (i = 0; i < taken.count; i++) {
		struct resp_stream *stream = taken.streams[i];

		/* After one failure only streams that are open are of use. */
		if (rc == 0)
			rc = stream_open(pool, stream, err);
		if (rc == 0 || resp_conn_is_quiet(&stream->conn))
			ret_lease->streams[ret_lease->count++] = stream;
		else
			closed.streams[closed.count++] = stream;
	}
	if (closed.count > 0)
		resp_pool_return(pool, &closed);
	return ret_lease->count > 0 ? 0 : rc;
}
