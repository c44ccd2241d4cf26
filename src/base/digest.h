/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests and checksums: SHA-256 for identity (libcrypto), XXH3-64 for integrity and hashing
 * (xxhash).
 *
 * XXH3 is never used where two parties must agree on identity across a trust boundary.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/sha.h>

#define SHA256_BYTES 32

void sha256(const void *bytes, size_t byte_count, uint8_t ret_digest[SHA256_BYTES]);

/* The same over a message that arrives in pieces: init, any number of updates, final. */
struct sha256_stream {
	SHA256_CTX context;
};

void sha256_init(struct sha256_stream *stream);
void sha256_update(struct sha256_stream *stream, const void *bytes, size_t byte_count);
void sha256_final(struct sha256_stream *stream, uint8_t ret_digest[SHA256_BYTES]);

uint64_t xxh3_64(const void *bytes, size_t byte_count);
uint64_t xxh3_64_seeded(const void *bytes, size_t byte_count, uint64_t seed);

/* "hex" of count bytes, 2 * count + 1 characters with the terminator. */
void hex_encode(const uint8_t *bytes, size_t count, char *ret_text);

#endif
