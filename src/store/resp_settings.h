/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a resp store was told, read once and checked in full.
 *
 *   resp:HOST[:PORT]?OPTIONS   resp:[::1]:6379?OPTIONS   resp:unix:/path/of/socket?OPTIONS
 */
#ifndef STORE_RESP_SETTINGS_H
#define STORE_RESP_SETTINGS_H

#include <stdbool.h>

#include <kvstrata/store.h>

#include "base/err.h"
#include "key/label.h"

#define RESP_CONNECTIONS_MAX 16u
#define RESP_PIPELINE_MAX 64u
#define RESP_SECRET_MAX 512u

struct resp_settings {
	char     host[256]; /* "" for a Unix socket */
	char     port[6];
	char     path[108];
	char     place[384]; /* for sentences: host:port, or the path */
	char     user[RESP_SECRET_MAX];
	char     password[RESP_SECRET_MAX]; /* "" for none; never printed */
	char     tls_name[256];
	char     prefix[LABEL_PREFIX_MAX + 1];
	char     tls_ca[4096]; /* "" for the system's */
	uint64_t db;
	uint64_t connections; /* of gets, and as many of puts; lookups have one of their own */
	uint64_t pipeline;    /* commands without a reply on one connection */
	uint64_t connect_timeout_ns;
	uint64_t timeout_ns; /* from when a reply is the next one due */
	uint64_t bytes_in_flight;
	bool     required; /* the server must be there at open */
	bool     tls;
	bool     verified;
};

extern const char *const resp_options[];

int resp_settings_read(const struct kvs_store_config *config, struct resp_settings *ret_settings,
		       struct kvs_error *err);

#endif
