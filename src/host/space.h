/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of Host objects, cut into places of whole pages.
 *
 * A place is the number of its first page; the pages of one field are numbered in a row, and no
 * place leaves its
 * field.  Free pages lie in runs, as long as they can be: whoever is given back joins its free
 *         neighbours.
 *
 * Shape    Runs are kept by length in classes: below 32 pages a class a length, above it 16 a
 *          doubling.  A bitmap says which classes have one, so that taking and giving are O(1).
 *          What is known of a page lies apart from it, 8 bytes each, and only a run's first, second
 *          and last page say something.
 * Limits   SPACE_FIELD_PAGES pages a field, SPACE_FIELDS_MAX fields; a place has at least two
 *          pages: a free page alone is in no class.
 * Threads  None of its own: the caller's.
 */
#ifndef HOST_SPACE_H
#define HOST_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvstrata/base.h>

#define SPACE_PAGE_BITS   12
#define SPACE_PAGE_BYTES  (1u << SPACE_PAGE_BITS)
#define SPACE_FIELD_BITS  18 /* 1 GiB, a slice of the arena */
#define SPACE_FIELD_PAGES (1u << SPACE_FIELD_BITS)
#define SPACE_FIELDS_MAX  (1u << (31 - SPACE_FIELD_BITS))
#define SPACE_CLASSES     256u
#define SPACE_NONE        UINT32_MAX

struct space_page {
	uint32_t run;  /* first and last page of a run: its pages, and whether they are free */
	/* Of a free run: the next of its class in the first page, the previous in the second. */
	uint32_t link;
};

struct space_field {
	uint8_t           *base;
	struct space_page *pages;
	uint32_t           page_count;
};

struct host_space {
	struct space_field *fields;
	uint32_t            field_count;
	uint32_t            place_pages_max; /* of the largest field */
	uint64_t            page_count;
	uint64_t            free_count; /* pages */
	uint64_t            classes[SPACE_CLASSES / 64];
	uint32_t            heads[SPACE_CLASSES];
};

/* What is known of the pages of fields needs so many bytes. */
size_t host_space_page_bytes(const struct kvs_span *fields, uint32_t field_count);

/*
 * Each field on a page, of whole pages, at least two, at most SPACE_FIELD_PAGES; pages is memory of
 * host_space_page_bytes().  0, or -ENOMEM.
 */
int  host_space_open(struct host_space *space, const struct kvs_span *fields, uint32_t field_count,
		     struct space_page *pages);
void host_space_close(struct host_space *space);

/*
 * Places of `pages` each, as many as there are runs for, count at most; how many.  pages is at
 * least 2.
 */
uint32_t host_space_take(struct host_space *space, uint32_t pages, uint32_t count,
			 uint32_t *ret_places);

/*
 * One place, also out of a run that shares its class with shorter ones: O(runs of the class).
 * SPACE_NONE: there is no run of so many pages.
 */
uint32_t host_space_search(struct host_space *space, uint32_t pages);

void host_space_give(struct host_space *space, uint32_t place, uint32_t pages);

static inline void *host_space_address(const struct host_space *space, uint32_t place)
{
	return space->fields[place >> SPACE_FIELD_BITS].base +
	       ((size_t)(place & (SPACE_FIELD_PAGES - 1)) << SPACE_PAGE_BITS);
}

/*
 * O(runs): runs fill their fields, no two free ones touch, each free one of two pages or more is in
 * its class.
 */
void host_space_audit(const struct host_space *space);

#endif
