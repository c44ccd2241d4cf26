/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model that a replay stands for: its cache groups, in which blocks, and how large they are.
 *
 *   --groups full,window:4096:block=128,state:share=1/8
 *
 *   full            keeps every token
 *   window:TOKENS   a token attends to the last so many, itself included
 *   state           a recurrent state: one checkpoint a block
 *   :block=TOKENS   tokens of a block, a divisor of a page; a page when it is not said
 *   :share=A/B      of the bytes that a page of 512 tokens takes in all, --block-bytes of them:
 *                   that of this group's rows; of a state, that of one checkpoint.  Full and window
 *                   groups share equally when it is not said, and a checkpoint takes a sixteenth
 *
 * --block-bytes is the parent, too, on Device and Host: a group has as many of its blocks in one as
 * fit.
 *
 * Rows     The reference engine's: 8 bytes a token and layer, so a group has as many layers as its
 *          bytes allow.  A block is a multiple of 4 KiB, as storage likes it.
 */
#ifndef APP_REPLAY_SHAPE_H
#define APP_REPLAY_SHAPE_H

#include "match/groups.h"

#define SHAPE_NAME_BYTES 16u
/* What key_namespace() takes: all that makes blocks of two replays different. */
#define SHAPE_TEXT_BYTES 1024u

struct replay_shape {
	uint32_t          count;
	uint64_t          parent_bytes;
	struct group_spec specs[GROUPS_MAX];
	char              names[GROUPS_MAX][SHAPE_NAME_BYTES];
	uint64_t          block_bytes[GROUPS_MAX];
	uint32_t          layers[GROUPS_MAX];
	uint64_t          object_bytes; /* the largest block */
};

/**
 * Read the groups.  The specs point to names inside the shape: it stays where it is.
 *
 * Errors  KVS_E_INVALID: the sentence begins with "groups: " and the item.
 */
int replay_shape_parse(struct replay_shape *shape, const char *text, uint64_t parent_bytes,
		       struct kvs_error *err);

/* Parents that so many pages of one prompt take at most. */
uint64_t replay_shape_parents(const struct replay_shape *shape, uint64_t pages);
/*
 * Pages of the longest prompt that so many parents hold, when the windows and states are left out.
 */
uint64_t replay_shape_pages(const struct replay_shape *shape, uint64_t parents);

/* Into SHAPE_TEXT_BYTES: equal texts, equal bytes of equal prompts.  Returns the buffer. */
char *replay_shape_text(const struct replay_shape *shape, char *buffer);

#endif
