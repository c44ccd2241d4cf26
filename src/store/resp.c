/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects in a Redis server.
 *
 * Gets and puts each have connections of their own, and lookups one more, so that no lookup waits
 * behind bulk and no get behind a put.
 *
 * Retirement   Every call returns with its spans retired, failures and time-outs included.  The
 *              proof: payload passes between a span and a socket only by recvmsg() and sendmsg()
 *              (through OpenSSL's own buffers with TLS), called by the very thread that runs the
 *              call, and the kernel keeps no address once those return.  A connection that breaks
 *              is closed first; but even bytes that still arrive on it would find nobody reading.
 * Creation     SET NX: of two puts at once one is DONE and the other EXISTS.
 * Uses         The server counts a get as a use of an object.  Its EXISTS counts as none, and what
 *              is looked up here is read next.
 * Locks        none: capacity and eviction are the server's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "store/kind.h"
#include "store/resp_batch.h"
#include "store/resp_scan.h"

/* SCAN's cursors count hash buckets: 48 bits are plenty, and 16 are left for a place in a page. */
#define CURSOR_BITS 48
#define CURSOR_MASK ((UINT64_C(1) << CURSOR_BITS) - 1)
#define SKIP_MAX ((UINT32_C(1) << (64 - CURSOR_BITS)) - 1)
_Static_assert(RESP_PAGE_KEYS_MAX <= SKIP_MAX, "a cursor has room for every place in a page");

/* A list call ends after so many pages without a key, at a cursor to go on from. */
#define EMPTY_PAGES_MAX 1024u

/* A purge ends with an error after so many pages: 256 buckets each, more than a server can hold. */
#define PURGE_PAGES_MAX (1u << 24)

#define PURGE_KEYS 128u

struct resp {
	struct kvs_store     store;
	struct resp_settings settings;
	uint64_t             block_bytes;
	struct resp_server   server;
	struct resp_pool     gets, puts, lookups;
	struct resp_counts   counts;
};

static struct resp *resp_of(struct kvs_store *store)
{
	return (struct resp *)store;
}

static void resp_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	struct resp   *resp = resp_of(store);
	const uint64_t stream_bytes = sizeof(struct resp_stream) + RESP_READ_MAX +
				      resp->settings.pipeline * sizeof(struct resp_slot);

	*ret_info = (struct kvs_store_info){
		/* Relaxed: each a count by itself. */
		.corrupt_objects = atomic_load_explicit(&resp->counts.corrupt_objects,
							memory_order_relaxed),
		.refused_full = atomic_load_explicit(&resp->counts.refused_full,
						     memory_order_relaxed),
		.memory_bytes = sizeof(*resp) + stream_bytes * (resp->gets.count +
						resp->puts.count + resp->lookups.count),
		.durability = KVS_DURABILITY_PROCESS,
		.death_retires = KVS_DEATH_COPY,
		.failures_retire = true,
		.verified = resp->settings.verified,
		.away = resp_server_is_unreached(&resp->server),
		.note = "capacity, eviction and persistence are the server's; locks are advisory",
	};
}

static bool spans_valid(const struct resp *resp, const struct kvs_span *span, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (span[i].bytes == 0 || span[i].bytes > resp->block_bytes)
			return false;
	}
	return true;
}

static int move(struct resp *resp, struct resp_pool *pool, const struct resp_batch *batch,
		bool *ret_retired)
{
	uint32_t i;

	*ret_retired = true;
	if (spans_valid(resp, batch->span, batch->count))
		return resp_batch_run(pool, batch);
	for (i = 0; i < batch->count; i++)
		batch->result[i] = KVS_RESULT_UNKNOWN;
	return KVS_E_INVALID;
}

static int resp_get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		    uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	struct resp *resp = resp_of(store);

	return move(resp, &resp->gets, &(struct resp_batch){ RESP_GET, key, span, count, result },
		    ret_retired);
}

static int resp_put(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		    uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	struct resp *resp = resp_of(store);

	return move(resp, &resp->puts, &(struct resp_batch){ RESP_SET, key, span, count, result },
		    ret_retired);
}

static int resp_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		       enum kvs_result *result)
{
	return resp_batch_run(&resp_of(store)->lookups,
			      &(struct resp_batch){ RESP_EXISTS, key, NULL, count, result });
}

static int resp_remove(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		       enum kvs_result *result)
{
	return resp_batch_run(&resp_of(store)->lookups,
			      &(struct resp_batch){ RESP_DEL, key, NULL, count, result });
}

/* Where a list goes on: the next page, or further on in this one. */
static int list_cursor(uint64_t from, const struct resp_page *page, uint64_t *ret_cursor)
{
	const uint64_t skip = page->skip + (uint64_t)page->count;

	if (page->cursor > CURSOR_MASK || skip > SKIP_MAX)
		return KVS_E_PROTO;
	*ret_cursor = page->more ? from | skip << CURSOR_BITS : page->cursor;
	return 0;
}

static int resp_list(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *cursor,
		     struct kvs_key *keys, uint32_t key_max, uint32_t *ret_count)
{
	uint64_t at = *cursor;
	uint32_t pages = 0;

	for (;;) {
		const uint64_t   from = at & CURSOR_MASK;
		struct resp_page page = { .cursor = from, .skip = (uint32_t)(at >> CURSOR_BITS),
					  .keys = keys, .key_max = key_max };
		int              rc = resp_scan(&resp_of(store)->lookups, space, &page);

		if (rc == 0)
			rc = list_cursor(from, &page, &at);
		if (rc < 0)
			return rc;
		if (page.count > 0 || at == 0 || ++pages == EMPTY_PAGES_MAX) {
			*cursor = at;
			*ret_count = page.count;
			return 0;
		}
	}
}

static int remove_page(struct kvs_store *store, const struct resp_page *page, uint64_t *removed)
{
	enum kvs_result result[PURGE_KEYS];
	uint32_t        gone = 0, i;
	int             rc;

	if (page->count == 0)
		return 0;
	rc = resp_remove(store, page->keys, page->count, result);
	if (rc < 0)
		return rc;
	for (i = 0; i < page->count; i++) {
		if (result[i] == KVS_RESULT_FAILED)
			return -EIO;
		*removed += result[i] == KVS_RESULT_DONE;
		/* By us, or by another client in between. */
		gone += result[i] == KVS_RESULT_DONE || result[i] == KVS_RESULT_MISSING;
	}
	/* A page that is read again must have become shorter. */
	return page->more && gone == 0 ? -EIO : 0;
}

static int resp_purge(struct kvs_store *store, const struct kvs_namespace *space,
		      uint64_t *ret_count)
{
	struct kvs_key   keys[PURGE_KEYS];
	struct resp_page page;
	uint64_t         cursor = 0, removed = 0;
	uint32_t         pages = 0;

	do {
		int rc;

		page = (struct resp_page){ .cursor = cursor, .keys = keys, .key_max = PURGE_KEYS };
		rc = resp_scan(&resp_of(store)->lookups, space, &page);
		if (rc == 0)
			rc = remove_page(store, &page, &removed);
		if (rc == 0 && ++pages == PURGE_PAGES_MAX)
			rc = KVS_E_PROTO;
		if (rc < 0)
			return rc;
		/* A page that was too long is read again, and shorter then. */
		cursor = page.more ? cursor : page.cursor;
	} while (page.more || cursor != 0);
	*ret_count = removed;
	return 0;
}

static int resp_close(struct kvs_store *store)
{
	struct resp *resp = resp_of(store);

	resp_pool_fini(&resp->gets);
	resp_pool_fini(&resp->puts);
	resp_pool_fini(&resp->lookups);
	tls_authority_close(resp->server.authority);
	resp_server_fini(&resp->server);
	explicit_bzero(&resp->settings, sizeof(resp->settings));
	free(resp);
	return 0;
}

static int pool_init(struct resp *resp, struct resp_pool *pool, uint64_t count)
{
	return resp_pool_init(pool, &resp->server, (uint32_t)count, &resp->counts);
}

static int authority_open(struct resp *resp, struct kvs_error *err)
{
	const char *const ca = resp->settings.tls_ca;
	int               rc;

	if (!resp->settings.tls)
		return 0;
	rc = tls_authority_open(ca[0] ? ca : NULL, &resp->server.authority, err);
	if (rc < 0)
		err_prefix(err, "store.tls_ca: \"%.96s\"", ca);
	return rc;
}

/* The first connection tells whether the settings hold. */
static int try_server(struct resp *resp, struct kvs_error *err)
{
	struct resp_lease lease;
	int               rc;

	if (!resp->settings.required)
		return 0;
	rc = resp_pool_lease(&resp->lookups, 1, &lease, err);
	if (rc == 0)
		resp_pool_return(&resp->lookups, &lease);
	return rc;
}

static int check_block(const struct kvs_store_config *config, struct kvs_error *err)
{
	char size[32];

	if (config->block_bytes <= RESP_BULK_MAX - sizeof(struct label_seal))
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "block_bytes: %s is more than a Redis value holds with its trailer; "
		       "use at most 512 MiB less 4 KiB",
		       units_format_size(config->block_bytes, size));
}

static int resp_open(const struct kvs_store_config *config, struct kvs_store **ret_store,
		     struct kvs_error *err)
{
	struct resp *resp = calloc(1, sizeof(*resp));
	int          rc;

	if (!resp)
		return err_set(err, -ENOMEM, "store: no memory");
	rc = resp_settings_read(config, &resp->settings, err);
	if (rc == 0)
		rc = check_block(config, err);
	if (rc < 0) {
		explicit_bzero(&resp->settings, sizeof(resp->settings));
		free(resp);
		return rc;
	}
	resp->store.ops = &store_resp_ops;
	resp->block_bytes = config->block_bytes;
	resp_server_init(&resp->server, &resp->settings, NULL);
	if (pool_init(resp, &resp->gets, resp->settings.connections) < 0 ||
	    pool_init(resp, &resp->puts, resp->settings.connections) < 0 ||
	    pool_init(resp, &resp->lookups, 1) < 0)
		rc = err_set(err, -ENOMEM, "store: no memory");
	if (rc == 0)
		rc = authority_open(resp, err);
	if (rc == 0)
		rc = try_server(resp, err);
	if (rc < 0) {
		resp_close(&resp->store);
		return rc;
	}
	*ret_store = &resp->store;
	return 0;
}

const struct kvs_store_ops store_resp_ops = { .abi = KVS_STORE_ABI,
					      .name = "resp",
					      .options = resp_options,
					      .open = resp_open,
					      .close = resp_close,
					      .describe = resp_describe,
					      .exists = resp_exists,
					      .get = resp_get,
					      .put = resp_put,
					      .remove = resp_remove,
					      .list = resp_list,
					      .purge = resp_purge };
