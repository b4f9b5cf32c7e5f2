/* output_files.c - checks that a command's output files are neither its inputs nor each other, and which files it may replace. */
#include "cli/output/output_files.h"
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "cli/session/checkpoint.h"
#include "io/descriptor.h"
#include "io/output.h"

/* A file that an option names, or a standard stream, whose path is NULL. */
typedef struct place {
    const char *option;
    char *path;
    vpps_output_place at;     /* where an output file is to be written; unused for inputs */
    bool exists, in_folder;   /* in_folder: an output in a folder, not a stream */
    struct stat file, folder; /* stat(2) of the file if `exists`, of its folder if `in_folder` */
} place;

typedef struct place_list {
    place *places;
    size_t n;
} place_list;

static bool same_inode(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static vpps_status find_output(place *p) {
    VPPS_TRY(vpps_output_find(&p->at, p->path));
    const bool stream = p->at.descriptor >= 0;
    p->file = p->at.info;
    p->exists = stream ? fstat(p->at.descriptor, &p->file) == 0 : p->at.exists;
    p->in_folder = !stream && fstat(p->at.folder, &p->folder) == 0;
    return VPPS_OK;
}

/* Finds an input file. Does not report a file that cannot be examined, since the code that reads the file will. */
static vpps_status find_input(place *p) {
    p->exists = stat(p->path, &p->file) == 0;
    return VPPS_OK;
}

static bool is_same(const place *a, const place *b) {
    if (a->exists != b->exists) return false;
    /* devices and FIFOs lose nothing when written twice */
    if (a->exists) return S_ISREG(a->file.st_mode) && same_inode(&a->file, &b->file);
    return a->in_folder && b->in_folder && same_inode(&a->folder, &b->folder) && strcmp(a->at.base, b->at.base) == 0;
}

/* Returns whether an output is in, or below, a folder whose files are read. */
static bool is_inside(const place *output, const place *folder) {
    struct stat info, below = {0};
    int at = output->in_folder && folder->exists && S_ISDIR(folder->file.st_mode) ? dup(output->at.folder) : -1;
    bool inside = false;
    while (at >= 0) {
        const bool top = fstat(at, &info) != 0 || same_inode(&info, &below);
        inside = !top && same_inode(&info, &folder->file);
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

/* The first bytes of the files that an option writes. */
static const struct {
    const char *option, *mark;
} marks[] = {{"plot", "<svg"},
             {"trace", "{\"displayTimeUnit\""},
             {"log", "{\"version\":"},
             {"c", "/* The cells of a trained"},
             {"header", "/* The cells of a trained"},
             {"weights", "VPPSnet1"}};

/* Refuses to replace a file that does not begin with its option's mark (marks[]), since another program wrote it. */
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
    const bool file = other->path != NULL;
    return vpps_fail(VPPS_ARGUMENT, "--%s %.100s and %s%s%s%.100s %s", output->option, output->path, file ? "--" : "",
                     other->option, file ? " " : "", file ? other->path : "", why);
}

static vpps_status compare(const place_list *outputs, const place_list *inputs) {
    for (const place *output = outputs->places; output < outputs->places + outputs->n; output++) {
        for (const place *other = outputs->places; other < output; other++)
            if (is_same(output, other)) return refuse(other, output, "are the same file");
        for (const place *input = inputs->places; input < inputs->places + inputs->n; input++) {
            const bool goes_on = strcmp(output->option, "save") == 0 && strcmp(input->option, "resume") == 0;
            if (is_same(output, input) && !goes_on) return refuse(output, input, "are the same file");
            if (is_inside(output, input)) return refuse(output, input, "do not fit: all files in that folder are read");
        }
        for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && output->at.descriptor < 0; fd++) {
            place stream = {.option = fd == STDOUT_FILENO ? "standard output" : "standard error"};
            stream.exists = fstat(fd, &stream.file) == 0;
            if (stream.exists && is_same(output, &stream)) return refuse(output, &stream, "are the same file");
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
    VPPS_CLOSED_BY(close_list) place_list outputs = {0};
    VPPS_CLOSED_BY(close_list) place_list inputs = {0};
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        const char *path = options_apply(s, o) && o->row.kind == OPTION_TEXT ? options_text(s, o) : NULL;
        if (path && (o->flags & OPTION_OUTPUT)) VPPS_TRY(add_place(&outputs, o->row.name, path, find_output));
        if (path && (o->flags & OPTION_INPUT)) VPPS_TRY(add_place(&inputs, o->row.name, path, find_input));
    }
    if (outputs.n) VPPS_TRY(corpus_list_files(s, add_input, &inputs));
    VPPS_TRY(compare(&outputs, &inputs));
    for (size_t i = 0; i < outputs.n; i++) VPPS_TRY(check_content(s, &outputs.places[i]));
    return VPPS_OK;
}

vpps_status output_file_check(const char *path) { return path ? vpps_output_check(path) : VPPS_OK; }

/* ---------------------------------------------------------------- files of other runs */

/* Sets *holds if there is content that would be lost; devices and FIFOs have none. */
static vpps_status holds_something(const char *path, bool *holds) {
    vpps_output_place at;
    VPPS_TRY(vpps_output_find(&at, path));
    *holds = vpps_output_holds_bytes(&at);
    vpps_output_place_close(&at);
    return VPPS_OK;
}

static vpps_status check_checkpoint(const settings *s, const char *option, const char *path) {
    bool holds;
    struct stat x, y;
    VPPS_TRY(holds_something(path, &holds));
    if (!holds) return VPPS_OK;
    if (!s->resume)
        return vpps_fail(VPPS_ARGUMENT,
                         "--%s %s: the file exists already: --resume %s goes on with a run, --force "
                         "replaces the file",
                         option, path, path);
    const bool same = stat(path, &x) == 0 && stat(s->resume, &y) == 0 && same_inode(&x, &y);
    if (same || checkpoint_same_run(s, path, s->resume)) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "--%s %s: the file is not of the run of %s: --force replaces it", option, path,
                     s->resume);
}

vpps_status overwrite_check_run(const settings *s) {
    bool holds = false;
    if (s->force) return VPPS_OK;
    if (s->save) VPPS_TRY(check_checkpoint(s, "save", s->save));
    if (s->save_best) VPPS_TRY(check_checkpoint(s, "save-best", s->save_best));
    if (s->log && !s->resume) VPPS_TRY(holds_something(s->log, &holds));
    if (!holds) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT,
                     "--log %s: the file exists already: --force replaces it, and a run that is resumed "
                     "appends to it",
                     s->log);
}

vpps_status overwrite_check_export(const settings *s, const char *path) {
    char *name = NULL, *epoch = NULL;
    bool holds = false;
    if (!s->force) VPPS_TRY(holds_something(path, &holds));
    if (!holds) return VPPS_OK;
    const bool is_ours = vpps_checkpoint_metadata(path, "network", &name) == VPPS_OK && name,
               is_run = is_ours && vpps_checkpoint_metadata(path, "train.epoch", &epoch) == VPPS_OK && epoch;
    VPPS_FREE(name, epoch);
    vpps_restore_message("");
    if (is_ours && !is_run) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "--save %s: the file %s: --force replaces it", path,
                     is_run ? "is a checkpoint that training can go on from"
                            : "exists already, and export has not made it");
}
