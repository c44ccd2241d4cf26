/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes in on a stream.  Every byte passes the reader, wherever it landed; a body that landed
 * in its place is only counted.
 */
#include <errno.h>
#include <string.h>

#include "store/resp_stream.h"

/* Answer an object that is there and wrong. */
static void complete_corrupt(struct resp_stream *stream)
{
	atomic_fetch_add_explicit(&stream->counts->corrupt_objects, 1, memory_order_relaxed);
	resp_stream_complete(stream, KVS_RESULT_CORRUPT);
}

static void complete_full(struct resp_stream *stream)
{
	atomic_fetch_add_explicit(&stream->counts->refused_full, 1, memory_order_relaxed);
	resp_stream_complete(stream, KVS_RESULT_NO_SPACE);
}

static void refuse(struct resp_stream *stream, const struct resp_slot *slot)
{
	const char *const text = stream->reader.text;

	if (slot->kind == RESP_GET && strncmp(text, "WRONGTYPE", 9) == 0)
		complete_corrupt(stream);
	else if (slot->kind == RESP_SET && strncmp(text, "OOM", 3) == 0)
		complete_full(stream);
	else
		resp_stream_complete(stream, KVS_RESULT_FAILED);
}

static int value_begin(struct resp_stream *stream, const struct resp_slot *slot)
{
	const uint64_t bytes = (uint64_t)stream->reader.value;

	if (slot->kind != RESP_GET)
		return KVS_E_PROTO;
	stream->in_value = bytes == resp_value_bytes(stream, slot);
	/* Zeros in front of a length: no server writes them, and places are counted on its digits. */
	if (stream->in_value)
		return stream->position == slot->head_bytes ? 0 : KVS_E_PROTO;
	stream->dropping = true;
	if (bytes <= RESP_DRAIN_MAX)
		return 0;
	complete_corrupt(stream);
	return -EMSGSIZE;
}

/*
 * A value whose trailer does not hold is set aside: SET NX would find it in the way for ever.  Its
 * slot is free, so there is room for the command.
 */
static void value_end(struct resp_stream *stream, const struct resp_slot *slot)
{
	const struct kvs_key *key = slot->key;
	struct label_seal   trailer;
	bool                  holds = !stream->dropping;

	if (stream->dropping) {
		complete_corrupt(stream);
		return;
	}
	if (stream->settings->verified) {
		memcpy(&trailer, slot->tail, sizeof(trailer));
		holds = label_seal_holds(&trailer, key, &slot->span);
	}
	if (holds) {
		resp_stream_complete(stream, KVS_RESULT_DONE);
		return;
	}
	complete_corrupt(stream);
	resp_stream_push(stream, RESP_DEL, RESP_NO_ROW, key, NULL);
}

/* Put body bytes where they belong, unless they landed there. */
static void value_keep(struct resp_stream *stream, struct resp_slot *slot, const uint8_t *bytes,
		       size_t count)
{
	const uint64_t at = stream->position - slot->head_bytes;
	size_t         payload = 0;

	if (at < slot->span.bytes) {
		uint8_t *const target = (uint8_t *)slot->span.ptr + at;

		payload = slot->span.bytes - at < count ? slot->span.bytes - at : count;
		if (target != bytes)
			memcpy(target, bytes, payload);
		resp_stream_repay(stream, slot, payload);
	}
	if (payload < count) {
		char *const target = slot->tail + (at + payload - slot->span.bytes);

		if (target != (const char *)bytes + payload)
			memcpy(target, bytes + payload, count - payload);
	}
}

static int integer(struct resp_stream *stream, const struct resp_slot *slot)
{
	const int64_t value = stream->reader.value;

	if ((slot->kind != RESP_EXISTS && slot->kind != RESP_DEL) || value < 0 || value > 1)
		return KVS_E_PROTO;
	resp_stream_complete(stream, value ? KVS_RESULT_DONE : KVS_RESULT_MISSING);
	return 0;
}

static int nil(struct resp_stream *stream, const struct resp_slot *slot)
{
	if (slot->kind != RESP_GET && slot->kind != RESP_SET)
		return KVS_E_PROTO;
	resp_stream_complete(stream,
			     slot->kind == RESP_GET ? KVS_RESULT_MISSING : KVS_RESULT_EXISTS);
	return 0;
}

static int status(struct resp_stream *stream, const struct resp_slot *slot)
{
	if (slot->kind != RESP_SET)
		return KVS_E_PROTO;
	resp_stream_complete(stream, KVS_RESULT_DONE);
	return 0;
}

static int act(struct resp_stream *stream, enum resp_event event, const uint8_t *bytes,
	       size_t count)
{
	struct resp_slot *slot = resp_stream_slot(stream, 0);

	/* An answer to a command that has not gone out in full is an answer to something else. */
	if (stream->unsent == stream->pending)
		return KVS_E_PROTO;
	if (event == RESP_DATA && stream->in_value)
		value_keep(stream, slot, bytes, count);
	stream->position += count;
	switch (event) {
	case RESP_MORE:
	case RESP_DATA:
		return 0;
	case RESP_STATUS:
		return status(stream, slot);
	case RESP_ERROR:
		refuse(stream, slot);
		return 0;
	case RESP_INTEGER:
		return integer(stream, slot);
	case RESP_NIL:
		return nil(stream, slot);
	case RESP_BULK:
		return value_begin(stream, slot);
	case RESP_END:
		value_end(stream, slot);
		return 0;
	case RESP_ARRAY:
		break;
	}
	return KVS_E_PROTO;
}

/* Read until the bytes, of which there are some, are used or the oldest reply has ended. */
static int feed(struct resp_stream *stream, const uint8_t *bytes, size_t count, size_t *ret_used)
{
	size_t used = 0;
	int    rc;

	do {
		size_t    step;
		const int event = resp_read(&stream->reader, bytes + used, count - used, &step);

		rc = event < 0 ? event : act(stream, (enum resp_event)event, bytes + used, step);
		used += step;
	} while (rc == 0 && used < count && !resp_reader_is_between(&stream->reader));
	*ret_used = used;
	return rc;
}

static int feed_aside(struct resp_stream *stream)
{
	int rc = 0;

	while (rc == 0 && stream->aside_at < stream->aside_end) {
		size_t used;

		/* Bytes that nobody asked for: whatever came before them is in doubt as well. */
		if (stream->pending == 0)
			return KVS_E_PROTO;
		rc = feed(stream, stream->aside + stream->aside_at,
			  stream->aside_end - stream->aside_at, &used);
		stream->aside_at += (uint32_t)used;
	}
	return rc;
}

static int receive_aside(struct resp_stream *stream, size_t *ret_asked, size_t *ret_done)
{
	const struct iovec part = { stream->aside, stream->aside_bytes };
	const ssize_t      done = resp_conn_readv(&stream->conn, &part, 1);

	*ret_asked = part.iov_len;
	*ret_done = done > 0 ? (size_t)done : 0;
	if (done < 0)
		return done == -EAGAIN ? 0 : (int)done;
	stream->aside_at = 0;
	stream->aside_end = (uint32_t)done;
	return feed_aside(stream);
}

/* Where a part of a read was meant to go: the slot, and the place in its reply. */
struct bet {
	struct iovec parts[RESP_PARTS_MAX];
	uint32_t     slot[RESP_PARTS_MAX];
	uint64_t     position[RESP_PARTS_MAX];
	int          count;
	size_t       bytes;
};

/* What comes next can be the value of a get, at a place that is known. */
static bool is_bet(const struct resp_stream *stream)
{
	const struct resp_slot *slot = resp_stream_slot(stream, 0);

	return stream->pending > 0 && slot->kind == RESP_GET && !stream->dropping &&
	       (stream->in_value || stream->position < slot->head_bytes);
}

static void bet_part(struct bet *bet, uint32_t slot, void *bytes, size_t length, uint64_t *position,
		     uint64_t *skip)
{
	const size_t passed = *skip < length ? (size_t)*skip : length;
	const size_t room = RESP_READ_MAX - bet->bytes;
	const size_t left = length - passed < room ? length - passed : room;

	*skip -= passed;
	if (left > 0) {
		bet->parts[bet->count] = (struct iovec){ (uint8_t *)bytes + passed, left };
		bet->slot[bet->count] = slot;
		bet->position[bet->count++] = *position + passed;
		bet->bytes += left;
	}
	*position += length;
}

static void bet_make(struct resp_stream *stream, struct bet *bet)
{
	uint64_t skip = stream->position;
	uint32_t i;

	bet->count = 0;
	bet->bytes = 0;
	for (i = 0; i < stream->pending && bet->count <= RESP_PARTS_MAX - 3; i++) {
		struct resp_slot *slot = resp_stream_slot(stream, i);
		const uint32_t    index = (stream->first + i) % stream->depth;
		uint64_t          position = 0;

		if (slot->kind != RESP_GET || bet->bytes == RESP_READ_MAX)
			return;
		bet_part(bet, index, slot->head, slot->head_bytes, &position, &skip);
		bet_part(bet, index, slot->span.ptr, slot->span.bytes, &position, &skip);
		bet_part(bet, index, slot->tail, slot->tail_bytes, &position, &skip);
	}
}

/* What is left of `count` bytes from a part on, in order, into the buffer aside. */
static void set_aside(struct resp_stream *stream, const struct bet *bet, int part, size_t skip,
		      size_t count)
{
	stream->aside_at = stream->aside_end = 0;
	for (; count > 0; part++, skip = 0) {
		const size_t length = bet->parts[part].iov_len - skip;
		const size_t step = count < length ? count : length;

		memcpy(stream->aside + stream->aside_end,
		       (const uint8_t *)bet->parts[part].iov_base + skip, step);
		stream->aside_end += (uint32_t)step;
		count -= step;
	}
}

static int bet_settle(struct resp_stream *stream, const struct bet *bet, size_t count)
{
	int part;

	for (part = 0; count > 0; part++) {
		const size_t length = bet->parts[part].iov_len;
		const size_t landed = count < length ? count : length;
		size_t       used = 0;
		int          rc = 0;

		if (is_bet(stream) && stream->first == bet->slot[part] &&
		    stream->position == bet->position[part])
			rc = feed(stream, bet->parts[part].iov_base, landed, &used);
		if (rc < 0)
			return rc;
		count -= used;
		if (used < landed) {
			set_aside(stream, bet, part, used, count);
			return feed_aside(stream);
		}
	}
	return 0;
}

static int receive_bet(struct resp_stream *stream, size_t *ret_asked, size_t *ret_done)
{
	struct bet bet;
	ssize_t    done;

	bet_make(stream, &bet);
	done = resp_conn_readv(&stream->conn, bet.parts, bet.count);
	*ret_asked = bet.bytes;
	*ret_done = done > 0 ? (size_t)done : 0;
	if (done < 0)
		return done == -EAGAIN ? 0 : (int)done;
	return bet_settle(stream, &bet, (size_t)done);
}

int resp_stream_receive(struct resp_stream *stream)
{
	size_t asked = 0, done = 0;
	int    rc = 0;

	/* A read that was filled may have left bytes in TLS, where no wait would see them. */
	while (rc == 0 && stream->pending > 0 && done == asked) {
		rc = is_bet(stream) ? receive_bet(stream, &asked, &done)
				    : receive_aside(stream, &asked, &done);
	}
	return rc;
}
