/* vectors.c - initialises embeddings with pretrained vectors. */
#include "base/base.h"
#include "cli/session/parameters.h"
#include "io/stream.h"

bool vectors_wanted(const settings *s) { return s->vectors && !s->resume && !s->model; }

/* Returns where the size of a network's embeddings is stored: `embed`, or `hidden` in networks without that option. */
static uint32_t *size_of(settings *s, const char **option) {
    *option = "embed";
    for (const option_row *o = s->network->options; o->name; o++)
        if (strcmp(o->name, *option) == 0) return &s->net.embed;
    *option = "hidden";
    return &s->net.hidden;
}

vpps_status vectors_set_size(settings *s) {
    vpps_vectors_info info;
    const char *option;
    uint32_t *size = size_of(s, &option);
    VPPS_TRY(vpps_vectors_describe(s->vectors, &info));
    if (options_given(s, option) && *size != info.size)
        return vpps_fail(VPPS_ARGUMENT, "%s%s: its vectors have %u elements, but --%s is %u",
                         VPPS_PATH_ARGS(s->vectors), info.size, option, *size);
    *size = info.size;
    return VPPS_OK;
}

/* Reads the vectors for a table that is divided among processes. Words without a vector keep their initial value, so the whole table is in
 * memory for a moment. */
static vpps_status read_shard(session *x, const corpus *c, const vpps_param_info *info, uint32_t size, float *values) {
    const size_t bytes = size * sizeof *values;
    VPPS_FREED float *whole = vpps_scratch((size_t)info->count * bytes);
    if (!whole) return vpps_fail(VPPS_MEMORY, "no memory for vectors of %u words", info->count);
    for (uint32_t i = info->first; i < info->count; i += info->step)
        memcpy(whole + (size_t)i * size, values + (size_t)(i / info->step) * size, bytes);
    VPPS_TRY(vpps_vectors_read(x->settings->vectors, c->vocab[VOCAB_WORDS], size, whole, &x->vectors));
    for (uint32_t i = info->first; i < info->count; i += info->step)
        memcpy(values + (size_t)(i / info->step) * size, whole + (size_t)i * size, bytes);
    return VPPS_OK;
}

vpps_status vectors_load(session *x, const corpus *c) {
    const settings *s = x->settings;
    vpps_param table;
    vpps_param_info info = {.size = sizeof info};
    if (!s->vectors) return VPPS_OK;
    VPPS_TRY(vpps_param_find(x->model, s->network->embedding, &table));
    VPPS_TRY(vpps_param_describe(x->model, table, &info));
    if (s->freeze_vectors) VPPS_TRY(vpps_freeze(x->model, table, true));
    if (!vectors_wanted(s)) return VPPS_OK;
    const uint32_t size = info.rows * info.cols;
    float *values = vpps_param_values(x->model, table);
    if (info.step == 1) return vpps_vectors_read(s->vectors, c->vocab[VOCAB_WORDS], size, values, &x->vectors);
    return read_shard(x, c, &info, size, values);
}

void vectors_describe(const session *x, char *text, size_t n) {
    const vpps_vectors_found *f = &x->vectors;
    if (f->words > 1 && !f->found) {
        snprintf(text, n,
                 "warning: %s%s: vectors of none of the %u words: do they agree in language and capital letters?",
                 VPPS_PATH_ARGS(x->settings->vectors), f->words);
        return;
    }
    snprintf(text, n, "%s%s: vectors of %u of the %u words (%.1f %%)%s", VPPS_PATH_ARGS(x->settings->vectors), f->found,
             f->words, f->words ? 100.0 * f->found / f->words : 0.0,
             x->settings->freeze_vectors ? "; embeddings are frozen" : "");
}
