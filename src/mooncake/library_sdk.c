/* SPDX-License-Identifier: Apache-2.0 */
/* See library_sdk.h. */
#include "mooncake/library_sdk.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "os/os.h"

#define NOT_CALLED SIZE_MAX

#define CALLED(name) { #name, offsetof(struct sdk, name) }

/* All of the interface: a library that has only some of it is not what it seems. */
static const struct {
	const char *name;
	size_t      at;
} functions[] = {
	CALLED(create),
	CALLED(destroy),
	CALLED(setup),
	{ "init_all", NOT_CALLED },
	{ "health_check", NOT_CALLED },
	{ "put", NOT_CALLED },
	{ "put_from", NOT_CALLED },
	CALLED(batch_put_from),
	{ "get_into", NOT_CALLED },
	CALLED(batch_get_into),
	{ "is_exist", NOT_CALLED },
	CALLED(batch_is_exist),
	{ "get_size", NOT_CALLED },
	{ "get_hostname", NOT_CALLED },
	CALLED(remove),
	CALLED(remove_by_regex),
	{ "remove_all", NOT_CALLED },
	CALLED(register_buffer),
	{ "unregister_buffer", NOT_CALLED },
};

/* Pointers to functions are copied as bytes: ISO C has no conversion to them, POSIX has. */
static size_t bind(struct sdk *sdk, const char **missing)
{
	char   symbol[64];
	size_t i, count = 0;

	for (i = 0; i < ARRAY_COUNT(functions); i++) {
		void *found;

		snprintf(symbol, sizeof(symbol), "mooncake_store_%s", functions[i].name);
		found = os_library_symbol(sdk->library, symbol);
		if (!found)
			missing[count++] = functions[i].name;
		else if (functions[i].at != NOT_CALLED)
			memcpy((char *)sdk + functions[i].at, &found, sizeof(found));
	}
	missing[count] = NULL;
	return count;
}

int sdk_load(const char *path, struct sdk *ret_sdk, struct kvs_error *err)
{
	const char *missing[ARRAY_COUNT(functions) + 1];
	char        text[224];
	struct sdk  sdk = { 0 };
	size_t      count;

	if (!os_library_load(path, &sdk.library, text, sizeof(text)))
		return err_set(err, KVS_E_INVALID, "store.library: %s", text_printable(text));
	count = bind(&sdk, missing);
	if (count == 0) {
		*ret_sdk = sdk;
		return 0;
	}
	os_library_unload(sdk.library);
	if (count == ARRAY_COUNT(functions)) {
		return err_set(err, KVS_E_INVALID,
			       "store.library: \"%.96s\" exports no mooncake_store_create() and none "
			       "of the others; it must be Mooncake's client library", path);
	}
	/* Without the path, so that a sentence of this kind has room for all of them. */
	return err_set(err, KVS_E_INVALID, "store.library: lacks mooncake_store_: %s",
		       text_join(missing, " ", text, sizeof(text)));
}
