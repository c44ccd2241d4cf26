/* SPDX-License-Identifier: Apache-2.0 */
#include "host/notices.h"

#include "base/err.h"

static void swap(struct notices *notices, uint32_t a, uint32_t b)
{
	const struct kvs_key key = notices->key[a];
	const uint64_t       sequence = notices->sequence[a];
	const uint8_t        event = notices->event[a];

	notices->key[a] = notices->key[b];
	notices->sequence[a] = notices->sequence[b];
	notices->event[a] = notices->event[b];
	notices->key[b] = key;
	notices->sequence[b] = sequence;
	notices->event[b] = event;
}

/*
 * Bring equal events together, each swap taking one notice to its place for good.  The order among
 * equal ones is lost: their numbers keep it.
 */
static void sort(struct notices *notices, uint32_t end[HOST_EVENT_COUNT])
{
	uint32_t at[HOST_EVENT_COUNT] = { 0 };
	uint32_t i, sum = 0;
	uint8_t  event;

	for (i = 0; i < notices->count; i++)
		at[notices->event[i]]++;
	for (i = 0; i < HOST_EVENT_COUNT; i++) {
		sum += at[i];
		end[i] = sum;
		at[i] = sum - at[i];
	}
	for (i = 0; i < HOST_EVENT_COUNT; i++) {
		while (at[i] < end[i]) {
			event = notices->event[at[i]];
			if (event == i)
				at[i]++;
			else
				swap(notices, at[i], at[event]++);
		}
	}
}

static void tell(const struct host_notice *notice, const struct host_listener *listeners,
		 uint32_t listener_count)
{
	uint32_t i;

	for (i = 0; i < listener_count; i++) {
		if (listeners[i].events & 1u << notice->event)
			listeners[i].notify(listeners[i].arg, notice);
	}
}

void notices_tell(struct notices *notices, const struct host_listener *listeners,
		  uint32_t listener_count)
{
	uint32_t end[HOST_EVENT_COUNT];
	uint32_t event, first = 0;

	if (notices->count == 0)
		return;
	KVS_ASSERT_CMP(notices->numbered, ==, notices->count);
	sort(notices, end);
	for (event = 0; event < HOST_EVENT_COUNT; event++) {
		const struct host_notice notice = { .event = event,
						    .keys = notices->key + first,
						    .sequences = notices->sequence + first,
						    .count = end[event] - first };

		if (notice.count > 0)
			tell(&notice, listeners, listener_count);
		first = end[event];
	}
	notices_init(notices);
}
