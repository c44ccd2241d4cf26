/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds a file's lock, and whether it is worth waiting for.
 *
 * The kernel tells through text in /proc.  It is read with suspicion: a line that is not as expected
 * names nobody, and never more than a sentence or a short wait hangs on it.
 */
#include "os/os.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* How often a lock is tried again while its holder ends. */
#define RETRY_NS UINT64_C(1000000)

/* PF_EXITING of the kernel's task flags, in /proc/PID/stat since Linux 2.6: its files are being closed. */
#define TASK_EXITING 0x4u

/* A file as /proc/locks names it. */
struct identity {
	unsigned major, minor;
	uint64_t inode;
};

/* Of the pseudo files here.  The rest of a longer line is passed over: it must not look like a line. */
struct text {
	FILE *file;
	char  line[512];
};

static bool text_open(struct text *text, const char *path)
{
	text->file = fopen(path, "re");
	return text->file != NULL;
}

static bool text_next(struct text *text)
{
	if (!fgets(text->line, sizeof(text->line), text->file))
		return false;
	if (!strchr(text->line, '\n')) {
		int c;

		do {
			c = getc(text->file);
		} while (c != EOF && c != '\n');
	}
	return true;
}

static void text_close(struct text *text)
{
	fclose(text->file);
}

/* The number behind "name:" in a file of such lines, in base 10 or 16; false when there is none. */
static bool read_field(const char *path, const char *name, int base, uint64_t *ret_value)
{
	const size_t length = strlen(name);
	struct text  text;
	bool         found = false;

	if (!text_open(&text, path))
		return false;
	while (!found && text_next(&text)) {
		const char *const at = text.line + length;
		char             *end;

		if (strncmp(text.line, name, length) != 0 || *at != ':')
			continue;
		*ret_value = strtoull(at + 1, &end, base);
		found = end != at + 1;
	}
	text_close(&text);
	return found;
}

/* Where a mount's line begins: its number, its parent's, the device. */
static bool find_mount(uint64_t mount, struct identity *identity)
{
	struct text text;
	bool        found = false;

	if (!text_open(&text, "/proc/self/mountinfo"))
		return false;
	while (!found && text_next(&text)) {
		unsigned number, major, minor;

		if (sscanf(text.line, "%u %*u %u:%u", &number, &major, &minor) != 3)
			continue;
		if (number != mount)
			continue;
		identity->major = major;
		identity->minor = minor;
		found = true;
	}
	text_close(&text);
	return found;
}

/*
 * What stat() says is right for most file systems.  Btrfs and overlays give it a device, some an inode
 * number, of their own making, while /proc/locks shows the kernel's; so do fdinfo and mountinfo.
 */
static bool identify(int fd, struct identity *ret_identity)
{
	struct stat found;
	char        path[64];
	uint64_t    mount;

	if (fstat(fd, &found) < 0)
		return false;
	*ret_identity = (struct identity){ major(found.st_dev), minor(found.st_dev), found.st_ino };
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	/* Absent before Linux 5.14. */
	(void)read_field(path, "ino", 10, &ret_identity->inode);
	if (read_field(path, "mnt_id", 10, &mount))
		(void)find_mount(mount, ret_identity);
	return true;
}

/* A line is like "5: FLOCK  ADVISORY  WRITE 1234 08:01:131 0 EOF"; who only waits has "->" in front. */
static long read_lock_line(const char *line, const struct identity *identity)
{
	unsigned major, minor;
	uint64_t inode;
	long     pid;

	if (sscanf(line, "%*d: FLOCK %*s WRITE %ld %x:%x:%" SCNu64, &pid, &major, &minor,
		   &inode) != 4) {
		return 0;
	}
	if (major != identity->major || minor != identity->minor || inode != identity->inode)
		return 0;
	return pid > 0 ? pid : 0;
}

static long find_holder(const struct identity *identity)
{
	struct text text;
	long        pid = 0;

	if (!text_open(&text, "/proc/locks"))
		return 0;
	while (pid == 0 && text_next(&text))
		pid = read_lock_line(text.line, identity);
	text_close(&text);
	return pid;
}

static const char *in_proc(char path[64], long pid, const char *name)
{
	snprintf(path, 64, "/proc/%ld/%s", pid, name);
	return path;
}

static void read_name(long pid, char *ret_name, size_t name_bytes)
{
	struct text text;
	char        path[64];
	size_t      i;

	if (!text_open(&text, in_proc(path, pid, "comm")))
		return;
	if (!text_next(&text))
		text.line[0] = '\0';
	text_close(&text);
	for (i = 0; i + 1 < name_bytes && text.line[i] != '\0' && text.line[i] != '\n'; i++) {
		const char c = text.line[i];

		/* A process chooses its name, and the sentence it goes into is printed. */
		ret_name[i] = c >= ' ' && c <= '~' ? c : '?';
	}
	ret_name[i] = '\0';
}

/* "1234 (name) S parent group session terminal terminal-group flags ..."; the name may hold anything. */
static bool exits(const char *stat)
{
	const char *const after = strrchr(stat, ')');
	unsigned          flags;
	char              state;

	if (!after || sscanf(after + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		return false;
	return strchr("ZXx", state) != NULL || (flags & TASK_EXITING);
}

/* False when the process is gone. */
static bool read_stat(long pid, bool *ret_exits)
{
	struct text text;
	char        path[64];
	bool        there;

	if (!text_open(&text, in_proc(path, pid, "stat")))
		return false;
	there = text_next(&text);
	text_close(&text);
	*ret_exits = there && exits(text.line);
	return there;
}

/* The signal that kills may wait for a call that cannot be interrupted: a write to a disk. */
static bool is_killed(long pid)
{
	const uint64_t mask = UINT64_C(1) << (SIGKILL - 1);
	uint64_t       own = 0, shared = 0;
	char           path[64];

	in_proc(path, pid, "status");
	(void)read_field(path, "SigPnd", 16, &own);
	(void)read_field(path, "ShdPnd", 16, &shared);
	return (own | shared) & mask;
}

bool os_file_lock_holder(int fd, struct os_lock_holder *ret_holder)
{
	struct os_lock_holder holder = { 0 };
	struct identity       identity;

	if (!identify(fd, &identity))
		return false;
	holder.pid = find_holder(&identity);
	if (holder.pid == 0)
		return false;
	holder.self = holder.pid == getpid();
	read_name(holder.pid, holder.name, sizeof(holder.name));
	if (!read_stat(holder.pid, &holder.ending)) {
		holder.pid = 0;
		holder.ending = true;
	} else if (is_killed(holder.pid)) {
		holder.ending = true;
	}
	*ret_holder = holder;
	return true;
}

int os_file_lock_wait(int fd, uint64_t timeout_ns, struct os_lock_holder *ret_holder)
{
	const uint64_t until_ns = os_until_ns(timeout_ns);

	for (;;) {
		struct os_lock_holder holder = { 0 };
		const int             rc = os_file_lock(fd);
		const uint64_t        now_ns = os_now_ns();
		uint64_t              left_ns;

		if (rc != -EWOULDBLOCK)
			return rc;
		if ((os_file_lock_holder(fd, &holder) && !holder.ending) || now_ns >= until_ns) {
			*ret_holder = holder;
			return rc;
		}
		left_ns = until_ns - now_ns;
		(void)os_wait_readable(NULL, 0, left_ns < RETRY_NS ? left_ns : RETRY_NS);
	}
}
