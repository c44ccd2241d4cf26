/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, from a struct or a file, and closing. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/options.h"
#include "api/parts.h"

struct kvs {
	_Atomic(struct manager *) manager; /* NULL: closed */
	struct kvs               *next;
};

/* Reachable for the life of the process, closed ones included. */
static _Atomic(struct kvs *) shells;

struct manager *api_enter(struct kvs *kvs, int *ret_rc, struct kvs_error *err)
{
	struct manager *const manager = kvs ? atomic_load(&kvs->manager) : NULL;

	*ret_rc = 0;
	if (!kvs)
		*ret_rc = API_NEED(kvs, err);
	else if (!manager)
		*ret_rc = err_set(err, KVS_E_CLOSED, "kvs: it was closed");
	return manager;
}

void kvs_options_init(struct kvs_options *options, size_t struct_size)
{
	struct kvs_options whole = KVS_OPTIONS_INIT;

	whole.struct_size = struct_size;
	memcpy(options, &whole, struct_size < sizeof(whole) ? struct_size : sizeof(whole));
}

static int open_manager(const struct kvs_options *options, struct kvs **ret_kvs,
			struct kvs_error *err)
{
	struct kvs *const kvs = calloc(1, sizeof(*kvs));
	struct manager   *manager;
	int               rc;

	if (!kvs)
		return err_set(err, -ENOMEM, "kvs: no memory");
	rc = manager_open(options, &manager, err);
	if (rc < 0) {
		free(kvs);
		return rc;
	}
	atomic_store(&kvs->manager, manager);
	kvs->next = atomic_load(&shells);
	while (!atomic_compare_exchange_weak(&shells, &kvs->next, kvs))
		;
	*ret_kvs = kvs;
	return 0;
}

int kvs_open(const struct kvs_options *options, struct kvs **ret_kvs, struct kvs_error *err)
{
	if (API_NEED(options, err) < 0 || API_NEED(ret_kvs, err) < 0)
		return KVS_E_INVALID;
	if (options->struct_size != sizeof(*options)) {
		return err_set(
			err, KVS_E_INVALID,
			"struct_size: %zu is not the %zu of this version; KVS_OPTIONS_INIT sets it",
			options->struct_size, sizeof(*options));
	}
	return open_manager(options, ret_kvs, err);
}

static int open_settings(const struct api_settings *settings, struct kvs **ret_kvs,
			 struct kvs_error *err)
{
	char *const        list = settings->stores ? strdup(settings->stores) : NULL;
	struct kvs_options options;
	int                rc;

	if (settings->stores && !list)
		return err_set(err, -ENOMEM, "stores: no memory");
	rc = api_options_from(settings, list, &options, err);
	if (rc == 0)
		rc = open_manager(&options, ret_kvs, err);
	free(list);
	return rc;
}

int kvs_open_json(const char *path, struct kvs **ret_kvs, struct kvs_error *err)
{
	char                    flag[] = "--config";
	char                   *argv[] = { flag, (char *)path };
	struct api_settings settings;
	struct conf            *conf;
	int                     rc;

	if (API_NEED(path, err) < 0 || API_NEED(ret_kvs, err) < 0)
		return KVS_E_INVALID;
	rc = conf_read(api_options, api_options_count, &settings, ARRAY_COUNT(argv), argv, &conf,
		       err);
	if (rc < 0)
		return rc;
	rc = open_settings(&settings, ret_kvs, err);
	if (rc < 0)
		err_prefix(err, "%.96s", path);
	conf_close(conf);
	return rc;
}

int kvs_close(struct kvs *kvs)
{
	struct manager *const manager = kvs ? atomic_exchange(&kvs->manager, NULL) : NULL;

	if (!kvs)
		return 0;
	return manager ? manager_close(manager) : KVS_E_CLOSED;
}
