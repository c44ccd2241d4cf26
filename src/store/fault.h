/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that fails on purpose, around any other: for tests.  fault_plan.h has its plan.
 *
 *   fault:PLAN.json     the plan names the inner store
 *
 * A row on which a fault falls does not reach the inner store, except for short and corrupt, whose
 * wrong bytes come after the inner store's check: that is what a store without verification does.
 * The rows between go to it in batches.
 */
#ifndef STORE_FAULT_H
#define STORE_FAULT_H

#include <kvstrata/store.h>

/* All for a store of kind fault. */

/* Let the calls that are lost now go on, late, as if nothing had been. */
void store_fault_release(struct kvs_store *store);

/* Let late writes that are pending land now; when this returns they have. */
void store_fault_land(struct kvs_store *store);

/* Calls that are delayed or lost now. */
uint32_t store_fault_held(struct kvs_store *store);

/* How often fault `number` of the plan has fallen. */
uint64_t store_fault_count(struct kvs_store *store, uint32_t number);

#endif
