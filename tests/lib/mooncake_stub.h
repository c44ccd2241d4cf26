/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shared object with the C interface of Mooncake's client over a map in memory, that does what a test
 * tells it to: MOONCAKE_STUB_PATH, and MOONCAKE_STUB_LACKING_PATH, which has not all of the interface.
 *
 * All clients of the process see one map, and it outlives them, until reset().  Whoever loads the
 * path gets the same object: what a test sets through the hooks is what the library under test meets.
 */
#ifndef LIB_MOONCAKE_STUB_H
#define LIB_MOONCAKE_STUB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stub_call {
	STUB_CREATE,
	STUB_SETUP,
	STUB_DESTROY,
	STUB_REGISTER,
	STUB_EXISTS,
	STUB_GET,
	STUB_PUT,
	STUB_REMOVE,
	STUB_PURGE,
	STUB_CALL_COUNT
};

#define STUB_CODES_MAX 8
#define STUB_HONEST INT64_MIN /* the code of a row that does what it should */

/* What the next `calls` calls of a kind do. */
struct stub_plan {
	uint32_t calls;
	bool     holds;  /* they wait for release() before anything else */
	int64_t  rc;     /* not 0: returned, with no row written and nothing done */
	bool     writes; /* but rows are, and everything is */
	bool     cuts;   /* of a batch only the first `rows` rows are written */
	uint32_t rows;
	uint32_t code_count;
	int64_t  codes[STUB_CODES_MAX]; /* of the first rows of a batch; they move nothing */
};

struct stub_figures {
	uint32_t calls[STUB_CALL_COUNT];
	uint32_t rows[STUB_CALL_COUNT];
	uint32_t clients;    /* created and not destroyed */
	uint32_t held;       /* calls that wait now */
	uint32_t objects;
	uint32_t leases;     /* probes that found something */
	uint32_t regions;    /* registered */
	void    *region_ptr; /* of the last one */
	size_t   region_bytes;
	size_t   replicas;   /* of the last put */
	bool     forced;     /* the last removal */
	char     master[256], local_hostname[256], metadata_server[256], protocol[32], device[256];
	uint64_t segment_bytes, local_buffer_bytes;
};

struct stub_hooks {
	/* Objects, plans, figures and regions are gone; nothing is held. */
	void (*reset)(void);
	void (*plan)(enum stub_call call, const struct stub_plan *plan);
	void (*wait_held)(uint32_t count);
	void (*wait_clients)(uint32_t count);
	void (*release)(void); /* what is held now */
	void (*figures)(struct stub_figures *ret_figures);
	bool (*has_run_on)(pthread_t thread); /* any call since reset() */
	/* Of all objects: puts past it are -200. */
	void (*capacity)(uint64_t bytes);
	/* Write into the destinations of the last get, as transfers that nobody cancelled do. */
	void (*write_late)(uint8_t byte);
	/* Make the stored bytes of an object wrong, from `offset` on; false: there is none. */
	bool (*damage)(const char *name, size_t offset);
	/* Cut it down to its first bytes; false: there is none. */
	bool (*cut)(const char *name, size_t bytes);
};

#define STUB_HOOKS_SYMBOL "stub_hooks"
typedef const struct stub_hooks *stub_hooks_entry(void);

#endif
