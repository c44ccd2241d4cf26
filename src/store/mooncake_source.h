/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the settings that Mooncake's users know come from, the first that has one winning:
 *
 *   the spec's options; the master is its place, too
 *   a file of Mooncake's own, one JSON object: config=FILE, else MOONCAKE_CONFIG_PATH names it
 *   MOONCAKE_* in the environment
 *
 * Both of Mooncake's spellings are taken, not both at once.  The file's other keys are ignored, as
 * Mooncake ignores those that it does not know: it is also the file of providers and of engines.
 * null and "" in it and empty variables say nothing.
 */
#ifndef STORE_MOONCAKE_SOURCE_H
#define STORE_MOONCAKE_SOURCE_H

#include <kvstrata/store.h>

#include "base/err.h"
#include "mooncake/settings.h"

enum mooncake_field {
	MOONCAKE_MASTER,
	MOONCAKE_METADATA_SERVER,
	MOONCAKE_LOCAL_HOSTNAME,
	MOONCAKE_PROTOCOL,
	MOONCAKE_DEVICE,
	MOONCAKE_TENANT,
	MOONCAKE_SEGMENT_SIZE,
	MOONCAKE_BUFFER_SIZE,
	MOONCAKE_METRICS_PORT,
	MOONCAKE_FIELD_COUNT
};

/* Text without control characters, quotes and backslashes: it goes to other programs. */
struct mooncake_given {
	char where[128];              /* for sentences: "store.protocol", or file and key, or variable */
	char text[MOONCAKE_TEXT_MAX]; /* "": nowhere given */
};

int mooncake_sources_read(const struct kvs_store_config *config,
			  struct mooncake_given ret_given[MOONCAKE_FIELD_COUNT],
			  struct kvs_error *err);

/* The same for a text of the spec; room is at least 1. */
int mooncake_text_check(const char *where, const char *text, size_t room, struct kvs_error *err);

#endif
