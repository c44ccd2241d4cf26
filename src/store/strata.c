/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strata file: slots in one sparse file.
 *
 * Payload moves by O_DIRECT between the caller's span and the file; where the file system has none
 * it goes through the page cache, and describe() says so.  Headers go through a second descriptor.
 * The exclusive lock is on the payload's description.
 *
 * Durability   What was put survives the end of the process, however it ends.  Power loss may lose
 *              recent puts and never yields a wrong byte: header and payload reach the disk in any
 *              order, and a payload that does not match its header's checksum is no data.
 * Full disk    Nothing is preallocated, so a disk that fills refuses puts; the store goes on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/kind.h"
#include "store/strata_format.h"

/* 512 headers are 64 KiB. */
#define HEADERS_A_READ 512u

struct strata {
	struct medium          medium;
	struct strata_geometry geometry;
	int                    payload_fd;
	int                    header_fd;
	bool                   direct;
};

static struct strata *strata_of(struct medium *medium)
{
	return (struct strata *)medium;
}

static uint64_t header_at(uint32_t slot)
{
	return STRATA_PAGE + (uint64_t)slot * sizeof(struct slot_header);
}

static uint64_t payload_at(const struct strata *strata, uint32_t slot)
{
	return strata_payload_offset(strata->geometry.slot_count) +
	       slot * strata->geometry.block_bytes;
}

static int strata_write(struct medium *medium, uint32_t slot, uint64_t sequence,
			const struct object *object, const void *payload)
{
	struct strata     *strata = strata_of(medium);
	struct slot_header header;
	int                rc;

	rc = os_file_write(strata->payload_fd, payload, object->bytes, payload_at(strata, slot));
	if (rc < 0)
		return rc;
	header_make(slot, sequence, object, &header);
	return os_file_write(strata->header_fd, &header, sizeof(header), header_at(slot));
}

static int strata_read(struct medium *medium, uint32_t slot, void *payload, uint32_t bytes)
{
	struct strata *strata = strata_of(medium);

	return os_file_read(strata->payload_fd, payload, bytes, payload_at(strata, slot));
}

static int strata_erase(struct medium *medium, uint32_t slot)
{
	static const struct slot_header blank;

	return os_file_write(strata_of(medium)->header_fd, &blank, sizeof(blank), header_at(slot));
}

static void strata_close(struct medium *medium)
{
	struct strata *strata = strata_of(medium);

	/*
	 * Nobody is left to tell of a failure; what did not reach the disk is found by its
	 * checksum.
	 */
	if (strata->header_fd >= 0)
		(void)os_file_sync(strata->header_fd);
	os_close(strata->header_fd);
	os_close(strata->payload_fd);
	free(strata);
}

static const struct medium_ops strata_medium = {
	.write = strata_write, .read = strata_read, .erase = strata_erase, .close = strata_close
};

/* An error of the operating system, said of the file as a whole. */
static int refuse(int rc, const char *what, struct kvs_error *err)
{
	return err_set(err, rc, "%s: %s", what, kvs_strerror(rc));
}

static int descriptors_open(struct strata *strata, const char *path, struct kvs_error *err)
{
	int rc;

	strata->payload_fd = os_file_open(path, OS_CREATE | OS_WRITE | OS_DIRECT);
	strata->direct = strata->payload_fd >= 0;
	if (strata->payload_fd == -EINVAL)
		strata->payload_fd = os_file_open(path, OS_CREATE | OS_WRITE);
	if (strata->payload_fd < 0)
		return refuse(strata->payload_fd, "cannot be opened", err);
	rc = os_file_lock(strata->payload_fd);
	if (rc == -EWOULDBLOCK) {
		return err_set(err, KVS_E_BUSY,
			       "is open in another store; one file serves one store at a time");
	}
	if (rc < 0)
		return refuse(rc, "cannot be locked", err);
	strata->header_fd = os_file_open(path, OS_WRITE);
	return strata->header_fd < 0 ? refuse(strata->header_fd, "cannot be opened", err) : 0;
}

static int format(struct strata *strata, struct kvs_error *err)
{
	struct superblock superblock;
	int               rc;

	superblock_make(&strata->geometry, &superblock);
	rc = os_file_write(strata->header_fd, &superblock, sizeof(superblock), 0);
	if (rc == 0)
		rc = os_file_sync(strata->header_fd);
	return rc < 0 ? refuse(rc, "cannot be formatted", err) : 0;
}

static int check(struct strata *strata, uint64_t size, struct kvs_error *err)
{
	struct superblock superblock = { 0 };
	int               rc = 0;

	if (size >= sizeof(superblock))
		rc = os_file_read(strata->header_fd, &superblock, sizeof(superblock), 0);
	if (rc < 0)
		return refuse(rc, "cannot be read", err);
	rc = superblock_check(&superblock, &strata->geometry, err);
	if (rc < 0)
		return rc;
	if (size > strata_file_bytes(&strata->geometry)) {
		return err_set(err, KVS_E_PROTO,
			       "is longer than its superblock says; something else wrote to it");
	}
	return 0;
}

/* An empty file is ours to format.  Resizing also completes a format that was cut short. */
static int file_open(struct strata *strata, const char *path, struct kvs_error *err)
{
	uint64_t size;
	int      rc = descriptors_open(strata, path, err);

	if (rc < 0)
		return rc;
	rc = os_file_size(strata->header_fd, &size);
	if (rc < 0)
		return refuse(rc, "has no size", err);
	rc = size == 0 ? format(strata, err) : check(strata, size, err);
	if (rc < 0)
		return rc;
	rc = os_file_resize(strata->header_fd, strata_file_bytes(&strata->geometry));
	return rc < 0 ? refuse(rc, "cannot be sized", err) : 0;
}

struct found {
	uint64_t      sequence;
	uint32_t      slot;
	struct object object;
};

static int by_sequence(const void *a, const void *b)
{
	const struct found *left = a, *right = b;

	if (left->sequence != right->sequence)
		return left->sequence < right->sequence ? -1 : 1;
	return left->slot < right->slot ? -1 : 1;
}

/*
 * Collect what the header table names: found_count of it in found, invalid headers counted and left
 * blank.
 */
static int scan(struct strata *strata, struct slotted *slotted, struct found *found,
		uint32_t *ret_count)
{
	struct slot_header headers[HEADERS_A_READ];
	uint32_t           first, i, count = 0;

	for (first = 0; first < strata->geometry.slot_count; first += HEADERS_A_READ) {
		const uint32_t left = strata->geometry.slot_count - first;
		const uint32_t run = left < HEADERS_A_READ ? left : HEADERS_A_READ;
		const int      rc = os_file_read(strata->header_fd, headers, run * sizeof(*headers),
						 header_at(first));

		if (rc < 0)
			return rc;
		for (i = 0; i < run; i++) {
			const enum header_state state =
				header_read(&headers[i], first + i, strata->geometry.block_bytes,
					    &found[count].sequence, &found[count].object);

			found[count].slot = first + i;
			count += state == HEADER_VALID;
			slotted->corrupt_objects += state == HEADER_INVALID;
		}
	}
	*ret_count = count;
	return 0;
}

/* The order of puts stands in for the order of use, which is not kept on disk. */
static int recover(struct strata *strata, struct slotted *slotted, struct kvs_error *err)
{
	struct found *found = malloc(strata->geometry.slot_count * sizeof(*found));
	uint32_t      count, i;
	int           rc;

	if (!found) {
		return err_set(err, -ENOMEM, "store: no memory to recover %u blocks",
			       strata->geometry.slot_count);
	}
	rc = scan(strata, slotted, found, &count);
	if (rc == 0) {
		qsort(found, count, sizeof(*found), by_sequence);
		for (i = 0; i < count; i++)
			slotted_adopt(slotted, found[i].slot, found[i].sequence, &found[i].object);
	}
	free(found);
	return rc < 0 ? refuse(rc, "cannot be read", err) : 0;
}

static int strata_new(const struct kvs_store_config *config, struct strata **ret_strata,
		      uint64_t *ret_capacity, struct kvs_error *err)
{
	struct strata_geometry geometry;
	const char            *capacity = spec_option(config, "capacity");

	if (!*config->place) {
		return err_set(err, KVS_E_INVALID,
			       "store.path: is missing; write strata:PATH?capacity=SIZE");
	}
	if (!capacity) {
		return err_set(err, KVS_E_INVALID,
			       "store.capacity: is missing; write strata:PATH?capacity=SIZE");
	}
	if (spec_size("capacity", capacity, ret_capacity, err) < 0 ||
	    strata_fit(*ret_capacity, config->block_bytes, &geometry, err) < 0)
		return KVS_E_INVALID;
	*ret_strata = malloc(sizeof(**ret_strata));
	if (!*ret_strata)
		return err_set(err, -ENOMEM, "store: no memory");
	**ret_strata = (struct strata){ .medium = { &strata_medium },
					.geometry = geometry,
					.payload_fd = -1,
					.header_fd = -1 };
	return 0;
}

static int strata_open(const struct kvs_store_config *config, struct kvs_store **ret_store,
		       struct kvs_error *err)
{
	struct slotted *slotted;
	struct strata  *strata;
	uint64_t        capacity;
	int             rc = strata_new(config, &strata, &capacity, err);

	if (rc < 0)
		return rc;
	/* First what can fail without the file, so that a refused spec leaves none behind. */
	rc = slotted_open(&store_strata_ops, &strata->medium,
			  &(struct slotted_traits){
				  .slot_count = strata->geometry.slot_count,
				  .block_bytes = config->block_bytes,
				  .capacity_bytes = capacity,
				  .fixed_bytes = strata_payload_offset(strata->geometry.slot_count),
				  .span_align = STRATA_PAGE,
				  .durability = KVS_DURABILITY_PROCESS },
			  config, &slotted, err);
	if (rc < 0) {
		strata_close(&strata->medium);
		return rc;
	}
	rc = file_open(strata, config->place, err);
	if (rc < 0)
		err_prefix(err, "store.path: \"%.128s\"", config->place);
	else
		rc = recover(strata, slotted, err);
	if (rc < 0) {
		(void)slotted_close(&slotted->store);
		return rc;
	}
	slotted->traits.direct = strata->direct;
	if (!strata->direct)
		slotted->note = "this file system has no O_DIRECT: payload goes through the page cache";
	*ret_store = &slotted->store;
	return 0;
}

static const char *const strata_options[] = { "capacity", SLOTTED_OPTIONS, NULL };

const struct kvs_store_ops store_strata_ops = SLOTTED_OPS("strata", strata_options, strata_open);
