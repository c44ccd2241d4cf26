/* SPDX-License-Identifier: Apache-2.0 */
#include "host/purse.h"

uint32_t purse_take(struct purse *purse, struct host *host, uint32_t pages, uint32_t ahead)
{
	uint32_t place;

	if (purse->count == 0) {
		purse->pages = pages;
		purse->count = space_of_host_take(
			host, pages, ahead < PURSE_MAX ? ahead : PURSE_MAX, purse->places);
	}
	if (purse->count > 0 && purse->pages == pages)
		return purse->places[--purse->count];
	return space_of_host_take(host, pages, 1, &place) == 1 ? place : SPACE_NONE;
}

void purse_put(struct purse *purse, struct visit *visit, struct freed freed)
{
	if (purse->count == PURSE_MAX || (purse->count > 0 && purse->pages != freed.pages)) {
		visit_free(visit, freed.place, freed.pages);
		return;
	}
	purse->pages = freed.pages;
	purse->places[purse->count++] = freed.place;
}

void purse_empty(struct purse *purse, struct host *host)
{
	struct freed freed[PURSE_MAX];
	uint32_t     i;

	for (i = 0; i < purse->count; i++)
		freed[i] = (struct freed){ purse->places[i], purse->pages };
	if (purse->count > 0)
		space_of_host_give(host, freed, purse->count);
	purse->count = 0;
}
