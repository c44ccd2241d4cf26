/* SPDX-License-Identifier: Apache-2.0 */
/* One GET over the loopback, with the machine's libcurl; passed over where there is none. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "os/os.h"
#include "store/mooncake_fetch.h"

#define MINUTE_NS UINT64_C(60000000000)

/* Answers one client. */
struct server {
	int         listener;
	uint16_t    port;
	const char *answer;
	char        request[512];
	pthread_t   thread;
};

static struct mooncake_curl curl;

static void *serve(void *arg)
{
	struct server *const server = arg;
	const int            fd = accept(server->listener, NULL, NULL);
	size_t               used = 0;
	ssize_t              more;

	KVS_ASSERT(fd >= 0);
	while (!strstr(server->request, "\r\n\r\n") &&
	       (more = read(fd, server->request + used, sizeof(server->request) - used - 1)) > 0)
		used += (size_t)more;
	KVS_ASSERT(write(fd, server->answer, strlen(server->answer)) ==
		   (ssize_t)strlen(server->answer));
	close(fd);
	return NULL;
}

static void server_start(struct server *server, const char *answer)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t          bytes = sizeof(address);

	*server = (struct server){ .answer = answer };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(server->listener, 1), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &bytes), 0);
	server->port = ntohs(address.sin_port);
	assert_int_equal(os_thread_start(&server->thread, "server", serve, server), 0);
}

static void server_stop(struct server *server)
{
	os_thread_join(server->thread);
	close(server->listener);
}

static bool fetch(uint16_t port, char *body, size_t room, size_t *ret_bytes, char *ret_why)
{
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%u/get_all_segments", port);
	return mooncake_curl_fetch(&curl, url, MINUTE_NS, body, room, ret_bytes, ret_why,
				   MOONCAKE_WHY_BYTES);
}

static void a_body_is_taken_as_far_as_it_fits(void **state)
{
	struct server server;
	char          body[8], why[MOONCAKE_WHY_BYTES];
	size_t        bytes = 0;

	(void)state;
	server_start(&server, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nseg\n");
	assert_true(fetch(server.port, body, sizeof(body), &bytes, why));
	server_stop(&server);
	assert_int_equal(bytes, 4);
	assert_memory_equal(body, "seg\n", 4);
	assert_non_null(strstr(server.request, "GET /get_all_segments HTTP/1."));

	server_start(&server, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n0123456789ab");
	assert_true(fetch(server.port, body, sizeof(body), &bytes, why));
	server_stop(&server);
	assert_int_equal(bytes, sizeof(body));
	assert_memory_equal(body, "01234567", 8);

	server_start(&server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	assert_true(fetch(server.port, body, sizeof(body), &bytes, why));
	server_stop(&server);
	assert_int_equal(bytes, 0);
}

static void what_is_no_answer_says_why(void **state)
{
	struct server server;
	char          body[8], why[MOONCAKE_WHY_BYTES] = "";
	size_t        bytes = 77;

	(void)state;
	server_start(&server, "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
	assert_false(fetch(server.port, body, sizeof(body), &bytes, why));
	server_stop(&server);
	assert_string_equal(why, "HTTP status 404");
	server_start(&server, "never heard of it\r\n");
	assert_false(fetch(server.port, body, sizeof(body), &bytes, why));
	server_stop(&server);
	assert_true(strlen(why) > 0);
	*why = '\0';
	/* Nobody listens there any more. */
	assert_false(fetch(server.port, body, sizeof(body), &bytes, why));
	assert_true(strlen(why) > 0);
	assert_int_equal(bytes, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_is_taken_as_far_as_it_fits),
		cmocka_unit_test(what_is_no_answer_says_why),
	};
	char  why[160];
	void *library;

	if (!os_library_load("libcurl.so.4", &library, why, sizeof(why))) {
		printf("1..0 # SKIP %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
