/* SPDX-License-Identifier: Apache-2.0 */
/* What a layout must be: each rule is a function, each refusal a sentence. */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "device/layout_parts.h"

/* --- a specification as a whole ---------------------------------------------------------------- */

static int check_count(const char *name, uint32_t count, uint32_t max, struct kvs_error *err)
{
	if (count >= 1 && count <= max)
		return 0;
	return err_set(err, KVS_E_INVALID, "%s: %u, must be 1 to %u", name, count, max);
}

static int check_array(const char *name, const void *array, uint32_t count, struct kvs_error *err)
{
	return array ? 0 : err_set(err, KVS_E_INVALID, "%s: NULL, %u are expected", name, count);
}

const struct layout_group_spec *layout_group_of(const struct layout_spec *spec, uint32_t id)
{
	uint32_t g;

	for (g = 0; g < spec->group_count; g++) {
		if (spec->groups[g].id == id)
			return &spec->groups[g];
	}
	return NULL;
}

static int check_group(const struct layout_spec *spec, uint32_t at, struct kvs_error *err)
{
	const struct layout_group_spec *const group = &spec->groups[at];

	if (group->id >= HOSTMAP_GROUPS_MAX) {
		return err_set(err, KVS_E_INVALID, "groups[%u]: id: %u, must be below %u", at,
			       group->id, HOSTMAP_GROUPS_MAX);
	}
	if (layout_group_of(spec, group->id) != group) {
		return err_set(err, KVS_E_INVALID, "groups[%u]: id: %u, is that of another group",
			       at, group->id);
	}
	if (group->packing == 0 || group->packing > HOSTMAP_BLOCK_MAX / spec->parent_count) {
		return err_set(err, KVS_E_INVALID,
			       "group %u: packing: %u, must be 1 to %u: block numbers of %u parents end at %d",
			       group->id, group->packing, HOSTMAP_BLOCK_MAX / spec->parent_count,
			       spec->parent_count, HOSTMAP_BLOCK_MAX);
	}
	if (group->field_count == 0 || group->field_count > LAYOUT_FIELDS_MAX) {
		return err_set(err, KVS_E_INVALID, "group %u: fields: %u, must be 1 to %u", group->id,
			       group->field_count, LAYOUT_FIELDS_MAX);
	}
	if (!group->fields) {
		return err_set(err, KVS_E_INVALID, "group %u: fields: NULL, %u are expected", group->id,
			       group->field_count);
	}
	return 0;
}

int layout_check_spec(const struct layout_spec *spec, struct kvs_error *err)
{
	uint32_t g;
	int rc = check_count("parent_count", spec->parent_count, HOSTMAP_BLOCK_MAX, err);

	if (rc == 0)
		rc = check_count("group_count", spec->group_count, HOSTMAP_GROUPS_MAX, err);
	if (rc == 0)
		rc = check_count("buffer_count", spec->buffer_count, LAYOUT_BUFFERS_MAX, err);
	if (rc == 0)
		rc = check_count("consumer_count", spec->consumer_count, LAYOUT_CONSUMERS_MAX, err);
	if (rc == 0)
		rc = check_array("groups", spec->groups, spec->group_count, err);
	if (rc == 0)
		rc = check_array("buffers", spec->buffers, spec->buffer_count, err);
	if (rc == 0)
		rc = check_array("consumers", spec->consumers, spec->consumer_count, err);
	for (g = 0; rc == 0 && g < spec->group_count; g++)
		rc = check_group(spec, g, err);
	return rc;
}

/* Only a draft may leave groups out: a target's are positions without gaps. */
int layout_check_target(const struct layout_spec *target, struct kvs_error *err)
{
	const int rc = layout_check_spec(target, err);
	uint32_t  g;

	if (rc < 0)
		return rc;
	for (g = 0; g < target->group_count; g++) {
		if (!layout_group_of(target, g)) {
			return err_set(err, KVS_E_INVALID,
				       "group %u: missing; ids are 0 to group_count - 1 (%u)", g,
				       target->group_count - 1);
		}
	}
	return 0;
}

/* --- a draft ---------------------------------------------------------------------------------- */

static int check_draft_group(const struct layout_spec *target,
			     const struct layout_group_spec *group, struct kvs_error *err)
{
	const struct layout_group_spec *const same = layout_group_of(target, group->id);

	if (!same) {
		return err_set(err, KVS_E_INVALID, "group %u: id: is none of the target's",
			       group->id);
	}
	if (same->packing != group->packing) {
		return err_set(err, KVS_E_INVALID, "group %u: packing: %u, must be the target's (%u)",
			       group->id, group->packing, same->packing);
	}
	return 0;
}

int layout_check_draft(const struct layout_spec *target, const struct layout_spec *draft,
		       struct kvs_error *err)
{
	uint32_t g;
	int      rc = 0;

	if (draft->parent_count != target->parent_count) {
		return err_set(err, KVS_E_INVALID, "parent_count: %u, must be the target's (%u)",
			       draft->parent_count, target->parent_count);
	}
	if (draft->buffer_count != 1 || target->buffer_count != 1) {
		return err_set(err, KVS_E_INVALID, "buffers: %u and the target's %u, must be one each",
			       draft->buffer_count, target->buffer_count);
	}
	if (draft->buffers[0].identity != target->buffers[0].identity ||
	    draft->buffers[0].bytes != target->buffers[0].bytes) {
		return err_set(err, KVS_E_INVALID,
			       "buffers[0]: identity or bytes are not the target's; both must use one buffer");
	}
	for (g = 0; rc == 0 && g < draft->group_count; g++)
		rc = check_draft_group(target, &draft->groups[g], err);
	return rc;
}

static bool same_bytes(const struct layout_field_spec *a, const struct layout_field_spec *b)
{
	return a->buffer == b->buffer && a->offset == b->offset && a->stride == b->stride &&
	       a->payload_bytes == b->payload_bytes;
}

bool layout_is_alias(const struct layout_spec *target, const struct layout_spec *draft)
{
	uint32_t g, f;

	if (target->group_count != draft->group_count)
		return false;
	for (g = 0; g < target->group_count; g++) {
		const struct layout_group_spec *const own = layout_group_of(target, g);
		const struct layout_group_spec *const other = layout_group_of(draft, g);

		/* Draft groups were found in the target, once each, and there are as many. */
		if (own->field_count != other->field_count)
			return false;
		for (f = 0; f < own->field_count; f++) {
			if (!same_bytes(&own->fields[f], &other->fields[f]))
				return false;
		}
	}
	return true;
}

/* --- fields ----------------------------------------------------------------------------------- */

int layout_check_field(const struct layout_field_spec *field, uint32_t last,
		       const struct layout_spec *spec, struct kvs_error *err)
{
	uint64_t end;

	if (field->buffer >= spec->buffer_count) {
		return err_set(err, KVS_E_INVALID, "buffer: %u, must be below %u", field->buffer,
			       spec->buffer_count);
	}
	if (field->stride == 0)
		return err_set(err, KVS_E_INVALID, "stride: 0, must be at least 1");
	if (field->payload_bytes == 0 || field->payload_bytes > field->stride) {
		return err_set(err, KVS_E_INVALID,
			       "payload_bytes: %" PRIu64 ", must be 1 to its stride (%" PRIu64 ")",
			       field->payload_bytes, field->stride);
	}
	if (__builtin_mul_overflow(field->stride, (uint64_t)last, &end) ||
	    __builtin_add_overflow(end, field->offset, &end) ||
	    __builtin_add_overflow(end, field->payload_bytes, &end)) {
		return err_set(err, KVS_E_INVALID,
			       "offset: %" PRIu64 ", block %u of stride %" PRIu64 " ends past 64 bits",
			       field->offset, last, field->stride);
	}
	if (end > spec->buffers[field->buffer].bytes) {
		return err_set(err, KVS_E_INVALID,
			       "offset: %" PRIu64 ", block %u ends at %" PRIu64
			       ", past buffer %u of %" PRIu64 " bytes",
			       field->offset, last, end, field->buffer,
			       spec->buffers[field->buffer].bytes);
	}
	return 0;
}

/*
 * a lies first.  With one stride, block i of a touches block j of b exactly when i - j is one of the
 * two quotients next to their distance, and block numbers can differ by that much.  Unequal strides
 * belong to different planes, which lie apart as a whole.
 */
static bool share_bytes(const struct layout_field *a, const struct layout_field *b, uint64_t last)
{
	const uint64_t quotient = (b->offset - a->offset) / a->stride;
	const uint64_t rest = (b->offset - a->offset) % a->stride;

	if (a->stride != b->stride) {
		return a->offset + a->stride < b->offset + b->stride * last + b->payload_bytes &&
		       b->offset + b->stride < a->offset + a->stride * last + a->payload_bytes;
	}
	return (quotient < last && rest < a->payload_bytes) ||
	       (quotient + 1 < last && a->stride - rest < b->payload_bytes);
}

static bool overlap(const struct layout_field *a, const struct layout_field *b, uint64_t last)
{
	if (a->buffer != b->buffer)
		return false;
	return a->offset <= b->offset ? share_bytes(a, b, last) : share_bytes(b, a, last);
}

static int blame_overlap(uint32_t group, const struct layout_field *field,
			 const struct layout_field *earlier, struct kvs_error *err)
{
	const bool joined = field->of_draft && !earlier->of_draft;
	char       quoted[LAYOUT_QUOTE_BYTES];

	snprintf(quoted, sizeof(quoted), "%s", earlier->id);
	err_set(err, KVS_E_INVALID,
		"offset: %" PRIu64 ", its blocks overlap those of field \"%s\"%s", field->offset,
		text_printable(quoted), joined ? " of the target" : "");
	return layout_blame(KVS_E_INVALID, group, field->id, err);
}

int layout_check_overlap(const struct layout *layout, uint32_t group, struct kvs_error *err)
{
	const struct layout_group *const of = &layout->group[group];
	const struct layout_field *const fields = layout->fields + of->first_field;
	const uint32_t                   last = layout_last(layout, group);
	uint32_t                         i, j;

	for (i = 1; i < of->field_count; i++) {
		for (j = 0; j < i; j++) {
			if (overlap(&fields[j], &fields[i], last))
				return blame_overlap(group, &fields[i], &fields[j], err);
		}
	}
	return 0;
}
