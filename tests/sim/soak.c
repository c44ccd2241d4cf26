/* SPDX-License-Identifier: Apache-2.0 */
/* See soak.h. */
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"

#define HEAD "kvstrata soak 1"

/* Names and places of all that is kept. */
struct field {
	const char *name;
	uint64_t   *value;
};

#define FIELDS_MAX 96u

static uint32_t list_fields(struct soak *soak, struct field *fields)
{
	uint32_t count = 0;

	fields[count++] = (struct field){ "first", &soak->first };
	fields[count++] = (struct field){ "steps", &soak->steps };
	fields[count++] = (struct field){ "program", &soak->program };
	fields[count++] = (struct field){ "done", &soak->done };
	fields[count++] = (struct field){ "hash", &soak->hash };
	fields[count++] = (struct field){ "started", &soak->started };
	fields[count++] = (struct field){ "seconds", &soak->seconds };
#define COVER(name) fields[count++] = (struct field){ "covered." #name, &soak->covers.name };
	COVERS(COVER)
#undef COVER
	KVS_ASSERT_CMP(count, <=, FIELDS_MAX);
	return count;
}

/* --- the file --------------------------------------------------------------------------------- */

_Noreturn static void fail(const char *path)
{
	perror(path);
	exit(2);
}

static void save(struct soak *soak)
{
	struct field fields[FIELDS_MAX];
	const uint32_t count = list_fields(soak, fields);
	char         temporary[512];
	FILE        *file;
	uint32_t     i;

	snprintf(temporary, sizeof(temporary), "%s.new", soak->path);
	file = fopen(temporary, "w");
	if (!file)
		fail(temporary);
	fprintf(file, HEAD "\n");
	for (i = 0; i < count; i++)
		fprintf(file, "%s %" PRIu64 "\n", fields[i].name, *fields[i].value);
	if (fclose(file) != 0 || rename(temporary, soak->path) != 0)
		fail(soak->path);
}

/* False: there is none, or not one of this program. */
static bool load(struct soak *soak)
{
	struct field   fields[FIELDS_MAX];
	const uint32_t count = list_fields(soak, fields);
	FILE *const    file = fopen(soak->path, "r");
	char           line[128], name[64];
	uint32_t       i;
	bool           good;

	if (!file)
		return false;
	good = fgets(line, sizeof(line), file) && strcmp(line, HEAD "\n") == 0;
	for (i = 0; good && i < count; i++) {
		good = fgets(line, sizeof(line), file) &&
		       sscanf(line, "%63s %" SCNu64, name, fields[i].value) == 2 &&
		       strcmp(name, fields[i].name) == 0;
	}
	fclose(file);
	return good;
}

static uint64_t hash_program(void)
{
	FILE *const    file = fopen("/proc/self/exe", "r");
	static uint8_t piece[1 << 16];
	uint64_t       hash = 0;
	size_t         bytes;

	if (!file)
		fail("/proc/self/exe");
	while ((bytes = fread(piece, 1, sizeof(piece), file)) > 0)
		hash = xxh3_64_seeded(piece, bytes, hash);
	fclose(file);
	return hash;
}

void soak_open(struct soak *soak, bool fresh)
{
	struct soak known = { .path = soak->path };

	if (!soak->path)
		return;
	soak->program = hash_program();
	soak->started = (uint64_t)time(NULL);
	if (fresh || !load(&known)) {
		printf("soak: from the beginning\n");
	} else if (known.first != soak->first || known.steps != soak->steps ||
		   known.program != soak->program) {
		printf("soak: from the beginning; %s is of another program or of other seeds\n",
		       soak->path);
	} else {
		*soak = known;
		printf("soak: goes on behind %" PRIu64 " seeds\n", soak->done);
	}
	fflush(stdout);
	/* What an earlier run has done is not this one's. */
	if (soak->done == 0)
		save(soak);
}

/* --- progress --------------------------------------------------------------------------------- */

#define KEEP_EVERY 10u

static void tell(const struct soak *soak, uint64_t count, bool last)
{
	const bool     terminal = isatty(STDERR_FILENO);
	const uint64_t rate = soak->seconds > 0 ? soak->done / soak->seconds : 0;

	if (!terminal && soak->done % 1000 != 0 && !last)
		return;
	fprintf(stderr, "%ssoak: %" PRIu64 " of %" PRIu64 " seeds, %" PRIu64 " s, %" PRIu64 " a second%s",
		terminal ? "\r" : "", soak->done, count, soak->seconds, rate,
		terminal && !last ? "   " : "\n");
}

/* Whole seconds, of this run and those before. */
static void pass_time(struct soak *soak)
{
	static uint64_t last;
	const uint64_t  now = (uint64_t)time(NULL);

	soak->seconds += last > 0 && now > last ? now - last : 0;
	last = now;
}

void soak_note(struct soak *soak, uint64_t count)
{
	if (!soak->path || soak->done % KEEP_EVERY != 0)
		return;
	pass_time(soak);
	save(soak);
	tell(soak, count, false);
}

void soak_close(struct soak *soak, uint64_t count)
{
	if (!soak->path)
		return;
	pass_time(soak);
	save(soak);
	tell(soak, count, true);
}
