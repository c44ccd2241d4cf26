/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <stdarg.h>

#include "base/err.h"

redisContext *redis_client(const struct redis *redis)
{
	redisContext *client = redisConnectUnix(redis->socket);

	KVS_ASSERT(client && !client->err);
	return client;
}

static redisReply *do_list(redisContext *client, const char *format, va_list list)
{
	redisReply *reply = redisvCommand(client, format, list);

	if (!reply)
		KVS_PANIC("%s: %s", format, client->errstr);
	if (reply->type == REDIS_REPLY_ERROR)
		KVS_PANIC("%s: %s", format, reply->str);
	return reply;
}

redisReply *redis_do(redisContext *client, const char *format, ...)
{
	va_list     list;
	redisReply *reply;

	va_start(list, format);
	reply = do_list(client, format, list);
	va_end(list);
	return reply;
}

void redis_run(redisContext *client, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	freeReplyObject(do_list(client, format, list));
	va_end(list);
}
