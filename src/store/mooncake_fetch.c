/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers below are libcurl's ABI: they have not changed since curl 7.16. */
#include "store/mooncake_fetch.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"

#define LIBRARY "libcurl.so.4"

enum option {
	OPTION_WRITE_DATA = 10001,
	OPTION_URL = 10002,
	OPTION_PROXY = 10004,
	OPTION_WRITE_FUNCTION = 20011,
	OPTION_NO_SIGNAL = 99,
	OPTION_TIMEOUT_MS = 155
};
#define INFO_RESPONSE_CODE 0x200002

struct body {
	char  *text;
	size_t room, bytes;
};

/* What does not fit is dropped: the caller wants the beginning. */
static size_t take(const char *text, size_t size, size_t count, void *context)
{
	struct body *const body = context;
	const size_t       left = body->room - body->bytes, some = size * count;

	memcpy(body->text + body->bytes, text, some < left ? some : left);
	body->bytes += some < left ? some : left;
	return some;
}

/* ISO C has no cast from an object's address to a function's; POSIX has the conversion. */
static bool resolve(void *library, const char *name, void *ret_function)
{
	void *const symbol = os_library_symbol(library, name);

	memcpy(ret_function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static bool load(struct mooncake_curl *curl, char *ret_why, size_t why_bytes)
{
	void *library;
	char  why[160];

	if (curl->library)
		return true;
	if (!os_library_load(LIBRARY, &library, why, sizeof(why))) {
		snprintf(ret_why, why_bytes, "%s cannot be loaded", LIBRARY);
		return false;
	}
	if (!resolve(library, "curl_easy_init", &curl->init) ||
	    !resolve(library, "curl_easy_setopt", &curl->set) ||
	    !resolve(library, "curl_easy_perform", &curl->perform) ||
	    !resolve(library, "curl_easy_getinfo", &curl->get) ||
	    !resolve(library, "curl_easy_strerror", &curl->describe) ||
	    !resolve(library, "curl_easy_cleanup", &curl->cleanup)) {
		snprintf(ret_why, why_bytes, "%s lacks symbols", LIBRARY);
		os_library_unload(library);
		return false;
	}
	curl->library = library;
	return true;
}

static int get(const struct mooncake_curl *curl, void *handle, const char *url, uint64_t timeout_ns,
	       struct body *body, long *ret_status)
{
	int rc = curl->set(handle, OPTION_URL, url);

	/* An engine's proxy is for its users, not for the master. */
	rc = rc ? rc : curl->set(handle, OPTION_PROXY, "");
	rc = rc ? rc : curl->set(handle, OPTION_NO_SIGNAL, 1L);
	rc = rc ? rc : curl->set(handle, OPTION_TIMEOUT_MS, (long)(timeout_ns / 1000000));
	rc = rc ? rc : curl->set(handle, OPTION_WRITE_FUNCTION, take);
	rc = rc ? rc : curl->set(handle, OPTION_WRITE_DATA, body);
	rc = rc ? rc : curl->perform(handle);
	return rc ? rc : curl->get(handle, INFO_RESPONSE_CODE, ret_status);
}

bool mooncake_curl_fetch(void *context, const char *url, uint64_t timeout_ns, char *text,
			 size_t room, size_t *ret_bytes, char *ret_why, size_t why_bytes)
{
	struct mooncake_curl *const curl = context;
	struct body                 body = { .text = text, .room = room };
	long                        status = 0;
	void                       *handle;
	int                         rc;

	if (!load(curl, ret_why, why_bytes))
		return false;
	handle = curl->init();
	if (!handle) {
		snprintf(ret_why, why_bytes, "no memory");
		return false;
	}
	rc = get(curl, handle, url, timeout_ns, &body, &status);
	if (rc)
		snprintf(ret_why, why_bytes, "%s", curl->describe(rc));
	else if (status != 200)
		snprintf(ret_why, why_bytes, "HTTP status %ld", status);
	curl->cleanup(handle);
	if (rc || status != 200)
		return false;
	*ret_bytes = body.bytes;
	return true;
}
