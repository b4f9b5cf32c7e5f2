/* data_files.c - finds the files of each split (train, dev, test) of the data. */
#include "cli/input/data_files.h"
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Words in file names that tell a split (train, dev, test). Names are cut at '.', '_' and '-'; case, and digits at a word's end (test2016),
 * are ignored. */
static const char *const part_words[N_SPLITS][12] = {
    {"train", "training", "trainset", "traindata"},
    {"dev", "devel", "development", "devset", "val", "valid", "validation", "valset", "testa" /* in CoNLL-2003 */},
    {"test", "testing", "testset", "testdata", "testb"}};

static bool is_part(const char *name, int part) {
    for (const char *word = name; *word; word += strspn(word, "._-")) {
        const size_t len = strcspn(word, "._-");
        size_t letters = len;
        while (letters && word[letters - 1] >= '0' && word[letters - 1] <= '9') letters--;
        for (int i = 0; part_words[part][i]; i++) {
            const char *wanted = part_words[part][i];
            if (letters == strlen(wanted) && strncasecmp(word, wanted, letters) == 0) return true;
        }
        word += len;
    }
    return false;
}

/* Endings of compressed files. */
static const char *const compressed[] = {".gz", ".zst", ".GZ", ".ZST"};

/* Returns the length of what precedes `ending` in a name, which may end with a compressed file's ending; 0: the name ends otherwise. */
static size_t stem_length(const char *name, const char *ending) {
    size_t n = strlen(name);
    for (size_t i = 0; *ending && i < VPPS_COUNT(compressed); i++) {
        const size_t m = strlen(compressed[i]);
        if (n > m && strncmp(name + n - m, compressed[i], m) == 0) {
            n -= m;
            break;
        }
    }
    const size_t m = strlen(ending);
    return n > m && strncmp(name + n - m, ending, m) == 0 ? n - m : 0;
}

static vpps_status too_long(const char *path) { return vpps_fail(VPPS_IO, "%s: the path is too long", path); }

/* Returns whether `name` in `folder` may hold split `part` (training, dev or test data): a file whose name has a word for the split and
 * ends with `ending`, or, with `folders`, a folder with such a word. If so, sets *path to its path without the ending. */
static bool is_candidate(const char *folder, const char *name, int part, const char *ending, bool folders, char *path,
                         size_t n) {
    struct stat st;
    const size_t stem = folders ? strlen(name) : stem_length(name, ending);
    if (*name == '.' || !is_part(name, part) || !stem) return false;
    const int len = snprintf(path, n, "%s/%s", folder, name);
    if (len < 0 || (size_t)len >= n || stat(path, &st) != 0 || S_ISDIR(st.st_mode) != folders) return false;
    path[(size_t)len - strlen(name) + stem] = '\0';
    return true;
}

/* Finds the only candidate for a split among the folder's files or folders. *path stays empty when there is none. */
static vpps_status find_one(const char *folder, int part, const char *ending, bool folders, char *path, size_t n) {
    DIR *dir = opendir(folder);
    if (!dir) return vpps_fail(VPPS_IO, "%s: %s", folder, strerror(errno));
    vpps_status status = VPPS_OK;
    char found[4096], first[256] = "";
    for (const struct dirent *e = readdir(dir); e && status == VPPS_OK; e = readdir(dir)) {
        if (!is_candidate(folder, e->d_name, part, ending, folders, found, sizeof found)) continue;
        if (*first)
            status = vpps_fail(VPPS_ARGUMENT, "%s: %s and %s could both be the %s part: name one by --%s", folder,
                               first, e->d_name, split_names[part], split_names[part]);
        snprintf(path, n, "%s", found);
        snprintf(first, sizeof first, "%s", e->d_name);
    }
    closedir(dir);
    return status;
}

static vpps_status find_in_folder(const char *folder, int part, bool needed, const char *ending, char *path, size_t n) {
    vpps_status status = find_one(folder, part, ending, false, path, n);
    if (status == VPPS_OK && !*path) status = find_one(folder, part, ending, true, path, n);
    if (status == VPPS_OK && !*path && needed)
        status = vpps_fail(VPPS_IO, "%s: no file has the word %s in its name%s%s: the %s part is missing", folder,
                           part_words[part][0], *ending ? " and ends in " : "", ending, split_names[part]);
    return status;
}

vpps_status data_file(const settings *s, int part, int wanted, const char *ending, char *path, size_t n) {
    struct stat st;
    *path = '\0';
    const char *given = s->parts[part];
    if (!given && s->data) {
        if (stat(s->data, &st) == 0 && S_ISDIR(st.st_mode))
            return find_in_folder(s->data, part, part == wanted, ending, path, n);
        /* --data on this command line names the wanted split; a --data stored in a checkpoint names the training data */
        if (part == (options_given(s, "data") ? wanted : SPLIT_TRAIN)) given = s->data;
    }
    if (!given && part == wanted && s->data && !*ending && access(s->data, F_OK) != 0)
        return vpps_fail(VPPS_IO, "%s: cannot be opened: %s", s->data, strerror(errno));
    if (!given && part == wanted)
        return vpps_fail(VPPS_ARGUMENT, "no %s data: --%s FILE", split_names[part], split_names[part]);
    const int len = snprintf(path, n, "%s", given ? given : "");
    if (len < 0 || (size_t)len >= n) return too_long(given);
    /* cuts the ending off: --train train.de and --train train name the same two files */
    const size_t stem = *ending ? stem_length(path, ending) : 0;
    if (stem) path[stem] = '\0';
    return VPPS_OK;
}

/* ---------------------------------------------------------------- several files */

static vpps_status add_path(data_list *list, const char *path, size_t len) {
    char *copy = strndup(path, len);
    if (!copy || !VPPS_RESERVE(list->paths, list->n + 1)) {
        free(copy);
        return vpps_fail(VPPS_MEMORY, "no memory for the name of %s", path);
    }
    list->paths[list->n++] = copy;
    return VPPS_OK;
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *e) { return e->d_name[0] != '.'; }

static vpps_status list_folder(data_list *list, const char *folder, const char *ending);

static vpps_status list_entry(data_list *list, const char *folder, const char *name, const char *ending) {
    struct stat st;
    char path[4096];
    const int len = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (len < 0 || (size_t)len >= sizeof path) return too_long(folder);
    if (stat(path, &st) != 0) return vpps_fail(VPPS_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) return list_folder(list, path, ending);
    const size_t stem = stem_length(path, ending);
    return stem ? add_path(list, path, stem) : VPPS_OK;
}

static vpps_status list_folder(data_list *list, const char *folder, const char *ending) {
    struct dirent **entries;
    const int n = scandir(folder, &entries, is_shown, compare_names);
    if (n < 0) return vpps_fail(VPPS_IO, "%s: %s", folder, strerror(errno));
    vpps_status status = VPPS_OK;
    for (int i = 0; i < n; i++) {
        if (status == VPPS_OK) status = list_entry(list, folder, entries[i]->d_name, ending);
        free(entries[i]);
    }
    free(entries);
    return status;
}

vpps_status data_list_open(data_list *list, const char *path, const char *ending) {
    struct stat st;
    *list = (data_list){0};
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return add_path(list, path, strlen(path));
    return list_folder(list, path, ending);
}

void data_list_close(data_list *list) {
    for (size_t i = 0; i < list->n; i++) free(list->paths[i]);
    VPPS_FREE_ARRAYS(list->paths);
    *list = (data_list){0};
}

vpps_status data_name(const char *path, const char *ending, char *name, size_t n) {
    struct stat st;
    int len = snprintf(name, n, "%s%s", path, ending);
    if (len < 0 || (size_t)len >= n) return too_long(path);
    if (!*ending || stat(name, &st) == 0) return VPPS_OK;
    const size_t plain = (size_t)len;
    for (size_t i = 0; i < VPPS_COUNT(compressed); i++) {
        len = snprintf(name + plain, n - plain, "%s", compressed[i]);
        if (len >= 0 && (size_t)len < n - plain && stat(name, &st) == 0) return VPPS_OK;
    }
    name[plain] = '\0';
    return VPPS_OK;
}
