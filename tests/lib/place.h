/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of a test's own with one path in it, where a file may come to be. */
#ifndef PLACE_H
#define PLACE_H

struct place {
	char directory[32];
	char path[48];
};

struct place place_open(void);
void         place_close(const struct place *place); /* with the file */

#endif
