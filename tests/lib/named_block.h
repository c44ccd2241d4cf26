/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that name themselves: key and bytes follow from one number, so that a wrong byte shows. */
#ifndef LIB_NAMED_BLOCK_H
#define LIB_NAMED_BLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <kvstrata/base.h>

#include "base/prng.h"

static inline struct kvs_key key_of(uint32_t number)
{
	struct kvs_key key = { .offset = number };

	memset(key.hash, (int)number, sizeof(key.hash));
	return key;
}

static inline uint64_t word_of(uint32_t number, uint32_t i)
{
	return mix64(((uint64_t)number << 32) | i);
}

static inline void fill(uint64_t *words, uint32_t number, uint32_t bytes)
{
	uint32_t i;

	for (i = 0; i < bytes / 8; i++)
		words[i] = word_of(number, i);
}

static inline bool is_filled(const uint64_t *words, uint32_t number, uint32_t bytes)
{
	uint32_t i;

	for (i = 0; i < bytes / 8; i++) {
		if (words[i] != word_of(number, i))
			return false;
	}
	return true;
}

#endif
