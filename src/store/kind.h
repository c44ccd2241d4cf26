/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stores of this build: one table of functions each, and one line in store.c.
 */
#ifndef STORE_KIND_H
#define STORE_KIND_H

#include <kvstrata/store.h>

extern const struct kvs_store_ops store_fault_ops;
extern const struct kvs_store_ops store_mem_ops;
extern const struct kvs_store_ops store_mooncake_ops;
extern const struct kvs_store_ops store_nil_ops;
extern const struct kvs_store_ops store_resp_ops;
extern const struct kvs_store_ops store_strata_ops;

#endif
