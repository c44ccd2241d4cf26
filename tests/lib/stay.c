/* SPDX-License-Identifier: Apache-2.0 */
/* See stay.h. */
#include "stay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct yard *stay_open(const struct group_spec *groups, uint32_t group_count, uint32_t page,
		       uint32_t parents, uint32_t host_parents)
{
	static const uint32_t     layers[YARD_GROUPS] = { 2, 2, 2, 2 };
	static struct yard_counts counts;
	const struct yard_spec    spec = { groups, layers, group_count, page, parents, host_parents,
					   GUEST_PAGES, false };

	memset(&counts, 0, sizeof(counts));
	return yard_open(&spec, &counts);
}

void stay_close(struct yard *yard)
{
	assert_int_equal(stay_available(yard), yard->spec.device_parents);
	yard_close(yard);
}

void stay_prompt(struct yard *yard, struct guest *guest, uint64_t id, int32_t first, uint32_t count)
{
	int32_t  tokens[GUEST_TOKENS];
	uint32_t i;

	for (i = 0; i < count; i++)
		tokens[i] = first + (int32_t)i;
	guest_open(yard, guest, id, tokens, count);
}

uint32_t stay_step(struct yard *yard, struct guest *guest, uint32_t budget)
{
	uint32_t begin;

	assert_int_equal(guest_admit(yard, guest, budget), 0);
	begin = guest->computed;
	guest_forward(yard, guest);
	yard_audit(yard);
	return guest->computed - begin;
}

void stay_prefill(struct yard *yard, struct guest *guest, uint32_t budget)
{
	while (guest->phase != GUEST_DECODE)
		stay_step(yard, guest, budget);
}

uint32_t stay_available(const struct yard *yard)
{
	return cache_available(yard->cache);
}

void stay_expect_row(const struct guest *guest, uint32_t group, const char *drawn)
{
	char     row[GUEST_TOKENS + 1] = "";
	uint32_t i;

	for (i = 0; i < guest->tables[group].count; i++)
		row[i] = guest->slots[group][i] == BLOCK_NULL ? '0' : 'x';
	assert_string_equal(row, drawn);
}

uint32_t stay_holes(const struct guest *guest, uint32_t group)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < guest->tables[group].count; i++)
		count += guest->slots[group][i] == BLOCK_NULL;
	return count;
}
