/* SPDX-License-Identifier: Apache-2.0 */
/* See items.h. */
#include "conf/items.h"

#include <string.h>

/* Of an item that is too long a sentence quotes so much. */
#define QUOTED_CHARACTERS 64

bool items_whole(const char *list)
{
	size_t bytes = strcspn(list, ",");

	while (bytes > 0 && list[bytes]) {
		list += bytes + 1;
		bytes = strcspn(list, ",");
	}
	return bytes > 0;
}

int items_each(const char *label, const char *list, items_add *add, void *ctx,
	       struct kvs_error *err)
{
	char   item[ITEMS_BYTES];
	size_t bytes;
	int    rc;

	do {
		bytes = strcspn(list, ",");
		/* Cut it would be another item. */
		if (bytes >= sizeof(item)) {
			return err_set(err, KVS_E_INVALID,
				       "%s: \"%.*s...\" is too long; use at most %zu characters", label,
				       QUOTED_CHARACTERS, list, sizeof(item) - 1);
		}
		memcpy(item, list, bytes);
		item[bytes] = '\0';
		rc = add(ctx, item, err);
		list += bytes + 1;
	} while (rc == 0 && list[-1]);
	return rc;
}
