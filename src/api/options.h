/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration file of door B: kvs_options by conf's rules.
 *
 * Settings have conf's types; their names, ranges and defaults come from the table in
 * manager/options.h.
 */
#ifndef API_OPTIONS_H
#define API_OPTIONS_H

#include "conf/conf.h"
#include "manager/options.h"

#define SETTING_SIZE(field)     uint64_t field;
#define SETTING_COUNT(field)    uint64_t field;
#define SETTING_DURATION(field) uint64_t field;
#define SETTING_NUMBER(field)   double field;
#define SETTING_SWITCH(field)   bool field;
#define SETTING_NAME(field)     const char *field;
#define SETTING_POLICY(field)   const char *field;
#define SETTING_LIST(field)     const char *field;

struct api_settings {
#define SETTING(kind, field, ...) SETTING_##kind(field)
	MANAGER_OPTIONS(SETTING)
#undef SETTING
};

extern const struct conf_option api_options[];
extern const size_t             api_options_count;

/**
 * Settings as options.
 *
 * Owner   Strings are the settings' and, of stores, of `list`, which is cut in place.
 * Errors  KVS_E_INVALID: more than KVS_ADAPTERS_MAX stores.
 */
int api_options_from(const struct api_settings *settings, char *list,
			  struct kvs_options *ret_options, struct kvs_error *err);

#endif
