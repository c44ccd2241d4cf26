/* SPDX-License-Identifier: Apache-2.0 */
#include "api/options.h"

#include <stddef.h>
#include <string.h>

#include "ctrl/policy.h"
#include "evict/evict.h"

/* --- the table -------------------------------------------------------------------------------- */

/* Choices of a CONF_TEXT are shown by help only: a policy may also come from a shared object. */
#define CHOICES_host_policy        evict_names
#define CHOICES_store_evict_policy evict_names
#define CHOICES_store_policy       store_policy_names
#define CHOICES_prefetch_policy    prefetch_policy_names

#define ROW_SIZE(field)     .type = CONF_SIZE, .metavar = "SIZE"
#define ROW_COUNT(field)    .type = CONF_COUNT, .metavar = "N"
#define ROW_DURATION(field) \
	.type = CONF_DURATION, .metavar = "TIME", .word = "never", .word_value = KVS_FOREVER
#define ROW_NUMBER(field)   .type = CONF_NUMBER, .metavar = "PART"
#define ROW_SWITCH(field)   .type = CONF_BOOL
#define ROW_NAME(field)     .type = CONF_CHOICE, .metavar = "POLICY", .choices = CHOICES_##field
#define ROW_POLICY(field)   .type = CONF_TEXT, .metavar = "POLICY", .choices = CHOICES_##field
#define ROW_LIST(field)     .type = CONF_TEXT, .metavar = "SPECS", .list = true

const struct conf_option api_options[] = {
#define ROW(kind, field, least, most, times, text, line) \
	{ .name = #field, ROW_##kind(field), .offset = offsetof(struct api_settings, field), \
	  .fallback = (text), .min = (double)(least), .max = (double)(most), .multiple = (times), \
	  .help = (line) },
	MANAGER_OPTIONS(ROW)
#undef ROW
};
const size_t api_options_count = ARRAY_COUNT(api_options);

/* --- settings as options ---------------------------------------------------------------------- */

static int cut(char *list, const char **ret_stores, struct kvs_error *err)
{
	uint32_t count = 0;
	char    *at = list;

	while (at) {
		char *const comma = strchr(at, ',');

		if (count == KVS_ADAPTERS_MAX) {
			return err_set(err, KVS_E_INVALID, "stores: more than %u, as many as may be attached",
				       KVS_ADAPTERS_MAX);
		}
		if (comma)
			*comma = '\0';
		ret_stores[count++] = at;
		at = comma ? comma + 1 : NULL;
	}
	return 0;
}

#define COPY_SIZE(field)     options.field = settings->field;
#define COPY_COUNT(field)    options.field = (uint32_t)settings->field;
#define COPY_DURATION(field) options.field = settings->field;
#define COPY_NUMBER(field)   options.field = settings->field;
#define COPY_SWITCH(field)   options.field = settings->field;
#define COPY_NAME(field)     options.field = settings->field;
#define COPY_POLICY(field)   options.field = settings->field;
#define COPY_LIST(field)     rc = cut(list, options.field, err);

int api_options_from(const struct api_settings *settings, char *list,
			  struct kvs_options *ret_options, struct kvs_error *err)
{
	struct kvs_options options = KVS_OPTIONS_INIT;
	int                rc = 0;

#define COPY(kind, field, ...) COPY_##kind(field)
	MANAGER_OPTIONS(COPY)
#undef COPY
	if (rc == 0)
		*ret_options = options;
	return rc;
}
