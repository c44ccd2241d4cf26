/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GET over HTTP, with libcurl where the machine has it.
 *
 * It is loaded when it is first wanted: linked, it would bring thirty libraries into every process
 * that has a store of any kind.  It stays loaded.
 */
#ifndef STORE_MOONCAKE_FETCH_H
#define STORE_MOONCAKE_FETCH_H

#include "store/mooncake_provider.h"

struct mooncake_curl {
	void *library; /* NULL: not loaded yet */
	void *(*init)(void);
	int (*set)(void *handle, int option, ...);
	int (*perform)(void *handle);
	int (*get)(void *handle, int info, ...);
	const char *(*describe)(int code);
	void (*cleanup)(void *handle);
};

/* context: a struct mooncake_curl, zeroed at first.  Redirects and proxies are not followed. */
mooncake_fetch mooncake_curl_fetch;

#endif
