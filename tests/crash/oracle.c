/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold: see world.h and docs/design/strata-format.md, "What survives". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "world.h"

static const struct world *watched;

/* --- telling ---------------------------------------------------------------------------------- */

static void tell_again(void)
{
	fprintf(stderr, "again: --durability %s --seed 0x%" PRIx64 "\n", watched->durability,
		watched->seed);
}

void violate(const char *invariant, const char *format, ...)
{
	va_list args;

	os_io_hook_set(NULL, NULL);
	fprintf(stderr, "invariant %s: ", invariant);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "; cycle %" PRIu32 "\n", watched->cycle);
	tell_again();
	exit(1);
}

static void end_in_panic(const char *message)
{
	os_io_hook_set(NULL, NULL);
	fprintf(stderr, "invariant no-panic: %s; cycle %" PRIu32 "\n", message, watched->cycle);
	tell_again();
	_exit(1);
}

void oracle_watch(const struct world *world)
{
	watched = world;
	panic_hook_set(end_in_panic);
}

static const char *const result_names[] = { "unknown", "done", "exists", "missing",
					    "corrupt", "no space", "failed" };

static void note(struct world *world, const char *what, uint32_t number, enum kvs_result result)
{
	const struct object *const object = &world->objects[number];

	world->history = mix64(world->history ^ mix64((uint64_t)(uint8_t)*what << 48 ^
						      (uint64_t)number << 32 ^ result));
	if (world->trace) {
		printf("%" PRIu32 "%s %s %" PRIu32 ": %s; had %" PRIu32 " of %" PRIu32 " to %" PRIu32
		       "%s\n", world->cycle, world->inside ? " between:" : "", what, number,
		       result_names[result], object->now, object->low, object->high,
		       object->must ? ", durable" : "");
	}
}

/* --- objects ---------------------------------------------------------------------------------- */

struct kvs_key object_key(uint32_t number)
{
	struct kvs_key key = { .offset = number, .group = (uint16_t)(number % 3) };

	key.space.byte[0] = (uint8_t)(number % SPACES);
	memset(key.hash, (int)number, sizeof(key.hash));
	return key;
}

uint64_t object_bytes(const struct world *world, uint32_t number)
{
	const uint64_t pages = world->set.block_bytes / STRATA_PAGE;

	return (1 + mix64(world->seed ^ number) % pages) * STRATA_PAGE;
}

struct kvs_span object_span(const struct world *world, uint32_t number, uint32_t place)
{
	const uint64_t bytes = object_bytes(world, number);

	/* Every other object comes without room for a header behind it. */
	return (struct kvs_span){ world->memory[place], bytes,
				  bytes + (number / SPACES % 2 ? STRATA_PAGE : 0) };
}

static uint64_t word_of(uint32_t number, uint32_t generation, uint64_t i)
{
	return mix64((uint64_t)number << 48 ^ (uint64_t)generation << 20 ^ i);
}

void object_fill(const struct kvs_span *span, uint32_t number, uint32_t generation)
{
	uint64_t *const words = span->ptr;
	uint64_t        i;

	words[0] = number;
	words[1] = generation;
	for (i = 2; i < span->bytes / 8; i++)
		words[i] = word_of(number, generation, i);
}

uint32_t object_read(const struct kvs_span *span, uint32_t number)
{
	const uint64_t *const words = span->ptr;
	const uint32_t        generation = (uint32_t)words[1];
	uint64_t              i;

	if (words[0] != number || words[1] >> 32 != 0) {
		violate("right-bytes", "key %" PRIu32 " has the bytes of key %" PRIu64, number,
			words[0]);
	}
	for (i = 2; i < span->bytes / 8; i++) {
		if (words[i] != word_of(number, generation, i)) {
			violate("right-bytes", "key %" PRIu32 " generation %" PRIu32
				" is wrong from byte %" PRIu64, number, generation, i * 8);
		}
	}
	return generation;
}

/* --- results ---------------------------------------------------------------------------------- */

static bool is_durability(const struct world *world, enum strata_durability durability)
{
	return world->set.durability == durability;
}

/* Its claim on the device ends; it may still come back from there, unless it was removed. */
static void forget(struct object *object)
{
	object->now = 0;
	object->must = false;
}

/* With durability none it survives until it is removed or evicted, and then older ones may come back. */
static void set_durable(const struct world *world, struct object *object)
{
	object->must = true;
	if (!is_durability(world, STRATA_NONE))
		object->low = object->now;
}

void oracle_missing(struct world *world, uint32_t number)
{
	struct object *const object = &world->objects[number];

	if (object->now == 0 || world->device.crashed || object->touched)
		return;
	if (object->locks > 0 && !world->device.failed)
		violate("locked-stays", "key %" PRIu32 " is gone", number);
	world->noticed++;
	forget(object);
	object->locks = 0;
}

void oracle_put(struct world *world, uint32_t number, uint32_t generation, enum kvs_result result)
{
	struct object *const object = &world->objects[number];

	note(world, "put", number, result);
	switch (result) {
	case KVS_RESULT_DONE:
		world->covers->puts++;
		if (!world->device.crashed)
			oracle_missing(world, number);
		object->high = generation;
		object->now = generation;
		object->must = false;
		object->locks = 0;
		if (is_durability(world, STRATA_PUT) && !object->gone_at_crash)
			set_durable(world, object);
		break;
	case KVS_RESULT_EXISTS:
		world->covers->exists++;
		if (object->now == 0)
			violate("no-ghosts", "key %" PRIu32 " exists for a put", number);
		break;
	case KVS_RESULT_FAILED:
	case KVS_RESULT_UNKNOWN:
		if (!world->device.crashed && !world->device.failed)
			violate("no-failures", "put of key %" PRIu32 " failed", number);
		if (!world->device.crashed)
			oracle_missing(world, number);
		/* It may have reached the device all the same. */
		object->high = generation;
		break;
	case KVS_RESULT_NO_SPACE:
		world->covers->full++;
		oracle_missing(world, number);
		break;
	case KVS_RESULT_MISSING:
	case KVS_RESULT_CORRUPT:
		violate("results", "put of key %" PRIu32 " gave %d", number, result);
	}
}

void oracle_get(struct world *world, uint32_t number, uint32_t place, enum kvs_result result)
{
	struct object *const  object = &world->objects[number];
	const struct kvs_span span = object_span(world, number, place);
	uint32_t              generation;

	note(world, "get", number, result);
	world->covers->gets++;
	switch (result) {
	case KVS_RESULT_DONE:
		generation = object_read(&span, number);
		if (generation != object->now && !object->touched) {
			violate("newest", "key %" PRIu32 " has generation %" PRIu32 " and not %" PRIu32,
				number, generation, object->now);
		}
		break;
	case KVS_RESULT_MISSING:
		world->covers->misses++;
		oracle_missing(world, number);
		break;
	case KVS_RESULT_CORRUPT:
		if (!is_durability(world, STRATA_NONE) && !world->device.failed)
			violate("whole", "key %" PRIu32 " is corrupt", number);
		forget(object);
		break;
	case KVS_RESULT_FAILED:
		if (!world->device.crashed && !world->device.failed)
			violate("no-failures", "get of key %" PRIu32 " failed", number);
		break;
	case KVS_RESULT_UNKNOWN:
	case KVS_RESULT_EXISTS:
	case KVS_RESULT_NO_SPACE:
		violate("results", "get of key %" PRIu32 " gave %d", number, result);
	}
}

void oracle_exists(struct world *world, uint32_t number, enum kvs_result result)
{
	note(world, "exists", number, result);
	if (result == KVS_RESULT_MISSING)
		oracle_missing(world, number);
	else if (world->objects[number].now == 0 && !world->objects[number].touched)
		violate("no-ghosts", "key %" PRIu32 " exists", number);
}

static void removed(struct world *world, struct object *object)
{
	forget(object);
	object->locks = 0;
	if (!is_durability(world, STRATA_NONE))
		object->low = object->high + 1;
}

void oracle_remove(struct world *world, uint32_t number, enum kvs_result result)
{
	struct object *const object = &world->objects[number];

	note(world, "remove", number, result);
	if (result == KVS_RESULT_DONE) {
		world->covers->removes++;
		if (object->now == 0)
			violate("no-ghosts", "key %" PRIu32 " was there to remove", number);
		removed(world, object);
	} else if (result == KVS_RESULT_MISSING) {
		oracle_missing(world, number);
	} else {
		if (!world->device.crashed && !world->device.failed)
			violate("no-failures", "remove of key %" PRIu32 " failed", number);
		forget(object);
		object->locks = 0;
	}
}

void oracle_purged(struct world *world, uint32_t number, int rc)
{
	struct object *const  object = &world->objects[number];
	const struct kvs_key  key = object_key(number);
	enum kvs_result       result;

	note(world, "purge", number, rc == 0 ? KVS_RESULT_DONE : KVS_RESULT_FAILED);
	if (object->now == 0)
		return;
	if (rc == 0) {
		world->covers->purges++;
		removed(world, object);
		return;
	}
	if (!world->device.crashed && !world->device.failed && !is_durability(world, STRATA_NONE))
		violate("no-failures", "a purge failed with %d", rc);
	KVS_ASSERT(strata_exists(world->store, &key, 1, &result) == 0);
	object->must = false;
	if (result == KVS_RESULT_MISSING)
		forget(object);
}

/* --- crash and close -------------------------------------------------------------------------- */

static const struct entry *entry_of(const struct world *world, uint32_t number)
{
	const struct strata *const s = strata_of(world->store);
	const struct kvs_key       key = object_key(number);
	const uint32_t             entry = catalog_find(&s->catalog, key_print(s->hash, &key));

	if (entry == SLOT_NONE || s->catalog.entries[entry].state != ENTRY_PRESENT)
		return NULL;
	return &s->catalog.entries[entry];
}

static bool is_sealed(const struct world *world, const struct entry *entry)
{
	const struct space *const space = &strata_of(world->store)->space;
	const uint8_t state = space->segments[space_segment_of(space, entry->page)].state;

	return state == SEGMENT_SEALED || state == SEGMENT_CLEANING || state == SEGMENT_DRAINING;
}

void oracle_at_crash(struct world *world)
{
	uint32_t i;

	for (i = 0; i < world->key_count && world->store; i++) {
		struct object *const      object = &world->objects[i];
		const struct entry *const entry = entry_of(world, i);

		object->gone_at_crash = !entry;
		if (!entry) {
			object->must = false;
			continue;
		}
		world->covers->sealed += is_sealed(world, entry);
		world->covers->unsealed += !is_sealed(world, entry);
		if (is_durability(world, STRATA_SEGMENT) && object->now > 0 && !world->device.failed &&
		    is_sealed(world, entry))
			set_durable(world, object);
	}
}

/* Whoever closes has synced everything. */
void oracle_at_close(struct world *world)
{
	uint32_t i;

	for (i = 0; i < world->key_count; i++) {
		struct object *const object = &world->objects[i];

		if (!entry_of(world, i)) {
			oracle_missing(world, i);
			object->must = false;
		} else if (object->now > 0 && !world->device.failed) {
			set_durable(world, object);
		}
	}
}

static void find(struct world *world, uint32_t number, uint64_t *lost)
{
	struct object *const  object = &world->objects[number];
	const struct kvs_key  key = object_key(number);
	const struct kvs_span span = object_span(world, number, 0);
	const uint32_t        wanted = object->must ? object->now : 0;
	enum kvs_result       result;
	bool                  retired = false;

	KVS_ASSERT(strata_get(world->store, &key, &span, 1, &result, &retired) == 0 && retired);
	note(world, "find", number, result);
	*object = (struct object){ .low = object->low, .high = object->high };
	if (result == KVS_RESULT_DONE) {
		object->now = object_read(&span, number);
		world->covers->older += object->now < object->high;
		if (object->now < object->low || object->now < wanted ||
		    object->now > object->high) {
			violate(object->now < wanted ? "newest" : "removed-stays-removed",
				"key %" PRIu32 " has generation %" PRIu32 ", of %" PRIu32 " to %" PRIu32
				" that may be there", number, object->now, object->low, object->high);
		}
		/* It was read from what the disk keeps. */
		if (!is_durability(world, STRATA_NONE))
			set_durable(world, object);
		return;
	}
	if (result != KVS_RESULT_MISSING &&
	    (result != KVS_RESULT_CORRUPT || !is_durability(world, STRATA_NONE)))
		violate("whole", "key %" PRIu32 " gave %d after a crash", number, result);
	if (wanted > 0 && (*lost)-- == 0) {
		violate("acknowledged-survives", "key %" PRIu32 " generation %" PRIu32 " is gone",
			number, wanted);
	}
}

void oracle_at_open(struct world *world)
{
	struct kvs_store_info info;
	struct strata_report  report;
	uint64_t              may_lose;
	uint32_t              i;

	strata_describe(world->store, &info);
	strata_inspect(world->store, &report);
	world->covers->torn += report.torn_records;
	world->covers->stale += report.stale_records;
	world->noticed = 0;
	/* A catalog that is too small for all that is found gives up the oldest. */
	may_lose = info.evicted_objects;
	for (i = 0; i < world->key_count; i++)
		find(world, i, &may_lose);
	world->noticed = info.evicted_objects;
}

void oracle_audit(struct world *world)
{
	struct kvs_store_info info;
	struct stat           found;
	uint64_t              present = 0;
	uint32_t              i;

	strata_audit(world->store);
	strata_describe(world->store, &info);
	for (i = 0; i < world->key_count; i++)
		present += world->objects[i].now > 0;
	if (!world->device.crashed && !world->device.failed &&
	    present > info.object_count + (info.evicted_objects - world->noticed)) {
		violate("evictions-told", "%" PRIu64 " objects are there of %" PRIu64
			", but %" PRIu64 " evictions were told", info.object_count, present,
			info.evicted_objects - world->noticed);
	}
	KVS_ASSERT(fstat(world->device.fd, &found) == 0);
	if ((uint64_t)found.st_size > world->set.capacity_bytes ||
	    (uint64_t)found.st_blocks * 512 > world->set.capacity_bytes) {
		violate("capacity", "a file of %" PRIu64 " bytes", (uint64_t)found.st_size);
	}
}
