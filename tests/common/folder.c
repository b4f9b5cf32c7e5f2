/* folder.c - see folder.h. */
#include "common/folder.h"

#include <ftw.h>
#include <glob.h>
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

static glob_t found;

static size_t find(const char *names) {
    char pattern[400];
    snprintf(pattern, sizeof pattern, "%s/%s", cache, names);
    globfree(&found);
    return glob(pattern, GLOB_BRACE, NULL, &found) == 0 ? found.gl_pathc : 0;
}

static const char *const any = "{.[!.]*,*}";

void cache_folder_each(void (*see)(const char *path)) {
    for (size_t i = 0, n = find(any); i < n; i++) see(found.gl_pathv[i]);
}

int cache_folder_count(void) { return (int)find(any); }

const char *cache_folder_entry(void) {
    return find("*.vpps") ? path_in(cache, strrchr(found.gl_pathv[0], '/') + 1) : "";
}

char *folder_load(const char *path, size_t *n) {
    struct stat info;
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fstat(fileno(f), &info), 0);
    *n = (size_t)info.st_size;
    char *bytes = need(malloc(*n + 1));
    ck_assert_uint_eq(fread(bytes, 1, *n, f), *n);
    fclose(f);
    bytes[*n] = '\0';
    return bytes;
}

void folder_store(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}
