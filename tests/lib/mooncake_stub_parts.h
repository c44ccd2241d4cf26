/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the stub share: mooncake_stub.c is the interface, the others what lies behind it. */
#ifndef LIB_MOONCAKE_STUB_PARTS_H
#define LIB_MOONCAKE_STUB_PARTS_H

#include "mooncake_stub.h"

/* Guards everything; held between enter() and leave(). */
struct stub {
	pthread_mutex_t     lock;
	pthread_cond_t      moved;
	struct stub_figures figures;
	struct stub_plan    plans[STUB_CALL_COUNT];
	uint64_t            releases;
	pthread_t           threads[512]; /* that have made calls */
	uint32_t            thread_count;
	uint64_t            capacity_bytes, used_bytes;
	void               *late_buffers[STUB_CODES_MAX];
	size_t              late_bytes[STUB_CODES_MAX];
	uint32_t            late_count;
};

extern struct stub stub;

/* Count the call, hold it if that is planned, and say what it does; the lock is held from then on. */
struct stub_plan stub_enter(enum stub_call call, uint32_t rows);
void             stub_leave(void);

/* A row's code that is planned, or STUB_HONEST. */
int64_t stub_code(const struct stub_plan *plan, size_t row);
/* Nothing of this row is written. */
bool stub_cuts(const struct stub_plan *plan, size_t row);

/* --- objects; with the lock --------------------------------------------------------------------- */
struct stub_object {
	struct stub_object *next;
	char               *name;
	uint8_t            *bytes;
	size_t              size;
};

struct stub_object *stub_object_find(const char *name);
int                 stub_object_put(const char *name, const void *bytes, size_t size);
bool                stub_object_remove(const char *name);
int64_t             stub_object_purge(const char *expression); /* -400: it is none */
void                stub_object_clear(void);

#endif
