/* signals.h - SIGINT, SIGTERM and SIGHUP end the process at once, or request an orderly end. */
#pragma once

/* From now on SIGINT, SIGTERM and SIGHUP remove the temporary files of outputs, and end the process at once. */
void signals_install(void);

/* Non-zero once SIGINT, SIGTERM or SIGHUP has come after interrupt_install; a second signal ends the process at once. */
extern volatile int interrupted;

void interrupt_install(void);
