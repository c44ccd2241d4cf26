/* SPDX-License-Identifier: Apache-2.0 */
/* See explain.h. */
#include "sched/explain.h"

#include <stdio.h>

#include "base/err.h"
#include "base/units.h"

static const char *const words[] = {
#define WORD(name, text) [name] = text,
	MISS_REASONS(WORD)
#undef WORD
};

static const char *const read_words[] = {
#define WORD(name, text) [name] = text,
	READ_OUTCOMES(WORD)
#undef WORD
};

/* What ended a hit: as said of a block where one is known, and without. */
struct saying {
	const char *of_block;
	const char *plain;
};

static const struct saying reason_sayings[MISS_REASON_COUNT] = {
	[MISS_NO_STORE] = { "is neither on Device nor on Host, and there is no store",
			    "neither Device nor Host holds more, and there is no store" },
	[MISS_NO_CACHE] = { NULL, "the prefix cache is switched off" },
	[MISS_ROLE] = { "is not on Device, and a decode rank asks no store",
			"Device holds no more, and a decode rank asks no store" },
	[MISS_HOLD_EXPIRED] = { NULL, "what was read was held no longer when it was admitted" },
	[MISS_DISPLACED] = { "was evicted before it was admitted",
			"what was there was evicted before it was admitted" },
};

static const struct saying read_sayings[READ_OUTCOME_COUNT] = {
	[READ_ASKED] = { NULL, "storage has not answered" },
	[READ_READY] = { NULL, "the read was of no more" },
	[READ_LOCAL] = { NULL, "what others published meanwhile is no more" },
	[READ_COVERED] = { NULL, "there was no more to ask for" },
	[READ_SHORT] = { NULL, "an extension would have been below the minimum" },
	[READ_LOOKAHEAD] = { NULL, "no boundary lies within the lookahead" },
	[READ_KEYS] = { NULL, "no boundary fits into the keys of one query" },
	[READ_CREDITS] = { NULL, "no boundary fits into the credits, or none is left" },
	[READ_NEGATIVE] = { "is known to be missing or invalid in the store",
			    "an object is known to be missing or invalid in the store" },
	[READ_NEVER_STORED] = { "was never put into the store from here",
				"an object was never put into the store from here" },
	[READ_EVICTED] = { "is no longer in the store", "an object is no longer in the store" },
	[READ_LOST] = { "was evicted while the store was asked",
			"what it builds on was evicted while the store was asked" },
	[READ_CORRUPT] = { "was not what had been kept", "an object was not what had been kept" },
	[READ_HOST_ROOM] = { NULL, "Host had no room" },
	[READ_DEADLINE] = { NULL, "storage had not answered in time" },
	[READ_PRESSURE] = { NULL, "the gate was closed" },
	[READ_FROZEN] = { NULL, "storage was not permitted" },
	[READ_MAINTENANCE] = { NULL, "a clear or a change of weights was wanted" },
	[READ_COOLDOWN] = { NULL, "the executor waited out an outage of the store" },
	[READ_REFUSED] = { NULL, "the executor took no more" },
	[READ_BACKEND] = { NULL, "the store failed" },
	[READ_QUARANTINE] = { NULL, "bytes were in doubt, and no new storage work began" },
};

const char *miss_reason_name(enum miss_reason reason)
{
	return words[reason];
}

static bool is_of_storage(const struct explanation *explanation)
{
	return explanation->reason == MISS_STORAGE;
}

/* A read that brought something ends where its shortfall says; any other where it ended itself. */
enum read_outcome explanation_read(const struct explanation *explanation)
{
	if (explanation->read == READ_READY || explanation->read == READ_LOCAL)
		return explanation->shortfall.cause;
	return explanation->read;
}

const char *explanation_word(const struct explanation *explanation)
{
	return is_of_storage(explanation) ? read_words[explanation_read(explanation)]
					  : words[explanation->reason];
}

void explain_count(struct explain_counts *counts, const struct explanation *explanation)
{
	counts->admitted++;
	if (explanation->reason == MISS_NONE) {
		counts->full++;
		return;
	}
	counts->reasons[explanation->reason]++;
	if (is_of_storage(explanation))
		counts->reads[explanation_read(explanation)]++;
}

static const struct saying *saying_of(const struct explanation *explanation)
{
	return is_of_storage(explanation) ? &read_sayings[explanation_read(explanation)] :
					    &reason_sayings[explanation->reason];
}

static void print_ended(const struct explanation *explanation, const struct groups *groups,
			const char *hit, const char *bound, char *buffer, size_t buffer_bytes)
{
	const struct saying *const    saying = saying_of(explanation);
	const struct shortfall *const end = &explanation->shortfall;
	const char *const             word = explanation_word(explanation);

	if (end->group == SHORTFALL_NONE || !saying->of_block) {
		(void)snprintf(buffer, buffer_bytes, "hit %s of %s tokens, ended by %s: %s", hit,
			       bound, word, saying->plain);
		return;
	}
	KVS_ASSERT_CMP(end->group, <, groups->count);
	(void)snprintf(buffer, buffer_bytes,
		       "hit %s of %s tokens, ended by %s: block %u of group %u \"%.64s\" %s", hit, bound,
		       word, end->position, end->group, groups->group[end->group].spec.name,
		       saying->of_block);
}

char *explanation_print(const struct explanation *explanation, const struct groups *groups,
			char *buffer, size_t buffer_bytes)
{
	char hit[UNITS_TEXT_BYTES];
	char bound[UNITS_TEXT_BYTES];

	units_format_count((uint64_t)explanation->tokens[STRATUM_DEVICE] +
				   explanation->tokens[STRATUM_HOST],
			   hit);
	units_format_count(explanation->bound_tokens, bound);
	if (explanation->reason != MISS_NONE) {
		print_ended(explanation, groups, hit, bound, buffer, buffer_bytes);
		return buffer;
	}
	(void)snprintf(buffer, buffer_bytes, "hit %s of %s tokens, all that may be restored", hit,
		       bound);
	return buffer;
}
