/* data_files.c - see data_files.h. */
#include "cli/data_files.h"
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

/* A file is a part when one of the words of its name (parted by '.', '_' and '-') begins with one of these. */
static const char *const part_words[N_SPLITS][3] = {{"train"}, {"dev", "val"}, {"test"}};

static bool is_part(const char *name, int part) {
    for (const char *word = name; *word; word += strspn(word, "._-")) {
        for (int i = 0; i < 3 && part_words[part][i]; i++) {
            if (strncmp(word, part_words[part][i], strlen(part_words[part][i])) == 0) return true;
        }
        word += strcspn(word, "._-");
    }
    return false;
}

static bool ends_with(const char *name, const char *ending) {
    const size_t n = strlen(name), m = strlen(ending);
    return n >= m && strcmp(name + n - m, ending) == 0;
}

static vpps_status too_long(const char *path) { return vpps_fail(VPPS_IO, "%s: the path is too long", path); }

/* A file of the folder that could be the part, with its path. */
static bool is_candidate(const char *folder, const char *name, int part, const char *ending, char *path, size_t n) {
    struct stat st;
    if (*name == '.' || !is_part(name, part) || !ends_with(name, ending)) return false;
    const int len = snprintf(path, n, "%s/%s", folder, name);
    return len >= 0 && (size_t)len < n && stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static vpps_status find_in_folder(const char *folder, int part, bool needed, const char *ending, char *path, size_t n) {
    DIR *dir = opendir(folder);
    if (!dir) return vpps_fail(VPPS_IO, "%s: %s", folder, strerror(errno));
    vpps_status status = VPPS_OK;
    char found[4096], first[256] = "";
    for (const struct dirent *e = readdir(dir); e && status == VPPS_OK; e = readdir(dir)) {
        if (!is_candidate(folder, e->d_name, part, ending, found, sizeof found)) continue;
        if (*first) {
            status = vpps_fail(VPPS_ARGUMENT, "%s: %s and %s could both be the %s part: name one by --%s", folder,
                               first, e->d_name, split_names[part], split_names[part]);
        }
        snprintf(path, n, "%.*s", (int)(strlen(found) - strlen(ending)), found);
        snprintf(first, sizeof first, "%s", e->d_name);
    }
    closedir(dir);
    if (status == VPPS_OK && !*first && needed) {
        status =
            vpps_fail(VPPS_IO, "%s: no file has a word in its name that begins with %s%s%s: the %s part is missing",
                      folder, part_words[part][0], *ending ? " and ends in " : "", ending, split_names[part]);
    }
    return status;
}

vpps_status data_file(const settings *s, int part, int wanted, const char *ending, char *path, size_t n) {
    struct stat st;
    *path = '\0';
    const char *given = s->parts[part];
    if (!given && s->data) {
        if (stat(s->data, &st) == 0 && S_ISDIR(st.st_mode)) {
            return find_in_folder(s->data, part, part == wanted, ending, path, n);
        }
        /* A checkpoint's file is what it was trained on. */
        if (part == (options_given(s, "data") ? wanted : SPLIT_TRAIN)) given = s->data;
    }
    if (!given && part == wanted) {
        return vpps_fail(VPPS_ARGUMENT, "no %s data: --%s FILE", split_names[part], split_names[part]);
    }
    const int len = snprintf(path, n, "%s", given ? given : "");
    if (len < 0 || (size_t)len >= n) return too_long(given);
    /* train.de and train name the same pair of files */
    if (*ending && ends_with(path, ending)) path[(size_t)len - strlen(ending)] = '\0';
    return VPPS_OK;
}
