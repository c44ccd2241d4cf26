/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of a program, counted, where the linker wraps malloc, calloc, realloc and
 * aligned_alloc (tests/unit/meson.build).
 *
 * Threads  Of any.
 */
#ifndef LIB_ALLOCS_H
#define LIB_ALLOCS_H

#include <stdint.h>

extern _Atomic uint64_t allocs_count;
extern _Atomic uint64_t allocs_bytes; /* of all of them; what was given back counts, too */

#endif
