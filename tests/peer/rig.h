/* SPDX-License-Identifier: Apache-2.0 */
/* A resp store with blocks of its own: batches in one line, and what lies around each span watched. */
#ifndef PEER_RIG_H
#define PEER_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "named_block.h"
#include "key/label.h"
#include "store/store.h"

#define RIG_ROWS 64u
#define RIG_GUARD 128u /* behind each payload: a trailer's room */

struct rig {
	struct kvs_store *store;
	uint32_t          bytes; /* of each payload */
	uint32_t          count; /* of a batch */
	uint8_t          *memory;
	struct kvs_key    keys[RIG_ROWS];
	struct kvs_span   spans[RIG_ROWS];
	enum kvs_result   results[RIG_ROWS];
};

/* block_bytes is of the store; batches are of `count` payloads of `bytes`, keys numbered from `first`. */
void rig_open(struct rig *rig, const char *spec, uint32_t block_bytes);
void rig_close(struct rig *rig);
void rig_batch(struct rig *rig, uint32_t first, uint32_t count, uint32_t bytes);

/* The return code; spans are filled before a put and poisoned before a get; retired is checked. */
int rig_put(struct rig *rig);
int rig_get(struct rig *rig);

/* All results of the last call are this one; and after a get all payloads are the keys' own. */
void rig_expect(const struct rig *rig, enum kvs_result result);
void rig_expect_payloads(const struct rig *rig);

/* Put, look up, get and check one object under a number; the store is well. */
void rig_expect_well(struct rig *rig, uint32_t number);

/* Opening fails with this code, 0 for any, and a sentence that begins like this. */
void rig_refused(const char *spec, int code, const char *sentence);

#endif
