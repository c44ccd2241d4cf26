/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the tables that are visited at random: in one piece, on huge pages where the kernel has
 * them, and all there at open.
 *
 * A look-up in a table of some hundred megabytes misses the TLB, and a prefetch waits for the walk:
 * on base pages that was a fifth of a reservation.
 */
#ifndef HOST_TABLES_H
#define HOST_TABLES_H

#include <stddef.h>
#include <stdint.h>

#define TABLES_ALIGN 64u /* bytes that a table begins on a multiple of, and is counted in */

struct tables {
	void    *mapped;
	size_t   mapped_bytes;
	uint8_t *next;
	size_t   left;
};

static inline size_t tables_round(size_t bytes)
{
	return (bytes + TABLES_ALIGN - 1) / TABLES_ALIGN * TABLES_ALIGN;
}

/* Room for tables of so many bytes, each rounded.  0, or -ENOMEM. */
int  tables_open(struct tables *tables, size_t bytes);
void tables_close(struct tables *tables); /* a zeroed one, too */

/* Zeroed.  What is taken was counted at open: asserted. */
void *tables_take(struct tables *tables, size_t bytes);

#endif
