/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share: the open configuration and its two readers. */
#ifndef CONF_PARTS_H
#define CONF_PARTS_H

#include "conf/value.h"

struct conf {
	const struct conf_option *options;
	size_t                    option_count;
	struct value              values[]; /* one an option */
};

/* A file is read whole before it is parsed; a larger one is a mistake, not a configuration. */
#define FILE_BYTES_MAX (1u << 20)

/* Read one JSON object over conf->values.  Sentences begin with the path. */
int file_read(struct conf *conf, const char *path, struct kvs_error *err);

/* The spelling of an option on the command line, dashes and all. */
#define FLAG_NAME_BYTES 64u
char *flag_name(const struct conf_option *option, char *buffer);

/* Split argv into one text an option, NULL where absent, and --config's.  Parses no value. */
int flags_split(const struct conf *conf, int argc, char **argv, const char **text,
		const char **config, struct kvs_error *err);

#endif
