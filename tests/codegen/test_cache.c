/* test_cache.c - the kernel cache on disk: contents come back, damage is detected, size is limited, processes share it. */
#include "codegen/cache.h"
#include "common/folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY(source)                                                                                                    \
    { "cubin", "a network", "a compiler 1.0", source, sizeof source - 1 }
static const vpps_cache_key key = KEY("source"), other = KEY("other"), shared[] = {KEY("shared 0"), KEY("shared 1")};

static const char *cache; /* the folder of the check */
static void make_cache(void) { cache = cache_folder_make(); }

/* Checks that the entry exists and holds these bytes. */
static void check_entry(const vpps_cache_key *of, const void *wanted, size_t n) {
    FREED void *bytes;
    size_t size;
    TEST_OK(vpps_cache_read(of, &bytes, &size));
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(size, n);
    if (n > 0) ck_assert_mem_eq(bytes, wanted, n);
}

/* Checks that there is no entry, or one that is refused. */
static void check_none(const vpps_cache_key *of) {
    size_t size;
    void *bytes = &size;
    TEST_OK(vpps_cache_read(of, &bytes, &size));
    ck_assert_ptr_null(bytes);
}

static bool count_entry(const vpps_cache_entry *entry, void *context) {
    uint32_t *counts = context; /* good, damaged */
    counts[entry->damaged]++;
    return true;
}

static void check_counts(uint32_t good, uint32_t damaged) {
    uint32_t counts[2] = {0};
    TEST_OK(vpps_cache_list(count_entry, counts, NULL));
    ck_assert_uint_eq(counts[0], good);
    ck_assert_uint_eq(counts[1], damaged);
}

/* Returns the size of the entry's file. */
static size_t entry_bytes(void) {
    size_t n;
    free(folder_load(cache_folder_entry(), &n));
    return n;
}

static const char *limit_bytes(size_t bytes) {
    static char text[32];
    snprintf(text, sizeof text, "%zu", bytes);
    setenv("VPPS_CACHE_BYTES", text, 1);
    return text;
}

TEST_GROUP("cache", .before_each = make_cache);

/* ---------------------------------------------------------------- entries */

TEST(round_trip) {
    static const size_t sizes[] = {1, 0, 7, 100000, 3};
    static char payload[100000];
    for (size_t i = 0; i < sizeof payload; i++) payload[i] = (char)(i * 7 + i / 256);
    check_none(&key);
    for (size_t i = 0; i < VPPS_COUNT(sizes); i++) {
        TEST_OK(vpps_cache_write(&key, payload, sizes[i]));
        check_entry(&key, payload, sizes[i]);
    }
    ck_assert_int_eq(cache_folder_count(), 1);
}

/* Every member distinguishes keys, and bytes cannot move from one member to the next. */
TEST(keys_apart) {
    const vpps_cache_key keys[] = {{"cubin", "ab", "c", "s", 1}, {"simt", "ab", "c", "s", 1},
                                   {"cubin", "a", "bc", "s", 1}, {"cubin", "ab", "cs", "", 0},
                                   {"cubin", "ab", "c", "t", 1}, {"cubin", "ab", "c", "s\0", 2},
                                   {"cubin", "ab", "c", "", 0},  {"cubin", "ab", "", "cs", 2}};
    enum { N = VPPS_COUNT(keys) };
    for (int i = 0; i < N; i++) {
        check_none(&keys[i]);
        TEST_OK(vpps_cache_write(&keys[i], &i, sizeof i));
    }
    for (int i = 0; i < N; i++) check_entry(&keys[i], &i, sizeof i);
    check_counts(N, 0);
}

TEST(text_with_line_breaks) {
    const vpps_cache_key lines = {"cubin", "two\nlines\r", "key 0\nchecksum 0\n", "s", 1};
    TEST_OK(vpps_cache_write(&lines, "payload", 7));
    check_entry(&lines, "payload", 7);
    check_counts(1, 0);
}

/* Changes each byte in turn; also each shorter file, and a longer one: all are refused and replaced. */
TEST(damaged_entries) {
    size_t n;
    TEST_OK(vpps_cache_write(&key, "payload", 7));
    const char *path = cache_folder_entry();
    FREED char *file = folder_load(path, &n);
    ck_assert_uint_gt(n, 150);
    for (size_t i = 0; i < n; i++) {
        file[i] ^= (char)(1 << (i % 8));
        folder_store(path, file, n);
        check_none(&key);
        file[i] ^= (char)(1 << (i % 8));
        folder_store(path, file, i);
        check_none(&key);
    }
    check_counts(0, 1);
    file[n] = 'x';
    folder_store(path, file, n + 1);
    check_none(&key);
    TEST_OK(vpps_cache_write(&key, "payload", 7));
    check_entry(&key, "payload", 7);
    check_counts(1, 0);

    unlink(path); /* a whole entry under another one's name */
    TEST_OK(vpps_cache_write(&other, "other", 5));
    ck_assert_int_eq(rename(cache_folder_entry(), path), 0);
    check_none(&key);
    check_none(&other);
    check_counts(0, 1);

    unlink(path);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    check_none(&key);
    TEST_FAILS(vpps_cache_write(&key, "payload", 7), VPPS_IO, "cannot be replaced");
    ck_assert_int_eq(cache_folder_count(), 1); /* no temporary file */
}

/* ---------------------------------------------------------------- folder */

TEST(folders) {
    const char *folder;
    TEST_OK(vpps_cache_list(NULL, NULL, &folder));
    ck_assert_str_eq(folder, cache);
    setenv("HOME", cache_folder_path("home"), 1);
    setenv("XDG_CACHE_HOME", cache_folder_path("xdg"), 1);
    setenv("VPPS_CACHE_DIR", "", 1);
    TEST_OK(vpps_cache_list(NULL, NULL, &folder));
    ck_assert_str_eq(folder, cache_folder_path("xdg/vpps"));
    setenv("XDG_CACHE_HOME", "relative", 1);
    TEST_OK(vpps_cache_list(NULL, NULL, &folder));
    ck_assert_str_eq(folder, cache_folder_path("home/.cache/vpps"));
    check_counts(0, 0); /* no folder: no entries, and no failure */
    TEST_OK(vpps_cache_write(&key, "payload", 7));
    check_entry(&key, "payload", 7);
    struct stat info;
    ck_assert_int_eq(stat(cache_folder_path("home/.cache"), &info), 0);
    ck_assert_int_eq(info.st_mode & 077, 0);
    unsetenv("VPPS_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    check_entry(&key, "payload", 7);
    unsetenv("HOME");
    check_none(&key);
    TEST_FAILS(vpps_cache_write(&key, "payload", 7), VPPS_IO, "VPPS_CACHE_DIR");
    TEST_FAILS(vpps_cache_list(count_entry, NULL, NULL), VPPS_IO, "VPPS_CACHE_DIR");
}

TEST(impossible_folders) {
    static char long_path[8192];
    uint32_t removed;
    uint64_t bytes;
    folder_store(cache, "a file", 6);
    check_none(&key);
    TEST_FAILS(vpps_cache_write(&key, "payload", 7), VPPS_IO, cache);
    TEST_FAILS(vpps_cache_clear(&removed, &bytes), VPPS_IO, cache);
    setenv("VPPS_CACHE_DIR", cache_folder_path("below"), 1);
    TEST_FAILS(vpps_cache_write(&key, "payload", 7), VPPS_IO, cache);
    memset(long_path, 'n', sizeof long_path - 1);
    setenv("VPPS_CACHE_DIR", long_path, 1);
    check_none(&key);
    TEST_FAILS(vpps_cache_write(&key, "payload", 7), VPPS_IO, "longer than");
}

/* Files that others may change are neither read nor written, since the cache holds code that will run. */
TEST(foreign_writers) {
    static const mode_t modes[] = {0720, 0702, 0777, 01777};
    uint32_t removed;
    uint64_t bytes;
    const mode_t before = umask(0); /* new files must not be writable for others, whatever the umask */
    TEST_OK(vpps_cache_write(&key, "payload", 7));
    umask(before);
    check_entry(&key, "payload", 7);
    const char *path = cache_folder_entry();
    for (size_t i = 0; i < VPPS_COUNT(modes); i++) {
        ck_assert_int_eq(chmod(cache, modes[i]), 0);
        check_none(&key);
        TEST_FAILS(vpps_cache_write(&key, "payload", 7), VPPS_IO, "other users may write to it");
        TEST_FAILS(vpps_cache_clear(&removed, &bytes), VPPS_IO, cache);
    }
    ck_assert_int_eq(chmod(cache, 0755), 0);
    check_entry(&key, "payload", 7);
    static const mode_t entry_modes[] = {0620, 0602, 0666};
    for (size_t i = 0; i < VPPS_COUNT(entry_modes); i++) {
        ck_assert_int_eq(chmod(path, entry_modes[i]), 0);
        check_none(&key);
    }
    TEST_OK(vpps_cache_write(&key, "payload", 7)); /* replaced by an own file */
    check_entry(&key, "payload", 7);
    if (geteuid() == 0) { /* a file of another user, who may always write to it */
        ck_assert_int_eq(chown(path, 65534, 65534), 0);
        check_none(&key);
        ck_assert_int_eq(chown(path, 0, 0), 0);
        ck_assert_int_eq(chown(cache, 65534, 65534), 0);
        check_none(&key);
    }
}

/* Returns the child's exit status; 0: fine. Does not test root, which may write anywhere. */
static int use_as_reader(void) {
    void *bytes;
    size_t size;
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) return 1;
    if (vpps_cache_read(&key, &bytes, &size) != VPPS_OK || !bytes || size != 7) return 2;
    free(bytes);
    if (vpps_cache_write(&other, "payload", 7) != VPPS_IO) return 3;
    if (!strstr(vpps_error_message(), cache) || !strstr(vpps_error_message(), "Permission denied")) return 4;
    return 0;
}

TEST(read_only_folder) {
    int status = -1;
    TEST_OK(vpps_cache_write(&key, "payload", 7));
    ck_assert_int_eq(chmod(cache, 0555), 0);
    ck_assert_int_eq(chmod(cache_folder_path(".."), 0755), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) _exit(use_as_reader());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(chmod(cache, 0755), 0);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}

/* A limit on file sizes makes a write fail in the middle, as a full disk does: the old entry stays, and no other file remains. */
TEST(no_space) {
    static char payload[5000];
    struct rlimit before, limit;
    TEST_OK(vpps_cache_write(&key, "old", 3));
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (rlim_t bytes = 0; bytes < sizeof payload; bytes += 499) {
        limit = (struct rlimit){bytes, before.rlim_max};
        const int limited = setrlimit(RLIMIT_FSIZE, &limit);
        const vpps_status status = vpps_cache_write(&key, payload, sizeof payload);
        setrlimit(RLIMIT_FSIZE, &before); /* before any check, whose report is a file, too */
        ck_assert_int_eq(limited, 0);
        ck_assert_int_eq(status, VPPS_IO);
        check_entry(&key, "old", 3);
        ck_assert_int_eq(cache_folder_count(), 1);
    }
}

/* ---------------------------------------------------------------- size */

/* Sets the time of the file's last use to so many seconds ago. */
static void age(const char *path, int seconds) {
    const struct timespec then = {time(NULL) - seconds, 0};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, (const struct timespec[]){then, then}, 0), 0);
}

/* Ages entries: the one described as "N" was used 100 - N seconds ago. */
static bool age_as_described(const vpps_cache_entry *entry, void *context) {
    (void)context;
    age(cache_folder_path(entry->file), 100 - atoi(entry->description));
    return true;
}

static bool append_description(const vpps_cache_entry *entry, void *context) {
    strcat(context, entry->description);
    return true;
}

static void check_order(const char *wanted) {
    char order[64] = "";
    TEST_OK(vpps_cache_list(append_description, order, NULL));
    ck_assert_str_eq(order, wanted);
}

TEST(bounded_size) {
    static const char *const names[] = {"0", "1", "2", "3", "4", "5"};
    static char payload[1000];
    vpps_cache_key named = key;
    for (size_t i = 0; i < VPPS_COUNT(names); i++) {
        named.description = names[i];
        TEST_OK(vpps_cache_write(&named, payload, sizeof payload));
    }
    TEST_OK(vpps_cache_list(age_as_described, NULL, NULL));
    check_order("543210");
    named.description = "1"; /* reading is using */
    check_entry(&named, payload, sizeof payload);
    check_order("154320");

    limit_bytes(4 * entry_bytes() - 1); /* room for three entries: the new one, 1 and 5 */
    named.description = "6";
    TEST_OK(vpps_cache_write(&named, payload, sizeof payload));
    TEST_OK(vpps_cache_list(age_as_described, NULL, NULL));
    check_order("651");
    limit_bytes(3 * entry_bytes()); /* exactly these */
    TEST_OK(vpps_cache_write(&named, payload, sizeof payload));
    check_order("651");
}

TEST(limits) {
    static const char *const no_numbers[] = {"1M", "-1", " 1", "x", "99999999999999999999"};
    static char payload[1000];
    TEST_OK(vpps_cache_write(&key, payload, sizeof payload));
    const char *limit = limit_bytes(entry_bytes() - 1);
    TEST_FAILS(vpps_cache_write(&other, payload, sizeof payload), VPPS_IO, limit);
    check_none(&other);
    check_entry(&key, payload, sizeof payload); /* nothing was removed for an entry that was not written */
    limit_bytes(0);
    TEST_FAILS(vpps_cache_write(&other, payload, 0), VPPS_IO, "limit of 0");
    for (size_t i = 0; i < VPPS_COUNT(no_numbers); i++) {
        setenv("VPPS_CACHE_BYTES", no_numbers[i], 1);
        TEST_FAILS(vpps_cache_write(&other, payload, sizeof payload), VPPS_ARGUMENT, no_numbers[i]);
    }
}

/* Files of a killed writer are removed after an hour; files of another writer at work, and foreign files, stay. */
TEST(left_over_files) {
    enum { HOUR = 3600 };
    uint32_t removed;
    uint64_t bytes;
    TEST_OK(vpps_cache_write(&key, "payload", 7));
    static const char *const foreign[] = {"notes", "0123.vpps", "0123.vpps.tmp-1-1",
                                          "0123456789abcdef0123456789abcdef0.vpps",
                                          "0123456789ABCDEF0123456789abcdef.vpps"};
    enum { FOREIGN = VPPS_COUNT(foreign) };
    for (int i = 0; i < FOREIGN; i++) {
        folder_store(cache_folder_path(foreign[i]), "x", 1);
        age(cache_folder_path(foreign[i]), 10 * HOUR);
    }
    const char *const stale = cache_folder_path("0123456789abcdef0123456789abcdef.vpps.tmp-17-0"),
                      *const fresh = cache_folder_path("0123456789abcdef0123456789abcdef.vpps.tmp-17-1");
    folder_store(stale, "x", 1);
    age(stale, HOUR + 60);
    folder_store(fresh, "x", 1);
    age(fresh, HOUR - 60);
    check_entry(&key, "payload", 7);
    check_counts(1, 0);
    ck_assert_int_eq(access(stale, F_OK), 0); /* reading and listing remove nothing */
    TEST_OK(vpps_cache_write(&key, "payload", 7));
    ck_assert_int_ne(access(stale, F_OK), 0);
    ck_assert_int_eq(access(fresh, F_OK), 0);
    ck_assert_int_eq(cache_folder_count(), FOREIGN + 2);
    TEST_OK(vpps_cache_clear(&removed, &bytes));
    ck_assert_uint_eq(removed, 1);
    ck_assert_uint_gt(bytes, 7);
    ck_assert_int_eq(cache_folder_count(), FOREIGN + 1);
    TEST_OK(vpps_cache_clear(&removed, &bytes));
    ck_assert_uint_eq(removed, 0);
    ck_assert_uint_eq(bytes, 0);
}

static bool see_first(const vpps_cache_entry *entry, void *context) {
    int *calls = context;
    ++*calls;
    ck_assert_str_eq(entry->kind, "simt");
    ck_assert_str_eq(entry->description, "a plan");
    ck_assert_str_eq(entry->toolchain, "c++ -O2");
    ck_assert_uint_gt(entry->bytes, 1234);
    ck_assert_int_le(entry->used, time(NULL));
    ck_assert_int_ge(entry->used, time(NULL) - 60);
    ck_assert_uint_eq(strspn(entry->file, "0123456789abcdef"), 32);
    ck_assert_str_eq(entry->file + 32, ".vpps");
    ck_assert(!entry->damaged);
    return false;
}

TEST(listed) {
    static char payload[1234];
    int calls = 0;
    const vpps_cache_key new = {"simt", "a plan", "c++ -O2", "s", 1};
    TEST_OK(vpps_cache_write(&key, "payload", 7));
    age(cache_folder_entry(), 100);
    TEST_OK(vpps_cache_write(&new, payload, sizeof payload));
    TEST_OK(vpps_cache_list(see_first, &calls, NULL));
    ck_assert_int_eq(calls, 1);
}

/* ---------------------------------------------------------------- processes */

enum { LONGEST = 20000, SHARED_KEYS = VPPS_COUNT(shared) };

/* Writes entries whose bytes are all equal and follow from the length; returns 0 if all is well. */
static int write_many(uint64_t seed, uint32_t n) {
    static char payload[LONGEST];
    for (uint32_t i = 0; i < n; i++) {
        const size_t bytes = vpps_random_below(&seed, LONGEST);
        const uint32_t k = vpps_random_below(&seed, SHARED_KEYS);
        memset(payload, (int)(bytes % 251), bytes);
        if (vpps_cache_write(&shared[k], payload, bytes) != VPPS_OK) return 1;
    }
    return 0;
}

/* Reads until the file "stop" exists. Entries may be missing, but must be whole; returns 0 if all is well and some were found. */
static int read_many(const char *stop) {
    uint32_t seen = 0;
    do {
        for (int k = 0; k < SHARED_KEYS; k++) {
            FREED void *bytes = NULL;
            size_t size;
            if (vpps_cache_read(&shared[k], &bytes, &size) != VPPS_OK) return 1;
            if (!bytes) continue;
            seen++;
            for (size_t i = 0; i < size; i++)
                if (((const unsigned char *)bytes)[i] != size % 251) return 2;
        }
        uint32_t counts[2] = {0};
        if (vpps_cache_list(count_entry, counts, NULL) != VPPS_OK || counts[1] > 0) return 3;
    } while (access(stop, F_OK) != 0);
    return seen > 0 ? 0 : 4;
}

TEST(concurrent_processes) {
    enum { WRITERS = 3, READERS = 2 };
    pid_t children[WRITERS + READERS];
    const char *const stop = cache_folder_path("stop");
    setenv("VPPS_CACHE_BYTES", "25000", 1); /* less than both entries need together: they evict each other */
    fflush(NULL);
    for (int i = 0; i < WRITERS + READERS; i++) {
        children[i] = fork();
        ck_assert_int_ge(children[i], 0);
        if (children[i] == 0)
            _exit(i < WRITERS ? write_many(test_seed() * 100 + (uint64_t)i, test_scaled(80)) : read_many(stop));
    }
    for (int i = 0; i < WRITERS + READERS; i++) {
        int status = -1;
        if (i == WRITERS) folder_store(stop, "x", 1);
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d: %x", i, (unsigned)status);
    }
    unlink(stop);
    const int files = cache_folder_count(); /* no temporary file remains */
    ck_assert_int_ge(files, 1);
    ck_assert_int_le(files, SHARED_KEYS);
}
