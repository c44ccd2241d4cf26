/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of each namespace, and their quotas.
 *
 * A tenant is known from its first charge on.  It is a number below HOST_TENANTS_MAX, which stays
 * its own as long as bytes are charged to it or it has a quota of its own, other than that of
 * everybody; then it may be another's.
 *
 * Threads  Any: the table has a mutex, bytes are atomics.  A charge never takes a tenant past its
 *          quota, whatever others do at the same time.
 */
#ifndef HOST_TENANTS_H
#define HOST_TENANTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvstrata/base.h>

#include "base/map.h"
#include "os/os.h"

#define TENANT_NONE UINT32_MAX

struct tenant {
	struct kvs_namespace space;
	_Atomic uint64_t     bytes;
	_Atomic uint64_t     quota_bytes; /* 0: none */
	bool                 own_quota;
};

struct tenants {
	struct os_mutex mutex;
	struct map      map;
	struct tenant  *tenants;
	uint32_t        max;
	_Atomic uint32_t known;      /* numbers at and past it were never used */
	uint64_t        quota_bytes; /* of one without its own */
};

int  tenants_open(struct tenants *tenants, uint32_t max, uint64_t quota_bytes); /* 0, or -ENOMEM */
void tenants_close(struct tenants *tenants);

/*
 * Charge bytes to the tenant of a namespace.  0; KVS_E_CREDIT: past its quota; KVS_E_FULL: no
 * number left for it. *ret_tenant is set with 0 and with KVS_E_CREDIT.
 */
int tenants_charge(struct tenants *tenants, const struct kvs_namespace *space, uint64_t bytes,
		   uint32_t *ret_tenant);
/*
 * The same for a tenant that has bytes charged already, which stay while this runs.  False: past
 * its quota.
 */
bool tenants_charge_more(struct tenants *tenants, uint32_t tenant, uint64_t bytes);
void tenants_refund(struct tenants *tenants, uint32_t tenant, uint64_t bytes);

/* KVS_E_FULL: no number left. */
int  tenants_quota(struct tenants *tenants, const struct kvs_namespace *space, uint64_t quota_bytes,
		   uint32_t *ret_tenant);
bool tenants_look(struct tenants *tenants, const struct kvs_namespace *space, uint64_t *ret_bytes,
		  uint64_t *ret_quota);
/* More bytes than its quota has. */
bool tenants_exceeds(const struct tenants *tenants, uint32_t tenant);

static inline uint64_t tenants_bytes_of(const struct tenants *tenants, uint32_t tenant)
{
	/* Relaxed: whoever compares tenants wants to know about how much they have. */
	return atomic_load_explicit(&tenants->tenants[tenant].bytes, memory_order_relaxed);
}

size_t tenants_bytes(const struct tenants *tenants);

#endif
