/* SPDX-License-Identifier: Apache-2.0 */
/* Options for people: what there is, and what would be used. */
#include "base/text.h"
#include "conf/conf.h"

#include <string.h>

#include "conf/parts.h"

#define COLUMN_BYTES 128u
#define HELP_COLUMNS 100u

static const char *metavar_of(const struct conf_option *option)
{
	static const char *const by_type[] = {
		[CONF_BOOL] = "",	  [CONF_COUNT] = "N",
		[CONF_SIZE] = "SIZE",	  [CONF_DURATION] = "DURATION",
		[CONF_NUMBER] = "NUMBER", [CONF_TEXT] = "TEXT",
		[CONF_CHOICE] = "CHOICE",
	};

	return option->metavar && option->type != CONF_BOOL ? option->metavar
							    : by_type[option->type];
}

static size_t synopsis(const struct conf_option *option, char *column)
{
	char        name[FLAG_NAME_BYTES];
	const char *metavar = metavar_of(option);

	return (size_t)snprintf(column, COLUMN_BYTES, "%s%s%s", flag_name(option, name),
				*metavar ? " " : "", metavar);
}

/* The columns it printed. */
static size_t print_choices(const struct conf_option *option, FILE *out)
{
	size_t columns = 0, i;

	for (i = 0; option->choices && option->choices[i]; i++)
		columns += (size_t)fprintf(out, "%s%s", i ? ", " : ": ", option->choices[i]);
	return columns;
}

/* A default that does not fit behind its help gets a line of its own. */
static void print_option(const struct conf_option *option, size_t width, FILE *out)
{
	char   column[COLUMN_BYTES];
	size_t columns;

	synopsis(option, column);
	columns = (size_t)fprintf(out, "  %-*s  %s", (int)width, column,
				  option->help ? option->help : "");
	columns += print_choices(option, out);
	if (option->fallback) {
		if (columns + sizeof(" (default )") + strlen(option->fallback) > HELP_COLUMNS)
			fprintf(out, "\n%*s", (int)width + 3, "");
		fprintf(out, " (default %s)", option->fallback);
	}
	fputc('\n', out);
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
	for (i = 0; i < option_count; i++)
		print_option(&options[i], width, out);
	print_option(&config, width, out);
}

/* A longer value is cut: it is for eyes. */
#define LINE_BYTES 4096

/* A password in a store's specification is nobody's to read on a screen. */
static char *value_shown(const struct conf *conf, size_t i, char *line)
{
	char buffer[VALUE_SHOWN_BYTES];

	snprintf(line, LINE_BYTES, "%s",
		 value_format(&conf->options[i], &conf->values[i], buffer));
	return text_mask_secrets(line);
}

void conf_print(const struct conf *conf, FILE *out)
{
	static const char *const source[] = { [CONF_FROM_DEFAULT] = "default",
					      [CONF_FROM_FILE] = "file",
					      [CONF_FROM_FLAG] = "flag" };
	char   line[LINE_BYTES];
	size_t name_width = 0, value_width = 0, i;

	for (i = 0; i < conf->option_count; i++) {
		size_t name = strlen(conf->options[i].name);
		size_t value = strlen(value_shown(conf, i, line));

		name_width = name > name_width ? name : name_width;
		value_width = value > value_width ? value : value_width;
	}
	for (i = 0; i < conf->option_count; i++) {
		fprintf(out, "%-*s = %-*s  (%s)\n", (int)name_width, conf->options[i].name,
			(int)value_width, value_shown(conf, i, line),
			source[conf->values[i].source]);
	}
}
