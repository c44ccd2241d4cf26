/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture is written from back to front: paper, grid, axes, lines, markers, legend.  Colours
 * are classes, so that the reader's colour scheme picks between two sets; viewers that know no
 * schemes show the light one.
 */
#include "app/plot.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "app/app.h"
#include "base/units.h"

/* The frame of the curves inside the picture, in pixels. */
#define WIDTH 820
#define HEIGHT 480
#define LEFT 76.0
#define RIGHT 656.0
#define TOP 108.0
#define BOTTOM 416.0
#define LEGEND_X 682.0

struct axes {
	double log_low, log_high; /* base 10 */
	double ratio_step, ratio_top;
};

/*
 * Two policies may well agree everywhere, so later lines are dashed or small enough to show what
 * lies below.  Colours that people with any of the common colour deficiencies tell apart (Okabe and
 * Ito), lighter on dark paper.
 */
static const char style[] =
	"<style>\n"
	"text { font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 13px; fill: #1f2328 }\n"
	".title { font-size: 18px; font-weight: 600 } .soft { fill: #59636e }\n"
	".paper { fill: #ffffff } .grid { stroke: #d8dee4; stroke-width: 1 } .minor { stroke: #eef1f4; stroke-width: 1 }\n"
	".axis { stroke: #59636e; stroke-width: 1.2 } .ceiling { stroke: #59636e; stroke-width: 1.4; stroke-dasharray: 3 5 }\n"
	".line { fill: none; stroke-width: 2.4; stroke-linejoin: round; stroke-linecap: round } .mark { stroke-width: 1.4 }\n"
	".l0 { stroke: #0072b2 } .l1 { stroke: #d55e00 } .l2 { stroke: #00875f; stroke-dasharray: 8 9 }\n"
	".l3 { stroke: #b0508e } .l4 { stroke: #8a6a00; stroke-dasharray: 2 6 } .l5 { stroke: #3a8fc4; stroke-dasharray: 12 6 }\n"
	".m0 { fill: #0072b2 } .m1 { fill: #d55e00 } .m2 { fill: #00875f } .m3 { fill: #b0508e } .m4 { fill: #8a6a00 }\n"
	".m5 { fill: #3a8fc4 } .mark { stroke: #ffffff }\n"
	"@media (prefers-color-scheme: dark) {\n"
	"text { fill: #e6edf3 } .soft { fill: #9aa4af } .paper { fill: #0d1117 }\n"
	".grid { stroke: #30363d } .minor { stroke: #1c2229 } .axis, .ceiling { stroke: #9aa4af } .mark { stroke: #0d1117 }\n"
	".l0 { stroke: #58b0e8 } .l1 { stroke: #ff9a4d } .l2 { stroke: #3ddba6 } .l3 { stroke: #eb9bcb }\n"
	".l4 { stroke: #f0d048 } .l5 { stroke: #a5d3f2 }\n"
	".m0 { fill: #58b0e8 } .m1 { fill: #ff9a4d } .m2 { fill: #3ddba6 } .m3 { fill: #eb9bcb } .m4 { fill: #f0d048 }\n"
	".m5 { fill: #a5d3f2 }\n"
	"}\n"
	"</style>\n";

/* Text of any origin: XML's own characters are escaped, control characters are not XML at all. */
static void put_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		default:
			/*
			 * Bytes past ASCII as well: a file name need not be UTF-8, an SVG has to.
			 */
			fputc(*text >= ' ' && *text < 0x7f ? *text : '?', out);
		}
	}
}

static double x_of(const struct axes *axes, double capacity)
{
	return LEFT + (log10(capacity) - axes->log_low) / (axes->log_high - axes->log_low) *
			      (RIGHT - LEFT);
}

static double y_of(const struct axes *axes, double ratio)
{
	return BOTTOM - ratio / axes->ratio_top * (BOTTOM - TOP);
}

/* From zero to the next step past the highest ratio, in at most six steps. */
static void fit_ratios(struct axes *axes, double highest)
{
	static const double steps[] = { 0.01, 0.02, 0.05, 0.1, 0.2 };
	size_t              i = 0;

	while (i + 1 < ARRAY_COUNT(steps) && highest > steps[i] * 6)
		i++;
	axes->ratio_step = steps[i];
	axes->ratio_top = fmin(1, fmax(1, ceil(highest / steps[i] - 1e-9)) * steps[i]);
}

/* At least a decade wide, so that there are ticks to read it by, and a little air on both sides. */
static void fit_capacities(struct axes *axes, double lowest, double highest)
{
	const double low = log10(lowest), high = log10(highest);
	const double missing = fmax(0, 1 - (high - low)) / 2;
	const double air = 0.04 * fmax(1, high - low);

	axes->log_low = low - missing - air;
	axes->log_high = high + missing + air;
}

static struct axes fit(const struct plot *plot)
{
	struct axes axes;
	double      lowest = INFINITY, largest = 0, highest = fmax(0, plot->ceiling);
	size_t      l, p;

	for (l = 0; l < plot->line_count; l++) {
		for (p = 0; p < plot->lines[l].point_count; p++) {
			lowest = fmin(lowest, (double)plot->lines[l].points[p].capacity_blocks);
			largest = fmax(largest, (double)plot->lines[l].points[p].capacity_blocks);
			highest = fmax(highest, plot->lines[l].points[p].ratio);
		}
	}
	/* No curve, just the ceiling: any decade will do. */
	if (largest == 0)
		lowest = largest = 10000;
	fit_ratios(&axes, highest);
	fit_capacities(&axes, lowest, largest);
	return axes;
}

static void put_segment(FILE *out, const char *class, double x1, double y1, double x2, double y2)
{
	fprintf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
		class, x1, y1, x2, y2);
}

/* 500, 2k, 10k, 5M: a tick's label has no room for more. */
static void put_capacity(FILE *out, double capacity)
{
	static const char *const suffixes[] = { "", "k", "M", "G" };
	size_t                   i = 0;

	for (; capacity >= 1000 && i + 1 < ARRAY_COUNT(suffixes); i++)
		capacity /= 1000;
	fprintf(out, "%g%s", capacity, suffixes[i]);
}

static void put_capacity_tick(FILE *out, const struct axes *axes, double capacity, bool labelled)
{
	const double x = x_of(axes, capacity);

	if (x < LEFT || x > RIGHT)
		return;
	put_segment(out, labelled ? "grid" : "minor", x, TOP, x, BOTTOM);
	if (!labelled)
		return;
	put_segment(out, "axis", x, BOTTOM, x, BOTTOM + 5);
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", x, BOTTOM + 21);
	put_capacity(out, capacity);
	fputs("</text>\n", out);
}

/* Lines at 1 to 9 of each decade; labels at 1, and at 2 and 5 while there is room for them. */
static void put_capacity_axis(FILE *out, const struct axes *axes)
{
	const bool wide = axes->log_high - axes->log_low > 3.3;
	int        decade, digit;

	for (decade = (int)floor(axes->log_low); decade <= (int)ceil(axes->log_high); decade++) {
		for (digit = 1; digit <= 9; digit++) {
			const bool round = digit == 1 || (!wide && (digit == 2 || digit == 5));

			put_capacity_tick(out, axes, digit * pow(10, decade), round);
		}
	}
	fprintf(out,
		"<text class=\"soft\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">capacity in blocks, logarithmic"
		"</text>\n",
		(LEFT + RIGHT) / 2, BOTTOM + 46);
}

static void put_ratio_axis(FILE *out, const struct axes *axes)
{
	const int step_count = (int)lround(axes->ratio_top / axes->ratio_step);
	int       i;

	for (i = 0; i <= step_count; i++) {
		const double ratio = i * axes->ratio_step, y = y_of(axes, ratio);

		put_segment(out, "grid", LEFT, y, RIGHT, y);
		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.0f %%</text>\n",
			LEFT - 10, y + 4.5, ratio * 100);
	}
	put_segment(out, "axis", LEFT, BOTTOM, RIGHT, BOTTOM);
	fprintf(out,
		"<text class=\"soft\" x=\"%.1f\" y=\"%.1f\">prompt tokens found in the cache</text>\n",
		24.0, TOP - 18);
}

/* On the left, where the curves are low. */
static void put_ceiling(FILE *out, const struct axes *axes, double ratio)
{
	const double y = y_of(axes, ratio);

	put_segment(out, "ceiling", LEFT, y, RIGHT, y);
	fprintf(out, "<text class=\"soft\" x=\"%.1f\" y=\"%.1f\">unlimited: %.1f %%</text>\n",
		LEFT + 8, y - 7, ratio * 100);
}

/* From a place beside the point that is marked, as commands of an SVG path. */
static const struct {
	double      dx, dy;
	const char *path;
} shapes[PLOT_LINES_MAX] = {
	{ -6.5, 0, "a6.5 6.5 0 1 0 13 0a6.5 6.5 0 1 0 -13 0z" },
	{ -4.5, -4.5, "h9v9h-9z" },
	{ 0, -7, "l6 10.5h-12z" },
	{ 0, -6.5, "l6.5 6.5l-6.5 6.5l-6.5 -6.5z" },
	{ 0, 7, "l6 -10.5h-12z" },
	{ -2, -6, "h4v4h4v4h-4v4h-4v-4h-4v-4h4z" },
};

/* The element is left open. */
static void put_shape(FILE *out, size_t line, double x, double y)
{
	fprintf(out, "<path class=\"mark m%zu\" d=\"M%.1f %.1f%s\"", line, x + shapes[line].dx,
		y + shapes[line].dy, shapes[line].path);
}

/* A marker tells its numbers to a pointer that rests on it. */
static void put_marker(FILE *out, size_t l, const struct plot_line *line,
		       const struct plot_point *point, const struct axes *axes)
{
	char count[UNITS_TEXT_BYTES];

	put_shape(out, l, x_of(axes, (double)point->capacity_blocks), y_of(axes, point->ratio));
	fputs("><title>", out);
	put_text(out, line->name);
	fprintf(out, ", %s blocks: %.2f %%</title></path>\n",
		units_format_count(point->capacity_blocks, count), point->ratio * 100);
}

static void put_line(FILE *out, size_t l, const struct plot_line *line, const struct axes *axes)
{
	size_t p;

	fprintf(out, "<polyline class=\"line l%zu\" points=\"", l);
	for (p = 0; p < line->point_count; p++) {
		fprintf(out, "%.1f,%.1f ", x_of(axes, (double)line->points[p].capacity_blocks),
			y_of(axes, line->points[p].ratio));
	}
	fputs("\"/>\n", out);
	for (p = 0; p < line->point_count; p++)
		put_marker(out, l, line, &line->points[p], axes);
}

static void put_legend(FILE *out, const struct plot *plot)
{
	size_t l;

	for (l = 0; l < plot->line_count; l++) {
		const double y = TOP + 8 + 26 * (double)l;

		fprintf(out, "<path class=\"line l%zu\" d=\"M%.1f %.1fh36\"/>\n", l, LEGEND_X, y);
		put_shape(out, l, LEGEND_X + 18, y);
		fprintf(out, "/>\n<text x=\"%.1f\" y=\"%.1f\">", LEGEND_X + 46, y + 4.5);
		put_text(out, plot->lines[l].name);
		fputs("</text>\n", out);
	}
}

static void put_head(FILE *out, const struct plot *plot)
{
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">\n"
		"<title>",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	put_text(out, plot->title);
	fprintf(out,
		"</title>\n%s<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n<text class=\"title\" x=\"24\""
		" y=\"36\">",
		style, WIDTH, HEIGHT);
	put_text(out, plot->title);
	fputs("</text>\n<text class=\"soft\" x=\"24\" y=\"58\">", out);
	put_text(out, plot->subtitle);
	fputs("</text>\n", out);
}

static void put_plot(FILE *out, const struct plot *plot)
{
	const struct axes axes = fit(plot);
	size_t            l;

	put_head(out, plot);
	put_capacity_axis(out, &axes);
	put_ratio_axis(out, &axes);
	if (plot->ceiling >= 0)
		put_ceiling(out, &axes, plot->ceiling);
	for (l = 0; l < plot->line_count; l++)
		put_line(out, l, &plot->lines[l], &axes);
	put_legend(out, plot);
	fputs("</svg>\n", out);
}

int plot_write(const char *path, const struct plot *plot, struct kvs_error *err)
{
	FILE *out;
	int   rc;

	KVS_ASSERT_CMP(plot->line_count, <=, PLOT_LINES_MAX);
	rc = app_open_file("plot", path, &out, err);
	if (rc < 0)
		return rc;
	put_plot(out, plot);
	return app_close_file(out, "plot", path, err);
}
