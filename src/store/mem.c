/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference store: slots in anonymous pages.
 *
 * Pages are the kernel's until a slot is first written, so a large capacity costs only what is
 * used.  It counts payload; the index comes on top and is reported.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "store/kind.h"
#include "store/slotted.h"

struct mem {
	struct medium medium;
	uint8_t      *pages;
	size_t        page_bytes;
	uint64_t      block_bytes;
};

static struct mem *mem_of(struct medium *medium)
{
	return (struct mem *)medium;
}

static uint8_t *slot_at(const struct mem *mem, uint32_t slot)
{
	return mem->pages + slot * mem->block_bytes;
}

static int mem_write(struct medium *medium, uint32_t slot, uint64_t sequence,
		     const struct object *object, const void *payload)
{
	(void)sequence;
	memcpy(slot_at(mem_of(medium), slot), payload, object->bytes);
	return 0;
}

static int mem_read(struct medium *medium, uint32_t slot, void *payload, uint32_t bytes)
{
	memcpy(payload, slot_at(mem_of(medium), slot), bytes);
	return 0;
}

/* The index is all that names a slot. */
static int mem_erase(struct medium *medium, uint32_t slot)
{
	(void)medium;
	(void)slot;
	return 0;
}

static void mem_close(struct medium *medium)
{
	struct mem *mem = mem_of(medium);

	os_pages_unmap(mem->pages, mem->page_bytes);
	free(mem);
}

static const struct medium_ops mem_medium = {
	.write = mem_write, .read = mem_read, .erase = mem_erase, .close = mem_close
};

static int mem_map(const struct slotted_traits *traits, struct mem **ret_mem, struct kvs_error *err)
{
	struct mem *mem = malloc(sizeof(*mem));
	void       *pages;
	int         rc;

	if (!mem)
		return err_set(err, -ENOMEM, "store: no memory");
	*mem = (struct mem){ .medium = { &mem_medium },
			     .page_bytes = traits->slot_count * traits->block_bytes,
			     .block_bytes = traits->block_bytes };
	rc = os_pages_map(mem->page_bytes, &pages);
	if (rc < 0) {
		char size[32];

		free(mem);
		return err_set(err, rc, "store.capacity: %s cannot be mapped: %s",
			       units_format_size(traits->capacity_bytes, size), kvs_strerror(rc));
	}
	mem->pages = pages;
	*ret_mem = mem;
	return 0;
}

static int mem_open(const struct kvs_store_config *config, struct kvs_store **ret_store,
		    struct kvs_error *err)
{
	struct slotted_traits traits = { .block_bytes = config->block_bytes, .span_align = 1 };
	struct slotted       *slotted = NULL;
	struct mem           *mem = NULL;
	int                   rc;

	if (spec_size("capacity", config->place, &traits.capacity_bytes, err) < 0 ||
	    slotted_count(traits.capacity_bytes, 0, config->block_bytes, config->block_bytes,
			  &traits.slot_count, err) < 0)
		return KVS_E_INVALID;
	rc = mem_map(&traits, &mem, err);
	if (rc < 0)
		return rc;
	rc = slotted_open(&store_mem_ops, &mem->medium, &traits, config, &slotted, err);
	if (rc < 0) {
		mem_close(&mem->medium);
		return rc;
	}
	*ret_store = &slotted->store;
	return 0;
}

static const char *const mem_options[] = { SLOTTED_OPTIONS, NULL };

const struct kvs_store_ops store_mem_ops = SLOTTED_OPS("mem", mem_options, mem_open);
