/* SPDX-License-Identifier: Apache-2.0 */
/* The transfer layout: what is worked out, and what is refused and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "device/layout.h"

#define BUFFER_BYTES 65536u

/* One group of two fields for two layers: each test changes what it is about. */
struct draft {
	struct layout_field_spec    fields[2][4]; /* of groups 0 and 1 */
	struct layout_group_spec    groups[2];
	struct layout_buffer        buffers[2];
	const char                 *ids[2][4];
	struct layout_consumer_spec consumers[2];
	struct layout_spec          spec;
};

/*
 * Group 0, K = 2: 40 and 40 bytes of 64; group 1, K = 1: 100 and 20 of 128.  Three parents, 128 bytes a
 * plane.
 */
static struct draft *sample(void)
{
	static struct draft draft;

	draft = (struct draft){
		.fields = { { { "layer.0.k", 0, 0, 64, 40 }, { "layer.1.k", 0, 1024, 64, 40 } },
			    { { "layer.0.s", 0, 0, 128, 100 }, { "layer.1.s", 0, 1024, 128, 20 } } },
		.buffers = { { 7, BUFFER_BYTES }, { 8, BUFFER_BYTES } },
		.ids = { { "layer.0.k", "layer.0.s" }, { "layer.1.k", "layer.1.s" } },
	};
	draft.groups[0] = (struct layout_group_spec){ 0, 2, draft.fields[0], 2 };
	draft.groups[1] = (struct layout_group_spec){ 1, 1, draft.fields[1], 2 };
	draft.consumers[0] = (struct layout_consumer_spec){ draft.ids[0], 2 };
	draft.consumers[1] = (struct layout_consumer_spec){ draft.ids[1], 2 };
	draft.spec = (struct layout_spec){ 3, draft.groups, 2, draft.buffers, 1, draft.consumers, 2 };
	return &draft;
}

static void refuses(const struct layout_spec *target, const struct layout_spec *draft,
		    const char *sentence)
{
	struct layout    layout = { .parent_count = 77 };
	struct kvs_error err;

	assert_int_equal(layout_open(target, draft, &layout, &err), KVS_E_INVALID);
	assert_string_equal(err.message, sentence);
	assert_int_equal(layout.parent_count, 77);
}

/* --- the Host --------------------------------------------------------------------------------- */

/* Full attention K = 16 with fields of 40 and 40, a state K = 1 with 1000 and 200. */
static void host_fields_are_packed_without_padding(void **state)
{
	struct draft *const draft = sample();
	struct layout       layout;
	struct hostmap      hostmap;

	(void)state;
	draft->groups[0].packing = 16;
	draft->fields[1][0] = (struct layout_field_spec){ "layer.0.s", 0, 0, 1024, 1000 };
	draft->fields[1][1] = (struct layout_field_spec){ "layer.1.s", 0, 8192, 1024, 200 };
	draft->fields[0][1].offset = 8192;
	assert_int_equal(layout_open(&draft->spec, NULL, &layout, NULL), 0);
	assert_int_equal(layout.group[0].block_bytes, 80);
	assert_int_equal(layout.group[1].block_bytes, 1200);
	assert_int_equal(layout.fields[0].host_offset, 0);
	assert_int_equal(layout.fields[1].host_offset, 40);
	assert_int_equal(layout.fields[2].host_offset, 0);
	assert_int_equal(layout.fields[3].host_offset, 1000);
	assert_int_equal(layout_hostmap(&layout, 5, &hostmap, NULL), 0);
	assert_int_equal(hostmap.parent_bytes, 1280);
	assert_int_equal(hostmap.parent_count, 5);
	layout_close(&layout);
}

/* --- fields ----------------------------------------------------------------------------------- */

static void a_fields_id_names_its_layer(void **state)
{
	uint32_t layer;

	(void)state;
	assert_int_equal(layout_parse_id("layer.12.k", &layer, NULL), 0);
	assert_int_equal(layer, 12);
	assert_int_equal(layout_parse_id("layer.65535.conv.state", &layer, NULL), 0);
	assert_int_equal(layer, 65535);
}

static void an_id_without_a_layer_is_refused(void **state)
{
	static const struct {
		const char *id, *rule;
	} cases[] = {
		{ "attention.k", "id: must be layer.N.NAME" },
		{ "", "id: must be layer.N.NAME" },
		{ "layer.bad.k", "id: must be layer.N.NAME with a number N" },
		{ "layer.-1.k", "id: must be layer.N.NAME with a number N" },
		{ "layer..k", "id: must be layer.N.NAME with a number N" },
		{ "layer.0", "id: must be layer.N.NAME with a NAME behind the number" },
		{ "layer.0.", "id: must be layer.N.NAME with a NAME behind the number" },
		{ "layer.0x1.k", "id: must be layer.N.NAME with a NAME behind the number" },
		{ "layer.65536.k", "id: its layer must be at most 65535" },
		{ "layer.99999999999999999999.k", "id: its layer must be at most 65535" },
	};
	struct draft    *draft;
	struct kvs_error err;
	char             sentence[160];
	uint32_t         layer = 77;
	size_t           i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		assert_int_equal(layout_parse_id(cases[i].id, &layer, &err), KVS_E_INVALID);
		assert_string_equal(err.message, cases[i].rule);
		assert_int_equal(layer, 77);
		draft = sample();
		draft->fields[1][1].id = cases[i].id;
		snprintf(sentence, sizeof(sentence), "group 1, field \"%s\": %s", cases[i].id,
			 cases[i].rule);
		refuses(&draft->spec, NULL, sentence);
	}
	draft = sample();
	draft->fields[0][0].id = "la\033[2Jyer";
	refuses(&draft->spec, NULL, "group 0, field \"la?[2Jyer\": id: must be layer.N.NAME");
}

static void a_plane_gives_the_offset_of_virtual_block_zero(void **state)
{
	struct layout_plane plane = { .plane_offset = 8192, .parent_bytes = 4096, .stride = 256,
				      .field_offset = 64 };
	struct kvs_error    err;
	uint64_t            offset;

	(void)state;
	assert_int_equal(layout_block_zero(&plane, &offset, NULL), 0);
	assert_int_equal(offset, 8192 + 4096 - 256 + 64);
	plane.field_offset = 256;
	assert_int_equal(layout_block_zero(&plane, &offset, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "field_offset: 256, must be below its stride (256)");
	plane.stride = 4097;
	assert_int_equal(layout_block_zero(&plane, &offset, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "stride: 4097, must be 1 to its parent's bytes (4096)");
	plane = (struct layout_plane){ UINT64_MAX, 4096, 256, 0 };
	assert_int_equal(layout_block_zero(&plane, &offset, &err), KVS_E_INVALID);
	assert_string_equal(err.message,
			    "plane_offset: 18446744073709551615, its first parent ends past 64 bits");
}

static void groups_stand_in_the_schedulers_order(void **state)
{
	struct draft *const            draft = sample();
	const struct layout_group_spec first = draft->groups[0];
	struct layout                  layout;

	(void)state;
	draft->groups[0] = draft->groups[1];
	draft->groups[1] = first;
	assert_int_equal(layout_open(&draft->spec, NULL, &layout, NULL), 0);
	assert_int_equal(layout.group[0].packing, 2);
	assert_int_equal(layout.group[0].block_bytes, 80);
	assert_int_equal(layout.group[1].packing, 1);
	assert_string_equal(layout.fields[0].id, "layer.0.k");
	assert_string_equal(layout.fields[2].id, "layer.0.s");
	assert_int_equal(layout_last(&layout, 0), 6);
	layout_close(&layout);
	layout_close(&layout);
}

static void each_field_has_the_consumer_that_names_it(void **state)
{
	struct draft *const draft = sample();
	struct layout       layout;

	(void)state;
	assert_int_equal(layout_open(&draft->spec, NULL, &layout, NULL), 0);
	assert_int_equal(layout.consumer_count, 2);
	assert_int_equal(layout.fields[0].consumer, 0);
	assert_int_equal(layout.fields[1].consumer, 1);
	assert_int_equal(layout.fields[2].consumer, 0);
	assert_int_equal(layout.fields[3].consumer, 1);
	layout_close(&layout);
}

/* K and V of a layer side by side in each block: one copy moves both. */
static void fields_that_touch_in_every_block_are_one_piece(void **state)
{
	struct draft *const draft = sample();
	struct layout       layout;

	(void)state;
	assert_int_equal(layout_open(&draft->spec, NULL, &layout, NULL), 0);
	assert_int_equal(layout.group[0].piece_count, 2);
	layout_close(&layout);
	draft->fields[0][1].offset = 40;
	draft->fields[0][1].payload_bytes = 24;
	assert_int_equal(layout_open(&draft->spec, NULL, &layout, NULL), 0);
	assert_int_equal(layout.group[0].piece_count, 1);
	assert_int_equal(layout.pieces[0].bytes, 64);
	assert_int_equal(layout.group[1].first_piece, 1);
	layout_close(&layout);
	/* A byte between them, or another stride, and they are two. */
	draft->fields[0][1].offset = 41;
	draft->fields[0][1].payload_bytes = 23;
	assert_int_equal(layout_open(&draft->spec, NULL, &layout, NULL), 0);
	assert_int_equal(layout.group[0].piece_count, 2);
	layout_close(&layout);
	draft->fields[0][1] = (struct layout_field_spec){ "layer.1.k", 0, 40, 400, 8 };
	assert_int_equal(layout_open(&draft->spec, NULL, &layout, NULL), 0);
	assert_int_equal(layout.group[0].piece_count, 2);
	layout_close(&layout);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void layout_rejects_what_counts_nothing(void **state)
{
	struct draft *draft = sample();

	(void)state;
	draft->spec.parent_count = 0;
	refuses(&draft->spec, NULL, "parent_count: 0, must be 1 to 2147483647");
	draft = sample();
	draft->spec.group_count = 0;
	refuses(&draft->spec, NULL, "group_count: 0, must be 1 to 16");
	draft = sample();
	draft->spec.buffer_count = 0;
	refuses(&draft->spec, NULL, "buffer_count: 0, must be 1 to 1024");
	draft = sample();
	draft->spec.consumer_count = 0;
	refuses(&draft->spec, NULL, "consumer_count: 0, must be 1 to 1024");
	draft = sample();
	draft->groups[1].field_count = 0;
	refuses(&draft->spec, NULL, "group 1: fields: 0, must be 1 to 1024");
	draft = sample();
	draft->groups[1].packing = 0;
	refuses(&draft->spec, NULL,
		"group 1: packing: 0, must be 1 to 715827882: block numbers of 3 parents end at 2147483647");
	draft = sample();
	draft->groups[1].packing = 715827883;
	refuses(&draft->spec, NULL,
		"group 1: packing: 715827883, must be 1 to 715827882: block numbers of 3 parents end at 2147483647");
}

/* Each count that a layout's tables are made for. */
static void layout_rejects_more_than_its_tables_may_hold(void **state)
{
	struct draft *draft = sample();

	(void)state;
	draft->spec.parent_count = 1u << 31;
	refuses(&draft->spec, NULL, "parent_count: 2147483648, must be 1 to 2147483647");
	draft = sample();
	draft->spec.group_count = 17;
	refuses(&draft->spec, NULL, "group_count: 17, must be 1 to 16");
	draft = sample();
	draft->spec.buffer_count = 1025;
	refuses(&draft->spec, NULL, "buffer_count: 1025, must be 1 to 1024");
	draft = sample();
	draft->spec.consumer_count = UINT32_MAX;
	refuses(&draft->spec, NULL, "consumer_count: 4294967295, must be 1 to 1024");
	draft = sample();
	draft->groups[1].field_count = 1025;
	refuses(&draft->spec, NULL, "group 1: fields: 1025, must be 1 to 1024");
	/* Each within its bound, and together past theirs. */
	draft = sample();
	draft->groups[0].field_count = 1024;
	refuses(&draft->spec, NULL, "fields: 1026 in all groups, must be at most 1024");
}

static void layout_rejects_counts_of_nothing(void **state)
{
	struct draft *draft = sample();

	(void)state;
	draft->spec.groups = NULL;
	refuses(&draft->spec, NULL, "groups: NULL, 2 are expected");
	draft = sample();
	draft->spec.buffers = NULL;
	refuses(&draft->spec, NULL, "buffers: NULL, 1 are expected");
	draft = sample();
	draft->spec.consumers = NULL;
	refuses(&draft->spec, NULL, "consumers: NULL, 2 are expected");
	draft = sample();
	draft->groups[1].fields = NULL;
	refuses(&draft->spec, NULL, "group 1: fields: NULL, 2 are expected");
}

static void layout_rejects_duplicate_group_ids(void **state)
{
	struct draft *draft = sample();

	(void)state;
	draft->groups[1].id = 0;
	refuses(&draft->spec, NULL, "groups[1]: id: 0, is that of another group");
	draft = sample();
	draft->groups[1].id = 2;
	refuses(&draft->spec, NULL, "group 1: missing; ids are 0 to group_count - 1 (1)");
	draft = sample();
	draft->groups[1].id = 16;
	refuses(&draft->spec, NULL, "groups[1]: id: 16, must be below 16");
}

static void layout_rejects_duplicate_field_ids_across_groups(void **state)
{
	struct draft *draft = sample();

	(void)state;
	draft->fields[1][0].id = "layer.0.k";
	refuses(&draft->spec, NULL, "group 1, field \"layer.0.k\": id: is also that of a field of group 0");
	draft = sample();
	draft->fields[0][1].id = "layer.0.k";
	refuses(&draft->spec, NULL, "group 0, field \"layer.0.k\": id: is also that of a field of group 0");
}

static void layout_rejects_payload_larger_than_device_stride(void **state)
{
	struct draft *const draft = sample();

	(void)state;
	draft->fields[0][1].payload_bytes = 32;
	draft->fields[0][1].stride = 31;
	refuses(&draft->spec, NULL,
		"group 0, field \"layer.1.k\": payload_bytes: 32, must be 1 to its stride (31)");
	draft->fields[0][1].payload_bytes = 0;
	refuses(&draft->spec, NULL,
		"group 0, field \"layer.1.k\": payload_bytes: 0, must be 1 to its stride (31)");
	draft->fields[0][1].payload_bytes = 32;
	draft->fields[0][1].stride = 0;
	refuses(&draft->spec, NULL, "group 0, field \"layer.1.k\": stride: 0, must be at least 1");
}

static void layout_rejects_fields_outside_their_buffer(void **state)
{
	struct draft *draft = sample();

	(void)state;
	draft->fields[0][1].buffer = 1;
	refuses(&draft->spec, NULL, "group 0, field \"layer.1.k\": buffer: 1, must be below 1");
	/* Block 6 ends at 6 * 64 + 40 behind the offset. */
	draft = sample();
	draft->fields[0][1].offset = BUFFER_BYTES - 424 + 1;
	refuses(&draft->spec, NULL,
		"group 0, field \"layer.1.k\": offset: 65113, block 6 ends at 65537, past buffer 0 of 65536 bytes");
	draft = sample();
	draft->fields[0][1].offset = UINT64_MAX - 400;
	refuses(&draft->spec, NULL,
		"group 0, field \"layer.1.k\": offset: 18446744073709551215, block 6 of stride 64 ends past 64 bits");
	draft = sample();
	draft->fields[0][1].stride = UINT64_MAX / 5;
	refuses(&draft->spec, NULL,
		"group 0, field \"layer.1.k\": offset: 1024, block 6 of stride 3689348814741910323 ends past 64 bits");
}

static void layout_rejects_blocks_past_63_bits(void **state)
{
	static const char *const             ids[] = { "layer.0.a", "layer.0.b", "layer.0.c" };
	struct layout_field_spec             fields[3];
	struct layout_buffer                 buffers[3];
	const struct layout_group_spec       group = { 0, 1, fields, 3 };
	const struct layout_consumer_spec    consumer = { ids, 3 };
	const struct layout_spec spec = { 1, &group, 1, buffers, 3, &consumer, 1 };
	const uint64_t                       bytes[] = { INT64_MAX, INT64_MAX, 66 };
	uint32_t                             i;

	(void)state;
	for (i = 0; i < 3; i++) {
		fields[i] = (struct layout_field_spec){ ids[i], i, 0, bytes[i], bytes[i] };
		buffers[i] = (struct layout_buffer){ i, UINT64_MAX };
	}
	refuses(&spec, NULL,
		"group 0, field \"layer.0.b\": payload_bytes: 9223372036854775807, the fields of a block pass 63 bits");
}

/* With one block in all, a field may go on past the stride of another. */
static void fields_past_a_stride_stay_two_pieces(void **state)
{
	static const char *const          ids[] = { "layer.0.k", "layer.0.v" };
	const struct layout_field_spec    fields[] = { { ids[0], 0, 0, 16, 16 }, { ids[1], 0, 16, 16, 16 } };
	const struct layout_group_spec    group = { 0, 1, fields, 2 };
	const struct layout_buffer        buffer = { 1, 4096 };
	const struct layout_consumer_spec consumer = { ids, 2 };
	const struct layout_spec spec = { 1, &group, 1, &buffer, 1, &consumer, 1 };
	struct layout                     layout;

	(void)state;
	assert_int_equal(layout_open(&spec, NULL, &layout, NULL), 0);
	assert_int_equal(layout.piece_count, 2);
	layout_audit(&layout);
	layout_close(&layout);
}

static void a_field_may_end_with_its_buffer(void **state)
{
	struct draft *const draft = sample();
	struct layout       layout;

	(void)state;
	draft->fields[0][1].offset = BUFFER_BYTES - 424;
	assert_int_equal(layout_open(&draft->spec, NULL, &layout, NULL), 0);
	layout_close(&layout);
}

/* Every byte of blocks 1 to 6 is marked; true when one is there already. */
static bool mark(uint8_t *bytes, const struct layout_field_spec *field)
{
	bool     shared = false;
	uint64_t block, at;

	for (block = 1; block <= 6; block++) {
		for (at = 0; at < field->payload_bytes; at++) {
			uint8_t *const byte = &bytes[field->offset + block * field->stride + at];

			shared |= *byte;
			*byte = 1;
		}
	}
	return shared;
}

static bool is_refused(const struct layout_spec *spec)
{
	struct layout layout;

	if (layout_open(spec, NULL, &layout, NULL) < 0)
		return true;
	layout_close(&layout);
	return false;
}

/* All places of a second field beside one of 40 bytes every 64, against a map of bytes. */
static void layout_rejects_fields_of_a_group_that_share_bytes(void **state)
{
	static const uint64_t payloads[] = { 1, 8, 24, 25, 40, 64 };
	struct draft *const   draft = sample();
	uint8_t               bytes[4096];
	uint32_t              refused = 0;
	size_t                i;

	(void)state;
	draft->fields[0][0].offset = 448;
	for (i = 0; i < 6 * 960; i++) {
		draft->fields[0][1].offset = i / 6;
		draft->fields[0][1].payload_bytes = payloads[i % 6];
		memset(bytes, 0, sizeof(bytes));
		assert_false(mark(bytes, &draft->fields[0][0]));
		assert_int_equal(is_refused(&draft->spec), mark(bytes, &draft->fields[0][1]));
		refused += is_refused(&draft->spec);
	}
	assert_in_range(refused, 1000, 5000);
	draft->fields[0][1].offset = 449;
	refuses(&draft->spec, NULL,
		"group 0, field \"layer.1.k\": offset: 449, its blocks overlap those of field \"layer.0.k\"");
}

/* Planes of one group may have parents of different sizes, and then they lie apart. */
static void fields_of_unequal_strides_lie_apart_as_a_whole(void **state)
{
	struct draft *const draft = sample();

	(void)state;
	draft->fields[0][1].stride = 32;
	draft->fields[0][1].payload_bytes = 8;
	/* Blocks of the first field are bytes 64 to 424, those of the second 32 to 200 behind its offset. */
	draft->fields[0][1].offset = 424 - 32;
	assert_false(is_refused(&draft->spec));
	draft->fields[0][1].offset--;
	assert_true(is_refused(&draft->spec));
	draft->fields[0][0].offset = 1000;
	draft->fields[0][1].offset = 1064 - 200;
	assert_false(is_refused(&draft->spec));
	draft->fields[0][1].offset++;
	assert_true(is_refused(&draft->spec));
	/* Virtual block 0 says little about where block 1 is: here 1000, behind the other's end at 210. */
	draft->fields[0][0] = (struct layout_field_spec){ "layer.0.k", 0, 0, 1000, 40 };
	draft->fields[0][1].offset = 10;
	assert_false(is_refused(&draft->spec));
}

static void layout_rejects_unknown_consumer_field(void **state)
{
	struct draft *draft = sample();

	(void)state;
	draft->ids[1][1] = "layer.1.v";
	refuses(&draft->spec, NULL, "consumer 1: field: \"layer.1.v\", is in no group");
	draft = sample();
	draft->ids[1][1] = "layer.0.k";
	refuses(&draft->spec, NULL,
		"group 0, field \"layer.0.k\": consumer: 1, consumer 0 has the field already");
	draft = sample();
	draft->consumers[1].field_count = 1;
	refuses(&draft->spec, NULL,
		"group 1, field \"layer.1.s\": consumer: none names the field; exactly one must");
}

static void layout_rejects_a_field_without_an_id(void **state)
{
	struct draft    *draft = sample();
	struct kvs_error err;
	uint32_t         layer = 77;

	(void)state;
	draft->fields[1][1].id = NULL;
	refuses(&draft->spec, NULL, "group 1: field 1: id: NULL, give one");
	assert_int_equal(layout_parse_id(NULL, &layer, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "id: NULL, give one");
	assert_int_equal(layer, 77);
}

static void layout_rejects_a_group_without_fields(void **state)
{
	struct draft *const draft = sample();

	(void)state;
	draft->groups[1].fields = NULL;
	refuses(&draft->spec, NULL, "group 1: fields: NULL, 2 are expected");
}

static void layout_rejects_a_consumer_without_fields(void **state)
{
	struct draft *draft = sample();

	(void)state;
	draft->consumers[1].fields = NULL;
	refuses(&draft->spec, NULL, "consumer 1: field: NULL, give an id");
	draft = sample();
	draft->ids[1][1] = NULL;
	refuses(&draft->spec, NULL, "consumer 1: field: NULL, give an id");
}

static void layout_rejects_more_fields_than_it_can_compare(void **state)
{
	struct draft *const draft = sample();

	(void)state;
	draft->groups[0].field_count = 1024;
	refuses(&draft->spec, NULL, "fields: 1026 in all groups, must be at most 1024");
	draft->groups[0].field_count = UINT32_MAX;
	refuses(&draft->spec, NULL, "group 0: fields: 4294967295, must be 1 to 1024");
}

/* --- drafts ----------------------------------------------------------------------------------- */

/* A draft of one layer that uses group 0, between the target's bytes. */
static struct draft *sample_draft(void)
{
	static struct draft draft;

	draft = (struct draft){ .fields = { { { "layer.0.k", 0, 2048, 64, 16 } } },
				.buffers = { { 7, BUFFER_BYTES } },
				.ids = { { "layer.0.k" } } };
	draft.groups[0] = (struct layout_group_spec){ 0, 2, draft.fields[0], 1 };
	draft.consumers[0] = (struct layout_consumer_spec){ draft.ids[0], 1 };
	draft.spec = (struct layout_spec){ 3, draft.groups, 1, draft.buffers, 1, draft.consumers, 1 };
	return &draft;
}

static void a_drafts_fields_join_the_targets_groups_behind_its_own(void **state)
{
	struct draft *const target = sample(), *const draft = sample_draft();
	struct layout       layout;

	(void)state;
	assert_int_equal(layout_open(&target->spec, &draft->spec, &layout, NULL), 0);
	assert_int_equal(layout.group[0].field_count, 3);
	assert_int_equal(layout.group[0].block_bytes, 96);
	assert_int_equal(layout.group[1].first_field, 3);
	assert_true(layout.fields[2].of_draft);
	assert_int_equal(layout.fields[2].host_offset, 80);
	assert_false(layout.draft_aliased);
	/* Layers 0 and 1 and consumers 0 and 1 are the target's; equal ids are no twins. */
	assert_int_equal(layout.fields[2].layer, 2);
	assert_int_equal(layout.fields[2].consumer, 2);
	assert_int_equal(layout.consumer_count, 3);
	layout_close(&layout);
}

static void target_and_draft_layouts_must_share_one_buffer(void **state)
{
	struct draft *target = sample(), *draft = sample_draft();

	(void)state;
	draft->buffers[0].identity = 8;
	refuses(&target->spec, &draft->spec,
		"draft: buffers[0]: identity or bytes are not the target's; both must use one buffer");
	draft = sample_draft();
	draft->buffers[0].bytes--;
	refuses(&target->spec, &draft->spec,
		"draft: buffers[0]: identity or bytes are not the target's; both must use one buffer");
	draft = sample_draft();
	target->spec.buffer_count = 2;
	refuses(&target->spec, &draft->spec,
		"draft: buffers: 1 and the target's 2, must be one each");
}

static void an_aliased_target_and_draft_layout_is_transferred_once(void **state)
{
	struct draft *const target = sample();
	struct layout       layout;

	(void)state;
	assert_int_equal(layout_open(&target->spec, &target->spec, &layout, NULL), 0);
	assert_true(layout.draft_aliased);
	assert_int_equal(layout.field_count, 4);
	assert_int_equal(layout.group[0].block_bytes, 80);
	layout_close(&layout);
}

/* The target, but for what its names say. */
static void an_aliased_draft_has_names_like_any_other(void **state)
{
	struct draft *const        target = sample();
	struct draft               draft = *target;
	struct layout_group_spec   groups[] = { draft.groups[0], draft.groups[1] };
	struct layout_consumer_spec consumers[] = { { draft.ids[0], 2 }, { draft.ids[1], 2 } };
	struct layout_spec         spec = target->spec;

	(void)state;
	groups[0].fields = draft.fields[0];
	groups[1].fields = draft.fields[1];
	spec.groups = groups;
	spec.consumers = consumers;
	draft.fields[0][0].id = NULL;
	refuses(&target->spec, &spec, "draft: group 0: field 0: id: NULL, give one");
	draft.fields[0][0].id = "garbage";
	refuses(&target->spec, &spec, "draft: group 0, field \"garbage\": id: must be layer.N.NAME");
	draft.fields[0][0].id = "layer.0.s";
	refuses(&target->spec, &spec,
		"draft: group 1, field \"layer.0.s\": id: is also that of a field of group 0");
	draft.fields[0][0].id = "layer.0.k";
	draft.ids[0][0] = "layer.9.k";
	refuses(&target->spec, &spec, "draft: consumer 0: field: \"layer.9.k\", is in no group");
	consumers[0] = (struct layout_consumer_spec){ NULL, 7 };
	refuses(&target->spec, &spec, "draft: consumer 0: field: NULL, give an id");
}

/* Some of the target's bytes, but not all of them: neither an alias nor memory of its own. */
static void a_draft_that_overlaps_the_target_is_refused(void **state)
{
	struct draft *const target = sample(), *const draft = sample_draft();

	(void)state;
	draft->fields[0][0].offset = 0;
	draft->fields[0][0].payload_bytes = 40;
	refuses(&target->spec, &draft->spec,
		"group 0, field \"layer.0.k\": offset: 0, its blocks overlap those of field \"layer.0.k\" of the target");
}

static void draft_layout_must_use_target_block_geometry(void **state)
{
	struct draft *target = sample(), *draft = sample_draft();

	(void)state;
	draft->groups[0].packing = 1;
	refuses(&target->spec, &draft->spec,
		"draft: group 0: packing: 1, must be the target's (2)");
	draft = sample_draft();
	draft->spec.parent_count = 2;
	refuses(&target->spec, &draft->spec, "draft: parent_count: 2, must be the target's (3)");
	draft = sample_draft();
	draft->groups[0].id = 2;
	refuses(&target->spec, &draft->spec, "draft: group 2: id: is none of the target's");
}

static void a_draft_that_leaves_out_names_is_refused(void **state)
{
	struct draft *const target = sample();
	struct draft       *draft = sample_draft();

	(void)state;
	draft->fields[0][0].id = NULL;
	refuses(&target->spec, &draft->spec, "group 0: field 0: id: NULL, give one");
	draft = sample_draft();
	draft->groups[0].fields = NULL;
	refuses(&target->spec, &draft->spec, "draft: group 0: fields: NULL, 1 are expected");
	draft = sample_draft();
	draft->consumers[0].fields = NULL;
	refuses(&target->spec, &draft->spec, "consumer 2: field: NULL, give an id");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_fields_are_packed_without_padding),
		cmocka_unit_test(a_fields_id_names_its_layer),
		cmocka_unit_test(an_id_without_a_layer_is_refused),
		cmocka_unit_test(a_plane_gives_the_offset_of_virtual_block_zero),
		cmocka_unit_test(groups_stand_in_the_schedulers_order),
		cmocka_unit_test(each_field_has_the_consumer_that_names_it),
		cmocka_unit_test(fields_that_touch_in_every_block_are_one_piece),
		cmocka_unit_test(layout_rejects_what_counts_nothing),
		cmocka_unit_test(layout_rejects_more_than_its_tables_may_hold),
		cmocka_unit_test(layout_rejects_counts_of_nothing),
		cmocka_unit_test(layout_rejects_duplicate_group_ids),
		cmocka_unit_test(layout_rejects_duplicate_field_ids_across_groups),
		cmocka_unit_test(layout_rejects_payload_larger_than_device_stride),
		cmocka_unit_test(layout_rejects_fields_outside_their_buffer),
		cmocka_unit_test(layout_rejects_blocks_past_63_bits),
		cmocka_unit_test(fields_past_a_stride_stay_two_pieces),
		cmocka_unit_test(a_field_may_end_with_its_buffer),
		cmocka_unit_test(layout_rejects_fields_of_a_group_that_share_bytes),
		cmocka_unit_test(fields_of_unequal_strides_lie_apart_as_a_whole),
		cmocka_unit_test(layout_rejects_unknown_consumer_field),
		cmocka_unit_test(layout_rejects_a_field_without_an_id),
		cmocka_unit_test(layout_rejects_a_group_without_fields),
		cmocka_unit_test(layout_rejects_a_consumer_without_fields),
		cmocka_unit_test(layout_rejects_more_fields_than_it_can_compare),
		cmocka_unit_test(a_drafts_fields_join_the_targets_groups_behind_its_own),
		cmocka_unit_test(target_and_draft_layouts_must_share_one_buffer),
		cmocka_unit_test(an_aliased_target_and_draft_layout_is_transferred_once),
		cmocka_unit_test(an_aliased_draft_has_names_like_any_other),
		cmocka_unit_test(a_draft_that_overlaps_the_target_is_refused),
		cmocka_unit_test(draft_layout_must_use_target_block_geometry),
		cmocka_unit_test(a_draft_that_leaves_out_names_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
