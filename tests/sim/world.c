/* SPDX-License-Identifier: Apache-2.0 */
/* See world.h. */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "sim.h"

/* The world of the run under way, for those who come without one: the panic hook and the sanitizers. */
static struct world *watched;

/* Present only where a sanitizer is linked in. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void report(struct world *world, const char *invariant, const char *sentence)
{
	const uint64_t count = world->line_count < HISTORY_LINES ? world->line_count
								 : HISTORY_LINES;
	uint64_t       line;

	watched = NULL;
	fprintf(stderr, "invariant %s: %s\n", invariant, sentence);
	fprintf(stderr,
		"seed 0x%" PRIx64 ", step %" PRIu64 ", tick %" PRIu64 "; the last %" PRIu64
		" events:\n",
		world->seed, world->step, world->now, count);
	for (line = world->line_count - count; line < world->line_count; line++)
		fprintf(stderr, "  %s\n", world->lines[line % HISTORY_LINES]);
	if (world->steps_asked == SIM_STEPS) {
		fprintf(stderr, "again: make replay SEED=0x%" PRIx64 "\n", world->seed);
	} else {
		fprintf(stderr,
			"again: build/tests/sim/sim --seed 0x%" PRIx64 " --steps %" PRIu64 "\n",
			world->seed, world->steps_asked);
	}
	fflush(NULL);
}

/* A room's own assertion: as good as a check of ours. */
static void on_panic(const char *message)
{
	if (!watched)
		return;
	report(watched, watched->invariant, message);
	_exit(1);
}

static void on_sanitizer(void)
{
	if (watched)
		report(watched, watched->invariant, "a sanitizer's report, above");
}

void world_open(struct world *world, uint64_t seed, void *context)
{
	*world = (struct world){ .seed = seed, .context = context, .invariant = "assertion" };
	prng_seed(&world->prng, seed);
	watched = world;
	panic_hook_set(on_panic);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(on_sanitizer);
}

void world_close(struct world *world)
{
	KVS_ASSERT(watched == world);
	watched = NULL;
}

static bool before(const struct event *a, const struct event *b)
{
	if (a->tick != b->tick)
		return a->tick < b->tick;
	return a->tie != b->tie ? a->tie < b->tie : a->sequence < b->sequence;
}

void world_after(struct world *world, uint64_t delay, world_act *act, uint64_t argument)
{
	const struct event event = { .tick = world->now + delay,
				     .tie = prng_u64(&world->prng),
				     .sequence = world->sequence++,
				     .act = act,
				     .argument = argument };
	uint32_t           at = world->event_count++;

	KVS_ASSERT_CMP(world->event_count, <=, EVENT_MAX);
	for (; at > 0 && before(&event, &world->heap[(at - 1) / 2]); at = (at - 1) / 2)
		world->heap[at] = world->heap[(at - 1) / 2];
	world->heap[at] = event;
}

static struct event pop(struct world *world)
{
	const struct event top = world->heap[0];
	const struct event last = world->heap[--world->event_count];
	uint32_t           at = 0, child;

	for (; (child = 2 * at + 1) < world->event_count; at = child) {
		if (child + 1 < world->event_count &&
		    before(&world->heap[child + 1], &world->heap[child]))
			child++;
		if (!before(&world->heap[child], &last))
			break;
		world->heap[at] = world->heap[child];
	}
	world->heap[at] = last;
	return top;
}

bool world_step(struct world *world)
{
	struct event event;

	if (world->event_count == 0)
		return false;
	event = pop(world);
	KVS_ASSERT_CMP(event.tick, >=, world->now);
	world->now = event.tick;
	world->step++;
	event.act(world->context, event.argument);
	return true;
}

uint64_t world_draw(struct world *world, uint64_t most)
{
	return 1 + prng_below(&world->prng, most);
}

void world_note(struct world *world, const char *format, ...)
{
	char *const line = world->lines[world->line_count++ % HISTORY_LINES];
	const int   stamp = snprintf(line, HISTORY_COLUMNS, "%6" PRIu64 "  ", world->now);
	va_list     args;

	va_start(args, format);
	vsnprintf(line + stamp, HISTORY_COLUMNS - (size_t)stamp, format, args);
	va_end(args);
	world->hash = xxh3_64_seeded(line, strlen(line), world->hash);
	if (world->loud)
		puts(line);
}

void world_fail(struct world *world, const char *invariant, const char *format, ...)
{
	char    sentence[320];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	report(world, invariant, sentence);
	_exit(1);
}
