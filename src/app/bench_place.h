/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a bench keeps its files: a fresh directory, which goes with all it holds at the end.
 */
#ifndef APP_BENCH_PLACE_H
#define APP_BENCH_PLACE_H

#include "base/err.h"

struct bench_place {
	char directory[2048];
	char store[2100]; /* the file of the store */
	char other[2100]; /* and of the program beside it */
};

/**
 * Make the directory below path, on a disk with room for needed_bytes.
 *
 * smaller   the flag that a user would lower where there is too little room.
 * Errors    KVS_E_INVALID: path, with the reason.
 */
int bench_place_open(struct bench_place *place, const char *path, uint64_t needed_bytes,
		     const char *smaller, struct kvs_error *err);

/* Also of a zeroed place.  Files that nobody made are no error. */
void bench_place_close(struct bench_place *place);

#endif
