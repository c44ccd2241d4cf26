/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program does to its process, and a library must not: standard descriptors, signals.  Ctrl-C
 * asks to stop the first time and ends at once the second.
 */
#include <fcntl.h>
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

void os_program_start(void)
{
	int fd;

	/*
	 * Opened the wrong way round on purpose: what cannot be delivered must fail, not vanish.
	 * open() takes the lowest free number, so each closed descriptor gets its own.
	 */
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
	}
	signal(SIGXFSZ, SIG_IGN);
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
