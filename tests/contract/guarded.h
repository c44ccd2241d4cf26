/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans that tell who touched them and when.
 *
 * A span lies in a place of its own between two guards.  While it is lent, payload and trailer are the
 * store's and the guards are nobody's; under AddressSanitizer they are poisoned.  When it comes back
 * retired it is nobody's either: it is overwritten with a pattern of its own, and a byte that differs
 * later proves the claim false.  One that does not come back retired stays lent for good.
 *
 * Threads  None of its own.
 */
#ifndef CONTRACT_GUARDED_H
#define CONTRACT_GUARDED_H

#include <stdbool.h>

#include <kvstrata/base.h>

/* Each compiler says in its own way that AddressSanitizer watches. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_POISONED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_POISONED 1
#endif
#endif

#define BLOCK 16384u
/* A get shows how long an object is, if it ends within the room: here all of them do. */
#define TRAILER 16384u
#define GUARD 4096u
#define PLACES 96u
#define GUARDED_BYTES ((size_t)PLACES * (GUARD + BLOCK + TRAILER + GUARD))

struct guarded {
	uint8_t *memory;
	bool     borrowed;   /* somebody else maps it */
	uint64_t generation; /* of the next pattern */
	struct place {
		struct kvs_span span; /* of the last time it was lent */
		uint64_t        pattern;
		bool            lent;
	} place[PLACES];
	char violation[128]; /* the first one; "" while there is none */
};

void guarded_open(struct guarded *guarded);
/* In GUARDED_BYTES of the caller's, which outlive it. */
void guarded_open_in(struct guarded *guarded, void *memory);
void guarded_close(struct guarded *guarded);

/* Lend a place for a payload of so many bytes, a multiple of 4 KiB; panics when all are lent. */
struct kvs_span guarded_lend(struct guarded *guarded, uint32_t bytes);

/* The call that had the span is over: its guards are looked at. */
void guarded_back(struct guarded *guarded, const struct kvs_span *span, bool retired);

/* Look at everything that is nobody's; true when no byte of it was ever touched. */
bool guarded_intact(struct guarded *guarded);

#endif
