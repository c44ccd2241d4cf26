/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "yard.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/digest.h"
#include "os/os.h"

#define LOOP_MAJOR 7
#define DEVICES_MAX 16
/* Somebody else may take the device that was free. */
#define TRIES 64

static struct {
	char     directory[32];
	int      devices[DEVICES_MAX];
	char     paths[DEVICES_MAX][YARD_PATH];
	uint32_t device_count;
} yard;

const char *yard_path(const char *format, ...)
{
	static char     paths[4][YARD_PATH];
	static uint32_t turn;
	char *const     path = paths[turn++ % 4];
	const int       used = snprintf(path, YARD_PATH, "%s/", yard.directory);
	va_list         list;

	va_start(list, format);
	vsnprintf(path + used, YARD_PATH - (size_t)used, format, list);
	va_end(list);
	return path;
}

const char *yard_open(void)
{
	memcpy(yard.directory, "/tmp/kvstrata-yard-XXXXXX", sizeof("/tmp/kvstrata-yard-XXXXXX"));
	if (geteuid() != 0)
		return "not root: no file systems of a test's own";
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return "no namespace for mounts here";
	if (os_directory_make(yard.directory) < 0)
		return "no folder in /tmp";
	if (mount("none", yard.directory, "tmpfs", 0, "size=1g") == 0)
		return NULL;
	rmdir(yard.directory);
	return "nothing can be mounted here";
}

void yard_close(void)
{
	while (yard.device_count > 0)
		os_close(yard.devices[--yard.device_count]);
	/* With what is mounted below. */
	assert_int_equal(umount2(yard.directory, MNT_DETACH), 0);
	assert_int_equal(rmdir(yard.directory), 0);
}

/* --- devices ---------------------------------------------------------------------------------- */

/* Nobody else's file, and gone when the device lets go of it. */
static int backing_open(uint64_t bytes)
{
	const int fd = open(yard.directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

static int attach(int control, int backing, uint32_t sector_bytes, const char *path)
{
	const struct loop_config config = { .fd = (uint32_t)backing,
					    .block_size = sector_bytes,
					    .info.lo_flags = LO_FLAGS_AUTOCLEAR };
	const int number = ioctl(control, LOOP_CTL_GET_FREE);
	int       fd, failed;

	if (number < 0)
		return -errno;
	/* Where nobody makes nodes in /dev, either. */
	unlink(path);
	if (mknod(path, S_IFBLK | 0600, makedev(LOOP_MAJOR, (unsigned)number)) != 0)
		return -errno;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
		return fd;
	failed = errno;
	close(fd);
	return -failed;
}

const char *yard_device(uint64_t bytes, uint32_t sector_bytes)
{
	char *const path = yard.paths[yard.device_count];
	const int   control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	const int   backing = backing_open(bytes);
	int         fd = control < 0 ? -errno : -EBUSY, tries;

	assert_true(yard.device_count < DEVICES_MAX);
	snprintf(path, YARD_PATH, "%s", yard_path("device%u", yard.device_count));
	for (tries = 0; control >= 0 && fd == -EBUSY && tries < TRIES; tries++)
		fd = attach(control, backing, sector_bytes, path);
	os_close(control);
	os_close(backing);
	if (fd < 0) {
		print_message("# no loop device with sectors of %u bytes: %s\n", sector_bytes,
			      strerror(-fd));
		return NULL;
	}
	yard.devices[yard.device_count++] = fd;
	return path;
}

uint64_t yard_checksum(const char *device)
{
	const int fd = open(device, O_RDONLY | O_CLOEXEC);
	uint64_t  bytes, checksum;
	void     *memory;

	assert_int_equal(os_file_size(fd, &bytes), 0);
	memory = malloc(bytes);
	assert_non_null(memory);
	assert_int_equal(os_file_read(fd, memory, bytes, 0), 0);
	checksum = xxh3_64(memory, bytes);
	free(memory);
	close(fd);
	return checksum;
}

void yard_write(const char *device, uint64_t offset, const char *text)
{
	const int fd = open(device, O_WRONLY | O_CLOEXEC);

	assert_int_equal(os_file_write(fd, text, strlen(text), offset), 0);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

/* --- file systems ----------------------------------------------------------------------------- */

bool yard_format(const char *device, const char *type)
{
	char  program[32], path[YARD_PATH];
	char  quiet[] = "-q", force[] = "-F", last[] = "-f", said[512] = "";
	char *argv[] = { program, quiet, strcmp(type, "xfs") == 0 ? last : force, path, NULL };
	struct os_process process;
	ssize_t           count;
	size_t            used = 0;
	int               rc;

	snprintf(program, sizeof(program), "mkfs.%s", type);
	snprintf(path, sizeof(path), "%s", device);
	rc = os_process_start(argv, &process);
	if (rc < 0) {
		print_message("# %s: %s\n", program, strerror(-rc));
		return false;
	}
	while ((count = os_process_read(&process, said + used, sizeof(said) - 1 - used)) > 0)
		used += (size_t)count;
	said[used] = '\0';
	if (os_process_wait(&process) != 0)
		fail_msg("%s: %s", program, said);
	return true;
}

bool yard_mount(const char *device, const char *type, const char *directory, const char *options)
{
	assert_int_equal(mkdir(directory, 0700), 0);
	if (mount(device, directory, type, 0, options) == 0)
		return true;
	print_message("# no %s here: %s\n", type, strerror(errno));
	rmdir(directory);
	return false;
}

void yard_read_only(const char *directory)
{
	assert_int_equal(mount("none", directory, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
}

void yard_unmount(const char *directory)
{
	assert_int_equal(umount2(directory, 0), 0);
	assert_int_equal(rmdir(directory), 0);
}

void yard_abandon(const char *directory)
{
	(void)umount2(directory, MNT_DETACH);
	(void)rmdir(directory);
}
