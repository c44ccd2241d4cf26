/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The byte stream of a page is cut into pieces of at most PIECE_TOKENS tokens on the stack.  A page
 * of the usual 128 to 512 tokens without extra keys is one piece and one call into libcrypto; the
 * rest streams.
 */
#include "key/key.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "base/err.h"

/* The largest page that engines use. */
#define PIECE_TOKENS 512u

/* Length and digest of the prior, and the token count. */
#define HEAD_BYTES (4 + SHA256_BYTES + 4)

/* Raised when equal identities must no longer mean equal objects: the chain or what blocks hold changed. */
#define COMPATIBILITY_EPOCH 1u

static_assert(sizeof(struct kvs_key) == 56, "keys are hashed and compared as bytes: no padding");
static_assert(sizeof(struct prefix_hash) == SHA256_BYTES, "a chain of hashes has no gaps");

static uint8_t *u32_put(uint8_t *at, uint32_t value)
{
	const uint32_t little = htole32(value);

	memcpy(at, &little, sizeof(little));
	return at + sizeof(little);
}

static uint8_t *head_put(uint8_t *at, const struct prefix_hash *prior, uint32_t token_count)
{
	at = u32_put(at, prior ? SHA256_BYTES : 0);
	if (prior) {
		memcpy(at, prior->byte, SHA256_BYTES);
		at += SHA256_BYTES;
	}
	return u32_put(at, token_count);
}

/* Token by token it would cost a tenth of the hash. */
static uint8_t *tokens_put(uint8_t *at, const int32_t *tokens, uint32_t count)
{
#if BYTE_ORDER == LITTLE_ENDIAN
	if (count > 0)
		memcpy(at, tokens, 4 * (size_t)count);
	return at + 4 * (size_t)count;
#else
	uint32_t i;

	for (i = 0; i < count; i++)
		at = u32_put(at, (uint32_t)tokens[i]);
	return at;
#endif
}

static void u32_update(struct sha256_stream *stream, uint32_t value)
{
	uint8_t number[4];

	u32_put(number, value);
	sha256_update(stream, number, sizeof(number));
}

void prefix_hash_begin(struct sha256_stream *stream, const struct prefix_hash *prior,
		       const int32_t *tokens, uint32_t token_count, uint32_t extra_count)
{
	uint8_t  piece[HEAD_BYTES + 4 * PIECE_TOKENS];
	uint32_t done = token_count < PIECE_TOKENS ? token_count : PIECE_TOKENS;
	uint8_t *end = tokens_put(head_put(piece, prior, token_count), tokens, done);

	sha256_init(stream);
	sha256_update(stream, piece, (size_t)(end - piece));
	while (done < token_count) {
		const uint32_t left = token_count - done;
		const uint32_t count = left < PIECE_TOKENS ? left : PIECE_TOKENS;

		end = tokens_put(piece, tokens + done, count);
		sha256_update(stream, piece, (size_t)(end - piece));
		done += count;
	}
	if (extra_count > 0)
		u32_update(stream, extra_count);
}

void prefix_hash_extra(struct sha256_stream *stream, const struct extra_key *extra)
{
	u32_update(stream, extra->byte_count);
	sha256_update(stream, extra->bytes, extra->byte_count);
}

void prefix_hash_end(struct sha256_stream *stream, struct prefix_hash *ret_hash)
{
	sha256_final(stream, ret_hash->byte);
}

void prefix_hash_page(const struct prefix_hash *prior, const int32_t *tokens, uint32_t token_count,
		      const struct extra_key *extras, uint32_t extra_count,
		      struct prefix_hash *ret_hash)
{
	uint8_t              piece[HEAD_BYTES + 4 * PIECE_TOKENS];
	struct sha256_stream stream;
	uint32_t             i;

	if (token_count <= PIECE_TOKENS && extra_count == 0) {
		const uint8_t *const end = tokens_put(head_put(piece, prior, token_count), tokens,
						      token_count);

		sha256(piece, (size_t)(end - piece), ret_hash->byte);
		return;
	}
	prefix_hash_begin(&stream, prior, tokens, token_count, extra_count);
	for (i = 0; i < extra_count; i++)
		prefix_hash_extra(&stream, &extras[i]);
	prefix_hash_end(&stream, ret_hash);
}

void key_namespace(const char *identity, struct kvs_namespace *ret_space)
{
	struct sha256_stream stream;
	uint8_t              epoch[4];
	uint8_t              digest[SHA256_BYTES];

	u32_put(epoch, COMPATIBILITY_EPOCH);
	sha256_init(&stream);
	sha256_update(&stream, "kvs", 3);
	sha256_update(&stream, epoch, sizeof(epoch));
	sha256_update(&stream, identity, strlen(identity));
	sha256_final(&stream, digest);
	memcpy(ret_space->byte, digest, sizeof(ret_space->byte));
}

void key_make(const struct kvs_namespace *space, const struct prefix_hash *hash, uint32_t group,
	      uint16_t replica, uint32_t offset, struct kvs_key *ret_key)
{
	KVS_ASSERT_CMP(group, <=, UINT16_MAX);
	*ret_key = (struct kvs_key){ .space = *space,
				     .group = (uint16_t)group,
				     .replica = replica,
				     .offset = offset };
	memcpy(ret_key->hash, hash->byte, sizeof(ret_key->hash));
}

uint64_t key_hash(const struct kvs_key *key)
{
	return xxh3_64(key, sizeof(*key));
}
