/* SPDX-License-Identifier: Apache-2.0 */
/* The resp store without a server: what a spec is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "store/store.h"

struct refusal {
	const char *spec;
	const char *message; /* its beginning */
};

static const struct refusal refusals[] = {
	{ "resp", "store.host: is missing; write resp:HOST:PORT" },
	{ "resp::6379", "store.host: is missing" },
	{ "resp:[::1", "store.host: \"[::1\" has no closing bracket" },
	{ "resp:[::1]6379", "store.host: \"[::1]6379\": after the bracket comes :PORT" },
	{ "resp:::1", "store.host: is missing" },
	{ "resp:fe80::1:6379", "store.host: \"fe80::1:6379\" has several colons; write [ADDRESS]:PORT" },
	{ "resp:bob:secret@localhost:6379", "store.host: has an @; a login goes into user=" },
	{ "resp:localhost:", "store.port: \"\" is not a port; use 1 to 65535" },
	{ "resp:localhost:0", "store.port: \"0\" is not a port" },
	{ "resp:localhost:65536", "store.port: \"65536\" is not a port" },
	{ "resp:localhost:+1", "store.port: \"+1\" is not a port" },
	{ "resp:localhost:12345678", "store.port: \"12345678\" is not a port" },
	{ "resp:unix:", "store.path: is missing; write resp:unix:/PATH" },
	{ "resp:h?db=x", "store.db: \"x\" is not a count" },
	{ "resp:h?db=2147483648", "store.db: 2147483648 is not in 0 .. 2147483647" },
	{ "resp:h?connections=0", "store.connections: 0 is not in 1 .. 16" },
	{ "resp:h?connections=17", "store.connections: 17 is not in 1 .. 16" },
	{ "resp:h?pipeline=65", "store.pipeline: 65 is not in 1 .. 64" },
	{ "resp:h?bytes_in_flight=1", "store.bytes_in_flight: 1 is not in 4096 .. 4294967296" },
	{ "resp:h?timeout=5", "store.timeout: \"5\" is not a duration" },
	{ "resp:h?timeout=0", "store.timeout: is not between 1ms and 10m" },
	{ "resp:h?connect_timeout=11m", "store.connect_timeout: is not between 1ms and 10m" },
	{ "resp:h?connect=maybe", "store.connect: \"maybe\" is neither required nor lazy" },
	{ "resp:h?format=json", "store.format: \"json\" is neither verified nor raw" },
	{ "resp:h?tls=yes", "store.tls: \"yes\" is neither on nor off" },
	{ "resp:h?tls_name=x", "store.tls_name: is given without tls=on" },
	{ "resp:h?tls=off&tls_ca=x", "store.tls_ca: is given without tls=on" },
	{ "resp:unix:/s?tls=on", "store.tls_name: is missing; a path has no name" },
	{ "resp:h?connect=lazy&tls=on&tls_ca=/nowhere", "store.tls_ca: \"/nowhere\": cannot be read" },
	{ "resp:h?prefix=a*", "store.prefix: \"a*\" may hold letters, digits, _ . and - only" },
	{ "resp:h?prefix=", "store.prefix: is empty" },
	{ "resp:h?prefix=abcdefghijabcdefghijabcdefghijabc", "store.prefix: is longer than 32 bytes" },
	{ "resp:h?user=u", "store.password: is missing; user \"u\" needs one" },
	{ "resp:h?password=s3cret&password_file=f", "store.password_file: is given beside password" },
	{ "resp:h?password_file=/nowhere", "store.password_file: \"/nowhere\" cannot be read: " },
	{ "resp:h?password_file=/dev/null", "store.password_file: its first line is empty" },
	{ "resp:h?capacity=1", "store: \"capacity\" is not an option of resp; use db, user, password," },
};

static void each_bad_spec_is_told_why(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(refusals); i++) {
		struct kvs_store *store = NULL;
		struct kvs_error  err = { 0 };
		const int         rc = store_open(refusals[i].spec, 65536, "lru", &store, &err);

		assert_true(rc < 0);
		assert_int_equal(err.code, rc);
		assert_null(store);
		assert_null(strstr(err.message, "s3cret"));
		if (strncmp(err.message, refusals[i].message, strlen(refusals[i].message)) != 0)
			fail_msg("%s: %s", refusals[i].spec, err.message);
	}
}

static void a_block_must_fit_a_value(void **state)
{
	struct kvs_store *store;
	struct kvs_error  err;

	(void)state;
	assert_int_equal(store_open("resp:h?connect=lazy", UINT64_C(1) << 29, "lru", &store, &err),
			 KVS_E_INVALID);
	assert_string_equal(err.message,
			    "block_bytes: 512 MiB is more than a Redis value holds with its trailer; "
			    "use at most 512 MiB less 4 KiB");
}

static void a_lazy_store_opens_without_its_server(void **state)
{
	struct kvs_store_info info;
	struct kvs_store     *store;

	(void)state;
	assert_int_equal(store_open("resp:[::1]:1?connect=lazy&db=2&user=u&password=p", 4096, "lru",
				    &store, NULL), 0);
	store->ops->describe(store, &info);
	assert_true(info.failures_retire);
	assert_true(info.verified);
	assert_true(info.away);
	assert_false(info.locks);
	assert_false(info.one_thread);
	assert_int_equal(info.durability, KVS_DURABILITY_PROCESS);
	assert_true(strlen(info.note) > 0);
	assert_int_equal(store->ops->close(store), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_bad_spec_is_told_why),
		cmocka_unit_test(a_block_must_fit_a_value),
		cmocka_unit_test(a_lazy_store_opens_without_its_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
