/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C for programs: the first asks to stop, the second ends at once.  The library never calls this. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "os/os.h"

/* A handler has no argument: this is the one place for what it tells. */
static volatile sig_atomic_t interrupts;

static void on_interrupt(int number)
{
	/* 128 + number is what a shell reports for a process that died of the signal. */
	if (++interrupts > 1)
		_exit(128 + number);
}

void os_interrupt_catch(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_interrupt;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool os_interrupted(void)
{
	return interrupts > 0;
}
