/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar and the rules of each type of option. */
#include "conf/value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "conf/items.h"

static char *format_number(enum conf_type type, uint64_t number, double real, char *buffer)
{
	if (type == CONF_SIZE)
		return units_exact_size(number, buffer);
	if (type == CONF_DURATION)
		return units_exact_duration(number, buffer);
	if (type == CONF_NUMBER)
		snprintf(buffer, VALUE_SHOWN_BYTES, "%.10g", real);
	else
		snprintf(buffer, VALUE_SHOWN_BYTES, "%" PRIu64, number);
	return buffer;
}

static char *format_bound(const struct conf_option *option, double bound, char *buffer)
{
	return format_number(option->type, (uint64_t)bound, bound, buffer);
}

char *value_show(const char *text, const char *quote, char *buffer)
{
	size_t quote_bytes = strlen(quote);
	size_t room = VALUE_SHOWN_BYTES - 2 * quote_bytes - sizeof("...");
	size_t bytes = strnlen(text, room + 1);
	bool   cut = bytes > room;

	if (cut)
		bytes = room;
	snprintf(buffer, VALUE_SHOWN_BYTES, "%s%.*s%s%s", quote, (int)bytes, text, cut ? "..." : "",
		 quote);
	return text_printable(buffer);
}

static const char *type_rule(enum conf_type type)
{
	switch (type) {
	case CONF_BOOL: return "is not true or false";
	case CONF_COUNT: return UNITS_COUNT_RULE;
	case CONF_SIZE: return UNITS_SIZE_RULE;
	case CONF_DURATION: return UNITS_DURATION_RULE;
	case CONF_NUMBER: return "is not a number; use a non-negative number";
	case CONF_TEXT: return "is not text; use a string that is not empty";
	case CONF_CHOICE: return "is unknown; use one of ";
	}
	KVS_PANIC("conf: type %d", (int)type);
}

int value_refuse(const struct conf_option *option, const struct value_origin *origin,
		 struct kvs_error *err)
{
	char choices[128] = "", word[64] = "";

	if (option->type == CONF_CHOICE)
		text_join(option->choices, ", ", choices, sizeof(choices));
	if (option->word)
		snprintf(word, sizeof(word), ", or \"%s\"", option->word);
	return err_set(err, KVS_E_INVALID, "%s: %s %s%s%s", origin->label, origin->shown,
		       type_rule(option->type), choices, word);
}

static int parse_bool(const char *text, bool *ret_flag)
{
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return KVS_E_INVALID;
	*ret_flag = *text == 't';
	return 0;
}

/*
 * strtod() also takes blanks, signs, hexadecimal, infinities and NaN; a first digit and a plain
 * alphabet rule them out.
 */
static int parse_real(const char *text, double *ret_real)
{
	char  *end;
	double real;

	if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789.eE+-")])
		return KVS_E_INVALID;
	real = strtod(text, &end);
	if (*end || !isfinite(real))
		return KVS_E_INVALID;
	*ret_real = real;
	return 0;
}

static bool is_choice(const struct conf_option *option, const char *text)
{
	size_t i;

	for (i = 0; option->choices[i]; i++) {
		if (strcmp(option->choices[i], text) == 0)
			return true;
	}
	return false;
}

static int parse_text(const char *text, char **ret_text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	*ret_text = copy;
	return 0;
}

static int parse_typed(const struct conf_option *option, const char *text, struct value *value)
{
	switch (option->type) {
	case CONF_BOOL: return parse_bool(text, &value->flag);
	case CONF_COUNT: return units_count(text, &value->number);
	case CONF_SIZE: return units_size(text, &value->number);
	case CONF_DURATION: return units_duration(text, &value->number);
	case CONF_NUMBER: return parse_real(text, &value->real);
	case CONF_TEXT: return *text ? parse_text(text, &value->text) : KVS_E_INVALID;
	case CONF_CHOICE:
		return is_choice(option, text) ? parse_text(text, &value->text) : KVS_E_INVALID;
	}
	KVS_PANIC("conf: type %d", (int)option->type);
}

bool value_is_numeric(enum conf_type type)
{
	return type == CONF_COUNT || type == CONF_SIZE || type == CONF_DURATION ||
	       type == CONF_NUMBER;
}

static int check_range(const struct conf_option *option, const struct value_origin *origin,
		       const struct value *value, struct kvs_error *err)
{
	double number = option->type == CONF_NUMBER ? value->real : (double)value->number;
	char   low[VALUE_SHOWN_BYTES], high[VALUE_SHOWN_BYTES];

	if (number >= option->min && (number <= option->max || option->max <= 0))
		return 0;
	format_bound(option, option->min, low);
	if (option->max <= 0) {
		return err_set(err, KVS_E_INVALID, "%s: %s is too small; use at least %s",
			       origin->label, origin->shown, low);
	}
	return err_set(err, KVS_E_INVALID, "%s: %s is out of range; use %s to %s", origin->label,
		       origin->shown, low, format_bound(option, option->max, high));
}

static int check_multiple(const struct conf_option *option, const struct value_origin *origin,
			  const struct value *value, struct kvs_error *err)
{
	char step[VALUE_SHOWN_BYTES];

	if (!option->multiple || value->number % option->multiple == 0)
		return 0;
	return err_set(err, KVS_E_INVALID, "%s: %s is not a multiple of %s", origin->label,
		       origin->shown, format_number(option->type, option->multiple, 0, step));
}

static int check_list(const struct conf_option *option, const struct value_origin *origin,
		      const struct value *value, struct kvs_error *err)
{
	if (!option->list || items_whole(value->text))
		return 0;
	return err_set(err, KVS_E_INVALID, "%s: %s has an empty item; use commas between items only",
		       origin->label, origin->shown);
}

/* The bare word stands outside the range: it exists to say what no number in it can. */
static bool parse_word(const struct conf_option *option, const char *text, struct value *value)
{
	if (!option->word || strcmp(text, option->word) != 0)
		return false;
	value->is_word = true;
	value->number = option->word_value;
	value->real = (double)option->word_value;
	return true;
}

int value_parse(const struct conf_option *option, const struct value_origin *origin,
		const char *text, struct value *value, struct kvs_error *err)
{
	struct value parsed = { .source = origin->source };
	int          rc = 0;

	if (!value_is_numeric(option->type) || !parse_word(option, text, &parsed)) {
		rc = parse_typed(option, text, &parsed);
		if (rc == KVS_E_INVALID)
			return value_refuse(option, origin, err);
		if (rc < 0)
			return err_set(err, rc, "%s: %s", origin->label, strerror(-rc));
		if (value_is_numeric(option->type))
			rc = check_range(option, origin, &parsed, err);
		if (rc == 0)
			rc = check_multiple(option, origin, &parsed, err);
		if (rc == 0)
			rc = check_list(option, origin, &parsed, err);
		if (rc < 0) {
			value_fini(&parsed);
			return rc;
		}
	}
	value_fini(value);
	*value = parsed;
	return 0;
}

void value_fini(struct value *value)
{
	free(value->text);
	*value = (struct value){ 0 };
}

void value_write(const struct conf_option *option, const struct value *value, void *target)
{
	void *field = (char *)target + option->offset;

	switch (option->type) {
	case CONF_BOOL: *(bool *)field = value->flag; return;
	case CONF_COUNT:
	case CONF_SIZE:
	case CONF_DURATION: *(uint64_t *)field = value->number; return;
	case CONF_NUMBER: *(double *)field = value->real; return;
	case CONF_TEXT:
	case CONF_CHOICE: *(const char **)field = value->text; return;
	}
}

const char *value_format(const struct conf_option *option, const struct value *value, char *buffer)
{
	if (value->is_word)
		return option->word;
	if (option->type == CONF_BOOL)
		return value->flag ? "true" : "false";
	if (option->type == CONF_TEXT || option->type == CONF_CHOICE)
		return value->text ? value->text : "not set";
	return format_number(option->type, value->number, value->real, buffer);
}
