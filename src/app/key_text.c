/* SPDX-License-Identifier: Apache-2.0 */
/* See key_text.h. */
#include "app/key_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/units.h"

char *key_text_space(const struct kvs_namespace *space, char buffer[KEY_TEXT_SPACE_BYTES])
{
	hex_encode(space->byte, sizeof(space->byte), buffer);
	return buffer;
}

char *key_text_hash(const struct kvs_key *key, char buffer[KEY_TEXT_HASH_BYTES])
{
	hex_encode(key->hash, sizeof(key->hash), buffer);
	return buffer;
}

char *key_text_group(const struct kvs_key *key, char buffer[KEY_TEXT_GROUP_BYTES])
{
	if (key->replica == 0)
		snprintf(buffer, KEY_TEXT_GROUP_BYTES, "%u", key->group);
	else
		snprintf(buffer, KEY_TEXT_GROUP_BYTES, "%u.%u", key->group, key->replica);
	return buffer;
}

char *key_text(const struct kvs_key *key, char buffer[KEY_TEXT_BYTES])
{
	char space[KEY_TEXT_SPACE_BYTES], hash[KEY_TEXT_HASH_BYTES], group[KEY_TEXT_GROUP_BYTES];

	snprintf(buffer, KEY_TEXT_BYTES, "%s:%s:%" PRIu32 ":%s",
		 key_text_space(&key->space, space), key_text_group(key, group), key->offset,
		 key_text_hash(key, hash));
	return buffer;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Exactly count bytes of text. */
static bool parse_hex(const char *text, size_t length, uint8_t *ret_bytes, size_t count)
{
	size_t i;

	if (length != 2 * count)
		return false;
	for (i = 0; i < count; i++) {
		const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret_bytes[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static bool parse_number(const char *text, size_t length, uint32_t max, uint32_t *ret_number)
{
	char     copy[16];
	uint64_t number;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (units_count(copy, &number) < 0 || number > max)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

/* GROUP or GROUP.REPLICA. */
static bool parse_group(const char *text, size_t length, struct kvs_key *key)
{
	const char *const dot = memchr(text, '.', length);
	const size_t      digits = dot ? (size_t)(dot - text) : length;
	uint32_t          group, replica = 0;

	if (!parse_number(text, digits, UINT16_MAX, &group) ||
	    (dot && !parse_number(dot + 1, length - digits - 1, UINT16_MAX, &replica)))
		return false;
	key->group = (uint16_t)group;
	key->replica = (uint16_t)replica;
	return true;
}

bool key_text_parse_space(const char *text, struct kvs_namespace *ret_space)
{
	struct kvs_namespace space;

	if (!parse_hex(text, strlen(text), space.byte, sizeof(space.byte)))
		return false;
	*ret_space = space;
	return true;
}

bool key_text_parse(const char *text, struct kvs_key *ret_key)
{
	const char    *part[4] = { text };
	size_t         length[4];
	struct kvs_key key = { 0 };
	int            i;

	for (i = 0; i < 4; i++) {
		length[i] = strcspn(part[i], ":");
		if ((part[i][length[i]] == ':') != (i < 3))
			return false;
		if (i < 3)
			part[i + 1] = part[i] + length[i] + 1;
	}
	if (!parse_hex(part[0], length[0], key.space.byte, sizeof(key.space.byte)) ||
	    !parse_group(part[1], length[1], &key) ||
	    !parse_number(part[2], length[2], UINT32_MAX, &key.offset) ||
	    !parse_hex(part[3], length[3], key.hash, sizeof(key.hash)))
		return false;
	*ret_key = key;
	return true;
}
