/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transfer layout: where every byte of a block lies on the Device, and where in its Host block.
 *
 * A *group* is what the scheduler calls one: its id is its position there, whatever order a memory
 * planner speaks in.  A block of a group is its *fields*, one for each tensor of a layer: a field
 * lies in one Device buffer, block after block a stride apart, and only payload_bytes of a stride
 * are the field's.  On the Host the fields of a block follow each other without padding.
 *
 *   Device address = buffer + offset + block * stride     block 1 is the first, block 0 the null block
 *   Host address   = block (hostmap.h) + host_offset
 *
 * offset is that of virtual block 0, which lies in the buffer too: layout_block_zero().
 *
 * A *consumer* is who reads fields and waits for them, a layer as a rule: each field has exactly one.
 * A *piece* is a run of fields that touch on the Device as they do on the Host, so that one copy
 * moves them: a block whose fields all touch is one piece.
 *
 * Draft   A speculative model's fields join the target's groups behind the target's own, its layers
 *         and consumers are numbered behind the target's.  A draft that uses the target's memory is
 *         the same bytes, and is moved once.
 * Limits  Checked and worked out at open; nothing allocates after.  Ids stay the caller's, held until close.
 */
#ifndef DEVICE_LAYOUT_H
#define DEVICE_LAYOUT_H

#include <stdbool.h>

#include "arena/hostmap.h"

#define LAYOUT_FIELDS_MAX 1024u    /* of all groups, draft included; every pair of a group's is compared */
#define LAYOUT_BUFFERS_MAX 1024u   /* one for each field is the most that makes sense */
#define LAYOUT_CONSUMERS_MAX 1024u /* the same */
#define LAYOUT_LAYER_MAX 65535u

/* --- what a caller says ----------------------------------------------------------------------- */

struct layout_field_spec {
	const char *id;            /* "layer.N.name" */
	uint32_t    buffer;        /* index */
	uint64_t    offset;        /* of virtual block 0 in the buffer */
	uint64_t    stride;        /* from block to block */
	uint64_t    payload_bytes; /* at most a stride */
};

struct layout_group_spec {
	uint32_t                        id;      /* its position in the scheduler's order */
	uint32_t                        packing; /* K: blocks of a parent */
	const struct layout_field_spec *fields;
	uint32_t                        field_count;
};

struct layout_buffer {
	uint64_t identity; /* an address or a handle: tells two buffers apart, and is nothing more here */
	uint64_t bytes;
};

struct layout_consumer_spec {
	const char *const *fields; /* ids */
	uint32_t           field_count;
};

struct layout_spec {
	uint32_t                           parent_count; /* on the Device, the null parent not counted */
	const struct layout_group_spec    *groups;       /* in any order */
	uint32_t                           group_count;
	const struct layout_buffer        *buffers;
	uint32_t                           buffer_count;
	const struct layout_consumer_spec *consumers;
	uint32_t                           consumer_count;
};

/* A field as a memory planner speaks of it: a plane of one parent behind the other, null parent first. */
struct layout_plane {
	uint64_t plane_offset; /* in the buffer */
	uint64_t parent_bytes; /* of the plane: packing strides */
	uint64_t stride;
	uint64_t field_offset; /* inside a stride */
};

/* --- what comes of it ------------------------------------------------------------------------- */

struct layout_field {
	const char *id;
	uint32_t    layer;
	uint32_t    consumer;
	uint32_t    buffer;
	uint64_t    offset;
	uint64_t    stride;
	uint64_t    payload_bytes;
	uint64_t    host_offset; /* in the Host block */
	bool        of_draft;
};

struct layout_piece {
	uint32_t buffer;
	uint64_t offset; /* of virtual block 0 */
	uint64_t stride;
	uint64_t bytes;
	uint64_t host_offset;
};

struct layout_group {
	uint32_t packing;
	uint64_t block_bytes; /* B_g: payload of all its fields */
	uint32_t first_field, field_count;
	uint32_t first_piece, piece_count;
};

struct layout {
	uint32_t              parent_count;
	uint32_t              group_count;
	uint32_t              field_count;
	uint32_t              piece_count;
	uint32_t              buffer_count;
	uint32_t              consumer_count;
	bool                  draft_aliased; /* the draft's memory is the target's */
	struct layout_group   group[HOSTMAP_GROUPS_MAX];
	struct layout_field  *fields;  /* group by group */
	struct layout_piece  *pieces;  /* group by group */
	struct layout_buffer *buffers;
};

/**
 * Check a target's layout, and a draft's, and work them out.
 *
 * draft   NULL: none.
 * Errors  KVS_E_INVALID: the sentence names the group, the field and the rule; -ENOMEM.
 */
int  layout_open(const struct layout_spec *target, const struct layout_spec *draft,
		 struct layout *ret_layout, struct kvs_error *err);
void layout_close(struct layout *layout); /* accepts a zeroed layout */

/* The Host's side of it for so many parents there. */
int layout_hostmap(const struct layout *layout, uint32_t host_parents,
		   struct hostmap *ret_hostmap, struct kvs_error *err);

/* "layer.12.k" belongs to layer 12.  KVS_E_INVALID: any other form. */
int layout_parse_id(const char *id, uint32_t *ret_layer, struct kvs_error *err);

/**
 * The offset of virtual block 0: a stride before the plane's first parent that is not null, where the
 * null parent ends.
 *
 * Errors  KVS_E_INVALID  a stride of 0 or larger than the parent, a field_offset past the stride, or an
 *                        offset past 64 bits.
 */
int layout_block_zero(const struct layout_plane *plane, uint64_t *ret_offset, struct kvs_error *err);

/* The highest number of a group's blocks on the Device. */
static inline uint32_t layout_last(const struct layout *layout, uint32_t group)
{
	return layout->parent_count * layout->group[group].packing;
}

/* O(fields): groups, fields and pieces cover the same bytes. */
void layout_audit(const struct layout *layout);

#endif
