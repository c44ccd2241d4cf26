/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESP2, the protocol of Redis, over bytes that somebody else holds.
 *
 * Reading is a state machine that may be fed any number of bytes at a time: replies come apart into
 * events, and the body of a bulk is handed out where it lies, or never passes here at all when its
 * reader took it from the socket itself.  Nesting is the caller's: an array is an event with a
 * count, and its elements follow as replies of their own.
 *
 * Pure; no memory of its own but the line being read.
 */
#ifndef STORE_RESP_CODEC_H
#define STORE_RESP_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESP_TEXT_MAX 128u             /* kept of a status or an error */
#define RESP_LINE_MAX 4096u            /* of either, read */
#define RESP_BULK_MAX (1u << 29)       /* what Redis itself allows */
#define RESP_ARRAY_MAX (1u << 20)

enum resp_event {
	RESP_MORE,    /* all bytes are used, and no event yet */
	RESP_STATUS,  /* text */
	RESP_ERROR,   /* text */
	RESP_INTEGER, /* value */
	RESP_NIL,     /* a bulk or an array that is not there */
	RESP_ARRAY,   /* value elements follow */
	RESP_BULK,    /* a body of value bytes follows, as DATA, and then END */
	RESP_DATA,    /* the bytes used are body */
	RESP_END      /* of a bulk */
};

struct resp_reader {
	uint8_t  state;
	uint32_t line_bytes; /* of the line being read, its type byte included */
	uint32_t text_bytes;
	uint32_t body_left;
	int64_t  value;
	char     text[RESP_TEXT_MAX + 1]; /* terminated when its event is out */
};

/* A zeroed reader is at the start of a reply. */
void resp_reader_init(struct resp_reader *reader);

/**
 * Read up to the next event.
 *
 * Shape   *ret_used of count bytes were used; they are the body's when the event is DATA.
 * Errors  KVS_E_PROTO  no RESP2, or past a limit; every later call says the same.
 */
int resp_read(struct resp_reader *reader, const void *bytes, size_t count, size_t *ret_used);

/* Nothing of a reply has been read. */
bool resp_reader_is_between(const struct resp_reader *reader);

/* Bytes of a body that must still come; 0 outside of one. */
uint32_t resp_body_left(const struct resp_reader *reader);

/* A command is an array of bulks, written one by one into a buffer that is large enough. */
struct resp_writer {
	char  *bytes;
	size_t used, room;
};

void resp_put_array(struct resp_writer *writer, uint32_t count);
void resp_put_text(struct resp_writer *writer, const char *text);
void resp_put_bulk(struct resp_writer *writer, const void *bytes, size_t count);
/* Only the head of a bulk: its body and a line end follow by other ways. */
void resp_put_bulk_head(struct resp_writer *writer, size_t count);

#endif
