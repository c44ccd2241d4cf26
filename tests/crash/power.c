/* SPDX-License-Identifier: Apache-2.0 */
/* Power failures, one seed or many: load, crash, open, check, and again. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/kind.h"
#include "world.h"

#define CYCLES 6u
#define STEPS_MAX 150u

static const char help[] =
	"power: crash a strata file and see what is left of it\n"
	"\n"
	"  --durability D  none, segment, put\n"
	"  --seed N        one history; decimal or 0x hexadecimal\n"
	"  --seeds COUNT   that many, from --first on\n"
	"  --first N       the first seed of many (1)\n"
	"  --trace         print the history\n"
	"  --twice         run each seed twice; both histories must be equal\n"
	"\n"
	"Ends with 0, with 1 where an invariant broke, with 2 for bad arguments.\n";

static const char *const durabilities[] = { "none", "segment", "put" };

struct arguments {
	uint64_t               first;
	uint64_t               count;
	enum strata_durability durability;
	bool                   twice;
	bool                   trace;
};

/* --- a world ---------------------------------------------------------------------------------- */

/* Whoever writes a tally or a superblock holds a lock that a removal needs. */
static bool may_interrupt(struct world *world)
{
	struct strata *const s = strata_of(world->store);

	if (!world->store || world->inside || !prng_chance(&world->prng, 1, 12) ||
	    pthread_mutex_trylock(&s->tallies.mutex) != 0)
		return false;
	pthread_mutex_unlock(&s->tallies.mutex);
	return true;
}

static void sees(void *ctx, const struct os_io *io)
{
	struct world *const world = ctx;

	(void)io;
	if (may_interrupt(world))
		load_between(world);
}

static void falls(void *ctx)
{
	oracle_at_crash(ctx);
}

static void choose_shape(struct world *world, enum strata_durability durability)
{
	static const char *const policies[] = { "lru", "fifo", "s3fifo" };
	struct prng *const       prng = &world->prng;
	const uint64_t           block_pages = 1 + prng_below(prng, BLOCK_PAGES_MAX);
	/* The least holds one record of a whole block. */
	const uint64_t segment_pages = block_pages + STRATA_RECORD_PAGE + 2 +
				       (prng_chance(prng, 1, 3) ? 0 : prng_below(prng, 24));
	const uint64_t segments = STRATA_SEGMENTS_MIN + prng_below(prng, 20);

	world->key_count = 8 + (uint32_t)prng_below(prng, KEYS_MAX - 8 + 1);
	world->lock_share = (uint32_t)prng_below(prng, 3) * 30;
	world->remove_share = 80 + (uint32_t)prng_below(prng, 3) * 80;
	world->set = (struct strata_settings){
		.path = world->device.path,
		.segment_bytes = segment_pages * STRATA_PAGE,
		.block_bytes = block_pages * STRATA_PAGE,
		.objects_max = prng_chance(prng, 1, 6) ? 6 : 0,
		.evict_policy = policies[prng_below(prng, ARRAY_COUNT(policies))],
		.durability = durability,
		.verify = true,
		.plain_io = true,
	};
	world->set.capacity_bytes = STRATA_SUPERBLOCKS * STRATA_PAGE +
				    segments * world->set.segment_bytes + prng_below(prng, 3) * 4096;
}

static void world_open(struct world *world, uint64_t seed, enum strata_durability durability,
		       struct covers *covers)
{
	uint32_t i;

	*world = (struct world){ .seed = seed, .durability = durabilities[durability],
				 .covers = covers };
	prng_seed(&world->prng, seed);
	choose_shape(world, durability);
	for (i = 0; i <= BATCH_MAX; i++) {
		world->memory[i] =
			aligned_alloc(STRATA_PAGE, (BLOCK_PAGES_MAX + 1) * STRATA_PAGE);
		KVS_ASSERT(world->memory[i] != NULL);
		memset(world->memory[i], 0, (BLOCK_PAGES_MAX + 1) * STRATA_PAGE);
	}
	oracle_watch(world);
	device_open(&world->device, world->set.capacity_bytes, seed, sees, falls, world);
	world->set.path = world->device.path;
}

static void world_close(struct world *world)
{
	uint32_t i;

	device_close(&world->device);
	for (i = 0; i <= BATCH_MAX; i++)
		free(world->memory[i]);
}

/* --- cycles ----------------------------------------------------------------------------------- */

/* False: the power failed. */
static bool open_store(struct world *world)
{
	struct kvs_error  err = { 0 };
	struct kvs_store *store = NULL;
	const int         rc = strata_open(&world->set, &store_strata_ops, &store, &err);

	if (rc == 0) {
		world->opened = true;
		world->store = store;
		return true;
	}
	if (err.message[0] == '\0')
		violate("refusals-speak", "an open failed with %d and no sentence", rc);
	if (world->device.crashed) {
		world->covers->crashes_in_open++;
		return false;
	}
	/* A file whose first open was cut short may be none yet. */
	if (world->opened)
		violate("opens", "%d, %s", rc, err.message);
	device_clear(&world->device);
	return open_store(world);
}

static void close_store(struct world *world)
{
	struct kvs_store *const store = world->store;
	struct kvs_store_info   info;
	bool                    was_crashed;

	strata_describe(store, &info);
	world->covers->moved += info.moved_objects;
	world->covers->evicted += info.evicted_objects;
	world->covers->failures += world->device.failed;
	if (!world->device.crashed && prng_chance(&world->prng, 1, 2)) {
		/* Nobody hears of what fails in a close: only one in peace leaves everything. */
		world->device.writes_left = 0;
		world->device.calls_left = 0;
		oracle_at_close(world);
		world->covers->closes++;
	} else if (!world->device.crashed) {
		oracle_at_crash(world);
		world->device.writes_left = 1 + prng_below(&world->prng, 6);
	}
	was_crashed = world->device.crashed;
	world->inside = true;
	if (strata_close(store) != 0)
		violate("closes", "the store does not close");
	world->inside = false;
	world->store = NULL;
	world->covers->crashes_in_close += world->device.crashed && !was_crashed;
}

/* Most crashes come soon after the open, and some in it. */
static uint64_t choose_crash(struct world *world)
{
	static const uint16_t within[] = { 8, 30, 100, 300 };

	return 1 + prng_below(&world->prng,
			      within[prng_below(&world->prng, ARRAY_COUNT(within))]);
}

/* In peace: nothing else happens meanwhile. */
static void look_at_all(struct world *world)
{
	world->device.writes_left = 0;
	world->inside = true;
	oracle_at_open(world);
	oracle_audit(world);
	world->inside = false;
}

static void run_cycle(struct world *world)
{
	uint32_t step;

	if (prng_chance(&world->prng, 1, 2))
		world->device.writes_left = choose_crash(world);
	if (!open_store(world)) {
		device_restart(&world->device);
		return;
	}
	if (world->device.crashed) {
		/* While it sealed what it had recovered, which may fail. */
		world->covers->crashes_in_open++;
		close_store(world);
		device_restart(&world->device);
		return;
	}
	look_at_all(world);
	world->device.writes_left = prng_chance(&world->prng, 1, 6) ? 0 : choose_crash(world);
	if (prng_chance(&world->prng, 1, 8))
		world->device.calls_left = 1 + prng_below(&world->prng, 200);
	for (step = 0; step < STEPS_MAX && !world->device.crashed; step++) {
		oracle_audit(world);
		load_step(world);
	}
	world->covers->crashes += world->device.crashed;
	close_store(world);
	device_restart(&world->device);
}

static void check_the_end(struct world *world)
{
	if (!open_store(world))
		violate("opens", "it does not, and the power is there");
	look_at_all(world);
	load_must_work(world);
	close_store(world);
}

static uint64_t run_once(uint64_t seed, const struct arguments *arguments, bool trace,
			 struct covers *covers)
{
	struct world world;

	world_open(&world, seed, arguments->durability, covers);
	world.trace = trace;
	for (world.cycle = 0; world.cycle < CYCLES; world.cycle++)
		run_cycle(&world);
	check_the_end(&world);
	world_close(&world);
	return world.history;
}

static uint64_t run(uint64_t seed, const struct arguments *arguments, struct covers *covers)
{
	const uint64_t history = run_once(seed, arguments, arguments->trace, covers);

	if (arguments->twice && run_once(seed, arguments, false, covers) != history) {
		fprintf(stderr, "invariant determinism: seed 0x%" PRIx64 " had two histories\n",
			seed);
		exit(1);
	}
	return history;
}

/* --- the command ------------------------------------------------------------------------------ */

_Noreturn static void refuse(const char *option, const char *rule)
{
	fprintf(stderr, "%s: %s; see --help\n", option, rule);
	exit(2);
}

static uint64_t number(const char *option, const char *text)
{
	char    *end;
	uint64_t value;

	if (!text)
		refuse(option, "needs a number");
	errno = 0;
	value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno)
		refuse(option, "is not a number");
	return value;
}

static enum strata_durability durability(const char *text)
{
	uint32_t i;

	for (i = 0; text && i < ARRAY_COUNT(durabilities); i++) {
		if (strcmp(text, durabilities[i]) == 0)
			return (enum strata_durability)i;
	}
	refuse("--durability", "is one of none, segment, put");
}

static struct arguments parse(char **argv)
{
	struct arguments arguments = { .first = 1, .count = 1, .durability = STRATA_PUT };

	for (argv++; *argv; argv++) {
		const char *const option = *argv;

		if (strcmp(option, "--help") == 0) {
			fputs(help, stdout);
			exit(0);
		} else if (strcmp(option, "--twice") == 0) {
			arguments.twice = true;
		} else if (strcmp(option, "--trace") == 0) {
			arguments.trace = true;
		} else if (strcmp(option, "--durability") == 0) {
			arguments.durability = durability(*++argv);
		} else if (strcmp(option, "--seed") == 0 || strcmp(option, "--first") == 0) {
			arguments.first = number(option, *++argv);
		} else if (strcmp(option, "--seeds") == 0) {
			arguments.count = number(option, *++argv);
		} else {
			refuse(option, "is not an option");
		}
	}
	if (arguments.count == 0)
		refuse("--seeds", "0 runs nothing");
	return arguments;
}

static void print_covers(const struct covers *covers)
{
	fputs("covered:", stdout);
#define COVER(name) printf(" " #name "=%" PRIu64, covers->name);
	COVERS(COVER)
#undef COVER
	puts("");
}

int main(int argc, char **argv)
{
	const struct arguments arguments = parse(argv);
	struct covers          covers = { 0 };
	uint64_t               history = 0, i;

	(void)argc;
	printf("seed 0x%" PRIx64 " and %" PRIu64 " more\n", arguments.first, arguments.count - 1);
	fflush(stdout);
	for (i = 0; i < arguments.count; i++)
		history = mix64(history ^ run(arguments.first + i, &arguments, &covers));
	print_covers(&covers);
	printf("seed 0x%" PRIx64 ": history %016" PRIx64 "\n",
	       arguments.first + arguments.count - 1, history);
	return 0;
}
