/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever an agent may say.
 *
 * The first byte of an input chooses how many codes are wanted and whether the rest is a frame, or a
 * body that is sealed here: no fuzzer finds a checksum.  The second is the kind then.  What was read is
 * inside what came, and a frame is the same however it is cut.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mooncake/frame.h"

#define SEALED 0x80u
#define CODES_MAX 0x7fu

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t count);

static void take(const struct frame *frame, uint32_t wanted)
{
	struct kvs_error   err = { 0 };
	struct frame_error error;
	int64_t            codes[CODES_MAX + 1];
	int                rc;

	memset(codes, 0x77, sizeof(codes));
	rc = frame_answer(frame, wanted, codes, &err);
	KVS_ASSERT(rc == 0 || rc == KVS_E_HEALTH || rc == KVS_E_PROTO);
	KVS_ASSERT(rc == err.code);
	if (rc == 0)
		KVS_ASSERT_CMP(frame->body_bytes, ==, 8 + 8 * wanted);
	/* Nothing behind what was asked for, and nothing at all unless it was answered. */
	KVS_ASSERT(codes[rc == 0 ? wanted : 0] == 0x7777777777777777);
	if (frame_error(frame, &error) == 0)
		KVS_ASSERT_CMP(strlen(error.text), <, FRAME_TEXT_MAX);
}

static void hear(const uint8_t *bytes, size_t count, uint32_t wanted)
{
	/* A copy of its own, so that a read past the end is seen. */
	uint8_t *const whole = malloc(count ? count : 1);
	struct frame   frame;
	size_t         cut;
	int            rc;

	KVS_ASSERT(whole);
	memcpy(whole, bytes, count);
	rc = frame_read(whole, count, &frame, NULL);
	if (rc == 0) {
		KVS_ASSERT(frame.body == whole + FRAME_HEAD_BYTES);
		KVS_ASSERT_CMP(frame.body_bytes + FRAME_HEAD_BYTES, ==, count);
		take(&frame, wanted);
		for (cut = 0; cut < count; cut++)
			KVS_ASSERT(frame_read(whole, cut, &frame, NULL) == -EAGAIN);
	}
	KVS_ASSERT(rc == 0 || rc == -EAGAIN || rc == KVS_E_PROTO);
	free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t count)
{
	static uint8_t bytes[FRAME_HEARD_MAX];

	if (count < 2 || count - 2 > FRAME_ANSWER_MAX)
		return 0;
	if (!(input[0] & SEALED)) {
		hear(input + 2, count - 2, input[0] & CODES_MAX);
		return 0;
	}
	memcpy(bytes + FRAME_HEAD_BYTES, input + 2, count - 2);
	hear(bytes, frame_seal(bytes, (enum frame_kind)input[1], count, (uint32_t)(count - 2)),
	     input[0] & CODES_MAX);
	return 0;
}
