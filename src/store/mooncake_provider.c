/* SPDX-License-Identifier: Apache-2.0 */
/* The network is asked outside the lock; `asking` keeps it to one at a time. */
#include "store/mooncake_provider.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* One name is enough to know. */
#define BODY_BYTES 256u

void mooncake_provider_init(struct mooncake_provider *provider, const char *metrics,
			    mooncake_fetch *fetch, void *context)
{
	*provider = (struct mooncake_provider){ .fetch = fetch, .context = context };
	os_mutex_init(&provider->mutex);
	os_cond_init(&provider->told);
	if (*metrics) {
		snprintf(provider->url, sizeof(provider->url), "http://%s/get_all_segments",
			 metrics);
	} else {
		snprintf(provider->why, sizeof(provider->why), "metrics= is not set");
	}
}

void mooncake_provider_fini(struct mooncake_provider *provider)
{
	KVS_ASSERT(!provider->asking);
	os_cond_fini(&provider->told);
	os_mutex_fini(&provider->mutex);
}

static bool is_blank(const char *body, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++) {
		if (!body[i] || !strchr(" \t\r\n", body[i]))
			return false;
	}
	return true;
}

static enum mooncake_pool_state look(const struct mooncake_provider *provider,
				    char ret_why[MOONCAKE_WHY_BYTES])
{
	char   body[BODY_BYTES];
	size_t bytes = 0;

	*ret_why = '\0';
	if (!provider->fetch(provider->context, provider->url, PROVIDER_FETCH_NS, body,
			     sizeof(body), &bytes, ret_why, MOONCAKE_WHY_BYTES))
		return MOONCAKE_POOL_UNTOLD;
	return is_blank(body, bytes) ? MOONCAKE_POOL_EMPTY : MOONCAKE_POOL_PROVIDED;
}

/* Ends, because who asks is bounded by the question's time. */
static void wait_for_the_first(struct mooncake_provider *provider)
{
	while (provider->asking && !provider->heard)
		os_cond_wait(&provider->told, &provider->mutex, PROVIDER_FETCH_NS);
}

/* Under the lock: whether this caller is the one to ask. */
static bool may_ask(struct mooncake_provider *provider, uint64_t now_ns)
{
	if (!*provider->url || provider->asking ||
	    (provider->asked && now_ns < provider->asked_ns + PROVIDER_PAUSE_NS))
		return false;
	provider->asking = true;
	provider->asked = true;
	provider->asked_ns = now_ns;
	return true;
}

enum mooncake_pool_state mooncake_provider_ask(struct mooncake_provider *provider, uint64_t now_ns)
{
	enum mooncake_pool_state state;
	char                     why[sizeof(provider->why)];
	bool                     asks;

	os_mutex_lock(&provider->mutex);
	provider->wanted = true;
	asks = may_ask(provider, now_ns);
	if (!asks)
		wait_for_the_first(provider);
	state = provider->state;
	os_mutex_unlock(&provider->mutex);
	if (!asks)
		return state;
	state = look(provider, why);
	os_mutex_lock(&provider->mutex);
	provider->asking = false;
	provider->heard = true;
	os_cond_broadcast(&provider->told);
	provider->state = state;
	memcpy(provider->why, why, sizeof(why));
	os_mutex_unlock(&provider->mutex);
	return state;
}

void mooncake_provider_seen(struct mooncake_provider *provider)
{
	os_mutex_lock(&provider->mutex);
	if (provider->state == MOONCAKE_POOL_EMPTY)
		provider->state = MOONCAKE_POOL_PROVIDED;
	os_mutex_unlock(&provider->mutex);
}

enum mooncake_pool_state mooncake_provider_state(struct mooncake_provider *provider,
						 char ret_why[MOONCAKE_WHY_BYTES])
{
	enum mooncake_pool_state state;

	os_mutex_lock(&provider->mutex);
	state = provider->state;
	memcpy(ret_why, provider->why, sizeof(provider->why));
	if (!provider->wanted)
		*ret_why = '\0';
	os_mutex_unlock(&provider->mutex);
	return state;
}
