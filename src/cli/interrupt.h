/* interrupt.h - SIGINT, SIGTERM and SIGHUP ask for an orderly end; the second one ends at once. */
#pragma once

/* Not 0 once a signal has come. */
extern volatile int interrupted;

void interrupt_install(void);
