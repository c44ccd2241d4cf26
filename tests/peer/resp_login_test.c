/* SPDX-License-Identifier: Apache-2.0 */
/* Every way in: TCP over IPv4 and IPv6, a Unix socket, TLS, passwords; and every way to be refused. */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client.h"
#include "scripted.h"

static struct redis  redis;
static redisContext *client;

static int start(void **state)
{
	(void)state;
	redis_start(&redis);
	client = redis_client(&redis);
	redis_run(client, "ACL SETUSER alice on >wonder1and ~kvs:* +@all");
	redis_run(client, "ACL SETUSER bob on >bui1der ~kvs:* +get +set +exists +del");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	redisFree(client);
	redis_stop(&redis);
	return 0;
}

static int clean(void **state)
{
	(void)state;
	redis_run(client, "FLUSHALL");
	return 0;
}

static char spec_text[512];

/* One spec at a time. */
static const char *spec(const char *format, ...) __attribute__((format(printf, 1, 2)));

static const char *spec(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(spec_text, sizeof(spec_text), format, list);
	va_end(list);
	return spec_text;
}

static void expect_well(const char *text)
{
	struct rig rig;

	rig_open(&rig, text, 65536);
	rig_expect_well(&rig, 1);
	rig_close(&rig);
	redis_run(client, "FLUSHALL");
}

static void each_address_family_is_a_way_in(void **state)
{
	(void)state;
	expect_well(spec("resp:127.0.0.1:%s", redis.port));
	expect_well(spec("resp:localhost:%s", redis.port));
	expect_well(spec("resp:unix:%s", redis.socket));
	if (redis.has_ipv6)
		expect_well(spec("resp:[::1]:%s", redis.port));
	else
		print_message("# no IPv6 here\n");
}

static void a_user_logs_in_with_a_password(void **state)
{
	(void)state;
	expect_well(spec("resp:127.0.0.1:%s?user=alice&password=wonder1and", redis.port));
	/* One who may not PING is no less logged in. */
	expect_well(spec("resp:127.0.0.1:%s?user=bob&password=bui1der", redis.port));
}

static void a_password_comes_from_a_file(void **state)
{
	char  path[128];
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/password", redis.directory);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("wonder1and\nnot this\n", file);
	fclose(file);
	expect_well(spec("resp:127.0.0.1:%s?user=alice&password_file=%s", redis.port, path));
}

static void expect_secret_kept(const char *text, int code, const char *sentence)
{
	struct kvs_store *store;
	struct kvs_error  err;

	rig_refused(text, code, sentence);
	assert_true(store_open(text, 65536, "lru", &store, &err) < 0);
	assert_null(strstr(err.message, "gu3ss"));
}

static void a_wrong_password_is_refused_and_not_shown(void **state)
{
	(void)state;
	expect_secret_kept(spec("resp:127.0.0.1:%s?user=alice&password=gu3ss", redis.port), -EACCES,
			   "store.password: 127.0.0.1");
	expect_secret_kept(spec("resp:127.0.0.1:%s?user=nobody&password=gu3ss", redis.port), -EACCES,
			   "store.password: 127.0.0.1");
	/* This server's default user has none. */
	expect_secret_kept(spec("resp:127.0.0.1:%s?password=gu3ss", redis.port), -EACCES,
			   "store.password: 127.0.0.1");
}

static void a_server_that_quotes_the_password_is_not_quoted(void **state)
{
	static const struct answer quotes[] = { SAYS("-WRONGPASS gu3ss is wrong\r\n"), };
	struct scripted            scripted;

	(void)state;
	scripted_start(&scripted);
	scripted_say(&scripted, quotes, 1, false);
	expect_secret_kept(spec("resp:127.0.0.1:%d?password=gu3ss", scripted.port), -EACCES,
			   "store.password: 127.0.0.1");
	scripted_stop(&scripted);
}

static void a_missing_password_is_asked_for(void **state)
{
	(void)state;
	redis_run(client, "CONFIG SET requirepass s3cret");
	rig_refused(spec("resp:127.0.0.1:%s", redis.port), -EACCES, "store.password: is missing; ");
	rig_refused(spec("resp:127.0.0.1:%s?db=2", redis.port), -EACCES, "store.password: is missing; ");
	redis_run(client, "AUTH s3cret");
	expect_well(spec("resp:127.0.0.1:%s?password=s3cret", redis.port));
	redis_run(client, "CONFIG SET requirepass %s", "");
}

static void a_database_that_is_not_there_is_refused(void **state)
{
	(void)state;
	rig_refused(spec("resp:127.0.0.1:%s?db=99", redis.port), -EACCES, "store.db: 127.0.0.1");
}

static void a_server_that_is_not_there_is_named(void **state)
{
	(void)state;
	rig_refused(spec("resp:127.0.0.1:%d", free_port()), -ECONNREFUSED,
		    "store.port: cannot connect to 127.0.0.1:");
	rig_refused("resp:unix:/nowhere/at/all", -ENOENT,
		    "store.path: cannot connect to \"/nowhere/at/all\": ");
	rig_refused("resp:nobody.invalid:6379", 0, "store.host: \"nobody.invalid\" names no address");
}

static void a_server_that_says_nothing_is_left_in_time(void **state)
{
	static const struct answer nothing[] = { SAYS_NOTHING };
	struct scripted            scripted;

	(void)state;
	scripted_start(&scripted);
	scripted_say(&scripted, nothing, 1, false);
	rig_refused(spec("resp:127.0.0.1:%d?connect_timeout=100ms", scripted.port), -ETIMEDOUT,
		    "store.host: 127.0.0.1");
	rig_refused(spec("resp:127.0.0.1:%d?connect_timeout=100ms&tls=on", scripted.port), -ETIMEDOUT,
		    "store.tls: no TLS with 127.0.0.1");
	scripted_stop(&scripted);
}

static void what_is_no_redis_is_told_apart(void **state)
{
	static const struct answer web[] = { SAYS("HTTP/1.1 400 Bad Request\r\n\r\n") };
	static const struct answer loading[] = { SAYS("-LOADING Redis is loading\r\n") };
	static const struct answer hangs_up[] = { SAYS_AND_CLOSES("+") };
	static const struct answer talks[] = { SAYS("+PONG\r\n+PONG\r\n") };
	struct scripted            scripted;

	(void)state;
	scripted_start(&scripted);
	scripted_say(&scripted, web, 1, false);
	rig_refused(spec("resp:127.0.0.1:%d", scripted.port), KVS_E_PROTO, "store.host: 127.0.0.1");
	scripted_say(&scripted, talks, 1, false);
	rig_refused(spec("resp:127.0.0.1:%d", scripted.port), KVS_E_PROTO, "store.host: 127.0.0.1");
	scripted_say(&scripted, loading, 1, false);
	rig_refused(spec("resp:127.0.0.1:%d", scripted.port), KVS_E_BUSY, "store.host: 127.0.0.1");
	scripted_say(&scripted, hangs_up, 1, false);
	rig_refused(spec("resp:127.0.0.1:%d", scripted.port), -ECONNRESET, "store.host: 127.0.0.1");
	scripted_stop(&scripted);
}

static void what_a_server_says_does_not_reach_the_terminal_raw(void **state)
{
	static const struct answer coloured[] = { SAYS("-ERR \x1b[31mred\r\n") };
	static const char *const   options[] = { "db=0", "db=3" };
	struct scripted            scripted;
	struct kvs_store          *store;
	struct kvs_error           err;
	size_t                     i;

	(void)state;
	scripted_start(&scripted);
	scripted_say(&scripted, coloured, 1, false);
	for (i = 0; i < ARRAY_COUNT(options); i++) {
		assert_true(store_open(spec("resp:127.0.0.1:%d?%s", scripted.port, options[i]), 65536,
				       "lru", &store, &err) < 0);
		assert_non_null(strstr(err.message, "ERR ?[31mred"));
	}
	scripted_stop(&scripted);
}

static bool has_tls(void)
{
	if (!redis.has_tls)
		print_message("# no openssl command here\n");
	return redis.has_tls;
}

static void tls_is_a_way_in(void **state)
{
	struct rig rig;

	(void)state;
	if (!has_tls())
		return;
	expect_well(spec("resp:127.0.0.1:%s?tls=on&tls_ca=%s&tls_name=redis.test", redis.tls_port,
			 redis.authority));
	/* More than a record at a time, and more than one connection. */
	rig_open(&rig, spec("resp:127.0.0.1:%s?tls=on&tls_ca=%s&tls_name=redis.test&connections=3",
			    redis.tls_port, redis.authority), 65536);
	rig_batch(&rig, 1, RIG_ROWS, 65536);
	assert_int_equal(rig_put(&rig), 0);
	rig_expect(&rig, KVS_RESULT_DONE);
	assert_int_equal(rig_get(&rig), 0);
	rig_expect(&rig, KVS_RESULT_DONE);
	rig_expect_payloads(&rig);
	rig_close(&rig);
}

static void a_peer_of_another_name_is_refused(void **state)
{
	(void)state;
	if (!has_tls())
		return;
	rig_refused(spec("resp:127.0.0.1:%s?tls=on&tls_ca=%s&tls_name=other.test", redis.tls_port,
			 redis.authority), -EACCES, "store.tls_name: \"other.test\" at 127.0.0.1");
	/* The certificate is for a name, not for this address. */
	rig_refused(spec("resp:127.0.0.1:%s?tls=on&tls_ca=%s", redis.tls_port, redis.authority), -EACCES,
		    "store.tls_name: \"127.0.0.1\" at 127.0.0.1");
}

static void a_peer_that_nobody_vouches_for_is_refused(void **state)
{
	(void)state;
	if (!has_tls())
		return;
	rig_refused(spec("resp:127.0.0.1:%s?tls=on&tls_name=redis.test", redis.tls_port), -EACCES,
		    "store.tls_name: \"redis.test\" at 127.0.0.1");
}

static void tls_on_one_side_only_is_told(void **state)
{
	(void)state;
	rig_refused(spec("resp:127.0.0.1:%s?tls=on", redis.port), 0, "store.tls: no TLS with 127.0.0.1");
	if (!has_tls())
		return;
	rig_refused(spec("resp:127.0.0.1:%s?connect_timeout=200ms", redis.tls_port), 0,
		    "store.host: 127.0.0.1");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_address_family_is_a_way_in, clean),
		cmocka_unit_test_teardown(a_user_logs_in_with_a_password, clean),
		cmocka_unit_test_teardown(a_password_comes_from_a_file, clean),
		cmocka_unit_test_teardown(a_wrong_password_is_refused_and_not_shown, clean),
		cmocka_unit_test_teardown(a_server_that_quotes_the_password_is_not_quoted, clean),
		cmocka_unit_test_teardown(a_missing_password_is_asked_for, clean),
		cmocka_unit_test_teardown(a_database_that_is_not_there_is_refused, clean),
		cmocka_unit_test_teardown(a_server_that_is_not_there_is_named, clean),
		cmocka_unit_test_teardown(a_server_that_says_nothing_is_left_in_time, clean),
		cmocka_unit_test_teardown(what_is_no_redis_is_told_apart, clean),
		cmocka_unit_test_teardown(what_a_server_says_does_not_reach_the_terminal_raw, clean),
		cmocka_unit_test_teardown(tls_is_a_way_in, clean),
		cmocka_unit_test_teardown(a_peer_of_another_name_is_refused, clean),
		cmocka_unit_test_teardown(a_peer_that_nobody_vouches_for_is_refused, clean),
		cmocka_unit_test_teardown(tls_on_one_side_only_is_told, clean),
	};

	if (!redis_is_installed()) {
		print_message("1..0 # SKIP redis-server is not installed\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, start, stop);
}
