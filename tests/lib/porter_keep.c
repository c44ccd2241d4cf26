/* SPDX-License-Identifier: Apache-2.0 */
/* Upkeep, events, and the comparison of everything. */
#include "porter.h"

#include <string.h>

#include "base/bits.h"
#include "base/err.h"

/* --- events ----------------------------------------------------------------------------------- */

void porter_hear(void *arg, const struct host_notice *notice)
{
	struct porter *const porter = arg;
	uint32_t             i;

	for (i = 0; i < notice->count; i++) {
		uint64_t *const last = &porter->sequences[notice->keys[i].offset];

		KVS_ASSERT_CMP(porter->heard_count, <, PORTER_HEARD);
		porter->heard[porter->heard_count++] = (struct guest_expected){ notice->event,
										notice->keys[i] };
		KVS_ASSERT_CMP(notice->sequences[i], !=, *last);
		if (notice->sequences[i] > *last)
			*last = notice->sequences[i];
	}
}

static uint32_t count_event(const struct guest_expected *list, uint32_t count,
			    const struct guest_expected *event)
{
	uint32_t found = 0, i;

	for (i = 0; i < count; i++) {
		found += list[i].event == event->event &&
			 memcmp(&list[i].key, &event->key, sizeof(event->key)) == 0;
	}
	return found;
}

static uint32_t heard(const struct porter *porter, enum host_event event, const struct kvs_key *key)
{
	const struct guest_expected one = { event, *key };

	return count_event(porter->heard, porter->heard_count, &one);
}

static uint32_t expected(const struct porter *porter, enum host_event event,
			 const struct kvs_key *key)
{
	const struct guest_expected one = { event, *key };

	return count_event(porter->book.expected, porter->book.expected_count, &one);
}

/* Who left without a reason that the book knows was evicted. */
uint32_t porter_note_evicted(struct porter *porter)
{
	uint32_t evicted = 0, number;

	for (number = 0; number < PORTER_KEYS; number++) {
		const struct kvs_key key = porter_key(number);

		while (heard(porter, HOST_REMOVED, &key) > expected(porter, HOST_REMOVED, &key)) {
			guestbook_evicted(&porter->book, &key);
			evicted++;
		}
	}
	return evicted;
}

static void compare_events(struct porter *porter)
{
	uint32_t event, number;

	for (number = 0; number < PORTER_KEYS; number++) {
		const struct kvs_key key = porter_key(number);

		for (event = 0; event < HOST_EVENT_COUNT; event++) {
			KVS_ASSERT_CMP(heard(porter, event, &key), ==,
				       expected(porter, event, &key));
		}
	}
	porter->heard_count = 0;
	porter->book.expected_count = 0;
}

/* --- upkeep ----------------------------------------------------------------------------------- */

void porter_open_client(struct porter *porter, uint32_t client)
{
	struct guest_client *const entry = &porter->book.clients[client];

	entry->no_ttl = client == GUESTBOOK_CLIENTS - 1;
	KVS_ASSERT(host_client_open(porter->host, entry->no_ttl ? HOST_NO_TTL : 0, &entry->id) ==
		   0);
}

void porter_reopen_client(struct porter *porter, uint32_t client)
{
	const host_client id = porter->book.clients[client].id;

	KVS_ASSERT(host_client_close(porter->host, id, porter->book.now_ns) == 0);
	guestbook_client_close(&porter->book, client);
	KVS_ASSERT_CMP(-host_client_close(porter->host, id, porter->book.now_ns), ==,
		       -KVS_E_CLOSED);
	porter_open_client(porter, client);
	KVS_ASSERT(porter->book.clients[client].id != id);
}

void porter_pass(struct porter *porter, uint32_t ns)
{
	porter->book.now_ns += ns;
	if (porter->lazy)
		return;
	host_expire(porter->host, porter->book.now_ns);
	porter_expire(porter);
}

static uint64_t mark_bytes(double part)
{
	return (uint64_t)(part * PORTER_FIELD_PAGES * GUESTBOOK_FIELDS) * GUESTBOOK_PAGE;
}

/* Past one mark it begins, at the other it ends. */
static void note_marks(struct porter *porter)
{
	const uint64_t used = guestbook_bytes(&porter->book, NULL, true);

	if (used > mark_bytes(porter->options.high))
		porter->relieving = true;
	else if (used <= mark_bytes(porter->options.low))
		porter->relieving = false;
}

void porter_relieve(struct porter *porter, uint32_t object_max)
{
	struct guestbook *const book = &porter->book;
	uint32_t                gone;

	porter_expire(porter);
	note_marks(porter);
	gone = host_relieve(porter->host, book->now_ns, object_max);
	KVS_ASSERT_CMP(porter_note_evicted(porter), ==, gone);
	if (!porter->relieving)
		KVS_ASSERT_CMP(gone, ==, 0);
	note_marks(porter);
	if (porter->relieving && gone < object_max)
		KVS_ASSERT_CMP(guestbook_count(book, true), ==, guestbook_count(book, false));
}

void porter_quota(struct porter *porter, uint32_t space, uint32_t pages)
{
	const struct kvs_namespace name = porter_space(space);
	const uint64_t             quota = (uint64_t)pages * GUESTBOOK_PAGE;

	if (!porter->options.isolate) {
		KVS_ASSERT_CMP(-host_quota(porter->host, &name, quota, porter->book.now_ns), ==,
			       -KVS_E_UNSUPPORTED);
		return;
	}
	porter_expire(porter);
	KVS_ASSERT(host_quota(porter->host, &name, quota, porter->book.now_ns) == 0);
	(void)porter_note_evicted(porter);
	porter->quotas[space] = quota;
	if (quota && guestbook_bytes(&porter->book, &name, true) > quota) {
		KVS_ASSERT_CMP(guestbook_bytes(&porter->book, &name, true), ==,
			       guestbook_bytes(&porter->book, &name, false));
	}
}

/* --- after each operation --------------------------------------------------------------------- */

static void compare_usage(struct porter *porter)
{
	struct host_usage expected_usage, usage;
	uint32_t          i;

	guestbook_usage(&porter->book, &expected_usage);
	host_usage(porter->host, &usage);
	KVS_ASSERT_CMP(usage.bytes, ==,
		       (uint64_t)GUESTBOOK_FIELDS * PORTER_FIELD_PAGES * GUESTBOOK_PAGE);
	KVS_ASSERT_CMP(usage.used_bytes, ==, expected_usage.used_bytes);
	KVS_ASSERT_CMP(usage.staged_bytes, ==, expected_usage.staged_bytes);
	KVS_ASSERT_CMP(usage.objects, ==, expected_usage.objects);
	KVS_ASSERT_CMP(usage.staged, ==, expected_usage.staged);
	KVS_ASSERT_CMP(usage.doomed, ==, expected_usage.doomed);
	KVS_ASSERT_CMP(usage.temporary, ==, expected_usage.temporary);
	KVS_ASSERT_CMP(usage.locks, ==, expected_usage.locks);
	KVS_ASSERT_CMP(usage.pins, ==, expected_usage.pins);
	KVS_ASSERT_CMP(usage.clients, ==, GUESTBOOK_CLIENTS);
	/*
	 * Refusals have several reasons, and rows of a batch that go together are given up
	 * together.
	 */
	for (i = 0; i <= HOST_EVICTED_BYTES; i++) {
		if (i != HOST_UNDONE)
			KVS_ASSERT_CMP(usage.counters[i], ==, porter->book.counters[i]);
	}
	KVS_ASSERT_CMP(usage.counters[HOST_REFUSED_LOCKS], ==,
		       porter->book.counters[HOST_REFUSED_LOCKS]);
}

static void compare_keys(struct porter *porter)
{
	struct kvs_key keys[PORTER_KEYS];
	uint64_t       words;
	uint32_t       number;

	for (number = 0; number < PORTER_KEYS; number++)
		keys[number] = porter_key(number);
	KVS_ASSERT(host_lookup(porter->host, keys, PORTER_KEYS, &words) == 0);
	for (number = 0; number < PORTER_KEYS; number++) {
		KVS_ASSERT_CMP(bits_test(&words, number), ==,
			       guestbook_resident(&porter->book, &keys[number]) != NULL);
	}
}

static void compare_tenants(struct porter *porter)
{
	uint64_t bytes, quota;
	uint32_t s;

	for (s = 0; s < PORTER_SPACES; s++) {
		const struct kvs_namespace space = porter_space(s);
		const uint64_t             has = guestbook_bytes(&porter->book, &space, true);

		if (!host_tenant(porter->host, &space, &bytes, &quota)) {
			KVS_ASSERT(!porter->options.isolate || has == 0);
			continue;
		}
		KVS_ASSERT_CMP(bytes, ==, has);
		KVS_ASSERT_CMP(quota, ==, porter->quotas[s]);
	}
}

void porter_compare(struct porter *porter)
{
	compare_events(porter);
	compare_usage(porter);
	compare_keys(porter);
	compare_tenants(porter);
	guestbook_check_bytes(&porter->book);
	host_audit(porter->host);
}
