/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From tokens to names: the hash of a page, namespaces, object keys.  key/prompt.h makes the chain
 * of a whole prompt of it.
 *
 * A page is page_tokens tokens (P).  Its hash covers its tokens and, through its
 * prior, every token before it, so equal hashes mean equal prefixes.  A *tail*, fewer tokens than a
 * page behind the last full one, is hashed in the same way; its count in the stream tells it apart.
 *
 * Byte stream of one page, hashed with SHA-256; integers are little-endian:
 *   u32 length of the prior digest (0 or 32), the prior digest,
 *   u32 token count, each token as its 32-bit two's complement,
 *   and only when there are extra keys: u32 count, then each as u32 length and bytes.
 *
 * Source   the stream above; golden values of it in tests/unit/key_test.c.
 */
#ifndef KEY_KEY_H
#define KEY_KEY_H

#include <stddef.h>
#include <stdint.h>

#include <kvstrata/base.h>

#include "base/digest.h"

struct prefix_hash {
	uint8_t byte[SHA256_BYTES];
};

/* Anything but tokens that changes what a page means: adapter, tenant salt, digest of an image. */
struct extra_key {
	const void *bytes;
	uint32_t    byte_count;
};

/* One page or tail.  prior is NULL for the first page of a prompt. */
void prefix_hash_page(const struct prefix_hash *prior, const int32_t *tokens, uint32_t token_count,
		      const struct extra_key *extras, uint32_t extra_count,
		      struct prefix_hash *ret_hash);

/*
 * The same in pieces, for extra keys that lie in no array: begin, each of the extra_count keys in
 * order, end.
 */
void prefix_hash_begin(struct sha256_stream *stream, const struct prefix_hash *prior,
		       const int32_t *tokens, uint32_t token_count, uint32_t extra_count);
void prefix_hash_extra(struct sha256_stream *stream, const struct extra_key *extra);
void prefix_hash_end(struct sha256_stream *stream, struct prefix_hash *ret_hash);

/* A namespace from a deployment's identity text: SHA-256 of "kvs", the compatibility epoch and the text. */
void key_namespace(const char *identity, struct kvs_namespace *ret_space);

/* Asserts that the group's number fits; groups that come from input are fewer (match/groups.h). */
void key_make(const struct kvs_namespace *space, const struct prefix_hash *hash, uint32_t group,
	      uint16_t replica, uint32_t offset, struct kvs_key *ret_key);

/* What map_hash() gives for a key, where the map is not at hand: they must agree. */
uint64_t key_hash(const struct kvs_key *key);

#endif
