/* interrupt.h - SIGINT, SIGTERM and SIGHUP request an orderly end; a second signal ends the process at once. */
#pragma once

/* Non-zero once one of these signals has come. */
extern volatile int interrupted;

void interrupt_install(void);
