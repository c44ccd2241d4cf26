/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store on the test stand: opened from a spec, called with guarded spans.
 *
 * Every call below checks what holds for all stores: one sensible result a key, payload untouched by
 * a put, exactly the right bytes behind a DONE, and nothing outside the spans.
 */
#ifndef CONTRACT_STAND_H
#define CONTRACT_STAND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <kvstrata/store.h>

#include "cave.h"
#include "guarded.h"
#include "redis.h"
#include "troupe.h"

#define BATCH_MAX 32u
#define STAND_WORKERS 4u

struct subject {
	const char *name;
	const char *spec;  /* "@" stands for a directory of its own, "#" for a Mooncake master's HOST:PORT */
	const char *plan;  /* written to @/plan.json; NULL: none */
	bool        keeps; /* what is put can be got */
	bool        redis; /* of a server that listens on @/socket */
	bool        lanes; /* rows go through submit and reap, not get and put */
	uint32_t    late;  /* some get of the first so many comes unretired; 0: none on purpose */
	bool        cave;  /* of Mooncake's client library, as tests have it */
	bool        troupe; /* of agents over an SDK of the tests' own */
	bool        repeats; /* a second put of an object may be DONE, with nothing moved */
};

extern const struct subject subjects[];

const struct subject *subject_find(const char *name); /* NULL: unknown */

struct stand {
	const struct subject *subject;
	char                  directory[64];
	struct kvs_store     *store;
	struct kvs_store_info info; /* as it was opened */
	uint8_t              *memory; /* of all guarded spans; told to the store */
	int                   memory_fd;
	struct guarded        guarded;
	struct redis          redis; /* running when the subject wants one */
	struct cave          *cave;
	struct troupe         troupe;
};

/* cmocka's: *state is a subject before, a stand between, a subject after. */
int stand_setup(void **state);
int stand_teardown(void **state);

void stand_open(struct stand *stand);
void stand_close(struct stand *stand); /* the store; says what was touched behind its back */

/* True when the store keeps what is put; else the reader of the report is told. */
bool stand_keeps(const struct stand *stand);

/* The result of putting what is there; one that repeats itself moves nothing all the same. */
bool stand_was_there(const struct stand *stand, enum kvs_result result);

/* Guarded spans for a worker of its own, 0 .. STAND_WORKERS - 1, in the stand's memory. */
void stand_guard(const struct stand *stand, uint32_t worker, struct guarded *ret_guarded);

/* The object of a number is that of named_block.h; its payload has so many bytes. */
enum kvs_result stand_put(struct stand *stand, uint32_t number, uint32_t bytes);
enum kvs_result stand_get(struct stand *stand, uint32_t number, uint32_t bytes);
enum kvs_result stand_exists(struct stand *stand, uint32_t number);
enum kvs_result stand_remove(struct stand *stand, uint32_t number);
enum kvs_result stand_lock(struct stand *stand, uint32_t number);
void            stand_unlock(struct stand *stand, uint32_t number);

/*
 * count rows of either kind through a lane, as many at a time as it takes: 0 when all were answered, or the
 * code that refused the first that was not taken.  Cookies are the stand's.
 */
int stand_cross(const struct stand *stand, uint32_t lane, const struct kvs_io *io, uint32_t count,
		enum kvs_result *ret_result, bool *ret_retired);

/*
 * What get and put of the table would do, or the same rows through a lane.  From any thread, each with a
 * lane of its own.
 */
int stand_move(const struct stand *stand, uint32_t lane, bool is_put, const struct kvs_key *key,
	       const struct kvs_span *span, uint32_t count, enum kvs_result *ret_result,
	       bool *ret_retired);

/* The same with keys of the caller's: key[i] has the payload of number[i]. */
void stand_put_keys(struct stand *stand, const struct kvs_key *key, const uint32_t *number,
		    uint32_t count, uint32_t bytes, enum kvs_result *ret_result);
void stand_get_keys(struct stand *stand, const struct kvs_key *key, const uint32_t *number,
		    uint32_t count, uint32_t bytes, enum kvs_result *ret_result);

#endif
