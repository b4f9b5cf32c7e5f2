/* interrupt.h - SIGINT, SIGTERM and SIGHUP request an orderly end; a second signal ends the process at once. */
#pragma once

/* Non-zero once SIGINT, SIGTERM or SIGHUP has come. */
extern volatile int interrupted;

void interrupt_install(void);
