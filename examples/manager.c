/* SPDX-License-Identifier: Apache-2.0 */
/* Objects by key: write, let a store have them, lose Host, prefetch, read in place, release. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kvstrata/kvstrata.h>

#define COUNT 8u
#define BYTES 65536u
#define WAIT_NS 10000000000u
static struct kvs_error err;         /* a code, and one sentence: field, value, rule */
static struct kvs_key   keys[COUNT]; /* zeroed: two are equal when all their bytes are */

static void must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, err.code == rc ? err.message : kvs_strerror(rc));
	exit(1);
}

int main(int argc, char **argv)
{
	struct kvs_options options = KVS_OPTIONS_INIT; /* every default */
	struct kvs_write   write = { .struct_size = sizeof(write), .bytes = BYTES };
	struct kvs_ask     ask = { .struct_size = sizeof(ask), .bytes = BYTES };
	struct kvs_span    spans[COUNT];
	int                rc[COUNT]; /* each key answers for itself */
	struct kvs        *kvs;
	kvs_client         me;
	kvs_prefetch       prefetch;
	uint32_t           hits, i;

	options.host_bytes = 64u << 20;
	options.object_bytes = BYTES;
	options.stores[0] = argc > 1 ? argv[1] : "mem:64MiB";
	must(kvs_open(&options, &kvs, &err), "open");
	must(kvs_client_open(kvs, &me, &err), "client");
	for (i = 0; i < COUNT; i++)
		keys[i].hash[0] = (unsigned char)i; /* yours: the hash of a block of tokens */
	must(kvs_reserve_write(kvs, me, keys, COUNT, &write, spans, rc, &err), "reserve");
	for (i = 0; i < COUNT; i++) {
		if (rc[i] == 0) /* KVS_E_EXISTS: it is there already */
			memset(spans[i].ptr, 'a' + (int)i, spans[i].bytes);
	}
	must(kvs_finish_write(kvs, me, keys, COUNT, rc, &err), "finish");
	must(kvs_flush(kvs, WAIT_NS), "flush");                 /* only so that this example ... */
	must(kvs_clear(kvs, NULL, false, NULL, NULL), "clear"); /* ... reads from the store */
	must(kvs_prefetch_submit(kvs, me, keys, COUNT, &ask, &prefetch, &err), "submit");
	must(kvs_prefetch_wait(kvs, prefetch, WAIT_NS, &hits), "wait"); /* ask early, wait late */
	must(kvs_prefetch_spans(kvs, prefetch, spans, COUNT, &hits), "spans");
	for (i = 0; i < hits; i++) /* in place, locked until the release */
		printf("%c%c ", ((char *)spans[i].ptr)[0], ((char *)spans[i].ptr)[BYTES - 1]);
	printf("= %u of %u\n", hits, COUNT);
	must(kvs_prefetch_release(kvs, prefetch), "release");
	must(kvs_client_close(kvs, me), "client"); /* gives back whatever it still held */
	must(kvs_close(kvs), "close");
	return hits == COUNT ? 0 : 1;
}
