/* tables.c - see tables.h. */
#include "codegen/tables.h"

#include "interp_templates/arguments.cuh"

static uint32_t padded_rows(uint32_t rows) { return (rows + VPPS_LANES - 1) / VPPS_LANES * VPPS_LANES; }

/* Where the row words of the matrix begin. */
static uint32_t row_words_of(const vpps_partition *p, const vpps_tables_layout *t, uint32_t matrix) {
    uint32_t at = t->rows;
    for (uint32_t m = 0; m < matrix; m++) at += padded_rows(p->matrices[m].rows);
    return at;
}

vpps_tables_layout vpps_tables_lay_out(const vpps_partition *p) {
    vpps_tables_layout t = {0};
    uint32_t longest = 0;
    for (uint32_t s = 0; s < p->columns.n_slots; s++) longest = vpps_max_u32(longest, p->columns.slots[s].steps);
    t.matrices = t.params + p->n_params * (uint32_t)(sizeof(vpps_param_entry) / 4);
    t.pieces = t.matrices + p->n_matrices * (uint32_t)(sizeof(vpps_matrix_entry) / 4);
    t.column_pieces = t.pieces + p->n_vps * p->n_matrices;
    t.copy = t.column_pieces + (p->columns.n_slots ? p->n_vps * p->n_matrices : 0);
    t.rows = t.copy + p->n_vps * p->columns.n_slots * p->warps * 2;
    t.zero_rows = row_words_of(p, &t, p->n_matrices);
    t.words = t.zero_rows + longest * VPPS_LANES;
    return t;
}

static void fill_params(uint32_t *words, const vpps_partition *p, const vpps_model *model, const vpps_plan *plan) {
    for (uint32_t i = 0; i < p->n_params; i++) {
        const vpps_parameter_data *data = &model->params[i];
        const vpps_param_entry entry = {
            p->matrix_of_param[i], data->rows,         data->cols,
            plan->values[i],       plan->gradients[i], {plan->states[0][i], plan->states[1][i]}};
        memcpy(words + (size_t)i * (sizeof entry / 4), &entry, sizeof entry);
    }
}

static void fill_rows(uint32_t *words, const vpps_partition *p, const vpps_tables_layout *t, uint32_t matrix) {
    const vpps_matrix *m = &p->matrices[matrix];
    const vpps_matrix_entry entry = {m->rows, m->cols, row_words_of(p, t, matrix), (uint32_t)m->gradient};
    memcpy(words + t->matrices + (size_t)matrix * (sizeof entry / 4), &entry, sizeof entry);
    for (uint32_t r = 0; r < padded_rows(m->rows); r++) {
        words[entry.row_words + r] = (uint32_t)(r < m->rows ? vpps_partition_row(p, matrix, r).word : p->zero_row);
    }
}

static void fill_copy(uint32_t *words, const vpps_partition *p, const vpps_tables_layout *t) {
    for (uint32_t i = 0; i < p->n_vps * p->columns.n_slots * p->warps; i++) words[t->copy + 2 * i] = t->zero_rows;
    for (uint32_t vp = 0; vp < p->n_vps && p->columns.n_slots; vp++) {
        for (uint32_t m = 0; m < p->n_matrices; m++) {
            vpps_pieces pieces = vpps_partition_pieces(p, true, m, vp);
            for (uint32_t i = 0; i < pieces.n; i++) {
                uint32_t warp = (pieces.first + i) % p->warps, slot = (pieces.first + i) / p->warps;
                uint32_t *at = words + t->copy + 2 * ((size_t)(vp * p->columns.n_slots + slot) * p->warps + warp);
                at[0] = row_words_of(p, t, m);
                at[1] = pieces.rows.first + i * p->choice.rpw;
            }
        }
    }
}

uint32_t *vpps_tables_create(const vpps_partition *p, const vpps_model *model, const vpps_plan *plan) {
    const vpps_tables_layout t = vpps_tables_lay_out(p);
    uint32_t *words = calloc((size_t)t.words + 1, sizeof *words);
    if (!words) return NULL;
    fill_params(words, p, model, plan);
    for (uint32_t m = 0; m < p->n_matrices; m++) fill_rows(words, p, &t, m);
    memcpy(words + t.pieces, p->rows.first_piece, (size_t)p->n_vps * p->n_matrices * sizeof *words);
    if (p->columns.n_slots) {
        memcpy(words + t.column_pieces, p->columns.first_piece, (size_t)p->n_vps * p->n_matrices * sizeof *words);
    }
    fill_copy(words, p, &t);
    for (uint32_t i = t.zero_rows; i < t.words; i++) words[i] = (uint32_t)p->zero_row;
    return words;
}
