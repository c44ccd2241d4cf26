/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of a Mooncake store: the master's, its HTTP interface's, and this machine's.
 *
 * HOST or HOST:PORT, [ADDRESS]:PORT for IPv6.  Where no host is named for the interface it is the
 * master's; where none is for this machine it is 127.0.0.1 with a master there, else its name.
 */
#ifndef STORE_MOONCAKE_ADDRESS_H
#define STORE_MOONCAKE_ADDRESS_H

#include "store/mooncake_source.h"

/* Writes master, metrics and local_hostname. */
int mooncake_addresses_read(const struct kvs_store_config *config,
			    const struct mooncake_given *given, struct mooncake_settings *set,
			    struct kvs_error *err);

#endif
