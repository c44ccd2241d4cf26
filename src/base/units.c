/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities in and out of text.  Decimals are read exactly, as integers: no floating point. */
#include "base/units.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

struct unit {
	const char *name;
	uint64_t    factor;
};

/* Smallest first; the first divides everything. */
static const struct unit size_units[] = { { "", 1 },
					  { "KiB", UINT64_C(1) << 10 },
					  { "MiB", UINT64_C(1) << 20 },
					  { "GiB", UINT64_C(1) << 30 },
					  { "TiB", UINT64_C(1) << 40 } };
static const struct unit duration_units[] = { { "ns", 1 },
					      { "us", 1000 },
					      { "ms", 1000000 },
					      { "s", 1000000000 },
					      { "m", UINT64_C(60000000000) } };

static const struct unit *unit_find(const struct unit *units, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(units[i].name, name) == 0)
			return &units[i];
	}
	return NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits into *ret_value, underscores between digits allowed; the place behind them, or NULL. */
static const char *digits_read(const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;
	const char *at = text;

	if (!is_digit(*at))
		return NULL;
	for (; is_digit(*at) || (*at == '_' && is_digit(at[1])); at++) {
		if (*at == '_')
			continue;
		if (value > (INT64_MAX - (uint64_t)(*at - '0')) / 10)
			return NULL;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	*ret_value = value;
	return at;
}

/*
 * value.fraction times factor, refused when it does not fit.  The smallest unit takes no fraction;
 * of the others a part of it is dropped.
 */
static int quantity(const char *text, const struct unit *units, size_t unit_count,
		    uint64_t *ret_value)
{
	uint64_t           whole, scaled, part = 0, place = 1;
	const char        *at = digits_read(text, &whole);
	const struct unit *unit;

	if (!at)
		return KVS_E_INVALID;
	if (*at == '.') {
		if (!is_digit(at[1]))
			return KVS_E_INVALID;
		for (at++; is_digit(*at); at++) {
			if (place > 100000)
				return KVS_E_INVALID;
			part = part * 10 + (uint64_t)(*at - '0');
			place *= 10;
		}
	}
	unit = unit_find(units, unit_count, at);
	if (!unit && !(*at == '\0' && whole == 0 && part == 0))
		return KVS_E_INVALID;
	if (!unit) {
		*ret_value = 0;
		return 0;
	}
	if (whole > INT64_MAX / unit->factor || (place > 1 && unit->factor == 1))
		return KVS_E_INVALID;
	/* part < 10^6 and the largest factor is 2^40: the product fits. */
	scaled = whole * unit->factor + part * unit->factor / place;
	if (scaled > INT64_MAX)
		return KVS_E_INVALID;
	*ret_value = scaled;
	return 0;
}

int units_size(const char *text, uint64_t *ret_bytes)
{
	return quantity(text, size_units, ARRAY_COUNT(size_units), ret_bytes);
}

int units_duration(const char *text, uint64_t *ret_ns)
{
	return quantity(text, duration_units, ARRAY_COUNT(duration_units), ret_ns);
}

int units_count(const char *text, uint64_t *ret_count)
{
	uint64_t    value;
	const char *end = digits_read(text, &value);

	if (!end || *end)
		return KVS_E_INVALID;
	*ret_count = value;
	return 0;
}

char *units_format_size(uint64_t bytes, char buffer[UNITS_TEXT_BYTES])
{
	size_t i = ARRAY_COUNT(size_units) - 1;

	while (i > 0 && bytes < size_units[i].factor)
		i--;
	if (i == 0) {
		snprintf(buffer, UNITS_TEXT_BYTES, "%" PRIu64 " B", bytes);
	} else if (bytes % size_units[i].factor == 0) {
		snprintf(buffer, UNITS_TEXT_BYTES, "%" PRIu64 " %s", bytes / size_units[i].factor,
			 size_units[i].name);
	} else {
		snprintf(buffer, UNITS_TEXT_BYTES, "%.2f %s",
			 (double)bytes / (double)size_units[i].factor, size_units[i].name);
	}
	return buffer;
}

char *units_format_count(uint64_t count, char buffer[UNITS_TEXT_BYTES])
{
	char   digits[24];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count);
	size_t i, out = 0;

	for (i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			buffer[out++] = ',';
		buffer[out++] = digits[i];
	}
	buffer[out] = '\0';
	return buffer;
}

static char *format_exact(uint64_t value, const struct unit *units, size_t unit_count, char *buffer)
{
	size_t i = unit_count - 1;

	while (value % units[i].factor != 0)
		i--;
	snprintf(buffer, UNITS_TEXT_BYTES, "%" PRIu64 "%s", value / units[i].factor,
		 value ? units[i].name : "");
	return buffer;
}

char *units_exact_size(uint64_t bytes, char buffer[UNITS_TEXT_BYTES])
{
	return format_exact(bytes, size_units, ARRAY_COUNT(size_units), buffer);
}

char *units_exact_duration(uint64_t ns, char buffer[UNITS_TEXT_BYTES])
{
	/* Up to seconds: a default of 60s is not one of 1m to its reader. */
	return format_exact(ns, duration_units, ARRAY_COUNT(duration_units) - 1, buffer);
}
