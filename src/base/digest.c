/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcrypto's low-level SHA-256 calls are marked deprecated in favour of EVP, but EVP costs a tenth
 * more on the 552-byte messages of a page, which are most of what we hash.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

void sha256_init(struct sha256_stream *stream)
{
	SHA256_Init(&stream->context);
}

void sha256_update(struct sha256_stream *stream, const void *bytes, size_t byte_count)
{
	SHA256_Update(&stream->context, bytes, byte_count);
}

void sha256_final(struct sha256_stream *stream, uint8_t ret_digest[SHA256_BYTES])
{
	SHA256_Final(ret_digest, &stream->context);
}

void sha256(const void *bytes, size_t byte_count, uint8_t ret_digest[SHA256_BYTES])
{
	struct sha256_stream stream;

	sha256_init(&stream);
	sha256_update(&stream, bytes, byte_count);
	sha256_final(&stream, ret_digest);
}

uint64_t xxh3_64(const void *bytes, size_t byte_count)
{
	return XXH3_64bits(bytes, byte_count);
}

uint64_t xxh3_64_seeded(const void *bytes, size_t byte_count, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes, byte_count, seed);
}

void hex_encode(const uint8_t *bytes, size_t count, char *ret_text)
{
	static const char digits[] = "0123456789abcdef";
	size_t            i;

	for (i = 0; i < count; i++) {
		ret_text[2 * i] = digits[bytes[i] >> 4];
		ret_text[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret_text[2 * count] = '\0';
}
