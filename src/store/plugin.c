/* SPDX-License-Identifier: Apache-2.0 */
/* See plugin.h.  The table is a stranger's: it is checked, never asserted. */
#include "store/plugin.h"

#include <string.h>

#include "os/os.h"

/* What follows abi has its shape from abi, so that is checked before all else. */
static int check_abi(const struct kvs_store_ops *ops, struct kvs_error *err)
{
	if (ops->abi == KVS_STORE_ABI)
		return 0;
	return err_set(err, KVS_E_PROTO,
		       "has store ABI %u, this build has %u; build it against this build's "
		       "kvstrata/store.h",
		       ops->abi, KVS_STORE_ABI);
}

/* The first entry that is missing, by name; NULL when none is. */
static const char *missing(const struct kvs_store_ops *ops)
{
	const bool is_async = ops->submit && ops->reap;
	const struct {
		const char *name;
		bool        is_there;
	} entries[] = {
		{ "name", ops->name },
		{ "open", ops->open },
		{ "close", ops->close },
		{ "describe", ops->describe },
		{ "exists", ops->exists },
		{ "submit", ops->submit || !ops->reap },
		{ "reap", ops->reap || !ops->submit },
		{ "get", ops->get || is_async },
		{ "put", ops->put || is_async },
		{ "remove", ops->remove },
		{ "lock", ops->lock || !ops->unlock },
		{ "unlock", ops->unlock || !ops->lock },
	};
	size_t i;

	for (i = 0; i < ARRAY_COUNT(entries); i++) {
		if (!entries[i].is_there)
			return entries[i].name;
	}
	return NULL;
}

static int check(const struct kvs_store_ops *ops, struct kvs_error *err)
{
	const char *name;
	int         rc;

	if (!ops) {
		return err_set(err, KVS_E_PROTO, "hands out no table: its %s() returned NULL",
			       KVS_STORE_PLUGIN_SYMBOL);
	}
	rc = check_abi(ops, err);
	if (rc < 0)
		return rc;
	name = missing(ops);
	if (!name)
		return 0;
	return err_set(err, KVS_E_PROTO,
		       "has no %s in its table; kvstrata/store.h says which entries may be NULL", name);
}

static int table_of(void *library, const struct kvs_store_ops **ret_ops, struct kvs_error *err)
{
	kvs_store_plugin_entry *entry;
	void                   *symbol = os_library_symbol(library, KVS_STORE_PLUGIN_SYMBOL);
	const struct kvs_store_ops *ops;
	int                         rc;

	if (!symbol) {
		return err_set(err, KVS_E_PROTO, "is no store plugin: it exports no %s",
			       KVS_STORE_PLUGIN_SYMBOL);
	}
	/* ISO C has no cast from an object's address to a function's; POSIX has the conversion. */
	memcpy(&entry, &symbol, sizeof(entry));
	ops = entry();
	rc = check(ops, err);
	if (rc == 0)
		*ret_ops = ops;
	return rc;
}

int plugin_load(const char *path, const struct kvs_store_ops **ret_ops, struct kvs_error *err)
{
	char  why[160];
	void *library;
	int   rc;

	/* The loader would look for a bare name in places that the user did not write down. */
	if (!strchr(path, '/')) {
		return err_set(err, KVS_E_INVALID,
			       "store.plugin: \"%.64s\" is no path with a /; write plugin:./NAME.so",
			       path);
	}
	if (!os_library_load(path, &library, why, sizeof(why)))
		return err_set(err, KVS_E_INVALID, "store.plugin: %s", why);
	rc = table_of(library, ret_ops, err);
	if (rc < 0) {
		err_prefix(err, "store.plugin: \"%.96s\"", path);
		os_library_unload(library);
	}
	return rc;
}

int plugin_open(const struct kvs_store_ops *ops, const struct kvs_store_config *config,
		struct kvs_store **ret_store, struct kvs_error *err)
{
	struct kvs_error  said = { 0 };
	struct kvs_store *store = NULL;
	int               rc = ops->open(config, &store, &said);

	if (rc > 0 || (rc == 0 && (!store || !store->ops))) {
		return err_set(err, KVS_E_PROTO,
			       "store.plugin: open() of %.32s gave %d and no store that names its table",
			       ops->name, rc);
	}
	if (rc < 0) {
		said.message[sizeof(said.message) - 1] = '\0';
		err_set(err, rc, "%s", *said.message ? said.message : kvs_strerror(rc));
		err_prefix(err, "store.plugin: \"%.96s\"", config->place);
		return rc;
	}
	*ret_store = store;
	return 0;
}
