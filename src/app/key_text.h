/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys as users see and write them: NAMESPACE:GROUP:OFFSET:HASH, the first and the last in hex, 32 and
 * 64 digits; as they are named in a Redis server, behind the prefix there.  Of a replica past 0 the
 * number stands behind the group's: GROUP.REPLICA.
 */
#ifndef APP_KEY_TEXT_H
#define APP_KEY_TEXT_H

#include <stdbool.h>

#include <kvstrata/base.h>

#define KEY_TEXT_SPACE_BYTES 33u
#define KEY_TEXT_HASH_BYTES 65u
#define KEY_TEXT_GROUP_BYTES 12u
#define KEY_TEXT_BYTES 128u

/* All return the buffer. */
char *key_text_space(const struct kvs_namespace *space, char buffer[KEY_TEXT_SPACE_BYTES]);
char *key_text_hash(const struct kvs_key *key, char buffer[KEY_TEXT_HASH_BYTES]);
char *key_text_group(const struct kvs_key *key, char buffer[KEY_TEXT_GROUP_BYTES]);
char *key_text(const struct kvs_key *key, char buffer[KEY_TEXT_BYTES]);

/* False: that is none.  Digits above 9 may be large or small. */
bool key_text_parse_space(const char *text, struct kvs_namespace *ret_space);
bool key_text_parse(const char *text, struct kvs_key *ret_key);

#endif
