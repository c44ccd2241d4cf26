/* SPDX-License-Identifier: Apache-2.0 */
#include "host/claims.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "host/host.h"

int claims_open(struct claims *claims, uint32_t capacity, uint32_t client_max)
{
	uint32_t i;

	*claims = (struct claims){ .capacity = capacity,
				   .client_max = client_max,
				   .free = SLOT_NONE };
	claims->claims = malloc(capacity * sizeof(*claims->claims));
	claims->client_links = malloc(capacity * sizeof(*claims->client_links));
	claims->expiry_links = malloc(capacity * sizeof(*claims->expiry_links));
	claims->of_client = malloc(client_max * sizeof(*claims->of_client));
	if (!claims->claims || !claims->client_links || !claims->expiry_links || !claims->of_client)
		return -ENOMEM;
	list_init(&claims->expiring);
	for (i = 0; i < client_max; i++)
		list_init(&claims->of_client[i]);
	return 0;
}

void claims_close(struct claims *claims)
{
	free(claims->of_client);
	free(claims->expiry_links);
	free(claims->client_links);
	free(claims->claims);
	*claims = (struct claims){ 0 };
}

uint32_t claims_find(const struct claims *claims, uint32_t first, uint32_t client)
{
	uint32_t slot = first;

	while (slot != SLOT_NONE && claims->claims[slot].client != client)
		slot = claims->claims[slot].next;
	return slot;
}

static uint32_t take(struct claims *claims)
{
	uint32_t slot = claims->free;

	if (slot != SLOT_NONE) {
		claims->free = claims->claims[slot].next;
		return slot;
	}
	if (claims->known == claims->capacity)
		return SLOT_NONE;
	slot = claims->known++;
	claims->client_links[slot] = (struct link){ .prev = slot, .next = slot };
	claims->expiry_links[slot] = (struct link){ .prev = slot, .next = slot };
	return slot;
}

uint32_t claims_add(struct claims *claims, uint32_t *first, uint32_t record, uint32_t client)
{
	const uint32_t slot = take(claims);

	if (slot == SLOT_NONE)
		return SLOT_NONE;
	claims->claims[slot] = (struct claim){
		.expiry_ns = HOST_FOREVER, .client = client, .record = record, .next = *first
	};
	*first = slot;
	list_push_tail(&claims->of_client[client], claims->client_links, slot);
	claims->count++;
	return slot;
}

void claims_time(struct claims *claims, uint32_t slot, uint64_t expiry_ns)
{
	claims->claims[slot].expiry_ns = expiry_ns;
	if (list_is_linked(claims->expiry_links, slot))
		list_remove(&claims->expiring, claims->expiry_links, slot);
	if (expiry_ns != HOST_FOREVER)
		list_push_tail(&claims->expiring, claims->expiry_links, slot);
}

void claims_drop(struct claims *claims, uint32_t *first, uint32_t slot)
{
	struct claim *const claim = &claims->claims[slot];
	uint32_t           *at = first;

	while (*at != slot) {
		KVS_ASSERT(*at != SLOT_NONE);
		at = &claims->claims[*at].next;
	}
	*at = claim->next;
	list_remove(&claims->of_client[claim->client], claims->client_links, slot);
	if (list_is_linked(claims->expiry_links, slot))
		list_remove(&claims->expiring, claims->expiry_links, slot);
	claim->next = claims->free;
	claims->free = slot;
	claims->count--;
}

size_t claims_bytes(const struct claims *claims)
{
	return claims->capacity * (sizeof(*claims->claims) + sizeof(*claims->client_links) +
				   sizeof(*claims->expiry_links)) +
	       claims->client_max * sizeof(*claims->of_client);
}

void claims_audit(const struct claims *claims)
{
	uint64_t last_ns = 0;
	uint32_t count = 0, free_count = 0;
	uint32_t i, slot;

	for (i = 0; i < claims->client_max; i++) {
		list_audit(&claims->of_client[i], claims->client_links, claims->known);
		count += claims->of_client[i].count;
	}
	KVS_ASSERT_CMP(count, ==, claims->count);
	for (slot = claims->free; slot != SLOT_NONE; slot = claims->claims[slot].next)
		free_count++;
	KVS_ASSERT_CMP(count + free_count, ==, claims->known);
	list_audit(&claims->expiring, claims->expiry_links, claims->known);
	for (slot = claims->expiring.head; slot != SLOT_NONE;
	     slot = claims->expiry_links[slot].next) {
		KVS_ASSERT_CMP(claims->claims[slot].expiry_ns, >=, last_ns);
		last_ns = claims->claims[slot].expiry_ns;
	}
}
