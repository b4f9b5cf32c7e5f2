/* overwrite.c - checks which files a run may replace. */
#include "cli/output/overwrite.h"
#include "base/base.h"
#include "cli/options/save_name.h"
#include "cli/session/checkpoint.h"
#include "io/output_place.h"

#include <dirent.h>
#include <errno.h>

/* Sets *holds if there is content that would be lost; devices and FIFOs have none. */
static vpps_status holds_something(const char *path, bool *holds) {
    vpps_output_place place;
    VPPS_TRY(vpps_output_find(&place, path));
    *holds = vpps_output_holds_bytes(&place);
    vpps_output_place_close(&place);
    return VPPS_OK;
}

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static vpps_status check_checkpoint(const settings *s, const char *option, const char *path) {
    bool holds;
    VPPS_TRY(holds_something(path, &holds));
    if (!holds) return VPPS_OK;
    if (!s->resume) {
        return vpps_fail(VPPS_ARGUMENT,
                         "--%s %s: the file exists already: --resume %s goes on with a run, --force "
                         "replaces the file",
                         option, path, path);
    }
    if (same_file(path, s->resume) || checkpoint_same_run(s, path, s->resume)) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "--%s %s: the file is not of the run of %s: --force replaces it", option, path,
                     s->resume);
}

/* Checks the checkpoint files of all epochs still to come, whose names contain "{epoch}". */
static vpps_status check_epochs(const settings *s, const char *option, const char *name, uint32_t done) {
    const char *slash = strrchr(name, '/');
    char *folder = slash ? strndup(name, (size_t)(slash - name) + 1) : strdup("");
    DIR *list = folder ? opendir(*folder ? folder : ".") : NULL;
    vpps_status status = list || (folder && errno == ENOENT) ? VPPS_OK
                         : folder ? vpps_fail(VPPS_IO, "%s: its folder cannot be read: %s", name, strerror(errno))
                                  : vpps_fail(VPPS_MEMORY, "no memory for the name of %s", name);
    for (struct dirent *entry; list && status == VPPS_OK && (entry = readdir(list));) {
        char *path;
        uint32_t epoch;
        if (asprintf(&path, "%s%s", folder, entry->d_name) < 0) {
            status = vpps_fail(VPPS_MEMORY, "no memory for the name of %s", entry->d_name);
            break;
        }
        const bool to_come = save_name_matches(name, path, &epoch) && (epoch > done || !s->resume);
        if (to_come) status = check_checkpoint(s, option, path);
        free(path);
    }
    if (list) closedir(list);
    free(folder);
    return status;
}

static vpps_status check_option(const settings *s, const char *option, const char *name, uint32_t done) {
    if (!name) return VPPS_OK;
    VPPS_TRY(save_name_check(option, name));
    if (s->force) return VPPS_OK;
    return save_name_varies(name) ? check_epochs(s, option, name, done) : check_checkpoint(s, option, name);
}

vpps_status overwrite_check_run(const settings *s, uint32_t epoch) {
    VPPS_TRY(check_option(s, "save", s->save, epoch));
    VPPS_TRY(check_option(s, "save-best", s->save_best, epoch));
    bool holds = false;
    if (s->log && !s->resume && !s->force) VPPS_TRY(holds_something(s->log, &holds));
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
