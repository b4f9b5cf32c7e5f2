/* row_sums.c - sums gradients of lookup-table entries over several launches. */
#include "runtime/row_sums.h"

typedef struct table_sums {
    uint32_t *place; /* for each table entry: 1 + index in `rows` of that entry, or 0; NULL: no entry was added yet */
    uint32_t *rows;
    float *gradients;
    uint32_t n;
} table_sums;

struct vpps_row_sums {
    const vpps_model *model;
    table_sums *tables; /* gradients of each lookup table's entries, summed over batches; indexed by parameter */
};

vpps_status vpps_row_sums_create(vpps_row_sums **out, const vpps_model *model) {
    vpps_row_sums *sums = calloc(1, sizeof *sums);
    *out = sums;
    if (sums) {
        sums->model = model;
        sums->tables = calloc(model->n_params + 1, sizeof *sums->tables);
    }
    if (sums && sums->tables) return VPPS_OK;
    vpps_row_sums_destroy(sums);
    *out = NULL;
    return vpps_fail(VPPS_MEMORY, "gradients: out of memory");
}

void vpps_row_sums_destroy(vpps_row_sums *sums) {
    if (!sums) return;
    for (size_t p = 0; sums->tables && p < sums->model->n_params; p++) {
        VPPS_FREE_ARRAYS(sums->tables[p].rows, sums->tables[p].gradients);
        free(sums->tables[p].place);
    }
    VPPS_FREE(sums->tables, sums);
}

static bool make_room(const vpps_row_sums *sums, vpps_param table, uint32_t n) {
    table_sums *t = &sums->tables[table];
    if (!t->place) t->place = calloc(sums->model->params[table].count, sizeof *t->place);
    return t->place && VPPS_RESERVE(t->rows, t->n + (size_t)n) &&
           VPPS_RESERVE(t->gradients, (t->n + (size_t)n) * vpps_entry_elems(sums->model, table));
}

static void add_segment(const vpps_row_sums *sums, const vpps_row_segment *s) {
    table_sums *t = &sums->tables[s->param];
    const size_t words = vpps_entry_elems(sums->model, s->param);
    for (uint32_t k = 0; k < s->n; k++) {
        const float *from = s->gradients + k * words;
        uint32_t *place = &t->place[s->rows[k]];
        if (!*place) {
            t->rows[t->n] = s->rows[k];
            memcpy(t->gradients + t->n * words, from, words * sizeof *from);
            *place = ++t->n;
            continue;
        }
        float *to = t->gradients + (*place - 1) * words;
        for (size_t i = 0; i < words; i++) to[i] += from[i];
    }
}

vpps_status vpps_row_sums_add(vpps_row_sums *sums, const vpps_row_segment *segments, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!make_room(sums, segments[i].param, segments[i].n))
            return vpps_fail(VPPS_MEMORY, "gradients of %s: out of memory",
                             sums->model->params[segments[i].param].name);
    for (uint32_t i = 0; i < n; i++) add_segment(sums, &segments[i]);
    return VPPS_OK;
}

void vpps_row_sums_set(vpps_row_sums *sums, vpps_param table, uint32_t n, const uint32_t *entries,
                       const float *gradients) {
    table_sums *t = &sums->tables[table];
    const size_t words = vpps_entry_elems(sums->model, table);
    for (uint32_t i = 0; i < n && t->place; i++) {
        const uint32_t place = t->place[entries[i]];
        if (place) memcpy(t->gradients + (place - 1) * words, gradients + i * words, words * sizeof *gradients);
    }
}

void vpps_row_sums_clear(vpps_row_sums *sums) {
    for (size_t p = 0; p < sums->model->n_params; p++) {
        table_sums *t = &sums->tables[p];
        for (uint32_t k = 0; k < t->n; k++) t->place[t->rows[k]] = 0;
        t->n = 0;
    }
}

vpps_row_segment vpps_row_sums_of(const vpps_row_sums *sums, vpps_param table) {
    const table_sums *t = &sums->tables[table];
    return (vpps_row_segment){table, t->n, t->rows, t->gradients};
}

vpps_status vpps_row_sums_list(const vpps_row_sums *sums, vpps_row_segment **segments, uint32_t *n) {
    *n = 0;
    if (!VPPS_RESERVE(*segments, sums->model->n_params + 1))
        return vpps_fail(VPPS_MEMORY, "gradients: out of memory for %zu tables", sums->model->n_params);
    for (uint32_t p = 0; p < sums->model->n_params; p++)
        if (sums->tables[p].n && !sums->model->params[p].frozen) (*segments)[(*n)++] = vpps_row_sums_of(sums, p);
    return VPPS_OK;
}
