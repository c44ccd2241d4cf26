/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See layout.h.  Groups are taken in the order of their ids, each with the target's fields and then
 * the draft's; whatever is asked of a specification is in layout_check.c.
 */
#include "device/layout.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "device/layout_parts.h"
#include "match/groups.h"

static_assert(HOSTMAP_GROUPS_MAX == GROUPS_MAX, "a group of the scheduler is one of the layout");

/* --- ids and planes --------------------------------------------------------------------------- */

static int bad_id(const char *rule, struct kvs_error *err)
{
	return err_set(err, KVS_E_INVALID, "id: must be layer.N.NAME%s", rule);
}

int layout_parse_id(const char *id, uint32_t *ret_layer, struct kvs_error *err)
{
	static const char prefix[] = "layer.";
	uint32_t          layer = 0;
	const char       *digit;

	if (!id)
		return err_set(err, KVS_E_INVALID, "id: NULL, give one");
	if (strncmp(id, prefix, sizeof(prefix) - 1) != 0)
		return bad_id("", err);
	digit = id + sizeof(prefix) - 1;
	if (*digit < '0' || *digit > '9')
		return bad_id(" with a number N", err);
	for (; *digit >= '0' && *digit <= '9'; digit++) {
		layer = layer * 10 + (uint32_t)(*digit - '0');
		if (layer > LAYOUT_LAYER_MAX) {
			return err_set(err, KVS_E_INVALID, "id: its layer must be at most %u",
				       LAYOUT_LAYER_MAX);
		}
	}
	if (digit[0] != '.' || digit[1] == '\0')
		return bad_id(" with a NAME behind the number", err);
	*ret_layer = layer;
	return 0;
}

int layout_block_zero(const struct layout_plane *plane, uint64_t *ret_offset, struct kvs_error *err)
{
	uint64_t offset;

	if (plane->stride == 0 || plane->stride > plane->parent_bytes) {
		return err_set(err, KVS_E_INVALID,
			       "stride: %" PRIu64 ", must be 1 to its parent's bytes (%" PRIu64 ")",
			       plane->stride, plane->parent_bytes);
	}
	if (plane->field_offset >= plane->stride) {
		return err_set(err, KVS_E_INVALID,
			       "field_offset: %" PRIu64 ", must be below its stride (%" PRIu64 ")",
			       plane->field_offset, plane->stride);
	}
	if (__builtin_add_overflow(plane->plane_offset, plane->parent_bytes, &offset)) {
		return err_set(err, KVS_E_INVALID,
			       "plane_offset: %" PRIu64 ", its first parent ends past 64 bits",
			       plane->plane_offset);
	}
	/* field_offset < stride: no more than the sum above. */
	*ret_offset = offset - plane->stride + plane->field_offset;
	return 0;
}

int layout_blame(int code, uint32_t group, const char *id, struct kvs_error *err)
{
	char quoted[LAYOUT_QUOTE_BYTES];

	snprintf(quoted, sizeof(quoted), "%s", id);
	err_prefix(err, "group %u, field \"%s\"", group, text_printable(quoted));
	return code;
}

/* --- fields and pieces ------------------------------------------------------------------------ */

static uint32_t field_total(const struct layout_spec *spec)
{
	uint32_t total = 0, g;

	for (g = 0; spec && g < spec->group_count; g++)
		total += spec->groups[g].field_count;
	return total;
}

static uint32_t layer_end(const struct layout *layout)
{
	uint32_t end = 0, f;

	for (f = 0; f < layout->field_count; f++) {
		if (!layout->fields[f].of_draft && layout->fields[f].layer >= end)
			end = layout->fields[f].layer + 1;
	}
	return end;
}

static int add_field(struct layout *layout, uint32_t group, const struct layout_field_spec *spec,
		     const struct layout_spec *model, bool of_draft, struct kvs_error *err)
{
	struct layout_group *const into = &layout->group[group];
	struct layout_field *const field = &layout->fields[layout->field_count];
	int                        rc;

	*field = (struct layout_field){ .id = spec->id,
					.consumer = UINT32_MAX,
					.buffer = spec->buffer,
					.offset = spec->offset,
					.stride = spec->stride,
					.payload_bytes = spec->payload_bytes,
					.host_offset = into->block_bytes,
					.of_draft = of_draft };
	rc = layout_parse_id(spec->id, &field->layer, err);
	if (rc == 0)
		rc = layout_check_field(spec, layout_last(layout, group), model, err);
	if (rc < 0)
		return rc;
	if (spec->payload_bytes > INT64_MAX - into->block_bytes) {
		return err_set(err, KVS_E_INVALID,
			       "payload_bytes: %" PRIu64 ", the fields of a block pass 63 bits",
			       spec->payload_bytes);
	}
	into->block_bytes += spec->payload_bytes;
	into->field_count++;
	layout->field_count++;
	return 0;
}

/* A field without an id is named by its place in the group. */
static int blame_field(int code, uint32_t group, uint32_t at, const char *id, struct kvs_error *err)
{
	if (id)
		return layout_blame(code, group, id, err);
	err_prefix(err, "group %u: field %u", group, at);
	return code;
}

static int add_fields(struct layout *layout, uint32_t group, const struct layout_spec *model,
		      bool of_draft, struct kvs_error *err)
{
	const struct layout_group_spec *const spec = layout_group_of(model, group);
	uint32_t                              f;
	int                                   rc;

	for (f = 0; spec && f < spec->field_count; f++) {
		rc = add_field(layout, group, &spec->fields[f], model, of_draft, err);
		if (rc < 0)
			return blame_field(rc, group, f, spec->fields[f].id, err);
	}
	return 0;
}

/* A field joins the piece before it where both touch on the Device in every block. */
static void add_piece(struct layout *layout, struct layout_group *group,
		      const struct layout_field *field)
{
	struct layout_piece *last;

	if (group->piece_count > 0) {
		last = &layout->pieces[layout->piece_count - 1];
		/* What goes past a stride may touch only where there is but one block. */
		if (last->buffer == field->buffer && last->stride == field->stride &&
		    last->offset + last->bytes == field->offset &&
		    last->bytes + field->payload_bytes <= last->stride) {
			last->bytes += field->payload_bytes;
			return;
		}
	}
	layout->pieces[layout->piece_count++] =
		(struct layout_piece){ .buffer = field->buffer,
				       .offset = field->offset,
				       .stride = field->stride,
				       .bytes = field->payload_bytes,
				       .host_offset = field->host_offset };
	group->piece_count++;
}

static int add_group(struct layout *layout, uint32_t id, const struct layout_spec *target,
		     const struct layout_spec *draft, struct kvs_error *err)
{
	struct layout_group *const group = &layout->group[id];
	uint32_t                   f;
	int                        rc;

	*group = (struct layout_group){ .packing = layout_group_of(target, id)->packing,
					.first_field = layout->field_count,
					.first_piece = layout->piece_count };
	rc = add_fields(layout, id, target, false, err);
	if (rc == 0 && draft)
		rc = add_fields(layout, id, draft, true, err);
	if (rc == 0)
		rc = layout_check_overlap(layout, id, err);
	for (f = 0; rc == 0 && f < group->field_count; f++)
		add_piece(layout, group, &layout->fields[group->first_field + f]);
	return rc;
}

/* --- open and close --------------------------------------------------------------------------- */

static int allocate(struct layout *layout, uint32_t field_count, const struct layout_spec *target,
		    struct kvs_error *err)
{
	layout->fields = calloc(field_count, sizeof(*layout->fields));
	layout->pieces = calloc(field_count, sizeof(*layout->pieces));
	layout->buffers = calloc(target->buffer_count, sizeof(*layout->buffers));
	if (!layout->fields || !layout->pieces || !layout->buffers)
		return err_set(err, -ENOMEM, "no memory for a layout of %u fields", field_count);
	memcpy(layout->buffers, target->buffers, target->buffer_count * sizeof(*layout->buffers));
	return 0;
}

static int build(struct layout *layout, const struct layout_spec *target,
		 const struct layout_spec *draft, struct kvs_error *err)
{
	const uint32_t fields = field_total(target) + field_total(draft);
	uint32_t       g, f, layers;
	int            rc;

	if (fields > LAYOUT_FIELDS_MAX) {
		return err_set(err, KVS_E_INVALID, "fields: %u in all groups, must be at most %u",
			       fields, LAYOUT_FIELDS_MAX);
	}
	rc = allocate(layout, fields, target, err);
	for (g = 0; rc == 0 && g < target->group_count; g++)
		rc = add_group(layout, g, target, draft, err);
	if (rc == 0)
		rc = layout_bind_consumers(layout, target, draft, err);
	layers = layer_end(layout);
	for (f = 0; f < layout->field_count; f++)
		layout->fields[f].layer += layout->fields[f].of_draft ? layers : 0;
	return rc;
}

/* The bytes are the target's and nothing of it is kept; what it says must be right all the same. */
static int check_alias(const struct layout_spec *draft, struct kvs_error *err)
{
	struct layout layout;
	const int     rc = layout_open(draft, NULL, &layout, err);

	if (rc < 0) {
		err_prefix(err, "draft");
		return rc;
	}
	layout_close(&layout);
	return 0;
}

int layout_open(const struct layout_spec *target, const struct layout_spec *draft,
		struct layout *ret_layout, struct kvs_error *err)
{
	struct layout layout = { 0 };
	int           rc = layout_check_target(target, err);

	if (rc == 0 && draft) {
		rc = layout_check_spec(draft, err);
		if (rc == 0)
			rc = layout_check_draft(target, draft, err);
		if (rc < 0)
			err_prefix(err, "draft");
	}
	if (rc < 0)
		return rc;
	layout.parent_count = target->parent_count;
	layout.group_count = target->group_count;
	layout.buffer_count = target->buffer_count;
	layout.draft_aliased = draft && layout_is_alias(target, draft);
	if (layout.draft_aliased)
		rc = check_alias(draft, err);
	if (rc == 0)
		rc = build(&layout, target, layout.draft_aliased ? NULL : draft, err);
	if (rc < 0) {
		layout_close(&layout);
		return rc;
	}
	*ret_layout = layout;
	layout_audit(ret_layout);
	return 0;
}

void layout_close(struct layout *layout)
{
	free(layout->fields);
	free(layout->pieces);
	free(layout->buffers);
	*layout = (struct layout){ 0 };
}

int layout_hostmap(const struct layout *layout, uint32_t host_parents,
		   struct hostmap *ret_hostmap, struct kvs_error *err)
{
	struct hostmap_group groups[HOSTMAP_GROUPS_MAX];
	uint32_t             g;

	for (g = 0; g < layout->group_count; g++) {
		groups[g] = (struct hostmap_group){ .packing = layout->group[g].packing,
						    .block_bytes = layout->group[g].block_bytes };
	}
	return hostmap_make(groups, layout->group_count, host_parents, ret_hostmap, err);
}

void layout_audit(const struct layout *layout)
{
	uint32_t g, i, fields = 0, pieces = 0;

	for (g = 0; g < layout->group_count; g++) {
		const struct layout_group *const group = &layout->group[g];
		uint64_t                         field_bytes = 0, piece_bytes = 0;

		KVS_ASSERT_CMP(group->first_field, ==, fields);
		KVS_ASSERT_CMP(group->first_piece, ==, pieces);
		for (i = 0; i < group->field_count; i++, fields++) {
			KVS_ASSERT_CMP(layout->fields[fields].host_offset, ==, field_bytes);
			KVS_ASSERT_CMP(layout->fields[fields].consumer, <, layout->consumer_count);
			field_bytes += layout->fields[fields].payload_bytes;
		}
		for (i = 0; i < group->piece_count; i++, pieces++) {
			KVS_ASSERT_CMP(layout->pieces[pieces].host_offset, ==, piece_bytes);
			KVS_ASSERT_CMP(layout->pieces[pieces].bytes, <=, layout->pieces[pieces].stride);
			piece_bytes += layout->pieces[pieces].bytes;
		}
		KVS_ASSERT_CMP(field_bytes, ==, group->block_bytes);
		KVS_ASSERT_CMP(piece_bytes, ==, group->block_bytes);
	}
	KVS_ASSERT_CMP(fields, ==, layout->field_count);
	KVS_ASSERT_CMP(pieces, ==, layout->piece_count);
}
