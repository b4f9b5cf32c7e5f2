#include "fake_root.h"

#include "common/testing.h"

#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>

static char root[64];

const char *fake_root_open(void) {
    snprintf(root, sizeof root, "/tmp/vpps-test-root-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    return root;
}

void fake_root_close(void) {
    char command[sizeof root + 8];
    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

void fake_root_put(const char *text, const char *path, ...) {
    char below[PATH_MAX / 2], all[PATH_MAX];
    va_list arguments;
    va_start(arguments, path);
    vsnprintf(below, sizeof below, path, arguments);
    va_end(arguments);
    snprintf(all, sizeof all, "%s%s", root, below);
    for (char *slash = strchr(all + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(all, 0700);
        *slash = '/';
    }
    FILE *f = fopen(all, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}
