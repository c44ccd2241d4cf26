/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library and an agent say to each other: docs/design/mooncake-agent.md, byte by byte.
 *
 * A frame is a head and a body, little endian.  Its checksum covers both, so that nothing an SDK
 * prints, or writes past its own memory, passes for an answer.  Pure.
 */
#ifndef MOONCAKE_FRAME_H
#define MOONCAKE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "mooncake/way.h"

#define FRAME_VERSION 1u
#define FRAME_HEAD_BYTES 32u
#define FRAME_NAME_MAX (2 * LABEL_TEXT_MAX) /* with its terminator */
#define FRAME_TEXT_MAX 240u                 /* of an error, with the terminator */

#define FRAME_HELLO_MAX 16384u              /* every byte of the settings escaped */
#define FRAME_CALL_MAX (16u + MOONCAKE_NAMES_MAX * (16u + FRAME_NAME_MAX))
#define FRAME_ANSWER_MAX (8u + MOONCAKE_NAMES_MAX * 8u)
/* Room for whatever an agent may say, its head included; what we say is up to FRAME_CALL_MAX. */
#define FRAME_HEARD_MAX (FRAME_HEAD_BYTES + FRAME_ANSWER_MAX)
#define FRAME_SAID_MAX (FRAME_HEAD_BYTES + FRAME_CALL_MAX)

enum frame_kind {
	FRAME_HELLO = 1, /* settings, JSON */
	FRAME_READY,     /* the master has answered; the body tells people what the agent is */
	FRAME_ERROR,     /* instead of READY or OK */
	FRAME_MEMORY,    /* u64 bytes; its descriptor comes with the first byte */
	FRAME_OK,
	FRAME_CALL,
	FRAME_ANSWER,
	FRAME_BYE,
	FRAME_KIND_END
};

struct frame {
	enum frame_kind kind;
	uint64_t        sequence;
	const uint8_t  *body;
	uint32_t        body_bytes;
};

struct frame_error {
	int64_t code;    /* of the SDK; 0: of none */
	bool    lasting; /* it does not heal by itself */
	char    text[FRAME_TEXT_MAX]; /* printable */
};

/* --- what we say ------------------------------------------------------------------------------ */
/* Each writes a whole frame and returns its length; bytes has room for it. */

/* The body lies at bytes + FRAME_HEAD_BYTES. */
size_t frame_seal(uint8_t *bytes, enum frame_kind kind, uint64_t sequence, uint32_t body_bytes);
size_t frame_memory(uint8_t *bytes, uint64_t sequence, uint64_t memory_bytes);
/* offsets: of the spans, in the memory; read for GET and PUT only. */
size_t frame_call(uint8_t *bytes, uint64_t sequence, const struct mooncake_call *call,
		  const uint64_t *offsets);

/* --- what we hear ----------------------------------------------------------------------------- */
/**
 * The frame at the start of count bytes; body points into them.
 *
 * Errors  -EAGAIN      more bytes are needed;
 *         KVS_E_PROTO  no frame of an agent begins so, or more came than one.
 */
int frame_read(const uint8_t *bytes, size_t count, struct frame *ret_frame, struct kvs_error *err);

/*
 * 0 and count codes; KVS_E_HEALTH when the agent says that it knows nothing, with its reason;
 * KVS_E_PROTO when that is no answer to count names.
 */
int frame_answer(const struct frame *frame, uint32_t count, int64_t *codes, struct kvs_error *err);

int frame_error(const struct frame *frame, struct frame_error *ret_error);

#endif
