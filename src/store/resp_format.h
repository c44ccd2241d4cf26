/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an object lies in Redis.
 *
 *   key     <prefix>:<namespace>:<group>:<offset>:<hash>, namespace and hash in hex, so that a
 *           namespace is a pattern and people can read what they find
 *   value   verified: payload, then the trailer below; raw: payload alone
 *
 * The trailer comes last, so that the payload goes to and from its block in place.  A value is an
 * object when its trailer is, byte for byte, the one that its key and payload would be given now.
 */
#ifndef STORE_RESP_FORMAT_H
#define STORE_RESP_FORMAT_H

#include <stdbool.h>

#include <kvstrata/base.h>

#define RESP_PREFIX_MAX 32u
/* Prefix, namespace, group and replica with a dot, offset, hash, four colons, the terminator. */
#define RESP_KEY_MAX (RESP_PREFIX_MAX + 32 + 11 + 10 + 64 + 4 + 1)

#define RESP_FORMAT_VERSION 1u

struct resp_trailer {
	uint8_t        magic[8];
	uint32_t       version;
	uint32_t       trailer_bytes;
	struct kvs_key key;
	uint64_t       bytes;    /* of payload */
	uint64_t       checksum; /* XXH3-64 of the payload, seeded with key and length */
};

void resp_trailer_make(const struct kvs_key *key, const struct kvs_span *span,
		       struct resp_trailer *ret_trailer);
bool resp_trailer_holds(const struct resp_trailer *trailer, const struct kvs_key *key,
			const struct kvs_span *span);

/* The length without the terminator. */
size_t resp_key_text(const char *prefix, const struct kvs_key *key, char ret_text[RESP_KEY_MAX]);

/* False when it is no key of ours, spelt exactly as resp_key_text() spells it. */
bool resp_key_parse(const char *prefix, const char *text, size_t bytes, struct kvs_key *ret_key);

/* What SCAN matches; space NULL: every namespace. */
void resp_key_pattern(const char *prefix, const struct kvs_namespace *space,
		      char ret_pattern[RESP_KEY_MAX]);

#endif
