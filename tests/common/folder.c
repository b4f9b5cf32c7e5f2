/* folder.c - see folder.h. */
#include "common/folder.h"

#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[256], cache[300];
static pid_t owner; /* the process that made the folder, and is to remove it; 0: there is no folder */

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *where) {
    (void)info;
    (void)flag;
    (void)where;
    return remove(path);
}

static void folder_remove(void) {
    if (owner == getpid() && nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0) perror(base);
    owner = 0;
}

const char *folder_make(void) {
    static bool once;
    const char *folder = getenv("TMPDIR");
    if (!once) once = atexit(folder_remove) == 0;
    folder_remove();
    snprintf(base, sizeof base, "%s/vpps-test-XXXXXX", folder && *folder ? folder : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(base));
    owner = getpid();
    return base;
}

const char *cache_folder_make(void) {
    folder_make();
    snprintf(cache, sizeof cache, "%s/cache", base);
    ck_assert_int_eq(setenv("VPPS_CACHE_DIR", cache, 1), 0);
    unsetenv("VPPS_CACHE_BYTES");
    return cache;
}

static const char *path_in(const char *folder, const char *name) {
    static char paths[4][600];
    static unsigned turn;
    turn = (turn + 1) % 4;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
    return paths[turn];
}

const char *folder_path(const char *name) { return path_in(base, name); }
const char *cache_folder_path(const char *name) { return path_in(cache, name); }

void cache_folder_each(void (*see)(const char *path)) {
    DIR *dir = opendir(cache);
    for (const struct dirent *item; dir && (item = readdir(dir));)
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0) see(cache_folder_path(item->d_name));
    if (dir) closedir(dir);
}

static int n_files;
static char last_entry[600];

static void note_file(const char *path) {
    const char *ending = strrchr(path, '.');
    n_files++;
    if (ending && !strcmp(ending, ".vpps")) snprintf(last_entry, sizeof last_entry, "%s", path);
}

int cache_folder_count(char *entry, size_t entry_bytes) {
    n_files = 0;
    *last_entry = '\0';
    cache_folder_each(note_file);
    if (entry) snprintf(entry, entry_bytes, "%s", last_entry);
    return n_files;
}

char *folder_load(const char *path, size_t *n) {
    struct stat info;
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fstat(fileno(f), &info), 0);
    *n = (size_t)info.st_size;
    char *bytes = malloc(*n + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

void folder_store(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}
