/* fake_root.h - a folder with files like those of /proc and /sys, for tests of code that reads them. */
#pragma once

#include "common/folder.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static char fake_root[PATH_MAX / 4];

/* Makes the folder and returns its name. There is only one at a time. It is in memory if possible: a large machine has thousands of files. */
static const char *fake_root_open(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
    folder_make();
    snprintf(fake_root, sizeof fake_root, "%s", folder_path("root"));
    return fake_root;
}

/* Writes a file in the folder, and creates the file's parent folders. `path` is a format of printf. */
static __attribute__((format(printf, 2, 3))) void fake_root_put(const char *text, const char *path, ...) {
    char below[PATH_MAX / 2], all[PATH_MAX];
    va_list arguments;
    va_start(arguments, path);
    vsnprintf(below, sizeof below, path, arguments);
    va_end(arguments);
    snprintf(all, sizeof all, "%s%s", fake_root, below);
    for (char *slash = all + strlen(fake_root); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(all, 0700);
        *slash = '/';
    }
    folder_store(all, text, strlen(text));
}
