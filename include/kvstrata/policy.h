/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies of the controllers: which objects go to which store, and which store an object is loaded from.
 *
 * A policy is a table of functions.  Those of this library go by name; yours comes in a shared object,
 * loaded on first use by "plugin:./libmine.so".  What a policy answers is checked: adapters that do not
 * exist, and stores that did not find the key, are passed over and counted.
 *
 * Threads   A controller calls its policy from its one thread, without a lock; a policy that keeps state
 *           keeps it for one manager at a time, or guards it itself.  It returns soon: the controller waits
 *           for it.
 */
#ifndef KVSTRATA_POLICY_H
#define KVSTRATA_POLICY_H

#include <stdbool.h>

#include <kvstrata/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The shape of the tables below.  A plugin of another number is refused, with both numbers named. */
#define KVS_POLICY_ABI 1u

/* Adapters are numbered below it; a policy's answers are bits of one word. */
#define KVS_ADAPTERS_MAX 16u

/* An adapter is one store behind its executor.  Numbers stay as long as it is attached. */
struct kvs_adapter_info {
	uint32_t    number;         /* below KVS_ADAPTERS_MAX, from 0 in the order of the options */
	const char *name;           /* the KIND of its spec */
	uint64_t    capacity_bytes; /* 0 when unknown */
	uint64_t    used_bytes;
	bool        healthy;        /* not in cooldown */
};

/* Adapters come in the order of their numbers, those that are attached; there may be none. */
struct kvs_store_policy {
	const char *name;

	/* Bit n of targets[i]: put keys[i], of bytes[i], to adapter n.  All bits are clear before. */
	void (*targets)(const struct kvs_adapter_info *adapters, uint32_t adapter_count,
			const struct kvs_key *keys, const uint64_t *bytes, uint32_t count,
			uint64_t *targets);

	/*
	 * Keys of which no put is left and at least one succeeded: drop[i] true removes keys[i] from
	 * Host, unless somebody reads it.  All are false before.  NULL: none.
	 */
	void (*deletions)(const struct kvs_key *keys, uint32_t count, bool *drop);
};

#define KVS_NO_ADAPTER 255u

struct kvs_prefetch_policy {
	const char *name;

	/* Loaded objects stay in Host when their reader is done; else they go with their last lock. */
	bool retain;

	/*
	 * Keys of one request, in its order, that Host does not have.  found[i] has bit n when adapter n
	 * has keys[i], locked for this load.  Write the number of the adapter to load keys[i] from to
	 * from[i]; KVS_NO_ADAPTER, as all are before, for none: the prefix may end there.
	 */
	void (*plan)(const struct kvs_adapter_info *adapters, uint32_t adapter_count,
		     const struct kvs_key *keys, const uint64_t *found, uint32_t count,
		     uint8_t *from);
};

/* What a shared object offers; either may be NULL. */
struct kvs_policies {
	uint32_t                          abi; /* KVS_POLICY_ABI */
	const struct kvs_store_policy    *store;
	const struct kvs_prefetch_policy *prefetch;
};

typedef const struct kvs_policies *kvs_policies_entry(void);
#define KVS_POLICIES_SYMBOL "kvs_policies"

#define KVS_POLICIES(table) \
	KVS_PLUGIN_ENTRY const struct kvs_policies *kvs_policies(void); \
	const struct kvs_policies *kvs_policies(void) \
	{ \
		return &(table); \
	}

#ifdef __cplusplus
}
#endif

#endif
