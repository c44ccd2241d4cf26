/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules are a table; what no rule names has failed and proves nothing.
 *
 * A rule for a get or a put is a claim about the SDK's source: that it gives the code only before a
 * transfer was submitted or after all of it had ended.
 */
#include "mooncake/codes.h"

/* All there are, in the order of the SDK's list. */
#define CODES(code) \
	code(0, OK) \
	code(-1, INTERNAL_ERROR) \
	code(-10, BUFFER_OVERFLOW) \
	code(-100, SHARD_INDEX_OUT_OF_RANGE) \
	code(-101, SEGMENT_NOT_FOUND) \
	code(-102, SEGMENT_ALREADY_EXISTS) \
	code(-103, CLIENT_NOT_FOUND) \
	code(-200, NO_AVAILABLE_HANDLE) \
	code(-300, INVALID_VERSION) \
	code(-400, INVALID_KEY) \
	code(-500, WRITE_FAIL) \
	code(-600, INVALID_PARAMS) \
	code(-601, ILLEGAL_CLIENT) \
	code(-700, INVALID_WRITE) \
	code(-701, INVALID_READ) \
	code(-702, INVALID_REPLICA) \
	code(-703, REPLICA_IS_NOT_READY) \
	code(-704, OBJECT_NOT_FOUND) \
	code(-705, OBJECT_ALREADY_EXISTS) \
	code(-706, OBJECT_HAS_LEASE) \
	code(-707, LEASE_EXPIRED) \
	code(-708, OBJECT_HAS_REPLICATION_TASK) \
	code(-709, OBJECT_NO_REPLICATION_TASK) \
	code(-710, REPLICA_NOT_FOUND) \
	code(-711, REPLICA_ALREADY_EXISTS) \
	code(-712, REPLICA_IS_GONE) \
	code(-713, REPLICA_NOT_IN_LOCAL_MEMORY) \
	code(-714, OBJECT_REPLICA_BUSY) \
	code(-800, TRANSFER_FAIL) \
	code(-801, CHECKSUM_MISMATCH) \
	code(-900, RPC_FAIL) \
	code(-901, RPC_TIMEOUT) \
	code(-1000, ETCD_OPERATION_ERROR) \
	code(-1001, ETCD_KEY_NOT_EXIST) \
	code(-1002, ETCD_TRANSACTION_FAIL) \
	code(-1003, ETCD_CTX_CANCELLED) \
	code(-1004, OPLOG_ENTRY_NOT_FOUND) \
	code(-1005, K8S_LEASE_OPERATION_ERROR) \
	code(-1006, K8S_LEASE_NOT_FOUND) \
	code(-1007, INCOMPLETE_OPLOG_CATCH_UP) \
	code(-1010, UNAVAILABLE_IN_CURRENT_STATUS) \
	code(-1011, UNAVAILABLE_IN_CURRENT_MODE) \
	code(-1012, NOT_SUPPORTED) \
	code(-1100, FILE_NOT_FOUND) \
	code(-1101, FILE_OPEN_FAIL) \
	code(-1102, FILE_READ_FAIL) \
	code(-1103, FILE_WRITE_FAIL) \
	code(-1104, FILE_INVALID_BUFFER) \
	code(-1105, FILE_LOCK_FAIL) \
	code(-1106, FILE_INVALID_HANDLE) \
	code(-1200, BUCKET_NOT_FOUND) \
	code(-1201, BUCKET_ALREADY_EXISTS) \
	code(-1202, KEYS_EXCEED_BUCKET_LIMIT) \
	code(-1203, KEYS_ULTRA_LIMIT) \
	code(-1300, UNABLE_OFFLOAD) \
	code(-1301, UNABLE_OFFLOADING) \
	code(-1400, TASK_NOT_FOUND) \
	code(-1401, TASK_PENDING_LIMIT_EXCEEDED) \
	code(-1402, JOB_NOT_FOUND) \
	code(-1500, SERIALIZE_UNSUPPORTED) \
	code(-1501, SERIALIZE_FAIL) \
	code(-1502, DESERIALIZE_FAIL) \
	code(-1503, PERSISTENT_FAIL) \
	code(-1600, DFS_NETWORK_TIMEOUT) \
	code(-1601, DFS_SERVICE_UNAVAILABLE) \
	code(-1602, DFS_QUOTA_EXCEEDED) \
	code(-1603, DFS_PERMISSION_DENIED) \
	code(-1604, DFS_STALE_HANDLE) \
	code(-1605, DFS_PARTIAL_WRITE) \
	code(-1700, TENANT_QUOTA_EXCEEDED) \
	code(-1701, TENANT_NOT_REGISTERED) \
	code(-1702, TENANT_NOT_EMPTY)

enum {
#define VALUE(value, name) CODE_##name = (value),
	CODES(VALUE)
#undef VALUE
};

static const struct {
	int64_t     code;
	const char *name;
} names[] = {
#define NAME(value, name) { value, #name },
	CODES(NAME)
#undef NAME
};

struct rule {
	enum mooncake_verb verb;
	int64_t            code;
	enum kvs_result    result;
};

static const struct rule rules[] = {
	{ MOONCAKE_EXISTS, 1, KVS_RESULT_DONE },
	{ MOONCAKE_EXISTS, 0, KVS_RESULT_MISSING },
	{ MOONCAKE_EXISTS, MOONCAKE_NOT_FOUND, KVS_RESULT_MISSING },

	{ MOONCAKE_GET, MOONCAKE_NOT_FOUND, KVS_RESULT_MISSING },
	/* Somebody puts it just now, or did not finish: no fault of an object, and no outage. */
	{ MOONCAKE_GET, CODE_REPLICA_IS_NOT_READY, KVS_RESULT_UNKNOWN },
	{ MOONCAKE_GET, CODE_INVALID_REPLICA, KVS_RESULT_UNKNOWN },
	/* Read too slowly: what arrived may be another's, what is stored is not in question. */
	{ MOONCAKE_GET, CODE_LEASE_EXPIRED, KVS_RESULT_UNKNOWN },
	{ MOONCAKE_GET, CODE_CHECKSUM_MISMATCH, KVS_RESULT_CORRUPT },

	/* Of an object that exists, too: today's SDK makes no difference. */
	{ MOONCAKE_PUT, CODE_OK, KVS_RESULT_DONE },
	{ MOONCAKE_PUT, CODE_OBJECT_ALREADY_EXISTS, KVS_RESULT_EXISTS },
	{ MOONCAKE_PUT, MOONCAKE_NO_HANDLE, KVS_RESULT_NO_SPACE },

	{ MOONCAKE_REMOVE, CODE_OK, KVS_RESULT_DONE },
	{ MOONCAKE_REMOVE, MOONCAKE_NOT_FOUND, KVS_RESULT_MISSING },
	/* It is there and stays: being put, leased in spite of the force, or being copied. */
	{ MOONCAKE_REMOVE, CODE_REPLICA_IS_NOT_READY, KVS_RESULT_UNKNOWN },
	{ MOONCAKE_REMOVE, CODE_OBJECT_HAS_LEASE, KVS_RESULT_UNKNOWN },
	{ MOONCAKE_REMOVE, CODE_OBJECT_HAS_REPLICATION_TASK, KVS_RESULT_UNKNOWN },
	{ MOONCAKE_REMOVE, CODE_OBJECT_REPLICA_BUSY, KVS_RESULT_UNKNOWN },
};

struct mooncake_verdict mooncake_judge(enum mooncake_verb verb, int64_t code, uint64_t bytes)
{
	const struct rule *rule;

	KVS_ASSERT(verb < MOONCAKE_VERB_COUNT);
	if (verb == MOONCAKE_GET && code >= 0) {
		return (struct mooncake_verdict){
			(uint64_t)code == bytes ? KVS_RESULT_DONE : KVS_RESULT_CORRUPT, true
		};
	}
	if (verb == MOONCAKE_PURGE && code >= 0)
		return (struct mooncake_verdict){ KVS_RESULT_DONE, true };
	for (rule = rules; rule < rules + ARRAY_COUNT(rules); rule++) {
		if (rule->verb == verb && rule->code == code)
			return (struct mooncake_verdict){ rule->result, true };
	}
	return (struct mooncake_verdict){ KVS_RESULT_FAILED, !mooncake_moves(verb) };
}

bool mooncake_call_retired(const struct mooncake_call *call)
{
	uint32_t i;

	if (!mooncake_moves(call->verb))
		return true;
	for (i = 0; i < call->count; i++) {
		/* How long an object is has no part in this. */
		if (!mooncake_judge(call->verb, call->codes[i], 0).retired)
			return false;
	}
	return true;
}

const char *mooncake_code_name(int64_t code)
{
	size_t i;

	for (i = 0; i < ARRAY_COUNT(names); i++) {
		if (names[i].code == code)
			return names[i].name;
	}
	return "unknown code";
}
