/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a strata file lies on disk.
 *
 *   0                superblock, 4 KiB
 *   4 KiB            slot headers, 128 bytes each, up to a multiple of 4 KiB
 *   payload_offset   slots of block_bytes
 *
 * Headers and payload never share a page: payload moves by O_DIRECT, headers through the page
 * cache.  A slot is free exactly when its header is blank.  All integers are little-endian.
 */
#ifndef STORE_STRATA_FORMAT_H
#define STORE_STRATA_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "store/slotted.h"

#define STRATA_PAGE 4096u

struct strata_geometry {
	uint64_t block_bytes;
	uint32_t slot_count;
};

struct superblock {
	uint8_t  magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint64_t block_bytes;
	uint64_t slot_count;
	uint8_t  reserved[STRATA_PAGE - 40];
	uint64_t checksum; /* of all before it */
};

struct slot_header {
	uint8_t        magic[8];
	uint64_t       sequence; /* of the put that wrote it */
	struct kvs_key key;
	uint64_t       bytes;
	uint64_t       payload_checksum;
	uint8_t        reserved[32];
	uint64_t       checksum; /* of all before it, seeded with the slot, so that it counts there only */
};

uint64_t strata_payload_offset(uint32_t slot_count);
uint64_t strata_file_bytes(const struct strata_geometry *geometry);

/* The most slots whose file stays within capacity_bytes, or why there are none. */
int strata_fit(uint64_t capacity_bytes, uint64_t block_bytes, struct strata_geometry *ret_geometry,
	       struct kvs_error *err);

void superblock_make(const struct strata_geometry *geometry, struct superblock *ret_superblock);

/* KVS_E_PROTO: no strata file, another version, damaged, or another geometry than wanted. */
int superblock_check(const struct superblock *superblock, const struct strata_geometry *wanted,
		     struct kvs_error *err);

void header_make(uint32_t slot, uint64_t sequence, const struct object *object,
		 struct slot_header *ret_header);

enum header_state { HEADER_BLANK, HEADER_VALID, HEADER_INVALID };

/* Writes sequence and object of a VALID header. */
enum header_state header_read(const struct slot_header *header, uint32_t slot, uint64_t block_bytes,
			      uint64_t *ret_sequence, struct object *ret_object);

#endif
