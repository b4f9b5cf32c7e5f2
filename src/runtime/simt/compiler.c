/* compiler.c - runs the host's C++ compiler as a process. No shell reads its arguments. */
#include "runtime/simt/compiler.h"
#include "io/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* The compiler's options. -O0, because tests run many kernels for a short time: a Tree-LSTM's kernel (hidden 256) compiles in 0.3 s, but in
 * 0.55 s with -Og, 1 s with -O1, and 2.5 s with -O2; with -O1 it runs twice as fast. $VPPS_CXXFLAGS can change this. Contraction is off, so
 * that results are the same with and without FMA instructions. */
#define OPTIONS                                                                                                        \
    "-O0", "-std=gnu++17", "-w", "-fPIC", "-shared", "-pipe", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti",   \
        "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-nostdlib"

/* Returns whether the processor has FMA instructions; without the option -mfma, fmaf would be a function call. */
static bool has_fma(void) {
#ifdef __x86_64__
    return __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static const char *compiler(void) {
    const char *name = getenv("VPPS_CXX");
    return name && *name ? name : "c++";
}

typedef struct command {
    uint32_t n;
    const char *arguments[64]; /* ends with NULL */
    char flags[512];           /* for a copy of $VPPS_CXXFLAGS, split at spaces */
} command;

static vpps_status make_command(command *c, const char *source, const char *library) {
    const char *const fixed[] = {compiler(), OPTIONS, "-o", library, source, "-lm", "-lc"};
    memcpy(c->arguments, fixed, sizeof fixed);
    c->n = VPPS_COUNT(fixed);
    if (has_fma()) c->arguments[c->n++] = "-mfma";
    const char *watch = getenv("VPPS_SIMT_WATCH");
    if (watch && *watch && strcmp(watch, "0") != 0) {
        /* the kernel calls ThreadSanitizer's functions, in simt_cuda.h, to find races */
        c->arguments[c->n++] = "-fsanitize=thread";
        c->arguments[c->n++] = "-DVPPS_SIMT_WATCHED=1";
    }
    const char *flags = getenv("VPPS_CXXFLAGS");
    bool fits = snprintf(c->flags, sizeof c->flags, "%s", flags ? flags : "") < (int)sizeof c->flags;
    char *rest = NULL;
    for (char *flag = strtok_r(c->flags, " ", &rest); flag && fits; flag = strtok_r(NULL, " ", &rest)) {
        c->arguments[c->n++] = flag;
        fits = c->n < VPPS_COUNT(c->arguments);
    }
    if (!fits) return vpps_fail(VPPS_ARGUMENT, "software SIMT: VPPS_CXXFLAGS is too long");
    c->arguments[c->n] = NULL;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- processes */

enum { MAX_ENVIRONMENT = 4096 };

/* Sets out[] to this process's environment, with messages in English, so that a compiler's error lines can be recognised. */
static void english(char **out) {
    size_t n = 0;
    for (char **e = environ; *e && n < MAX_ENVIRONMENT - 2; e++)
        if (strncmp(*e, "LC_ALL=", 7) != 0 && strncmp(*e, "LANGUAGE=", 9) != 0) out[n++] = *e;
    static char c_locale[] = "LC_ALL=C";
    out[n++] = c_locale;
    out[n] = NULL;
}

/* Reads a file to its end, but keeps only as much of its text as fits into `text`. */
static void read_text(int fd, char *text, size_t room) {
    size_t n = 0;
    char rest[1024];
    for (;;) {
        const bool fits = n + 1 < room;
        const ssize_t got = read(fd, fits ? text + n : rest, fits ? room - 1 - n : sizeof rest);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        if (fits) n += (size_t)got;
    }
    text[n] = 0;
}

/* Starts a program (found in PATH), which reads from the pipe's end `from` and writes output and errors to the pipe's end `to`; -1 stands
 * for /dev/null. A program that reads has a session of its own, so that a terminal's signals do not reach it. Returns an errno value. */
static int spawn(pid_t *process, const char *const *arguments, int from, int to) {
    char *environment[MAX_ENVIRONMENT];
    english(environment);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    if (posix_spawn_file_actions_init(&actions)) return ENOMEM;
    int error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    if (from >= 0) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && !error; fd++) {
        const int end = fd == STDIN_FILENO ? from : to;
        error = end < 0 ? posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0)
                        : posix_spawn_file_actions_adddup2(&actions, end, fd);
    }
    if (!error)
        error = posix_spawnp(process, arguments[0], &actions, &attributes, (char *const *)(uintptr_t)arguments,
                             environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Runs a program to its end. `text` gets its output; *good tells whether it returned 0. Fails with DEVICE if it cannot be run. */
static vpps_status run(const char *const *arguments, char *text, size_t room, bool *good) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) return vpps_fail(VPPS_IO, "software SIMT: pipe: %s", strerror(errno));
    pid_t process;
    const int error = spawn(&process, arguments, -1, ends[1]);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return vpps_fail(VPPS_DEVICE, "software SIMT: no C++ compiler: looked for \"%s\" (VPPS_CXX names another): %s",
                         arguments[0], strerror(error));
    }
    read_text(ends[0], text, room);
    close(ends[0]);
    int code = 0;
    pid_t waited;
    do waited = waitpid(process, &code, 0);
    while (waited < 0 && errno == EINTR);
    if (waited < 0)
        return vpps_fail(VPPS_DEVICE, "software SIMT: how \"%s\" ended is not known: %s", arguments[0],
                         strerror(errno));
    *good = WIFEXITED(code) && WEXITSTATUS(code) == 0;
    return VPPS_OK;
}

/* Fails with the first line of the compiler's output that contains an error, else with the first line. */
static vpps_status refused(char *text) {
    char *error = strstr(text, "error: ");
    char *line = error ? error : text;
    while (line > text && line[-1] != '\n') line--;
    line[strcspn(line, "\n")] = 0;
    return vpps_fail(VPPS_DEVICE, "software SIMT: %s: %s", compiler(), *line ? line : "failed without a word");
}

/* Sets *out to the first line of what the compiler prints as its version. Runs the compiler unless the preceding call was for it, too. */
static vpps_status version(const char **out) {
    static _Thread_local char name[256], text[1024];
    *out = text;
    if (*name && strcmp(name, compiler()) == 0) return VPPS_OK;
    *name = 0;
    const char *const arguments[] = {compiler(), "--version", NULL};
    bool good = false;
    VPPS_TRY(run(arguments, text, sizeof text, &good));
    if (!good) return refused(text);
    text[strcspn(text, "\n")] = 0;
    snprintf(name, sizeof name, "%s", compiler());
    return VPPS_OK;
}

vpps_status vpps_simt_toolchain(char *out, size_t room) {
    const char *text;
    VPPS_TRY(version(&text));
    command c;
    VPPS_TRY(make_command(&c, "", ""));
    int n = snprintf(out, room, "%s:", text);
    for (uint32_t i = 0; i < c.n && n < (int)room; i++) n += snprintf(out + n, room - (size_t)n, " %s", c.arguments[i]);
    return n < (int)room ? VPPS_OK : vpps_fail(VPPS_ARGUMENT, "software SIMT: VPPS_CXX is too long");
}

/* ---------------------------------------------------------------- files */

static vpps_status write_file(const char *path, const void *bytes, size_t size) {
    FILE *f = fopen(path, "wbxe");
    if (!f) return vpps_fail(VPPS_IO, "software SIMT: %s: %s", path, strerror(errno));
    const bool written = fwrite(bytes, 1, size, f) == size;
    if (fclose(f) || !written) return vpps_fail(VPPS_IO, "software SIMT: %s: %s", path, strerror(errno));
    return VPPS_OK;
}

/* Starts a shell that removes the folder once *end is closed or this process was killed. If the shell cannot be started, returns -1, and a
 * killed process leaves the folder. A forked child instead of a shell would keep the pipes of other threads open: two such children would
 * wait for each other. A compiler that still runs may write into the folder while the shell removes it. Returns the shell's process. */
static pid_t start_keeper(int *end, const char *folder) {
    static const char script[] =
        "read -r line; n=0; while [ -d \"$0\" ] && [ $n -lt 60 ]; do rm -rf \"$0\"; n=$((n + 1)); [ ! -d \"$0\" ] || "
        "sleep 1; done";
    const char *const arguments[] = {"sh", "-c", script, folder, NULL};
    int ends[2];
    *end = -1;
    if (pipe2(ends, O_CLOEXEC)) return -1;
    pid_t keeper = -1;
    if (spawn(&keeper, arguments, ends[0], -1)) keeper = -1;
    close(ends[0]);
    *end = ends[1];
    return keeper;
}

vpps_status vpps_simt_with_file(const char *name, const void *bytes, size_t size,
                                vpps_status (*use)(const char *path, void *context), void *context) {
    const char *temporary = getenv("TMPDIR");
    char folder[PATH_MAX - 64], path[PATH_MAX];
    int end;
    const int n = snprintf(folder, sizeof folder, "%s/vpps-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (n >= (int)sizeof folder || !mkdtemp(folder))
        return vpps_fail(VPPS_IO, "software SIMT: no temporary folder %.200s: %s", folder, strerror(errno));
    snprintf(path, sizeof path, "%s/%.32s", folder, name);
    const pid_t keeper = start_keeper(&end, folder);
    vpps_status status = write_file(path, bytes, size);
    if (status == VPPS_OK) status = use(path, context);
    unlink(path);
    rmdir(folder);
    if (end >= 0) close(end);
    while (keeper > 0 && waitpid(keeper, NULL, 0) < 0 && errno == EINTR) {}
    return status;
}

struct compiled {
    char **library;
    size_t *size;
};

static vpps_status compile_file(const char *path, void *context) {
    const struct compiled *c = context;
    char library[PATH_MAX + 8], text[16384];
    snprintf(library, sizeof library, "%s.so", path);
    command to;
    VPPS_TRY(make_command(&to, path, library));
    bool good = false;
    vpps_status status = run(to.arguments, text, sizeof text, &good);
    if (status == VPPS_OK) status = good ? vpps_file_read_all(library, c->library, c->size) : refused(text);
    unlink(library);
    return status;
}

vpps_status vpps_simt_compile(const char *text, size_t text_bytes, void **library, size_t *size) {
    char *bytes = NULL;
    struct compiled c = {&bytes, size};
    const vpps_status status = vpps_simt_with_file("kernel.cc", text, text_bytes, compile_file, &c);
    *library = bytes;
    return status;
}
