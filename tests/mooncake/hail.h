/* SPDX-License-Identifier: Apache-2.0 */
/* One question over HTTP to a server of the loopback; for the master's administrative interface. */
#ifndef MOONCAKE_HAIL_H
#define MOONCAKE_HAIL_H

#include <stdbool.h>
#include <stddef.h>

/* Whether anybody takes connections there. */
bool hail_listens(const char *port);

/* The body of the answer to GET path; false when nobody answers, or with another status than 200. */
bool hail(const char *port, const char *path, char *ret_body, size_t body_max);

#endif
