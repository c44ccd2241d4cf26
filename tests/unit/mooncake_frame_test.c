/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as bytes: what is said, what is heard, and every way to break it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/digest.h"
#include "mooncake/frame.h"

static uint8_t bytes[FRAME_SAID_MAX];

static uint64_t number(size_t at, size_t count)
{
	uint64_t value = 0;

	memcpy(&value, bytes + at, count);
	return value;
}

static void check_head(size_t whole, enum frame_kind kind, uint64_t sequence)
{
	uint8_t digest[SHA256_BYTES], covered[FRAME_SAID_MAX];

	assert_memory_equal(bytes, "KVSA", 4);
	assert_int_equal(number(4, 2), 1);
	assert_int_equal(number(6, 2), kind);
	assert_int_equal(number(8, 8), sequence);
	assert_int_equal(number(16, 4), whole - 32);
	assert_int_equal(number(20, 4), 0);
	memcpy(covered, bytes, 24);
	memcpy(covered + 24, bytes + 32, whole - 32);
	sha256(covered, whole - 8, digest);
	assert_memory_equal(bytes + 24, digest, 8);
}

static void a_call_is_laid_out_as_the_document_says(void **state)
{
	const char          *names[] = { "one", "a\"\\2" };
	const struct kvs_span spans[] = { { NULL, 4096, 0 }, { NULL, UINT64_C(1) << 33, 0 } };
	const uint64_t       offsets[] = { 7, UINT64_C(5) << 32 };
	struct mooncake_call call = { .verb = MOONCAKE_PUT, .count = 2, .names = names, .spans = spans };
	size_t               whole = frame_call(bytes, 0x0102030405060708, &call, offsets);

	(void)state;
	assert_int_equal(whole, 32 + 16 + 32 + 4 + 5);
	check_head(whole, FRAME_CALL, 0x0102030405060708);
	assert_int_equal(number(32, 4), MOONCAKE_PUT);
	assert_int_equal(number(36, 4), 2);
	assert_int_equal(number(40, 4), 9);
	assert_int_equal(number(44, 4), 0);
	assert_int_equal(number(48, 8), 7);
	assert_int_equal(number(56, 8), UINT64_C(5) << 32);
	assert_int_equal(number(64, 8), 4096);
	assert_int_equal(number(72, 8), UINT64_C(1) << 33);
	assert_memory_equal(bytes + 80, "one\0a\"\\2", 9);

	call.verb = MOONCAKE_EXISTS;
	whole = frame_call(bytes, 9, &call, NULL);
	assert_int_equal(whole, 32 + 16 + 9);
	check_head(whole, FRAME_CALL, 9);
	assert_memory_equal(bytes + 48, "one\0a\"\\2", 9);
}

static void the_largest_call_fits(void **state)
{
	static char           name[FRAME_NAME_MAX];
	static const char    *names[MOONCAKE_NAMES_MAX];
	static struct kvs_span spans[MOONCAKE_NAMES_MAX];
	static uint64_t       offsets[MOONCAKE_NAMES_MAX];
	struct mooncake_call  call = { .verb = MOONCAKE_GET, .count = MOONCAKE_NAMES_MAX, .names = names,
				       .spans = spans };
	size_t                i;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	for (i = 0; i < MOONCAKE_NAMES_MAX; i++)
		names[i] = name;
	assert_int_equal(frame_call(bytes, 1, &call, offsets), FRAME_SAID_MAX);
}

static void memory_is_told_with_its_length(void **state)
{
	(void)state;
	assert_int_equal(frame_memory(bytes, 3, UINT64_C(1) << 40), 40);
	check_head(40, FRAME_MEMORY, 3);
	assert_int_equal(number(32, 8), UINT64_C(1) << 40);
}

/* A frame with that body, in a buffer of exactly its length, so that reading past it shows. */
static size_t said(enum frame_kind kind, const void *body, size_t count)
{
	memcpy(bytes + FRAME_HEAD_BYTES, body, count);
	return frame_seal(bytes, kind, 42, (uint32_t)count);
}

static size_t answer(uint32_t status, uint32_t count, const void *rest, size_t rest_bytes)
{
	uint8_t body[FRAME_ANSWER_MAX];

	memcpy(body, &status, 4);
	memcpy(body + 4, &count, 4);
	memcpy(body + 8, rest, rest_bytes);
	return said(FRAME_ANSWER, body, 8 + rest_bytes);
}

static int hear(size_t count, struct frame *ret_frame)
{
	struct kvs_error err = { 0 };
	const int        rc = frame_read(bytes, count, ret_frame, &err);

	assert_int_equal(err.code, rc == KVS_E_PROTO ? rc : 0);
	return rc;
}

static void an_answer_is_read_whole_or_not_at_all(void **state)
{
	static const int64_t told[] = { 4096, -704, INT64_MIN };
	const size_t         whole = answer(0, 3, told, sizeof(told));
	struct frame         frame;
	struct kvs_error     err = { 0 };
	int64_t              codes[4] = { 77, 77, 77, 77 };
	size_t               i;

	(void)state;
	for (i = 0; i < whole; i++)
		assert_int_equal(hear(i, &frame), -EAGAIN);
	assert_int_equal(hear(whole + 1, &frame), KVS_E_PROTO);
	assert_int_equal(hear(whole, &frame), 0);
	assert_int_equal(frame.kind, FRAME_ANSWER);
	assert_int_equal(frame.sequence, 42);
	assert_int_equal(frame_answer(&frame, 2, codes, &err), KVS_E_PROTO);
	assert_int_equal(frame_answer(&frame, 4, codes, &err), KVS_E_PROTO);
	assert_int_equal(codes[0], 77);
	assert_int_equal(frame_answer(&frame, 3, codes, &err), 0);
	assert_memory_equal(codes, told, sizeof(told));
	assert_int_equal(codes[3], 77);
}

static void every_bit_counts(void **state)
{
	static const int64_t told[] = { 1, 0 };
	const size_t         whole = answer(0, 2, told, sizeof(told));
	struct frame         frame;
	size_t               bit;

	(void)state;
	for (bit = 0; bit < 8 * whole; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		/* A longer body is waited for, as long as it may be one. */
		assert_int_not_equal(hear(whole, &frame), 0);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(hear(whole, &frame), 0);
}

static void what_no_agent_sends_is_refused(void **state)
{
	struct frame frame;
	uint32_t     kind;

	(void)state;
	for (kind = 0; kind <= FRAME_KIND_END; kind++) {
		const bool is_theirs = kind == FRAME_READY || kind == FRAME_ERROR ||
				       kind == FRAME_OK || kind == FRAME_ANSWER;

		assert_int_equal(hear(said((enum frame_kind)kind, "", 0), &frame),
				 is_theirs ? 0 : KVS_E_PROTO);
	}
	/* A body too long is refused before it has come. */
	assert_int_equal(hear(said(FRAME_OK, "x", 1), &frame), KVS_E_PROTO);
	(void)frame_seal(bytes, FRAME_ANSWER, 1, FRAME_ANSWER_MAX + 1);
	assert_int_equal(hear(FRAME_HEAD_BYTES, &frame), KVS_E_PROTO);
}

static void no_answer_is_told_with_its_reason(void **state)
{
	struct frame     frame;
	struct kvs_error err = { 0 };
	int64_t          code = 77;

	(void)state;
	assert_int_equal(hear(answer(1, 5, "a\x1b\0b\n", 5), &frame), 0);
	assert_int_equal(frame_answer(&frame, 1, &code, &err), KVS_E_HEALTH);
	assert_string_equal(err.message, "a??b?");
	assert_int_equal(code, 77);
	assert_int_equal(hear(answer(1, 6, "a\x1b\0b\n", 5), &frame), 0);
	assert_int_equal(frame_answer(&frame, 1, &code, &err), KVS_E_PROTO);
	assert_int_equal(hear(answer(2, 1, "12345678", 8), &frame), 0);
	assert_int_equal(frame_answer(&frame, 1, &code, &err), KVS_E_PROTO);
	assert_int_equal(hear(said(FRAME_ANSWER, "1234567", 7), &frame), 0);
	assert_int_equal(frame_answer(&frame, 1, &code, &err), KVS_E_PROTO);
	assert_int_equal(hear(said(FRAME_OK, "", 0), &frame), 0);
	assert_int_equal(frame_answer(&frame, 1, &code, &err), KVS_E_PROTO);
	assert_int_equal(code, 77);
}

static size_t error(int64_t code, uint32_t lasting, uint32_t told, const char *text)
{
	uint8_t body[512];

	memcpy(body, &code, 8);
	memcpy(body + 8, &lasting, 4);
	memcpy(body + 12, &told, 4);
	memcpy(body + 16, text, strlen(text));
	return said(FRAME_ERROR, body, 16 + strlen(text));
}

static void an_error_is_cut_and_harmless(void **state)
{
	char               text[FRAME_TEXT_MAX + 1] = { 0 };
	struct frame_error told;
	struct frame       frame;

	(void)state;
	assert_int_equal(hear(error(-600, 1, 5, "no\tno"), &frame), 0);
	assert_int_equal(frame_error(&frame, &told), 0);
	assert_int_equal(told.code, -600);
	assert_true(told.lasting);
	assert_string_equal(told.text, "no?no");
	assert_int_equal(hear(error(-600, 1, 4, "no\tno"), &frame), 0);
	assert_int_equal(frame_error(&frame, &told), KVS_E_PROTO);
	assert_int_equal(hear(error(-600, 2, 5, "no\tno"), &frame), 0);
	assert_int_equal(frame_error(&frame, &told), KVS_E_PROTO);
	assert_int_equal(hear(said(FRAME_ERROR, "too short", 9), &frame), 0);
	assert_int_equal(frame_error(&frame, &told), KVS_E_PROTO);
	/* As long as the terminator's place, too. */
	memset(text, 'x', FRAME_TEXT_MAX);
	assert_int_equal(hear(error(0, 0, FRAME_TEXT_MAX, text), &frame), 0);
	assert_int_equal(frame_error(&frame, &told), 0);
	assert_int_equal(strlen(told.text), FRAME_TEXT_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_laid_out_as_the_document_says),
		cmocka_unit_test(the_largest_call_fits),
		cmocka_unit_test(memory_is_told_with_its_length),
		cmocka_unit_test(an_answer_is_read_whole_or_not_at_all),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(what_no_agent_sends_is_refused),
		cmocka_unit_test(no_answer_is_told_with_its_reason),
		cmocka_unit_test(an_error_is_cut_and_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
