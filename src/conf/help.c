/* SPDX-License-Identifier: Apache-2.0 */
/* Options for people: what there is, and what would be used. */
#include "conf/conf.h"

#include <string.h>

#include "conf/parts.h"

#define COLUMN_BYTES 128u

static const char *metavar_of(const struct conf_option *option)
{
	static const char *const by_type[] = {
		[CONF_BOOL] = "",	  [CONF_COUNT] = "N",
		[CONF_SIZE] = "SIZE",	  [CONF_DURATION] = "DURATION",
		[CONF_NUMBER] = "NUMBER", [CONF_TEXT] = "TEXT",
		[CONF_CHOICE] = "CHOICE",
	};

	return option->metavar && option->type != CONF_BOOL ? option->metavar : by_type[option->type];
}

static size_t synopsis(const struct conf_option *option, char *column)
{
	char        name[FLAG_NAME_BYTES];
	const char *metavar = metavar_of(option);

	return (size_t)snprintf(column, COLUMN_BYTES, "%s%s%s", flag_name(option, name),
				*metavar ? " " : "", metavar);
}

static void print_choices(const struct conf_option *option, FILE *out)
{
	size_t i;

	for (i = 0; option->type == CONF_CHOICE && option->choices[i]; i++)
		fprintf(out, "%s%s", i ? ", " : ": ", option->choices[i]);
}

void conf_help(const struct conf_option *options, size_t option_count, FILE *out)
{
	static const struct conf_option config = {
		.name = "config",
		.type = CONF_TEXT,
		.metavar = "FILE",
		.help = "read options from one JSON object; flags win over it"
	};
	char   column[COLUMN_BYTES];
	size_t width = synopsis(&config, column);
	size_t i;

	for (i = 0; i < option_count; i++) {
		size_t bytes = synopsis(&options[i], column);

		width = bytes > width ? bytes : width;
	}
	for (i = 0; i <= option_count; i++) {
		const struct conf_option *option = i < option_count ? &options[i] : &config;

		synopsis(option, column);
		fprintf(out, "  %-*s  %s", (int)width, column, option->help ? option->help : "");
		print_choices(option, out);
		if (option->fallback)
			fprintf(out, " (default %s)", option->fallback);
		fputc('\n', out);
	}
}

void conf_print(const struct conf *conf, FILE *out)
{
	static const char *const source[] = { [CONF_FROM_DEFAULT] = "default", [CONF_FROM_FILE] = "file",
					      [CONF_FROM_FLAG] = "flag" };
	char   buffer[VALUE_SHOWN_BYTES];
	size_t name_width = 0, value_width = 0, i;

	for (i = 0; i < conf->option_count; i++) {
		size_t name = strlen(conf->options[i].name);
		size_t value = strlen(value_format(&conf->options[i], &conf->values[i], buffer));

		name_width = name > name_width ? name : name_width;
		value_width = value > value_width ? value : value_width;
	}
	for (i = 0; i < conf->option_count; i++)
		fprintf(out, "%-*s = %-*s  (%s)\n", (int)name_width, conf->options[i].name,
			(int)value_width, value_format(&conf->options[i], &conf->values[i], buffer),
			source[conf->values[i].source]);
}
