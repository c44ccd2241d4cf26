/* SPDX-License-Identifier: Apache-2.0 */
/* The bar is drawn over itself with a carriage return; what follows the line is erased. */
#include "app/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

#define NS_PER_S 1000000000.0
#define DRAW_NS 100000000u
#define BAR_CELLS 20u
#define LEFT_BYTES 32u
#define ERASE "\r\033[K"

void progress_start(struct progress *progress, const char *title, const char *unit, bool wanted,
		    uint64_t now_ns)
{
	*progress = (struct progress){ .title = title, .unit = unit, .start_ns = now_ns,
				       .shown = wanted && isatty(STDERR_FILENO) };
}

static void format_bar(double fraction, char *bar)
{
	size_t full = (size_t)(fraction * BAR_CELLS);

	memset(bar, '-', BAR_CELLS);
	memset(bar, '#', full);
	bar[BAR_CELLS] = '\0';
}

/* Unknown until something is done. */
static void format_left(double fraction, double elapsed_s, char *left)
{
	double left_s = fraction > 0 ? elapsed_s * (1 - fraction) / fraction : 0;

	if (fraction <= 0)
		snprintf(left, LEFT_BYTES, "?");
	else if (left_s < 100)
		snprintf(left, LEFT_BYTES, "%.1f s left", left_s);
	else
		snprintf(left, LEFT_BYTES, "%.0f min left", left_s / 60);
}

char *progress_line(const struct progress *progress, double fraction, uint64_t done,
		    uint64_t now_ns, char *line)
{
	double elapsed_s = (double)(now_ns - progress->start_ns) / NS_PER_S;
	char   bar[BAR_CELLS + 1], left[LEFT_BYTES];
	char   count[UNITS_TEXT_BYTES], rate[UNITS_TEXT_BYTES];

	fraction = fraction > 1 ? 1 : fraction > 0 ? fraction : 0;
	format_bar(fraction, bar);
	format_left(fraction, elapsed_s, left);
	units_format_count(done, count);
	units_format_count(elapsed_s > 0 ? (uint64_t)((double)done / elapsed_s) : 0, rate);
	snprintf(line, PROGRESS_LINE_BYTES, "%s %s %s  [%s]  %.0f %%  %s %s/s  %s", progress->title,
		 count, progress->unit, bar, fraction * 100, rate, progress->unit, left);
	return line;
}

void progress_update(struct progress *progress, double fraction, uint64_t done, uint64_t now_ns)
{
	char line[PROGRESS_LINE_BYTES];

	if (!progress->shown || (progress->drawn_ns && now_ns - progress->drawn_ns < DRAW_NS))
		return;
	progress->drawn_ns = now_ns;
	fprintf(stderr, ERASE "%s", progress_line(progress, fraction, done, now_ns, line));
}

void progress_clear(struct progress *progress)
{
	if (progress->shown && progress->drawn_ns)
		fputs(ERASE, stderr);
	progress->drawn_ns = 0;
}

void progress_finish(struct progress *progress)
{
	progress_clear(progress);
	progress->shown = false;
}
