/* SPDX-License-Identifier: Apache-2.0 */
/* The ring and what goes out of it; resp_receive.c is what comes in. */
#include "store/resp_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int resp_stream_init(struct resp_stream *stream, const struct resp_settings *settings,
		     struct resp_counts *counts)
{
	*stream = (struct resp_stream){ .conn = { .fd = -1 },
					.settings = settings,
					.counts = counts,
					.depth = (uint32_t)settings->pipeline,
					.aside_bytes = RESP_READ_MAX };
	stream->slots = calloc(stream->depth, sizeof(*stream->slots));
	stream->aside = malloc(stream->aside_bytes);
	if (stream->slots && stream->aside)
		return 0;
	resp_stream_fini(stream);
	return -ENOMEM;
}

void resp_stream_fini(struct resp_stream *stream)
{
	resp_conn_close(&stream->conn);
	free(stream->slots);
	free(stream->aside);
	stream->slots = NULL;
	stream->aside = NULL;
}

void resp_stream_reset(struct resp_stream *stream)
{
	KVS_ASSERT(stream->pending == 0);
	resp_reader_init(&stream->reader);
	stream->first = stream->unsent = 0;
	stream->blocked = stream->in_value = stream->dropping = false;
	stream->position = 0;
	stream->aside_at = stream->aside_end = 0;
}

bool resp_stream_has_room(const struct resp_stream *stream)
{
	return stream->pending < stream->depth;
}

static void encode_set(const struct resp_stream *stream, struct resp_slot *slot,
		       struct resp_writer *command)
{
	static const char  only_new[] = "\r\n$2\r\nNX\r\n";
	struct label_seal trailer;
	uint32_t            bytes = 0;

	resp_put_bulk_head(command, resp_value_bytes(stream, slot));
	if (stream->settings->verified) {
		label_seal(slot->key, &slot->span, &trailer);
		memcpy(slot->tail, &trailer, sizeof(trailer));
		bytes = sizeof(trailer);
	}
	memcpy(slot->tail + bytes, only_new, sizeof(only_new) - 1);
	slot->tail_bytes = bytes + sizeof(only_new) - 1;
}

static void expect_value(const struct resp_stream *stream, struct resp_slot *slot)
{
	const uint64_t bytes = resp_value_bytes(stream, slot);

	slot->head_bytes = (uint32_t)snprintf(slot->head, sizeof(slot->head), "$%" PRIu64 "\r\n",
					      bytes);
	slot->tail_bytes = (uint32_t)(bytes - slot->span.bytes) + 2;
}

static void encode(const struct resp_stream *stream, struct resp_slot *slot)
{
	static const char *const names[] = { [RESP_GET] = "GET", [RESP_SET] = "SET",
					     [RESP_EXISTS] = "EXISTS", [RESP_DEL] = "DEL" };
	struct resp_writer       command = { .bytes = slot->command,
						     .room = sizeof(slot->command) };
	char                     text[LABEL_TEXT_MAX];
	const size_t             bytes = label_text(stream->settings->prefix, slot->key, text);

	resp_put_array(&command, slot->kind == RESP_SET ? 4 : 2);
	resp_put_text(&command, names[slot->kind]);
	resp_put_bulk(&command, text, bytes);
	if (slot->kind == RESP_SET)
		encode_set(stream, slot, &command);
	else if (slot->kind == RESP_GET)
		expect_value(stream, slot);
	slot->command_bytes = (uint32_t)command.used;
}

void resp_stream_push(struct resp_stream *stream, enum resp_kind kind, uint32_t row,
		      const struct kvs_key *key, const struct kvs_span *span)
{
	struct resp_slot *slot = resp_stream_slot(stream, stream->pending);

	KVS_ASSERT(resp_stream_has_room(stream));
	slot->kind = kind;
	slot->row = row;
	slot->key = key;
	slot->span = span ? *span : (struct kvs_span){ 0 };
	slot->owed = slot->span.bytes;
	slot->sent = 0;
	slot->tail_bytes = 0;
	encode(stream, slot);
	/* Relaxed: a sum that many threads bound roughly; it orders nothing. */
	atomic_fetch_add_explicit(&stream->counts->flight_bytes, slot->owed, memory_order_relaxed);
	if (stream->pending++ == 0)
		stream->due_ns = os_now_ns() + stream->settings->timeout_ns;
	stream->unsent++;
}

void resp_stream_repay(struct resp_stream *stream, struct resp_slot *slot, uint64_t bytes)
{
	const uint64_t part = bytes < slot->owed ? bytes : slot->owed;

	slot->owed -= part;
	atomic_fetch_sub_explicit(&stream->counts->flight_bytes, part, memory_order_relaxed);
}

void resp_stream_complete(struct resp_stream *stream, enum kvs_result result)
{
	struct resp_slot *slot = resp_stream_slot(stream, 0);

	KVS_ASSERT(stream->pending > 0);
	if (slot->row != RESP_NO_ROW)
		stream->results[slot->row] = result;
	resp_stream_repay(stream, slot, slot->owed);
	stream->first = (stream->first + 1) % stream->depth;
	stream->pending--;
	if (stream->unsent > stream->pending)
		stream->unsent = stream->pending;
	stream->position = 0;
	stream->in_value = stream->dropping = false;
	stream->due_ns = os_now_ns() + stream->settings->timeout_ns;
}

void resp_stream_fail(struct resp_stream *stream, enum kvs_result result)
{
	resp_conn_close(&stream->conn);
	while (stream->pending > 0)
		resp_stream_complete(stream, result);
	resp_stream_reset(stream);
}

static uint64_t slot_bytes(const struct resp_slot *slot)
{
	return slot->command_bytes +
	       (slot->kind == RESP_SET ? slot->span.bytes + slot->tail_bytes : 0);
}

/* Add what is behind `skip` bytes of a part, and take the part's bytes off skip. */
static int add_part(struct iovec *parts, int count, const void *bytes, size_t length,
		    uint64_t *skip)
{
	const size_t passed = *skip < length ? (size_t)*skip : length;

	*skip -= passed;
	if (passed < length)
		parts[count++] = (struct iovec){ (uint8_t *)bytes + passed, length - passed };
	return count;
}

static int add_slot(struct iovec *parts, int count, const struct resp_slot *slot)
{
	uint64_t skip = slot->sent;

	count = add_part(parts, count, slot->command, slot->command_bytes, &skip);
	if (slot->kind != RESP_SET)
		return count;
	count = add_part(parts, count, slot->span.ptr, slot->span.bytes, &skip);
	return add_part(parts, count, slot->tail, slot->tail_bytes, &skip);
}

static void mark_sent(struct resp_stream *stream, uint64_t bytes)
{
	while (bytes > 0) {
		struct resp_slot *slot = resp_stream_slot(stream, stream->pending - stream->unsent);
		const uint64_t    left = slot_bytes(slot) - slot->sent;
		const uint64_t    step = bytes < left ? bytes : left;

		KVS_ASSERT(stream->unsent > 0);
		slot->sent += step;
		bytes -= step;
		if (step == left)
			stream->unsent--;
	}
}

int resp_stream_send(struct resp_stream *stream)
{
	stream->blocked = false;
	while (stream->unsent > 0 && !stream->blocked) {
		struct iovec parts[RESP_PARTS_MAX];
		size_t       wanted = 0;
		ssize_t      done;
		int          count = 0, p;
		uint32_t     i = stream->pending - stream->unsent;

		for (; i < stream->pending && count <= RESP_PARTS_MAX - 3; i++)
			count = add_slot(parts, count, resp_stream_slot(stream, i));
		for (p = 0; p < count; p++)
			wanted += parts[p].iov_len;
		done = resp_conn_writev(&stream->conn, parts, count);
		if (done < 0 && done != -EAGAIN)
			return (int)done;
		stream->blocked = done < (ssize_t)wanted;
		if (done > 0)
			mark_sent(stream, (uint64_t)done);
	}
	return 0;
}
