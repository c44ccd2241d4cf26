/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration: one table of options a command, read from defaults, one JSON file and flags, in
 * that order.
 *
 * Names   The same everywhere: option "block_bytes" is the JSON key "block_bytes" and the flag
 *         --block-bytes, with its value behind "=" or in the next argument.  A CONF_BOOL stands
 *         alone (--json) or takes =true or =false.
 * JSON    Sizes are strings as people write them, or integers of bytes.  Durations are strings:
 *         they need their unit.  Counts are integers.  Lists are arrays, or one string with commas;
 *         both reach the caller as the latter, without an empty item: items.h cuts it.
 * Errors  Unknown names, wrong types, duplicates, empty texts and values out of range are refused
 *         with the name as the user wrote it, the value, and what is allowed; nothing is changed
 *         then.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum conf_type {
	CONF_BOOL,     /* bool */
	CONF_COUNT,    /* uint64_t */
	CONF_SIZE,     /* uint64_t, bytes */
	CONF_DURATION, /* uint64_t, nanoseconds */
	CONF_NUMBER,   /* double, non-negative */
	CONF_TEXT,     /* const char *, owned by the struct conf; NULL without fallback */
	CONF_CHOICE    /* const char *, one of choices */
};

struct conf_option {
	const char        *name;       /* JSON spelling: lower case, underscores */
	enum conf_type     type;
	size_t             offset;     /* of the field in the caller's struct */
	const char        *fallback;   /* the default, as a user would write it; NULL: false, 0, NULL */
	double             min, max;   /* inclusive, in the field's unit; max 0: only the type's bound */
	uint64_t           multiple;   /* sizes and counts must be a multiple of it; 0: any */
	const char *const *choices;    /* NULL-terminated; those of a CONF_TEXT are shown by help only */
	const char        *metavar;    /* FILE, SPEC, N ...: shown by help */
	const char        *help;       /* one line, without a full stop */
	bool               list;     /* CONF_TEXT: comma-separated; a JSON array will do, too */
	const char        *word;       /* a bare word that is also accepted ("max"); NULL: none */
	uint64_t           word_value; /* and what it means: for CONF_NUMBER converted to double */
};

enum conf_source { CONF_FROM_DEFAULT, CONF_FROM_FILE, CONF_FROM_FLAG };

struct conf; /* which option came from where, and the text it owns */

/**
 * Read defaults, then the file named by --config if given, then the flags.
 *
 * target is the caller's struct; argv holds flags only (no program or command name); a bare
 * argument that is no flag's value is refused.  "--help" is the caller's business.  After success
 * texts live until conf_close().
 *
 * Errors  KVS_E_INVALID (flag, key, value, rule), -errno for a file that cannot be read (names it).
 */
int  conf_read(const struct conf_option *options, size_t option_count, void *target, int argc,
	       char **argv, struct conf **ret_conf, struct kvs_error *err);
void conf_close(struct conf *conf);

enum conf_source conf_source(const struct conf *conf, size_t option);

/* "  --block-bytes SIZE  help (default 64KiB)" for each; two lines when the default is long. */
void conf_help(const struct conf_option *options, size_t option_count, FILE *out);

/* "block_bytes = 64KiB  (flag)" for each option: what would be used, exactly, with its source. */
void conf_print(const struct conf *conf, FILE *out);

#endif
