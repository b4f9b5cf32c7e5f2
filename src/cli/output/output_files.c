/* output_files.c - checks that a command's output files are neither its inputs nor each other. */
#include "cli/output/output_files.h"
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "cli/options/save_name.h"
#include "io/descriptor.h"
#include "io/output.h"

#include <sys/stat.h>
#include <unistd.h>

/* A file that an option names. */
typedef struct place {
    const char *option;
    char *path;
    vpps_output_place at; /* where an output file is to be written; unused for inputs */
    bool exists, regular, in_folder;
    dev_t device, folder_device;
    ino_t inode, folder_inode;
} place;

typedef struct place_list {
    place *places;
    size_t n;
} place_list;

/* Returns the file's name within its folder. */
static const char *name_of(const place *p) { return *p->at.base ? p->at.base : basename(p->path); }

static void take_stat(place *p, const struct stat *info) {
    p->exists = true;
    p->regular = S_ISREG(info->st_mode);
    p->device = info->st_dev;
    p->inode = info->st_ino;
}

static void take_folder(place *p, const struct stat *info) {
    p->in_folder = true;
    p->folder_device = info->st_dev;
    p->folder_inode = info->st_ino;
}

/* Rewrites the error message about an output; the message may begin with the path. */
static vpps_status fail_unwritable(const char *path) {
    char why[VPPS_MESSAGE_BYTES], begin[VPPS_PATH_SHOWN + 8];
    snprintf(why, sizeof why, "%s", vpps_error_message());
    const int n = snprintf(begin, sizeof begin, "%s%s: ", VPPS_PATH_ARGS(path));
    const bool named = strncmp(why, begin, (size_t)n) == 0;
    return vpps_fail(VPPS_IO, "%scannot be written: %s", begin, why + (named ? n : 0));
}

static vpps_status find_output(place *p) {
    struct stat info;
    if (vpps_output_find(&p->at, p->path) != VPPS_OK) return fail_unwritable(p->path);
    if (p->at.exists) take_stat(p, &p->at.info);
    if (p->at.descriptor >= 0 && fstat(p->at.descriptor, &info) == 0) take_stat(p, &info);
    if (p->at.descriptor < 0 && fstat(p->at.folder, &info) == 0) take_folder(p, &info);
    return VPPS_OK;
}

/* Finds an input file. Does not report a file that cannot be examined, since the code that reads the file will. */
static vpps_status find_input(place *p) {
    struct stat info;
    const size_t n = (size_t)(basename(p->path) - p->path);
    char *folder = n ? strndup(p->path, n) : strdup(".");
    if (!folder) return vpps_fail(VPPS_MEMORY, "no memory for the name of %s", p->path);
    if (stat(p->path, &info) == 0) take_stat(p, &info);
    if (stat(folder, &info) == 0) take_folder(p, &info);
    free(folder);
    return VPPS_OK;
}

static bool in_same_folder(const place *a, const place *b) {
    return a->in_folder && b->in_folder && a->folder_device == b->folder_device && a->folder_inode == b->folder_inode;
}

/* Returns whether a's name contains "{epoch}", so that it stands for one file per epoch, and b is one of these files. */
static bool holds(const place *a, const place *b) {
    uint32_t epoch;
    return a->path && b->path && save_name_varies(a->path) && in_same_folder(a, b) &&
           save_name_matches(name_of(a), name_of(b), &epoch);
}

static bool is_same(const place *a, const place *b) {
    if (holds(a, b) || holds(b, a)) return true;
    if (a->exists != b->exists) return false;
    /* devices and FIFOs lose nothing when written twice */
    if (a->exists) return a->regular && a->device == b->device && a->inode == b->inode;
    return in_same_folder(a, b) && strcmp(name_of(a), name_of(b)) == 0;
}

/* Returns whether an output is in, or below, a folder whose files are read. */
static bool is_inside(const place *output, const place *folder) {
    struct stat info, below = {0};
    int at = output->in_folder && folder->exists && !folder->regular ? dup(output->at.folder) : -1;
    bool inside = false;
    while (at >= 0) {
        const bool top = fstat(at, &info) != 0 || (info.st_dev == below.st_dev && info.st_ino == below.st_ino);
        inside = !top && info.st_dev == folder->device && info.st_ino == folder->inode;
        const int above = top || inside ? -1 : openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        below = info;
        close(at);
        at = above;
    }
    return inside;
}

static vpps_status add_place(place_list *list, const char *option, const char *path, vpps_status (*find)(place *p)) {
    place p = {.option = option, .path = strdup(path), .at.folder = -1};
    if (!p.path || !VPPS_RESERVE(list->places, list->n + 1)) {
        free(p.path);
        return vpps_fail(VPPS_MEMORY, "no memory for the name of %s", path);
    }
    list->places[list->n++] = p;
    return find(&list->places[list->n - 1]);
}

static vpps_status add_input(void *context, const char *option, const char *path) {
    return add_place(context, option, path, find_input);
}

/* Adds standard output and standard error to the list if they are files. */
static void add_streams(place_list *list, place streams[2]) {
    static const char *const names[] = {"standard output", "standard error"};
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat info;
        if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) continue;
        place *p = &streams[list->n++];
        *p = (place){.option = names[fd - 1], .at.folder = -1};
        take_stat(p, &info);
    }
}

static const char *dashes(const char *option) { return strncmp(option, "standard", 8) == 0 ? "" : "--"; }

/* The first bytes of the files that an option writes. */
static const struct {
    const char *option, *mark;
} marks[] = {{"plot", "<svg"},         {"trace", "{\"displayTimeUnit\""},  {"csv", "class,gold,predicted"},
             {"log", "{\"version\":"}, {"c", "/* The cells of a trained"}, {"header", "/* The cells of a trained"},
             {"weights", "VPPSnet1"}};

/* Refuses to replace a file with other first bytes, which another program wrote. */
static vpps_status check_content(const settings *s, const place *output) {
    char begin[32] = "";
    size_t i = 0, have = 0;
    while (i < VPPS_COUNT(marks) && strcmp(marks[i].option, output->option) != 0) i++;
    if (i == VPPS_COUNT(marks) || s->force || !vpps_output_holds_bytes(&output->at)) return VPPS_OK;
    const size_t n = strlen(marks[i].mark);
    const int fd = vpps_output_place_open(&output->at, O_RDONLY);
    const bool read = fd >= 0 && vpps_file_read(fd, output->path, begin, n, &have) == VPPS_OK;
    if (fd >= 0) close(fd);
    if (read && have == n && memcmp(begin, marks[i].mark, n) == 0) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT,
                     "--%s %s: the file exists already, and --%s has not made it: expected another name%s",
                     output->option, output->path, output->option,
                     s->command == COMMAND_TRAIN || s->command == COMMAND_EXPORT ? ", or --force" : "");
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
            if (output->at.descriptor < 0 && is_same(output, &streams->places[k])) {
                return refuse(output, &streams->places[k], "are the same file");
            }
        }
    }
    return VPPS_OK;
}

static void close_list(place_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        vpps_output_place_close(&list->places[i].at);
        free(list->places[i].path);
    }
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
        if (path && (rows[i].flags & OPTION_OUTPUT)) status = add_place(&outputs, rows[i].row.name, path, find_output);
        if (path && (rows[i].flags & OPTION_INPUT)) status = add_place(&inputs, rows[i].row.name, path, find_input);
    }
    if (outputs.n && status == VPPS_OK) status = corpus_list_files(s, add_input, &inputs);
    add_streams(&streams, standard);
    if (status == VPPS_OK) status = compare(&outputs, &inputs, &streams);
    for (size_t i = 0; i < outputs.n && status == VPPS_OK; i++) status = check_content(s, &outputs.places[i]);
    close_list(&outputs);
    close_list(&inputs);
    return status;
}

vpps_status output_file_check(const char *path) {
    return !path || vpps_output_check(path) == VPPS_OK ? VPPS_OK : fail_unwritable(path);
}
