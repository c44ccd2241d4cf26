/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities as people write them: sizes, durations, counts.
 *
 *   size       65536, 64KiB, 4GiB, 1.5GiB      (KiB, MiB, GiB, TiB; a bare integer is bytes)
 *   duration   250ms, 2s, 1.5s, 800us, 50ns, 5m  (a unit is required, except for 0)
 *   count      12031, 12_031, 12,031 is refused (a comma separates list items)
 *
 * A fraction has at most 6 digits, and a part of a byte or nanosecond in it is dropped: 0.3KiB is
 * 307 bytes.  All are non-negative and fit into int64_t.  A parse error leaves *ret untouched and
 * returns KVS_E_INVALID.
 */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* The rule each parser enforces, to be quoted after the offending value. */
#define UNITS_SIZE_RULE "is not a size; use an integer or a number with KiB, MiB, GiB, TiB"
#define UNITS_DURATION_RULE "is not a duration; use a number with ns, us, ms, s, m"
#define UNITS_COUNT_RULE "is not a count; use an integer from 0 to 9223372036854775807"

int units_size(const char *text, uint64_t *ret_bytes);
int units_duration(const char *text, uint64_t *ret_ns);
int units_count(const char *text, uint64_t *ret_count);

#define UNITS_TEXT_BYTES 32u

/* For people: "64 KiB" when whole and "1.50 GiB" when not, "12,031".  All return the buffer. */
char *units_format_size(uint64_t bytes, char buffer[UNITS_TEXT_BYTES]);
char *units_format_count(uint64_t count, char buffer[UNITS_TEXT_BYTES]);

/* As the parsers read it back, in the largest unit that divides the value: "64KiB", "1500ms", "0". */
char *units_exact_size(uint64_t bytes, char buffer[UNITS_TEXT_BYTES]);
char *units_exact_duration(uint64_t ns, char buffer[UNITS_TEXT_BYTES]);

#endif
