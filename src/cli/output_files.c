/* output_files.c - see output_files.h. */
#include "cli/output_files.h"
#include "base/base.h"
#include "cli/corpus_read.h"
#include "cli/save_name.h"
#include "io/descriptor.h"
#include "io/output.h"

#include <sys/stat.h>
#include <unistd.h>

/* A file that an option names. */
typedef struct place {
    const char *option;
    char *path, *target; /* target: its links followed */
    bool exists, regular, in_folder;
    dev_t device, folder_device;
    ino_t inode, folder_inode;
} place;

typedef struct place_list {
    place *places;
    size_t n;
} place_list;

static const char *last_part(const char *target) {
    const char *slash = strrchr(target, '/');
    return slash ? slash + 1 : target;
}

static void take_stat(place *p, const struct stat *info) {
    p->exists = true;
    p->regular = S_ISREG(info->st_mode);
    p->device = info->st_dev;
    p->inode = info->st_ino;
}

/* Fills in what lies there. */
static vpps_status find_place(const char *path, place *p) {
    struct stat info;
    VPPS_TRY(vpps_output_target(path, &p->target));
    if (stat(p->target, &info) == 0) take_stat(p, &info);
    const size_t n = (size_t)(last_part(p->target) - p->target);
    char *folder = n ? strndup(p->target, n) : strdup(".");
    if (!folder) return vpps_fail(VPPS_MEMORY, "no memory for the name of %s", path);
    if (stat(folder, &info) == 0) {
        p->in_folder = true;
        p->folder_device = info.st_dev;
        p->folder_inode = info.st_ino;
    }
    free(folder);
    return VPPS_OK;
}

static bool in_same_folder(const place *a, const place *b) {
    return a->in_folder && b->in_folder && a->folder_device == b->folder_device && a->folder_inode == b->folder_inode;
}

/* Does a's name stand for a file an epoch, of which b is one? */
static bool holds(const place *a, const place *b) {
    uint32_t epoch;
    return a->target && b->target && save_name_varies(a->path) && in_same_folder(a, b) &&
           save_name_matches(last_part(a->target), last_part(b->target), &epoch);
}

static bool is_same(const place *a, const place *b) {
    if (holds(a, b) || holds(b, a)) return true;
    if (a->exists != b->exists) return false;
    /* a device or a FIFO may be written twice: it loses nothing by that */
    if (a->exists) return a->regular && a->device == b->device && a->inode == b->inode;
    return in_same_folder(a, b) && strcmp(last_part(a->target), last_part(b->target)) == 0;
}

/* Does the output lie in a folder whose files are read, or below it? */
static bool is_inside(const place *output, const place *folder) {
    char path[4200];
    struct stat info, above;
    const int n = (int)(last_part(output->target) - output->target);
    if (!folder->exists || folder->regular) return false;
    if ((size_t)snprintf(path, sizeof path, "%.*s.", n, output->target) + 4 > sizeof path) return false;
    for (size_t length = strlen(path); stat(path, &info) == 0; length += 3) {
        if (info.st_dev == folder->device && info.st_ino == folder->inode) return true;
        if (length + 4 > sizeof path) return false;
        memcpy(path + length, "/..", 4);
        if (stat(path, &above) != 0 || (above.st_dev == info.st_dev && above.st_ino == info.st_ino)) return false;
    }
    return false;
}

static vpps_status add_place(place_list *list, const char *option, const char *path) {
    if (!VPPS_RESERVE(list->places, list->n + 1)) {
        return vpps_fail(VPPS_MEMORY, "no memory for the name of %s", path);
    }
    place *p = &list->places[list->n++];
    *p = (place){.option = option, .path = strdup(path)};
    return p->path ? find_place(path, p) : vpps_fail(VPPS_MEMORY, "no memory for the name of %s", path);
}

static vpps_status add_input(void *context, const char *option, const char *path) {
    return add_place(context, option, path);
}

/* Standard output and error, where they are files. */
static void add_streams(place_list *list, place streams[2]) {
    static const char *const names[] = {"standard output", "standard error"};
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat info;
        if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) continue;
        place *p = &streams[list->n++];
        *p = (place){.option = names[fd - 1]};
        take_stat(p, &info);
    }
}

static const char *dashes(const char *option) { return strncmp(option, "standard", 8) == 0 ? "" : "--"; }

/* How each file begins that such an option has written. */
static const struct {
    const char *option, *mark;
} marks[] = {{"plot", "<svg"},
             {"svg", "<svg"},
             {"trace", "{\"displayTimeUnit\""},
             {"csv", "class,gold,predicted"},
             {"log", "{\"version\":"}};

/* A file with another beginning is not this program's, and must not be lost. */
static vpps_status check_content(const settings *s, const char *option, const char *path) {
    struct stat info;
    char begin[32] = "";
    size_t i = 0;
    while (i < VPPS_COUNT(marks) && strcmp(marks[i].option, option) != 0) i++;
    if (i == VPPS_COUNT(marks) || s->force || stat(path, &info) != 0 || !S_ISREG(info.st_mode) || !info.st_size) {
        return VPPS_OK;
    }
    FILE *f = fopen(path, "rb");
    const size_t n = strlen(marks[i].mark), have = f ? fread(begin, 1, n, f) : 0;
    if (f) fclose(f);
    if (have == n && memcmp(begin, marks[i].mark, n) == 0) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT,
                     "--%s %s: the file exists already, and --%s has not made it: expected another name%s", option,
                     path, option, s->command == COMMAND_TRAIN ? ", or --force" : "");
}

static vpps_status refuse(const place *output, const place *other, const char *why) {
    return vpps_fail(VPPS_ARGUMENT, "--%s %.100s and %s%s%s%.100s %s", output->option, output->path,
                     dashes(other->option), other->option, other->path ? " " : "", other->path ? other->path : "", why);
}

static vpps_status compare(const place_list *outputs, const place_list *inputs, const place_list *streams) {
    for (size_t i = 0; i < outputs->n; i++) {
        const place *output = &outputs->places[i];
        for (size_t k = 0; k < i; k++) {
            if (is_same(output, &outputs->places[k])) return refuse(&outputs->places[k], output, "are the same file");
        }
        for (size_t k = 0; k < inputs->n; k++) {
            const place *input = &inputs->places[k];
            const bool goes_on = strcmp(output->option, "save") == 0 && strcmp(input->option, "resume") == 0;
            if (is_same(output, input) && !goes_on) return refuse(output, input, "are the same file");
            if (is_inside(output, input)) return refuse(output, input, "do not fit: all files in that folder are read");
        }
        for (size_t k = 0; k < streams->n; k++) {
            const bool asked = vpps_output_descriptor(output->target) >= 0;
            if (!asked && is_same(output, &streams->places[k])) {
                return refuse(output, &streams->places[k], "are the same file");
            }
        }
    }
    return VPPS_OK;
}

static void close_list(place_list *list) {
    for (size_t i = 0; i < list->n; i++) VPPS_FREE(list->places[i].path, list->places[i].target);
    VPPS_FREE_ARRAYS(list->places);
}

vpps_status output_files_check(const settings *s) {
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    place_list outputs = {0}, inputs = {0};
    place standard[2];
    place_list streams = {.places = standard};
    vpps_status status = VPPS_OK;
    for (size_t i = 0; i < n && status == VPPS_OK; i++) {
        if (!rows[i].row.name || rows[i].row.kind != OPTION_TEXT || !options_apply(s, &rows[i])) continue;
        const char *path = options_text(s, &rows[i]);
        if (path && (rows[i].flags & OPTION_OUTPUT)) status = add_place(&outputs, rows[i].row.name, path);
        if (path && (rows[i].flags & OPTION_INPUT)) status = add_place(&inputs, rows[i].row.name, path);
    }
    if (outputs.n && status == VPPS_OK) status = corpus_list_files(s, add_input, &inputs);
    add_streams(&streams, standard);
    if (status == VPPS_OK) status = compare(&outputs, &inputs, &streams);
    for (size_t i = 0; i < outputs.n && status == VPPS_OK; i++)
        status = check_content(s, outputs.places[i].option, outputs.places[i].path);
    close_list(&outputs);
    close_list(&inputs);
    return status;
}

vpps_status output_file_check(const char *path) {
    if (!path || vpps_output_check(path) == VPPS_OK) return VPPS_OK;
    char why[VPPS_MESSAGE_BYTES], begin[VPPS_PATH_SHOWN + 8];
    snprintf(why, sizeof why, "%s", vpps_error_message());
    const int n = snprintf(begin, sizeof begin, "%s%s: ", VPPS_PATH_ARGS(path));
    const bool named = strncmp(why, begin, (size_t)n) == 0;
    return vpps_fail(VPPS_IO, "%scannot be written: %s", begin, why + (named ? n : 0));
}
