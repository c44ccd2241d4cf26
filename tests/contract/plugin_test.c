/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that are refused, each with its reason, and options on their way into one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "store/store.h"

#define ODD(name) "plugin:" ODD_DIRECTORY "/libodd_" name ".so"

static const struct {
	const char *spec;
	int         code;
	const char *message; /* contains */
} refusals[] = {
	{ "plugin:", KVS_E_INVALID, "store.plugin: \"\" is no path with a /" },
	{ "plugin:libshelf.so", KVS_E_INVALID, "store.plugin: \"libshelf.so\" is no path with a /" },
	{ "plugin:/nowhere/libx.so", KVS_E_INVALID, "store.plugin: /nowhere/libx.so: cannot open" },
	{ "plugin:/etc/passwd", KVS_E_INVALID, "store.plugin: /etc/passwd: " },
	{ ODD("nameless"), KVS_E_PROTO, "is no store plugin: it exports no kvs_store_plugin" },
	{ ODD("tableless"), KVS_E_PROTO, "hands out no table: its kvs_store_plugin() returned NULL" },
	{ ODD("abi"), KVS_E_PROTO, "has store ABI 4711, this build has 4" },
	{ ODD("getless"), KVS_E_PROTO, "has no get in its table" },
	{ ODD("locked"), KVS_E_PROTO, "has no unlock in its table" },
	{ ODD("storeless"), KVS_E_PROTO, "open() of odd gave 0 and no store" },
	{ ODD("silent"), -EACCES, "Permission denied" },
	{ ODD("plain"), -EPERM, "65536+4096" },
	{ ODD("plain") "?width=3&depth=x=y", -EPERM, "width=3;depth=x=y;65536+4096" },
	{ ODD("plain") "?width=3&width=4", KVS_E_INVALID, "store.width: is given twice" },
	{ ODD("knowing") "?depth=7", -EPERM, "depth=7;65536+4096" },
	{ ODD("knowing") "?height=7", KVS_E_INVALID,
	  "store: \"height\" is not an option of odd; use width, depth" },
};

/* Whether the process has the object mapped. */
static bool is_loaded(const char *path)
{
	FILE *const maps = fopen("/proc/self/maps", "r");
	char        line[4096];
	bool        found = false;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, path) != NULL;
	fclose(maps);
	return found;
}

/* The first test: what was loaded once stays. */
static void B2_0_a_backend_is_loaded_by_its_first_use(void **state)
{
	struct kvs_store *store = NULL;

	(void)state;
	assert_int_equal(store_open("mem:256KiB", 65536, "lru", &store, NULL), 0);
	assert_false(is_loaded(SHELF_PATH));
	assert_int_equal(store->ops->close(store), 0);
	assert_int_equal(store_open("plugin:" SHELF_PATH, 65536, "lru", &store, NULL), 0);
	assert_true(is_loaded(SHELF_PATH));
	assert_int_equal(store->ops->close(store), 0);
}

static void each_odd_plugin_is_told_why(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(refusals); i++) {
		struct kvs_store *store = NULL;
		struct kvs_error  err = { 0 };

		assert_int_equal(store_open(refusals[i].spec, 65536, "lru", &store, &err),
				 refusals[i].code);
		assert_null(store);
		if (!strstr(err.message, refusals[i].message))
			fail_msg("%s: got \"%s\"", refusals[i].spec, err.message);
	}
}

static void a_plugin_is_opened_as_often_as_asked(void **state)
{
	struct kvs_store *store[2] = { NULL, NULL };
	int               i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(store_open("plugin:" SHELF_PATH, 65536, "lru", &store[i], NULL), 0);
		assert_string_equal(store[i]->ops->name, "shelf");
	}
	assert_ptr_not_equal(store[0], store[1]);
	for (i = 0; i < 2; i++)
		assert_int_equal(store[i]->ops->close(store[i]), 0);
	assert_int_equal(store_open("plugin:" SHELF_PATH "?size=1", 65536, "lru", &store[0], NULL),
			 KVS_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B2_0_a_backend_is_loaded_by_its_first_use),
		cmocka_unit_test(each_odd_plugin_is_told_why),
		cmocka_unit_test(a_plugin_is_opened_as_often_as_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
