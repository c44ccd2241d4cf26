/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A corpus without a fuzzer: every file of a folder through one target, cut short as well, and with
 * other values of its second byte: all, or the first so many.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t count);

static void replay(const char *folder, const char *name, size_t values)
{
	static uint8_t bytes[4096];
	char           path[512];
	FILE          *file;
	size_t         count, i;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	KVS_ASSERT(file);
	count = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	for (i = 0; i <= count; i++)
		LLVMFuzzerTestOneInput(bytes, i);
	for (i = 0; i < values && count > 2; i++) {
		bytes[1] = (uint8_t)i;
		LLVMFuzzerTestOneInput(bytes, count);
	}
}

int main(int argc, char **argv)
{
	DIR           *folder = argc == 2 || argc == 3 ? opendir(argv[1]) : NULL;
	const size_t   values = argc == 3 ? strtoul(argv[2], NULL, 10) : 256;
	struct dirent *entry;
	uint32_t       files = 0;

	if (!folder) {
		fprintf(stderr, "usage: replay FOLDER [VALUES]\n");
		return 2;
	}
	while ((entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		replay(argv[1], entry->d_name, values);
		files++;
	}
	closedir(folder);
	printf("1..1\n%sok 1 - the corpus is replayed: %u files\n", files ? "" : "not ", files);
	return files == 0;
}
