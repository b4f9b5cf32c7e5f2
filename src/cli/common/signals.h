/* signals.h - SIGINT, SIGTERM and SIGHUP request an orderly end. */
#pragma once

/* Non-zero once SIGINT, SIGTERM or SIGHUP has come; a second signal ends the process at once. */
extern volatile int interrupted;

void interrupt_install(void);
