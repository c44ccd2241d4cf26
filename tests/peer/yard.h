/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks of a test's own: loop devices, file systems made on them, and those that need no disk.
 *
 * They are mounted in a namespace of this process, and a loop device goes with the last who has it
 * open: whatever way the process ends, nothing stays mounted or attached.  All of it lies in memory.
 */
#ifndef PEER_YARD_H
#define PEER_YARD_H

#include <stdint.h>

#define YARD_PATH 64

/* NULL, or why there can be no disks here. */
const char *yard_open(void);
void        yard_close(void);

/* A name of that form in the yard; valid until the next call but three. */
const char *yard_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * An empty block device, with sectors of 512 or 4,096 bytes; its path, valid until yard_close().  NULL
 * with a comment why there is none.
 */
const char *yard_device(uint64_t bytes, uint32_t sector_bytes);

/* Make a file system on a device; false with a comment why not. */
bool yard_format(const char *device, const char *type);

/* device is "none" for tmpfs and ramfs; options are the file system's.  False with a comment why not. */
bool yard_mount(const char *device, const char *type, const char *directory, const char *options);
void yard_read_only(const char *directory);
void yard_unmount(const char *directory);
/* The same of one that a failed test may have left, with files open. */
void yard_abandon(const char *directory);

/* Of the device's bytes. */
uint64_t yard_checksum(const char *device);
void     yard_write(const char *device, uint64_t offset, const char *text);

#endif
