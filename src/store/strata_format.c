/* SPDX-License-Identifier: Apache-2.0 */
/* Structs to and from disk.  What is read was written by anybody: it is checked, never asserted. */
#include "store/strata_format.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/digest.h"
#include "base/units.h"

#define STRATA_VERSION 1u

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "the structs are the file only where integers are little-endian");
static_assert(sizeof(struct superblock) == STRATA_PAGE, "the superblock is one page");
static_assert(offsetof(struct superblock, checksum) == STRATA_PAGE - 8, "no padding");
static_assert(sizeof(struct slot_header) == 128, "a header never crosses a page");
static_assert(offsetof(struct slot_header, checksum) == 120, "no padding");

static const uint8_t superblock_magic[8] = "kvstrata";
static const uint8_t header_magic[8] = "kvs-slot";

static uint64_t page_up(uint64_t bytes)
{
	return (bytes + STRATA_PAGE - 1) / STRATA_PAGE * STRATA_PAGE;
}

uint64_t strata_payload_offset(uint32_t slot_count)
{
	return STRATA_PAGE + page_up((uint64_t)slot_count * sizeof(struct slot_header));
}

uint64_t strata_file_bytes(const struct strata_geometry *geometry)
{
	return strata_payload_offset(geometry->slot_count) +
	       geometry->slot_count * geometry->block_bytes;
}

int strata_fit(uint64_t capacity_bytes, uint64_t block_bytes, struct strata_geometry *ret_geometry,
	       struct kvs_error *err)
{
	struct strata_geometry geometry = { .block_bytes = block_bytes };
	struct strata_geometry larger;

	/*
	 * As if the header table wasted all it can of its last page; the rest may be one more slot.
	 */
	if (slotted_count(capacity_bytes, 2 * STRATA_PAGE - sizeof(struct slot_header),
			  block_bytes + sizeof(struct slot_header), block_bytes,
			  &geometry.slot_count, err) < 0)
		return KVS_E_INVALID;
	larger = geometry;
	larger.slot_count++;
	*ret_geometry = strata_file_bytes(&larger) <= capacity_bytes ? larger : geometry;
	KVS_ASSERT_CMP(strata_file_bytes(ret_geometry), <=, capacity_bytes);
	return 0;
}

static uint64_t superblock_checksum(const struct superblock *superblock)
{
	return xxh3_64(superblock, offsetof(struct superblock, checksum));
}

void superblock_make(const struct strata_geometry *geometry, struct superblock *ret_superblock)
{
	*ret_superblock = (struct superblock){ .version = STRATA_VERSION,
					       .header_bytes = sizeof(struct slot_header),
					       .block_bytes = geometry->block_bytes,
					       .slot_count = geometry->slot_count };
	memcpy(ret_superblock->magic, superblock_magic, sizeof(superblock_magic));
	ret_superblock->checksum = superblock_checksum(ret_superblock);
}

static int refuse_geometry(const struct superblock *superblock,
			   const struct strata_geometry *wanted, struct kvs_error *err)
{
	char has_count[32], has_block[32], count[32], block[32];

	return err_set(err, KVS_E_PROTO,
		       "holds %s blocks of %s, asked for %s blocks of %s; use its own sizes",
		       units_format_count(superblock->slot_count, has_count),
		       units_format_size(superblock->block_bytes, has_block),
		       units_format_count(wanted->slot_count, count),
		       units_format_size(wanted->block_bytes, block));
}

int superblock_check(const struct superblock *superblock, const struct strata_geometry *wanted,
		     struct kvs_error *err)
{
	if (memcmp(superblock->magic, superblock_magic, sizeof(superblock_magic)) != 0)
		return err_set(err, KVS_E_PROTO, "is no strata file; it is left as it is");
	if (superblock->checksum != superblock_checksum(superblock))
		return err_set(err, KVS_E_PROTO, "has a damaged superblock: its checksum is wrong");
	if (superblock->version != STRATA_VERSION ||
	    superblock->header_bytes != sizeof(struct slot_header)) {
		return err_set(err, KVS_E_PROTO,
			       "has format version %" PRIu32 "; this build reads %u",
			       superblock->version, STRATA_VERSION);
	}
	if (superblock->block_bytes != wanted->block_bytes ||
	    superblock->slot_count != wanted->slot_count)
		return refuse_geometry(superblock, wanted, err);
	return 0;
}

static uint64_t header_checksum(const struct slot_header *header, uint32_t slot)
{
	return xxh3_64_seeded(header, offsetof(struct slot_header, checksum), slot);
}

void header_make(uint32_t slot, uint64_t sequence, const struct object *object,
		 struct slot_header *ret_header)
{
	*ret_header = (struct slot_header){ .sequence = sequence,
					    .key = object->key,
					    .bytes = object->bytes,
					    .payload_checksum = object->checksum };
	memcpy(ret_header->magic, header_magic, sizeof(header_magic));
	ret_header->checksum = header_checksum(ret_header, slot);
}

enum header_state header_read(const struct slot_header *header, uint32_t slot, uint64_t block_bytes,
			      uint64_t *ret_sequence, struct object *ret_object)
{
	static const struct slot_header blank;

	if (memcmp(header, &blank, sizeof(blank)) == 0)
		return HEADER_BLANK;
	if (memcmp(header->magic, header_magic, sizeof(header_magic)) != 0 ||
	    header->checksum != header_checksum(header, slot))
		return HEADER_INVALID;
	if (header->sequence == UINT64_MAX || header->bytes == 0 || header->bytes > block_bytes ||
	    header->bytes % STRATA_PAGE != 0)
		return HEADER_INVALID;
	*ret_sequence = header->sequence;
	*ret_object = (struct object){ .key = header->key, .bytes = (uint32_t)header->bytes,
				       .checksum = header->payload_checksum };
	return HEADER_VALID;
}
