/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream sockets of a client: TCP over IPv6 and IPv4, and Unix.
 *
 * Every descriptor of ours is non-blocking; waiting is os_wait(), always with a deadline.  Only a name
 * is resolved without one: the resolver's own time-outs bound that.
 */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "os/fd.h"

static int timeout_ms(uint64_t deadline_ns)
{
	const uint64_t now = os_now_ns();
	const uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
	const uint64_t ms = left / 1000000 + (left % 1000000 != 0);

	return ms < INT_MAX ? (int)ms : INT_MAX;
}

int os_wait(struct os_wait *waits, int count, uint64_t deadline_ns)
{
	struct pollfd polls[OS_WAITS_MAX];
	int           ready, i;

	KVS_ASSERT(count > 0 && count <= OS_WAITS_MAX);
	for (i = 0; i < count; i++) {
		polls[i].fd = waits[i].fd;
		polls[i].events = (short)((waits[i].to_read ? POLLIN : 0) |
					  (waits[i].to_write ? POLLOUT : 0));
	}
	do {
		ready = poll(polls, (nfds_t)count, timeout_ms(deadline_ns));
	} while (ready < 0 && errno == EINTR);
	for (i = 0; i < count; i++)
		waits[i].ready = ready > 0 && polls[i].revents != 0;
	return ready < 0 ? -errno : ready;
}

static int finish_connect(int fd, uint64_t deadline_ns)
{
	struct os_wait wait = { .fd = fd, .to_write = true };
	int            code = 0;
	socklen_t      bytes = sizeof(code);
	const int      ready = os_wait(&wait, 1, deadline_ns);

	if (ready <= 0)
		return ready < 0 ? ready : -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes) < 0)
		return -errno;
	return -code;
}

static int connect_to(const struct sockaddr *address, socklen_t bytes, uint64_t deadline_ns)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc;

	fd = fd_above_stdio(fd < 0 ? -errno : fd);
	if (fd < 0)
		return fd;
	rc = connect(fd, address, bytes) < 0 ? -errno : 0;
	if (rc == -EINPROGRESS || rc == -EINTR)
		rc = finish_connect(fd, deadline_ns);
	if (rc < 0) {
		os_close(fd);
		return rc;
	}
	return fd;
}

/* The resolver has codes of its own; what they say to a caller is whether trying again may help. */
static int resolver_code(int code)
{
	switch (code) {
	case EAI_SYSTEM:
		return -errno;
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	default:
		return -EADDRNOTAVAIL;
	}
}

/* An address that swallows packets must leave time for those behind it. */
static uint64_t share(uint64_t deadline_ns, uint32_t addresses)
{
	const uint64_t now = os_now_ns();

	return deadline_ns > now ? now + (deadline_ns - now) / addresses : deadline_ns;
}

int os_socket_connect(const char *host, const char *port, uint64_t deadline_ns)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	const int             on = 1;
	struct addrinfo      *list, *at;
	uint32_t              left = 0;
	int                   fd = -EADDRNOTAVAIL;
	const int             code = getaddrinfo(host, port, &hints, &list);

	if (code != 0)
		return resolver_code(code);
	for (at = list; at; at = at->ai_next)
		left++;
	for (at = list; at && fd < 0; at = at->ai_next)
		fd = connect_to(at->ai_addr, at->ai_addrlen, share(deadline_ns, left--));
	freeaddrinfo(list);
	/* Commands are smaller than a segment: they must not wait for the acknowledgement before. */
	if (fd >= 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

int os_socket_connect_unix(const char *path, uint64_t deadline_ns)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	return connect_to((const struct sockaddr *)&address, sizeof(address), deadline_ns);
}

int os_socket_free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t          bytes = sizeof(address);
	const int          fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int                rc = 0;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, bytes) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &bytes) < 0)
		rc = -errno;
	os_close(fd);
	return rc < 0 ? rc : ntohs(address.sin_port);
}

int os_socket_host_name(char *ret_name, size_t room)
{
	if (gethostname(ret_name, room) < 0)
		return -errno;
	/* One that was cut may have no end. */
	return memchr(ret_name, '\0', room) ? 0 : -ENAMETOOLONG;
}

void os_socket_buffers(int fd, int bytes)
{
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

static ssize_t moved(ssize_t bytes)
{
	if (bytes >= 0)
		return bytes;
	return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

ssize_t os_socket_readv(int fd, const struct iovec *parts, int count)
{
	struct msghdr message = { .msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)count };
	ssize_t       done;

	do {
		done = recvmsg(fd, &message, MSG_DONTWAIT);
	} while (done < 0 && errno == EINTR);
	return done == 0 ? -ECONNRESET : moved(done);
}

ssize_t os_socket_writev(int fd, const struct iovec *parts, int count)
{
	const struct msghdr message = { .msg_iov = (struct iovec *)parts,
					.msg_iovlen = (size_t)count };
	ssize_t             done;

	do {
		done = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (done < 0 && errno == EINTR);
	return done == 0 ? -EAGAIN : moved(done);
}

int fd_pair_above_stdio(int type, int ret_ends[2])
{
	int ends[2], i, rc = 0;

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	for (i = 0; i < 2; i++) {
		ends[i] = fd_above_stdio(ends[i]);
		rc = ends[i] < 0 ? ends[i] : rc;
	}
	if (rc < 0) {
		os_close(ends[0]);
		os_close(ends[1]);
		return rc;
	}
	memcpy(ret_ends, ends, sizeof(ends));
	return 0;
}

int os_socket_pair(int ret_ends[2])
{
	int       ends[2];
	const int rc = fd_pair_above_stdio(SOCK_STREAM, ends);

	if (rc < 0)
		return rc;
	/* Of a socket that is open this is a flag, and nothing that can fail. */
	KVS_ASSERT(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
	memcpy(ret_ends, ends, sizeof(ends));
	return 0;
}

ssize_t os_socket_send_fd(int fd, const void *bytes, size_t count, int sent)
{
	struct iovec part = { (void *)bytes, count };
	union {
		struct cmsghdr header;
		char           bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(sizeof(int)) } };
	const struct msghdr message = { .msg_iov = &part,
					.msg_iovlen = 1,
					.msg_control = &control,
					.msg_controllen = sizeof(control) };
	ssize_t             done;

	KVS_ASSERT(count > 0);
	memcpy(CMSG_DATA(&control.header), &sent, sizeof(sent));
	do {
		done = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (done < 0 && errno == EINTR);
	return moved(done);
}

bool os_socket_is_quiet(int fd)
{
	char byte;

	if (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0)
		return false;
	return errno == EAGAIN || errno == EINTR;
}
