/* SPDX-License-Identifier: Apache-2.0 */
/* Strict: a key that is not understood would be a fault that silently never falls. */
#include "store/fault_plan.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"

#define FILE_BYTES_MAX 65536u

/* An hour: longer is a test that never ends. */
#define WAIT_NS_MAX UINT64_C(3600000000000)

static const char *const op_names[FAULT_OP_COUNT] = {
	[FAULT_GET] = "get", [FAULT_PUT] = "put", [FAULT_EXISTS] = "exists"
};

#define ON_GET (1u << FAULT_GET)
#define ON_PUT (1u << FAULT_PUT)
#define ON_EXISTS (1u << FAULT_EXISTS)

static const struct {
	const char *name;
	unsigned    ops;
	bool        waits;
} kinds[FAULT_KIND_COUNT] = {
	[FAULT_DELAY] = { "delay", ON_GET | ON_PUT | ON_EXISTS, true },
	[FAULT_ERROR] = { "error", ON_GET | ON_PUT | ON_EXISTS, false },
	[FAULT_LOST] = { "lost", ON_GET | ON_PUT | ON_EXISTS, false },
	[FAULT_FAIL] = { "fail", ON_GET | ON_PUT | ON_EXISTS, false },
	[FAULT_MISS] = { "miss", ON_GET | ON_EXISTS, false },
	[FAULT_NO_SPACE] = { "no_space", ON_PUT, false },
	[FAULT_SHORT] = { "short", ON_GET, false },
	[FAULT_CORRUPT] = { "corrupt", ON_GET, false },
	[FAULT_LATE_WRITE] = { "late_write", ON_GET, true },
};

/* One object of the plan and its name in messages: "" or "faults[2].". */
struct object_at {
	const json_t *json;
	char          name[24];
};

static int refuse(const struct object_at *at, const char *key, const char *rule,
		  struct kvs_error *err)
{
	const json_t *json = json_object_get(at->json, key);
	char         *text;

	if (!json)
		return err_set(err, KVS_E_INVALID, "%s%s: is missing", at->name, key);
	text = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
	err_set(err, KVS_E_INVALID, "%s%s: %.64s %s", at->name, key, text ? text : "?", rule);
	free(text);
	return KVS_E_INVALID;
}

static int check_keys(const struct object_at *at, const char *const *known, struct kvs_error *err)
{
	const char *key;
	json_t     *json;

	json_object_foreach((json_t *)at->json, key, json) {
		char   list[96] = "";
		size_t i, used = 0;

		for (i = 0; known[i] && strcmp(known[i], key) != 0; i++) {
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 used ? ", " : "", known[i]);
		}
		if (!known[i])
			return err_set(err, KVS_E_INVALID, "%s%.32s: is no key here; use %s",
				       at->name, key, list);
	}
	return 0;
}

/* An integer of at least `least`; *ret_value stays when the key is absent. */
static int read_integer(const struct object_at *at, const char *key, uint64_t least,
			uint64_t *ret_value, struct kvs_error *err)
{
	const json_t *json = json_object_get(at->json, key);

	if (!json)
		return 0;
	if (!json_is_integer(json) || json_integer_value(json) < (json_int_t)least) {
		return refuse(at, key, least ? "is not an integer of at least 1"
					     : "is not a non-negative integer",
			      err);
	}
	*ret_value = (uint64_t)json_integer_value(json);
	return 0;
}

static const char *text_of(const struct object_at *at, const char *key)
{
	const char *text = json_string_value(json_object_get(at->json, key));

	return text ? text : "";
}

static int read_kind(const struct object_at *at, struct fault_rule *rule, struct kvs_error *err)
{
	int kind = 0, op = 0;

	while (kind < FAULT_KIND_COUNT && strcmp(kinds[kind].name, text_of(at, "kind")) != 0)
		kind++;
	if (kind == FAULT_KIND_COUNT) {
		return refuse(at, "kind",
			      "is not a kind of fault; use delay, error, lost, fail, miss, no_space, "
			      "short, corrupt, late_write",
			      err);
	}
	while (op < FAULT_OP_COUNT && strcmp(op_names[op], text_of(at, "op")) != 0)
		op++;
	if (op == FAULT_OP_COUNT)
		return refuse(at, "op", "is not an op; use get, put, exists", err);
	if (!(kinds[kind].ops & (1u << op))) {
		char sentence[48];

		snprintf(sentence, sizeof(sentence), "has no fault of kind %s", kinds[kind].name);
		return refuse(at, "op", sentence, err);
	}
	rule->kind = (enum fault_kind)kind;
	rule->op = (enum fault_op)op;
	return 0;
}

static int read_when(const struct object_at *at, struct fault_rule *rule, struct kvs_error *err)
{
	const json_t *chance = json_object_get(at->json, "chance");

	rule->every = chance ? 0 : 1;
	rule->count_max = UINT64_MAX;
	if (chance && json_object_get(at->json, "every"))
		return refuse(at, "chance", "cannot stand beside every; use one of them", err);
	rule->chance = json_number_value(chance);
	if (chance && !(rule->chance > 0 && rule->chance <= 1))
		return refuse(at, "chance", "is not a number above 0 and at most 1", err);
	if (read_integer(at, "every", 1, &rule->every, err) < 0 ||
	    read_integer(at, "after", 0, &rule->after, err) < 0 ||
	    read_integer(at, "count", 1, &rule->count_max, err) < 0)
		return KVS_E_INVALID;
	return 0;
}

/* A wait in units of unit_ns.  Not finite is not possible in JSON. */
static bool to_wait(const json_t *json, uint64_t unit_ns, uint64_t *ret_ns)
{
	const double ns = json_number_value(json) * (double)unit_ns;

	if (!json_is_number(json) || ns < 0 || ns > (double)WAIT_NS_MAX)
		return false;
	*ret_ns = (uint64_t)ns;
	return true;
}

static int read_wait(const struct object_at *at, struct fault_rule *rule, struct kvs_error *err)
{
	const bool    in_us = json_object_get(at->json, "us");
	const char   *key = in_us ? "us" : "ms";
	const json_t *json = json_object_get(at->json, key);
	const bool    is_range = json_is_array(json) && json_array_size(json) == 2;

	if (!kinds[rule->kind].waits)
		return json ? refuse(at, key, "belongs to delay and late_write", err) : 0;
	if (in_us && json_object_get(at->json, "ms"))
		return refuse(at, "us", "cannot stand beside ms; use one of them", err);
	if (!to_wait(is_range ? json_array_get(json, 0) : json, in_us ? 1000 : 1000000,
		     &rule->wait_min_ns) ||
	    !to_wait(is_range ? json_array_get(json, 1) : json, in_us ? 1000 : 1000000,
		     &rule->wait_max_ns) ||
	    rule->wait_min_ns > rule->wait_max_ns)
		return refuse(at, key, "is neither a time of at most an hour nor a range [least, most]",
			      err);
	return 0;
}

static int read_lie(const struct object_at *at, struct fault_rule *rule, struct kvs_error *err)
{
	const json_t *json = json_object_get(at->json, "claims_retired");

	if (!json)
		return 0;
	if (!json_is_boolean(json))
		return refuse(at, "claims_retired", "is neither true nor false", err);
	if (rule->kind != FAULT_LATE_WRITE)
		return refuse(at, "claims_retired", "belongs to late_write", err);
	rule->claims_retired = json_is_true(json);
	return 0;
}

static int read_rule(const json_t *json, uint32_t number, struct fault_rule *rule,
		     struct kvs_error *err)
{
	static const char *const keys[] = { "kind", "op", "every", "chance", "after", "count",
					    "ms", "us", "claims_retired", NULL };
	struct object_at at = { .json = json };

	snprintf(at.name, sizeof(at.name), "faults[%u]", number);
	if (!json_is_object(json))
		return err_set(err, KVS_E_INVALID, "%s: is not an object", at.name);
	snprintf(at.name, sizeof(at.name), "faults[%u].", number);
	if (check_keys(&at, keys, err) < 0 || read_kind(&at, rule, err) < 0 ||
	    read_when(&at, rule, err) < 0 || read_wait(&at, rule, err) < 0 ||
	    read_lie(&at, rule, err) < 0)
		return KVS_E_INVALID;
	return 0;
}

static int read_rules(const struct object_at *root, struct fault_plan *plan, struct kvs_error *err)
{
	const json_t *json = json_object_get(root->json, "faults");

	if (!json_is_array(json) || json_array_size(json) > FAULT_RULES_MAX)
		return refuse(root, "faults", "is not an array of at most 32 faults", err);
	for (; plan->rule_count < json_array_size(json); plan->rule_count++) {
		if (read_rule(json_array_get(json, plan->rule_count), plan->rule_count,
			      &plan->rules[plan->rule_count], err) < 0)
			return KVS_E_INVALID;
	}
	return 0;
}

static int read_plan(const json_t *json, struct fault_plan *plan, struct kvs_error *err)
{
	static const char *const keys[] = { "inner", "seed", "faults", NULL };
	const struct object_at   root = { .json = json };
	const char              *inner = text_of(&root, "inner");

	plan->seed = 1;
	if (!json_is_object(json))
		return err_set(err, KVS_E_INVALID, "is not one JSON object");
	if (check_keys(&root, keys, err) < 0)
		return KVS_E_INVALID;
	if (!*inner || strlen(inner) >= sizeof(plan->inner))
		return refuse(&root, "inner", "is not the spec of a store", err);
	memcpy(plan->inner, inner, strlen(inner) + 1);
	if (read_integer(&root, "seed", 0, &plan->seed, err) < 0)
		return KVS_E_INVALID;
	return read_rules(&root, plan, err);
}

static int parse(const char *text, size_t bytes, struct fault_plan *plan, struct kvs_error *err)
{
	json_error_t where;
	json_t      *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
	char        *at;
	int          rc;

	if (!json) {
		/* A damaged file must not speak to the reader's terminal. */
		for (at = where.text; *at; at++)
			*at = iscntrl((unsigned char)*at) ? ' ' : *at;
		return err_set(err, KVS_E_INVALID, "line %d, column %d: %s", where.line,
			       where.column, where.text);
	}
	rc = read_plan(json, plan, err);
	json_decref(json);
	return rc;
}

static int load(int fd, struct fault_plan *plan, struct kvs_error *err)
{
	static const char too_large[] = "is larger than 64 KiB, the most a plan may have";
	char             *text;
	uint64_t          bytes;
	int               rc = os_file_size(fd, &bytes);

	if (rc == 0 && bytes > FILE_BYTES_MAX)
		return err_set(err, KVS_E_INVALID, "%s", too_large);
	text = rc == 0 ? malloc(bytes + 1) : NULL;
	if (rc == 0)
		rc = text ? os_file_read(fd, text, bytes, 0) : -ENOMEM;
	rc = rc == 0 ? parse(text, bytes, plan, err) : err_set(err, rc, "%s", kvs_strerror(rc));
	free(text);
	return rc;
}

int fault_plan_read(const char *path, struct fault_plan *ret_plan, struct kvs_error *err)
{
	const int fd = os_file_open(path, 0);
	int       rc;

	*ret_plan = (struct fault_plan){ 0 };
	rc = fd < 0 ? err_set(err, fd, "%s", kvs_strerror(fd)) : load(fd, ret_plan, err);
	os_close(fd);
	return rc;
}
