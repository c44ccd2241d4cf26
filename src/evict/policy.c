/* SPDX-License-Identifier: Apache-2.0 */
/* The table of policies. */
#include "evict/policy.h"

#include <string.h>

#include "base/err.h"
#include "base/text.h"

/* Those that give victims. */
#define POLICIES(X) \
	X("lru", evict_lru) \
	X("fifo", evict_fifo) \
	X("lru-leaf", evict_lru_leaf) \
	X("s3fifo", evict_s3fifo) \
	X("host-order", evict_host_order) \
	X("arc", evict_arc)

#define NONE "none"

#define NAME(name, policy) name,
const char *const evict_names[] = { POLICIES(NAME) NONE, NULL };
const char *const evict_giving_names[] = { POLICIES(NAME) NULL };
#undef NAME

#define POLICY(name, policy) &(policy),
static const struct evict_policy *const policies[] = { POLICIES(POLICY) &evict_none };
#undef POLICY

const struct evict_policy *evict_policy_of(const char *name)
{
	size_t i;

	for (i = 0; evict_names[i]; i++) {
		if (strcmp(evict_names[i], name) == 0)
			return policies[i];
	}
	return NULL;
}

static int refuse(const char *name, const char *why, const char *const *names,
		  struct kvs_error *err)
{
	char list[80];

	return err_set(err, KVS_E_INVALID, "policy: \"%.40s\" %s; use one of: %s", name, why,
		       text_join(names, " ", list, sizeof(list)));
}

int evict_known(const char *name, struct kvs_error *err)
{
	return evict_policy_of(name) ? 0 : refuse(name, "is not known", evict_names, err);
}

int evict_gives(const char *name, struct kvs_error *err)
{
	if (!evict_policy_of(name))
		return refuse(name, "is not known", evict_giving_names, err);
	if (strcmp(name, NONE) == 0)
		return refuse(name, "never makes room", evict_giving_names, err);
	return 0;
}
