/* SPDX-License-Identifier: Apache-2.0 */
#include "hail.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of a server that took the connection and then says nothing: it may have been stopped. */
#define PATIENCE_MS 2000

static int dial(const char *port)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
					     .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* All that comes until the other side closes. */
static size_t read_all(int fd, char *text, size_t text_max)
{
	struct pollfd event = { .fd = fd, .events = POLLIN };
	size_t        used = 0;

	while (used < text_max - 1 && poll(&event, 1, PATIENCE_MS) == 1) {
		const ssize_t done = read(fd, text + used, text_max - 1 - used);

		if (done <= 0)
			break;
		used += (size_t)done;
	}
	text[used] = '\0';
	return used;
}

bool hail_listens(const char *port)
{
	const int fd = dial(port);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool hail(const char *port, const char *path, char *ret_body, size_t body_max)
{
	const size_t text_max = body_max + 4096;
	char *const  text = malloc(text_max);
	const int    fd = dial(port);
	const char  *body;
	bool         answered = false;

	if (fd >= 0 && text) {
		dprintf(fd, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", path);
		read_all(fd, text, text_max);
		body = strstr(text, "\r\n\r\n");
		answered = body && strncmp(text, "HTTP/1.1 200 ", 13) == 0;
		if (answered)
			snprintf(ret_body, body_max, "%s", body + 4);
	}
	if (fd >= 0)
		close(fd);
	free(text);
	return answered;
}
