/* interrupt.h - SIGINT, SIGTERM and SIGHUP ask for an orderly end; the second one ends at once. */
#ifndef VPPS_CLI_INTERRUPT_H
#define VPPS_CLI_INTERRUPT_H

/* Not 0 once a signal has come. */
extern volatile int interrupted;

void interrupt_install(void);

#endif
