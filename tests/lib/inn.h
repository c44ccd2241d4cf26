/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Host of a few pages for tests, with two clients, a clock and a listener that writes down what
 * it hears.
 *
 * Keys are those of named_block.h; an object's bytes follow from its number.  The one-key calls
 * return the row's
 * code.  inn_close() asserts that every lock, pin and reservation is home.
 */
#ifndef LIB_INN_H
#define LIB_INN_H

#include <stdbool.h>
#include <stdint.h>

#include "host/host.h"

#define INN_PAGE 4096u
#define INN_HEARD_MAX 4096u
#define INN_WRITE_TTL 600u
#define INN_READ_TTL 300u

struct inn_heard {
	enum host_event event;
	struct kvs_key  key;
	uint64_t        sequence;
};

struct inn {
	struct host        *host;
	struct host_options options;
	struct kvs_span     fields[4];
	void               *memory;
	host_client         client, other;
	uint64_t            now_ns;
	struct inn_heard    heard[INN_HEARD_MAX];
	uint32_t            heard_count;
	uint32_t            calls; /* of the listener */
	uint32_t            presses;
};

/* Options of one shard over `pages` pages in one field; change them, then inn_open(). */
void inn_init(struct inn *inn, uint32_t pages);
void inn_open(struct inn *inn);
/* Closes both clients, asserts that nothing is held, audits. */
void inn_close(struct inn *inn);

struct host_usage inn_usage(struct inn *inn);

/* One key each. */
int inn_reserve(struct inn *inn, uint32_t number, uint64_t bytes, unsigned flags);
int inn_reserve_as(struct inn *inn, struct host_writer writer, uint32_t number, uint64_t bytes,
		   unsigned flags);
int inn_finish(struct inn *inn, uint32_t number);
int inn_finish_as(struct inn *inn, struct host_writer writer, uint32_t number);
int inn_finish_locked(struct inn *inn, uint32_t number, uint32_t locks);
int inn_discard(struct inn *inn, uint32_t number);
int inn_lock(struct inn *inn, host_client client, uint32_t number, uint32_t locks);
int inn_unlock(struct inn *inn, host_client client, uint32_t number, uint32_t locks);
int inn_spans(struct inn *inn, host_client client, uint32_t number);
int inn_remove(struct inn *inn, uint32_t number, bool force);
bool inn_has(struct inn *inn, uint32_t number);
void inn_touch(struct inn *inn, uint32_t number);
int inn_pin(struct inn *inn, uint32_t number, struct host_pin *ret_pin);

/* Resident, of one page, or of so many bytes, filled. */
void inn_put(struct inn *inn, uint32_t number);
void inn_put_bytes(struct inn *inn, uint32_t number, uint64_t bytes);

/* The span that the last one-key call gave. */
extern struct kvs_span inn_span;

/* How often an event of a key was heard; since inn_deaf() forgot all. */
uint32_t inn_heard_of(const struct inn *inn, enum host_event event, uint32_t number);
void     inn_deaf(struct inn *inn);

#endif
