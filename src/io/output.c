/* output.c - finds the file that an output's path names, and writes it so that a crash at any instant leaves either the old file or the new one.
 *
 * The order of steps guarantees this (rename(2) is atomic; fsync(2), NOTES: a file's fsync does not flush its
 * directory entry): write a new file, fsync it, rename it to the path, fsync the folder. All steps use the folder's
 * descriptor, so the folder itself may be moved meanwhile. */
#include "output.h"

#include "base/base.h"
#include "descriptor.h"

#include <errno.h>
#include <stdatomic.h>

#define WRITE_BYTES ((size_t)1 << 30) /* Linux writes at most 0x7ffff000 bytes at once */
#define TEMPORARY_TRIES 10000
#define MAX_LINKS 40   /* as many symbolic links as Linux follows */
#define BASE_BYTES 200 /* most bytes of the file's name that the temporary file's name repeats, since NAME_MAX is 255 */

static vpps_status fail_io(const char *path, const char *step) {
    const int error = errno;
    return vpps_fail(VPPS_IO, "%s%s: %s: %s", VPPS_PATH_ARGS(path), step, strerror(error));
}

static vpps_status no_memory(const char *path) {
    return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(path));
}

/* ---------------------------------------------------------------- the file that a path names */

/* Returns the descriptor of this process that a path names, -1 if it names none. */
static int descriptor_of(const char *path) {
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

/* Opens the folder of `path`, which is relative to p's folder, as p's new folder; the path's last part becomes p's base. Returns NULL, or a
 * text that says what failed, with the reason in errno. */
static const char *enter(vpps_output_place *p, char *path) {
    char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    if (strlen(base) > NAME_MAX) {
        errno = ENAMETOOLONG;
        return "cannot be opened";
    }
    memcpy(p->base, base, strlen(base) + 1);
    if (slash) slash[slash == path] = '\0'; /* a file in the root folder: its folder's path is "/" */
    const int folder = openat(p->folder, slash ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC), error = errno;
    if (p->folder >= 0) close(p->folder);
    p->folder = folder;
    errno = error;
    return folder >= 0 ? NULL : "its folder cannot be opened";
}

/* Returns whether, by protected_symlinks's rule, another user may have put the file here to capture what this user writes. */
static bool is_planted(const struct stat *folder, const struct stat *file) {
    const mode_t everybodys = S_ISVTX | S_IWOTH;
    return (folder->st_mode & everybodys) == everybodys && file->st_uid != geteuid() && file->st_uid != folder->st_uid;
}

/* Examines the file in p. If the file is a link, sets *link and replaces `path` (PATH_MAX bytes) by the link's target. Returns NULL, or a text that
 * says what failed, with the reason in errno. Where the file is not planted, only users who may write here anyway can replace it meanwhile. */
static const char *look(vpps_output_place *p, char *path, bool *link) {
    struct stat folder;
    const char *base = *p->base ? p->base : ".";
    p->exists = fstatat(p->folder, base, &p->info, AT_SYMLINK_NOFOLLOW) == 0;
    *link = p->exists && S_ISLNK(p->info.st_mode);
    if (!p->exists) return errno == ENOENT ? NULL : "cannot be looked at";
    if (fstat(p->folder, &folder) != 0) return "cannot be looked at";
    if (is_planted(&folder, &p->info)) {
        errno = EACCES;
        return *link ? "is another user's link in a folder where everybody may write, and is not followed"
                     : "is another user's file in a folder where everybody may write, and is not written";
    }
    if (!*link) return NULL;
    const ssize_t n = readlinkat(p->folder, base, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = '\0';
    return n > 0 ? NULL : "cannot be followed";
}

vpps_status vpps_output_find(vpps_output_place *p, const char *path) {
    char at[PATH_MAX];
    *p = (vpps_output_place){.folder = AT_FDCWD};
    const char *failed = strlen(path) < sizeof at ? NULL : "cannot be opened";
    errno = ENAMETOOLONG;
    if (!failed) memcpy(at, path, strlen(path) + 1);
    bool link = true;
    for (int links = 0; link && !failed && (p->descriptor = descriptor_of(at)) < 0; links++) {
        failed = enter(p, at);
        if (!failed) failed = look(p, at, &link);
        if (failed || !link || links < MAX_LINKS) continue;
        errno = ELOOP;
        failed = "cannot be followed";
    }
    if (!failed) return VPPS_OK;
    const int error = errno;
    vpps_output_place_close(p);
    return vpps_fail(VPPS_IO, "%s%s: %s: %s", VPPS_PATH_ARGS(path), failed, strerror(error));
}

void vpps_output_place_close(vpps_output_place *p) {
    if (p->folder >= 0) close(p->folder);
    p->folder = -1;
}

bool vpps_output_holds_bytes(const vpps_output_place *p) {
    return p->descriptor < 0 && p->exists && S_ISREG(p->info.st_mode) && p->info.st_size > 0;
}

int vpps_output_place_open(const vpps_output_place *p, int flags) {
    if (p->descriptor >= 0) return fcntl(p->descriptor, F_DUPFD_CLOEXEC, 0);
    for (;;) {
        const int fd = openat(p->folder, p->base, flags | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0666);
        if (fd >= 0 || errno != EINTR) return fd;
    }
}

/* ---------------------------------------------------------------- temporary files */

/* Outputs that have a temporary file; NULL: none. A file beyond them stays when a signal ends the process. */
static _Atomic(vpps_output *) writing[8];

/* Puts `now` in the place of `before`, if it is listed. */
static void relist(vpps_output *before, vpps_output *now) {
    bool found = false;
    for (size_t i = 0; i < VPPS_COUNT(writing) && !found; i++) {
        vpps_output *expected = before;
        found = atomic_compare_exchange_strong(&writing[i], &expected, now);
    }
}

void vpps_output_abandon(void) {
    for (size_t i = 0; i < VPPS_COUNT(writing); i++) {
        const vpps_output *o = atomic_load(&writing[i]);
        if (o) unlinkat(o->folder, o->temporary, 0);
    }
}

/* Creates a file with the owner, group and mode of the file that it replaces, as far as this user may set them. If it has to have another
 * group, that group gets no more permissions than everybody has. */
static int create_temporary(const vpps_output *o) {
    const struct stat *old = &o->place.info;
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    if (!o->place.exists) return openat(o->folder, o->temporary, flags, 0666);
    const int fd = openat(o->folder, o->temporary, flags, 0600);
    if (fd < 0) return -1;
    const mode_t mode = old->st_mode & 0777, others = mode & 7;
    const bool same_group = fchown(fd, old->st_uid, old->st_gid) == 0 || fchown(fd, (uid_t)-1, old->st_gid) == 0;
    fchmod(fd, same_group ? mode : (mode & 0707) | others << 3); /* may fail on file systems without modes */
    return fd;
}

static vpps_status open_temporary(vpps_output *o) {
    static atomic_uint counter;
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        snprintf(o->temporary, sizeof o->temporary, "%.*s.tmp-%ld-%u", BASE_BYTES, o->place.base, (long)getpid(),
                 atomic_fetch_add(&counter, 1));
        relist(NULL, o); /* before the file exists, so that a signal cannot come between */
        o->fd = create_temporary(o);
        if (o->fd >= 0) return VPPS_OK;
        relist(o, NULL);
        /* EEXIST: a killed process of this PID left a file of that name */
        if (errno != EEXIST && errno != EINTR) break;
    }
    return fail_io(o->path, "no temporary file can be made beside it");
}

/* ---------------------------------------------------------------- an output */

static void close_output(vpps_output *o) {
    relist(o, NULL);
    if (o->fd >= 0) close(o->fd);
    if (o->folder >= 0) close(o->folder);
    vpps_output_place_close(&o->place);
    *o = (vpps_output){.fd = -1, .folder = -1, .place.folder = -1};
}

/* Returns whether the path is written directly: a device, FIFO or descriptor. False for a folder: the later rename fails on it. */
static bool is_direct(const vpps_output_place *place) {
    const mode_t mode = place->info.st_mode;
    return place->descriptor >= 0 || (place->exists && !S_ISREG(mode) && !S_ISDIR(mode));
}

static vpps_status open_place(vpps_output *o) {
    if (is_direct(&o->place)) {
        o->fd = vpps_output_place_open(&o->place, O_WRONLY);
        return o->fd >= 0 ? VPPS_OK : fail_io(o->path, "cannot be opened");
    }
    o->folder = openat(o->place.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return o->folder >= 0 ? open_temporary(o) : fail_io(o->path, "its folder cannot be opened");
}

vpps_status vpps_output_open(vpps_output *o, const char *path) {
    *o = (vpps_output){.path = path, .fd = -1, .folder = -1};
    VPPS_TRY(vpps_output_find(&o->place, path));
    const vpps_status status = open_place(o);
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
            errno = ENOSPC; /* POSIX does not define a write of 0 bytes: fails instead of retrying for ever */
            return fail_io(o->path, "cannot be written");
        } else if (errno != EINTR) {
            return fail_io(o->path, "cannot be written");
        }
    }
    return VPPS_OK;
}

static vpps_status rename_output(vpps_output *o) {
    if (fsync(o->fd) != 0) return fail_io(o->path, "cannot be flushed to disk");
    if (renameat(o->folder, o->temporary, o->folder, o->place.base) != 0) return fail_io(o->path, "cannot be replaced");
    *o->temporary = '\0';
    if (fsync(o->folder) == 0 || errno == EINVAL) return VPPS_OK; /* EINVAL: the file system cannot flush folders */
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

/* Checks a path of a device, FIFO or descriptor, which is written in place. Does not open the path: when it is closed again, a FIFO's reader would see an
 * end. */
static vpps_status check_direct(const char *path, const vpps_output_place *place) {
    if (place->descriptor < 0)
        return faccessat(place->folder, place->base, W_OK, 0) == 0 ? VPPS_OK : fail_io(path, "cannot be written");
    const int flags = fcntl(place->descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) return VPPS_OK;
    if (flags >= 0) errno = EBADF;
    return fail_io(path, "cannot be written");
}

vpps_status vpps_output_check(const char *path) {
    vpps_output_place place;
    vpps_output o;
    VPPS_TRY(vpps_output_find(&place, path));
    const bool direct = is_direct(&place), folder = place.exists && S_ISDIR(place.info.st_mode);
    vpps_status status = direct ? check_direct(path, &place) : VPPS_OK;
    vpps_output_place_close(&place);
    if (folder) status = vpps_fail(VPPS_IO, "%s%s: it is a folder", VPPS_PATH_ARGS(path));
    if (status != VPPS_OK || direct) return status;
    VPPS_TRY(vpps_output_open(&o, path));
    vpps_output_discard(&o);
    return VPPS_OK;
}
