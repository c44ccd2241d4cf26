/* SPDX-License-Identifier: Apache-2.0 */
/* Below /tmp, which may be a disk or memory. */
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"

struct place place_open(void)
{
	struct place place = { .directory = "/tmp/kvstrata-os-XXXXXX" };

	KVS_ASSERT(mkdtemp(place.directory) != NULL);
	snprintf(place.path, sizeof(place.path), "%s/file", place.directory);
	return place;
}

void place_close(const struct place *place)
{
	unlink(place->path);
	rmdir(place->directory);
}
