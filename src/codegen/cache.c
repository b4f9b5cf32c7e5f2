/* cache.c - the folder of compiled kernels: finds it, reads and writes entries, and limits its size.
 *
 * Processes read and write the folder without locks. A reader's open file keeps its contents when
 * another process replaces or removes the file; a writer's file gets its final name only when it is complete. Entries are recognised by
 * their names alone, so other files are never touched. */
#include "codegen/cache.h"

#include "codegen/cache_entry.h"
#include "io/output.h"
#include "io/stream.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { DEFAULT_MIB = 512, STALE_SECONDS = 3600 };

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static vpps_status name_folder(char path[PATH_MAX]) {
    const char *own = variable("VPPS_CACHE_DIR"), *base = variable("XDG_CACHE_HOME"), *home = variable("HOME");
    int n;
    if (own) {
        n = snprintf(path, PATH_MAX, "%s", own);
    } else if (base && *base == '/') { /* XDG Base Directory Specification: a relative path is ignored */
        n = snprintf(path, PATH_MAX, "%s/vpps", base);
    } else if (home) {
        n = snprintf(path, PATH_MAX, "%s/.cache/vpps", home);
    } else {
        return vpps_fail(VPPS_IO, "the kernel cache has no folder: set VPPS_CACHE_DIR, XDG_CACHE_HOME or HOME");
    }
    if (n < PATH_MAX) return VPPS_OK;
    return vpps_fail(VPPS_IO, "the path of the kernel cache's folder is longer than %d bytes", PATH_MAX - 1);
}

static vpps_status fail_io(const char *path, const char *step) {
    const int error = errno;
    return vpps_fail(VPPS_IO, "kernel cache %s%s: %s: %s", VPPS_PATH_ARGS(path), step, strerror(error));
}

/* Creates the folder and its parents, accessible only to the user (XDG Base Directory Specification: 0700). */
static vpps_status make_folder(const char *path) {
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) return fail_io(part, "cannot be made");
        *slash = '/';
    }
    if (mkdir(part, 0700) != 0 && errno != EEXIST) return fail_io(part, "cannot be made");
    return VPPS_OK;
}

/* Returns whether a user other than this one and root can change the file; the cache holds code that will run. */
static bool is_foreign(const struct stat *info) {
    return (info->st_uid != geteuid() && info->st_uid != 0) || (info->st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens the cache's folder. *fd is -1 if the folder does not exist yet. */
static vpps_status open_folder(const char *path, int *fd) {
    struct stat info;
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0) return errno == ENOENT ? VPPS_OK : fail_io(path, "cannot be opened");
    if (fstat(*fd, &info) == 0 && !is_foreign(&info)) return VPPS_OK;
    close(*fd);
    *fd = -1;
    return vpps_fail(VPPS_IO,
                     "kernel cache %s%s: is refused, since other users may write to it, and what it holds is run: "
                     "chmod go-w, or set VPPS_CACHE_DIR",
                     VPPS_PATH_ARGS(path));
}

typedef struct cached_file {
    char name[VPPS_ENTRY_NAME_BYTES];
    uint64_t bytes;
    struct timespec used;
} cached_file;

typedef struct file_list {
    cached_file *files;
    size_t n;
} file_list;

/* Compares entries for qsort: the most recently used comes first; names decide if the times are equal. */
static int compare_files(const void *left, const void *right) {
    const cached_file *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec > b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec) return a->used.tv_nsec > b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

static vpps_status see_file(file_list *list, int folder, const char *name, bool tidy) {
    struct stat info;
    const bool temporary = vpps_entry_is_temporary_name(name);
    if (!temporary && !vpps_entry_is_name(name)) return VPPS_OK;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) return VPPS_OK;
    if (temporary) { /* A process is writing this temporary file, or was killed while it wrote the file. */
        if (tidy && time(NULL) - info.st_mtim.tv_sec > STALE_SECONDS) unlinkat(folder, name, 0);
        return VPPS_OK;
    }
    if (!VPPS_RESERVE(list->files, list->n + 1))
        return vpps_fail(VPPS_MEMORY, "no memory for a list of the kernel cache");
    cached_file *file = &list->files[list->n++];
    *file = (cached_file){.bytes = (uint64_t)info.st_size, .used = info.st_mtim};
    snprintf(file->name, sizeof file->name, "%.*s", (int)sizeof file->name - 1, name);
    return VPPS_OK;
}

/* Lists all entries, the most recently used first. `tidy`: also removes stale temporary files. Free list->files also after a failure. */
static vpps_status list_files(file_list *list, int folder, const char *path, bool tidy) {
    *list = (file_list){0};
    const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* closed by closedir */
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir) {
        const vpps_status status = fail_io(path, "cannot be listed");
        if (copy >= 0) close(copy);
        return status;
    }
    vpps_status status = VPPS_OK;
    for (const struct dirent *item; status == VPPS_OK && (item = readdir(dir));)
        status = see_file(list, folder, item->d_name, tidy);
    closedir(dir);
    if (status == VPPS_OK && list->n > 0) qsort(list->files, list->n, sizeof *list->files, compare_files);
    return status;
}

/* Reads a whole file. *bytes: NULL if the file cannot be read, is no regular file, or other users may write to it. *there: false if the
 * file does not exist. The caller closes *fd. */
static vpps_status load_file(int folder, const char *name, int *fd, char **bytes, size_t *n, bool *there) {
    struct stat info;
    *bytes = NULL;
    *fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *there = *fd >= 0 || errno != ENOENT;
    if (*fd < 0 || fstat(*fd, &info) != 0 || !S_ISREG(info.st_mode) || is_foreign(&info)) return VPPS_OK;
    *bytes = malloc((size_t)info.st_size + 1);
    if (!*bytes) return vpps_fail(VPPS_MEMORY, "no memory for %lld bytes of the kernel cache", (long long)info.st_size);
    if (vpps_file_read(*fd, name, *bytes, (size_t)info.st_size, n) == VPPS_OK) return VPPS_OK;
    free(*bytes);
    *bytes = NULL;
    return VPPS_OK;
}

static vpps_status read_entry(int folder, const char *digits, void **bytes, size_t *size) {
    char name[VPPS_ENTRY_NAME_BYTES], *file;
    size_t n = 0;
    int fd;
    bool there;
    vpps_entry entry;
    snprintf(name, sizeof name, "%s.vpps", digits);
    const vpps_status status = load_file(folder, name, &fd, &file, &n, &there);
    if (file && vpps_entry_decode(file, n, &entry) && !strcmp(entry.key, digits)) {
        memmove(file, entry.payload, entry.payload_bytes);
        *bytes = file;
        *size = entry.payload_bytes;
        futimens(fd, NULL); /* marks the entry as used; does nothing without the right to set the file's time */
    } else {
        free(file);
    }
    if (fd >= 0) close(fd);
    return status;
}

vpps_status vpps_cache_read(const vpps_cache_key *key, void **bytes, size_t *size) {
    char path[PATH_MAX], digits[VPPS_ENTRY_DIGITS + 1];
    int folder = -1;
    *bytes = NULL;
    *size = 0;
    vpps_entry_hash_key(key, digits);
    if (name_folder(path) != VPPS_OK || open_folder(path, &folder) != VPPS_OK || folder < 0) return VPPS_OK;
    const vpps_status status = read_entry(folder, digits, bytes, size);
    close(folder);
    return status;
}

static vpps_status size_limit(uint64_t *limit) {
    const char *text = variable("VPPS_CACHE_BYTES");
    *limit = (uint64_t)DEFAULT_MIB << 20;
    if (!text || vpps_read_number(text, UINT64_MAX, limit)) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "VPPS_CACHE_BYTES: expected a number of bytes, found '%.40s'", text);
}

static vpps_status write_entry(const char *path, const char *digits, const char *header, size_t header_bytes,
                               const void *payload, size_t payload_bytes) {
    char file[PATH_MAX + VPPS_ENTRY_NAME_BYTES];
    struct stat info;
    vpps_output o;
    snprintf(file, sizeof file, "%s/%s.vpps", path, digits);
    if (lstat(file, &info) == 0 && (!S_ISREG(info.st_mode) || is_foreign(&info))) unlink(file); /* is no entry */
    VPPS_TRY(vpps_output_open(&o, file));
    if (fstat(o.fd, &info) == 0) fchmod(o.fd, info.st_mode & 0755); /* an entry that others may write to is not read */
    vpps_status status = vpps_output_write(&o, header, header_bytes);
    if (status == VPPS_OK) status = vpps_output_write(&o, payload, payload_bytes);
    if (status == VPPS_OK) return vpps_output_commit(&o);
    vpps_output_discard(&o);
    return status;
}

/* Removes the least recently used entries until at most `limit` bytes are left (0: all entries). Adds to the number and bytes removed. */
static vpps_status prune(int folder, const char *path, uint64_t limit, uint32_t *removed, uint64_t *removed_bytes) {
    file_list list;
    vpps_status status = list_files(&list, folder, path, true);
    uint64_t bytes = 0;
    for (size_t i = 0; i < list.n && status == VPPS_OK; i++) {
        bytes += list.files[i].bytes;
        if (limit && bytes <= limit) continue;
        if (unlinkat(folder, list.files[i].name, 0) == 0) {
            ++*removed;
            *removed_bytes += list.files[i].bytes;
        } else if (errno != ENOENT) {
            status = fail_io(path, "an entry cannot be removed");
        }
    }
    VPPS_FREE_ARRAYS(list.files);
    return status;
}

vpps_status vpps_cache_write(const vpps_cache_key *key, const void *bytes, size_t size) {
    char path[PATH_MAX], digits[VPPS_ENTRY_DIGITS + 1], *header = NULL;
    size_t header_bytes = 0;
    uint64_t limit;
    int folder = -1;
    VPPS_TRY(size_limit(&limit));
    VPPS_TRY(name_folder(path));
    vpps_entry_hash_key(key, digits);
    VPPS_TRY(vpps_entry_encode(key, digits, bytes, size, &header, &header_bytes));
    vpps_status status = VPPS_OK;
    if (header_bytes > limit || size > limit - header_bytes)
        status = vpps_fail(VPPS_IO, "kernel cache %s%s: an entry of %zu bytes is more than its limit of %llu",
                           VPPS_PATH_ARGS(path), header_bytes + size, (unsigned long long)limit);
    if (status == VPPS_OK) status = make_folder(path);
    if (status == VPPS_OK) status = open_folder(path, &folder);
    if (status == VPPS_OK && folder < 0)
        status = vpps_fail(VPPS_IO, "kernel cache %s%s: is gone", VPPS_PATH_ARGS(path));
    if (status == VPPS_OK) status = write_entry(path, digits, header, header_bytes, bytes, size);
    if (status == VPPS_OK) status = prune(folder, path, limit, &(uint32_t){0}, &(uint64_t){0});
    if (folder >= 0) close(folder);
    free(header);
    return status;
}

/* Locks the cache by a lock on its folder. The system releases the lock when the process ends. */
int vpps_cache_lock(uint64_t most_ms) {
    const struct timespec wait = {.tv_nsec = 1000 * 1000};
    char path[PATH_MAX];
    int folder = -1;
    if (name_folder(path) != VPPS_OK || make_folder(path) != VPPS_OK || open_folder(path, &folder) != VPPS_OK)
        return -1;
    for (uint64_t ms = 0; ms < most_ms && folder >= 0; ms++) {
        if (flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
        if (errno != EWOULDBLOCK && errno != EINTR) break;
        nanosleep(&wait, NULL);
    }
    if (folder >= 0) close(folder);
    return -1;
}

void vpps_cache_unlock(int lock) {
    if (lock >= 0) close(lock);
}

/* Calls see() for one entry. *more: see()'s result, whether to show further entries. */
static vpps_status show_file(int folder, const cached_file *file, bool (*see)(const vpps_cache_entry *, void *),
                             void *context, bool *more) {
    vpps_cache_entry shown = {
        .kind = "", .description = "", .toolchain = "", .bytes = file->bytes, .used = file->used.tv_sec};
    vpps_entry entry;
    char *bytes;
    size_t n = 0;
    int fd;
    bool there;
    const vpps_status status = load_file(folder, file->name, &fd, &bytes, &n, &there);
    if (fd >= 0) close(fd);
    if (status == VPPS_OK && there) { /* another process may have removed the entry */
        shown.damaged =
            !bytes || !vpps_entry_decode(bytes, n, &entry) || strncmp(entry.key, file->name, VPPS_ENTRY_DIGITS) != 0;
        if (!shown.damaged) {
            shown.kind = entry.kind;
            shown.description = entry.description;
            shown.toolchain = entry.toolchain;
        }
        snprintf(shown.file, sizeof shown.file, "%s", file->name);
        *more = see(&shown, context);
    }
    free(bytes);
    return status;
}

vpps_status vpps_cache_list(bool (*see)(const vpps_cache_entry *entry, void *context), void *context,
                            const char **folder) {
    static _Thread_local char path[PATH_MAX];
    int fd;
    VPPS_TRY(name_folder(path));
    if (folder) *folder = path;
    if (!see) return VPPS_OK;
    VPPS_TRY(open_folder(path, &fd));
    if (fd < 0) return VPPS_OK;
    file_list list;
    bool more = true;
    vpps_status status = list_files(&list, fd, path, false);
    for (size_t i = 0; i < list.n && status == VPPS_OK && more; i++)
        status = show_file(fd, &list.files[i], see, context, &more);
    VPPS_FREE_ARRAYS(list.files);
    close(fd);
    return status;
}

vpps_status vpps_cache_clear(uint32_t *removed, uint64_t *bytes) {
    char path[PATH_MAX];
    int fd;
    *removed = 0;
    *bytes = 0;
    VPPS_TRY(name_folder(path));
    VPPS_TRY(open_folder(path, &fd));
    if (fd < 0) return VPPS_OK;
    const vpps_status status = prune(fd, path, 0, removed, bytes);
    close(fd);
    return status;
}
