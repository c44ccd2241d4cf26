/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the public functions share: the handle they get, and how they look at arguments.
 *
 * A kvs is a shell that outlives its manager, so that a call after the close finds out; shells hang
 * on a list for the life of the process.
 */
#ifndef API_PARTS_H
#define API_PARTS_H

#include <kvstrata/manager.h>

#include "base/err.h"
#include "manager/manager.h"

/* The manager; NULL, with KVS_E_INVALID or KVS_E_CLOSED in *ret_rc, where there is none. */
struct manager *api_enter(struct kvs *kvs, int *ret_rc, struct kvs_error *err);

/* KVS_E_INVALID where a pointer that must be there is NULL. */
#define API_NEED(pointer, err) api_need(pointer, #pointer, err)
int api_need(const void *pointer, const char *name, struct kvs_error *err);

/* KVS_E_INVALID outside of 1 .. most. */
int api_count(uint32_t count, uint32_t most, struct kvs_error *err);

/*
 * A caller's struct, which begins with its struct_size, in ret: 0 where it is shorter than room.  0
 * is as long as room.  KVS_E_INVALID: longer, or too short for the field itself.
 */
int api_take(const char *name, const void *from, void *ret, size_t room, struct kvs_error *err);

/* A sentence for a code that has none yet. */
int api_explain(int rc, const char *subject, struct kvs_error *err);

#endif
