/* SPDX-License-Identifier: Apache-2.0 */
/* The text is copied once and cut in place. */
#include "store/spec.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"

/* End the string at the first `mark`; what follows it, or NULL when there is none. */
static char *cut(char *text, char mark)
{
	char *at = strchr(text, mark);

	if (!at)
		return NULL;
	*at = '\0';
	return at + 1;
}

static int options_parse(char *text, struct store_spec *spec, struct kvs_error *err)
{
	char *next;

	for (; text; text = next) {
		char *value;

		if (spec->option_count == SPEC_OPTIONS_MAX) {
			return err_set(err, KVS_E_INVALID, "store: has more than %u options",
				       SPEC_OPTIONS_MAX);
		}
		next = cut(text, '&');
		value = cut(text, '=');
		if (!value) {
			/* Not quoted: it may be the rest of a password that has an &. */
			return err_set(err, KVS_E_INVALID,
				       "store: option %u has no value; write key=value",
				       spec->option_count + 1);
		}
		spec->options[spec->option_count++] = (struct kvs_store_option){ text, value };
	}
	return 0;
}

int spec_parse(const char *text, struct store_spec *ret_spec, struct kvs_error *err)
{
	const size_t length = strlen(text);
	char        *options, *place;

	if (length >= SPEC_BYTES_MAX) {
		return err_set(err, KVS_E_INVALID, "store: is longer than %u bytes",
			       SPEC_BYTES_MAX - 1);
	}
	*ret_spec = (struct store_spec){ 0 };
	memcpy(ret_spec->text, text, length + 1);
	options = cut(ret_spec->text, '?');
	place = cut(ret_spec->text, ':');
	ret_spec->kind = ret_spec->text;
	ret_spec->place = place ? place : "";
	return options_parse(options, ret_spec, err);
}

static int refuse_unknown(const char *key, const char *kind, const char *const *known,
			  struct kvs_error *err)
{
	char list[sizeof(err->message)];

	if (!*known) {
		return err_set(err, KVS_E_INVALID,
			       "store: \"%.64s\" is not an option of %.32s; it takes none", key, kind);
	}
	return err_set(err, KVS_E_INVALID, "store: \"%.64s\" is not an option of %.32s; use %s", key,
		       kind, text_join(known, ", ", list, sizeof(list)));
}

static bool is_earlier(const struct store_spec *spec, uint32_t option)
{
	uint32_t i;

	for (i = 0; i < option; i++) {
		if (strcmp(spec->options[i].key, spec->options[option].key) == 0)
			return true;
	}
	return false;
}

int spec_check(const struct store_spec *spec, const char *const *known, struct kvs_error *err)
{
	uint32_t i;

	for (i = 0; i < spec->option_count; i++) {
		const char *key = spec->options[i].key;

		if (known && !text_is_listed(known, key))
			return refuse_unknown(key, spec->kind, known, err);
		if (is_earlier(spec, i))
			return err_set(err, KVS_E_INVALID, "store.%s: is given twice", key);
	}
	return 0;
}

const char *spec_option(const struct kvs_store_config *config, const char *key)
{
	uint32_t i;

	for (i = 0; i < config->option_count; i++) {
		if (strcmp(config->options[i].key, key) == 0)
			return config->options[i].value;
	}
	return NULL;
}

int spec_size(const char *key, const char *text, uint64_t *ret_bytes, struct kvs_error *err)
{
	if (units_size(text, ret_bytes) == 0)
		return 0;
	return err_set(err, KVS_E_INVALID, "store.%s: \"%.64s\" " UNITS_SIZE_RULE, key, text);
}

int spec_count(const struct kvs_store_config *config, const char *key, uint64_t *ret_count,
	       struct kvs_error *err)
{
	const char *text = spec_option(config, key);

	if (!text || units_count(text, ret_count) == 0)
		return 0;
	return err_set(err, KVS_E_INVALID, "store.%s: \"%.64s\" " UNITS_COUNT_RULE, key, text);
}

int spec_duration(const struct kvs_store_config *config, const char *key, uint64_t *ret_ns,
		  struct kvs_error *err)
{
	const char *text = spec_option(config, key);

	if (!text || units_duration(text, ret_ns) == 0)
		return 0;
	return err_set(err, KVS_E_INVALID, "store.%s: \"%.64s\" " UNITS_DURATION_RULE, key, text);
}

int spec_word(const struct kvs_store_config *config, const char *key, const char *yes,
	      const char *no, bool *ret_yes, struct kvs_error *err)
{
	const char *text = spec_option(config, key);

	if (!text)
		return 0;
	if (strcmp(text, yes) != 0 && strcmp(text, no) != 0) {
		return err_set(err, KVS_E_INVALID, "store.%s: \"%.64s\" is neither %s nor %s", key,
			       text, yes, no);
	}
	*ret_yes = strcmp(text, yes) == 0;
	return 0;
}

int spec_switch(const struct kvs_store_config *config, const char *key, bool *ret_on,
		struct kvs_error *err)
{
	return spec_word(config, key, "on", "off", ret_on, err);
}
