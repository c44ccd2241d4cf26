/* SPDX-License-Identifier: Apache-2.0 */
/* See frame.h. */
#include "mooncake/frame.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/digest.h"
#include "base/text.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are written in place");

static const char magic[4] = { 'K', 'V', 'S', 'A' };

struct head {
	char     magic[4];
	uint16_t version;
	uint16_t kind;
	uint64_t sequence;
	uint32_t body_bytes;
	uint32_t zero;
	uint64_t checksum;
};
static_assert(sizeof(struct head) == FRAME_HEAD_BYTES, "on the wire");

struct call_head {
	uint32_t verb;
	uint32_t count;
	uint32_t names_bytes;
	uint32_t zero;
};
static_assert(sizeof(struct call_head) == 16, "on the wire");

enum { ANSWERED = 0, NOTHING = 1 };

struct answer_head {
	uint32_t status;
	uint32_t count; /* of codes, or bytes of text */
};
static_assert(sizeof(struct answer_head) == 8, "on the wire");

struct error_head {
	int64_t  code;
	uint32_t lasting;
	uint32_t text_bytes;
};
static_assert(sizeof(struct error_head) == 16, "on the wire");

/* Of the head before the checksum, and the body. */
static uint64_t checksum_of(const struct head *head, const uint8_t *body)
{
	struct sha256_stream stream;
	uint8_t              digest[SHA256_BYTES];
	uint64_t             checksum;

	sha256_init(&stream);
	sha256_update(&stream, head, offsetof(struct head, checksum));
	sha256_update(&stream, body, head->body_bytes);
	sha256_final(&stream, digest);
	memcpy(&checksum, digest, sizeof(checksum));
	return checksum;
}

size_t frame_seal(uint8_t *bytes, enum frame_kind kind, uint64_t sequence, uint32_t body_bytes)
{
	struct head head = { .version = FRAME_VERSION, .kind = (uint16_t)kind,
			     .sequence = sequence, .body_bytes = body_bytes };

	memcpy(head.magic, magic, sizeof(magic));
	head.checksum = checksum_of(&head, bytes + FRAME_HEAD_BYTES);
	memcpy(bytes, &head, sizeof(head));
	return FRAME_HEAD_BYTES + body_bytes;
}

size_t frame_memory(uint8_t *bytes, uint64_t sequence, uint64_t memory_bytes)
{
	memcpy(bytes + FRAME_HEAD_BYTES, &memory_bytes, sizeof(memory_bytes));
	return frame_seal(bytes, FRAME_MEMORY, sequence, sizeof(memory_bytes));
}

static uint8_t *put(uint8_t *at, const void *value, size_t bytes)
{
	memcpy(at, value, bytes);
	return at + bytes;
}

size_t frame_call(uint8_t *bytes, uint64_t sequence, const struct mooncake_call *call,
		  const uint64_t *offsets)
{
	struct call_head head = { .verb = (uint32_t)call->verb, .count = call->count };
	uint8_t *const   body = bytes + FRAME_HEAD_BYTES;
	uint8_t         *at = body + sizeof(head), *names;
	uint32_t         i;

	if (mooncake_moves(call->verb)) {
		at = put(at, offsets, call->count * sizeof(*offsets));
		for (i = 0; i < call->count; i++) {
			const uint64_t span_bytes = call->spans[i].bytes;

			at = put(at, &span_bytes, sizeof(span_bytes));
		}
	}
	names = at;
	for (i = 0; i < call->count; i++) {
		const size_t name_bytes = strlen(call->names[i]) + 1;

		KVS_ASSERT_CMP(name_bytes, <=, FRAME_NAME_MAX);
		at = put(at, call->names[i], name_bytes);
	}
	head.names_bytes = (uint32_t)(at - names);
	memcpy(body, &head, sizeof(head));
	return frame_seal(bytes, FRAME_CALL, sequence, (uint32_t)(at - body));
}

static uint32_t body_max(uint16_t kind)
{
	switch (kind) {
	case FRAME_READY:
		return FRAME_TEXT_MAX;
	case FRAME_ERROR:
		return sizeof(struct error_head) + FRAME_TEXT_MAX;
	case FRAME_ANSWER:
		return FRAME_ANSWER_MAX;
	default:
		return 0;
	}
}

static int check_head(const struct head *head, struct kvs_error *err)
{
	if (memcmp(head->magic, magic, sizeof(magic)) != 0)
		return err_set(err, KVS_E_PROTO, "agent: what it says does not begin with KVSA");
	if (head->version != FRAME_VERSION) {
		return err_set(err, KVS_E_PROTO, "agent: speaks version %u; this is version %u",
			       head->version, FRAME_VERSION);
	}
	if (head->kind != FRAME_READY && head->kind != FRAME_ERROR && head->kind != FRAME_OK &&
	    head->kind != FRAME_ANSWER) {
		return err_set(err, KVS_E_PROTO, "agent: kind %u is none that an agent sends",
			       head->kind);
	}
	if (head->body_bytes > body_max(head->kind) || head->zero != 0) {
		return err_set(err, KVS_E_PROTO, "agent: a body of %" PRIu32 " bytes; at most %"
			       PRIu32, head->body_bytes, body_max(head->kind));
	}
	return 0;
}

int frame_read(const uint8_t *bytes, size_t count, struct frame *ret_frame, struct kvs_error *err)
{
	struct head head;
	int         rc;

	if (count < sizeof(head))
		return -EAGAIN;
	memcpy(&head, bytes, sizeof(head));
	rc = check_head(&head, err);
	if (rc < 0)
		return rc;
	if (count < sizeof(head) + head.body_bytes)
		return -EAGAIN;
	if (count > sizeof(head) + head.body_bytes)
		return err_set(err, KVS_E_PROTO, "agent: said more than it was asked");
	if (head.checksum != checksum_of(&head, bytes + sizeof(head)))
		return err_set(err, KVS_E_PROTO, "agent: the checksum of a frame is wrong");
	*ret_frame = (struct frame){ .kind = (enum frame_kind)head.kind, .sequence = head.sequence,
				     .body = bytes + sizeof(head), .body_bytes = head.body_bytes };
	return 0;
}

/* Foreign text: cut, and harmless to a terminal. */
static void keep_text(const uint8_t *text, size_t bytes, char ret_text[FRAME_TEXT_MAX])
{
	const size_t kept = bytes < FRAME_TEXT_MAX ? bytes : FRAME_TEXT_MAX - 1;
	size_t       i;

	for (i = 0; i < kept; i++)
		ret_text[i] = (char)(text[i] ? text[i] : '?');
	ret_text[kept] = '\0';
	text_printable(ret_text);
}

int frame_answer(const struct frame *frame, uint32_t count, int64_t *codes, struct kvs_error *err)
{
	struct answer_head head;
	char               text[FRAME_TEXT_MAX];

	if (frame->kind != FRAME_ANSWER || frame->body_bytes < sizeof(head))
		return err_set(err, KVS_E_PROTO, "agent: what it says is no answer");
	memcpy(&head, frame->body, sizeof(head));
	if (head.status == NOTHING && head.count == frame->body_bytes - sizeof(head)) {
		keep_text(frame->body + sizeof(head), head.count, text);
		return err_set(err, KVS_E_HEALTH, "%s", text);
	}
	if (head.status != ANSWERED || head.count != count ||
	    frame->body_bytes != sizeof(head) + count * sizeof(*codes)) {
		return err_set(err, KVS_E_PROTO, "agent: %" PRIu32 " codes, status %" PRIu32 "; %"
			       PRIu32 " were asked for", head.count, head.status, count);
	}
	memcpy(codes, frame->body + sizeof(head), count * sizeof(*codes));
	return 0;
}

int frame_error(const struct frame *frame, struct frame_error *ret_error)
{
	struct error_head head;

	if (frame->kind != FRAME_ERROR || frame->body_bytes < sizeof(head))
		return KVS_E_PROTO;
	memcpy(&head, frame->body, sizeof(head));
	if (head.text_bytes != frame->body_bytes - sizeof(head) || head.lasting > 1)
		return KVS_E_PROTO;
	ret_error->code = head.code;
	ret_error->lasting = head.lasting;
	keep_text(frame->body + sizeof(head), head.text_bytes, ret_error->text);
	return 0;
}
