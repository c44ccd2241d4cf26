/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One option's value: from text, checked against the option's rules, and back to text.
 *
 * Text is the only way in: a flag's argument, a default, and what file.c makes of a JSON value.  So
 * every source obeys the same rules and gets the same sentences.
 */
#ifndef CONF_VALUE_H
#define CONF_VALUE_H

#include "conf/conf.h"

struct value {
	enum conf_source source;
	bool             is_word; /* the option's bare word was given */
	bool             flag;    /* CONF_BOOL */
	uint64_t         number;  /* CONF_COUNT, CONF_SIZE, CONF_DURATION */
	double           real;    /* CONF_NUMBER */
	char            *text;    /* CONF_TEXT, CONF_CHOICE: owned; NULL when unset */
};

/* What an error sentence says of a value: the option as the user named it, the value as written. */
struct value_origin {
	enum conf_source source;
	const char      *label; /* "block_bytes" or "--block-bytes" */
	const char      *shown; /* "\"64KB\"", "-5", "[1,{}]" */
};

bool value_is_numeric(enum conf_type type);

/* Replace *value.  Errors: KVS_E_INVALID, -ENOMEM; *value is then as it was. */
int  value_parse(const struct conf_option *option, const struct value_origin *origin,
		 const char *text, struct value *value, struct kvs_error *err);
void value_fini(struct value *value);

/* The sentence for a wrong type: "label: shown is not a size; use ...".  KVS_E_INVALID. */
int value_refuse(const struct conf_option *option, const struct value_origin *origin,
		 struct kvs_error *err);

/* Write the value into the caller's struct. */
void value_write(const struct conf_option *option, const struct value *value, void *target);

#define VALUE_SHOWN_BYTES 64u

/* text in quotes ("": none), one line, cut when long, in VALUE_SHOWN_BYTES; returns it. */
char *value_show(const char *text, const char *quote, char *buffer);

/* As a user could write it back; exact.  Text in *value, or buffer of VALUE_SHOWN_BYTES. */
const char *value_format(const struct conf_option *option, const struct value *value, char *buffer);

#endif
