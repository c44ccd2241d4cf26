/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kind of store gives to store_open(): one struct, store_kind_NAME, and one line in the
 * table of store.c.
 */
#ifndef STORE_KIND_H
#define STORE_KIND_H

#include <kvstrata/store.h>

#include "store/spec.h"

/* What a user of stores fixes, whatever the kind. */
struct store_setup {
	uint64_t    block_bytes;  /* a multiple of 4 KiB: the largest object */
	const char *evict_policy; /* a name of src/evict */
};

struct store_kind {
	const char        *name;
	const char *const *options; /* keys it takes, NULL-terminated */

	/* spec has passed spec_check() against options. */
	int (*open)(const struct store_spec *spec, const struct store_setup *setup,
		    struct kvs_store **ret_store, struct kvs_error *err);
};

#endif
