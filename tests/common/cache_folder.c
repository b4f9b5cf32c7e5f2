/* cache_folder.c - see cache_folder.h. */
#include "common/cache_folder.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[256], cache[300];

const char *cache_folder_make(void) {
    const char *folder = getenv("TMPDIR");
    snprintf(base, sizeof base, "%s/vpps-cache-XXXXXX", folder && *folder ? folder : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(base));
    snprintf(cache, sizeof cache, "%s/cache", base);
    ck_assert_int_eq(setenv("VPPS_CACHE_DIR", cache, 1), 0);
    unsetenv("VPPS_CACHE_BYTES");
    return cache;
}

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *where) {
    (void)info;
    (void)flag;
    (void)where;
    return remove(path);
}

void cache_folder_remove(void) { ck_assert_int_eq(nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0); }

const char *cache_folder_path(const char *name) {
    static char paths[2][600];
    static int turn;
    turn = !turn;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", cache, name);
    return paths[turn];
}

int cache_folder_count(char *entry, size_t entry_bytes) {
    int n = 0;
    if (entry) *entry = '\0';
    DIR *dir = opendir(cache);
    if (!dir) return 0;
    for (const struct dirent *item; (item = readdir(dir));) {
        const size_t length = strlen(item->d_name);
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
        n++;
        if (entry && length > 5 && strcmp(item->d_name + length - 5, ".vpps") == 0) {
            snprintf(entry, entry_bytes, "%s/%s", cache, item->d_name);
        }
    }
    closedir(dir);
    return n;
}

char *cache_folder_load(const char *path, size_t *n) {
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

void cache_folder_store(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}
