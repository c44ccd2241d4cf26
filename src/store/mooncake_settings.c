/* SPDX-License-Identifier: Apache-2.0 */
/* One function a group of fields; each sentence names the field, its value and the rule. */
#include "store/mooncake_settings.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "store/mooncake_address.h"
#include "store/mooncake_source.h"
#include "store/spec.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)

const char *const mooncake_options[] = {
	"config", "way", "library", "python", "agent", "log",
	"master_server_address", "master_server_addr", "metadata_server", "local_hostname",
	"protocol", "device_name", "rdma_devices", "tenant_id",
	"global_segment_size", "ranks", "local_buffer_size", "replica_num",
	"lanes", "timeout", "connect_timeout", "reap_timeout", "connect",
	"format", "prefix", "lease", "probe_max", "metrics", NULL
};

/* Those that Mooncake's own configuration takes; each build of it knows some. */
static const char *const protocols[] = {
	"tcp", "rdma", "efa", "nvmeof", "nvlink", "nvlink_intra", "musa", "hip", "barex", "cxl",
	"ascend", "ub", "ubshmem", "maca", "sunrise_link", "rpc_only", NULL
};

int mooncake_size(const char *text, uint64_t *ret_bytes)
{
	const size_t digits = strspn(text + strspn(text, " "), "0123456789_.");
	const char  *number = text + strspn(text, " ");
	const char  *unit = number + digits;
	char         plain[40];
	char         letter;

	unit += strspn(unit, " ");
	letter = (char)toupper((unsigned char)*unit);
	if (letter && strchr("KMGT", letter))
		unit++;
	else
		letter = '\0';
	/* "4GiB" is ours, "4gb", "4g" and "4b" are theirs. */
	if (letter && strncmp(unit, "iB", 2) == 0)
		unit += 2;
	else if (toupper((unsigned char)*unit) == 'B')
		unit++;
	unit += strspn(unit, " ");
	if (*unit || digits > 32)
		return KVS_E_INVALID;
	snprintf(plain, sizeof(plain), "%.*s", (int)digits, number);
	if (letter)
		snprintf(plain + digits, sizeof(plain) - digits, "%ciB", letter);
	return units_size(plain, ret_bytes);
}

static int read_size(const struct mooncake_given *given, uint64_t *ret_bytes, struct kvs_error *err)
{
	if (!*given->text || mooncake_size(given->text, ret_bytes) == 0)
		return 0;
	return err_set(err, KVS_E_INVALID, "%s: \"%.64s\" is not a size; use an integer, or a number "
		       "with k, m, g or t as in 4gb", given->where, given->text);
}

/* --- the SDK's other texts -------------------------------------------------------------------- */

static int read_protocol(const struct mooncake_given *given, struct mooncake_settings *set,
			 struct kvs_error *err)
{
	char   name[sizeof(set->protocol)] = "tcp";
	char   list[sizeof(err->message)];
	size_t i;

	if (*given->text)
		snprintf(name, sizeof(name), "%.31s", given->text);
	/* Its engine compares with small letters; its configuration takes any. */
	for (i = 0; name[i]; i++)
		name[i] = (char)tolower((unsigned char)name[i]);
	if (!text_is_listed(protocols, name)) {
		return err_set(err, KVS_E_INVALID,
			       "%s: \"%.32s\" is not a protocol of Mooncake; use %s", given->where,
			       given->text, text_join(protocols, ", ", list, sizeof(list)));
	}
	memcpy(set->protocol, name, sizeof(name));
	return 0;
}

static int read_texts(const struct mooncake_given *given, struct mooncake_settings *set,
		      struct kvs_error *err)
{
	const struct mooncake_given *const tenant = &given[MOONCAKE_TENANT];
	const struct mooncake_given *const metadata = &given[MOONCAKE_METADATA_SERVER];

	if (*tenant->text)
		memcpy(set->tenant, tenant->text, sizeof(set->tenant));
	if (*metadata->text)
		memcpy(set->metadata_server, metadata->text, sizeof(set->metadata_server));
	memcpy(set->device, given[MOONCAKE_DEVICE].text, sizeof(set->device));
	if (set->way == MOONCAKE_LIBRARY && strcmp(set->tenant, "default") != 0) {
		return err_set(err, KVS_E_INVALID,
			       "%s: \"%.64s\" needs way=agent; the client library knows no tenant"
			       " but default", tenant->where, tenant->text);
	}
	return read_protocol(&given[MOONCAKE_PROTOCOL], set, err);
}

/* --- the way ---------------------------------------------------------------------------------- */

struct way_text {
	const char            *key;
	enum mooncake_way_kind way;
	char                  *text;
};

static int read_way_text(const struct kvs_store_config *config, const struct way_text *of,
			 enum mooncake_way_kind way, struct kvs_error *err)
{
	const char *const text = spec_option(config, of->key);
	char              where[40];

	if (!text)
		return 0;
	snprintf(where, sizeof(where), "store.%s", of->key);
	if (!*text)
		return err_set(err, KVS_E_INVALID, "%s: is empty", where);
	if (way != of->way) {
		return err_set(err, KVS_E_INVALID, "%s: \"%.64s\" is given without way=%s", where,
			       text, of->way == MOONCAKE_AGENT ? "agent" : "library");
	}
	if (mooncake_text_check(where, text, MOONCAKE_PATH_MAX, err) < 0)
		return KVS_E_INVALID;
	memcpy(of->text, text, strlen(text) + 1);
	return 0;
}

static int read_way(const struct kvs_store_config *config, struct mooncake_settings *set,
		    struct kvs_error *err)
{
	const struct way_text texts[] = {
		{ "library", MOONCAKE_LIBRARY, set->library },
		{ "python", MOONCAKE_AGENT, set->python },
		{ "agent", MOONCAKE_AGENT, set->agent },
		{ "log", MOONCAKE_AGENT, set->log },
	};
	bool   agent = true;
	size_t i;

	if (spec_word(config, "way", "agent", "library", &agent, err) < 0)
		return KVS_E_INVALID;
	set->way = agent ? MOONCAKE_AGENT : MOONCAKE_LIBRARY;
	for (i = 0; i < ARRAY_COUNT(texts); i++) {
		if (read_way_text(config, &texts[i], set->way, err) < 0)
			return KVS_E_INVALID;
	}
	return 0;
}

static int read_prefix(const struct kvs_store_config *config, struct mooncake_settings *set,
		       struct kvs_error *err)
{
	const char *const text = spec_option(config, "prefix");

	if (!text)
		return 0;
	if (!*text)
		return err_set(err, KVS_E_INVALID, "store.prefix: is empty");
	if (strlen(text) > LABEL_PREFIX_MAX) {
		return err_set(err, KVS_E_INVALID, "store.prefix: is longer than %u bytes",
			       LABEL_PREFIX_MAX);
	}
	if (text[strspn(text, LABEL_PREFIX_LETTERS)]) {
		return err_set(err, KVS_E_INVALID,
			       "store.prefix: \"%.64s\" may hold letters, digits, _ . and - only",
			       text);
	}
	memcpy(set->prefix, text, strlen(text) + 1);
	return 0;
}

/* --- numbers ---------------------------------------------------------------------------------- */

struct range {
	const char *key;
	uint64_t   *value; /* its default before it is read */
	uint64_t    min, max;
};

static int read_counts(const struct kvs_store_config *config, const struct range *ranges,
		       size_t count, struct kvs_error *err)
{
	const struct range *range;

	for (range = ranges; range < ranges + count; range++) {
		if (spec_count(config, range->key, range->value, err) < 0)
			return KVS_E_INVALID;
		if (*range->value < range->min || *range->value > range->max) {
			return err_set(err, KVS_E_INVALID,
				       "store.%s: %" PRIu64 " is not in %" PRIu64 " .. %" PRIu64,
				       range->key, *range->value, range->min, range->max);
		}
	}
	return 0;
}

static int read_times(const struct kvs_store_config *config, const struct range *ranges,
		      size_t count, struct kvs_error *err)
{
	const struct range *range;
	char                value[UNITS_TEXT_BYTES], min[UNITS_TEXT_BYTES], max[UNITS_TEXT_BYTES];

	for (range = ranges; range < ranges + count; range++) {
		if (spec_duration(config, range->key, range->value, err) < 0)
			return KVS_E_INVALID;
		if (*range->value < range->min || *range->value > range->max) {
			return err_set(err, KVS_E_INVALID, "store.%s: %s is not in %s .. %s",
				       range->key, units_exact_duration(*range->value, value),
				       units_exact_duration(range->min, min),
				       units_exact_duration(range->max, max));
		}
	}
	return 0;
}

static int read_numbers(const struct kvs_store_config *config, struct mooncake_settings *set,
			struct kvs_error *err)
{
	const struct range counts[] = {
		{ "lanes", &set->lanes, 1, MOONCAKE_LANES_MAX },
		{ "replica_num", &set->replica_count, 1, MOONCAKE_REPLICAS_MAX },
		{ "probe_max", &set->probe_max, 1, MOONCAKE_PROBES_MAX },
	};
	const struct range times[] = {
		{ "timeout", &set->timeout_ns, MS, 10 * MINUTE },
		{ "connect_timeout", &set->connect_timeout_ns, MS, 10 * MINUTE },
		{ "reap_timeout", &set->reap_timeout_ns, 0, MINUTE },
		{ "lease", &set->lease_ns, MS, 60 * MINUTE },
	};

	if (read_counts(config, counts, ARRAY_COUNT(counts), err) < 0)
		return KVS_E_INVALID;
	return read_times(config, times, ARRAY_COUNT(times), err);
}

/* This process's share of what the machine lends. */
static int read_sizes(const struct kvs_store_config *config, const struct mooncake_given *given,
		      struct mooncake_settings *set, struct kvs_error *err)
{
	const struct mooncake_given *const segment = &given[MOONCAKE_SEGMENT_SIZE];
	uint64_t                           total = 0, ranks = 1;
	const struct range range = { "ranks", &ranks, 1, MOONCAKE_RANKS_MAX };
	char                               unit[UNITS_TEXT_BYTES];

	if (read_size(segment, &total, err) < 0 ||
	    read_size(&given[MOONCAKE_BUFFER_SIZE], &set->local_buffer_bytes, err) < 0 ||
	    read_counts(config, &range, 1, err) < 0)
		return KVS_E_INVALID;
	set->segment_bytes = total / ranks / MOONCAKE_SEGMENT_UNIT * MOONCAKE_SEGMENT_UNIT;
	if (total == 0 || set->segment_bytes > 0)
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "%s: \"%.64s\" shared by store.ranks: %" PRIu64 " is less than %s for each;"
		       " use 0 or more", segment->where, segment->text, ranks,
		       units_format_size(MOONCAKE_SEGMENT_UNIT, unit));
}

int mooncake_settings_read(const struct kvs_store_config *config,
			   struct mooncake_settings *ret_settings, struct kvs_error *err)
{
	struct mooncake_given    given[MOONCAKE_FIELD_COUNT];
	struct mooncake_settings set = { .metadata_server = "P2PHANDSHAKE",
					 .tenant = "default",
					 .replica_count = 1,
					 .python = "python3",
					 .lanes = 2,
					 .timeout_ns = 10 * SECOND,
					 /* An agent's interpreter loads the wheel first. */
					 .connect_timeout_ns = 10 * SECOND,
					 .reap_timeout_ns = SECOND,
					 .required = true,
					 .verified = true,
					 .prefix = "kvs",
					 .lease_ns = 10 * SECOND,
					 .probe_max = 65536 };
	int                      rc = mooncake_sources_read(config, given, err);

	if (rc < 0)
		return rc;
	if (read_way(config, &set, err) < 0 ||
	    read_texts(given, &set, err) < 0 || read_prefix(config, &set, err) < 0 ||
	    read_numbers(config, &set, err) < 0 || read_sizes(config, given, &set, err) < 0 ||
	    spec_word(config, "connect", "required", "lazy", &set.required, err) < 0 ||
	    spec_word(config, "format", "verified", "raw", &set.verified, err) < 0)
		return KVS_E_INVALID;
	rc = mooncake_addresses_read(config, given, &set, err);
	if (rc == 0)
		*ret_settings = set;
	return rc;
}
