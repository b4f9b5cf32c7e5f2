/* test_durable.c - what a file goes through before its path holds it: write, fsync, rename, fsync of the folder, in this
 * order, proved by taking the place of these calls; and each of them fails once.
 *
 * A power cut cannot be tried. What it leaves follows from the order: a rename that reaches the disk before the file's
 * bytes leaves an empty file, one that does not reach it leaves the old one. */
#include "common/folder.h"

#include "io/output.h"
#include "io/safetensors.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Calls so far: W: bytes written, F: a file flushed, R: a file renamed, D: a folder flushed. */
static char calls[64];
static size_t n_calls;
static bool recording;
static size_t fail_at; /* number of the call that fails with EIO, from 1; 0: none */

/* Inode of the file flushed last, which must be the one that is renamed. */
static ino_t flushed;

static bool note(char call) {
    if (!recording) return true;
    if (n_calls > 0 && call == 'W' && calls[n_calls - 1] == 'W') n_calls--; /* a file is written in pieces */
    if (n_calls + 1 < sizeof calls) calls[n_calls++] = call;
    calls[n_calls] = '\0';
    if (n_calls != fail_at) return true;
    errno = EIO;
    return false;
}

/* POSIX lets dlsym's result be copied to a pointer to a function. */
#define NEXT(type, function, ...)                                                                                      \
    static type (*next)(__VA_ARGS__);                                                                                  \
    if (!next) {                                                                                                       \
        void *found = dlsym(RTLD_NEXT, function);                                                                      \
        memcpy(&next, &found, sizeof next);                                                                            \
    }

static struct stat stat_of(int fd) {
    struct stat info = {0};
    fstat(fd, &info);
    return info;
}

int fsync(int fd) {
    NEXT(int, "fsync", int)
    const struct stat info = stat_of(fd);
    if (!note(S_ISDIR(info.st_mode) ? 'D' : 'F')) return -1;
    if (S_ISREG(info.st_mode)) flushed = info.st_ino;
    return next(fd);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    NEXT(int, "renameat", int, const char *, int, const char *)
    struct stat info = {0};
    fstatat(from_folder, from, &info, 0);
    if (!note(info.st_ino == flushed ? 'R' : 'r')) return -1;
    return next(from_folder, from, to_folder, to);
}

ssize_t write(int fd, const void *bytes, size_t n) {
    NEXT(ssize_t, "write", int, const void *, size_t)
    if (S_ISREG(stat_of(fd).st_mode)) {
        if (!note('W')) return -1;
        flushed = 0;
    }
    return next(fd, bytes, n);
}

static char path[600];

static void make_folder(void) {
    folder_make();
    snprintf(path, sizeof path, "%s", folder_path("file"));
}

static int count_files(void) {
    int n = 0;
    DIR *dir = opendir(folder_path("."));
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *item; (item = readdir(dir));) n += item->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* Saves a version as text, or as a checkpoint. */
static vpps_status save(bool checkpoint, int version) {
    static float values[70000];
    const vpps_safetensors_tensor tensors[] = {{"a", 1, {70000}, values}, {"b", 1, {3}, values}};
    char number[16], text[32];
    snprintf(number, sizeof number, "%d", version);
    const int n = snprintf(text, sizeof text, "\"version\":\"%d\"", version);
    return checkpoint ? vpps_safetensors_write(path, tensors, 2, &(vpps_metadata){"version", number}, 1, NULL)
                      : vpps_output_write_file(path, text, (size_t)n);
}

static int saved_version(bool checkpoint) {
    static const char key[] = "\"version\":\"";
    size_t n;
    vpps_safetensors *file;
    if (checkpoint) {
        TEST_OK(vpps_safetensors_open(&file, path));
        TEST_OK(vpps_safetensors_verify(file));
        const char *number = vpps_safetensors_metadata(file, "version");
        ck_assert_ptr_nonnull(number);
        const int version = atoi(number);
        vpps_safetensors_close(file);
        return version;
    }
    FREED char *bytes = folder_load(path, &n);
    const char *at = memmem(bytes, n, key, sizeof key - 1);
    ck_assert_ptr_nonnull(at);
    return atoi(at + sizeof key - 1);
}

static vpps_status record(bool checkpoint, int version, size_t failing) {
    n_calls = 0;
    *calls = '\0';
    fail_at = failing;
    recording = true;
    const vpps_status status = save(checkpoint, version);
    recording = false;
    return status;
}

TEST_GROUP("order");

TEST_EACH(flushed_before_it_is_renamed, 0, 2) {
    make_folder();
    TEST_OK(record(_i, 1, 0));
    ck_assert_str_eq(calls, "WFRD");
    TEST_OK(record(_i, 2, 0)); /* over another one */
    ck_assert_str_eq(calls, "WFRD");
    ck_assert_int_eq(saved_version(_i), 2);
}

/* Whichever step fails, the path holds the old file until the rename; and no other file remains. */
TEST_EACH(every_step_fails, 0, 2) {
    make_folder();
    TEST_OK(record(_i, 1, 0));
    for (size_t step = 1; step <= 4; step++) {
        const int before = saved_version(_i);
        ck_assert_int_eq(record(_i, before + 1, step), VPPS_IO);
        ck_assert_uint_eq(n_calls, step);
        ck_assert_ptr_nonnull(strstr(vpps_error_message(), strerror(EIO)));
        ck_assert_int_eq(saved_version(_i), before + (step == 4));
        ck_assert_int_eq(count_files(), 1);
    }
}
