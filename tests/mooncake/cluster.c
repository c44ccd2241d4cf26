/* SPDX-License-Identifier: Apache-2.0 */
/* A port that was free may be taken before somebody binds it: then others are tried. */
#include "cluster.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "hail.h"
#include "launch.h"
#include "redis.h"

#define TRIES 20
/* Questions, and the pause between them: more than a minute. */
#define QUESTIONS_MAX 8000u
#define PAUSE_MS 10

void cluster_path(const char *name, char ret_path[512])
{
	snprintf(ret_path, 512, "%s/%s", MOONCAKE_PLACE, name);
}

/* What is installed last: for tests of the client library, see mooring.h, that. */
static const char *last_file(void)
{
	return getenv("KVSTRATA_MOONCAKE_WAY") ? "library/mooncake/libmooncake_store.so" : "release";
}

bool cluster_is_installed(void)
{
	char path[512];

	cluster_path(last_file(), path);
	if (access(path, R_OK) == 0)
		return true;
	if (getenv("KVSTRATA_MOONCAKE_REQUIRED"))
		fail_msg("%s is missing, and KVSTRATA_MOONCAKE_REQUIRED is set", path);
	print_message("# %s is missing here; tools/install-mooncake installs it\n", last_file());
	return false;
}

bool cluster_await(cluster_question *question, void *arg)
{
	uint32_t i;

	for (i = 0; i < QUESTIONS_MAX; i++) {
		if (question(arg))
			return true;
		poll(NULL, 0, PAUSE_MS);
	}
	return false;
}

static bool master_is_ready(void *arg)
{
	const struct cluster *const cluster = arg;
	char                        text[512];

	return launch_has_ended(cluster->master) ||
	       (hail(cluster->metrics, "/health", text, sizeof(text)) &&
		strstr(text, "\"service_ready\":true"));
}

/* False when it has ended: a port may be taken. */
static bool try_master(struct cluster *cluster)
{
	const struct cluster_options *const options = &cluster->options;
	struct launch                       launch;
	char                                path[512];
	uint32_t                            i;

	cluster_path("bin/mooncake_master", path);
	launch_begin(&launch, path);
	launch_add(&launch, "--rpc_address=127.0.0.1");
	launch_add(&launch, "--rpc_port=%s", cluster->port);
	launch_add(&launch, "--metrics_host=127.0.0.1");
	launch_add(&launch, "--metrics_port=%s", cluster->metrics);
	launch_add(&launch, "--default_kv_lease_ttl=%ums", options->lease_ms);
	launch_add(&launch, "--client_ttl=%u", options->ttl_s);
	launch_add(&launch, "--logtostderr");
	for (i = 0; i < CLUSTER_FLAGS_MAX && options->flags[i]; i++)
		launch_add(&launch, "%s", options->flags[i]);
	cluster->master = launch_start(&launch, cluster->directory, "master");
	if (!cluster_await(master_is_ready, cluster)) {
		launch_show(cluster->directory, "master");
		KVS_PANIC("mooncake_master does not answer");
	}
	if (!launch_has_ended(cluster->master))
		return true;
	launch_end(&cluster->master);
	return false;
}

uint32_t cluster_segments(const struct cluster *cluster)
{
	char     text[4096];
	uint32_t count = 0;
	char    *at;

	if (!hail(cluster->metrics, "/get_all_segments", text, sizeof(text)))
		return 0;
	/* One a line; the last may have no end. */
	for (at = text; *at; at += strcspn(at, "\n"), at += *at == '\n')
		count += *at != '\n';
	return count;
}

uint64_t cluster_gauge(const struct cluster *cluster, const char *name)
{
	const size_t text_max = 1 << 20, bytes = strlen(name);
	char *const  text = malloc(text_max);
	uint64_t     value = UINT64_MAX;
	const char  *line;

	KVS_ASSERT(text);
	if (hail(cluster->metrics, "/metrics", text, text_max)) {
		for (line = text; line; line = strchr(line, '\n'), line += line != NULL) {
			if (strncmp(line, name, bytes) == 0 && line[bytes] == ' ')
				value = (uint64_t)strtod(line + bytes, NULL);
		}
	}
	free(text);
	if (value == UINT64_MAX)
		fail_msg("the master has no %s", name);
	return value;
}

struct wanted {
	const struct cluster *cluster;
	uint32_t              segments;
};

static bool segments_are_there(void *arg)
{
	const struct wanted *const wanted = arg;

	return cluster_segments(wanted->cluster) == wanted->segments;
}

struct mounting {
	const struct cluster *cluster;
	uint32_t              provider;
};

/* It listens last: when the master has told it that its segment is mounted. */
static bool has_mounted(void *arg)
{
	const struct mounting *const mounting = arg;
	const struct cluster *const  cluster = mounting->cluster;

	return launch_has_ended(cluster->providers[mounting->provider]) ||
	       hail_listens(cluster->provider_ports[mounting->provider]);
}

void cluster_await_segments(const struct cluster *cluster, uint32_t count)
{
	struct wanted wanted = { cluster, count };

	if (cluster_await(segments_are_there, &wanted))
		return;
	launch_show(cluster->directory, "master");
	launch_show(cluster->directory, "provider0");
	KVS_PANIC("the master has %u segments, not %u", cluster_segments(cluster), count);
}

static uint32_t running(const struct cluster *cluster)
{
	uint32_t i, count = 0;

	for (i = 0; i < CLUSTER_PROVIDERS_MAX; i++)
		count += cluster->providers[i] > 0;
	return count;
}

void cluster_kill_master(struct cluster *cluster)
{
	launch_end(&cluster->master);
}

void cluster_start_master(struct cluster *cluster)
{
	int i;

	/* Connections of the killed one may keep a port for a moment. */
	for (i = 0; i < TRIES; i++) {
		if (try_master(cluster)) {
			cluster_await_segments(cluster, running(cluster));
			return;
		}
	}
	launch_show(cluster->directory, "master");
	KVS_PANIC("mooncake_master does not come back on port %s", cluster->port);
}

void cluster_kill_provider(struct cluster *cluster, uint32_t i)
{
	launch_end(&cluster->providers[i]);
}

/* False when it has ended. */
static bool try_provider(struct cluster *cluster, uint32_t i)
{
	struct mounting mounting = { cluster, i };
	char *const     port = cluster->provider_ports[i];
	struct launch   launch;
	char            name[16], path[512];

	snprintf(name, sizeof(name), "provider%u", i);
	snprintf(port, sizeof(cluster->provider_ports[i]), "%u", launch_port());
	cluster_path("bin/mooncake_client", path);
	launch_begin(&launch, path);
	launch_add(&launch, "--host=127.0.0.1");
	launch_add(&launch, "--port=%s", port);
	launch_add(&launch, "--metadata_server=P2PHANDSHAKE");
	launch_add(&launch, "--master_server_address=127.0.0.1:%s", cluster->port);
	launch_add(&launch, "--protocol=tcp");
	launch_add(&launch, "--global_segment_size=%u MB", cluster->options.segment_mib);
	cluster->providers[i] = launch_start(&launch, cluster->directory, name);
	if (!cluster_await(has_mounted, &mounting)) {
		launch_show(cluster->directory, name);
		KVS_PANIC("%s does not mount its segment", name);
	}
	if (!launch_has_ended(cluster->providers[i]))
		return true;
	launch_end(&cluster->providers[i]);
	return false;
}

void cluster_start_provider(struct cluster *cluster, uint32_t i)
{
	int try;

	KVS_ASSERT(cluster->providers[i] == 0);
	for (try = 0; !try_provider(cluster, i); try++) {
		if (try == TRIES) {
			launch_show(cluster->directory, "provider0");
			KVS_PANIC("a provider does not start");
		}
	}
}

static void fill_defaults(struct cluster_options *options)
{
	KVS_ASSERT(options->providers <= CLUSTER_PROVIDERS_MAX);
	options->segment_mib = options->segment_mib ? options->segment_mib : 64;
	options->lease_ms = options->lease_ms ? options->lease_ms : 10000;
	options->ttl_s = options->ttl_s ? options->ttl_s : 10;
}

void cluster_start(struct cluster *cluster, const struct cluster_options *options)
{
	uint32_t i;

	*cluster = (struct cluster){ .options = *options };
	fill_defaults(&cluster->options);
	snprintf(cluster->directory, sizeof(cluster->directory), "/tmp/kvstrata-mooncake-XXXXXX");
	KVS_ASSERT(mkdtemp(cluster->directory));
	for (i = 0; cluster->master == 0; i++) {
		if (i == TRIES) {
			launch_show(cluster->directory, "master");
			KVS_PANIC("mooncake_master does not start");
		}
		snprintf(cluster->port, sizeof(cluster->port), "%u", launch_port());
		snprintf(cluster->metrics, sizeof(cluster->metrics), "%u", launch_port());
		try_master(cluster);
	}
	for (i = 0; i < options->providers; i++)
		cluster_start_provider(cluster, i);
	cluster_await_segments(cluster, options->providers);
}

void cluster_stop(struct cluster *cluster)
{
	uint32_t i;

	for (i = 0; i < CLUSTER_PROVIDERS_MAX; i++)
		launch_end(&cluster->providers[i]);
	launch_end(&cluster->master);
	run_program((char *[]){ "rm", "-r", cluster->directory, NULL });
}

void cluster_pause(pid_t pid)
{
	siginfo_t info;

	KVS_ASSERT(kill(pid, SIGSTOP) == 0);
	KVS_ASSERT(waitid(P_PID, (id_t)pid, &info, WSTOPPED) == 0);
}

void cluster_resume(pid_t pid)
{
	KVS_ASSERT(kill(pid, SIGCONT) == 0);
}
