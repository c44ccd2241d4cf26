/* SPDX-License-Identifier: Apache-2.0 */
/* See device.h. */
#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"

static uint8_t *version_of(struct device *device, uint64_t sector, uint32_t version)
{
	return device->versions + (sector * SECTOR_VERSIONS + version) * SECTOR;
}

static uint8_t *durable_of(struct device *device, uint64_t sector)
{
	return device->durable + sector * SECTOR;
}

/* --- what was written ------------------------------------------------------------------------- */

/* Past its last place the oldest version has reached the medium: a disk writes when it likes. */
static uint8_t *new_version(struct device *device, uint64_t number)
{
	struct sector *const sector = &device->sectors[number];

	if (sector->count == 0)
		device->dirty[device->dirty_count++] = (uint32_t)number;
	if (sector->count == SECTOR_VERSIONS) {
		memcpy(durable_of(device, number), version_of(device, number, 0), SECTOR);
		memmove(version_of(device, number, 0), version_of(device, number, 1),
			(SECTOR_VERSIONS - 1) * SECTOR);
		memmove(sector->write, sector->write + 1,
			(SECTOR_VERSIONS - 1) * sizeof(sector->write[0]));
		sector->count--;
	}
	sector->write[sector->count] = device->write_count;
	return version_of(device, number, sector->count++);
}

/* The first `bytes` of a write. */
static void remember(struct device *device, const struct os_io *io, size_t bytes)
{
	const uint8_t *const buffer = io->buffer;
	size_t               at;

	KVS_ASSERT_CMP(io->offset % SECTOR + io->bytes % SECTOR, ==, 0);
	KVS_ASSERT_CMP(io->offset + io->bytes, <=, device->bytes_max);
	for (at = 0; at < bytes; at += SECTOR) {
		memcpy(new_version(device, (io->offset + at) / SECTOR), buffer + at, SECTOR);
	}
	device->write_count++;
	if (bytes > 0 && io->offset + bytes > device->size)
		device->size = io->offset + bytes;
}

static void make_durable(struct device *device)
{
	uint32_t i;

	for (i = 0; i < device->dirty_count; i++) {
		const uint32_t       number = device->dirty[i];
		struct sector *const sector = &device->sectors[number];

		memcpy(durable_of(device, number),
		       version_of(device, number, sector->count - 1u), SECTOR);
		sector->count = 0;
	}
	device->dirty_count = 0;
	device->durable_size = device->size;
	device->write_count = 0;
}

/* --- the hook --------------------------------------------------------------------------------- */

static bool is_to_crash(struct device *device, const struct os_io *io)
{
	return io->kind == OS_IO_WRITE && device->writes_left > 0 && --device->writes_left == 0;
}

static bool is_to_fail(struct device *device)
{
	return device->calls_left > 0 && --device->calls_left == 0;
}

/* A write that fails has done a part of its work. */
static void fail(struct device *device, const struct os_io *io)
{
	size_t bytes, at;

	device->failed = true;
	if (io->kind != OS_IO_WRITE)
		return;
	bytes = prng_below(&device->prng, io->bytes / SECTOR + 1) * SECTOR;
	remember(device, io, bytes);
	for (at = 0; at < bytes; at += SECTOR) {
		KVS_ASSERT(pwrite(device->fd, (const uint8_t *)io->buffer + at, SECTOR,
				  (off_t)(io->offset + at)) == SECTOR);
	}
}

static void crash(struct device *device, const struct os_io *io)
{
	remember(device, io, io->bytes);
	device->crashed = true;
	device->falls(device->ctx);
}

static bool is_io(const struct os_io *io)
{
	return io->kind == OS_IO_READ || io->kind == OS_IO_WRITE || io->kind == OS_IO_SYNC;
}

/* What the kernel is going to do. */
static void follow(struct device *device, const struct os_io *io)
{
	switch (io->kind) {
	case OS_IO_WRITE:
		remember(device, io, io->bytes);
		break;
	case OS_IO_SYNC:
		make_durable(device);
		break;
	case OS_IO_ALLOCATE:
		KVS_ASSERT_CMP(io->offset + io->bytes, <=, device->bytes_max);
		if (io->offset + io->bytes > device->size)
			device->size = io->offset + io->bytes;
		break;
	case OS_IO_RESIZE:
	case OS_IO_READ:
	case OS_IO_OPEN:
	case OS_IO_LOCK:
		break;
	}
}

static bool stand_between(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct device *const device = ctx;

	*ret_result = -EIO;
	if (!device->crashed && is_io(io))
		device->sees(device->ctx, io);
	if (device->crashed)
		return true;
	if (is_to_crash(device, io)) {
		crash(device, io);
		return true;
	}
	if (is_io(io) && is_to_fail(device)) {
		fail(device, io);
		return true;
	}
	follow(device, io);
	return false;
}

/* --- losing power ----------------------------------------------------------------------------- */

/* How what was not synced fares in one crash. */
enum fate {
	FATE_ANY,     /* each sector has any version */
	FATE_NEWEST,  /* most sectors have their newest */
	FATE_OLDEST,  /* most have nothing new */
	FATE_PAGES,   /* whole pages are new or old */
	FATE_WRITES,  /* whole writes landed or did not, in any order */
	FATE_ORDERED, /* all writes up to one landed, none behind it */
	FATE_ALL,     /* as when a process dies */
	FATE_NONE,
	FATE_COUNT
};

/* The newest of the versions whose write landed: as a version's number and one; 0 for none. */
static uint32_t newest_landed(const struct sector *sector, uint64_t salt, uint32_t last, bool ordered)
{
	uint32_t count = sector->count;

	while (count > 0) {
		const uint32_t write = sector->write[count - 1];

		if (ordered ? write <= last : (mix64(salt ^ write) & 1) != 0)
			break;
		count--;
	}
	return count;
}

static uint32_t choose(struct device *device, enum fate fate, uint32_t number, uint64_t salt,
		       uint32_t last)
{
	const struct sector *const sector = &device->sectors[number];

	switch (fate) {
	case FATE_ANY:
		return (uint32_t)prng_below(&device->prng, sector->count + 1u);
	case FATE_NEWEST:
		return prng_chance(&device->prng, 7, 8)
			       ? sector->count
			       : (uint32_t)prng_below(&device->prng, sector->count + 1u);
	case FATE_OLDEST:
		return prng_chance(&device->prng, 7, 8)
			       ? 0
			       : (uint32_t)prng_below(&device->prng, sector->count + 1u);
	case FATE_PAGES:
		return (mix64(salt ^ number / 8) & 1) != 0 ? sector->count : 0;
	case FATE_WRITES:
		return newest_landed(sector, salt, 0, false);
	case FATE_ORDERED:
		return newest_landed(sector, salt, last, true);
	case FATE_ALL:
		return sector->count;
	case FATE_NONE:
	case FATE_COUNT:
		break;
	}
	return 0;
}

/* A file that grew may have its old size, with what lies beyond lost. */
static uint64_t choose_size(struct device *device, enum fate fate)
{
	const uint64_t pages = (device->size - device->durable_size) / 4096;

	if (fate == FATE_ALL || prng_chance(&device->prng, 3, 4))
		return device->size;
	return device->durable_size + prng_below(&device->prng, pages + 1) * 4096;
}

static void write_file(struct device *device)
{
	KVS_ASSERT(ftruncate(device->fd, 0) == 0);
	KVS_ASSERT(ftruncate(device->fd, (off_t)device->size) == 0);
	KVS_ASSERT(pwrite(device->fd, device->durable, device->size, 0) == (ssize_t)device->size);
}

void device_restart(struct device *device)
{
	const enum fate fate = (enum fate)prng_below(&device->prng, FATE_COUNT);
	const uint64_t  salt = prng_u64(&device->prng);
	const uint32_t  last = (uint32_t)prng_below(&device->prng, device->write_count + 1u);
	uint32_t        i;

	for (i = 0; i < device->dirty_count; i++) {
		const uint32_t number = device->dirty[i];
		const uint32_t kept = choose(device, fate, number, salt, last);

		if (kept > 0) {
			memcpy(durable_of(device, number), version_of(device, number, kept - 1),
			       SECTOR);
		}
		device->sectors[number].count = 0;
	}
	device->size = choose_size(device, fate);
	device->durable_size = device->size;
	memset(device->durable + device->size, 0, device->bytes_max - device->size);
	device->dirty_count = 0;
	device->write_count = 0;
	device->writes_left = 0;
	device->calls_left = 0;
	device->crashed = false;
	device->failed = false;
	write_file(device);
}

void device_clear(struct device *device)
{
	make_durable(device);
	memset(device->durable, 0, device->bytes_max);
	device->size = 0;
	device->durable_size = 0;
	write_file(device);
}

/* --- opening ---------------------------------------------------------------------------------- */

void device_open(struct device *device, uint64_t bytes_max, uint64_t seed, device_sees *sees,
		 device_falls *falls, void *ctx)
{
	const uint64_t count = bytes_max / SECTOR;

	*device = (struct device){ .fd = memfd_create("device", MFD_CLOEXEC),
				   .bytes_max = bytes_max,
				   .durable = calloc(count, SECTOR),
				   .versions = malloc(count * SECTOR_VERSIONS * SECTOR),
				   .sectors = calloc(count, sizeof(struct sector)),
				   .dirty = malloc(count * sizeof(uint32_t)),
				   .sees = sees,
				   .falls = falls,
				   .ctx = ctx };
	KVS_ASSERT(device->fd >= 0 && device->durable && device->versions && device->sectors &&
		   device->dirty);
	snprintf(device->path, sizeof(device->path), "/proc/self/fd/%d", device->fd);
	prng_seed(&device->prng, mix64(seed ^ UINT64_C(0xd15c)));
	os_io_hook_set(stand_between, device);
}

void device_close(struct device *device)
{
	os_io_hook_set(NULL, NULL);
	close(device->fd);
	free(device->durable);
	free(device->versions);
	free(device->sectors);
	free(device->dirty);
}
