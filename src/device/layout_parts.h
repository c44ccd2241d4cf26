/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of layout: the checks that layout_open() is made of.  Private to the room. */
#ifndef DEVICE_LAYOUT_PARTS_H
#define DEVICE_LAYOUT_PARTS_H

#include "device/layout.h"

/* What a sentence quotes of an id. */
#define LAYOUT_QUOTE_BYTES 48u

/* Put the group and the field before err's sentence; returns code. */
int layout_blame(int code, uint32_t group, const char *id, struct kvs_error *err);

/* Counts, and groups with different ids; of a target these are 0 to group_count - 1. */
int layout_check_spec(const struct layout_spec *spec, struct kvs_error *err);
int layout_check_target(const struct layout_spec *target, struct kvs_error *err);

/* The groups and buffers of a draft are the target's. */
int layout_check_draft(const struct layout_spec *target, const struct layout_spec *draft,
		       struct kvs_error *err);

/* Does the draft name the target's own bytes, all of them, in the same order? */
bool layout_is_alias(const struct layout_spec *target, const struct layout_spec *draft);

/* One field by itself: its stride, its payload, and its blocks 1 to last inside its buffer. */
int layout_check_field(const struct layout_field_spec *field, uint32_t last,
		       const struct layout_spec *spec, struct kvs_error *err);

/* No two fields of the group share a byte of any of its blocks 1 to last. */
int layout_check_overlap(const struct layout *layout, uint32_t group, struct kvs_error *err);

/* Ids once each, and each field one consumer, whose number it gets. */
int layout_bind_consumers(struct layout *layout, const struct layout_spec *target,
			  const struct layout_spec *draft, struct kvs_error *err);

/* The group of a spec with this id; NULL when there is none. */
const struct layout_group_spec *layout_group_of(const struct layout_spec *spec, uint32_t id);

#endif
