/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of the SDK's client, as far as it is called.
 *
 * Every function is synchronous and turns an exception into -1.  What a call is given is read during
 * the call only; payload buffers, and what a batch answers into, may be written until it returns, and
 * buffers after that, see codes.h.
 */
#ifndef MOONCAKE_LIBRARY_SDK_H
#define MOONCAKE_LIBRARY_SDK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* How a put is to be placed; replicas 0 is refused, and a soft pin of 0 leaves an old one alone. */
struct sdk_placement {
	size_t       replicas;
	int          soft_pin;
	int          hard_pin;
	const char **segments;
	size_t       segment_count;
};

struct sdk {
	void *library;

	void   *(*create)(void);
	void    (*destroy)(void *client);
	int     (*setup)(void *client, const char *local_hostname, const char *metadata_server,
			 uint64_t segment_bytes, uint64_t local_buffer_bytes, const char *protocol,
			 const char *device, const char *master);
	int     (*register_buffer)(void *client, void *ptr, size_t bytes);
	/* 0: answers hold a code a row; anything else: they may hold nothing. */
	int     (*batch_is_exist)(void *client, const char **names, size_t count, int *answers);
	int     (*batch_get_into)(void *client, const char **names, void **buffers,
				  const size_t *sizes, size_t count, int64_t *answers);
	int     (*batch_put_from)(void *client, const char **names, void **buffers,
				  const size_t *sizes, size_t count,
				  const struct sdk_placement *placement, int *answers);
	int     (*remove)(void *client, const char *name, int force);
	int64_t (*remove_by_regex)(void *client, const char *expression, int force);
};

/* Errors: KVS_E_INVALID, and nothing stays loaded. */
int sdk_load(const char *path, struct sdk *ret_sdk, struct kvs_error *err);

#endif
