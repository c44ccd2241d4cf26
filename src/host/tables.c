/* SPDX-License-Identifier: Apache-2.0 */
#include "host/tables.h"

#include <errno.h>

#include "base/err.h"
#include "os/os.h"

#define HUGE_BYTES ((size_t)2 << 20)

int tables_open(struct tables *tables, size_t bytes)
{
	/* Whole huge pages, and as much as their alignment may cost. */
	const size_t whole = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	size_t       skip;

	*tables = (struct tables){ 0 };
	if (os_pages_map(whole + HUGE_BYTES, &tables->mapped) < 0)
		return -ENOMEM;
	tables->mapped_bytes = whole + HUGE_BYTES;
	skip = HUGE_BYTES - (uintptr_t)tables->mapped % HUGE_BYTES;
	tables->next = (uint8_t *)tables->mapped + skip;
	tables->left = whole;
	/* A machine without them has slower tables. */
	(void)os_pages_advise_huge(tables->next, whole);
	return os_pages_populate(tables->next, whole);
}

void tables_close(struct tables *tables)
{
	if (tables->mapped)
		os_pages_unmap(tables->mapped, tables->mapped_bytes);
	*tables = (struct tables){ 0 };
}

void *tables_take(struct tables *tables, size_t bytes)
{
	const size_t   rounded = tables_round(bytes);
	uint8_t *const table = tables->next;

	KVS_ASSERT_CMP(rounded, <=, tables->left);
	tables->next += rounded;
	tables->left -= rounded;
	return table;
}
