/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands and replies in flight on one connection: a ring of slots, oldest first.
 *
 * A put goes out as three parts, of which the middle one is the payload in its block.  A get's reply
 * is awaited the same way: the head, the payload straight into its block, the trailer; one read
 * spans the replies of several slots.  That read bets on what comes.  Whatever turns out otherwise
 * (nil, an error, another length) ends the bet: the bytes behind it are set aside in order and read
 * from there, so that the stream never loses its place and never waits for bytes that do not come.
 *
 * Retirement   All bytes are moved by the calling thread, inside the calls below.  No kernel and no
 *              other thread holds the address of a span between two of them.
 * Limits       depth slots; nothing allocates after init.
 */
#ifndef STORE_RESP_STREAM_H
#define STORE_RESP_STREAM_H

#include <stdatomic.h>

#include "store/resp_codec.h"
#include "store/resp_conn.h"
#include "key/label.h"

/* What one read may bring, and so what may have to be set aside: as much as a socket buffer holds. */
#define RESP_READ_MAX (512u * 1024)

/* Of one send or read, three a slot: what it moves is bounded by bytes long before. */
#define RESP_PARTS_MAX 48

/* A value of another length is read and dropped up to here; past it the connection is cheaper. */
#define RESP_DRAIN_MAX (16u << 20)

#define RESP_NO_ROW UINT32_MAX

enum resp_kind { RESP_GET, RESP_SET, RESP_EXISTS, RESP_DEL };

struct resp_slot {
	enum resp_kind        kind;
	uint32_t              row; /* of the results; RESP_NO_ROW: nobody asks */
	const struct kvs_key *key;
	struct kvs_span       span;
	uint64_t              owed; /* of flight_bytes */
	uint32_t              command_bytes;
	uint32_t              tail_bytes;
	uint32_t              head_bytes; /* of the reply to a get */
	uint64_t              sent;
	char                  command[320]; /* up to the payload */
	char                  head[24];
	/* Behind the payload: what a put sends, or where a get's trailer and line end land. */
	char                  tail[sizeof(struct label_seal) + 16];
};

/* Of all streams of a store. */
struct resp_counts {
	_Atomic uint64_t flight_bytes; /* payload between the store and the server */
	_Atomic uint64_t corrupt_objects;
	_Atomic uint64_t refused_full; /* puts for which the server had no memory */
};

struct resp_stream {
	struct resp_conn            conn;
	const struct resp_settings *settings;
	struct resp_counts         *counts;
	enum kvs_result            *results; /* of the batch that holds the stream */
	struct resp_slot           *slots;
	uint32_t                    depth, first, pending;
	uint32_t                    unsent; /* of the pending ones, the last so many */
	bool                        blocked; /* the socket takes nothing now */
	uint64_t                    due_ns;  /* when the oldest reply must have come in full */
	struct resp_reader          reader;
	uint64_t                    position; /* bytes read of the oldest reply */
	bool                        in_value; /* its bulk is the object that was asked for */
	bool                        dropping; /* its bulk is of another length */
	uint8_t                    *aside;
	uint32_t                    aside_bytes, aside_at, aside_end;
};

/* settings and counts are held until fini.  -ENOMEM. */
int  resp_stream_init(struct resp_stream *stream, const struct resp_settings *settings,
		      struct resp_counts *counts);
void resp_stream_fini(struct resp_stream *stream);

/* After resp_conn_open(): nothing is in flight. */
void resp_stream_reset(struct resp_stream *stream);

bool resp_stream_has_room(const struct resp_stream *stream);

/* key is held until the reply; span is NULL for what has no payload.  There is room. */
void resp_stream_push(struct resp_stream *stream, enum resp_kind kind, uint32_t row,
		      const struct kvs_key *key, const struct kvs_span *span);

/* Send what the socket takes.  0 or -errno. */
int resp_stream_send(struct resp_stream *stream);

/**
 * Read what is there, and write the results of the replies that came to their end.
 *
 * Errors  -ECONNRESET, -errno, KVS_E_PROTO: the connection is of no use any more.
 *         -EMSGSIZE: the same, for a value too long to drop; its own row has its result.
 */
int resp_stream_receive(struct resp_stream *stream);

/* Close, with `result` for every row still pending. */
void resp_stream_fail(struct resp_stream *stream, enum kvs_result result);

/* For the stream's own two files: the oldest slot leaves, its row has `result`. */
void resp_stream_complete(struct resp_stream *stream, enum kvs_result result);
void resp_stream_repay(struct resp_stream *stream, struct resp_slot *slot, uint64_t bytes);

static inline struct resp_slot *resp_stream_slot(const struct resp_stream *stream, uint32_t i)
{
	return &stream->slots[(stream->first + i) % stream->depth];
}

/* Payload and trailer: what a value's bulk head must say. */
static inline uint64_t resp_value_bytes(const struct resp_stream *stream,
					const struct resp_slot *slot)
{
	return slot->span.bytes + (stream->settings->verified ? sizeof(struct label_seal) : 0);
}

#endif
