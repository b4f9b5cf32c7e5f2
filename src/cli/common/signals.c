/* signals.c - catches signals, and runs the guard: a parent process that reports the death of its child, which trains (signals.h). */
#include "cli/common/signals.h"
#include "base/base.h"
#include "cli/common/failure.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int interrupted;

/* The process id of this process's parent if that is a guard, which forwards signals to this process; else 0. */
static volatile pid_t guard;

/* Memory shared with the guard (parent): true while the child stops because the guard was stopped. NULL: no memory. */
static atomic_bool *shared;

enum {
    BY_SIGNAL = 128,   /* exit code after signal n, as in shells: 128 + n */
    READER_MS = 1000,  /* milliseconds for mpirun or another launcher to read the last message */
    MOST_MS = 5 * 1000 /* milliseconds for the launcher to ask all processes to end */
};

static const int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGCONT};

static volatile pid_t child;
static volatile sig_atomic_t asked_to_end[NSIG];

static void hand_on(int number) {
    const int error = errno;
    kill(child, asked_to_end[number] ? SIGKILL : number);
    if (number != SIGCONT) asked_to_end[number] = asked_to_end[0] = 1;
    errno = error;
}

/* Waits, in the guard (parent process), until the child ends, and returns the status of waitpid. When the guard is
 * stopped, the child stops, too (watch_guard); this function continues the child once the guard runs again. */
static int wait_for_child(void) {
    for (;;) {
        int status = 0;
        if (waitpid(child, &status, WUNTRACED) < 0 && errno == EINTR) continue;
        if (!WIFSTOPPED(status)) return status;
        if (shared && atomic_load(shared)) kill(child, SIGCONT);
    }
}

static void sleep_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000 * 1000}, NULL); }

/* Waits briefly until the launcher has read the message, since the launcher may stop reading once this process ends. */
static void wait_for_reader(int fd) {
    for (int ms = 0; ms < READER_MS; ms++) {
        int in_pipe = 0, in_socket = 0;
        if (ioctl(fd, FIONREAD, &in_pipe) || in_pipe < 0) in_pipe = 0;
        if (ioctl(fd, TIOCOUTQ, &in_socket) || in_socket < 0) in_socket = 0;
        if (!in_pipe && !in_socket) return;
        sleep_ms(1);
    }
}

static _Noreturn void watch_child(long rank, const sigset_t *before) {
    const struct sigaction action = {.sa_handler = hand_on, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < VPPS_COUNT(handed_on); i++) sigaction(handed_on[i], &action, NULL);
    sigprocmask(SIG_SETMASK, before, NULL);
    const int status = wait_for_child();
    if (!WIFSIGNALED(status)) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_RUNTIME);
    /* When another rank's process dies, an MPI library may abort this child (not by SIGKILL). The other process's
     * parent reports that death, and the launcher asks all processes to end: wait for this, and report nothing if it
     * comes. */
    const int number = WTERMSIG(status);
    for (int ms = 0; number != SIGKILL && ms < MOST_MS && !asked_to_end[0]; ms++) sleep_ms(1);
    if (!asked_to_end[0]) { /* this process was the first to fail */
        char host[256] = "?";
        if (gethostname(host, sizeof host - 1)) snprintf(host, sizeof host, "?");
        fprintf(stderr, "vpps: rank %ld on %s was ended by signal %d (%s)\n", rank, host, number, strsignal(number));
        wait_for_reader(STDERR_FILENO);
    }
    _exit(BY_SIGNAL + number);
}

static bool is_stopped(pid_t pid) {
    char path[64], state[16];
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    vpps_proc_value(path, "State", state, sizeof state);
    return *state == 'T';
}

/* In the child: stops this process when the guard, its parent, is stopped; a stopped guard forwards no signals. */
static void *watch_guard(void *unused) {
    for (;;) {
        sleep_ms(100);
        if (!shared || !is_stopped(guard)) continue;
        atomic_store(shared, true);
        kill(getpid(), SIGSTOP);
        atomic_store(shared, false);
    }
    return unused;
}

static void begin_child(pid_t parent, const sigset_t *before) {
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(EXIT_RUNTIME); /* the parent process died before prctl could take effect */
    guard = parent;
    /* the new thread blocks all signals, so that the main thread gets them */
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    if (pthread_create(&thread, NULL, watch_guard, NULL) == 0) pthread_detach(thread);
    sigprocmask(SIG_SETMASK, before, NULL);
}

void guard_begin(long rank) {
    const pid_t parent = getpid();
    sigset_t taken, before;
    sigemptyset(&taken);
    for (size_t i = 0; i < VPPS_COUNT(handed_on); i++) sigaddset(&taken, handed_on[i]);
    sigprocmask(SIG_BLOCK, &taken, &before); /* signals wait until the child's process id is known */
    fflush(NULL);
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared = memory == MAP_FAILED ? NULL : memory;
    child = fork();
    if (child > 0) watch_child(rank, &before);
    if (child == 0)
        begin_child(parent, &before);
    else
        sigprocmask(SIG_SETMASK, &before, NULL);
}

/* ---------------------------------------------------------------- an orderly end */

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
    const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
    struct sigaction before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* After SIGHUP the terminal is gone. Under nohup SIGHUP is ignored, and stays ignored. */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}
