/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store `strata:PATH?capacity=SIZE`: its spec, and the table of the room strata, where all of it
 * happens.
 */
#include <errno.h>
#include <string.h>

#include "store/kind.h"
#include "store/spec.h"
#include "strata/strata.h"

/* One of names, NULL-terminated, as its number. */
static int read_choice(const struct kvs_store_config *config, const char *key,
		       const char *const *names, int *ret_choice, struct kvs_error *err)
{
	const char *const text = spec_option(config, key);
	int               i;

	if (!text)
		return 0;
	for (i = 0; names[i]; i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret_choice = i;
			return 0;
		}
	}
	return err_set(err, KVS_E_INVALID, "store.%s: \"%.64s\" is not one of %s, %s%s%s", key, text,
		       names[0], names[1], names[2] ? ", " : "", names[2] ? names[2] : "");
}

static int read_choices(const struct kvs_store_config *config, struct strata_settings *set,
			struct kvs_error *err)
{
	static const char *const durability[] = { "none", "segment", "put", NULL };
	static const char *const admit[] = { "all", "second", NULL };
	static const char *const io[] = { "auto", "plain", NULL };
	int                      durability_choice = STRATA_NONE, admit_choice = 0, io_choice = 0;

	if (read_choice(config, "durability", durability, &durability_choice, err) < 0 ||
	    read_choice(config, "admit", admit, &admit_choice, err) < 0 ||
	    read_choice(config, "io", io, &io_choice, err) < 0)
		return KVS_E_INVALID;
	set->durability = (enum strata_durability)durability_choice;
	set->admit_second = admit_choice == 1;
	set->plain_io = io_choice == 1;
	return 0;
}

static int read_size(const struct kvs_store_config *config, const char *key, uint64_t *ret_bytes,
		     struct kvs_error *err)
{
	const char *const text = spec_option(config, key);

	if (!text)
		return 0;
	if (spec_size(key, text, ret_bytes, err) < 0)
		return KVS_E_INVALID;
	if (*ret_bytes == 0)
		return err_set(err, KVS_E_INVALID, "store.%s: 0 is not allowed; leave it out", key);
	return 0;
}

static int open_spec(const struct kvs_store_config *config, struct kvs_store **ret_store,
		     struct kvs_error *err)
{
	struct strata_settings set = { .path = config->place,
				       .block_bytes = config->block_bytes,
				       .evict_policy = config->evict_policy,
				       .verify = true };

	if (!*config->place) {
		return err_set(err, KVS_E_INVALID,
			       "store.path: is missing; write strata:PATH?capacity=SIZE");
	}
	if (read_size(config, "capacity", &set.capacity_bytes, err) < 0 ||
	    read_size(config, "segment", &set.segment_bytes, err) < 0 ||
	    read_size(config, "write_budget", &set.write_budget_bytes, err) < 0 ||
	    spec_count(config, "objects", &set.objects_max, err) < 0 ||
	    spec_count(config, "corrupt_every", &set.corrupt_every, err) < 0 ||
	    spec_switch(config, "verify", &set.verify, err) < 0 ||
	    read_choices(config, &set, err) < 0)
		return KVS_E_INVALID;
	return strata_open(&set, &store_strata_ops, ret_store, err);
}

static const char *const options[] = { "capacity", "segment", "objects", "durability",
				       "write_budget", "admit", "io", "corrupt_every", "verify",
				       NULL };

const struct kvs_store_ops store_strata_ops = {
	.abi = KVS_STORE_ABI,
	.name = "strata",
	.options = options,
	.open = open_spec,
	.close = strata_close,
	.describe = strata_describe,
	.exists = strata_exists,
	.get = strata_get,
	.put = strata_put,
	.remove = strata_remove,
	.list = strata_list,
	.purge = strata_purge,
	.lock = strata_lock,
	.unlock = strata_unlock,
	.register_memory = strata_register,
	.submit = strata_submit,
	.reap = strata_reap,
};
