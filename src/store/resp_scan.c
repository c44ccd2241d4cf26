/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SCAN and its answer: an array of two, the next cursor and an array of keys.  Keys that are not
 * spelt like ours are somebody else's and passed over.
 */
#include "store/resp_scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the hash table, a call: the server must answer others in between. */
#define SCAN_COUNT "256"

/* What begins with our prefix and is longer is somebody else's key still; past this it is none. */
#define KEY_BYTES_MAX (LABEL_TEXT_MAX + 4096)

enum place { AT_REPLY, AT_CURSOR, AT_KEYS, AT_KEY, AT_END };

struct answer {
	const char       *prefix;
	struct resp_page *page;
	enum place        place;
	uint64_t          keys_left;
	uint32_t          skipped;
	char              text[LABEL_TEXT_MAX]; /* of the bulk being read; what is longer is no key */
	size_t            text_bytes;
};

static void take_key(struct answer *answer)
{
	struct resp_page *page = answer->page;
	struct kvs_key    key;

	if (!label_parse(answer->prefix, answer->text, answer->text_bytes, &key))
		return;
	if (answer->skipped < page->skip)
		answer->skipped++;
	else if (page->count < page->key_max)
		page->keys[page->count++] = key;
	else
		page->more = true;
}

static int take_cursor(struct answer *answer)
{
	if (answer->text_bytes == 0 || answer->text_bytes > 20)
		return KVS_E_PROTO;
	answer->text[answer->text_bytes] = '\0';
	if (strspn(answer->text, "0123456789") != answer->text_bytes)
		return KVS_E_PROTO;
	answer->page->cursor = strtoull(answer->text, NULL, 10);
	return 0;
}

static int end_bulk(struct answer *answer)
{
	int rc = 0;

	if (answer->place == AT_CURSOR) {
		rc = take_cursor(answer);
		answer->place = AT_KEYS;
	} else {
		take_key(answer);
		if (--answer->keys_left == 0)
			answer->place = AT_END;
	}
	answer->text_bytes = 0;
	return rc;
}

static int begin_array(struct answer *answer, int64_t count)
{
	if (answer->place == AT_REPLY && count == 2) {
		answer->place = AT_CURSOR;
		return 0;
	}
	if (answer->place != AT_KEYS || count > RESP_PAGE_KEYS_MAX)
		return KVS_E_PROTO;
	answer->keys_left = (uint64_t)count;
	answer->place = count ? AT_KEY : AT_END;
	return 0;
}

static int begin_bulk(const struct answer *answer, int64_t bytes)
{
	if (answer->place != AT_CURSOR && answer->place != AT_KEY)
		return KVS_E_PROTO;
	return bytes <= KEY_BYTES_MAX ? 0 : KVS_E_PROTO;
}

static void keep_text(struct answer *answer, const char *bytes, size_t count)
{
	const size_t room = sizeof(answer->text) - answer->text_bytes;
	const size_t step = count < room ? count : room;

	memcpy(answer->text + answer->text_bytes, bytes, step);
	answer->text_bytes += step;
}

static int act(struct answer *answer, const struct resp_reader *reader, int event,
	       const char *bytes, size_t count)
{
	switch (event) {
	case RESP_MORE:
		return 0;
	case RESP_ARRAY:
		return begin_array(answer, reader->value);
	case RESP_BULK:
		return begin_bulk(answer, reader->value);
	case RESP_DATA:
		keep_text(answer, bytes, count);
		return 0;
	case RESP_END:
		return end_bulk(answer);
	case RESP_ERROR:
		return -EACCES;
	default:
		return event < 0 ? event : KVS_E_PROTO;
	}
}

static int read_answer(struct resp_stream *stream, struct answer *answer)
{
	const uint64_t     deadline_ns = os_now_ns() + stream->settings->timeout_ns;
	struct resp_reader reader;

	resp_reader_init(&reader);
	while (answer->place != AT_END) {
		const ssize_t count = resp_conn_receive(&stream->conn, stream->aside,
							stream->aside_bytes, deadline_ns);
		const char   *text = (const char *)stream->aside;
		size_t        at = 0;

		if (count < 0)
			return (int)count;
		while (at < (size_t)count && answer->place != AT_END) {
			size_t    used;
			const int event = resp_read(&reader, text + at, (size_t)count - at, &used);
			const int rc = act(answer, &reader, event, text + at, used);

			if (rc < 0)
				return rc;
			at += used;
		}
		if (at < (size_t)count)
			return KVS_E_PROTO;
	}
	return 0;
}

static int ask(struct resp_stream *stream, const struct kvs_namespace *space,
	       struct resp_page *page)
{
	const char *const  prefix = stream->settings->prefix;
	const uint64_t     from = page->cursor;
	char               text[2 * LABEL_TEXT_MAX], pattern[LABEL_TEXT_MAX], cursor[24];
	struct resp_writer command = { .bytes = text, .room = sizeof(text) };
	struct answer      answer = { .prefix = prefix, .page = page };
	int                rc;

	label_pattern(prefix, space, pattern);
	snprintf(cursor, sizeof(cursor), "%" PRIu64, from);
	resp_put_array(&command, 6);
	resp_put_text(&command, "SCAN");
	resp_put_text(&command, cursor);
	resp_put_text(&command, "MATCH");
	resp_put_text(&command, pattern);
	resp_put_text(&command, "COUNT");
	resp_put_text(&command, SCAN_COUNT);
	rc = resp_conn_send(&stream->conn, command.bytes, command.used,
			    os_now_ns() + stream->settings->timeout_ns);
	if (rc == 0)
		rc = read_answer(stream, &answer);
	/* A server that does not get on would keep us for ever. */
	return rc == 0 && page->cursor != 0 && page->cursor == from ? KVS_E_PROTO : rc;
}

int resp_scan(struct resp_pool *pool, const struct kvs_namespace *space, struct resp_page *page)
{
	struct resp_lease lease;
	int               rc = resp_pool_lease(pool, 1, &lease, NULL);

	page->count = 0;
	page->more = false;
	if (rc < 0)
		return rc;
	rc = ask(lease.streams[0], space, page);
	/* An answer that was not read to its end would be the next command's. */
	if (rc < 0)
		resp_conn_close(&lease.streams[0]->conn);
	resp_pool_return(pool, &lease);
	return rc;
}
