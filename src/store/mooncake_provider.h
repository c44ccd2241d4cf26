/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a pool that refuses a put full, or has it no storage at all?
 *
 * The SDK says the same of both, and what follows differs: a full pool makes room by itself, a pool
 * without a provider is an outage.  The master's HTTP interface knows: it lists the segments that
 * providers have mounted, one a line.  It is asked at most once a second, by the worker whose put
 * was refused, for at most PROVIDER_FETCH_NS; who comes meanwhile takes the last answer, and waits
 * for it when it is the first.
 *
 * Threads  Any.
 */
#ifndef STORE_MOONCAKE_PROVIDER_H
#define STORE_MOONCAKE_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mooncake/settings.h"
#include "os/os.h"

#define PROVIDER_PAUSE_NS UINT64_C(1000000000)
#define PROVIDER_FETCH_NS UINT64_C(1000000000)

/* Of the reason why nothing could be told. */
#define MOONCAKE_WHY_BYTES 64u

enum mooncake_pool_state {
	MOONCAKE_POOL_UNTOLD,   /* never asked, or nobody answered */
	MOONCAKE_POOL_PROVIDED, /* a segment is mounted: a refusal means full */
	MOONCAKE_POOL_EMPTY     /* none is */
};

/*
 * The body that a GET of the URL has, as much of it as fits, with *ret_bytes of it; false, with the
 * reason in ret_why, when there was no such answer within timeout_ns.
 */
typedef bool mooncake_fetch(void *context, const char *url, uint64_t timeout_ns, char *body,
			    size_t room, size_t *ret_bytes, char *ret_why, size_t why_bytes);

struct mooncake_provider {
	mooncake_fetch          *fetch;
	void                    *context;
	char                     url[MOONCAKE_TEXT_MAX + 32]; /* "" when there is no interface */
	struct os_mutex          mutex; /* guards all below; taken alone, never across a fetch */
	struct os_cond           told;  /* no longer asking */
	bool                     asking;
	bool                     heard; /* a question is over, with an answer or without */
	bool                     wanted; /* a put was refused */
	bool                     asked;
	uint64_t                 asked_ns; /* the last time */
	enum mooncake_pool_state state;
	char                     why[MOONCAKE_WHY_BYTES]; /* nothing could be told */
};

/* metrics: HOST:PORT or "".  fetch and context are held until fini. */
void mooncake_provider_init(struct mooncake_provider *provider, const char *metrics,
			    mooncake_fetch *fetch, void *context);
void mooncake_provider_fini(struct mooncake_provider *provider);

/* A put was refused for room: what of it? */
enum mooncake_pool_state mooncake_provider_ask(struct mooncake_provider *provider, uint64_t now_ns);

/* Bytes moved, so that somebody lends memory. */
void mooncake_provider_seen(struct mooncake_provider *provider);

/* As it was told last; never asks.  ret_why is "" unless a refusal is unexplained. */
enum mooncake_pool_state mooncake_provider_state(struct mooncake_provider *provider,
						 char ret_why[MOONCAKE_WHY_BYTES]);

#endif
