/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in the seal are little-endian: those of every machine that this is built for. */
#include "key/label.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/err.h"

static_assert(sizeof(struct label_seal) == 88, "no padding");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the seal is written as it lies");

static const uint8_t magic[8] = { 'k', 'v', 's', 't', 'r', 'a', 't', 'a' };

void label_seal(const struct kvs_key *key, const struct kvs_span *span, struct label_seal *ret_seal)
{
	const uint64_t seed = xxh3_64_seeded(key, sizeof(*key), span->bytes);

	*ret_seal = (struct label_seal){
		.version = LABEL_VERSION,
		.seal_bytes = sizeof(*ret_seal),
		.key = *key,
		.bytes = span->bytes,
		.checksum = xxh3_64_seeded(span->ptr, span->bytes, seed),
	};
	memcpy(ret_seal->magic, magic, sizeof(magic));
}

bool label_seal_holds(const struct label_seal *seal, const struct kvs_key *key,
		      const struct kvs_span *span)
{
	struct label_seal expected;

	label_seal(key, span, &expected);
	return memcmp(seal, &expected, sizeof(expected)) == 0;
}

size_t label_text(const char *prefix, const struct kvs_key *key, char ret_text[LABEL_TEXT_MAX])
{
	char space[2 * sizeof(key->space) + 1];
	char hash[2 * sizeof(key->hash) + 1];
	char group[16];
	int  bytes;

	if (key->replica == 0)
		snprintf(group, sizeof(group), "%u", key->group);
	else
		snprintf(group, sizeof(group), "%u.%u", key->group, key->replica);
	hex_encode(key->space.byte, sizeof(key->space.byte), space);
	hex_encode(key->hash, sizeof(key->hash), hash);
	bytes = snprintf(ret_text, LABEL_TEXT_MAX, "%s:%s:%s:%" PRIu32 ":%s", prefix, space,
			 group, key->offset, hash);
	KVS_ASSERT(bytes > 0 && bytes < (int)LABEL_TEXT_MAX);
	return (size_t)bytes;
}

static int digit_of(char c)
{
	const char *const digits = "0123456789abcdef";
	const char *const at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Each takes what it can; that it was spelt right is seen at the end. */
static const char *hex_take(const char *at, uint8_t *ret_bytes, size_t count)
{
	size_t i;

	for (i = 0; i < count && digit_of(at[0]) >= 0 && digit_of(at[1]) >= 0; i++, at += 2)
		ret_bytes[i] = (uint8_t)(digit_of(at[0]) << 4 | digit_of(at[1]));
	return at;
}

static const char *number_take(const char *at, uint32_t *ret_value)
{
	for (; *at >= '0' && *at <= '9'; at++)
		*ret_value = *ret_value * 10 + (uint32_t)(*at - '0');
	return at;
}

static const char *group_take(const char *at, struct kvs_key *key)
{
	uint32_t group = 0, replica = 0;

	at = number_take(at, &group);
	if (*at == '.')
		at = number_take(at + 1, &replica);
	key->group = (uint16_t)group;
	key->replica = (uint16_t)replica;
	return at;
}

bool label_parse(const char *prefix, const char *text, size_t bytes, struct kvs_key *ret_key)
{
	const size_t   skip = strlen(prefix) + 1;
	struct kvs_key key = { 0 };
	char           copy[LABEL_TEXT_MAX], again[LABEL_TEXT_MAX];
	const char    *at;

	if (bytes < skip || bytes >= sizeof(copy))
		return false;
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	at = hex_take(copy + skip, key.space.byte, sizeof(key.space.byte));
	at = group_take(at + (*at == ':'), &key);
	at = number_take(at + (*at == ':'), &key.offset);
	hex_take(at + (*at == ':'), key.hash, sizeof(key.hash));
	if (label_text(prefix, &key, again) != bytes || memcmp(copy, again, bytes) != 0)
		return false;
	*ret_key = key;
	return true;
}

void label_pattern(const char *prefix, const struct kvs_namespace *space,
		   char ret_pattern[LABEL_TEXT_MAX])
{
	char hex[2 * sizeof(*space) + 1] = "*";

	if (space)
		hex_encode(space->byte, sizeof(space->byte), hex);
	snprintf(ret_pattern, LABEL_TEXT_MAX, "%s:%s:*", prefix, hex);
}

void label_expression(const char *prefix, const struct kvs_namespace *space,
		      char ret_expression[LABEL_TEXT_MAX + LABEL_PREFIX_MAX])
{
	char        hex[2 * sizeof(*space) + 1] = "[0-9a-f]+";
	char        quoted[2 * LABEL_PREFIX_MAX + 1];
	const char *from = prefix;
	size_t      used = 0;

	KVS_ASSERT(strlen(prefix) <= LABEL_PREFIX_MAX);
	for (; *from; from++) {
		if (*from == '.')
			quoted[used++] = '\\';
		quoted[used++] = *from;
	}
	quoted[used] = '\0';
	if (space)
		hex_encode(space->byte, sizeof(space->byte), hex);
	snprintf(ret_expression, LABEL_TEXT_MAX + LABEL_PREFIX_MAX, "^%s:%s:.*", quoted, hex);
}
