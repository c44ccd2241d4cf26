/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects. */
#include "os/os.h"

#include <dlfcn.h>
#include <stdio.h>

bool os_library_load(const char *path, void **ret_library, char *ret_why, size_t why_bytes)
{
	/* Now, so that what is missing shows here and not in a worker; local, so that names stay apart. */
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		const char *why = dlerror();

		snprintf(ret_why, why_bytes, "%s", why ? why : "it cannot be loaded");
		return false;
	}
	*ret_library = library;
	return true;
}

void *os_library_symbol(void *library, const char *name)
{
	return dlsym(library, name);
}

void os_library_unload(void *library)
{
	(void)dlclose(library);
}
