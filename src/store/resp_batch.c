/* SPDX-License-Identifier: Apache-2.0 */
/* A cycle: fill the windows, send, wait, receive. */
#include "store/resp_batch.h"

#include <errno.h>

/* One is on its way while the reply to the other comes back: with fewer the server would idle. */
#define ROWS_ALWAYS 2u

struct run {
	const struct resp_batch    *batch;
	const struct resp_settings *settings;
	struct resp_lease           lease;
	uint32_t                    next; /* row that goes out next */
};

static bool is_open(const struct resp_stream *stream)
{
	return stream->conn.fd >= 0;
}

static uint32_t pending(const struct run *run)
{
	uint32_t sum = 0, i;

	for (i = 0; i < run->lease.count; i++)
		sum += run->lease.streams[i]->pending;
	return sum;
}

static bool may_send(const struct run *run)
{
	const struct resp_stream *any = run->lease.streams[0];
	const uint64_t            bytes =
		atomic_load_explicit(&any->counts->flight_bytes, memory_order_relaxed);

	return !run->batch->span || bytes < run->settings->bytes_in_flight ||
	       pending(run) < ROWS_ALWAYS;
}

static bool push_next(struct run *run, struct resp_stream *stream)
{
	const struct resp_batch *batch = run->batch;
	const uint32_t           row = run->next;

	if (row == batch->count || !is_open(stream) || !resp_stream_has_room(stream) ||
	    !may_send(run))
		return false;
	resp_stream_push(stream, batch->kind, row, &batch->key[row],
			 batch->span ? &batch->span[row] : NULL);
	run->next++;
	return true;
}

/* Row by row around the connections, so that each has some to do. */
static void fill(struct run *run)
{
	bool     any = true;
	uint32_t i;

	while (any) {
		any = false;
		for (i = 0; i < run->lease.count; i++)
			any |= push_next(run, run->lease.streams[i]);
	}
}

static void settle(struct resp_stream *stream, int rc)
{
	/* A value that was too long to drop says nothing of the rows behind it. */
	if (rc < 0)
		resp_stream_fail(stream, rc == -EMSGSIZE ? KVS_RESULT_UNKNOWN : KVS_RESULT_FAILED);
}

static void send_all(struct run *run)
{
	uint32_t i;

	for (i = 0; i < run->lease.count; i++) {
		struct resp_stream *stream = run->lease.streams[i];

		if (is_open(stream))
			settle(stream, resp_stream_send(stream));
	}
}

/* The streams that wait for something, and when the first of them has waited long enough. */
static int collect(const struct run *run, struct os_wait *waits, struct resp_stream **streams,
		   uint64_t *ret_due_ns)
{
	int      count = 0;
	uint32_t i;

	*ret_due_ns = UINT64_MAX;
	for (i = 0; i < run->lease.count; i++) {
		struct resp_stream *stream = run->lease.streams[i];

		if (stream->pending == 0)
			continue;
		waits[count] = (struct os_wait){
			.fd = stream->conn.fd, .to_read = true,
			.to_write = stream->blocked ||
				    (stream->conn.tls && tls_wants_write(stream->conn.tls)) };
		streams[count++] = stream;
		if (stream->due_ns < *ret_due_ns)
			*ret_due_ns = stream->due_ns;
	}
	return count;
}

static void receive_all(struct run *run)
{
	struct os_wait      waits[RESP_CONNECTIONS_MAX];
	struct resp_stream *streams[RESP_CONNECTIONS_MAX];
	uint64_t            due_ns;
	const int           count = collect(run, waits, streams, &due_ns);
	int                 rc, i;

	if (count == 0)
		return;
	rc = os_wait(waits, count, due_ns);
	for (i = 0; i < count; i++) {
		if (rc < 0)
			settle(streams[i], rc);
		else if (waits[i].ready)
			settle(streams[i], resp_stream_receive(streams[i]));
		if (streams[i]->pending > 0 && os_now_ns() >= streams[i]->due_ns)
			settle(streams[i], -ETIMEDOUT);
	}
}

static bool any_open(const struct run *run)
{
	uint32_t i;

	for (i = 0; i < run->lease.count; i++) {
		if (is_open(run->lease.streams[i]))
			return true;
	}
	return false;
}

int resp_batch_run(struct resp_pool *pool, const struct resp_batch *batch)
{
	const struct resp_settings *settings = pool->server->settings;
	struct run                  run = { .batch = batch, .settings = settings };
	const uint64_t              wanted = (batch->count - 1) / settings->pipeline + 1;
	uint32_t                    i;
	int                         rc;

	for (i = 0; i < batch->count; i++)
		batch->result[i] = KVS_RESULT_UNKNOWN;
	rc = resp_pool_lease(pool, wanted < pool->count ? (uint32_t)wanted : pool->count,
			     &run.lease, NULL);
	if (rc < 0)
		return rc;
	for (i = 0; i < run.lease.count; i++)
		run.lease.streams[i]->results = batch->result;
	while (pending(&run) > 0 || (run.next < batch->count && any_open(&run))) {
		fill(&run);
		send_all(&run);
		receive_all(&run);
	}
	for (; run.next < batch->count; run.next++)
		batch->result[run.next] = KVS_RESULT_FAILED;
	resp_pool_return(pool, &run.lease);
	return 0;
}
