/* interrupt.c - the handler sets a flag that the training loop reads between batches. */
#include "cli/interrupt.h"

#include <signal.h>
#include <string.h>

volatile int interrupted;

static void on_signal(int number) {
    (void)number;
    interrupted = 1;
}

void interrupt_install(void) {
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)(SA_RESTART | SA_RESETHAND); /* once: the second signal does what it does by default */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* The terminal is gone. Under nohup it is to be ignored, and stays so. */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}
