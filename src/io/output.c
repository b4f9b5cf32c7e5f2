/* output.c - writing a file so that a crash at any instant leaves the old one or the new one.
 *
 * The order is what makes it so (rename(2) is atomic; fsync(2), NOTES: a file's fsync does not flush its directory
 * entry): write a new file, fsync it, rename it over the path, fsync the folder. All steps go through the folder's
 * descriptor, so the folder itself may be moved meanwhile. */
#include "output.h"

#include "base/base.h"
#include "descriptor.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>

#define WRITE_BYTES ((size_t)1 << 30) /* Linux writes at most 0x7ffff000 bytes at once */
#define TEMPORARY_TRIES 100
#define MAX_LINKS 40   /* as Linux follows */
#define BASE_BYTES 200 /* of the path's last part in the temporary name, which NAME_MAX limits to 255 */
#define TEMPORARY_MARK ".tmp-"

static vpps_status fail_io(const char *path, const char *step) {
    const int error = errno;
    return vpps_fail(VPPS_IO, "%s%s: %s: %s", VPPS_PATH_ARGS(path), step, strerror(error));
}

static vpps_status no_memory(const char *path) {
    return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(path));
}

/* ---------------------------------------------------------------- where a path leads */

int vpps_output_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (size_t i = 0; i < VPPS_COUNT(folders); i++) {
        const size_t n = strlen(folders[i]);
        uint64_t fd;
        if (strncmp(path, folders[i], n) == 0 && vpps_read_number(path + n, INT_MAX, &fd)) return (int)fd;
    }
    return -1;
}

/* What a link at `path` points to, as a path from here. */
static char *join_link(const char *path, const char *link) {
    const char *slash = strrchr(path, '/');
    char *joined = NULL;
    if (*link == '/' || !slash) return strdup(link);
    return asprintf(&joined, "%.*s/%s", (int)(slash - path), path, link) < 0 ? NULL : joined;
}

vpps_status vpps_output_target(const char *path, char **target) {
    char link[PATH_MAX];
    *target = NULL;
    char *at = strdup(path);
    for (int links = 0; at && vpps_output_descriptor(at) < 0; links++) {
        const ssize_t n = readlink(at, link, sizeof link - 1);
        if (n < 0) break;
        link[n] = '\0';
        char *next = join_link(at, link);
        free(at);
        at = next;
        if (links < MAX_LINKS) continue;
        free(at);
        errno = ELOOP;
        return fail_io(path, "cannot be followed");
    }
    *target = at;
    return at ? VPPS_OK : no_memory(path);
}

/* The folder of o's target, opened, and the target's last part. */
static vpps_status open_folder(vpps_output *o) {
    const char *slash = strrchr(o->target, '/');
    o->base = slash ? slash + 1 : o->target;
    char *name = slash ? strndup(o->target, slash == o->target ? 1 : (size_t)(slash - o->target)) : strdup(".");
    if (!name) return no_memory(o->path);
    o->folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int error = errno;
    free(name);
    errno = error;
    return o->folder >= 0 ? VPPS_OK : fail_io(o->path, "its folder cannot be opened");
}

/* ---------------------------------------------------------------- temporary files */

static const char *skip_digits(const char *at) {
    while (isdigit((unsigned char)*at)) at++;
    return at;
}

/* BASE.tmp-PID-NUMBER */
static bool is_temporary_of(const char *name, const char *base) {
    const size_t n = strnlen(base, BASE_BYTES), mark = strlen(TEMPORARY_MARK);
    if (strncmp(name, base, n) != 0 || strncmp(name + n, TEMPORARY_MARK, mark) != 0) return false;
    const char *pid = name + n + mark, *dash = skip_digits(pid);
    if (dash == pid || *dash != '-') return false;
    const char *end = skip_digits(dash + 1);
    return end > dash + 1 && !*end;
}

/* A temporary file that is not locked is not being written. */
static void remove_if_left(int folder, const char *name) {
    const int fd = openat(folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(folder, name, 0);
    close(fd);
}

/* Removes the files that killed processes left beside the path, as far as possible. */
static void remove_left_over(const vpps_output *o) {
    const int copy = openat(o->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* closedir closes it */
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir) {
        if (copy >= 0) close(copy);
        return;
    }
    for (const struct dirent *item; (item = readdir(dir));) {
        if (is_temporary_of(item->d_name, o->base)) remove_if_left(o->folder, item->d_name);
    }
    closedir(dir);
}

/* Is the new file still there? Another process may have removed it as a left-over before it was locked. */
static bool lock_temporary(int fd) {
    struct stat info;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    return fstat(fd, &info) == 0 && info.st_nlink > 0; /* a file system without locks has no lock to wait for */
}

static vpps_status open_temporary(vpps_output *o) {
    static atomic_uint counter;
    remove_left_over(o);
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        char name[sizeof o->temporary];
        snprintf(name, sizeof name, "%.*s" TEMPORARY_MARK "%ld-%u", BASE_BYTES, o->base, (long)getpid(),
                 atomic_fetch_add(&counter, 1));
        const int fd = openat(o->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd >= 0 && lock_temporary(fd)) {
            o->fd = fd;
            memcpy(o->temporary, name, sizeof name);
            return VPPS_OK;
        }
        if (fd < 0 && errno != EEXIST && errno != EINTR) break; /* EEXIST: left by a process that had this number */
        if (fd >= 0) close(fd);
        errno = EAGAIN;
    }
    return fail_io(o->path, "no temporary file can be made beside it");
}

/* ---------------------------------------------------------------- an output */

static void close_output(vpps_output *o) {
    if (o->fd >= 0) close(o->fd);
    if (o->folder >= 0) close(o->folder);
    free(o->target);
    *o = (vpps_output){.fd = -1, .folder = -1};
}

/* *direct: the path is no regular file, and has been opened. For a folder the later rename fails. */
static vpps_status open_directly(vpps_output *o, bool *direct) {
    struct stat info;
    const int descriptor = vpps_output_descriptor(o->target);
    *direct = true;
    if (descriptor >= 0) {
        o->fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    } else if (stat(o->target, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
        *direct = false;
        return VPPS_OK;
    } else {
        do { o->fd = open(o->target, O_WRONLY | O_CLOEXEC | O_NOCTTY); } while (o->fd < 0 && errno == EINTR);
    }
    return o->fd >= 0 ? VPPS_OK : fail_io(o->path, "cannot be opened");
}

vpps_status vpps_output_open(vpps_output *o, const char *path) {
    bool direct;
    *o = (vpps_output){.path = path, .fd = -1, .folder = -1};
    VPPS_TRY(vpps_output_target(path, &o->target));
    vpps_status status = open_directly(o, &direct);
    if (status == VPPS_OK && !direct) status = open_folder(o);
    if (status == VPPS_OK && !direct) status = open_temporary(o);
    if (status != VPPS_OK) close_output(o);
    return status;
}

vpps_status vpps_output_write(vpps_output *o, const void *bytes, uint64_t n_bytes) {
    const char *at = bytes;
    while (n_bytes > 0) {
        const ssize_t n = write(o->fd, at, n_bytes < WRITE_BYTES ? (size_t)n_bytes : WRITE_BYTES);
        if (n > 0) {
            at += n;
            n_bytes -= (uint64_t)n;
        } else if (n == 0) {
            errno = ENOSPC; /* POSIX does not define a write of 0 bytes; failing is better than retrying for ever */
            return fail_io(o->path, "cannot be written");
        } else if (errno != EINTR) {
            return fail_io(o->path, "cannot be written");
        }
    }
    return VPPS_OK;
}

/* The new file becomes the path's. */
static vpps_status rename_output(vpps_output *o) {
    if (fsync(o->fd) != 0) return fail_io(o->path, "cannot be flushed to disk");
    if (renameat(o->folder, o->temporary, o->folder, o->base) != 0) return fail_io(o->path, "cannot be replaced");
    *o->temporary = '\0';
    if (fsync(o->folder) == 0 || errno == EINVAL) return VPPS_OK; /* EINVAL: this file system has no such flush */
    return fail_io(o->path, "is written, but its folder cannot be flushed to disk");
}

vpps_status vpps_output_commit(vpps_output *o) {
    vpps_status status = o->folder >= 0 ? rename_output(o) : VPPS_OK;
    if (status == VPPS_OK) {
        const int fd = o->fd;
        o->fd = -1;
        if (close(fd) != 0 && errno != EINTR) status = fail_io(o->path, "cannot be closed");
    }
    vpps_output_discard(o);
    return status;
}

void vpps_output_discard(vpps_output *o) {
    if (o->folder >= 0 && *o->temporary) unlinkat(o->folder, o->temporary, 0);
    close_output(o);
}

vpps_status vpps_output_write_file(const char *path, const void *bytes, size_t n_bytes) {
    vpps_output o;
    VPPS_TRY(vpps_output_open(&o, path));
    const vpps_status status = vpps_output_write(&o, bytes, n_bytes);
    if (status == VPPS_OK) return vpps_output_commit(&o);
    vpps_output_discard(&o);
    return status;
}

vpps_status vpps_output_print(const char *path, vpps_status (*print)(const void *context, FILE *f),
                              const void *context) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    vpps_status status = f ? print(context, f) : VPPS_MEMORY;
    const bool whole = f && !ferror(f);
    if (f && fclose(f) != 0 && status == VPPS_OK) status = VPPS_MEMORY;
    if (status == VPPS_MEMORY || (status == VPPS_OK && !whole)) status = no_memory(path);
    if (status == VPPS_OK) status = vpps_output_write_file(path, text, n);
    free(text);
    return status;
}

/* The path is not opened: a FIFO would wait for its reader, which would then see an end. */
static vpps_status check_directly(const char *path, const char *target, bool *direct) {
    struct stat info;
    const int descriptor = vpps_output_descriptor(target);
    *direct = true;
    if (descriptor >= 0) {
        const int flags = fcntl(descriptor, F_GETFL);
        if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) return VPPS_OK;
        if (flags >= 0) errno = EBADF;
        return fail_io(path, "cannot be written");
    }
    *direct = false;
    if (stat(target, &info) != 0 || S_ISREG(info.st_mode)) return VPPS_OK;
    *direct = true;
    if (S_ISDIR(info.st_mode)) return vpps_fail(VPPS_IO, "%s%s: it is a folder", VPPS_PATH_ARGS(path));
    return access(target, W_OK) == 0 ? VPPS_OK : fail_io(path, "cannot be written");
}

vpps_status vpps_output_check(const char *path) {
    vpps_output o;
    char *target;
    bool direct;
    VPPS_TRY(vpps_output_target(path, &target));
    const vpps_status status = check_directly(path, target, &direct);
    free(target);
    if (status != VPPS_OK || direct) return status;
    VPPS_TRY(vpps_output_open(&o, path));
    vpps_output_discard(&o);
    return VPPS_OK;
}
