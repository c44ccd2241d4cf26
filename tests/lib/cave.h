/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A way to Mooncake through the stub (mooncake_stub.h), and a listener that stands in for its master.
 *
 * Time-outs are long: a call that must hang is made with cave_call_briefly().
 */
#ifndef LIB_CAVE_H
#define LIB_CAVE_H

#include "mooncake/library.h"
#include "mooncake/library_parts.h"
#include "mooncake_stub.h"

#define CAVE_NAMES 4u
#define CAVE_BYTES 64u /* of each span */
#define CAVE_FOREVER_NS UINT64_MAX

struct cave {
	struct mooncake_settings settings; /* two lanes; required */
	const struct stub_hooks *stub;
	struct mooncake_way     *way;
	int                      listener; /* -1: nobody listens at settings.master */
	uint8_t                  bytes[CAVE_NAMES][CAVE_BYTES];
	struct kvs_span          spans[CAVE_NAMES];
	int64_t                  codes[CAVE_NAMES]; /* of the last call that was answered */
};

struct cave *cave_make(void);  /* the stub is reset */
void         cave_open(struct cave *cave);
struct cave *cave_make_open(void);
/* Close the way, if there is one, which must succeed; no client may be left. */
void         cave_close(struct cave *cave);

void cave_listen(struct cave *cave);
void cave_stop_listening(struct cave *cave);

struct library *cave_library(struct cave *cave);

/* Names "kvs:0", "kvs:1", ... or, of a purge, "^kvs:". */
int cave_call(struct cave *cave, uint32_t lane, enum mooncake_verb verb, uint32_t count,
	      bool *ret_retired);
/* Its caller leaves once the stub holds the call; what the caller had is gone then. */
int cave_call_briefly(struct cave *cave, uint32_t lane, enum mooncake_verb verb, uint32_t count,
		      bool *ret_retired);

void cave_wait_home(struct cave *cave, uint32_t lane);
void cave_wait_keeper(struct cave *cave);
/* What a test has left in doubt on purpose is forgotten, so that the way can be closed. */
void cave_forget_doubts(struct cave *cave);

struct stub_figures      cave_figures(struct cave *cave);
struct mooncake_way_info cave_describe(struct cave *cave);
/* The next call of a kind answers this code in its first row, or is that code. */
void cave_answer(struct cave *cave, enum stub_call call, int64_t code);

#endif
