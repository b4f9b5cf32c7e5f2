/* fake_root.c - see fake_root.h. */
#include "fake_root.h"

#include "common/folder.h"

#include <limits.h>
#include <sys/stat.h>

static char root[PATH_MAX / 4];

const char *fake_root_open(void) {
    folder_make();
    snprintf(root, sizeof root, "%s", folder_path("root"));
    return root;
}

void fake_root_put(const char *text, const char *path, ...) {
    char below[PATH_MAX / 2], all[PATH_MAX];
    va_list arguments;
    va_start(arguments, path);
    vsnprintf(below, sizeof below, path, arguments);
    va_end(arguments);
    snprintf(all, sizeof all, "%s%s", root, below);
    for (char *slash = all + strlen(root); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(all, 0700);
        *slash = '/';
    }
    folder_store(all, text, strlen(text));
}
