/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a server may say, to the reader, to the parser of keys, and to a stream with commands in
 * flight.
 *
 * The first byte of an input chooses commands and window, the second where the rest is cut; the rest
 * is what the server says.  Cut or whole, it must mean the same: the same results, and the same bytes
 * behind each DONE.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "named_block.h"
#include "store/resp_stream.h"

#define ROWS 6u
#define BYTES 8u
#define INPUT_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t count);

struct outcome {
	enum kvs_result results[ROWS];
	uint8_t         payload[ROWS][BYTES];
	bool            lost; /* the connection was given up */
};

static void read_events(const uint8_t *bytes, size_t count, size_t cut, char *ret_events)
{
	struct resp_reader reader;
	size_t             at = 0, said = 0;

	resp_reader_init(&reader);
	while (at < count) {
		const size_t end = at < cut ? cut : count;
		size_t       used = SIZE_MAX;
		const int    event = resp_read(&reader, bytes + at, end - at, &used);

		KVS_ASSERT_CMP(used, <=, end - at);
		KVS_ASSERT(event <= RESP_END);
		/* Pieces of a body are as many as the cuts make them. */
		if (event != RESP_MORE && event != RESP_DATA)
			ret_events[said++] = event < 0 ? '!' : (char)('A' + event);
		if (event < 0)
			break;
		at += used;
	}
	ret_events[said] = '\0';
}

static void parse_key(const uint8_t *bytes, size_t count)
{
	struct kvs_key key;
	char           text[LABEL_TEXT_MAX];

	if (!label_parse("kvs", (const char *)bytes, count, &key))
		return;
	KVS_ASSERT_CMP(label_text("kvs", &key, text), ==, count);
	KVS_ASSERT(memcmp(text, bytes, count) == 0);
}

static void hear(struct resp_stream *stream, int peer, const uint8_t *bytes, size_t count,
		 struct outcome *outcome)
{
	if (outcome->lost)
		return;
	KVS_ASSERT(send(peer, bytes, count, MSG_NOSIGNAL) == (ssize_t)count);
	outcome->lost = resp_stream_receive(stream) < 0;
}

static void run_stream(uint8_t choice, const uint8_t *bytes, size_t count, size_t cut,
		       struct outcome *ret_outcome)
{
	static const enum resp_kind kinds[] = { RESP_GET, RESP_GET, RESP_SET, RESP_EXISTS };
	const struct resp_settings  settings = { .prefix = "kvs", .pipeline = 1 + choice / 16 % ROWS,
						 .timeout_ns = 1, .verified = choice >> 7 };
	struct kvs_key              keys[ROWS];
	struct resp_stream          stream;
	struct resp_counts          counts = { 0 };
	uint32_t                    i;
	int                         ends[2];

	memset(ret_outcome, 0, sizeof(*ret_outcome));
	KVS_ASSERT(resp_stream_init(&stream, &settings, &counts) == 0);
	KVS_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	stream.conn.fd = ends[0];
	stream.results = ret_outcome->results;
	for (i = 0; resp_stream_has_room(&stream); i++) {
		const struct kvs_span span = { ret_outcome->payload[i], BYTES, BYTES };

		keys[i] = key_of(i);
		resp_stream_push(&stream, kinds[(choice >> i) % 4], i, &keys[i], &span);
	}
	KVS_ASSERT(resp_stream_send(&stream) == 0 && stream.unsent == 0);
	hear(&stream, ends[1], bytes, cut, ret_outcome);
	hear(&stream, ends[1], bytes + cut, count - cut, ret_outcome);
	resp_stream_fail(&stream, KVS_RESULT_FAILED);
	KVS_ASSERT_CMP(counts.flight_bytes, ==, 0);
	close(ends[1]);
	resp_stream_fini(&stream);
}

static void compare(const struct outcome *whole, const struct outcome *pieces)
{
	uint32_t i;

	for (i = 0; i < ROWS; i++) {
		KVS_ASSERT_CMP(whole->results[i], <=, KVS_RESULT_FAILED);
		KVS_ASSERT_CMP(whole->results[i], ==, pieces->results[i]);
		if (whole->results[i] == KVS_RESULT_DONE)
			KVS_ASSERT(memcmp(whole->payload[i], pieces->payload[i], BYTES) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t count)
{
	char           events[2][INPUT_MAX + 1];
	struct outcome whole, pieces;
	size_t         cut;

	if (count < 3 || count > INPUT_MAX)
		return 0;
	cut = input[1] % (count - 2);
	read_events(input + 2, count - 2, 0, events[0]);
	read_events(input + 2, count - 2, cut, events[1]);
	KVS_ASSERT(strcmp(events[0], events[1]) == 0);
	parse_key(input + 2, count - 2);
	/* An empty piece is no piece. */
	run_stream(input[0], input + 2, count - 2, count - 2, &whole);
	run_stream(input[0], input + 2, count - 2, cut ? cut : 1, &pieces);
	compare(&whole, &pieces);
	return 0;
}
