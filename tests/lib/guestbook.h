/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a naive Host would know: one list of objects, looked through from end to end, and what it
 * says of each row of each call.
 *
 * It does not know who is evicted; it is told (guestbook_evicted()), and asserts that it may be.
 * What the Host should tell its listeners is written down as expected.
 */
#ifndef LIB_GUESTBOOK_H
#define LIB_GUESTBOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "host/host.h"

#define GUESTBOOK_OBJECTS 160u
#define GUESTBOOK_CLIENTS 4u
#define GUESTBOOK_FIELDS 3u
#define GUESTBOOK_EXPECTED 1024u
#define GUESTBOOK_PAGE 4096u

enum guest_state { GUEST_NONE, GUEST_STAGED, GUEST_RESIDENT, GUEST_DOOMED };

struct guest_claim {
	uint32_t count;
	uint64_t expiry_ns;
};

struct guest_object {
	enum guest_state   state;
	struct kvs_key     key;
	struct kvs_span    span;
	uint64_t           mark; /* what its pages begin with */
	uint64_t           tag, expiry_ns;
	uint32_t           writer; /* client */
	bool               temporary, no_ttl, spent;
	uint32_t           pins;
	struct guest_claim claims[GUESTBOOK_CLIENTS];
};

struct guest_client {
	host_client id;
	bool        no_ttl;
};

struct guest_expected {
	enum host_event event;
	struct kvs_key  key;
};

struct guestbook {
	const struct host_options *options;
	uint64_t                   now_ns;
	uint64_t                   next_mark;
	struct guest_client        clients[GUESTBOOK_CLIENTS];
	struct guest_object        objects[GUESTBOOK_OBJECTS];
	struct guest_expected      expected[GUESTBOOK_EXPECTED];
	uint32_t                   expected_count;
	uint64_t                   counters[HOST_COUNTER_COUNT];
};

uint32_t guest_pages(const struct guest_object *object);
bool     guest_is_idle(const struct guest_object *object);

/* The resident or doomed object of a key; what a client stages under a tag; NULL. */
struct guest_object *guestbook_shown(struct guestbook *book, const struct kvs_key *key);
struct guest_object *guestbook_resident(struct guestbook *book, const struct kvs_key *key);
struct guest_object *guestbook_staged(struct guestbook *book, const struct kvs_key *key,
				      uint32_t client, uint64_t tag);
bool                 guestbook_is_staged(struct guestbook *book, const struct kvs_key *key);

void guestbook_expire_locks(struct guestbook *book);
void guestbook_expire_writes(struct guestbook *book);
/* An object left that the book does not expect to: it must be idle. */
void guestbook_evicted(struct guestbook *book, const struct kvs_key *key);

/* What a row of the call says, and what becomes of it. */
int guestbook_reserve(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		      uint64_t tag, uint64_t bytes);
/* Room was found. */
void guestbook_stage(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		     uint64_t tag, bool temporary, const struct kvs_span *span);
int  guestbook_finish(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		      uint64_t tag);
int  guestbook_finish_locked(struct guestbook *book, const struct kvs_key *key, uint32_t client,
			     uint64_t tag, uint32_t reader, uint32_t count,
			     struct kvs_span *ret_span);
int  guestbook_discard(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		       uint64_t tag);
int  guestbook_lock(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		    uint32_t count, struct kvs_span *ret_span);
int  guestbook_unlock(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		      uint32_t count);
int  guestbook_spans(struct guestbook *book, const struct kvs_key *key, uint32_t client,
		     struct kvs_span *ret_span);
int  guestbook_pin(struct guestbook *book, const struct kvs_key *key, struct kvs_span *ret_span);
void guestbook_unpin(struct guestbook *book, struct guest_object *object);
void guestbook_touch(struct guestbook *book, const struct kvs_key *key);
int  guestbook_remove(struct guestbook *book, const struct kvs_key *key, bool force);
void guestbook_clear(struct guestbook *book, const struct kvs_namespace *space, bool force,
		     uint64_t *ret_removed, uint64_t *ret_left);
void guestbook_client_close(struct guestbook *book, uint32_t client);

/* --- room ------------------------------------------------------------------------------------- */

/* Pages in a row that are free, when only objects that may not go are counted, or all. */
uint32_t guestbook_gap(const struct guestbook *book, bool with_idle);
/* Objects and bytes, with those that may go or without; of one namespace, or of all (NULL). */
uint32_t guestbook_count(const struct guestbook *book, bool with_idle);
uint64_t guestbook_bytes(const struct guestbook *book, const struct kvs_namespace *space,
			 bool with_idle);

/* What the Host counts. */
void guestbook_usage(const struct guestbook *book, struct host_usage *ret_usage);
/* Every object's bytes are what was written into them. */
void guestbook_check_bytes(const struct guestbook *book);

#endif
