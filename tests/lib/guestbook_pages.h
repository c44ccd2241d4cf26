/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the guest book. */
#ifndef LIB_GUESTBOOK_PAGES_H
#define LIB_GUESTBOOK_PAGES_H

#include "guestbook.h"

#define EACH_GUEST(book, object) \
	for ((object) = (book)->objects; (object) < (book)->objects + GUESTBOOK_OBJECTS; (object)++)

bool     guest_is_key(const struct guest_object *object, const struct kvs_key *key);
uint32_t guest_locks(const struct guest_object *object);

void guestbook_expect(struct guestbook *book, enum host_event event, const struct kvs_key *key);
/* It is gone, and told as removed when it was resident. */
void     guestbook_leave(struct guestbook *book, struct guest_object *object);
uint64_t guestbook_until(const struct guestbook *book, uint32_t client, uint64_t ttl_ns);
/* KVS_E_FULL, which is counted, or 0. */
int  guestbook_may_lock(struct guestbook *book, const struct guest_object *object, uint32_t client,
			uint32_t count);
void guestbook_take_locks(struct guestbook *book, struct guest_object *object, uint32_t client,
			  uint32_t count);
void guestbook_give_locks(struct guestbook *book, struct guest_object *object, uint32_t client,
			  uint32_t count);

#endif
