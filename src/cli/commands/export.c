/* export.c - `vpps export`: writes a checkpoint without its training state, or its network as C. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/output/output_files.h"
#include "cli/session/parameters.h"
#include "io/descriptor.h"
#include "io/safetensors.h"

/* Returns whether an export keeps a metadata entry of the checkpoint. The network's name, sizes and vocabularies and other programs'
 * entries are kept; the training's progress, data and options are not. */
static bool is_kept(const settings *s, const char *key) {
    static const char option[] = "option.";
    if (strncmp(key, "train.", 6) == 0 || strncmp(key, "data.", 5) == 0) return false;
    if (strncmp(key, "vpps.", 5) == 0) return strcmp(key, "vpps.version") == 0;
    if (strncmp(key, option, sizeof option - 1) != 0) return true;
    for (const option_row *o = s->network->options; o->name; o++)
        if (strcmp(o->name, key + sizeof option - 1) == 0) return true;
    return false;
}

static vpps_status list_tensors(const vpps_safetensors *file, const char *path, vpps_safetensors_tensor *tensors,
                                size_t *n) {
    for (size_t i = 0; i < vpps_safetensors_count(file); i++) {
        const vpps_safetensors_info *t = vpps_safetensors_at(file, i);
        if (init_is_state(t->name)) continue;
        vpps_safetensors_tensor *out = &tensors[(*n)++];
        if (strcmp(t->dtype, "F32") != 0 || t->n_dims > VPPS_COUNT(out->dims))
            return vpps_fail(VPPS_FORMAT, "%s%s: tensor '%.100s': expected F32 of at most 3 dimensions, found %s",
                             VPPS_PATH_ARGS(path), t->name, t->dtype);
        *out = (vpps_safetensors_tensor){.name = t->name, .n_dims = t->n_dims};
        for (uint32_t k = 0; k < t->n_dims; k++) out->dims[k] = t->dims[k];
    }
    return VPPS_OK;
}

/* The tensors of a file that are written to another one. */
typedef struct copied {
    const vpps_safetensors *file;
    const vpps_safetensors_tensor *tensors;
} copied;

static vpps_status read_copied(void *context, size_t i, uint64_t first, size_t room, float *out, size_t *got) {
    const copied *c = context;
    const vpps_safetensors_tensor *t = &c->tensors[i];
    *got = room;
    return vpps_safetensors_read_part(c->file, t->name, t->n_dims, t->dims, first, room, out);
}

static vpps_status write_parameters(const settings *s, const vpps_safetensors *file, size_t *n) {
    char checksum[VPPS_CHECKSUM_BYTES];
    const size_t most = vpps_safetensors_count(file), n_metadata = vpps_safetensors_metadata_count(file);
    VPPS_FREED vpps_safetensors_tensor *tensors = vpps_scratch((most + 1) * sizeof *tensors);
    VPPS_FREED vpps_metadata *metadata = vpps_scratch((n_metadata + 1) * sizeof *metadata);
    size_t m = 0;
    if (!tensors || !metadata) return vpps_fail(VPPS_MEMORY, "no memory for %zu tensors", most);
    VPPS_TRY(list_tensors(file, s->model, tensors, n));
    const vpps_safetensors_source source = {read_copied, &(copied){file, tensors}};
    VPPS_TRY(vpps_safetensors_checksum(tensors, *n, &source, checksum));
    for (size_t i = 0; i < n_metadata; i++) {
        const vpps_metadata entry = vpps_safetensors_metadata_at(file, i);
        if (is_kept(s, entry.key)) metadata[m++] = entry;
    }
    metadata[m++] = (vpps_metadata){VPPS_CHECKSUM_KEY, checksum};
    return vpps_safetensors_write(s->save, tensors, *n, metadata, m, &source);
}

static void close_file(vpps_safetensors **file) { vpps_safetensors_close(*file); }

static vpps_status export_parameters(const settings *s) {
    VPPS_CLOSED_BY(close_file) vpps_safetensors *file = NULL;
    size_t n = 0;
    VPPS_TRY(overwrite_check_export(s, s->save));
    VPPS_TRY(vpps_safetensors_open(&file, s->model));
    const char *held = vpps_safetensors_metadata(file, "network");
    VPPS_TRY(vpps_safetensors_verify(file));
    if (!held || strcmp(held, s->network->name) != 0)
        return vpps_fail(VPPS_ARGUMENT, "%s holds %s%.64s, not %s", s->model, held ? "the network " : "no network",
                         held ? held : "", s->network->name);
    VPPS_TRY(write_parameters(s, file, &n));
    fprintf(stderr, "%s: %zu parameters of %s\n", s->save, n, s->network->name);
    return VPPS_OK;
}

static vpps_status export(settings *s) {
    VPPS_TRY(output_files_check(s));
    if (s->save) VPPS_TRY(export_parameters(s));
    return s->c_file ? export_as_c(s) : VPPS_OK;
}

int command_export(settings *s) {
    if (!s->save && !s->c_file) return report_usage("export", "--save FILE is missing, or --c FILE.c");
    return exit_code(export(s));
}
