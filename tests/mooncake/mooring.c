/* SPDX-License-Identifier: Apache-2.0 */
#include "mooring.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "os/os.h"

#define POISON 0xa5
#define STRIDE(bytes) (((uint64_t)(bytes) + MOORING_ROOM + 127) / 64 * 64)

/* --- bytes -------------------------------------------------------------------------------------- */

void paint(void *bytes, uint32_t number, uint32_t count)
{
	const uint64_t last = word_of(number, count / 8);

	fill(bytes, number, count);
	memcpy((uint8_t *)bytes + count / 8 * 8, &last, count % 8);
}

bool is_painted(const void *bytes, uint32_t number, uint32_t count)
{
	const uint64_t last = word_of(number, count / 8);

	return is_filled(bytes, number, count) &&
	       memcmp((const uint8_t *)bytes + count / 8 * 8, &last, count % 8) == 0;
}

static void poison(void *bytes, uint64_t count)
{
	memset(bytes, POISON, count);
}

static bool is_poison(const uint8_t *bytes, uint64_t count)
{
	return count == 0 || (bytes[0] == POISON && memcmp(bytes, bytes + 1, count - 1) == 0);
}

void mooring_rest(struct mooring *mooring)
{
	poison(mooring->slice.ptr, mooring->slice.bytes);
}

void mooring_expect_rest(const struct mooring *mooring)
{
	assert_true(is_poison(mooring->slice.ptr, mooring->slice.bytes));
}

/* --- open and close ----------------------------------------------------------------------------- */

bool mooring_is_library(void)
{
	const char *const way = getenv("KVSTRATA_MOONCAKE_WAY");

	return way && strcmp(way, "library") == 0;
}

/* What it is linked against comes first, and nobody calls it. */
static void write_library(char *ret_text, size_t room)
{
	char  path[512], why[256];
	void *no_cuda;

	if (!os_library_load(NO_CUDA_PATH, &no_cuda, why, sizeof(why)))
		fail_msg("%s", why);
	cluster_path("library/mooncake/libmooncake_store.so", path);
	snprintf(ret_text, room, "way=library&library=%s", path);
}

static void write_agent(char *ret_text, size_t room)
{
	char python[512];

	cluster_path("bin/python", python);
	snprintf(ret_text, room, "python=%s&agent=%s", python, AGENT_PATH);
}

void mooring_spec(const struct cluster *cluster, const char *options, char ret_spec[MOORING_SPEC_MAX])
{
	char way[1200];

	if (mooring_is_library())
		write_library(way, sizeof(way));
	else
		write_agent(way, sizeof(way));
	snprintf(ret_spec, MOORING_SPEC_MAX,
		 "mooncake:127.0.0.1:%s?metrics=127.0.0.1:%s&lease=%ums&local_hostname=127.0.0.1&%s%s%s",
		 cluster->port, cluster->metrics, cluster->options.lease_ms, way, options ? "&" : "",
		 options ? options : "");
}

void mooring_open_memory(struct mooring *mooring, uint64_t memory_bytes)
{
	*mooring = (struct mooring){ .fd = memfd_create("mooring", MFD_CLOEXEC),
				     .slice = { .bytes = memory_bytes, .room = memory_bytes } };
	assert_true(mooring->fd >= 0);
	assert_int_equal(ftruncate(mooring->fd, (off_t)memory_bytes), 0);
	mooring->slice.ptr = mmap(NULL, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
				  mooring->fd, 0);
	assert_true(mooring->slice.ptr != MAP_FAILED);
	mooring_rest(mooring);
}

void mooring_close_memory(struct mooring *mooring)
{
	munmap(mooring->slice.ptr, mooring->slice.bytes);
	close(mooring->fd);
}

struct kvs_memory mooring_memory(const struct mooring *mooring)
{
	return (struct kvs_memory){ &mooring->slice, 1, mooring->fd };
}

void mooring_open_spec(struct mooring *mooring, const char *spec, uint32_t block_bytes,
		       uint64_t memory_bytes)
{
	struct kvs_error  err = { 0 };
	struct kvs_memory memory;

	mooring_open_memory(mooring, memory_bytes);
	if (store_open(spec, block_bytes, "lru", &mooring->store, &err) != 0)
		fail_msg("%s: %s", spec, err.message);
	memory = mooring_memory(mooring);
	assert_int_equal(mooring->store->ops->register_memory(mooring->store, &memory), 0);
}

void mooring_open(struct mooring *mooring, const struct cluster *cluster, const char *options,
		  uint32_t block_bytes, uint64_t memory_bytes)
{
	char spec[MOORING_SPEC_MAX];

	mooring_spec(cluster, options, spec);
	mooring_open_spec(mooring, spec, block_bytes, memory_bytes);
}

void mooring_close(struct mooring *mooring)
{
	assert_int_equal(mooring->store->ops->close(mooring->store), 0);
	mooring_expect_rest(mooring);
	mooring_close_memory(mooring);
}

/* --- batches ------------------------------------------------------------------------------------ */

void mooring_batch(struct mooring *mooring, uint32_t first, uint32_t count, uint32_t bytes)
{
	uint8_t *const memory = mooring->slice.ptr;
	uint32_t       i;

	assert_true(count <= MOORING_ROWS && count * STRIDE(bytes) <= mooring->slice.bytes);
	mooring->bytes = bytes;
	mooring->count = count;
	for (i = 0; i < count; i++) {
		mooring->keys[i] = key_of(first + i);
		mooring->spans[i] = (struct kvs_span){ memory + i * STRIDE(bytes), bytes,
						       bytes + MOORING_ROOM };
		mooring->results[i] = KVS_RESULT_UNKNOWN;
	}
}

/* The room is the store's to use; past it nothing may change. */
static void check_guards(const struct mooring *mooring)
{
	const uint8_t *const end = (const uint8_t *)mooring->slice.ptr + mooring->slice.bytes;
	uint32_t             i;

	for (i = 0; i < mooring->count; i++) {
		const uint8_t *const from = (const uint8_t *)mooring->spans[i].ptr +
					    mooring->spans[i].room;
		const uint8_t *const to = i + 1 < mooring->count ? mooring->spans[i + 1].ptr : end;

		assert_true(is_poison(from, (uint64_t)(to - from)));
	}
}

int mooring_put(struct mooring *mooring)
{
	uint32_t i;
	int      rc;

	mooring->retired = false;
	for (i = 0; i < mooring->count; i++)
		paint(mooring->spans[i].ptr, mooring->keys[i].offset, mooring->bytes);
	rc = mooring->store->ops->put(mooring->store, mooring->keys, mooring->spans, mooring->count,
				      mooring->results, &mooring->retired);
	for (i = 0; i < mooring->count; i++) {
		assert_true(is_painted(mooring->spans[i].ptr, mooring->keys[i].offset,
				       mooring->bytes));
	}
	check_guards(mooring);
	mooring_rest(mooring);
	return rc;
}

int mooring_get(struct mooring *mooring)
{
	int rc;

	mooring->retired = false;
	mooring_rest(mooring);
	rc = mooring->store->ops->get(mooring->store, mooring->keys, mooring->spans, mooring->count,
				      mooring->results, &mooring->retired);
	check_guards(mooring);
	return rc;
}

int mooring_exists(struct mooring *mooring)
{
	return mooring->store->ops->exists(mooring->store, mooring->keys, mooring->count,
					   mooring->results);
}

void mooring_expect(const struct mooring *mooring, enum kvs_result result)
{
	uint32_t i;

	for (i = 0; i < mooring->count; i++) {
		if (mooring->results[i] != result)
			fail_msg("row %u: %d, not %d", i, mooring->results[i], result);
	}
}

uint32_t mooring_count(const struct mooring *mooring, enum kvs_result result)
{
	uint32_t i, count = 0;

	for (i = 0; i < mooring->count; i++)
		count += mooring->results[i] == result;
	return count;
}

void mooring_expect_payloads(const struct mooring *mooring)
{
	uint32_t i;

	for (i = 0; i < mooring->count; i++) {
		assert_true(mooring->results[i] != KVS_RESULT_DONE ||
			    is_painted(mooring->spans[i].ptr, mooring->keys[i].offset,
				       mooring->bytes));
	}
}

void mooring_round_trip(struct mooring *mooring, uint32_t first, uint32_t count, uint32_t bytes)
{
	mooring_batch(mooring, first, count, bytes);
	assert_int_equal(mooring_put(mooring), 0);
	assert_true(mooring->retired);
	mooring_expect(mooring, KVS_RESULT_DONE);
	assert_int_equal(mooring_get(mooring), 0);
	assert_true(mooring->retired);
	mooring_expect(mooring, KVS_RESULT_DONE);
	mooring_expect_payloads(mooring);
	mooring_rest(mooring);
}

static bool put_is_done(void *arg)
{
	struct mooring *const mooring = arg;

	return mooring_put(mooring) == 0 && mooring->results[0] == KVS_RESULT_DONE;
}

void mooring_await_well(struct mooring *mooring, uint32_t first)
{
	mooring_batch(mooring, first, 1, 4096);
	assert_true(cluster_await(put_is_done, mooring));
	mooring_round_trip(mooring, first, 1, 4096);
}

/* --- agents ------------------------------------------------------------------------------------- */

static bool is_agent_of(const char *name, pid_t parent)
{
	char    path[288], text[512];
	FILE   *file;
	size_t  bytes;
	int     found = 0;

	snprintf(path, sizeof(path), "/proc/%s/stat", name);
	file = fopen(path, "r");
	if (!file)
		return false;
	/* The name, in brackets, may hold anything but is the interpreter's. */
	if (fscanf(file, "%*d (%*[^)]) %*c %d", &found) != 1)
		found = 0;
	fclose(file);
	if (found != parent)
		return false;
	snprintf(path, sizeof(path), "/proc/%s/cmdline", name);
	file = fopen(path, "r");
	if (!file)
		return false;
	bytes = fread(text, 1, sizeof(text), file);
	fclose(file);
	return memmem(text, bytes, "kvstrata-mooncake-agent", 23) != NULL;
}

uint32_t agents_find(pid_t parent, pid_t *ret_pids, uint32_t pid_max)
{
	DIR *const     directory = opendir("/proc");
	struct dirent *entry;
	uint32_t       count = 0;

	KVS_ASSERT(directory);
	while (count < pid_max && (entry = readdir(directory))) {
		const int pid = (int)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && is_agent_of(entry->d_name, parent))
			ret_pids[count++] = pid;
	}
	closedir(directory);
	return count;
}
