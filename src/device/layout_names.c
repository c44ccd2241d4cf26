/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a layout: ids once each, and each field with exactly one consumer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "device/layout_parts.h"

/* All fields by name, so that ids are found and twins stand side by side. */
struct name {
	struct layout_field *field;
	uint32_t             group;
};

static int compare_names(const void *a, const void *b)
{
	const struct name *const x = a, *const y = b;

	if (x->field->of_draft != y->field->of_draft)
		return x->field->of_draft ? 1 : -1;
	if (strcmp(x->field->id, y->field->id) != 0)
		return strcmp(x->field->id, y->field->id);
	return 0;
}

static void sort_names(struct layout *layout, struct name *names)
{
	uint32_t g, f, count = 0;

	for (g = 0; g < layout->group_count; g++) {
		for (f = 0; f < layout->group[g].field_count; f++, count++)
			names[count] = (struct name){ &layout->fields[count], g };
	}
	qsort(names, count, sizeof(*names), compare_names);
}

static int check_twins(const struct layout *layout, const struct name *names, struct kvs_error *err)
{
	uint32_t i;

	for (i = 1; i < layout->field_count; i++) {
		const struct name *const a = &names[i - 1], *const b = &names[i];

		if (compare_names(a, b) == 0) {
			err_set(err, KVS_E_INVALID, "id: is also that of a field of group %u", a->group);
			return layout_blame(KVS_E_INVALID, b->group, b->field->id, err);
		}
	}
	return 0;
}

static int bind(struct layout *layout, const struct name *names, const char *id, bool of_draft,
		uint32_t consumer, struct kvs_error *err)
{
	struct layout_field       wanted = { .id = id, .of_draft = of_draft };
	const struct name         key = { &wanted, 0 };
	const struct name *const  found = bsearch(&key, names, layout->field_count, sizeof(*names),
						  compare_names);
	char                      quoted[LAYOUT_QUOTE_BYTES];

	if (!found) {
		snprintf(quoted, sizeof(quoted), "%s", id);
		return err_set(err, KVS_E_INVALID, "consumer %u: field: \"%s\", is in no group",
			       consumer, text_printable(quoted));
	}
	if (found->field->consumer != UINT32_MAX) {
		err_set(err, KVS_E_INVALID, "consumer: %u, consumer %u has the field already",
			consumer, found->field->consumer);
		return layout_blame(KVS_E_INVALID, found->group, id, err);
	}
	found->field->consumer = consumer;
	return 0;
}

static int bind_all(struct layout *layout, const struct name *names,
		    const struct layout_spec *spec, bool of_draft, struct kvs_error *err)
{
	uint32_t c, f;
	int      rc = 0;

	for (c = 0; rc == 0 && c < spec->consumer_count; c++, layout->consumer_count++) {
		const char *const *const ids = spec->consumers[c].fields;

		for (f = 0; rc == 0 && f < spec->consumers[c].field_count; f++) {
			if (!ids || !ids[f]) {
				return err_set(err, KVS_E_INVALID, "consumer %u: field: NULL, give an id",
					       layout->consumer_count);
			}
			rc = bind(layout, names, ids[f], of_draft, layout->consumer_count, err);
		}
	}
	return rc;
}

static int check_bound(const struct layout *layout, struct kvs_error *err)
{
	uint32_t g, f, at = 0;

	for (g = 0; g < layout->group_count; g++) {
		for (f = 0; f < layout->group[g].field_count; f++, at++) {
			if (layout->fields[at].consumer == UINT32_MAX) {
				err_set(err, KVS_E_INVALID,
					"consumer: none names the field; exactly one must");
				return layout_blame(KVS_E_INVALID, g, layout->fields[at].id, err);
			}
		}
	}
	return 0;
}

int layout_bind_consumers(struct layout *layout, const struct layout_spec *target,
			  const struct layout_spec *draft, struct kvs_error *err)
{
	struct name *const names = calloc(layout->field_count, sizeof(*names));
	int                rc;

	if (!names)
		return err_set(err, -ENOMEM, "no memory for %u names", layout->field_count);
	sort_names(layout, names);
	rc = check_twins(layout, names, err);
	if (rc == 0)
		rc = bind_all(layout, names, target, false, err);
	if (rc == 0 && draft)
		rc = bind_all(layout, names, draft, true, err);
	if (rc == 0)
		rc = check_bound(layout, err);
	free(names);
	return rc;
}
