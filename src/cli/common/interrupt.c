/* interrupt.c - catches signals: the handler sets a flag that the training loop reads between batches. */
#include "cli/common/interrupt.h"
#include "cli/common/guard_process.h"

#include <signal.h>
#include <string.h>

volatile int interrupted;

/* Handles a signal: the first signal sets the flag `interrupted`, a second signal gets its default action. A signal from the guard (parent
 * process that forwards its signals) does not count as a second one: the first signal may have reached both processes. */
static void on_signal(int number, siginfo_t *info, void *context) {
    static volatile sig_atomic_t told[NSIG];
    (void)context;
    interrupted = 1;
    if (guard && info->si_pid == guard) return;
    if (told[number]) {
        signal(number, SIG_DFL);
        raise(number);
    }
    told[number] = 1;
}

void interrupt_install(void) {
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* After SIGHUP the terminal is gone. Under nohup SIGHUP is ignored, and stays ignored. */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}
