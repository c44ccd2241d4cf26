/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an object is named and sealed in a store that knows text and values only.
 *
 *   text    <prefix>:<namespace>:<group>[.<replica>]:<offset>:<hash>, namespace and hash in hex, so
 *           that a namespace is a pattern and people can read what they find
 *   value   verified: payload, then the seal below; raw: payload alone
 *
 * The seal comes last, so that the payload goes to and from its block in place.  A value is an
 * object when its seal is, byte for byte, the one that its key and payload would be given now.
 */
#ifndef KEY_LABEL_H
#define KEY_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include <kvstrata/base.h>

#define LABEL_PREFIX_MAX 32u
/* What a prefix may hold: nothing that a pattern or an expression takes for more than itself. */
#define LABEL_PREFIX_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
/* Prefix, namespace, group and replica with a dot, offset, hash, four colons, the terminator. */
#define LABEL_TEXT_MAX (LABEL_PREFIX_MAX + 32 + 11 + 10 + 64 + 4 + 1)

#define LABEL_VERSION 1u

struct label_seal {
	uint8_t        magic[8];
	uint32_t       version;
	uint32_t       seal_bytes;
	struct kvs_key key;
	uint64_t       bytes;    /* of payload */
	uint64_t       checksum; /* XXH3-64 of the payload, seeded with key and length */
};

void label_seal(const struct kvs_key *key, const struct kvs_span *span, struct label_seal *ret_seal);
bool label_seal_holds(const struct label_seal *seal, const struct kvs_key *key,
		      const struct kvs_span *span);

/* The length without the terminator. */
size_t label_text(const char *prefix, const struct kvs_key *key, char ret_text[LABEL_TEXT_MAX]);

/* False when it is no key of ours, spelt exactly as label_text() spells it. */
bool label_parse(const char *prefix, const char *text, size_t bytes, struct kvs_key *ret_key);

/* What Redis' SCAN matches; space NULL: every namespace. */
void label_pattern(const char *prefix, const struct kvs_namespace *space,
		   char ret_pattern[LABEL_TEXT_MAX]);

/* The same as a regular expression; a prefix's dots are themselves in it. */
void label_expression(const char *prefix, const struct kvs_namespace *space,
		      char ret_expression[LABEL_TEXT_MAX + LABEL_PREFIX_MAX]);

#endif
