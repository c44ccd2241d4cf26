/* SPDX-License-Identifier: Apache-2.0 */
/* See allocs.h. */
#include "allocs.h"

#include <stddef.h>

_Atomic uint64_t allocs_count;
_Atomic uint64_t allocs_bytes;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

static void count(size_t bytes)
{
	allocs_count++;
	allocs_bytes += bytes;
}

void *__wrap_malloc(size_t bytes)
{
	count(bytes);
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t items, size_t bytes)
{
	count(items * bytes);
	return __real_calloc(items, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	count(bytes);
	return __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	count(bytes);
	return __real_aligned_alloc(alignment, bytes);
}
