/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors and assertions.
 *
 * An error answers input: it names field, value and rule and travels up as a negative code.  An
 * assertion catches a mistake of our own: it is always on, prints the claim with its place, and
 * aborts.  Input never reaches an assertion.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <kvstrata/base.h>

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/**
 * Fill in an error and return its code, so that a caller can write `return err_set(err, ...)`.
 *
 * err may be NULL.  A sentence that does not fit is cut at the end of the buffer.  code is
 * negative.
 */
int err_set(struct kvs_error *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Put "prefix: " before the sentence already in err; keeps the code.  err may be NULL. */
void err_prefix(struct kvs_error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Print the message with file and line to stderr, run the panic hook, abort. */
_Noreturn void panic_at(const char *file, int line, const char *format, ...) PRINTF_LIKE(3, 4);

/* Runs once before abort, to flush logs; it cannot continue.  NULL removes it. */
void panic_hook_set(void (*hook)(const char *message));

#define KVS_PANIC(...) panic_at(__FILE__, __LINE__, __VA_ARGS__)

#define KVS_ASSERT(claim) \
	do { \
		if (__builtin_expect(!(claim), 0)) \
			panic_at(__FILE__, __LINE__, "assertion failed: %s", #claim); \
	} while (0)

/* The same with both values printed; for integers that are not negative. */
#define KVS_ASSERT_CMP(a, op, b) \
	do { \
		const uint64_t cmp_a_ = (uint64_t)(a), cmp_b_ = (uint64_t)(b); \
		if (__builtin_expect(!(cmp_a_ op cmp_b_), 0)) \
			panic_at(__FILE__, __LINE__, "assertion failed: %s %s %s (%llu, %llu)", \
				 #a, #op, #b, (unsigned long long)cmp_a_, \
				 (unsigned long long)cmp_b_); \
	} while (0)

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
