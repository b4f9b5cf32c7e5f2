/* resident.c - see resident.h. */
#include "codegen/resident.h"

const vpps_resident *vpps_resident_of(const vpps_residents *r, vpps_param matrix, bool transposed) {
    for (uint32_t i = 0; i < r->n; i++)
        if (r->list[i].matrix == matrix && r->list[i].transposed == transposed) return &r->list[i];
    return NULL;
}

const vpps_resident_vector *vpps_resident_vector_of(const vpps_residents *r, vpps_param vector) {
    for (uint32_t i = 0; i < r->n_vectors; i++)
        if (r->vectors[i].vector == vector) return &r->vectors[i];
    return NULL;
}

static bool add_vector(vpps_residents *r, vpps_param vector, uint32_t rows) {
    if (vector == VPPS_NO_PARAM || vpps_resident_vector_of(r, vector)) return true;
    if (!VPPS_RESERVE(r->vectors, r->vectors_capacity, r->n_vectors + 1u)) return false;
    r->vectors[r->n_vectors++] = (vpps_resident_vector){.vector = vector, .rows = rows};
    return true;
}

vpps_status vpps_residents_add(vpps_residents *r, const vpps_model *model, const vpps_compiled_cell *c,
                               uint32_t threads) {
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        const bool transposed = x->kind == VPPS_VALUE_PRODUCT_T;
        if (!vpps_is_product(x) || x->split != VPPS_SPLIT_ROWS) continue;
        if (!add_vector(r, x->param, vpps_most_rows(&c->needs, x->rows))) {
            return vpps_fail(VPPS_MEMORY, "kernel: out of memory");
        }
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
    uint32_t at = 0;
    for (uint32_t i = 0; i < r->n_vectors; at += r->vectors[i++].rows) r->vectors[i].at = at;
    r->registers = 0;
    r->shared_words = (at + room->threads - 1) / room->threads * room->threads;
    for (uint32_t i = 0; i < r->n; i++) {
        vpps_resident *m = &r->list[i];
        const uint32_t words = m->rows * m->columns;
        if (words <= room->registers - r->registers) {
            m->level = VPPS_RESIDENT_REGISTERS;
            m->at = r->registers;
            r->registers += words;
        } else if ((uint64_t)words * room->threads + r->shared_words <= room->shared_words) {
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
    free(r->vectors);
    *r = (vpps_residents){0};
}
