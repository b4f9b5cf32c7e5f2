/* output_place.c - finds the file that an output's path names, following symbolic links one by one. */
#include "output_place.h"

#include "base/base.h"
#include "descriptor.h"

#include <errno.h>

#define MAX_LINKS 40 /* as many symbolic links as Linux follows */

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
