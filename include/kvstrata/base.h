/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both doors and every store share: error codes, keys and spans.  C99, usable from C++.
 *
 * Errors   A function that can fail returns 0 or a negative code: -errno of the operating system as
 *          it came, or one of KVS_E_*.  An error says the call did not happen: no side effect, and
 *          no completion ever follows.
 */
#ifndef KVSTRATA_BASE_H
#define KVSTRATA_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library hides every other symbol; kvstrata.map says it once more to the linker. */
#if defined(__GNUC__)
#define KVS_PUBLIC __attribute__((visibility("default")))
#else
#define KVS_PUBLIC
#endif

/* The function that a plugin exports: looked up by its name as C has it, whatever language it is of. */
#ifdef __cplusplus
#define KVS_PLUGIN_ENTRY extern "C" KVS_PUBLIC
#else
#define KVS_PLUGIN_ENTRY KVS_PUBLIC
#endif

#define KVS_VERSION_MAJOR 0
#define KVS_VERSION_MINOR 1
#define KVS_VERSION_PATCH 0

/* Every code of our own with the sentence that kvs_strerror() gives for it. */
#define KVS_ERRORS(X) \
	X(KVS_E_INVALID, -2000, "an argument or a setting is not valid") \
	X(KVS_E_FULL, -2001, "a bounded queue, table or arena is full") \
	X(KVS_E_CREDIT, -2002, "the credit ledger has too little left") \
	X(KVS_E_STALE, -2003, "the handle or id names nothing that lives") \
	X(KVS_E_CLOSED, -2004, "the object is closed or closing") \
	X(KVS_E_PROTO, -2005, "a peer or a file broke the protocol or the format") \
	X(KVS_E_QUARANTINE, -2006, "bytes of an operation are quarantined; a restart is required") \
	X(KVS_E_BUSY, -2007, "the object is in use by somebody else") \
	X(KVS_E_UNSUPPORTED, -2008, "this build or this machine cannot do that") \
	X(KVS_E_HEALTH, -2009, "the store is in cooldown after an outage") \
	X(KVS_E_MISSING, -2010, "no object has this key") \
	X(KVS_E_EXISTS, -2011, "an object has this key already") \
	X(KVS_E_LOCKED, -2012, "the object is locked")

enum kvs_code {
#define KVS_CODE(name, value, text) name = (value),
	KVS_ERRORS(KVS_CODE)
#undef KVS_CODE
	KVS_OK = 0
};

/* A code and one sentence: field, value, rule.  Written only on failure; the caller owns it. */
struct kvs_error {
	int  code;
	char message[252];
};

/*
 * Names one deployment's objects: checkpoint, layout and weights, hashed.  Objects of two
 * namespaces never meet.
 */
struct kvs_namespace {
	uint8_t byte[16];
};

/*
 * Names the bytes of one block.  Two keys are the same object exactly when all their bytes are
 * equal, so build them zeroed.
 */
struct kvs_key {
	struct kvs_namespace space;
	uint8_t              hash[32]; /* prefix hash of the page, or the caller's own opaque hash */
	uint16_t             group;    /* group id; 0 where there is one group */
	uint16_t             replica;  /* whose part it is where ranks hold different ones; else 0 */
	uint32_t             offset;   /* ordinal of the block inside the page, not a byte offset */
};

/* A run of bytes the caller owns.  room: bytes at ptr that may be touched, payload and trailer. */
struct kvs_span {
	void  *ptr;
	size_t bytes;
	size_t room;
};

/**
 * The sentence for a code of this library or for a negative errno.
 *
 * Owner   A static string; never NULL.
 * Thread  Any.
 */
KVS_PUBLIC const char *kvs_strerror(int code);

/**
 * The version of the library in use, as "major.minor.patch".
 *
 * Owner   A static string.
 * Thread  Any.
 */
KVS_PUBLIC const char *kvs_version(void);

#ifdef __cplusplus
}
#endif

#endif
