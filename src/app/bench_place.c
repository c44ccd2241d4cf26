/* SPDX-License-Identifier: Apache-2.0 */
/* A user's path is checked before anything is made. */
#include "app/bench_place.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "os/os.h"

static int check(const char *path, uint64_t needed_bytes, const char *smaller,
		 struct kvs_error *err)
{
	char     had[UNITS_TEXT_BYTES], needed[UNITS_TEXT_BYTES];
	uint64_t free_bytes = 0;
	int      rc;

	if (strlen(path) > 2000)
		return err_set(err, KVS_E_INVALID, "--path: is longer than 2000 characters");
	/* A spec's path ends there. */
	if (strchr(path, '?'))
		return err_set(err, KVS_E_INVALID, "--path: \"%.100s\" has a \"?\"", path);
	rc = os_disk_free(path, &free_bytes);
	if (rc < 0) {
		return err_set(err, KVS_E_INVALID, "--path: \"%.100s\": %s", path,
			       kvs_strerror(rc));
	}
	if (free_bytes >= needed_bytes)
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "--path: \"%.60s\" has %s free and %s are needed; use another, or a smaller %s",
		       path, units_format_size(free_bytes, had),
		       units_format_size(needed_bytes, needed), smaller);
}

int bench_place_open(struct bench_place *place, const char *path, uint64_t needed_bytes,
		     const char *smaller, struct kvs_error *err)
{
	int rc;

	*place = (struct bench_place){ 0 };
	rc = check(path, needed_bytes, smaller, err);
	if (rc < 0)
		return rc;
	snprintf(place->directory, sizeof(place->directory), "%s/kvstrata-bench-XXXXXX", path);
	rc = os_directory_make(place->directory);
	if (rc < 0) {
		place->directory[0] = '\0';
		return err_set(err, KVS_E_INVALID, "--path: \"%.100s\" takes no directory: %s",
			       path, kvs_strerror(rc));
	}
	snprintf(place->store, sizeof(place->store), "%s/store", place->directory);
	snprintf(place->other, sizeof(place->other), "%s/other", place->directory);
	return 0;
}

void bench_place_close(struct bench_place *place)
{
	if (!place->directory[0])
		return;
	(void)os_file_remove(place->store);
	(void)os_file_remove(place->other);
	(void)os_directory_remove(place->directory);
	place->directory[0] = '\0';
}
