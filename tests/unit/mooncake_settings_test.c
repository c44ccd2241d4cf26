/* SPDX-License-Identifier: Apache-2.0 */
/* What a mooncake store is told, in all the places where its users say it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "os/os.h"
#include "place.h"
#include "store/mooncake_settings.h"
#include "store/spec.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

/* The file that a test writes as Mooncake's. */
static struct place place;

static const char *const variables[] = {
	"MOONCAKE_MASTER", "MOONCAKE_TE_META_DATA_SERVER", "MOONCAKE_LOCAL_HOSTNAME",
	"MOONCAKE_PROTOCOL", "MOONCAKE_DEVICE", "MOONCAKE_TENANT_ID",
	"MOONCAKE_GLOBAL_SEGMENT_SIZE", "MOONCAKE_LOCAL_BUFFER_SIZE",
	"MOONCAKE_MASTER_METRICS_PORT", "MOONCAKE_CONFIG_PATH",
};

/* Whoever runs this may have some of them set. */
static int forget_environment(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(variables); i++)
		assert_int_equal(unsetenv(variables[i]), 0);
	return 0;
}

static int read_spec(const char *text, struct mooncake_settings *ret_settings, struct kvs_error *err)
{
	static struct store_spec spec;
	struct kvs_store_config  config = { .struct_size = sizeof(config), .block_bytes = 65536 };
	const int                rc = spec_parse(text, &spec, err);

	if (rc < 0 || spec_check(&spec, mooncake_options, err) < 0)
		return KVS_E_INVALID;
	config.place = spec.place;
	config.options = spec.options;
	config.option_count = spec.option_count;
	return mooncake_settings_read(&config, ret_settings, err);
}

static struct mooncake_settings settings_of(const char *text)
{
	struct mooncake_settings settings;
	struct kvs_error         err = { 0 };

	memset(&settings, 0xff, sizeof(settings));
	if (read_spec(text, &settings, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	return settings;
}

static void refused(const char *text, const char *message)
{
	struct mooncake_settings settings, before;
	struct kvs_error         err = { 0 };
	int                      rc;

	memset(&settings, 0xa5, sizeof(settings));
	before = settings;
	rc = read_spec(text, &settings, &err);
	if (rc == 0 || strncmp(err.message, message, strlen(message)) != 0)
		fail_msg("%s: %s", text, rc < 0 ? err.message : "was taken");
	assert_int_equal(err.code, rc);
	assert_memory_equal(&settings, &before, sizeof(settings));
}

static void write_file(const char *content)
{
	const int fd = os_file_open(place.path, OS_CREATE | OS_WRITE);

	assert_true(fd >= 0);
	assert_int_equal(os_file_resize(fd, 0), 0);
	assert_int_equal(os_file_write(fd, content, strlen(content), 0), 0);
	os_close(fd);
}

static int make_place(void **state)
{
	(void)state;
	place = place_open();
	return 0;
}

static int remove_place(void **state)
{
	(void)state;
	place_close(&place);
	return 0;
}

static void a_master_is_all_that_is_needed(void **state)
{
	const struct mooncake_settings set = settings_of("mooncake:127.0.0.1:50051");

	(void)state;
	assert_string_equal(set.master, "127.0.0.1:50051");
	assert_string_equal(set.local_hostname, "127.0.0.1");
	assert_string_equal(set.metadata_server, "P2PHANDSHAKE");
	assert_string_equal(set.protocol, "tcp");
	assert_string_equal(set.device, "");
	assert_string_equal(set.tenant, "default");
	assert_int_equal(set.segment_bytes, 0);
	assert_int_equal(set.local_buffer_bytes, 0);
	assert_int_equal(set.replica_count, 1);
	assert_int_equal(set.way, MOONCAKE_AGENT);
	assert_string_equal(set.library, "");
	assert_string_equal(set.python, "python3");
	assert_string_equal(set.agent, "");
	assert_string_equal(set.log, "");
	assert_int_equal(set.lanes, 2);
	assert_int_equal(set.timeout_ns, 10 * SECOND);
	assert_int_equal(set.connect_timeout_ns, 10 * SECOND);
	assert_int_equal(set.reap_timeout_ns, SECOND);
	assert_true(set.required);
	assert_true(set.verified);
	assert_string_equal(set.prefix, "kvs");
	assert_int_equal(set.lease_ns, 10 * SECOND);
	assert_int_equal(set.probe_max, 65536);
	assert_string_equal(set.metrics, "127.0.0.1:9003");
}

static void every_option_is_read(void **state)
{
	struct mooncake_settings set = settings_of(
		"mooncake:m.example:6000?way=agent&python=/v/bin/python&agent=/a&log=/l&lanes=16"
		"&metadata_server=http://m:8080/metadata&local_hostname=me.example&protocol=RDMA"
		"&device_name=mlx5_0,mlx5_1&tenant_id=t 1&global_segment_size=1gb&ranks=2"
		"&local_buffer_size=16 MB&replica_num=3&timeout=3s&connect_timeout=4s&connect=lazy"
		"&reap_timeout=0&format=raw&prefix=a.b");

	(void)state;
	assert_string_equal(set.master, "m.example:6000");
	assert_string_equal(set.python, "/v/bin/python");
	assert_string_equal(set.agent, "/a");
	assert_string_equal(set.log, "/l");
	assert_int_equal(set.lanes, 16);
	assert_string_equal(set.metadata_server, "http://m:8080/metadata");
	assert_string_equal(set.local_hostname, "me.example");
	assert_string_equal(set.protocol, "rdma");
	assert_string_equal(set.device, "mlx5_0,mlx5_1");
	assert_string_equal(set.tenant, "t 1");
	assert_int_equal(set.segment_bytes, 512 * MIB);
	assert_int_equal(set.local_buffer_bytes, 16 * MIB);
	assert_int_equal(set.replica_count, 3);
	assert_int_equal(set.timeout_ns, 3 * SECOND);
	assert_int_equal(set.connect_timeout_ns, 4 * SECOND);
	assert_int_equal(set.reap_timeout_ns, 0);
	assert_false(set.required);
	assert_false(set.verified);
	assert_string_equal(set.prefix, "a.b");
	assert_string_equal(set.metrics, "m.example:9003");
	set = settings_of("mooncake:m?way=library&library=/usr/lib/x.so&metrics=h:1&lease=500ms&probe_max=7");
	assert_int_equal(set.way, MOONCAKE_LIBRARY);
	assert_string_equal(set.library, "/usr/lib/x.so");
	assert_string_equal(set.metrics, "h:1");
	assert_int_equal(set.lease_ns, 500 * MS);
	assert_int_equal(set.probe_max, 7);
}

static void a_master_is_found_in_each_place(void **state)
{
	char spec[128];

	(void)state;
	assert_string_equal(settings_of("mooncake:h").master, "h:50051");
	assert_string_equal(settings_of("mooncake:[fe80::1]:7").master, "[fe80::1]:7");
	assert_string_equal(settings_of("mooncake:[::1]").metrics, "[::1]:9003");
	assert_string_equal(settings_of("mooncake?master_server_address=a:1").master, "a:1");
	assert_string_equal(settings_of("mooncake?master_server_addr=b:2").master, "b:2");
	setenv("MOONCAKE_MASTER", "c:3", 1);
	assert_string_equal(settings_of("mooncake").master, "c:3");
	write_file("{\"master_server_addr\": \"d:4\"}");
	snprintf(spec, sizeof(spec), "mooncake?config=%s", place.path);
	assert_string_equal(settings_of(spec).master, "d:4");
	setenv("MOONCAKE_CONFIG_PATH", place.path, 1);
	assert_string_equal(settings_of("mooncake").master, "d:4");
	assert_string_equal(settings_of("mooncake:e:5").master, "e:5");
}

/* Each field: the file goes before the variable, and the option before both. */
static void the_first_source_wins(void **state)
{
	struct mooncake_settings set;

	(void)state;
	setenv("MOONCAKE_MASTER", "env:1", 1);
	setenv("MOONCAKE_TE_META_DATA_SERVER", "env-meta", 1);
	setenv("MOONCAKE_LOCAL_HOSTNAME", "env-host", 1);
	setenv("MOONCAKE_PROTOCOL", "rdma", 1);
	setenv("MOONCAKE_DEVICE", "env-device", 1);
	setenv("MOONCAKE_TENANT_ID", "env-tenant", 1);
	setenv("MOONCAKE_GLOBAL_SEGMENT_SIZE", "32mb", 1);
	setenv("MOONCAKE_LOCAL_BUFFER_SIZE", "1mb", 1);
	setenv("MOONCAKE_MASTER_METRICS_PORT", "11", 1);
	set = settings_of("mooncake");
	assert_string_equal(set.master, "env:1");
	assert_string_equal(set.metadata_server, "env-meta");
	assert_string_equal(set.local_hostname, "env-host");
	assert_string_equal(set.protocol, "rdma");
	assert_string_equal(set.device, "env-device");
	assert_string_equal(set.tenant, "env-tenant");
	assert_int_equal(set.segment_bytes, 32 * MIB);
	assert_int_equal(set.local_buffer_bytes, MIB);
	assert_string_equal(set.metrics, "env:11");
	setenv("MOONCAKE_CONFIG_PATH", place.path, 1);
	write_file("{\"master_server_address\": \"file:2\", \"metadata_server\": \"file-meta\","
		   " \"local_hostname\": \"file-host\", \"protocol\": \"tcp\","
		   " \"rdma_devices\": \"file-device\", \"tenant_id\": \"file-tenant\","
		   " \"global_segment_size\": 67108864, \"local_buffer_size\": \"2 MB\","
		   " \"master_metrics_port\": 22}");
	set = settings_of("mooncake?ranks=2");
	assert_string_equal(set.master, "file:2");
	assert_string_equal(set.metadata_server, "file-meta");
	assert_string_equal(set.local_hostname, "file-host");
	assert_string_equal(set.protocol, "tcp");
	assert_string_equal(set.device, "file-device");
	assert_string_equal(set.tenant, "file-tenant");
	assert_int_equal(set.segment_bytes, 32 * MIB);
	assert_int_equal(set.local_buffer_bytes, 2 * MIB);
	assert_string_equal(set.metrics, "file:22");
	set = settings_of("mooncake:spec:3?metadata_server=spec-meta&local_hostname=spec-host"
			  "&protocol=efa&device_name=spec-device&tenant_id=spec-tenant"
			  "&global_segment_size=0&local_buffer_size=3MiB&metrics=spec");
	assert_string_equal(set.master, "spec:3");
	assert_string_equal(set.metadata_server, "spec-meta");
	assert_string_equal(set.local_hostname, "spec-host");
	assert_string_equal(set.protocol, "efa");
	assert_string_equal(set.device, "spec-device");
	assert_string_equal(set.tenant, "spec-tenant");
	assert_int_equal(set.segment_bytes, 0);
	assert_int_equal(set.local_buffer_bytes, 3 * MIB);
	assert_string_equal(set.metrics, "spec:22");
	assert_string_equal(settings_of("mooncake:h?metrics=off").metrics, "");
}

static void a_file_of_mooncakes_may_hold_what_is_not_ours(void **state)
{
	struct mooncake_settings set;

	(void)state;
	setenv("MOONCAKE_CONFIG_PATH", place.path, 1);
	write_file("{\"master_server_address\": \"h:1\", \"enable_ssd_offload\": true,"
		   " \"ssd_offload_path\": \"/x\", \"client_http_port\": 9300, \"device_name\": \"\","
		   " \"rdma_devices\": \"mlx5_0\","
		   " \"tenant_id\": null, \"local_hostname\": \"localhost\", \"of_tomorrow\": [1]}");
	set = settings_of("mooncake");
	assert_string_equal(set.master, "h:1");
	assert_string_equal(set.device, "mlx5_0");
	assert_string_equal(set.tenant, "default");
	assert_string_equal(set.local_hostname, "localhost");
}

static void a_host_elsewhere_is_told_our_name(void **state)
{
	char name[MOONCAKE_TEXT_MAX];

	(void)state;
	assert_int_equal(os_socket_host_name(name, sizeof(name)), 0);
	assert_string_equal(settings_of("mooncake:10.0.0.1").local_hostname, name);
	assert_string_equal(settings_of("mooncake:127.example").local_hostname, name);
	assert_string_equal(settings_of("mooncake:localhost").local_hostname, "127.0.0.1");
	assert_string_equal(settings_of("mooncake:127.1.2.3:1").local_hostname, "127.0.0.1");
	assert_string_equal(settings_of("mooncake:[::1]:1").local_hostname, "127.0.0.1");
	assert_string_equal(settings_of("mooncake:h?local_hostname=[fe80::1]").local_hostname, "[fe80::1]");
}

static void sizes_are_as_their_users_write_them(void **state)
{
	static const struct {
		const char *text;
		uint64_t    bytes;
	} good[] = {
		{ "0", 0 }, { "4096", 4096 }, { "4b", 4 }, { "4 B", 4 }, { "4k", 4096 },
		{ "4KB", 4096 }, { "4KiB", 4096 }, { "512 MB", 512 * MIB },
		{ "512m", 512 * MIB }, { "4gb", 4 * GIB }, { "4 Gb", 4 * GIB }, { "4GiB", 4 * GIB },
		{ "4giB", 4 * GIB }, { "1.5g", 1536 * MIB }, { "3.125GB", 3200 * MIB },
		{ " 2 TB ", 2048 * GIB }, { "1t", 1024 * GIB }, { "3355443200", 3200 * MIB },
	};
	static const char *const bad[] = {
		"", " ", "gb", "b", "-1", "-4gb", "+4gb", "4x", "4gbb", "4 g b", "4g4", "1e9", "0x10",
		"1.5", "1.5b", "4iB", "4kIB", "1,5g", "1..5g", "nan", "inf", "9223372036854775808",
		"99999999999t", "1.0000001g", "4\tgb", "0000000000000000000000000000000000000000g",
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(good); i++) {
		uint64_t  bytes = 7;
		const int rc = mooncake_size(good[i].text, &bytes);

		if (rc < 0 || bytes != good[i].bytes)
			fail_msg("\"%s\": %d, %llu", good[i].text, rc, (unsigned long long)bytes);
	}
	for (i = 0; i < ARRAY_COUNT(bad); i++) {
		uint64_t bytes = 7;

		if (mooncake_size(bad[i], &bytes) == 0 || bytes != 7)
			fail_msg("\"%s\": %llu", bad[i], (unsigned long long)bytes);
	}
}

static void A1_10_ranks_share_the_segment_in_whole_units(void **state)
{
	(void)state;
	assert_int_equal(settings_of("mooncake:h?ranks=8").segment_bytes, 0);
	assert_int_equal(settings_of("mooncake:h?global_segment_size=16m").segment_bytes, 16 * MIB);
	assert_int_equal(settings_of("mooncake:h?global_segment_size=100m").segment_bytes, 96 * MIB);
	assert_int_equal(settings_of("mooncake:h?global_segment_size=100m&ranks=3").segment_bytes,
			 32 * MIB);
	assert_int_equal(settings_of("mooncake:h?global_segment_size=4gb&ranks=8").segment_bytes,
			 512 * MIB);
	refused("mooncake:h?global_segment_size=100m&ranks=8",
		"store.global_segment_size: \"100m\" shared by store.ranks: 8 is less than 16 MiB for each;"
		" use 0 or more");
	refused("mooncake:h?global_segment_size=16777215",
		"store.global_segment_size: \"16777215\" shared by store.ranks: 1 is less than 16 MiB");
	setenv("MOONCAKE_GLOBAL_SEGMENT_SIZE", "1", 1);
	refused("mooncake:h", "MOONCAKE_GLOBAL_SEGMENT_SIZE: \"1\" shared by store.ranks: 1 is less");
}

struct refusal {
	const char *text;
	const char *message; /* its beginning */
};

#define NAME16 "abcdefghijklmnop"
#define NAME80 NAME16 NAME16 NAME16 NAME16 NAME16
#define NAME256 NAME16 NAME16 NAME16 NAME16 NAME16 NAME16 NAME16 NAME16 NAME16 NAME16 NAME16 \
		NAME16 NAME16 NAME16 NAME16 NAME16

static const struct refusal specs[] = {
	{ "mooncake", "store.master: is missing; write mooncake:HOST:PORT, or name it in config=FILE or "
		      "MOONCAKE_MASTER" },
	{ "mooncake::1", "store.master: \":1\" has no host; write HOST:PORT" },
	{ "mooncake:[]:1", "store.master: \"[]:1\" has no host" },
	{ "mooncake:[::1", "store.master: \"[::1\" has no closing bracket" },
	{ "mooncake:[", "store.master: \"[\" has no closing bracket" },
	{ "mooncake:[::1]1", "store.master: \"[::1]1\" is no host and a port" },
	{ "mooncake:::1", "store.master: \"::1\" has no host" },
	{ "mooncake:fe80::1:1", "store.master: \"fe80::1:1\" is no host and a port; write HOST:PORT" },
	{ "mooncake:h:", "store.master: \"\" is not a port; use 1 to 65535" },
	{ "mooncake:h:0", "store.master: \"0\" is not a port" },
	{ "mooncake:h:65536", "store.master: \"65536\" is not a port" },
	{ "mooncake:h:1x", "store.master: \"1x\" is not a port" },
	{ "mooncake:h:0000001", "store.master: \"0000001\" is not a port" },
	{ "mooncake:a b:1", "store.master: \"a b:1\" has characters that no host has" },
	{ "mooncake:etcd://a:2379", "store.master: \"etcd://a:2379\" is a URL; write HOST:PORT" },
	{ "mooncake:" NAME256, "store.master: is longer than 255 bytes" },
	{ "mooncake:" NAME80 NAME80 NAME80 "01234567", "store.master: \"" NAME80 "\" is too long a host" },
	{ "mooncake:h\"x", "store.master: \"h\"x\" has a quote, a backslash or a control character" },
	{ "mooncake:h\x1b[2J", "store.master: \"h?[2J\" has a quote, a backslash or a control character" },
	{ "mooncake:h\xc2\x9b" "2J", "store.master: \"h??2J\" has a quote, a backslash" },
	{ "mooncake?master_server_address=", "store.master_server_address: is empty" },
	{ "mooncake:h?master_server_address=h", "store.master_server_address: store.master gives the same; "
						"use one of them" },
	{ "mooncake?master_server_address=h&master_server_addr=h",
	  "store.master_server_addr: store.master_server_address gives the same" },
	{ "mooncake:h?device_name=a&rdma_devices=a", "store.rdma_devices: store.device_name gives the same" },
	{ "mooncake:h?device_name=a'b", "store.device_name: \"a'b\" has a quote" },
	{ "mooncake:h?rdma_devices=a\\b", "store.rdma_devices: \"a\\b\" has a quote, a backslash" },
	{ "mooncake:h?device_name=a\nb", "store.device_name: \"a?b\" has a quote" },
	{ "mooncake:h?metadata_server=a\x7f", "store.metadata_server: \"a?\" has a quote" },
	{ "mooncake:h?local_hostname=h:1", "store.local_hostname: \"h:1\" has a port; write a host" },
	{ "mooncake:h?local_hostname=[::1]:1", "store.local_hostname: \"[::1]:1\" has a port" },
	{ "mooncake:h?local_hostname=a/b", "store.local_hostname: \"a/b\" has characters that no host has" },
	{ "mooncake:h?protocol=udp", "store.protocol: \"udp\" is not a protocol of Mooncake; use tcp, rdma, "
				     "efa, nvmeof, nvlink, nvlink_intra, musa, hip, barex, cxl, ascend, ub, "
				     "ubshmem, maca, sunrise_link, rpc_only" },
	{ "mooncake:h?protocol=", "store.protocol: is empty" },
	{ "mooncake:h?protocol=" NAME16 NAME16 NAME16, "store.protocol: \"" NAME16 NAME16 "\" is not a" },
	{ "mooncake:h?tenant_id=a&way=library", "store.tenant_id: \"a\" needs way=agent; the client library "
						"knows no tenant but default" },
	{ "mooncake:h?tenant_id=a\"", "store.tenant_id: \"a\"\" has a quote" },
	{ "mooncake:h?global_segment_size=4xb",
	  "store.global_segment_size: \"4xb\" is not a size; use an integer, or a number with k, m, g or t" },
	{ "mooncake:h?global_segment_size=-1", "store.global_segment_size: \"-1\" is not a size" },
	{ "mooncake:h?local_buffer_size=much", "store.local_buffer_size: \"much\" is not a size" },
	{ "mooncake:h?ranks=0", "store.ranks: 0 is not in 1 .. 1024" },
	{ "mooncake:h?ranks=1025", "store.ranks: 1025 is not in 1 .. 1024" },
	{ "mooncake:h?ranks=two", "store.ranks: \"two\" is not a count" },
	{ "mooncake:h?replica_num=0", "store.replica_num: 0 is not in 1 .. 64" },
	{ "mooncake:h?way=direct", "store.way: \"direct\" is neither agent nor library" },
	{ "mooncake:h?library=/x", "store.library: \"/x\" is given without way=library" },
	{ "mooncake:h?way=library&python=/x", "store.python: \"/x\" is given without way=agent" },
	{ "mooncake:h?way=library&agent=/x", "store.agent: \"/x\" is given without way=agent" },
	{ "mooncake:h?way=library&log=/x", "store.log: \"/x\" is given without way=agent" },
	{ "mooncake:h?way=library&library=", "store.library: is empty" },
	{ "mooncake:h?python=", "store.python: is empty" },
	{ "mooncake:h?python=a\tb", "store.python: \"a?b\" has a quote" },
	{ "mooncake:h?log=" NAME256 NAME256, "store.log: is longer than 511 bytes" },
	{ "mooncake:h?lanes=0", "store.lanes: 0 is not in 1 .. 16" },
	{ "mooncake:h?lanes=17", "store.lanes: 17 is not in 1 .. 16" },
	{ "mooncake:h?timeout=5", "store.timeout: \"5\" is not a duration" },
	{ "mooncake:h?timeout=0", "store.timeout: 0 is not in 1ms .. 600s" },
	{ "mooncake:h?timeout=11m", "store.timeout: 660s is not in 1ms .. 600s" },
	{ "mooncake:h?connect_timeout=1us", "store.connect_timeout: 1us is not in 1ms .. 600s" },
	{ "mooncake:h?reap_timeout=61s", "store.reap_timeout: 61s is not in 0 .. 60s" },
	{ "mooncake:h?lease=0", "store.lease: 0 is not in 1ms .. 3600s" },
	{ "mooncake:h?probe_max=0", "store.probe_max: 0 is not in 1 .. 1048576" },
	{ "mooncake:h?probe_max=1048577", "store.probe_max: 1048577 is not in" },
	{ "mooncake:h?connect=maybe", "store.connect: \"maybe\" is neither required nor lazy" },
	{ "mooncake:h?format=json", "store.format: \"json\" is neither verified nor raw" },
	{ "mooncake:h?prefix=a*", "store.prefix: \"a*\" may hold letters, digits, _ . and - only" },
	{ "mooncake:h?prefix=", "store.prefix: is empty" },
	{ "mooncake:h?prefix=" NAME16 NAME16 "q", "store.prefix: is longer than 32 bytes" },
	{ "mooncake:h?metrics=", "store.metrics: \"\" has no host" },
	{ "mooncake:h?metrics=http://h:1", "store.metrics: \"http://h:1\" is a URL" },
	{ "mooncake:h?metrics=h:99999", "store.metrics: \"99999\" is not a port" },
	{ "mooncake:h?metrics=h\"", "store.metrics: \"h\"\" has a quote" },
	{ "mooncake:h?config=/nowhere", "store.config: \"/nowhere\" cannot be opened: " },
	{ "mooncake:h?config=", "store.config: \"\" cannot be opened: " },
	{ "mooncake:h?config=/", "/: is not a regular file" },
	{ "mooncake:h?config=/dev/null", "/dev/null: is not a regular file" },
	{ "mooncake:h?lanes=1&lanes=1", "store.lanes: is given twice" },
	{ "mooncake:h?capacity=1",
	  "store: \"capacity\" is not an option of mooncake; use config, way, library, " },
};

static void each_bad_spec_is_told_why(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(specs); i++)
		refused(specs[i].text, specs[i].message);
}

/* What follows the file's name. */
static const struct refusal files[] = {
	{ "", "line 1, column 0: '[' or '{' expected" },
	{ "[1]", "is not one JSON object" },
	{ "{\"protocol\": \"tcp\", \"protocol\": \"tcp\"}", "line 1, column 30: duplicate object key" },
	{ "{\"protocol\": tcp}", "line 1, column 16: invalid token" },
	{ "{\"protocol\": 1}", "protocol: is not a string" },
	{ "{\"protocol\": true}", "protocol: is not a string" },
	{ "{\"protocol\": [\"tcp\"]}", "protocol: is not a string" },
	{ "{\"protocol\": \"UDP\"}", "protocol: \"UDP\" is not a protocol of Mooncake; use tcp, " },
	{ "{\"tenant_id\": \"a\\nb\"}", "tenant_id: \"a?b\" has a quote" },
	{ "{\"tenant_id\": 7}", "tenant_id: is not a string" },
	{ "{\"device_name\": \"a\", \"rdma_devices\": \"a\"}", "rdma_devices: " },
	{ "{\"global_segment_size\": 4.5}", "global_segment_size: is neither a string nor an integer" },
	{ "{\"global_segment_size\": true}", "global_segment_size: is neither a string nor an integer" },
	{ "{\"global_segment_size\": -1}", "global_segment_size: \"-1\" is not a size" },
	{ "{\"global_segment_size\": \"4 cows\"}", "global_segment_size: \"4 cows\" is not a size" },
	{ "{\"local_buffer_size\": {}}", "local_buffer_size: is neither a string nor an integer" },
	{ "{\"master_metrics_port\": 0}", "master_metrics_port: \"0\" is not a port" },
	{ "{\"local_hostname\": \"h:12345\"}", "local_hostname: \"h:12345\" has a port" },
	{ "{\"metadata_server\": \"\x1b[2J\"}", "line 1, column " },
};

static void each_bad_file_is_told_why(void **state)
{
	char   message[256], spec[128];
	size_t i;

	(void)state;
	snprintf(spec, sizeof(spec), "mooncake:h?config=%s", place.path);
	for (i = 0; i < ARRAY_COUNT(files); i++) {
		write_file(files[i].text);
		snprintf(message, sizeof(message), "%s: %s", place.path, files[i].message);
		refused(spec, message);
	}
	write_file("{\"master_server_address\": \"etcd://x\"}");
	snprintf(message, sizeof(message), "%s: master_server_address: \"etcd://x\" is a URL",
		 place.path);
	setenv("MOONCAKE_CONFIG_PATH", place.path, 1);
	refused("mooncake", message);
	setenv("MOONCAKE_CONFIG_PATH", "/nowhere", 1);
	refused("mooncake:h", "MOONCAKE_CONFIG_PATH: \"/nowhere\" cannot be opened: ");
	setenv("MOONCAKE_CONFIG_PATH", "/\x1b[2J", 1);
	refused("mooncake:h", "MOONCAKE_CONFIG_PATH: \"/?[2J\" cannot be opened: ");
}

static void a_file_has_a_limit(void **state)
{
	char *const text = malloc(65538);
	char        message[128];

	(void)state;
	assert_non_null(text);
	memset(text, ' ', 65537);
	text[65537] = '\0';
	memcpy(text, "{}", 2);
	setenv("MOONCAKE_CONFIG_PATH", place.path, 1);
	write_file(text);
	snprintf(message, sizeof(message), "%s: is larger than 64 KiB", place.path);
	refused("mooncake:h", message);
	text[65536] = '\0';
	write_file(text);
	settings_of("mooncake:h");
	free(text);
}

static void each_bad_variable_is_named(void **state)
{
	static const struct {
		const char *name, *text, *message;
	} bad[] = {
		{ "MOONCAKE_MASTER", "a b", "MOONCAKE_MASTER: \"a b\" has characters" },
		{ "MOONCAKE_TE_META_DATA_SERVER", "a'", "MOONCAKE_TE_META_DATA_SERVER: \"a'\" has a quote" },
		{ "MOONCAKE_LOCAL_HOSTNAME", "a:1", "MOONCAKE_LOCAL_HOSTNAME: \"a:1\" has a port" },
		{ "MOONCAKE_PROTOCOL", "x", "MOONCAKE_PROTOCOL: \"x\" is not a protocol" },
		{ "MOONCAKE_DEVICE", "\x01", "MOONCAKE_DEVICE: \"?\" has a quote" },
		{ "MOONCAKE_TENANT_ID", "a", "MOONCAKE_TENANT_ID: \"a\" needs way=agent" },
		{ "MOONCAKE_GLOBAL_SEGMENT_SIZE", "x", "MOONCAKE_GLOBAL_SEGMENT_SIZE: \"x\" is not a size" },
		{ "MOONCAKE_LOCAL_BUFFER_SIZE", "x", "MOONCAKE_LOCAL_BUFFER_SIZE: \"x\" is not a size" },
		{ "MOONCAKE_MASTER_METRICS_PORT", "x", "MOONCAKE_MASTER_METRICS_PORT: \"x\" is not a port" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(bad); i++) {
		setenv("MOONCAKE_MASTER", "h", 1);
		setenv(bad[i].name, bad[i].text, 1);
		refused("mooncake?way=library", bad[i].message);
		/* One that is empty is not set. */
		setenv("MOONCAKE_MASTER", "h", 1);
		setenv(bad[i].name, "", 1);
		if (strcmp(bad[i].name, "MOONCAKE_MASTER") != 0)
			settings_of("mooncake?way=library");
		unsetenv(bad[i].name);
	}
}

#define QUIETLY(test) cmocka_unit_test_setup_teardown(test, forget_environment, forget_environment)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		QUIETLY(a_master_is_all_that_is_needed),
		QUIETLY(every_option_is_read),
		QUIETLY(a_master_is_found_in_each_place),
		QUIETLY(the_first_source_wins),
		QUIETLY(a_file_of_mooncakes_may_hold_what_is_not_ours),
		QUIETLY(a_host_elsewhere_is_told_our_name),
		QUIETLY(sizes_are_as_their_users_write_them),
		QUIETLY(A1_10_ranks_share_the_segment_in_whole_units),
		QUIETLY(each_bad_spec_is_told_why),
		QUIETLY(each_bad_file_is_told_why),
		QUIETLY(a_file_has_a_limit),
		QUIETLY(each_bad_variable_is_named),
	};

	return cmocka_run_group_tests(tests, make_place, remove_place);
}
