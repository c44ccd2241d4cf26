/* SPDX-License-Identifier: Apache-2.0 */
/* Policies in a shared object: sound ones, and with one thing wrong each; ODD_* of the build says which. */
#include <kvstrata/policy.h>

/* Some builds leave it out. */
#define PART __attribute__((unused)) static

/* Even keys to the first adapter, the others to none. */
PART void even_ones(const struct kvs_adapter_info *adapters, uint32_t adapter_count,
		    const struct kvs_key *keys, const uint64_t *bytes, uint32_t count,
		    uint64_t *targets)
{
	uint32_t i;

	(void)bytes;
	for (i = 0; adapter_count > 0 && i < count; i++) {
		if (keys[i].offset % 2 == 0)
			targets[i] = UINT64_C(1) << adapters[0].number;
	}
}

/* The highest adapter that has it. */
PART void highest(const struct kvs_adapter_info *adapters, uint32_t adapter_count,
		  const struct kvs_key *keys, const uint64_t *found, uint32_t count, uint8_t *from)
{
	uint32_t i, a;

	(void)keys;
	for (i = 0; i < count; i++) {
		for (a = 0; a < adapter_count; a++) {
			if (found[i] >> adapters[a].number & 1)
				from[i] = (uint8_t)adapters[a].number;
		}
	}
}

PART const struct kvs_store_policy store = {
#ifndef ODD_NAMELESS
	.name = "even",
#endif
#ifndef ODD_TARGETLESS
	.targets = even_ones,
#endif
};

PART const struct kvs_prefetch_policy prefetch = {
#ifndef ODD_NAMELESS
	.name = "highest",
#endif
	.retain = true,
#ifndef ODD_PLANLESS
	.plan = highest,
#endif
};

static const struct kvs_policies policies = {
#ifdef ODD_ABI
	.abi = 4711,
#else
	.abi = KVS_POLICY_ABI,
#endif
#ifndef ODD_STORELESS
	.store = &store,
#endif
#ifndef ODD_PREFETCHLESS
	.prefetch = &prefetch,
#endif
};

#if defined(ODD_TABLELESS)
const struct kvs_policies *kvs_policies(void);
__attribute__((visibility("default"))) const struct kvs_policies *kvs_policies(void)
{
	return policies.abi ? NULL : &policies;
}
#elif defined(ODD_SYMBOLLESS)
__attribute__((visibility("default"))) const struct kvs_policies *odd_policies(void);
const struct kvs_policies *odd_policies(void)
{
	return &policies;
}
#else
KVS_POLICIES(policies)
#endif
