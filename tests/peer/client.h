/* SPDX-License-Identifier: Apache-2.0 */
/* hiredis, the independent peer: commands that must succeed. */
#ifndef PEER_CLIENT_H
#define PEER_CLIENT_H

#include <hiredis/hiredis.h>

#include "redis.h"

redisContext *redis_client(const struct redis *redis);

/* The reply is the caller's. */
redisReply *redis_do(redisContext *client, const char *format, ...);
/* The same without its reply. */
void        redis_run(redisContext *client, const char *format, ...);

#endif
