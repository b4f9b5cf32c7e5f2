/* atomic_tests.c - a checkpoint file is the old one or the new one, even without space, without permission, or if the process is killed while it
 * saves. */
#include "io_tests.h"

#include "io/output.h"
#include "io/safetensors.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ELEMS 65536

/* Saves version v of a checkpoint: every element is v, and so says the metadata. */
static vpps_status save_version(const char *path, int version) {
    static float values[ELEMS];
    char text[16];
    snprintf(text, sizeof text, "%d", version);
    for (int i = 0; i < ELEMS; i++) values[i] = (float)version;
    const vpps_safetensors_tensor tensors[] = {{"first", 1, {100}, values}, {"second", 1, {ELEMS}, values}};
    return vpps_safetensors_write(path, tensors, 2, &(vpps_metadata){"version", text}, 1, NULL);
}

/* Makes one check for all elements, since each check of the framework writes to a file. */
static void check_all(const float *values, int n, float wanted) {
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += values[i] != wanted;
    ck_assert_int_eq(wrong, 0);
}

/* Returns the version that the file holds, which must be whole. */
static int check_version(const char *path) {
    static float values[ELEMS];
    vpps_safetensors *file;
    TEST_OK(vpps_safetensors_open(&file, path));
    int version = atoi(vpps_safetensors_metadata(file, "version"));
    TEST_OK(vpps_safetensors_read_f32(file, "first", 1, (const uint64_t[]){100}, values));
    check_all(values, 100, (float)version);
    TEST_OK(vpps_safetensors_read_f32(file, "second", 1, (const uint64_t[]){ELEMS}, values));
    check_all(values, ELEMS, (float)version);
    vpps_safetensors_close(file);
    return version;
}

static int count_files(const char *folder) {
    int n = 0;
    DIR *dir = opendir(folder);
    ck_assert(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static int size_of(const char *path) {
    struct stat info = {.st_size = -1};
    lstat(path, &info);
    return (int)info.st_size;
}

static void check_kind(const char *path, mode_t kind) {
    struct stat info;
    ck_assert_int_eq(lstat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & S_IFMT, kind);
}

TEST_GROUP("atomic files", .seconds = 120);

TEST(unwritable_paths) {
    char path[600], long_name[300];
    const char *folder = folder_make();
    TEST_FAILS(save_version(folder_path("absent/f"), 1), VPPS_IO,
               "absent/f: its folder cannot be opened: No such file or directory");
    folder_store(folder_path("plain"), "x", 1);
    TEST_FAILS(save_version(folder_path("plain/f"), 1), VPPS_IO,
               "plain/f: its folder cannot be opened: Not a directory");
    CHECK_STATUS(save_version("", 1), VPPS_IO);
    CHECK_STATUS(save_version("/proc/f", 1), VPPS_IO);
    ck_assert_int_eq(mkdir(folder_path("sub"), 0777), 0);
    TEST_FAILS(save_version(folder_path("sub"), 1), VPPS_IO, "sub: cannot be replaced: Is a directory");
    snprintf(path, sizeof path, "%s/sub/", folder);
    CHECK_STATUS(save_version(path, 1), VPPS_IO);
    ck_assert_int_eq(count_files(folder), 2);
    ck_assert_int_eq(count_files(folder_path("sub")), 0);
    memset(long_name, 'n', 255); /* the longest possible file name; the temporary name must be cut */
    long_name[255] = '\0';
    TEST_OK(save_version(folder_path(long_name), 3));
    ck_assert_int_eq(check_version(folder_path(long_name)), 3);
    memset(long_name, 'n', 256);
    long_name[256] = '\0';
    CHECK_STATUS(save_version(folder_path(long_name), 1), VPPS_IO);
    ck_assert_int_eq(count_files(folder), 3);
}

TEST(mode_and_links) {
    struct stat info;
    const char *folder = folder_make();
    mode_t before = umask(027);
    TEST_OK(save_version(folder_path("f"), 1));
    umask(before);
    ck_assert_int_eq(stat(folder_path("f"), &info), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0640);
    folder_store(folder_path("target"), "x", 1);
    ck_assert_int_eq(symlink("target", folder_path("link")), 0);
    TEST_OK(save_version(folder_path("link"), 2)); /* the link stays, its target is replaced */
    check_kind(folder_path("link"), S_IFLNK);
    ck_assert_int_eq(check_version(folder_path("target")), 2);
    ck_assert_int_eq(check_version(folder_path("link")), 2);
    const int back = open(".", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(chdir(folder), 0);
    TEST_OK(save_version("here", 4)); /* a path without a folder */
    ck_assert_int_eq(check_version("here"), 4);
    ck_assert_int_eq(count_files("."), 4);
    ck_assert_int_eq(fchdir(back), 0); /* later tests read files of the source's folder */
    close(back);
}

/* Links are followed to their end, from folder to folder, even to a file that does not exist yet; a circle fails. */
TEST(links_are_followed) {
    const char *folder = folder_make();
    ck_assert_int_eq(mkdir(folder_path("sub"), 0777), 0);
    ck_assert_int_eq(symlink("sub/second", folder_path("first")), 0);
    ck_assert_int_eq(symlink("../new", folder_path("sub/second")), 0);
    TEST_OK(save_version(folder_path("first"), 1));
    ck_assert_int_eq(check_version(folder_path("new")), 1);
    TEST_OK(save_version(folder_path("first"), 2));
    ck_assert_int_eq(check_version(folder_path("new")), 2);
    check_kind(folder_path("first"), S_IFLNK);
    check_kind(folder_path("sub/second"), S_IFLNK);
    ck_assert_int_eq(symlink(folder_path("absolute"), folder_path("third")), 0);
    TEST_OK(save_version(folder_path("third"), 3));
    ck_assert_int_eq(check_version(folder_path("absolute")), 3);
    ck_assert_int_eq(symlink("circle", folder_path("circle")), 0);
    TEST_FAILS(save_version(folder_path("circle"), 1), VPPS_IO,
               "circle: cannot be followed: Too many levels of symbolic links");
    ck_assert_int_eq(count_files(folder), 6);
    unlink(folder_path("sub/second"));
}

enum { STRANGER = 54321 };

/* Makes a file "mine" of 1 byte and, in the folder "all", where everybody may write, a stranger's `name`: a link to it, or a file. */
static void plant(const char *name, const char *target) {
    TEST_OK(save_version(folder_path("mine"), 1));
    if (mkdir(folder_path("all"), 0777) == 0) ck_assert_int_eq(chmod(folder_path("all"), 01777), 0);
    if (target)
        ck_assert_int_eq(symlink(target, folder_path(name)), 0);
    else
        folder_store(folder_path(name), "x", 1);
    ck_assert_int_eq(lchown(folder_path(name), STRANGER, STRANGER), 0);
}

/* The rules of proc_sys_fs(5) for protected_symlinks hold, whether or not the system has them switched on. */
TEST(strangers_links_are_not_followed) {
    static const char *const names[] = {"all/old", "all/new", "all/file", "own"};
    static const char *const targets[] = {"../mine", "../none", NULL, "all/old"};
    if (geteuid() != 0) TEST_SKIP("strangers_links_are_not_followed: this user cannot give files to others");
    const char *folder = folder_make();
    for (size_t i = 0; i < VPPS_COUNT(names); i++) {
        if (i < 3)
            plant(names[i], targets[i]);
        else
            ck_assert_int_eq(symlink(targets[i], folder_path(names[i])), 0); /* its own link leads to a stranger's */
        TEST_FAILS(save_version(folder_path(names[i]), 2), VPPS_IO, "Permission denied");
        TEST_FAILS(vpps_output_check(folder_path(names[i])), VPPS_IO, "another user's");
        ck_assert_int_eq(check_version(folder_path("mine")), 1);
    }
    ck_assert_int_eq(count_files(folder), 3);
    ck_assert_int_eq(count_files(folder_path("all")), 3);
    ck_assert_int_eq(chmod(folder_path("all"), 01755), 0); /* nobody else could have made a link there */
    TEST_OK(save_version(folder_path("all/old"), 3));
    ck_assert_int_eq(check_version(folder_path("mine")), 3);
    ck_assert_int_eq(chmod(folder_path("all"), 0777), 0);
    TEST_OK(save_version(folder_path("all/old"), 4));
    ck_assert_int_eq(chmod(folder_path("all"), 01777), 0);
    ck_assert_int_eq(chown(folder_path("all"), STRANGER, STRANGER), 0); /* the folder's owner may do everything there */
    TEST_OK(save_version(folder_path("all/new"), 5));
    ck_assert_int_eq(check_version(folder_path("none")), 5);
}

/* A file that cannot be examined may exist nevertheless. */
TEST(what_cannot_be_looked_at) {
    char name[300];
    folder_make();
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    folder_store(folder_path("plain"), "x", 1);
    ck_assert_int_eq(symlink("plain/x", folder_path("through")), 0);
    TEST_FAILS(vpps_output_check(folder_path("through")), VPPS_IO, "its folder cannot be opened: Not a directory");
    ck_assert_int_eq(symlink(name, folder_path("long")), 0);
    TEST_FAILS(vpps_output_check(folder_path("long")), VPPS_IO, "File name too long");
}

/* A replaced file keeps its mode and owner, whatever name is used to write it. */
TEST(mode_is_kept) {
    static const mode_t modes[] = {0600, 0640, 0444, 0666, 0777};
    struct stat info;
    folder_make();
    const uid_t user = geteuid() == 0 ? STRANGER : geteuid();
    ck_assert_int_eq(symlink("f", folder_path("link")), 0);
    for (size_t i = 0; i < VPPS_COUNT(modes); i++) {
        folder_store(folder_path("f"), "x", 1);
        ck_assert_int_eq(chmod(folder_path("f"), modes[i]), 0);
        if (user == STRANGER) ck_assert_int_eq(chown(folder_path("f"), user, user), 0);
        TEST_OK(save_version(folder_path(i % 2 ? "link" : "f"), 1));
        ck_assert_int_eq(stat(folder_path("f"), &info), 0);
        ck_assert_int_eq(info.st_mode & 07777, modes[i]);
        ck_assert_int_eq(info.st_uid, user);
        ck_assert_int_eq(unlink(folder_path("f")), 0);
    }
}

/* What is no regular file stays what it is, and gets the bytes. */
TEST(no_regular_files) {
    char begin[8] = "";
    const char *folder = folder_make();
    ck_assert_int_eq(mkfifo(folder_path("fifo"), 0600), 0);
    const int fifo = open(folder_path("fifo"), O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(fifo, 0);
    TEST_OK(vpps_output_check(folder_path("fifo")));
    TEST_OK(vpps_output_write_file(folder_path("fifo"), "bytes", 5));
    ck_assert_int_eq((int)read(fifo, begin, sizeof begin), 5);
    ck_assert_mem_eq(begin, "bytes", 5);
    close(fifo);
    check_kind(folder_path("fifo"), S_IFIFO);
    TEST_OK(vpps_output_check("/dev/null"));
    TEST_OK(save_version("/dev/null", 1));
    ck_assert_int_eq(symlink("/dev/null", folder_path("null")), 0);
    TEST_OK(save_version(folder_path("null"), 1));
    TEST_FAILS(save_version("/dev/full", 1), VPPS_IO, "/dev/full: cannot be written: No space left on device");
    check_kind("/dev/null", S_IFCHR);
    ck_assert_int_eq(count_files(folder), 2);
}

/* /dev/stdout is its file: it is continued, not replaced, whatever was printed to it before. */
TEST(standard_output) {
    char text[32] = "";
    folder_make();
    const int file = open(folder_path("out"), O_RDWR | O_CREAT, 0666), before = dup(STDOUT_FILENO);
    ck_assert_int_ge(file, 0);
    fflush(stdout);
    ck_assert_int_eq((int)write(file, "first ", 6), 6);
    dup2(file, STDOUT_FILENO);
    vpps_status status = vpps_output_check("/dev/stdout");
    if (status == VPPS_OK) status = vpps_output_write_file("/dev/stdout", "second ", 7);
    if (status == VPPS_OK) status = vpps_output_write_file("/dev/fd/1", "third", 5);
    dup2(before, STDOUT_FILENO);
    close(before);
    TEST_OK(status);
    ck_assert_int_eq((int)pread(file, text, sizeof text - 1, 0), 18);
    ck_assert_str_eq(text, "first second third");
    close(file);
    CHECK_STATUS(vpps_output_check("/dev/fd/12345"), VPPS_IO);
}

static void end(int number) {
    vpps_output_abandon();
    signal(number, SIG_DFL);
    raise(number);
}

/* Ends a process by a signal after `half` of an output is written: the old file stays, and another one only where the process cannot remove it. */
TEST(ended_while_writing) {
    static const int signals[] = {SIGTERM, SIGKILL};
    const char *folder = folder_make();
    FREED char *path = strdup(folder_path("f"));
    TEST_OK(save_version(path, 1));
    for (int i = 0; i < 2; i++) {
        fflush(NULL);
        const pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            vpps_output o;
            signal(SIGTERM, end);
            if (vpps_output_open(&o, path) == VPPS_OK && vpps_output_write(&o, "half", 4) == VPPS_OK) raise(signals[i]);
            _exit(1);
        }
        int status = 0;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        ck_assert_int_eq(check_version(path), 1);
        ck_assert_int_eq(count_files(folder), 1 + i);
    }
    TEST_OK(save_version(path, 2)); /* beside what the killed process left */
    ck_assert_int_eq(check_version(path), 2);
    ck_assert_int_eq(count_files(folder), 2);
}

/* A temporary file's name that is taken, be it by a link, is left alone. */
TEST(taken_temporary_names) {
    char name[64];
    const char *folder = folder_make();
    folder_store(folder_path("mine"), "mine", 4);
    for (unsigned i = 0; i < 64; i++) { /* the counter is below this: other tests of this process write few files */
        snprintf(name, sizeof name, "f.tmp-%ld-%u", (long)getpid(), i);
        ck_assert_int_eq(symlink("mine", folder_path(name)), 0);
    }
    TEST_OK(save_version(folder_path("f"), 3));
    ck_assert_int_eq(check_version(folder_path("f")), 3);
    ck_assert_int_eq(count_files(folder), 66);
    ck_assert_int_eq(size_of(folder_path("mine")), 4);
}

/* Outputs to one path at a time: each is whole, and the last one stays. */
TEST(two_at_a_time) {
    vpps_output first, second;
    const char *folder = folder_make();
    FREED char *path = strdup(folder_path("f"));
    TEST_OK(vpps_output_open(&first, path));
    TEST_OK(vpps_output_write(&first, "fir", 3));
    TEST_OK(vpps_output_open(&second, path));
    TEST_OK(vpps_output_write(&second, "second", 6));
    TEST_OK(vpps_output_commit(&second));
    ck_assert_int_eq(size_of(path), 6);
    TEST_OK(vpps_output_write(&first, "st", 2));
    TEST_OK(vpps_output_commit(&first));
    ck_assert_int_eq(size_of(path), 5);
    ck_assert_int_eq(count_files(folder), 1);
}

/* A limit on file sizes makes write() fail in mid-file, as a full disk does: the old file stays, and no other remains. */
TEST(no_space_by_limit) {
    static const rlim_t limits[] = {0, 1, 7, 8, 100, 255, 256, 1000, 4096, 100000, 262143};
    struct rlimit before, limit;
    const char *folder = folder_make();
    TEST_OK(save_version(folder_path("f"), 1));
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (size_t i = 0; i < VPPS_COUNT(limits); i++) {
        limit = (struct rlimit){limits[i], before.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        vpps_status status = save_version(folder_path("f"), 2);
        setrlimit(RLIMIT_FSIZE, &before); /* before any check, whose report is a file, too */
        TEST_FAILS(status, VPPS_IO, "/f: cannot be written: File too large");
        ck_assert_int_eq(check_version(folder_path("f")), 1);
        ck_assert_int_eq(count_files(folder), 1);
    }
    TEST_OK(save_version(folder_path("f"), 3));
    ck_assert_int_eq(check_version(folder_path("f")), 3);
}

/* Kills a process that saves one version after the other, at random moments, many times. */
TEST(killed_while_saving) {
    uint64_t random = 1;
    int last = 1, kills = (int)test_scaled(100), advanced = 0;
    folder_make();
    const char *path = folder_path("f");
    TEST_OK(save_version(path, last));
    for (int i = 0; i < kills; i++) {
        fflush(NULL);
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            for (int version = last + 1;; version++)
                if (save_version(path, version) != VPPS_OK) _exit(1);
        }
        usleep(500 + vpps_random_below(&random, 20000));
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        int status = 0;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status)); /* killed, not ended: no save failed */
        int version = check_version(path);
        ck_assert_int_ge(version, last);
        advanced += version > last;
        last = version;
    }
    ck_assert_int_gt(advanced, 0); /* the children did save */
    TEST_OK(save_version(path, last + 1));
}
