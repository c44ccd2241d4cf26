/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: which flag has which text.  --config is known here and in help.c only. */
#include "conf/parts.h"

#include <stdio.h>
#include <string.h>

#include "conf/nearest.h"

#define CONFIG_FLAG "--config"

char *flag_name(const struct conf_option *option, char *buffer)
{
	size_t i;

	snprintf(buffer, FLAG_NAME_BYTES, "--%s", option->name);
	for (i = 2; buffer[i]; i++) {
		if (buffer[i] == '_')
			buffer[i] = '-';
	}
	return buffer;
}

/* One argument, cut at its "=". */
struct flag {
	char        name[FLAG_NAME_BYTES];
	const char *value; /* behind "="; NULL without one */
};

static struct flag flag_cut(const char *argument)
{
	struct flag flag;
	size_t      bytes = strcspn(argument, "=");

	flag.value = argument[bytes] ? argument + bytes + 1 : NULL;
	if (bytes > sizeof(flag.name) - 1)
		bytes = sizeof(flag.name) - 1;
	memcpy(flag.name, argument, bytes);
	flag.name[bytes] = '\0';
	return flag;
}

static size_t find_option(const struct conf *conf, const char *name)
{
	char   known[FLAG_NAME_BYTES];
	size_t i;

	for (i = 0; i < conf->option_count; i++) {
		if (strcmp(flag_name(&conf->options[i], known), name) == 0)
			return i;
	}
	return conf->option_count;
}

static int refuse_unknown(const struct conf *conf, const char *name, struct kvs_error *err)
{
	struct nearest nearest;
	char           shown[VALUE_SHOWN_BYTES], known[FLAG_NAME_BYTES], hint[NEAREST_HINT_BYTES];
	size_t         i;

	value_show(name, "", shown);
	if (strncmp(name, "--", 2) != 0) {
		return err_set(err, KVS_E_INVALID,
			       "\"%s\" is not expected here; flags begin with --", shown);
	}
	nearest_init(&nearest, name);
	nearest_offer(&nearest, CONFIG_FLAG);
	for (i = 0; i < conf->option_count; i++)
		nearest_offer(&nearest, flag_name(&conf->options[i], known));
	return err_set(err, KVS_E_INVALID, "%s: unknown flag; %s", shown,
		       nearest_hint(&nearest, "--help lists the flags", hint));
}

static const char *value_name(const struct conf *conf, size_t option)
{
	const char *metavar = option < conf->option_count ? conf->options[option].metavar : "FILE";

	return metavar ? metavar : "a value";
}

/*
 * The text of a flag that was found: behind "=", the next argument, or "true" for a bare boolean.
 */
static int take_text(const struct conf *conf, size_t option, const struct flag *flag, int argc,
		     char **argv, int *at, const char **ret_text, struct kvs_error *err)
{
	const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;

	if (flag->value) {
		*ret_text = flag->value;
	} else if (option < conf->option_count && conf->options[option].type == CONF_BOOL) {
		*ret_text = "true";
	} else if (next && strncmp(next, "--", 2) != 0) {
		*ret_text = next;
		*at += 1;
	} else {
		return err_set(err, KVS_E_INVALID, "%s: needs %s", flag->name,
			       value_name(conf, option));
	}
	return 0;
}

int flags_split(const struct conf *conf, int argc, char **argv, const char **text,
		const char **config, struct kvs_error *err)
{
	int at;

	for (at = 0; at < argc; at++) {
		struct flag  flag = flag_cut(argv[at]);
		size_t       option = find_option(conf, flag.name);
		const char **slot = option < conf->option_count ? &text[option] : config;
		int          rc;

		if (option == conf->option_count && strcmp(flag.name, CONFIG_FLAG) != 0)
			return refuse_unknown(conf, flag.name, err);
		if (*slot) {
			return err_set(err, KVS_E_INVALID, "%s: given twice; use it once",
				       flag.name);
		}
		rc = take_text(conf, option, &flag, argc, argv, &at, slot, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
