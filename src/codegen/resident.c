/* resident.c - see resident.h. */
#include "codegen/resident.h"

const vpps_resident *vpps_resident_of(const vpps_residents *r, vpps_param matrix, bool transposed) {
    for (uint32_t i = 0; i < r->n; i++)
        if (r->list[i].matrix == matrix && r->list[i].transposed == transposed) return &r->list[i];
    return NULL;
}

vpps_status vpps_residents_add(vpps_residents *r, const vpps_model *model, const vpps_compiled_cell *c,
                               uint32_t threads) {
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        const bool transposed = x->kind == VPPS_VALUE_PRODUCT_T;
        if (!vpps_is_product(x) || x->split != VPPS_SPLIT_ROWS) continue;
        for (uint32_t i = 0; i < x->n_args; i++) {
            const vpps_param p = c->args[x->first_arg + i].matrix;
            if (p == VPPS_NO_PARAM || vpps_resident_of(r, p, transposed)) continue;
            const vpps_parameter_data *m = &model->params[p];
            const uint32_t columns = transposed ? m->rows : m->cols;
            if (!VPPS_RESERVE(r->list, r->capacity, r->n + 1u)) {
                return vpps_fail(VPPS_MEMORY, "kernel: out of memory");
            }
            r->list[r->n++] = (vpps_resident){.matrix = p,
                                              .transposed = transposed,
                                              .rows = vpps_most_rows(&c->needs, transposed ? m->cols : m->rows),
                                              .columns = (columns + threads - 1) / threads};
        }
    }
    return VPPS_OK;
}

void vpps_residents_place(vpps_residents *r, const vpps_kernel_room *room) {
    r->registers = r->shared_words = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        vpps_resident *m = &r->list[i];
        const uint32_t words = m->rows * m->columns;
        if (words <= room->registers - r->registers) {
            m->level = VPPS_RESIDENT_REGISTERS;
            m->at = r->registers;
            r->registers += words;
        } else if ((uint64_t)words * room->threads <= room->shared_words - r->shared_words) {
            m->level = VPPS_RESIDENT_SHARED;
            m->at = r->shared_words / room->threads;
            r->shared_words += words * room->threads;
        } else {
            m->level = VPPS_RESIDENT_STREAM;
        }
    }
}

void vpps_residents_free(vpps_residents *r) {
    free(r->list);
    *r = (vpps_residents){0};
}
