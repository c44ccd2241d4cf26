/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager: Host objects, their stores and both controllers as one thing.
 *
 * It owns the arena, the Host, the adapters, the controllers, and the tables of clients and of
 * prefetches.  Public functions (api/) check arguments and call it; its meaning is
 * kvstrata/manager.h's.  Here is what only the library sees.
 *
 * Clients    are the user's; each is a client of Host, too.  A prefetch is a client of Host by
 *            itself: its release is that client's close, so that locks which expired are never
 *            given back for somebody else's.
 * Upkeep     One thread: expires what is due and brings Host below its watermark, when pressed and
 *            once a second.
 * Closing    Prefetch controller, store controller, adapters, clients, Host, arena.
 * Limits     Those of the options; nothing allocates after open, but attaching a store and
 *            kvs_metrics().
 * Threads    Any, but open and close.  ARCHITECTURE.md has the locks.
 *
 * Arguments were checked: pointers are there, counts within KVS_BATCH_MAX, those of prefetches
 * within prefetch_keys.
 */
#ifndef MANAGER_MANAGER_H
#define MANAGER_MANAGER_H

#include <kvstrata/manager.h>
#include <kvstrata/store.h>

#include "base/err.h"

struct manager;

/* options are complete (struct_size and all).  Errors as kvs_open()'s. */
int manager_open(const struct kvs_options *options, struct manager **ret_manager,
		 struct kvs_error *err);

/*
 * 0: all is gone.  KVS_E_QUARANTINE: what is in doubt stays, the rest is closed; never call it
 * again.
 */
int manager_close(struct manager *manager);

/* Of the options. */
uint32_t manager_prefetch_keys(const struct manager *manager);

/* --- clients ---------------------------------------------------------------------------------- */

/* KVS_E_FULL, -errno. */
int manager_client_open(struct manager *manager, kvs_client *ret_client);

/* These answer KVS_E_STALE where client is none. */
int manager_client_close(struct manager *manager, kvs_client client);
int manager_client_fd(struct manager *manager, kvs_client client);

/* --- batches ---------------------------------------------------------------------------------- */

int manager_reserve(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		    uint32_t count, const struct kvs_write *write, struct kvs_span *ret_spans,
		    int *ret_rc);
int manager_finish(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		   uint32_t count, int *ret_rc);
int manager_discard(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		    uint32_t count, int *ret_rc);
int manager_lock(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		 uint32_t count, struct kvs_span *ret_spans, int *ret_rc);
int manager_unlock(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		   uint32_t count, int *ret_rc);

int  manager_touch(struct manager *manager, const struct kvs_key *keys, uint32_t count);
int  manager_remove(struct manager *manager, const struct kvs_key *keys, uint32_t count, bool force,
		    int *ret_rc);
void manager_clear(struct manager *manager, const struct kvs_namespace *space, bool force,
		   uint64_t *ret_removed, uint64_t *ret_left);
int  manager_quota(struct manager *manager, const struct kvs_namespace *tenant, uint64_t bytes);

/* --- prefetches ------------------------------------------------------------------------------- */

int manager_submit(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		   uint32_t count, const struct kvs_ask *ask, kvs_prefetch *ret_prefetch,
		   struct kvs_error *err);
int manager_info(struct manager *manager, kvs_prefetch prefetch,
		 struct kvs_prefetch_info *ret_info);
int manager_poll(struct manager *manager, kvs_prefetch prefetch, uint32_t *ret_chunks);
int manager_wait(struct manager *manager, kvs_prefetch prefetch, uint64_t timeout_ns,
		 uint32_t *ret_chunks);
int manager_spans(struct manager *manager, kvs_prefetch prefetch, struct kvs_span *ret_spans,
		  uint32_t span_max, uint32_t *ret_count);
int manager_read(struct manager *manager, kvs_prefetch prefetch,
		 int (*use)(void *arg, const struct kvs_span *spans, uint32_t count), void *arg);
int manager_release(struct manager *manager, kvs_prefetch prefetch);

/* --- stores ----------------------------------------------------------------------------------- */

int manager_store_add(struct manager *manager, const char *spec, uint32_t *ret_number,
		      struct kvs_error *err);
/* The same with one that is open, and the manager's from now on, whatever comes of it. */
int manager_store_take(struct manager *manager, struct kvs_store *store, uint32_t *ret_number,
		       struct kvs_error *err);
int manager_store_remove(struct manager *manager, uint32_t number, uint64_t timeout_ns,
			 struct kvs_error *err);
int manager_flush(struct manager *manager, uint64_t timeout_ns);

/* --- figures ---------------------------------------------------------------------------------- */

/* All fields but struct_size. */
void manager_status(struct manager *manager, struct kvs_status *ret_status);

/* -ENOMEM, or the length of the text, cut to room, as snprintf() does. */
int manager_metrics(struct manager *manager, char *ret_text, size_t room);

/* Tables, Host and adapters; exact when nobody else calls. */
void manager_audit(struct manager *manager);

#endif
