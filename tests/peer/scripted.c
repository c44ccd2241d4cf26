/* SPDX-License-Identifier: Apache-2.0 */
/* Commands are counted, and their names looked at; what else they say does not matter. */
#include "scripted.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "store/resp_codec.h"

struct client {
	int                fd;
	struct resp_reader reader;
	uint32_t           bulks_left; /* of the command being read */
	bool               is_first;   /* the next bulk is its name */
	bool               is_login;
};

/* Blocking: the kernel's buffer takes what tests say, and a client that hung up is no matter. */
static void say(const struct client *client, const char *bytes, size_t count)
{
	while (count > 0) {
		const ssize_t done = send(client->fd, bytes, count, MSG_NOSIGNAL);

		if (done <= 0)
			return;
		bytes += done;
		count -= (size_t)done;
	}
}

/* False when the connection ends with it. */
static bool answer(struct scripted *scripted, const struct client *client)
{
	struct answer answer;

	os_mutex_lock(&scripted->mutex);
	if (client->is_login && scripted->lets_in) {
		os_mutex_unlock(&scripted->mutex);
		say(client, "+OK\r\n", 5);
		return true;
	}
	answer = scripted->answers[scripted->next];
	if (scripted->next + 1 < scripted->answer_count)
		scripted->next++;
	os_mutex_unlock(&scripted->mutex);
	if (answer.bytes)
		say(client, answer.bytes, answer.count);
	return !answer.close;
}

static bool is_login(const char *name, size_t count)
{
	return (count == 4 && (!memcmp(name, "PING", 4) || !memcmp(name, "AUTH", 4))) ||
	       (count == 6 && !memcmp(name, "SELECT", 6));
}

/* False when the connection is over. */
static bool take(struct scripted *scripted, struct client *client, const char *bytes, size_t count)
{
	size_t at = 0;

	while (at < count) {
		size_t    used;
		const int event = resp_read(&client->reader, bytes + at, count - at, &used);

		if (event == RESP_ARRAY) {
			client->bulks_left = (uint32_t)client->reader.value;
			client->is_first = true;
		} else if (event == RESP_DATA && client->is_first) {
			client->is_login = is_login(bytes + at, used);
			client->is_first = false;
		} else if (event == RESP_END && --client->bulks_left == 0) {
			if (!answer(scripted, client))
				return false;
		} else if (event < 0) {
			/* No RESP, and never again: a peer that listens and is silent. */
			return true;
		}
		at += used;
	}
	return true;
}

static bool serve(struct scripted *scripted, struct client *client)
{
	const ssize_t done = recv(client->fd, scripted->bytes, sizeof(scripted->bytes), 0);

	return done > 0 && take(scripted, client, scripted->bytes, (size_t)done);
}

static void *run(void *arg)
{
	struct scripted *scripted = arg;
	struct client    clients[SCRIPTED_CLIENTS];
	struct pollfd    polls[SCRIPTED_CLIENTS + 2];
	int              count = 0, i;

	for (;;) {
		polls[0] = (struct pollfd){ .fd = scripted->stop, .events = POLLIN };
		/* A negative descriptor is passed over: whoever finds no place waits in the queue. */
		polls[1] = (struct pollfd){ .fd = count < SCRIPTED_CLIENTS ? scripted->listener : -1,
					    .events = POLLIN };
		for (i = 0; i < count; i++)
			polls[2 + i] = (struct pollfd){ .fd = clients[i].fd, .events = POLLIN };
		KVS_ASSERT(poll(polls, (nfds_t)count + 2, -1) > 0);
		if (polls[0].revents)
			break;
		for (i = count - 1; i >= 0; i--) {
			if (!polls[2 + i].revents || serve(scripted, &clients[i]))
				continue;
			close(clients[i].fd);
			clients[i] = clients[--count];
		}
		if (polls[1].revents) {
			clients[count] = (struct client){
				.fd = accept(scripted->listener, NULL, NULL)
			};
			resp_reader_init(&clients[count++].reader);
			os_mutex_lock(&scripted->mutex);
			scripted->accepted++;
			os_mutex_unlock(&scripted->mutex);
		}
	}
	for (i = 0; i < count; i++)
		close(clients[i].fd);
	return NULL;
}

void scripted_start(struct scripted *scripted)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t          bytes = sizeof(address);

	*scripted = (struct scripted){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
				       .stop = os_eventfd(), .answer_count = 1, .lets_in = true };
	os_mutex_init(&scripted->mutex);
	KVS_ASSERT(bind(scripted->listener, (struct sockaddr *)&address, bytes) == 0);
	KVS_ASSERT(getsockname(scripted->listener, (struct sockaddr *)&address, &bytes) == 0);
	KVS_ASSERT(listen(scripted->listener, SCRIPTED_CLIENTS) == 0);
	scripted->port = ntohs(address.sin_port);
	KVS_ASSERT(os_thread_start(&scripted->thread, "scripted", run, scripted) == 0);
}

void scripted_stop(struct scripted *scripted)
{
	os_eventfd_signal(scripted->stop);
	os_thread_join(scripted->thread);
	close(scripted->listener);
	close(scripted->stop);
	os_mutex_fini(&scripted->mutex);
}

void scripted_say(struct scripted *scripted, const struct answer *answers, uint32_t count,
		  bool lets_in)
{
	KVS_ASSERT(count > 0 && count <= SCRIPTED_ANSWERS);
	os_mutex_lock(&scripted->mutex);
	memcpy(scripted->answers, answers, count * sizeof(*answers));
	scripted->answer_count = count;
	scripted->next = 0;
	scripted->lets_in = lets_in;
	os_mutex_unlock(&scripted->mutex);
}

uint32_t scripted_accepted(struct scripted *scripted)
{
	uint32_t accepted;

	os_mutex_lock(&scripted->mutex);
	accepted = scripted->accepted;
	os_mutex_unlock(&scripted->mutex);
	return accepted;
}
