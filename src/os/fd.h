/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of this room: where our descriptors may lie. */
#ifndef OS_FD_H
#define OS_FD_H

/*
 * Moves a descriptor that was just opened above the standard three, closing the original.
 *
 * A process may start with its standard descriptors closed, as daemons do.  The next open() then
 * gets their numbers, and whatever somebody prints lands in that file: a store's superblock, say.
 * Returns the descriptor to use, or -errno; takes -errno through.
 */
int fd_above_stdio(int fd);

/* Two connected Unix sockets of that type, closed by exec, there as well: 0 or -errno. */
int fd_pair_above_stdio(int type, int ret_ends[2]);

#endif
