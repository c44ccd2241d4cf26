/* SPDX-License-Identifier: Apache-2.0 */
/* See policy.h.  A plugin's table is a stranger's: it is checked, never asserted. */
#include "ctrl/policy.h"

#include <string.h>

#include "base/text.h"
#include "os/os.h"

#define PLUGIN "plugin:"

/* --- our own ---------------------------------------------------------------------------------- */

static void to_every_adapter(const struct kvs_adapter_info *adapters, uint32_t adapter_count,
			     const struct kvs_key *keys, const uint64_t *bytes, uint32_t count,
			     uint64_t *targets)
{
	uint64_t all = 0;
	uint32_t i;

	(void)keys;
	(void)bytes;
	for (i = 0; i < adapter_count; i++)
		all |= UINT64_C(1) << adapters[i].number;
	for (i = 0; i < count; i++)
		targets[i] = all;
}

static void drop_all(const struct kvs_key *keys, uint32_t count, bool *drop)
{
	(void)keys;
	memset(drop, true, count * sizeof(*drop));
}

static void from_the_lowest(const struct kvs_adapter_info *adapters, uint32_t adapter_count,
			    const struct kvs_key *keys, const uint64_t *found, uint32_t count,
			    uint8_t *from)
{
	uint32_t i;

	(void)adapters;
	(void)adapter_count;
	(void)keys;
	for (i = 0; i < count; i++) {
		if (found[i] != 0)
			from[i] = (uint8_t)__builtin_ctzll(found[i]);
	}
}

static const struct kvs_store_policy store_default = { .name = "default",
						       .targets = to_every_adapter };
static const struct kvs_store_policy store_skip_host = { .name = "skip-host",
							 .targets = to_every_adapter,
							 .deletions = drop_all };
static const struct kvs_prefetch_policy prefetch_default = { .name = "default",
							     .plan = from_the_lowest };
static const struct kvs_prefetch_policy prefetch_retain = { .name = "retain",
							    .retain = true,
							    .plan = from_the_lowest };

/* --- by name ---------------------------------------------------------------------------------- */

#define STORE_POLICIES(X) \
	X("default", &store_default) \
	X("skip-host", &store_skip_host)
#define PREFETCH_POLICIES(X) \
	X("default", &prefetch_default) \
	X("retain", &prefetch_retain)

#define NAME(name, policy) name,
#define POLICY(name, policy) policy,

const char *const store_policy_names[] = { STORE_POLICIES(NAME) NULL };
const char *const prefetch_policy_names[] = { PREFETCH_POLICIES(NAME) NULL };

static const struct kvs_store_policy *const    store_policies[] = { STORE_POLICIES(POLICY) };
static const struct kvs_prefetch_policy *const prefetch_policies[] = { PREFETCH_POLICIES(POLICY) };

/* Its place in the list, or that of the NULL at its end. */
static size_t place_of(const char *const *names, const char *name)
{
	size_t i = 0;

	while (names[i] && strcmp(names[i], name) != 0)
		i++;
	return i;
}

static int refuse_unknown(const char *field, const char *name, const char *const *names,
			  struct kvs_error *err)
{
	char known[80];

	return err_set(err, KVS_E_INVALID,
		       "%s: \"%.40s\" is not known; use one of: %s " PLUGIN "./NAME.so", field, name,
		       text_join(names, " ", known, sizeof(known)));
}

/* --- from a shared object --------------------------------------------------------------------- */

/* What follows abi has its shape from abi, so that is checked before all else. */
static int check_policies(const struct kvs_policies *policies, struct kvs_error *err)
{
	if (!policies) {
		return err_set(err, KVS_E_PROTO, "hands out no table: its %s() returned NULL",
			       KVS_POLICIES_SYMBOL);
	}
	if (policies->abi != KVS_POLICY_ABI) {
		return err_set(err, KVS_E_PROTO,
			       "has policy ABI %u, this build has %u; build it against this build's "
			       "kvstrata/policy.h",
			       policies->abi, KVS_POLICY_ABI);
	}
	return 0;
}

/* Says why a shared object's policy of a kind cannot be used. */
typedef int check_policy(const struct kvs_policies *policies, struct kvs_error *err);

static int lacks(const char *what, struct kvs_error *err)
{
	return err_set(err, KVS_E_PROTO, "has no %s; kvstrata/policy.h says what may be NULL", what);
}

static int check_store(const struct kvs_policies *policies, struct kvs_error *err)
{
	if (!policies->store)
		return lacks("store policy", err);
	if (!policies->store->name)
		return lacks("name in its store policy", err);
	return policies->store->targets ? 0 : lacks("targets() in its store policy", err);
}

static int check_prefetch(const struct kvs_policies *policies, struct kvs_error *err)
{
	if (!policies->prefetch)
		return lacks("prefetch policy", err);
	if (!policies->prefetch->name)
		return lacks("name in its prefetch policy", err);
	return policies->prefetch->plan ? 0 : lacks("plan() in its prefetch policy", err);
}

static int policies_of(void *library, check_policy *check, const struct kvs_policies **ret_policies,
		       struct kvs_error *err)
{
	kvs_policies_entry        *entry;
	const struct kvs_policies *policies;
	void                      *symbol = os_library_symbol(library, KVS_POLICIES_SYMBOL);
	int                        rc;

	if (!symbol) {
		return err_set(err, KVS_E_PROTO, "is no policy plugin: it exports no %s",
			       KVS_POLICIES_SYMBOL);
	}
	/* ISO C has no cast from an object's address to a function's; POSIX has the conversion. */
	memcpy(&entry, &symbol, sizeof(entry));
	policies = entry();
	rc = check_policies(policies, err);
	if (rc == 0)
		rc = check(policies, err);
	if (rc == 0)
		*ret_policies = policies;
	return rc;
}

static int load(const char *field, const char *path, check_policy *check,
		const struct kvs_policies **ret_policies, struct kvs_error *err)
{
	char  why[160];
	void *library;
	int   rc;

	/* The loader would look for a bare name in places that the user did not write down. */
	if (!strchr(path, '/')) {
		return err_set(err, KVS_E_INVALID,
			       "%s: \"%.64s\" is no path with a /; write " PLUGIN "./NAME.so", field,
			       path);
	}
	if (!os_library_load(path, &library, why, sizeof(why)))
		return err_set(err, KVS_E_INVALID, "%s: %s", field, why);
	rc = policies_of(library, check, ret_policies, err);
	if (rc < 0) {
		err_prefix(err, "%s: \"%.96s\"", field, path);
		os_library_unload(library);
	}
	return rc;
}

static bool is_plugin(const char *name)
{
	return strncmp(name, PLUGIN, strlen(PLUGIN)) == 0;
}

int store_policy_find(const char *name, const struct kvs_store_policy **ret_policy,
		      struct kvs_error *err)
{
	static const char          field[] = "store policy";
	const struct kvs_policies *policies;
	const size_t               place = place_of(store_policy_names, name);
	int                        rc;

	if (store_policy_names[place]) {
		*ret_policy = store_policies[place];
		return 0;
	}
	if (!is_plugin(name))
		return refuse_unknown(field, name, store_policy_names, err);
	rc = load(field, name + strlen(PLUGIN), check_store, &policies, err);
	if (rc == 0)
		*ret_policy = policies->store;
	return rc;
}

int prefetch_policy_find(const char *name, const struct kvs_prefetch_policy **ret_policy,
			 struct kvs_error *err)
{
	static const char          field[] = "prefetch policy";
	const struct kvs_policies *policies;
	const size_t               place = place_of(prefetch_policy_names, name);
	int                        rc;

	if (prefetch_policy_names[place]) {
		*ret_policy = prefetch_policies[place];
		return 0;
	}
	if (!is_plugin(name))
		return refuse_unknown(field, name, prefetch_policy_names, err);
	rc = load(field, name + strlen(PLUGIN), check_prefetch, &policies, err);
	if (rc == 0)
		*ret_policy = policies->prefetch;
	return rc;
}
