/* signals.c - catches signals (signals.h). */
#include "cli/common/signals.h"

#include <signal.h>

volatile int interrupted;

/* Handles a signal: the first signal sets the flag `interrupted`, a second signal gets its default action. */
static void on_signal(int number) {
    static volatile sig_atomic_t told[NSIG];
    interrupted = 1;
    if (told[number]) {
        signal(number, SIG_DFL);
        raise(number);
    }
    told[number] = 1;
}

void interrupt_install(void) {
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* After SIGHUP the terminal is gone. Under nohup SIGHUP is ignored, and stays ignored. */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}
