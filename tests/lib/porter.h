/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries every call to a Host and to the guest book of a naive one, and compares what they say:
 * codes, spans, events, sums, bytes.
 */
#ifndef LIB_PORTER_H
#define LIB_PORTER_H

#include <stdbool.h>
#include <stdint.h>

#include "guestbook.h"
#include "host/host.h"

#define PORTER_KEYS 14u
#define PORTER_SPACES 3u
#define PORTER_ROWS 4u
#define PORTER_PINS 8u
#define PORTER_HEARD 1024u
#define PORTER_FIELD_PAGES 28u

struct pinned {
	bool            taken;
	struct host_pin pin;
	struct kvs_span span; /* names the object, whatever becomes of its key */
};

struct porter {
	struct host          *host;
	struct host_options   options;
	struct kvs_span       fields[GUESTBOOK_FIELDS];
	uint8_t              *memory;
	struct guestbook      book;
	struct pinned         pins[PORTER_PINS];
	bool                  lazy; /* time passes without host_expire() */
	bool                  relieving; /* past one mark, not yet at the other */
	struct guest_expected heard[PORTER_HEARD];
	uint32_t              heard_count;
	uint64_t              sequences[PORTER_KEYS]; /* the last of each key */
	uint64_t              quotas[PORTER_SPACES];
};

/* What a call is about. */
struct porter_batch {
	uint32_t           count;
	uint32_t           client, reader, locks;
	uint64_t           tag;
	struct host_writer writer;
	struct kvs_key     keys[PORTER_ROWS];
	uint64_t           bytes[PORTER_ROWS];
	struct kvs_span    spans[PORTER_ROWS];
	int                rc[PORTER_ROWS];
};

struct kvs_namespace porter_space(uint32_t number);
struct kvs_key       porter_key(uint32_t number);

/* --- calls ------------------------------------------------------------------------------------ */

void porter_reserve(struct porter *porter, struct porter_batch *batch, unsigned flags);
void porter_finish(struct porter *porter, struct porter_batch *batch);
void porter_finish_locked(struct porter *porter, struct porter_batch *batch, uint32_t locks);
void porter_discard(struct porter *porter, struct porter_batch *batch);
void porter_lock(struct porter *porter, struct porter_batch *batch);
void porter_unlock(struct porter *porter, struct porter_batch *batch);
void porter_spans(struct porter *porter, struct porter_batch *batch);
void porter_touch(struct porter *porter, struct porter_batch *batch);
void porter_pin(struct porter *porter, struct porter_batch *batch);
void porter_unpin(struct porter *porter, uint32_t from);
void porter_remove(struct porter *porter, struct porter_batch *batch, bool force);
void porter_clear(struct porter *porter, const struct kvs_namespace *space, bool force);

void porter_open_client(struct porter *porter, uint32_t client);
void porter_reopen_client(struct porter *porter, uint32_t client);
void porter_pass(struct porter *porter, uint32_t ns);
void porter_relieve(struct porter *porter, uint32_t object_max);
void porter_quota(struct porter *porter, uint32_t space, uint32_t pages);

/* --- comparing -------------------------------------------------------------------------------- */

/* A listener to everything; arg is the porter. */
void porter_hear(void *arg, const struct host_notice *notice);
/* Who left without a reason that the book knows was evicted: how many. */
uint32_t porter_note_evicted(struct porter *porter);
/* In the book only: the Host does it with its next call. */
void porter_expire(struct porter *porter);

/* After each call. */
void porter_compare(struct porter *porter);

#endif
