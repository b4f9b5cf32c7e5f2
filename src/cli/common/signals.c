/* signals.c - catches signals (signals.h). */
#include "cli/common/signals.h"
#include "base/base.h"
#include "io/output.h"

#include <signal.h>
#include <unistd.h>

volatile int interrupted;

/* Ends the process by the signal, without the temporary files of outputs that are being written. The first process of a container ignores a signal that
 * it sends to itself, and ends by _exit. */
static void on_last_signal(int number) {
    sigset_t set;
    vpps_output_abandon();
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* the signal is blocked while its handler runs */
    raise(number);
    _exit(128 + number);
}

/* Handles a signal: the first signal sets the flag `interrupted`, a second signal ends the process. */
static void on_signal(int number) {
    static volatile sig_atomic_t told[NSIG];
    interrupted = 1;
    if (told[number]) on_last_signal(number);
    told[number] = 1;
}

static void install(int number, void (*handler)(int), bool if_ignored) {
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && (if_ignored || before.sa_handler != SIG_IGN))
        sigaction(number, &action, NULL);
}

void signals_install(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < VPPS_COUNT(numbers); i++) install(numbers[i], on_last_signal, false);
    /* without this signal, a write beyond the file size limit fails, and the process lives on to remove its temporary file */
    signal(SIGXFSZ, SIG_IGN);
}

void interrupt_install(void) {
    install(SIGINT, on_signal, true);
    install(SIGTERM, on_signal, true);
    /* After SIGHUP the terminal is gone. Under nohup SIGHUP is ignored, and stays ignored. */
    install(SIGHUP, on_signal, false);
}
