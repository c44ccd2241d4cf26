/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders short enough to check by hand: slots are letters, a is slot 0, and content is named after
 * the letter of its slot.  Include it after cmocka.h.
 */
#ifndef LIB_LETTERS_H
#define LIB_LETTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "evict/evict.h"

static inline struct evict *open_parts(const char *name, uint32_t capacity, uint32_t part_count)
{
	struct evict    *evict = NULL;
	struct kvs_error err;

	assert_int_equal(evict_open_parts(name, capacity, part_count, &evict, &err), 0);
	return evict;
}

static inline struct evict *open_order(const char *name, uint32_t capacity)
{
	struct evict    *evict = NULL;
	struct kvs_error err;

	assert_int_equal(evict_open(name, capacity, &evict, &err), 0);
	return evict;
}

static inline void insert(struct evict *evict, const char *letters)
{
	for (; *letters; letters++)
		evict_insert(evict, (uint32_t)(*letters - 'a'), (uint64_t)*letters);
}

static inline void insert_into(struct evict *evict, uint32_t part, const char *letters)
{
	for (; *letters; letters++)
		evict_insert_part(evict, part, (uint32_t)(*letters - 'a'), (uint64_t)*letters);
}

static inline void touch(struct evict *evict, const char *letters)
{
	for (; *letters; letters++)
		evict_touch(evict, (uint32_t)(*letters - 'a'));
}

/* The next victims are these letters, in this order. */
static inline void leave(struct evict *evict, const char *letters)
{
	for (; *letters; letters++) {
		evict_audit(evict);
		assert_int_equal(evict_victim(evict, NULL, NULL), *letters - 'a');
	}
	evict_audit(evict);
}

static inline void leave_part(struct evict *evict, uint32_t part, const char *letters)
{
	for (; *letters; letters++) {
		evict_audit(evict);
		assert_int_equal(evict_victim_part(evict, part, NULL, NULL), *letters - 'a');
	}
	evict_audit(evict);
}

/* For evict_may: ctx is the letters that are pinned. */
static inline bool not_in(void *ctx, uint32_t slot)
{
	return strchr(ctx, 'a' + (int)slot) == NULL;
}

#endif
