/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hit-ratio curves as one SVG file: capacity on a logarithmic axis, ratios from zero, a line a
 * policy.
 *
 * Legible in light and dark, and without colour: each line has a marker of its own shape.
 */
#ifndef APP_PLOT_H
#define APP_PLOT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* As many as have a colour and a shape of their own. */
#define PLOT_LINES_MAX 6

struct plot_point {
	uint64_t capacity_blocks; /* at least 1 */
	double   ratio;           /* 0 to 1 */
};

struct plot_line {
	const char              *name;
	const struct plot_point *points; /* in any order of capacity: they are joined as they come */
	size_t                   point_count;
};

struct plot {
	const char             *title;
	const char             *subtitle;
	const struct plot_line *lines;
	size_t                  line_count; /* at most PLOT_LINES_MAX */
	double                  ceiling;    /* ratio without a limit, drawn across; negative: unknown */
};

/* -errno with the file's name when it cannot be written. */
int plot_write(const char *path, const struct plot *plot, struct kvs_error *err);

#endif
