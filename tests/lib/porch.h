/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Door B with one client, as a user of the library stands before it; and what lies behind the door.
 *
 * Keys and bytes are those of named_block.h.  Calls assert that they succeed; those that may not
 * are made by the test itself.  porch_close() asserts that everything is home.
 */
#ifndef LIB_PORCH_H
#define LIB_PORCH_H

#include <kvstrata/kvstrata.h>
#include <kvstrata/store.h>

#include "manager/manager.h"

#define PORCH_BYTES 4096u /* of an object, unless a test says otherwise */
#define PORCH_KEYS 512u   /* of one call here */

struct porch {
	struct kvs     *kvs;
	kvs_client      me;
	uint64_t        bytes;
	struct kvs_key  keys[PORCH_KEYS];
	struct kvs_span spans[PORCH_KEYS];
	int             rc[PORCH_KEYS];
};

/*
 * A Host of 8 MiB, objects of up to 64 KiB, small tables, no store; change them, then porch_open().
 */
struct kvs_options porch_options(void);
void               porch_open(struct porch *porch, const struct kvs_options *options);
/* With options as they are, and one store; NULL: none. */
void porch_open_on(struct porch *porch, const char *spec);
/* Close the client, wait until all is home, close. */
void porch_close(struct porch *porch);

/* Behind the door. */
struct manager *porch_manager(struct porch *porch);
/* A store of the test's own; its number. */
uint32_t porch_attach(struct porch *porch, struct kvs_store *store);

/* The same of kind fault, around mem, with the faults of a plan (store/fault_plan.h). */
struct kvs_store *porch_attach_faulty(struct porch *porch, const char *faults);

/* Keys of first .. first + count - 1; returns them. */
const struct kvs_key *porch_name(struct porch *porch, uint32_t first, uint32_t count);

/* Reserve, fill, finish. */
void porch_write_as(struct porch *porch, kvs_client client, uint32_t first, uint32_t count);
void porch_write(struct porch *porch, uint32_t first, uint32_t count);
/* Until the stores have all of it; then nothing is in Host. */
void porch_flush(struct porch *porch);
void porch_leave_host(struct porch *porch);
/* The same, of some keys. */
void porch_leave_host_of(struct porch *porch, uint32_t first, uint32_t count);

/* How many of them Host has. */
uint32_t porch_resident(struct porch *porch, uint32_t first, uint32_t count);

/* ask's bytes are the porch's; NULL: plain. */
kvs_prefetch porch_submit(struct porch *porch, uint32_t first, uint32_t count,
			  const struct kvs_ask *ask);
uint32_t     porch_wait(struct porch *porch, kvs_prefetch prefetch);
/* Spans of a result hold the bytes of their numbers; how many there are that are not zeroed. */
uint32_t porch_check(struct porch *porch, kvs_prefetch prefetch, uint32_t first);
void     porch_release(struct porch *porch, kvs_prefetch prefetch);
/* All of it; chunks that could be used. */
uint32_t porch_fetch(struct porch *porch, uint32_t first, uint32_t count);

struct kvs_status porch_status(struct porch *porch);
/* Waits until so many keys came from stores, and no more did: controllers tell a little later. */
void              porch_await_loaded(struct porch *porch, uint64_t count);
/* Waits for what ends in the background: no lock, pin, reservation or request is left. */
void porch_await_home(struct porch *porch);

#endif
