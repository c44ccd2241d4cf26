/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to the library as a whole: its version. */
#include <kvstrata/kvstrata.h>

#define TEXT(number) #number
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *kvs_version(void)
{
	return VERSION(KVS_VERSION_MAJOR, KVS_VERSION_MINOR, KVS_VERSION_PATCH);
}
