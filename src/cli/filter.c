/* filter.c - see filter.h. */
#include "cli/filter.h"
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

struct filter {
    const char *command;
    vpps_stream *source;
    int to, from; /* ends of pipes; -1: closed */
    pid_t pid;    /* 0: it does not run */
    pthread_t feeder;
    bool fed; /* the thread was started, and not joined */
    /* written by the thread */
    uint64_t lines;
    bool cut; /* the last line has no end */
    vpps_status status;
    char message[VPPS_MESSAGE_BYTES];
};

/* ---------------------------------------------------------------- the thread */

static vpps_status next_bytes(filter *f, char *room, size_t n, const char **bytes, size_t *got) {
    if (f->source) {
        VPPS_TRY(vpps_stream_peek(f->source, 1, bytes, got));
        vpps_stream_skip(f->source, *got);
        return VPPS_OK;
    }
    ssize_t there;
    do { there = read(STDIN_FILENO, room, n); } while (there < 0 && errno == EINTR);
    if (there < 0) return vpps_fail(VPPS_IO, "stdin: %s", strerror(errno));
    *bytes = room;
    *got = (size_t)there;
    return VPPS_OK;
}

/* Writes to the command. False: it reads no more. */
static bool write_all(int fd, const char *bytes, size_t n) {
    while (n) {
        const ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno != EINTR) return false;
        if (written < 0) continue;
        bytes += written;
        n -= (size_t)written;
    }
    return true;
}

static vpps_status feed(filter *f) {
    char room[65536];
    const char *bytes;
    size_t n;
    for (;;) {
        VPPS_TRY(next_bytes(f, room, sizeof room, &bytes, &n));
        if (!n) return VPPS_OK;
        for (size_t i = 0; i < n; i++) f->lines += bytes[i] == '\n';
        f->cut = bytes[n - 1] != '\n';
        if (!write_all(f->to, bytes, n)) return VPPS_OK; /* its lines will be too few */
    }
}

static void *run_feeder(void *context) {
    filter *f = context;
    f->status = feed(f);
    snprintf(f->message, sizeof f->message, "%s", vpps_error_message());
    close(f->to);
    f->to = -1;
    return NULL;
}

/* ---------------------------------------------------------------- the command */

static vpps_status spawn(filter *f, int in, int out) {
    char shell[] = "/bin/sh", option[] = "-c";
    char *const arguments[] = {shell, option, (char *)(uintptr_t)f->command, NULL}; /* it is only read */
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) return vpps_fail(VPPS_MEMORY, "no memory for a command");
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    const int error = posix_spawn(&f->pid, shell, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error) f->pid = 0;
    return error ? vpps_fail(VPPS_IO, "--tokenizer '%.200s': %s", f->command, strerror(error)) : VPPS_OK;
}

/* A command that ends early must not end this process: the thread takes no SIGPIPE, and sees that writing fails. */
static vpps_status start_feeder(filter *f) {
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    f->fed = pthread_create(&f->feeder, NULL, run_feeder, f) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return f->fed ? VPPS_OK : vpps_fail(VPPS_IO, "no thread for the command of --tokenizer");
}

vpps_status filter_open(filter **out, const char *command, vpps_stream *source, int *fd) {
    int in[2], back[2];
    filter *f = calloc(1, sizeof *f);
    *out = f;
    if (!f) return vpps_fail(VPPS_MEMORY, "no memory for a command");
    *f = (filter){.command = command, .source = source, .to = -1, .from = -1};
    if (pipe2(in, O_CLOEXEC) != 0) return vpps_fail(VPPS_IO, "no pipe for a command: %s", strerror(errno));
    if (pipe2(back, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return vpps_fail(VPPS_IO, "no pipe for a command: %s", strerror(errno));
    }
    f->to = in[1];
    *fd = f->from = back[0];
    const vpps_status status = spawn(f, in[0], back[1]);
    close(in[0]);
    close(back[1]);
    return status == VPPS_OK ? start_feeder(f) : status;
}

/* Waits until thread and command have ended. */
static int finish(filter *f) {
    int code = 0;
    if (f->fed) pthread_join(f->feeder, NULL);
    f->fed = false;
    if (f->to >= 0) close(f->to);
    if (f->from >= 0) close(f->from);
    f->to = f->from = -1;
    while (f->pid && waitpid(f->pid, &code, 0) < 0 && errno == EINTR) {}
    f->pid = 0;
    return code;
}

vpps_status filter_end(filter *f, uint64_t n) {
    const int code = finish(f);
    const uint64_t lines = f->lines + f->cut;
    if (f->status != VPPS_OK) return vpps_fail(f->status, "%s", f->message);
    if (code != 0) {
        return vpps_fail(VPPS_IO, "--tokenizer '%.200s': the command ended with %s %d", f->command,
                         WIFEXITED(code) ? "status" : "signal", WIFEXITED(code) ? WEXITSTATUS(code) : WTERMSIG(code));
    }
    if (n == lines) return VPPS_OK;
    return vpps_fail(VPPS_IO, "--tokenizer '%.200s': expected a line for each of %llu, found %llu", f->command,
                     (unsigned long long)lines, (unsigned long long)n);
}

/* Does the thread end by itself, now that its command is gone? It may wait for input instead. */
static bool ends_soon(const filter *f) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    return pthread_timedjoin_np(f->feeder, NULL, &until) == 0;
}

void filter_close(filter *f) {
    if (!f) return;
    if (f->pid) kill(f->pid, SIGTERM); /* the shell; what it runs ends when nobody reads what it writes */
    if (f->from >= 0) close(f->from);
    f->from = -1;
    if (f->fed && ends_soon(f)) f->fed = false;
    if (f->fed) pthread_cancel(f->feeder);
    finish(f);
    free(f);
}
