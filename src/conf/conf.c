/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defaults, then the file, then the flags: values gather here and reach the caller's struct when
 * all are good.
 */
#include "conf/conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/parts.h"

/* A default is ours: one that breaks its own option's rules is a mistake in the table. */
static void read_defaults(struct conf *conf)
{
	struct kvs_error err;
	size_t           i;

	for (i = 0; i < conf->option_count; i++) {
		const struct conf_option *option = &conf->options[i];
		struct value_origin origin = { CONF_FROM_DEFAULT, option->name, option->fallback };

		if (option->fallback &&
		    value_parse(option, &origin, option->fallback, &conf->values[i], &err) < 0)
			KVS_PANIC("default of %s", err.message);
	}
}

static int read_flags(struct conf *conf, const char *const *text, struct kvs_error *err)
{
	char   name[FLAG_NAME_BYTES], shown[VALUE_SHOWN_BYTES];
	size_t i;
	int    rc = 0;

	for (i = 0; i < conf->option_count && rc == 0; i++) {
		if (!text[i])
			continue;
		struct value_origin origin = { CONF_FROM_FLAG, flag_name(&conf->options[i], name),
					       value_show(text[i], "\"", shown) };
		rc = value_parse(&conf->options[i], &origin, text[i], &conf->values[i], err);
	}
	return rc;
}

static int read_all(struct conf *conf, int argc, char **argv, const char **text,
		    struct kvs_error *err)
{
	const char *config = NULL;
	int         rc = flags_split(conf, argc, argv, text, &config, err);

	if (rc < 0)
		return rc;
	read_defaults(conf);
	if (config) {
		rc = file_read(conf, config, err);
		if (rc < 0)
			return rc;
	}
	return read_flags(conf, text, err);
}

static void write_all(const struct conf *conf, void *target)
{
	size_t i;

	for (i = 0; i < conf->option_count; i++)
		value_write(&conf->options[i], &conf->values[i], target);
}

int conf_read(const struct conf_option *options, size_t option_count, void *target, int argc,
	      char **argv, struct conf **ret_conf, struct kvs_error *err)
{
	struct conf *conf = calloc(1, sizeof(*conf) + option_count * sizeof(conf->values[0]));
	const char **text = calloc(option_count + 1, sizeof(*text));
	int          rc = -ENOMEM;

	if (conf && text) {
		conf->options = options;
		conf->option_count = option_count;
		rc = read_all(conf, argc, argv, text, err);
	} else {
		err_set(err, rc, "%s", strerror(-rc));
	}
	free(text);
	if (rc < 0) {
		conf_close(conf);
		return rc;
	}
	write_all(conf, target);
	*ret_conf = conf;
	return 0;
}

void conf_close(struct conf *conf)
{
	size_t i;

	for (i = 0; conf && i < conf->option_count; i++)
		value_fini(&conf->values[i]);
	free(conf);
}

enum conf_source conf_source(const struct conf *conf, size_t option)
{
	KVS_ASSERT_CMP(option, <, conf->option_count);
	return conf->values[option].source;
}
