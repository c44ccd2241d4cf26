/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is read byte by byte, since it is short; a body is passed over.  Everything about a line is
 * decided at its end.
 */
#include "store/resp_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

enum state {
	AT_TYPE,      /* before a reply */
	IN_LINE,      /* behind its type byte, which value keeps */
	AT_LINE_END,  /* behind the CR of a line */
	IN_BODY,
	AT_BODY_CR,
	AT_BODY_LF,
	BROKEN
};

/* Sign and digits of an int64_t: a longer number is none. */
#define NUMBER_MAX 20u

void resp_reader_init(struct resp_reader *reader)
{
	*reader = (struct resp_reader){ .state = AT_TYPE };
}

bool resp_reader_is_between(const struct resp_reader *reader)
{
	return reader->state == AT_TYPE;
}

uint32_t resp_body_left(const struct resp_reader *reader)
{
	return reader->state == IN_BODY ? reader->body_left : 0;
}

static bool number_read(const char *text, int64_t *ret_value)
{
	const bool  negative = *text == '-';
	const char *at = text + negative;
	uint64_t    value = 0;

	if (!*at)
		return false;
	for (; *at; at++) {
		const uint64_t digit = (uint64_t)(*at - '0');

		if (*at < '0' || *at > '9' || value > ((uint64_t)INT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret_value = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

/* The event of a count that announces a bulk or an array. */
static int counted(struct resp_reader *reader, int64_t max, enum resp_event event)
{
	if (reader->value == -1)
		return RESP_NIL;
	return reader->value < 0 || reader->value > max ? KVS_E_PROTO : (int)event;
}

static int number_event(struct resp_reader *reader, char type)
{
	if (!number_read(reader->text, &reader->value))
		return KVS_E_PROTO;
	if (type == ':')
		return RESP_INTEGER;
	return type == '*' ? counted(reader, RESP_ARRAY_MAX, RESP_ARRAY)
			   : counted(reader, RESP_BULK_MAX, RESP_BULK);
}

/* Until here the value was the type byte. */
static int line_event(struct resp_reader *reader)
{
	const char type = (char)reader->value;
	int        event;

	reader->text[reader->text_bytes] = '\0';
	if (type == '+' || type == '-')
		event = type == '+' ? RESP_STATUS : RESP_ERROR;
	else
		event = number_event(reader, type);
	reader->state = AT_TYPE;
	if (event == RESP_BULK) {
		reader->body_left = (uint32_t)reader->value;
		reader->state = reader->body_left ? IN_BODY : AT_BODY_CR;
	}
	return event;
}

static int line_begin(struct resp_reader *reader, char type)
{
	if (!type || !strchr("+-:$*", type))
		return KVS_E_PROTO;
	reader->value = type;
	reader->line_bytes = 1;
	reader->text_bytes = 0;
	reader->state = IN_LINE;
	return RESP_MORE;
}

static int line_take(struct resp_reader *reader, char byte)
{
	const bool     is_text = reader->value == '+' || reader->value == '-';
	const uint32_t most = is_text ? RESP_LINE_MAX : NUMBER_MAX + 1;

	if (byte == '\r') {
		reader->state = AT_LINE_END;
		return RESP_MORE;
	}
	if (byte == '\n' || byte == '\0' || ++reader->line_bytes > most)
		return KVS_E_PROTO;
	if (reader->text_bytes < RESP_TEXT_MAX)
		reader->text[reader->text_bytes++] = byte;
	return RESP_MORE;
}

static int take(struct resp_reader *reader, char byte)
{
	switch ((enum state)reader->state) {
	case AT_TYPE:
		return line_begin(reader, byte);
	case IN_LINE:
		return line_take(reader, byte);
	case AT_LINE_END:
		return byte == '\n' ? line_event(reader) : KVS_E_PROTO;
	case AT_BODY_CR:
		reader->state = AT_BODY_LF;
		return byte == '\r' ? RESP_MORE : KVS_E_PROTO;
	case AT_BODY_LF:
		reader->state = AT_TYPE;
		return byte == '\n' ? RESP_END : KVS_E_PROTO;
	case IN_BODY:
	case BROKEN:
		break;
	}
	return KVS_E_PROTO;
}

static int pass_body(struct resp_reader *reader, size_t count, size_t *ret_used)
{
	const size_t used = count < reader->body_left ? count : reader->body_left;

	reader->body_left -= (uint32_t)used;
	if (reader->body_left == 0)
		reader->state = AT_BODY_CR;
	*ret_used = used;
	return RESP_DATA;
}

int resp_read(struct resp_reader *reader, const void *bytes, size_t count, size_t *ret_used)
{
	const char *const text = bytes;
	int               event = reader->state == BROKEN ? KVS_E_PROTO : RESP_MORE;
	size_t            used = 0;

	if (reader->state == IN_BODY && count > 0)
		return pass_body(reader, count, ret_used);
	while (used < count && event == RESP_MORE)
		event = take(reader, text[used++]);
	if (event < 0)
		reader->state = BROKEN;
	*ret_used = used;
	return event;
}

static void put(struct resp_writer *writer, const void *bytes, size_t count)
{
	KVS_ASSERT_CMP(count, <=, writer->room - writer->used);
	memcpy(writer->bytes + writer->used, bytes, count);
	writer->used += count;
}

static void put_count(struct resp_writer *writer, char type, size_t count)
{
	char      line[32];
	const int bytes = snprintf(line, sizeof(line), "%c%zu\r\n", type, count);

	put(writer, line, (size_t)bytes);
}

void resp_put_array(struct resp_writer *writer, uint32_t count)
{
	put_count(writer, '*', count);
}

void resp_put_bulk_head(struct resp_writer *writer, size_t count)
{
	put_count(writer, '$', count);
}

void resp_put_bulk(struct resp_writer *writer, const void *bytes, size_t count)
{
	resp_put_bulk_head(writer, count);
	put(writer, bytes, count);
	put(writer, "\r\n", 2);
}

void resp_put_text(struct resp_writer *writer, const char *text)
{
	resp_put_bulk(writer, text, strlen(text));
}
